# SPDX-License-Identifier: Apache-2.0
"""Lists invalid HLO text: each row is a text with a `!` before the byte of the first error.

jaxlib rejects each of them, or aborts.
"""
A = ' a = f32[2] parameter(0)\n'
E = 'HloModule m\nENTRY e {\n%s\n}\n'


def body(*lines):
    return [E % (A + ' ' + line) for line in lines]


def of(shape, *operands_and_attrs):
    return [E % f' a = {shape} parameter(0)\n ROOT c = {rest}' for rest in operands_and_attrs]


def constant(*rows):
    return [E % f' ROOT c = {shape} constant({value})' for shape, value in rows]


def shape(*rows):
    return [E % f' ROOT c = {row} parameter(0)' for row in rows]


def add(*attrs):
    return body(*[f'ROOT c = f32[2] add(a, a), {attr}' for attr in attrs])


# Values of attributes, each with the mark `!`.
SHARDINGS = r'''
!replicated
{!Replicated}
{replicated!,}
{replicated!, manual}
!{replicated device=1}
!{maximal}
{maximal !device =1}
{maximal device=!x}
{maximal device=1!,2}
!{manual device=1}
!{device=1}
!{devices=[2]0}
{devices=!2}
{devices=!(2)0,1}
{devices=[!]0,1}
{devices=[2!}
{devices=[2 !2]0,1}
{devices=[2]!}
{devices=[2]0,!}
{devices=[2]0 !1}
{devices=[2]<=!2}
{devices=[2]<=[!]}
{devices=[2]!< =[2]}
{devices=[4]<=[2,2]!}
{devices=[2]<=[2]!T(0)}
{devices=[4]<=[2,2]T!1,0}
{devices=[4]<=[2,2]T!(1)}
{devices=[4]<=[2,2]T!(1,2)}
{devices=[2]<=[2]!, shard_as 1}
{devices=[2]<=[2] !nope=1}
{devices=[2]<=[2] !nope}
{devices=[2]<=[2] shard_as !}
{devices=[2]<=[2] shard_like !x}
{devices=[2,2]<=[4] last_tile_dims=!manual}
{devices=[2,2]<=[4] last_tile_dims={!unknown}}
{devices=[2,2]<=[4] last_tile_dims={manual,!}}
!{devices=[2,2]<=[4] last_tile_dim_replicate last_tile_dims={manual}}
{devices=[2]<=[2] metadata=!"a"}
{devices=[2]<=[2] metadata={!nope=1}}
{devices=[2]<=[2] metadata={op_name=!a}}
{devices=[2]<=[2] metadata={op_name="a" !op_name="b"}}
{devices=[2]<=[2] metadata={{op_name="a"} !{op_type="b"}}}
{{replicated},!}
{{replicated} !{replicated}}
{{!{replicated}}}
{!{}}
{mesh!, [{'a'}]}
{mesh['a'!], [{'a'}]}
{mesh[!a=2], [{'a'}]}
{mesh['a'=2,!], [{'a'}]}
{mesh['a'=!x], [{'a'}]}
{mesh['a'=2,!'a'=2], [{'a'}]}
{mesh['a'=2]!}
{mesh['a'=2], !{'a'}}
{mesh['a'=2], [!'a']}
{mesh['a'=2], !maximal}
{mesh['a'=2], !replicated={}}
{mesh['a'=2], replicated, !manual={'a'}}
{mesh['a'=2], [], !replicated}
{mesh[], !manual}
{mesh['a'=2], [{!'b'}]}
{mesh['a'=2], [{'a',!}]}
{mesh['a'=2], [{'a'},!]}
{mesh['a'=2], [{'a'} !{}]}
{mesh['a'=2], [{'a' !?}]}
{mesh['a'=2], [{?!, 'a'}]}
{mesh['a'=2], [{'a', !'a'}]}
{mesh['a'=2], [{'a'}, {!'a'}]}
{mesh['b'=4], [{'b':!2}]}
{mesh['b'=4], [{'b':(2)!}]}
{mesh['b'=4], [{!'b':(3)2}]}
{mesh['b'=4], [{!'b':(1)4}]}
{mesh['b'=8], [{'b':(1)2,!'b':(2)4}]}
{mesh['a'=2,'b'=4], [{'a'}] !replicated={'b'}}
{mesh['a'=2,'b'=4], [{'a'}], !nope={'b'}}
{mesh['a'=2,'b'=4], [{'a'}], replicated={'b'}, !replicated={'b'}}
{mesh['a'=2,'b'=4], [{'a'}], replicated={!'a'}}
{mesh['a'=2,'b'=4,'c'=2], [{}], replicated={'c',!'b'}}
{mesh['a'=2,'b'=4], [{'a'}], manual=!'b'}
{mesh['a'=2,'b'=4], [{'a'}], unreduced=!all{'b'}}
{mesh['a'=2], device_ids=![1,0], [{'a'}]}
{mesh['a'=2], device_ids=(!), [{'a'}]}
{mesh['a'=2], device_ids=(!0,1,2), [{'a'}]}
{mesh['a'=4], device_ids=([2,2]!), [{'a'}]}
{maximal_mesh[!5]}
{maximal_mesh[device_id=!x]}
{maximal_mesh[device_id=5], ![{}]}
{maximal_mesh[device_id=5], !manual={'a'}}
'''.strip().split('\n')
REPLICA_GROUPS = r'''
mesh['a'=1,'b'=2] !{'a'}
mesh['a'=0,'b'=2] !{'a'}
mesh['a'=2], device_ids=(1,0)!, {'a'}
!x
!7
{!0,1}
{{0,1}!{2,3}}
{{0,1},!}
{{0,1,!}}
{{0 !1}}
{{0,!x}}
{{!{0}}}
[2,2]!
[2,2]<=!4
[2,2]<=[!]
[2,2]<=[2,2]!
[2 !2]<=[4]
![4]<=[4]
![2,2,2]<=[8]
[2,2]<=[2,2]T!(1,2)
mesh['a'=2,'b'=2]!
mesh['a'=2,'b'=2] {!'c'}
mesh['a'=2,'b'=2] {'a',!'a'}
mesh['a'=2,'b'=2] !{}
mesh['a'=2,'b'=4] {!'b':(3)2}
mesh['a'!:2] {'a'}
'''.strip().split('\n')
PAIRS = r'''
!x
![2]
{!0,1}
{!{0}}
{!{0,1,2}}
{!{}}
{{0,1},!}
{{0,1}!{1,0}}
{{!a,b}}
{{0,!x}}
'''.strip().split('\n')
ALIASES = r'''
!x
{ !0: (0, {}) }
{ {0} !(0, {}) }
{ {0}: !0 }
{ {0}: (0!) }
{ {0}: (0, !0) }
{ {!x}: (0, {}) }
{ {0}: (!x, {}) }
{ {0}: (0, {}, !must_alias) }
{ {0}: (0, {}, may-alias!, x) }
{ {0}: (0, {}) !{1}: (1, {0}) }
'''.strip().split('\n')
DONORS = r'''
!x
{ !0 }
{ (0!) }
{ (0, !0) }
{ (0, {}!, may-alias) }
{ (0, {}) !(1, {0}) }
{ (0, {!x}) }
'''.strip().split('\n')
RECOVERIES = r'''
!x
!={{"a"} : {"b"}}
{!"a" : {"b"}}
{{!a} : {"b"}}
{{"a"} !{"b"}}
{{"a"} : !"b"}
{{"a"} : {"b"}, !}
{{"a"} : {"b"}, !{"c"} : {"d"}}
{{"a"} : {"b"}, !, "f32[2] negate(f32[2] p)"}
{{"a"} : {"b"}, "f32[2] negate(f32[2] p)"!, {"c"} : {"d"}}
{{"a"} : {"b"}, !"f32[2] nagate(f32[2] p)"}
{{"a"} : {"b"}, !"ENTRY"}
'''.strip().split('\n')
OPERAND_ALIASES = r'''
!x
{!0: (0, {})}
{{0} !(0, {})}
{{0}: (0!)}
{{0}: (0, {}!, may-alias)}
{{0}: (0, {}) !{1}: (1, {})}
{{0}: (!x, {})}
'''.strip().split('\n')
FRONTEND = r'''
!"x"
{a=!x}
{a=!7}
{a=![1]}
{!a}
{!"a"="x"}
{!a ="x"}
{!7="x"}
{b="x" !a="y"}
{b="x",!}
'''.strip().split('\n')
STATISTICS = r'''
!x
{!a=1.5}
{visualizing_index=!x,a=1}
{visualizing_index=0 !a=1.5}
{visualizing_index=0,a=!x}
{visualizing_index=0,a=!inf}
{visualizing_index=0,!}
{visualizing_index=0,!7=1}
'''.strip().split('\n')
ACCURACIES = r'''
!highest
{!}
{!nope=1}
{mode=!high}
{mode=!7}
{mode=highest!,tolerance={atol=0,rtol=0,ulps=1}}
{tolerance=!1}
{tolerance={atol=!x,rtol=1,ulps=2}}
{tolerance={atol=0.5,rtol=1,ulps=2,!x=1}}
{tolerance={atol=0.5 !rtol=1}}
{tolerance={atol=0.5,rtol=1,ulps=!-2}}
'''.strip().split('\n')
ORIGINS = r'''
!"a"
!({"a"})
{!"a"}
{{!a}}
{{"a" !0}}
{{"a" {0}!,}}
{{"a" {!x}}}
{[!x]}
{[synthetic_call!}
'''.strip().split('\n')
REPLICATIONS = r'''
!true
!x
{!1,0}
{true !false}
{true,!}
{!yes}
'''.strip().split('\n')
PROPAGATIONS = r'''
!x
{!1}
{true !false}
'''.strip().split('\n')
DOMAINS = r'''
!x
!{}
!{kind="sharding"}
!{kind="sharding", entry={replicated}}
{kind=!sharding, entry={replicated}, exit={manual}}
{kind=!"x", entry={replicated}, exit={manual}}
{kind="sharding", entry=!x, exit={manual}}
{kind="sharding", entry={replicated}, exit={manual}, !x=1}
{kind="sharding", entry={replicated}, exit={!nope}}
'''.strip().split('\n')
PRECISIONS = r'''
!high
{high !highest}
{high,!}
{!bf16,default}
{!packed_nibble,default}
{!7}
'''.strip().split('\n')
WINDOWS = r'''
size=!x3
size=3x!
size=3!X3
size=!-1x3
size=!{3,3}
size=3x3!, stride=2x2
size=3x3 pad=1!
size=3x3 pad=1_!
size=3x3 pad=1_1x1!
size=3x3 pad=1_1!_1x1_1_1
size=3x3 rhs_reversal=!true
size=3x3 !size=3x3
size=3x3 !nope=1
'''.strip().split('\n')
WINDOW_COUNTS = r'''
size=3x3 stride=2
size=3x3 stride=2x2x2
size=3x3 pad=1_1
stride=2x2
'''.strip().split('\n')
DIM_LABELS = r'''
b01f_01io!
b01f!01io->b01f
!x01f_01io->b01f
b!b01_01io->b01f
b0!0f_01io->b01f
b01f_01i!q->b01f
b01f_!012io->b01f
b01f_01io!_>b01f
!"b01f_01io->b01f"
!7
'''.strip().split('\n')
SIZE_LISTS = r'''
!x
{!4}
{{4} !{4}}
{{4},!}
'''.strip().split('\n')
SPARSITIES = r'''
!x
{!nope={sparsity=2x4}}
{lhs={!x=1}}
{lhs={sparsity=2!}}
{lhs={sparsity=2x4}!, rhs={sparsity=2x4}}
'''.strip().split('\n')


