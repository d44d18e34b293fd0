# SPDX-License-Identifier: Apache-2.0
"""Lists the forms of attribute values.

forms() yields (name, text) of modules whose long form (--print=long) must equal jaxlib's.
"""

# Modules in which each of the rows replaces VALUE.
FORMS = [
    ('HloModule m\n'
     'ENTRY e {\n'
     ' ROOT a = f32[8,8,8] parameter(0), sharding=VALUE\n'
     '}\n',
     r'''
{replicated}
{ replicated }
{replicated replicated}
{manual replicated}
{replicated shard_as 1}
{shard_as 1 replicated}
{replicated shard_as -1}
{maximal device=1}
{device=1 maximal}
{maximal device=1 device=2}
{maximal device= 1}
{maximal device=-1}
{maximal devices=[1]0}
{}
{devices=[2]0,1}
{devices=[2] 0 , 1}
{devices=[ 2 ]0,1}
{devices=[2]0,0}
{devices=[2]0,5}
{devices=[2]0,-1}
{devices=[2]<=[2]}
{devices=[2] <= [2]}
{devices=[2]<=[4]}
{devices=[4]<=[2,2]T(0,1)}
{devices=[4]<=[2,2]T(1,0)}
{devices=[4]<=[2,2] T (1,0)}
{devices=[4]<=[2,1,2]T(2,1,0)}
{devices=[8]<=[2,2,2]T(2,0,1)}
{devices=[8]<=[2,2,2]T(0,2,1)}
{devices=[8]<=[2,2,2]T(1,2,0)}
{devices=[0]<=[0]}
{devices=[-2]<=[2]}
{devices=[2,2]<=[4] last_tile_dim_replicate}
{last_tile_dim_replicate devices=[2,2]<=[4]}
{devices=[2,1]<=[2] last_tile_dim_replicate}
{devices=[1,2]<=[2] last_tile_dim_replicate}
{devices=[1,4]<=[4] last_tile_dim_replicate}
{devices=[1,4]3,2,1,0 last_tile_dim_replicate}
{devices=[2,2]3,2,1,0 last_tile_dim_replicate}
{devices=[2,4]7,6,5,4,3,2,1,0 last_tile_dim_replicate}
{devices=[2,2]<=[4] last_tile_dims={replicated}}
{devices=[2,2]<=[4] last_tile_dims={ manual }}
{devices=[2,2]<=[4] last_tile_dims={}}
{devices=[2,2]<=[4] last_tile_dims={maximal}}
{devices=[2,2]<=[4] last_tile_dims={manual,manual}}
{devices=[1,2,2]<=[4] last_tile_dims={manual, replicated}}
{devices=[1,2,2]<=[4] last_tile_dims={replicated,manual}}
{devices=[1,2,2]<=[4] last_tile_dims={replicated,replicated}}
{devices=[1,2,2]<=[4] last_tile_dims={manual,manual}}
{devices=[1,2,2]<=[4] last_tile_dims={unreduced,manual}}
{devices=[1,2,2]<=[4] last_tile_dims={unreduced,manual,replicated}}
{devices=[2,2,2]<=[8] last_tile_dims={replicated,manual}}
{devices=[2,2,2]0,1,2,3,4,5,6,7 last_tile_dims={replicated,manual}}
{devices=[2,2,1]<=[4] last_tile_dims={manual,replicated}}
{devices=[1,4]<=[4] last_tile_dims={manual}}
{devices=[4]<=[4] last_tile_dims={manual}}
{devices=[4]<=[4] last_tile_dims={replicated}}
{devices=[4]<=[4] last_tile_dims={unreduced}}
{devices=[4]<=[4] last_tile_dim_replicate}
{devices=[2]<=[2] metadata={op_name="a"}}
{metadata={op_name="a"} devices=[2]<=[2]}
{devices=[2]<=[2] metadata={}}
{devices=[2]<=[2] metadata={{}}}
{devices=[2]<=[2] metadata={{op_name="a"}}}
{devices=[2]<=[2] metadata={{op_name="a"}, {op_type="b" source_line=3}}}
{devices=[2]<=[2] metadata={op_name="a", op_type="b"}}
{devices=[2]<=[2] shard_like 5 metadata={op_name="a"}}
{devices=[2]0,1 /*c*/}
{{replicated}}
{{replicated}, {manual}}
{devices=[2,1,1]<=[2]}
{unreduced metadata={op_name="q"}}
{devices=[4,2,2]<=[2,4,2]T(1,0,2) last_tile_dim_replicate}
{devices=[4,2,2]<=[2,4,2]T(1,0,2) last_tile_dims={manual}}
{devices=[4,2,2]<=[2,4,2]T(1,2,0) last_tile_dims={manual,replicated}}
{devices=[2,2]0,2,1,3}
{devices=[2,2]0,1,2,3}
{mesh['a'=2], [{'a'}]}
{mesh['a'=2] , [ { 'a' } ] }
{mesh["a"=2], [{"a"}]}
{mesh['a'=2] [{'a'}]}
{mesh['a'=2], [{?}]}
{mesh['a'=2], [{'a', ?}]}
{mesh['b'=4], [{'b':(2)2}]}
{mesh['b'=4], [{'b':(1)2}]}
{mesh['b'=4], [{'b' : ( 2 ) 2}]}
{mesh['b'=8], [{'b':(1)2}, {'b':(2)4}]}
{mesh['a'=2,'b'=4], [{'a'}], replicated={'b'}}
{mesh['a'=2,'b'=4], [{'a'}], replicated={}}
{mesh['a'=2,'b'=4], [{'a'}], unreduced={'b'}}
{mesh['a'=2,'b'=4], [{'a'}], manual={'b'}}
{mesh['a'=2,'b'=4,'c'=2], [{'a'}], manual={'b'}, replicated={'c'}}
{mesh['a'=2,'b'=4,'c'=2], [{'a'}], unreduced={'b'}, replicated={'c'}}
{mesh['a'=2,'b'=4,'c'=2], [{'a'}], manual={'b'}, unreduced={'c'}}
{mesh['a'=2,'b'=4,'c'=2], [{}], replicated={'b', 'c'}}
{mesh['a'=2,'b'=4], [{'a'}], replicated={'b':(1)2}}
{mesh['a'=2,'b'=4], [{'a'}], metadata={op_name="x"}}
{mesh['a'=2,'b'=4], [{'a'}], metadata={{op_name="x"}, {op_name="y"}}}
{mesh['a'=2,'b'=4], [{'a'}], metadata={op_name="x"}, manual={'b'}}
{mesh['a'=2,'b'=4], [{'a'}], manual={'b'}, metadata={op_name="x"}}
{mesh['a'=2], device_ids=(1,0), [{'a'}]}
{mesh['a'=4], device_ids=([2,2]T(1,0)), [{'a'}]}
{mesh['a'=4], device_ids=([2,2]T(0,1)), [{'a'}]}
{mesh['a'=4], device_ids=([4]), [{'a'}]}
{mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)), [{'a'}]}
{mesh['a'=2,'b'=2], device_ids=([3,2]T(1,0)), [{'a'}]}
{maximal_mesh[device_id=5]}
{maximal_mesh[device_id=-5]}
{maximal_mesh[ device_id= 5 ]}
{maximal_mesh[device_id=5], metadata={op_name="x"}}
{mesh['a'=0], [{'a'}]}
{mesh['a'=-1], [{'a'}]}
{mesh['a'=1], [{'a'}]}
{{mesh['a'=2], [{'a'}]}, {replicated}}
{mesh['a b'=2], [{'a b'}]}
{mesh[''=2], [{''}]}
{mesh['a'=2], [{'a'}, {}], replicated={}, unreduced={}, manual={}}
{mesh['a'=2,'b'=2,'c'=2,'d'=2], [{'d', 'a', ?}, {'b'}, {?}], replicated={'c'}}
{mesh['a'=2,'b'=2,'c'=2,'d'=2], [{'d','a',?},{'b'},{?}],replicated={'c'}}
{mesh['a'=2, 'b'=2], [{'a'}]}
{mesh['a'=2,'b'=4], replicated}
{mesh['a'=2,'b'=4] replicated}
{mesh['a'=2,'b'=4], unreduced}
{mesh['a'=2,'b'=4] , manual , metadata={op_name="x"}}
{mesh['a'=2,'b'=4], unreduced, metadata={{op_name="x"}, {op_name="y"}}}
{mesh['a'=2,'b'=4], device_ids=(1,0,2,3,4,5,6,7), replicated}
{mesh['a'=2,'b'=4], device_ids=([2,4]T(1,0)), manual}
{mesh['a'=2,'b'=4], []}
{mesh['a'=2,'b'=4], [], metadata={op_name="x"}}
{mesh['a'=2,'b'=4], [], replicated={'a'}}
{mesh['a'=2,'b'=4], [], replicated={'a','b'}}
{mesh['a'=2,'b'=4], [], unreduced={'a','b'}}
{mesh['a'=2,'b'=4], [], unreduced={'a'}, manual={'b'}}
{mesh['a'=2,'b'=4], [], manual={'a','b'}, metadata={{op_name="x"}}}
{mesh['a'=2,'b'=4], [{}], manual={'a','b'}}
{mesh['a'=4,'b'=2], [], manual={'a':(1)2,'b'}}
{mesh['a'=4], [], manual={'a':(1)2}}
{mesh['a'=1], manual}
{mesh[], replicated}
{mesh[], []}
{mesh[], [{}]}
{{mesh['a'=2], replicated}, {mesh['a'=2], manual}}
{devices=[2,4]<=[2,2,2]T(0,2,1) last_tile_dim_replicate}
{devices=[4,2]<=[2,2,2]T(0,2,1) last_tile_dim_replicate}
{devices=[2,2,2]<=[2,2,2]T(2,1,0) last_tile_dim_replicate}
{devices=[2,4]<=[2,2,2]T(2,1,0) last_tile_dim_replicate}
{devices=[2,4]<=[2,2,2]T(1,2,0) last_tile_dim_replicate}
{devices=[2,2,2]<=[2,2,2]T(0,2,1) last_tile_dims={manual,replicated}}
{devices=[2,4,2]<=[2,2,2,2]T(0,2,1,3) last_tile_dims={replicated,manual}}
{devices=[2,2,4]<=[2,2,2,2]T(0,3,2,1) last_tile_dims={manual,replicated}}
{devices=[2,2,2,2]<=[16] last_tile_dims={replicated,manual,replicated}}
{devices=[3,2,2]<=[12] last_tile_dims={replicated,manual}}
{devices=[2,3,2]<=[12] last_tile_dims={replicated,manual}}
{devices=[2,3,2]<=[4,3]T(1,0) last_tile_dims={replicated,manual}}
{devices=[2,3,2]<=[6,2]T(1,0) last_tile_dims={replicated,manual}}
{devices=[2,6]<=[4,3]T(1,0) last_tile_dim_replicate}
{devices=[1,1]<=[1]}
{devices=[1]<=[1]}
{devices=[1,1]<=[1] last_tile_dim_replicate}
{devices=[1,1]<=[1] last_tile_dims={manual}}
{devices=[2]<=[2] shard_as 1 shard_as 1}
{unknown shard_as 1}
{manual shard_as 1}
{maximal device=1 shard_as 1}
{{devices=[2]<=[2] shard_as 1}}
{devices=[2]<=[2] metadata={} shard_as 1}
{devices=[4,1]<=[4] last_tile_dims={replicated}}
{devices=[1,4]0,1,2,3 last_tile_dims={manual}}
{devices=[2,2,2]0,1,2,3,4,5,6,7 last_tile_dims={manual,replicated}}
{devices=[2,2,2]7,6,5,4,3,2,1,0 last_tile_dims={manual,replicated}}
{devices=[2,2,1]7,6,5,4 last_tile_dims={manual,replicated}}
{devices=[2,2,2]7,6,5,4,3,2,1,0 last_tile_dims={unreduced,replicated}}
{devices=[2,2]3,2,1,0 last_tile_dims={unreduced}}
{devices=[2,2]3,2,1,0 last_tile_dims={replicated}}
{devices=[2,2,2]<=[8] last_tile_dims={maximal,manual}}
{devices=[2,2]<=[4] last_tile_dims={manual} metadata={op_name="x"} shard_as 3}
{devices=[4]<=[4] last_tile_dim_replicate metadata={op_name="x"} shard_as 3}
'''.split('\n')[1:-1]),
    ('HloModule m\n'
     'ENTRY e {\n'
     ' a = f32[8] parameter(0)\n'
     ' ROOT c = f32[8] all-to-all(a), replica_groups=VALUE, dimensions={0}\n'
     '}\n',
     r'''
{}
{{}}
{{0}}
{{0,1},{2,3}}
{{0,1},{2}}
{{0},{},{1}}
{{0,0}}
{{-1,0}}
{{0,1},{1,0}}
{{0,5}}
{ }
[2,2]<=[4]
[ 2 , 2 ] <= [ 4 ]
[2,2]<=[2,2]T(1,0)
[2,2]<=[2,2]T(0,1)
[2,2]<=[2,2] T(1,0)
[2,2]<=[2,2]T (1,0)
[2,2]<=[2,1,2]T(2,1,0)
[2,2]<=[8]
[2,-2]<=[4]
[0,0]<=[0]
[8,2]<=[4,2,2]T(0,1,2)
[4,4]<=[4,2,2]T(1,2,0)
[4,4]<=[4,2,2]T(2,0,1)
mesh['a'=2,'b'=2] {'a'}
mesh['a'=2,'b'=2]{'a'}
mesh['a'=2,'b'=2] , {'a'}
mesh['a'=2,'b'=2] {'a', 'b'}
mesh["a"=2,'b'=2] {"a"}
mesh['a'=2,'b'=4] {'b':(1)2}
mesh['a'=2,'b'=2], device_ids=(3,2,1,0) {'a'}
mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'a'}
mesh['a'=2,'b'=2] {'b','a'}
'''.split('\n')[1:-1]),
    ('HloModule m\n'
     'ENTRY e {\n'
     ' a = f32[8] parameter(0)\n'
     ' ROOT c = f32[8] collective-permute(a), source_target_pairs=VALUE\n'
     '}\n',
     r'''
{}
{{0,1}}
{ { 0 , 1 } }
{{0,1},{1,0}}
{{0,1},{0,2}}
{{-1,0}}
{{0,0}}
{{1,0},{0,1}}
'''.split('\n')[1:-1]),
    ('HloModule m\n'
     'ENTRY e {\n'
     ' a = f32[2] parameter(0)\n'
     ' b = f32[2] parameter(1)\n'
     ' ROOT c = f32[2] add(a, b), frontend_attributes=VALUE\n'
     '}\n',
     r'''
{}
{a="x"}
{a='x'}
{b="x",a="y"}
{b="x", a="y"}
{a="x",a="y"}
{a={b="x"}}
{a={b=x}}
{a={}}
{a={ b = "x" }}
{a={b="}"}}
{a= "x"}
{a.b-c="x"}
{a="q\"r"}
{a="{x}"}
{a="{x"}
{a=""}
{_a="x"}
{b={2},a={1},c="0"}
{A="1",a="2",B="3"}
'''.split('\n')[1:-1]),
    ('HloModule m\n'
     'ENTRY e {\n'
     ' a = f32[2] parameter(0)\n'
     ' b = f32[2] parameter(1)\n'
     ' ROOT c = f32[2] add(a, b), statistics=VALUE\n'
     '}\n',
     r'''
{visualizing_index=0,a=1.5}
{visualizing_index=0, a=1.5}
{visualizing_index=0}
{visualizing_index=-1,a=1}
{visualizing_index=1,a=1}
{visualizing_index=0,a=1,b=2.25}
{visualizing_index=0,a=1,a=2}
{visualizing_index=0,a=1e3}
{visualizing_index=0,a=-2.5}
{visualizing_index=0,a=100000}
{visualizing_index=0,a=1000000}
{visualizing_index=0,a=1e10}
{visualizing_index=0,a=0.1}
{visualizing_index=0,a=1e-7}
{visualizing_index=0,a=0}
{}
'''.split('\n')[1:-1]),
    ('HloModule m\n'
     'ENTRY e {\n'
     ' a = f32[2] parameter(0)\n'
     ' b = f32[2] parameter(1)\n'
     ' ROOT c = f32[2] add(a, b), origin=VALUE\n'
     '}\n',
     r'''
{}
{{}}
{{"a"}}
{{"a" {0}}}
{{"a" {0,1}}}
{{"a"{0}}}
{{"a" {}}}
{({"a"}, {"b"})}
{({"a"}, {})}
{({"a"}, ({"b"}, {}))}
{()}
{({"a"},)}
{[synthetic_call]}
{ { "a" { 0 } } }
{{'a'}}
{{"a" {-1}}}
'''.split('\n')[1:-1]),
    ('HloModule m\n'
     'ENTRY e {\n'
     ' ROOT p = (f32[2], f32[2]) parameter(0), origin=VALUE\n'
     '}\n',
     r'''
{({"a" {0}}, {"b"})}
{({}, {"b"})}
{({}, {})}
{{"b"}}
{({"a"}, {"b"}, {"c"})}
'''.split('\n')[1:-1]),
    ('HloModule m\n'
     'ENTRY e {\n'
     ' ROOT p = (f32[2], f32[2]) parameter(0), parameter_replication=VALUE\n'
     '}\n',
     r'''
{true,false}
{true, false}
{false,false}
'''.split('\n')[1:-1]),
    ('HloModule m, allow_spmd_sharding_propagation_to_output=VALUE\n'
     'ENTRY e {\n'
     ' a = f32[2] parameter(0)\n'
     ' b = (f32[2], f32[2]) parameter(1)\n'
     ' g = f32[2] get-tuple-element(b), index=0\n'
     ' ROOT t = (f32[2], f32[2]) tuple(a, g)\n'
     '}\n',
     r'''
{true,false}
{true, true}
{false}
{false,false}
{}
true
false
'''.split('\n')[1:-1]),
    ('HloModule m, input_output_alias=VALUE\n'
     'ENTRY e {\n'
     ' a = f32[2] parameter(0)\n'
     ' b = (f32[2], f32[2]) parameter(1)\n'
     ' g = f32[2] get-tuple-element(b), index=0\n'
     ' ROOT t = (f32[2], f32[2]) tuple(a, g)\n'
     '}\n',
     r'''
{}
{ }
{ {0}: (0, {}, may-alias) }
{{0}:(0,{},may-alias)}
{ {0}: (0, {}) }
{ {0}: (0, {}, must-alias) }
{ {0}: (0, {}, may-alias), }
{ {1}: (1, {0}, may-alias), {0}: (0, {}, may-alias) }
{ {0}: (0, {}), {1}: (0, {}) }
{ {0}: (5, {}) }
{ {0}: (0, {0}) }
{ {}: (0, {}) }
'''.split('\n')[1:-1]),
    ('HloModule m, buffer_donor=VALUE\n'
     'ENTRY e {\n'
     ' a = f32[2] parameter(0)\n'
     ' b = (f32[2], f32[2]) parameter(1)\n'
     ' g = f32[2] get-tuple-element(b), index=0\n'
     ' ROOT t = (f32[2], f32[2]) tuple(a, g)\n'
     '}\n',
     r'''
{}
{ (0, {}) }
{(0,{})}
{ (1, {1}), (0, {}) }
{ (0, {}), (0, {}) }
{ (0, {}), }
{ (5, {}) }
{ (0, {4}) }
'''.split('\n')[1:-1]),
    ('HloModule m\n'
     'ENTRY e {\n'
     ' a = f32[2] parameter(0)\n'
     ' b = f32[2] parameter(1)\n'
     ' ROOT c = (f32[2], f32[2]) custom-call(a, b), custom_call_target="t", output_to_operand_aliasing=VALUE\n'
     '}\n',
     r'''
{}
{{0}: (0, {})}
{ {0}: (0, {}) }
{{1}: (1, {}), {0}: (0, {})}
{{0}: (0, {}),}
{{}: (0, {})}
{{5}: (0, {})}
{{0}: (7, {})}
{{0}: (-7, {})}
{{0}: (0, {3})}
{{0}: (0, {}), {0}: (1, {})}
'''.split('\n')[1:-1]),
    ('HloModule m\n'
     'ENTRY e {\n'
     ' a = f32[2] parameter(0)\n'
     ' b = f32[2] parameter(1)\n'
     ' ROOT c = f32[] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}, operand_precision=VALUE\n'
     '}\n',
     r'''
{default,default}
{high,highest}
{high, highest}
{ high , highest }
{high}
{}
{HIGH,DEFAULT}
{default,high}
{high,high,high}
'''.split('\n')[1:-1]),
    ('HloModule m\n'
     'ENTRY e {\n'
     ' a = f32[2] parameter(0)\n'
     ' b = f32[2] parameter(1)\n'
     ' ROOT c = f32[2] add(a, b), metadata={op_name="n" profile_type=VALUE}\n'
     '}\n',
     r'''
{1}
{0}
{1,2}
{}
'''.split('\n')[1:-1]),
    ('HloModule m\n'
     'ENTRY e {\n'
     ' a = f32[2] parameter(0)\n'
     ' b = f32[2] parameter(1)\n'
     ' ROOT c = f32[2] add(a, b), metadata={op_name="n" metadata_payload=VALUE}\n'
     '}\n',
     r'''
"x"
"type_url:x"
'''.split('\n')[1:-1]),
    ('HloModule m\n'
     'ENTRY e {\n'
     ' a = f32[2] parameter(0)\n'
     ' b = f32[2] parameter(1)\n'
     ' ROOT c = f32[2] add(a, b), metadata=VALUE\n'
     '}\n',
     r'''
{}
{op_name="a" source_line=-1}
{op_name="a" source_line=0}
{op_name="a" op_type=""}
{op_name="a" scheduling_name=""}
{source_file="x"}
{op_type="x"}
{op_name="a" stack_frame_id=0}
{op_name="a" deduplicated_name=""}
{op_name="a" deduplicated_name="q"}
{op_name="a" source_column=0 source_end_column=0}
{source_line=3}
{source_line=3 source_end_line=4 source_column=5 source_end_column=6}
{deduplicated_name="d"}
{profile_type={1}}
'''.split('\n')[1:-1]),
    ('HloModule m\n'
     'ENTRY e {\n'
     ' a = f32[1,8,8,3] parameter(0)\n'
     ' k = f32[3,3,3,16] parameter(1)\n'
     ' ROOT c = f32[1,6,6,16] convolution(a, k), window={VALUE}, dim_labels=b01f_01io->b01f\n'
     '}\n',
     r'''
size=3x3
size=3x3 stride=2x2
stride=2x2 size=3x3
size=3x3 pad=1_1x1_1
size=3x3 pad=0_0x0_0
size=3x3 pad=-1_1x0_-2
size=3
size=3x3x3
size=0x0

size=3x3 lhs_dilate=2x2
size=3x3 lhs_dilate=0x2
size=3x3 rhs_dilate=1x1
size=3x3 rhs_reversal=0x1
size=3x3 rhs_reversal=2x1
size=3x3 rhs_reversal=1
size=3x3 stride=0x1
'''.split('\n')[1:-1]),
    ('HloModule m\n'
     'ENTRY e {\n'
     ' a = f32[1,8,8,3] parameter(0)\n'
     ' k = f32[3,3,3,16] parameter(1)\n'
     ' ROOT c = f32[1,6,6,16] convolution(a, k), window={size=3x3}, dim_labels=VALUE\n'
     '}\n',
     r'''
b01f_01io->b01f
bf01_oi01->bf01
b0f1_0i1o->b0f1
b01f_01io->b10f
b?01f_01io->b01f
b01f?_01io?->b01f?
bf_io->bf
b0f_0io->b0f
b01f_10io->b01f
01bf_01io->01bf
b012f_012io->b012f
'''.split('\n')[1:-1]),
    ('HloModule m\n'
     'ENTRY e {\n'
     ' a = f32[2] parameter(0)\n'
     ' z = f32[] parameter(1)\n'
     ' ROOT c = f32[5] pad(a, z), padding=VALUE\n'
     '}\n',
     r'''
1_2
1_2_3
1_2_0
-1_-2
1_2x3_4
'''.split('\n')[1:-1]),
    ('HloModule m\n'
     'ENTRY e {\n'
     ' a = f32[2] parameter(0)\n'
     ' ROOT c = f32[2] slice(a), slice=VALUE\n'
     '}\n',
     r'''
{[0:2]}
{[0:2:1]}
{ [0:2] }
{[ 0 : 2 : 1 ]}
{}
{[0:2], [0:1]}
{[-1:2]}
{[0:2:0]}
'''.split('\n')[1:-1]),
    ('HloModule m\n'
     'ENTRY e {\n'
     ' a = f32[8,8] parameter(0)\n'
     ' ROOT c = f32[8,2] slice(a), slice=VALUE\n'
     '}\n',
     r'''
{[0:8:2], [1:3:1]}
{[0:8:2], [1:3]}
{[0:8], [1:3:1]}
'''.split('\n')[1:-1]),
    ('HloModule m\n'
     'ENTRY e {\n'
     ' a = f32[2] parameter(0)\n'
     ' b = f32[2] parameter(1)\n'
     ' ROOT c = f32[2] custom-call(a, b), custom_call_target="t", operand_layout_constraints=VALUE\n'
     '}\n',
     r'''
{f32[2]{0}, f32[2]{0}}
{f32[2], f32[2]}
'''.split('\n')[1:-1]),
    ('HloModule m\n'
     'ENTRY e {\n'
     ' a = f32[2] parameter(0)\n'
     ' b = f32[2] parameter(1)\n'
     ' ROOT c = f32[2] custom-call(a, b), custom_call_target="t", VALUE\n'
     '}\n',
     r'''
api_version=API_VERSION_ORIGINAL
schedule=SCHEDULE_NONE
schedule=SCHEDULE_LATEST
padding_type=PADDING_INVALID
padding_type=PADDING_SAME
custom_call_has_side_effect=false
custom_call_has_side_effect=true
literal=s32[] 5
feature_group_count=1
feature_group_count=2
batch_group_count=1
operand_precision={high,default}
backend_config=""
backend_config={}
backend_config="{}"
backend_config="{a}"
'''.split('\n')[1:-1]),
    ('HloModule m\n'
     'ENTRY e {\n'
     ' a = f32[2] parameter(0)\n'
     ' ROOT c = f32[2] tanh(a), result_accuracy=VALUE\n'
     '}\n',
     r'''
{mode=highest}
{mode=default}
{mode=HIGHEST}
{ mode=highest }
{tolerance={atol=0.5,rtol=1e-05,ulps=2}}
{tolerance={atol=0.5, rtol=1e-05, ulps=2}}
{tolerance={ulps=2,atol=0.5,rtol=1e-05}}
{tolerance={atol=0.5}}
{tolerance={atol=0.5,rtol=1,ulps=2.5}}
{tolerance={}}
{tolerance={atol=0.1,rtol=1e-7,ulps=0}}
'''.split('\n')[1:-1]),
    ('HloModule m\n'
     'ENTRY e {\n'
     ' a = f32[2] parameter(0)\n'
     ' ROOT c = f32[2] domain(a), domain=VALUE\n'
     '}\n',
     r'''
{kind="sharding", entry={replicated}, exit={manual}}
{kind="sharding",entry={replicated},exit={maximal device=1}}
{ kind="sharding", entry={devices=[2]<=[2]}, exit={{replicated}} }
{entry={replicated}, exit={manual}, kind="sharding"}
{kind="sharding", exit={manual}, entry={replicated}}
{kind="sharding" entry={replicated} exit={manual}}
{kind="sharding", entry={}, exit={manual}}
'''.split('\n')[1:-1]),
    ('HloModule m\n'
     'ENTRY e {\n'
     ' a = f32[2] parameter(0)\n'
     ' ROOT c = f32[2] convolution(a, a), dim_labels=bf_io->bf, sparsity_config=VALUE\n'
     '}\n',
     r'''
{lhs={sparsity=2x4 dimension=0 stride=1}}
{rhs={sparsity=2x4 dimension=0 stride=1}}
{lhs={sparsity=2x4 dimension=0 stride=1} rhs={sparsity=2x4 dimension=0 stride=2}}
{rhs={stride=1 dimension=0 sparsity=2x4} lhs={}}
{}
'''.split('\n')[1:-1]),
    ('HloModule m\n'
     'ENTRY e {\n'
     ' a = f32[8] parameter(0)\n'
     ' b = f32[8] parameter(1)\n'
     ' i = s32[] parameter(2)\n'
     ' j = s32[] parameter(3)\n'
     ' ROOT c = f32[8] collective-permute(a, b, i, j), source_target_pairs={{0,1}}, slice_sizes=VALUE\n'
     '}\n',
     r'''
{{4}}
{{4},{4}}
{}
{{}}
{{4,4}}
{ { 4 } }
'''.split('\n')[1:-1]),
    ('HloModule m\n'
     'add {\n'
     ' x = f32[] parameter(0)\n'
     ' y = f32[] parameter(1)\n'
     ' ROOT z = f32[] add(x, y)\n'
     '}\n'
     'ENTRY e {\n'
     ' a = f32[2] parameter(0)\n'
     ' VALUE\n'
     '}\n',
     r'''
ROOT c = f32[2] all-reduce(a), replica_groups={}, to_apply=add, use_global_device_ids=false, constrain_layout=false
ROOT c = f32[2] all-reduce(a), replica_groups={{0}}, to_apply=add, use_global_device_ids=true, constrain_layout=true, channel_id=3
ROOT c = f32[2] all-reduce(a), to_apply=add
ROOT c = f32[2] parameter(1), sharding={replicated}, metadata={op_name="n"}, parameter_replication={true}, frontend_attributes={a="b"}, origin={{"a"}}, statistics={visualizing_index=0,a=1}, backend_config="x"
ROOT c = f32[4] all-gather(a), replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=true, channel_id=1, constrain_layout=true
ROOT c = f32[1] reduce-scatter(a), replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=true, channel_id=1, constrain_layout=true, to_apply=add
ROOT c = f32[2] all-to-all(a), replica_groups={{0,1}}, dimensions={0}, channel_id=1, constrain_layout=true
ROOT c = f32[2] collective-broadcast(a), channel_id=1
ROOT c = f32[2] reverse(a), dimensions={}
ROOT c = f32[] dot(a, a)
ROOT c = f32[] dot(a, a), rhs_contracting_dims={0}, lhs_contracting_dims={0}, rhs_batch_dims={}, lhs_batch_dims={}, algorithm=unset, operand_precision={default,default}
ROOT c = pred[2] compare(a, a), direction=LT, type=FLOAT
ROOT c = pred[2] compare(a, a), direction=LT, type=TOTALORDER
ROOT c = f32[2] reshape(a), inferred_dimension=-1
ROOT c = f32[2] convolution(a, a), dim_labels=bf_io->bf, convolution_kind=unset, feature_group_count=1, batch_group_count=1
ROOT c = f32[2] convolution(a, a), dim_labels=bf_io->bf, convolution_kind=fprop
ROOT c = f32[2] convolution(a, a), dim_labels=bf_io->bf, convolution_kind=wgrad
ROOT c = f32[2] convolution(a, a), dim_labels=bf_io->bf, convolution_kind=dgrad
ROOT c = f32[2] custom-call(a), custom_call_target="t", to_apply=add
ROOT c = f32[2] custom-call(a), custom_call_target="t", called_computations={}
ROOT c = f32[2] custom-call(a), custom_call_target="t", window={size=1}, dim_labels=bf_io->bf, feature_group_count=2, batch_group_count=2, operand_precision={high}, padding_type=PADDING_SAME, custom_call_has_side_effect=true, api_version=API_VERSION_TYPED_FFI, schedule=SCHEDULE_LATEST, literal=s32[] 5, output_to_operand_aliasing={{}: (0, {})}, operand_layout_constraints={f32[2]}, backend_config="x"
ROOT c = f32[2] custom-call(a), custom_call_target="t", metadata={}, frontend_attributes={}, backend_config={}
ROOT c = f32[2] custom-call(a), custom_call_target="t", backend_config='a"b'
ROOT c = f32[2] custom-call(a), custom_call_target="t", backend_config="{(}"
ROOT c = f32[2] custom-call(a), custom_call_target="t", sharding={replicated}, origin={{"a"}}, statistics={visualizing_index=0,a=1}, frontend_attributes={a="b"}, metadata={op_name="n"}
'''.split('\n')[1:-1]),
    ('HloModule m\n'
     'less {\n'
     ' x = f32[] parameter(0)\n'
     ' y = f32[] parameter(1)\n'
     ' ROOT z = pred[] compare(x, y), direction=LT\n'
     '}\n'
     'ENTRY e {\n'
     ' a = f32[2] parameter(0)\n'
     ' VALUE\n'
     '}\n',
     r'''
ROOT c = f32[2] sort(a), dimensions={0}, is_stable=false, to_apply=less
ROOT c = sort(), dimensions={0}, to_apply=less
ROOT c = f32[2] concatenate(), dimensions={0}
ROOT c = f32[2] all-gather(), dimensions={0}
ROOT c = (f32[2], f32[4]) all-gather-start(), dimensions={0}
ROOT c = f32[2] all-reduce(), to_apply=less
ROOT c = f32[2] all-reduce-start(), to_apply=less
ROOT c = f32[2] reduce-scatter(), dimensions={0}, to_apply=less
ROOT c = f32[2] all-to-all(), dimensions={0}
ROOT c = f32[2] collective-broadcast()
ROOT c = f32[2] collective-permute(), source_target_pairs={}
ROOT c = (f32[2], f32[2]) collective-permute-start(), source_target_pairs={}
ROOT c = f32[2] ragged-all-to-all()
ROOT c = f32[2] ragged-all-to-all(a, a, a, a, a, a, a)
ROOT c = f32[2] map(), to_apply=less
ROOT c = f32[] reduce(), dimensions={0}, to_apply=less
ROOT c = f32[] reduce-window(), to_apply=less
ROOT c = f32[2] rng(), distribution=rng_uniform
ROOT c = f32[2] rng(a, a, a), distribution=rng_uniform
ROOT c = f32[2] scatter(a), update_window_dims={}, inserted_window_dims={}, scatter_dims_to_operand_dims={}, index_vector_dim=0, to_apply=less
ROOT c = after-all(a, a)
ROOT c = ((), f32[2], u32[]) concatenate-start(), dimensions={0}
'''.split('\n')[1:-1]),
    ('HloModule m\n'
     'ENTRY e {\n'
     ' ROOT a = VALUE parameter(0)\n'
     '}\n',
     r'''
f32[10]{00:T(08)(01,-0)L(03)S(007)SC(00:01,02)M(09)}
f32[10]{0:L(1)M(-1)}
f32[10]{0:M(18446744073709551615)}
f32[10]{0:S(100000)}
f32[10]{0:E(-4)S(-1)}
f32[10]{0:SC(18446744073709551615:1)}
f32/*]*/[/*}*/10/*%*/]/*{*/{/*"*/0/*=*/:/*(*/T/*)*/(/*]*/8/**/)/*}*/S(5)}
(/*(*/f32[1], /*index=5*/ /*)*/ f32[2]{0/*}*/})
'''.split('\n')[1:-1]),
    ('HloModule m, origin_recovery_table=VALUE\n'
     'ENTRY e { ROOT x = f32[2] parameter(0) }\n',
     r'''
{}
{{"b"} : {"c"}, "f32[2] negate(f32[2] p)" {"a"} : {"d" {1, 2}} {"b"} : {"x"} {} : {"z"} {"b" {0}} : {} {"b" {0}}: {"never"}}
{/*}*/{"a" {00}}/*}*/:{"b" /*{*/}, /*"*/'HloModule inner, is_scheduled=true ENTRY e { ROOT x = f32[2] parameter(0) }'}
'''.split('\n')[1:-1]),
    ('HloModule m\n'
     'ENTRY e {\n'
     ' a = f32[8] parameter(0)\n'
     ' ROOT c = f32[8] custom-call(a), custom_call_target="t"VALUE\n'
     '}\n',
     r'''
/*a*/, /*b,*/ metadata={op_name="x"}
,/*a,*/metadata={/*}*/op_name=/*'*/"x"/*}*/}
, window={size=3x3/*,*/stride=2x2/*}*/ pad=0_0x1_1/*}*/}
, window={/*}*/ size=3}, dim_labels=bf0_0io->bf0/**/, schedule=SCHEDULE_LATEST/*,*/
, sharding={/*}*/devices=[2]/*]*/<=[2]/*"*/}, frontend_attributes={/*}*/a="b",/*"*/c={/*"}"*/}}
, output_to_operand_aliasing={/*}*/{/*}*/}: (0, {})}, backend_config={"//":"/*"}/**/, origin={/*}*/{"a"}}
'''.split('\n')[1:-1]),
]


def forms():
    for module, rows in FORMS:
        for row in rows:
            yield f'form {row}', module.replace('VALUE', row)