def header(name, rows):
    return [f'HloModule m, {name}={row}\nENTRY e {{ ROOT x = f32[] parameter(0) }}' for row in rows]


def in_entry(line, rows):
    """Returns a module for each row, which replaces `VALUE` in the line."""
    return [E % (A + ' ROOT c = ' + line.replace('VALUE', row)) for row in rows]


CONVOLUTION = (' k = f32[3,3,3,16] parameter(1)\n i = f32[1,8,8,3] parameter(2)\n'
               ' ROOT c = f32[1,6,6,16] convolution(i, k), ')


WRONG = [
    # The header.
    'HloModule m\nf { ROOT n = f32[2] parameter(0) }\ng { ROOT n = f32[2] parameter(0) }\nENTRY e {\n a = f32[2] parameter(0)\n'
    ' s = ((f32[2]), f32[2]) async-start(a), calls=f\n ROOT d = f32[2] !async-done(s), calls=g\n}\n',
    'HloModule m\nENTRY e {\n a = f32[2] parameter(0)\n ROOT c = f32[2] call(a), to_apply=!later\n}\nlater { ROOT n = f32[2] '
    'parameter(0) }\n', '%x = f32[2] add(!%a, f32[2] %b)', 'HloModule m, control-predecessors={!x}\nENTRY e { ROOT x = f32[] parameter(0) }',
    'HloModule m\nENTRY e {\n a = f32[8,8,8] parameter(0)\n ROOT c = f32[2] convolution(a, a), window={size=3}, '
    'dim_labels=!b1f_0io->b0f\n}\n',
    'HloModule!', 'HloModule m, !nope=1\nENTRY e { ROOT x = f32[] parameter(0) }',
    'HloModule m, is_scheduled=!7\nENTRY e { ROOT x = f32[] parameter(0) }',
    'HloModule m, is_scheduled=true, !is_scheduled=true\nENTRY e { ROOT x = f32[] parameter(0) }',
    'HloModule m, replica_count=!x\nENTRY e { ROOT x = f32[] parameter(0) }',
    'HloModule m, num_partitions=!true\nENTRY e { ROOT x = f32[] parameter(0) }',
    'HloModule m, entry_computation_layout={!f32[]}\nENTRY e { ROOT x = f32[] parameter(0) }',
    'HloModule m, entry_computation_layout={(f32[])!}\nENTRY e { ROOT x = f32[] parameter(0) }',
    'HloModule m, !dimensions={0}\nENTRY e { ROOT x = f32[] parameter(0) }',
    'HloModule !f32\nENTRY e { ROOT x = f32[] parameter(0) }',
    'HloModule m n\n!ENTRY e { ROOT x = f32[] parameter(0) }',
    'HloModule m\n!}\n', 'HloModule m!\n', '!', '!{}', '!"text"', '!\x7fELF', '!)',
    # Computations.
    'HloModule m\nENTRY e {\n!}\n', 'HloModule m\nENTRY !{\n}\n', 'HloModule m\n!f32 { ROOT x = f32[] parameter(0) }\n',
    'HloModule m\n!true { ROOT x = f32[] parameter(0) }\n',
    'HloModule m\nENTRY e { ROOT x = f32[] parameter(0) }\nENTRY !f { ROOT x = f32[] parameter(0) }\n',
    'HloModule m\nf { ROOT x = f32[] parameter(0) }\n!f { ROOT x = f32[] parameter(0) }\n',
    'HloModule m\nENTRY e { ROOT x = f32[] parameter(0) }, !nope=1\n',
    'HloModule m\nENTRY e { ROOT x = f32[] parameter(0)! ',
    'HloModule m\nENTRY e { ROOT x = f32[] parameter(0) } !}',
    'HloModule m\nENTRY e (x: f32[]) -> !f32[2] { ROOT x = f32[] parameter(0) }\n',
    'HloModule m\nENTRY e (x: f32[]) !{ ROOT x = f32[] parameter(0) }\n',
    'HloModule m\nENTRY e (x: !y) -> f32[] { ROOT x = f32[] parameter(0) }\n',
    'HloModule m\nENTRY e { ROOT x = f32[] parameter(0) }, execution_thread=!7\n',
    # Parameters.
    *body('!a = f32[2] negate(a)', 'ROOT b = f32[2] parameter(!-1)', '!b = f32[2] parameter(0)', '!b = f32[2] parameter(2)',
          'b = f32[2] parameter(!x)', 'b = f32[2] !parameter()', 'b = f32[2] parameter(1!.5)'),
    # Instructions.
    *body('ROOT c = f32[2] !addd(a, a)', 'ROOT c = f32[2] !Add(a, a)', 'ROOT c = f32[2] !add(a)', 'ROOT c = f32[2] !add(a, a, a)',
          'ROOT c = f32[2] add(a, !b)', 'ROOT c = f32[2] add(a !a)', 'ROOT c = f32[2] !add(a, )', 'ROOT c = f32[2] !add(, a)',
          'ROOT c = f32[2] add(a, a\n!}', 'ROOT c = f32[2] add\n!}', 'ROOT c = f32[2]\n!}', 'ROOT c =\n!}', 'ROOT !c f32[2] negate(a)',
          'ROOT !negate(a)', 'ROOT c = f32[2] negate(f32[3] !a)', 'ROOT c = f32[2] negate(s32[2] !a)',
          'ROOT c = f32[2] add(a, a) !x', 'ROOT c = f32[2] add(a, a)!,', 'ROOT c = f32[2] add(a, a)!, 7',
          'ROOT c = f32[2] negate(a)\n ROOT !d = f32[2] negate(a)', '!f32 = f32[2] negate(a)', '!%f32 = f32[2] negate(a)',
          '!inf = f32[2] negate(a)', '!ROOT = f32[2] negate(a)', 'ROOT c = f32[2] negate(!7)', 'ROOT c = f32[2] negate(a)!{}',
          'ROOT !1c = f32[2] negate(a)', 'ROOT !c=f32[2] negate(a)', 'ROOT c = f32[2] negate(a) !/* no end', 'ROOT c = f32[2] negate(!%)',
          'ROOT c = f32[2] negate(a!$)', 'ROOT c = f32[2] negate(!"a")', 'ROOT c = f32[2] negate(negate(!b))',
          'ROOT c = f32[2] negate(!negat(a))', 'ROOT c = f32[2] !%negate(a)', 'ROOT c = f32[2] negate(a) !metadata={op_name="a"}', 'ROOT c = f32[2] !negate:(a)',
          'ROOT c = f32[2] negate(a), control-predecessors={!}'),
    # Requirements on operands and attributes.
    *body('ROOT c = f32[2] !all-gather(a), dimensions={}', 'ROOT c = f32[2] !all-to-all(a), dimensions={0,1}', 'ROOT c = f32[2] !concatenate(a, a), dimensions={}',
          'ROOT c = f32[2] !infeed(a)', 'ROOT c = f32[2] !custom-call(a), custom_call_target="t", operand_layout_constraints={}',
          'ROOT c = f32[2] !custom-call(a), custom_call_target="t", operand_layout_constraints={f32[3]{0}}',
          'ROOT c = f32[2] custom-call(a), custom_call_target="t", literal=(f32[]!) (1)', 'ROOT c = f32[2] add(a, !f32[2])',
          'r = (f32[2], u32[], token[]) recv(a), channel_id=1\n ROOT c = (f32[2], token[]) !recv-done(r), channel_id=2',
          's = ((f32[2]), f32[2]) negate-start(a)\n ROOT d = f32[2] !negate-done(s), async_execution_thread="x"',
          's = ((f32[2]), f32[2]) negate-start(a), async_execution_thread="x"\n ROOT d = f32[2] !negate-done(s), async_execution_thread="main"',
          'ROOT c = f32[2] !conditional(a, a, a), true_computation={ ROOT b = f32[2] parameter(0) }, false_computation={ ROOT b = f32[2] parameter(0) }',
          'p = pred[] parameter(1)\n ROOT c = f32[2] !conditional(p, a), branch_computations={{ ROOT b = f32[2] parameter(0) }}',
          'p = s32[] parameter(1)\n ROOT c = f32[2] !conditional(p, a, a), branch_computations={{ ROOT b = f32[2] parameter(0) }}',
          'ROOT c = f32[2] !all-reduce(a), use_global_device_ids=true, to_apply={ x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT z = f32[] add(x, y) }'),
    # Asynchronous instructions.
    *body('ROOT s = f32[2] !negate-start(a)', 'ROOT s = (f32[2], f32[2]) !negate-start(a)', 'ROOT s = f32[2] !negate-done(a)',
          'ROOT s = f32[2] !async-done(a)', 'ROOT s = ((f32[2]), f32[2]) !async-start(a)',
          'ROOT s = ((f32[2]), f32[2]) !copy-update(a)', 'ROOT s = ((f32[2]), f32[2]) !parameter-start(a)',
          's = ((f32[2]), f32[2]) abs-start(a)\n ROOT d = f32[2] !negate-done(s)',
          'ROOT s = ((f32[2]), f32[2]) negate-start(a), !dimensions={0}'),
    # Shapes that cannot be inferred.
    *body('ROOT c = !convert(a)', 'ROOT c = !reshape(a)', 'ROOT c = !custom-call(a), custom_call_target="t"'),
    # Attributes.
    *add('!nope=1', '!dimensions={0}', 'metadata={!nope=1}', 'metadata={op_name=!7}', 'metadata={op_name="a" !op_name="b"}',
         'metadata={op_name="a"}, !metadata={op_name="a"}', 'metadata={op_name=!"a}', 'metadata=!7', 'backend_config=\n!}',
         'sharding=\n!}', 'control-predecessors={!b}', 'control-predecessors=!a', 'frontend_attributes={a="b"}!}}'),
    *body('ROOT c = pred[2] !compare(a, a)', 'ROOT c = pred[2] compare(a, a), direction=!{LT}', 'ROOT c = f32[2] !slice(a)',
          'ROOT c = f32[1] slice(a), slice={!0:1}', 'ROOT c = f32[1] slice(a), slice={[!x:1]}', 'ROOT c = f32[1] slice(a), slice={[0!]}',
          'ROOT c = f32[2] reverse(a), dimensions=!0', 'ROOT c = f32[2] reverse(a), dimensions={!x}',
          'ROOT c = f32[2] reverse(a), dimensions={0 !1}', 'ROOT c = f32[2] reverse(a), dimensions={!99999999999999999999}',
          'ROOT c = f32[2] pad(a, a), padding=!x', 'ROOT c = f32[2] !pad(a, a)', 'ROOT c = f32[2] call(a), to_apply=!nope',
          'ROOT c = f32[2] call(a), to_apply=!7', 'ROOT c = f32[2] !call(a)', 'ROOT c = f32[2] !custom-call(a)',
          'ROOT c = f32[2] custom-call(a), custom_call_target=!7', 'ROOT c = f32[2] !fusion(a), kind=kLoop',
          'ROOT c = (f32[2]) !iota()', 'ROOT c = f32[2] get-tuple-element(a), index=!x', 'ROOT c = f32[2] !get-tuple-element(a)',
          'ROOT c = f32[2] reduce-precision(a), exponent_bits=!x, mantissa_bits=1', 'ROOT c = f32[2] !reduce-precision(a), exponent_bits=5',
          'ROOT c = f32[2] call(a), to_apply={!}', 'ROOT c = f32[2] call(a), to_apply={ ROOT d = f32[2] !nope(a) }',
          'ROOT c = f32[2] call(a), to_apply={ ROOT d = f32[2] negate(!a) }',
          'ROOT c = f32[2] custom-call(a), custom_call_target="t", literal=s32[] !x',
          'ROOT c = f32[2] convolution(a, a), window={!nope=1}',
          'ROOT c = f32[2] collective-permute(a), source_target_pairs={{!99999999999999999999,0}}',
          'ROOT c = f32[2] negate(a), metadata={profile_type={!9}}', 'ROOT c = f32[2] negate(a), frontend_attributes={a=!x}',
          'ROOT c = f32[2] domain(a), domain={kind="sharding", entry={replicated}, !entry={replicated}, exit={replicated}}',
          'ROOT c = f32[2] negate(a), sharding=!{devices=[2]<=[2] last_tile_dims={manual,replicated}}',
          'ROOT c = f32[2] pad(a, a), padding=1_2_!-1', 'ROOT c = f32[2] negate(a), metadata={op_name=!"abc',
          'ROOT c = f32[2] negate(a), backend_config={!"abc', 'ROOT c = f32[2] !dot(a)', 'ROOT c = f32[2] negate(!a#0)',
          'ROOT c = pred[2] compare(a, a), direction=!LESS', 'ROOT c = pred[2] compare(a, a), direction=LT, type=!REAL',
          'ROOT c = f32[2] fusion(a), kind=!loop, calls={ ROOT d = f32[2] parameter(0) }', 'ROOT c = f32[2] rng(a, a), distribution=!normal',
          'ROOT c = c64[2] fft(a), fft_type=!DFT, fft_length={2}', 'ROOT c = f32[2] custom-call(a), custom_call_target="t", schedule=!LATE',
          'ROOT c = f32[2] custom-call(a), custom_call_target="t", api_version=!2', 'ROOT c = f32[] dot(a, a), algorithm=!tf32',
          'ROOT c = f32[2] negate(a), metadata={op_name=!x}', 'ROOT c = f32[2] negate(a), metadata={source_line=!2147483648}',
          'ROOT c = f32[2] negate(a), metadata={source_line=!9223372036854775808}', 'ROOT c = f32[2] reverse(a), dimensions={!18446744073709551616}'),
    # Shapes and layouts.
    *shape('!f33[2]', 'f32[!-1]', 'f32[!9223372036854775808]', 'f32[2!x]', 'f32[2,!]', '!tuple[2]', 'f32[2]{1,!0}',
           'f32[2,3]{!0}', '(f32[2], !f33[])', '(f32[2] !x', 'f32[<=!x]', 'f32[2]!{}', 'f32[]!{}', 'b(!x)', '!b((f32[2]))', '!b(b(f32[2]))', '!b(token[])', '!token[2]',
           'f32[2,3]{1 !0}', 'f32[2,3]{1,0,!}', 'f32[2,3]{1,0,!2}', 'f32[2,3]{1,0:T(8,!)}', 'f32[2,3]{1,0:T !8}',
           'f32[2,3]{1,0:T(!-8)}', 'f32[2,3]{1,0:T(8)!T(2)}', 'f32[2,3]{1,0:S(5)!E(4)}', 'f32[2,3]{1,0:S(1)!S(2)}', 'f32[2,3]{1,0:S(1!,2)}',
           'f32[2,3]{1,0:E(!)}', 'f32[2,3]{1,0:D(!X)}', 'f32[2,3]{1,0:*(!x)}', 'f32[2,3]{1,0:L(!-1)}', 'f32[2,3]{1,0:SC(1!)}',
           'f32[2,3]{1,0:SC(!)}', 'f32[2,3]{1,0:!X}', 'f32[2,3]{1,0:!P(f32[2])}', 'f32[2,3]!{,1,0}', 'f32[2,3]{!:S(1)}', 'f32[!-1]', 'f32[2 !3]'),
    # Constants.
    *constant(('f32[2]', '!{1}'), ('f32[2]', '!{1, 2, 3}'), ('f32[2]', '{1, !x}'), ('f32[]', '!{1}'),
              ('s8[]', '!128'), ('s8[]', '!-129'), ('u8[]', '!256'), ('u8[]', '!-1'), ('u4[]', '!16'), ('s4[]', '!8'), ('s4[]', '!-9'),
              ('s32[]', '!1.0'), ('s32[]', '!1e3'), ('s32[]', '!2147483648'), ('u32[]', '!-1'), ('u64[]', '!18446744073709551616'),
              ('f8e4m3fn[]', '!465'), ('f8e5m2[]', '!61440'), ('f16[]', '!65520'), ('bf16[]', '!1e39'),
              ('f32[]', '!1e39'), ('f64[]', '!1e400'), ('f8e8m0fnu[]', '!-1'), ('f32[]', '!.5'), ('f32[]', '!+3'), ('f32[]', '!0x10'),
              ('f32[]', '!'), ('c64[]', '!1'), ('c64[]', '(1!)'), ('c64[]', '(1, !x)'), ('pred[]', '!yes'), ('f32[2,2]', '!{{1, 2}}'),
              ('f32[2,2]', '{!1, 2}'), ('(f32[], s32[])', '(1!)'), ('token[]', '!1'), ('f32[]', '1!, 2'), ('f32[3]', '{1, 2!'),
              ('f32[]', '!"1"'), ('f32[]', '!nan(0x)'), ('f32[]', '!nan(1)'), ('f32[]', '!18446744073709551616'), ('f32[]', '!{...}'),
              ('(f32[2])', '!{...}'), ('f32[2,2]', '{!1, 2, 3, 4}'), ('f32[0]', '!1'), ('c64[2]', '!(1,2)'), ('f32[2]', '!,1'),
              ('f32[2]', '!{...'), ('f32[2,2]', '{{!...}, {1,2}}'), ('f32[2,2]', '!{1, 2, 3, 4, 5, ...}'), ('f32[2,2]', '{1, !{1}, ...}'),
              ('f32[2,2]', '!{{1, 2}, {1, 2}, 1, ...}'), ('f32[2,2]', '{!1, {...}}'), ('s8[2,2]', '{1, !1000, ...}'),
              ('c64[2,2]', '{!(1, 2), ...}'), ('f32[2,2,2]', '{{!1, 2}, ...}'), ('f32[2,2]', '{!1...}'), ('f32[0,1]', '!{1, ...}')),
    # Bytes.
    *body('ROOT c = f32[2] negate(a)!\0', 'ROOT c = f32[2] negate(a)!\x80', 'ROOT c = f32[2] !@negate(a)'),
    'HloModule m\nENTRY e { ROOT x = f32[] parameter(0) }!\0', '!\xef\xbb\xbfHloModule m\nENTRY e { ROOT x = f32[] parameter(0) }',
    # Values with a specific notation.
    *in_entry('f32[2] negate(a), sharding=VALUE', SHARDINGS),
    *in_entry('f32[2] all-to-all(a), dimensions={0}, replica_groups=VALUE', REPLICA_GROUPS),
    *in_entry('f32[2] collective-permute(a), source_target_pairs=VALUE', PAIRS),
    *in_entry('f32[2] collective-permute(a, a, a, a), source_target_pairs={{0,1}}, slice_sizes=VALUE', SIZE_LISTS),
    *add('backend_config=!x', 'backend_config=![1]'),
    'HloModule m\ne (a:!: f32[2]) -> f32[2] {\n ROOT a = f32[2] parameter(0)\n}',
    'HloModule m\ne (a !: f32[2]) -> f32[2] {\n ROOT a = f32[2] parameter(0)\n}', 'HloModule m !:\nENTRY e { ROOT a = f32[2] parameter(0) }',
    'HloModule m:!:\nENTRY e { ROOT a = f32[2] parameter(0) }',
    *header('origin_recovery_table', RECOVERIES),
    *body('!__ = f32[2] negate(a)', 'ROOT !%__a = f32[2] negate(a)', '!__xla = f32[2] negate(a)',
          'ROOT c = f32[2] convolution(a, a), dim_labels=bf_io->bf, convolution_kind=!forward'),
    *[E % (' a = f8e4m3fn[8,32] parameter(0)\n s = f8e8m0fnu[8,1] parameter(1)\n ROOT c = f32[8,8] scaled-dot(a, a, s, s), '
           f'lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}, algorithm=!{word}') for word in ('rng_philox', 'fast')],
    *body('ROOT c = f32[2] negate(a) // ,\n !metadata={op_name="x"}', 'ROOT c = f32[2] negate(a) /*,*/ !metadata={op_name="x"}',
          'ROOT c = f32[2] custom-call(a), custom_call_target="t", window={size=3!, /*,*/ stride=2}'),
    *header('input_output_alias', ALIASES), *header('buffer_donor', DONORS),
    *header('allow_spmd_sharding_propagation_to_output', PROPAGATIONS), *header('frontend_attributes', FRONTEND),
    *in_entry('f32[2] custom-call(a), custom_call_target="t", output_to_operand_aliasing=VALUE', OPERAND_ALIASES),
    *in_entry('f32[2] negate(a), frontend_attributes=VALUE', FRONTEND),
    *in_entry('f32[2] negate(a), statistics=VALUE', STATISTICS),
    *in_entry('f32[2] tanh(a), result_accuracy=VALUE', ACCURACIES),
    *in_entry('f32[2] negate(a), origin=VALUE', ORIGINS),
    *in_entry('f32[2] parameter(1), parameter_replication=VALUE', REPLICATIONS),
    *in_entry('f32[2] domain(a), domain=VALUE', DOMAINS),
    *in_entry('f32[] dot(a, a), lhs_contracting_dims={0}, rhs_contracting_dims={0}, operand_precision=VALUE', PRECISIONS),
    *in_entry('f32[2] convolution(a, a), dim_labels=bf_io->bf, sparsity_config=VALUE', SPARSITIES),
    *[E % (A + CONVOLUTION + f'window={{{row}}}, dim_labels=b01f_01io->b01f') for row in WINDOWS],
    *[E % (A + CONVOLUTION + f'!window={{{row}}}, dim_labels=b01f_01io->b01f') for row in WINDOW_COUNTS],
    *[E % (A + CONVOLUTION + f'window={{size=3x3}}, dim_labels={row}') for row in DIM_LABELS],
]
