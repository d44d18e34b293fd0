# SPDX-License-Identifier: Apache-2.0
"""Generates modules of HLO text from tables: at least one for each opcode, element type, attribute and construct.

good() yields (name, text) of modules that XLA accepts; the texts are deterministic.
"""

A2 = ' a = f32[2] parameter(0)\n'
AB = A2 + ' b = f32[2] parameter(1)\n'
ADD = 'add {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT z = f32[] add(x, y)\n}\n'
LESS = 'less {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT z = pred[] compare(x, y), direction=LT\n}\n'
NEG = 'neg {\n n = f32[2] parameter(0)\n ROOT m = f32[2] negate(n)\n}\n'
TWICE = 'twice {\n n = f32[2] parameter(0)\n o = f32[2] negate(n)\n ROOT m = f32[2] negate(o)\n}\n'

UNARY_FLOAT = ('abs acos acosh asin asinh atanh cbrt ceil cosine cosh erf exponential exponential-minus-one floor log '
               'log-plus-one logistic negate round-nearest-afz round-nearest-even rsqrt sign sine sinh sqrt tan tanh').split()
ACCURATE = ('acos acosh asin asinh atanh cbrt cosine cosh erf exponential exponential-minus-one log log-plus-one logistic rsqrt sine '
            'sinh sqrt tan tanh').split()
BINARY_FLOAT = 'add atan2 divide maximum minimum multiply power remainder subtract'.split()
BINARY_INT = ('and or xor shift-left shift-right-arithmetic shift-right-logical mulhi add multiply divide remainder maximum '
              'minimum subtract').split()

ELEMENT_TYPES = ('pred s1 s2 s4 s8 s16 s32 s64 u1 u2 u4 u8 u16 u32 u64 f4e2m1fn f6e2m3fn f6e3m2fn f8e3m4 f8e4m3 f8e4m3b11fnuz f8e4m3fn '
                 'f8e4m3fnuz f8e5m2 f8e5m2fnuz f8e8m0fnu f16 bf16 f32 f64 c64 c128').split()

SHARDINGS = '''
{replicated}
{manual}
{unknown}
{unreduced}
{maximal device=1}
{devices=[2]0,1}
{devices=[2]1,0}
{devices=[2]<=[2]}
{devices=[2,2]<=[4] last_tile_dim_replicate}
{devices=[2,2]0,1,2,3 last_tile_dim_replicate}
{devices=[2,2]<=[2,2]T(1,0) last_tile_dim_replicate}
{devices=[1,2,2]<=[4] last_tile_dims={manual, replicated}}
{devices=[2,2]<=[4] last_tile_dims={replicated}}
{devices=[2,2]<=[4] last_tile_dims={manual}}
{devices=[2,2]<=[4] last_tile_dims={unreduced}}
{devices=[2]<=[2] metadata={op_name="a"}}
{devices=[2]<=[2] metadata={{op_name="a"}, {op_type="b" source_line=3}}}
{replicated shard_as 1}
{devices=[2]<=[2] shard_like 5}
{{replicated}}
{devices=[8]<=[2,2,2]T(2,1,0)}
{devices=[2,4]<=[2,2,2]T(2,0,1) last_tile_dim_replicate}
{mesh['a'=2], [{'a'}]}
{mesh['a'=2,'b'=4], [{'a'}]}
{mesh['a'=2,'b'=4], [{'a', 'b'}]}
{mesh['a'=2,'b'=4], [{'b':(2)2}]}
{mesh['a'=2,'b'=4], [{'a', ?}]}
{mesh['a'=2,'b'=4], [{?}], replicated={'b'}}
{mesh['a'=2,'b'=4], [{'a'}], unreduced={'b'}}
{mesh['a'=2,'b'=4], [{}], manual={'b'}}
{mesh['a'=2], device_ids=(1,0), [{'a'}]}
{maximal_mesh[device_id=5]}
'''.strip().split('\n')
TUPLE_SHARDINGS = '''
{{replicated}, {maximal device=0}}
{{devices=[2]<=[2]}, {replicated}}
{{devices=[2]0,1}, {devices=[1,2]<=[2] last_tile_dim_replicate}}
{{manual}, {replicated}}
{{replicated shard_as 1}, {replicated shard_like 1}}
{{replicated metadata={op_name="x"}}, {replicated}}
{{mesh['a'=2], [{'a'}]}, {mesh['a'=2], [{}]}}
'''.strip().split('\n')

REPLICA_GROUPS = '''
{}
{{0}}
{{0,1}}
{{0},{1}}
{{0,1},{2,3}}
{{0, 2}, {1, 3}}
[2,2]<=[4]
[2,2]<=[2,2]T(1,0)
[1,8]<=[2,2,2]T(2,1,0)
[8,1]<=[8]
mesh['a'=2,'b'=2] {'a'}
mesh['a'=2,'b'=2] {'a','b'}
mesh['a'=2,'b'=4] {'b':(1)2}
mesh['a'=2,'b'=4] {'a','b':(2)2}
'''.strip().split('\n')

SHAPES = '''
f32[4,3]{1,0}
f32[4,3]{0,1}
f32[4,3]
f32[ 4 , 3 ]
f32[]
f32[0]
f32[2,0,3]
f32[1024, 1024]
f32[576460752303423487]{0}
f32[4,3]{1,0:T(8,128)}
f32[4,3]{1,0:T(8,128)(2,1)}
bf16[4,3]{1,0:T(8,128)(2,1)}
f32[4,3]{1,0:T(2,*)}
f32[4,3]{1,0:T(*,*)}
f32[4,3]{1,0:T(8)}
f32[4,3]{1,0:T(8,128)S(5)}
f32[4,3]{1,0:S(1)}
s4[4,3]{1,0:E(4)}
s4[4,3]{1,0:T(8,128)E(4)S(3)}
f32[4,3]{1,0:L(64)}
f32[4,3]{1,0:T(8,128)L(64)}
f32[4,3]{1,0:M(16)}
f32[4,3]{1,0:SC(1:2)}
f32[4,3]{1,0:SC(1:2,1)}
f32[4,3]{1,0:SC(0:2)(1:1)}
f32[4,3]{1,0:S(5)SC(1:2)}
f32[4,3]{1,0:#(u32)}
f32[4,3]{1,0:#(u32)*(u8)}
f32[4,3]{1,0:*(u8)}
f32[4,3]{1,0:D(D,C)}
f32[4,3]{1,0:D(D,C)T(8,128)}
f32[4,3]{1,0:D(C+,D)}
f32[4,3]{1,0:D(D,S)}
f32[4,3]{1,0:D(C~,D)}
f32[4,3]{1,0:T(8,128)M(16)}
f32[4,3]{1,0:T(8 S(1)}
f32[4,3]{1,0:T(8, E(4)S(1)}
f32[4,3]{1,0:T S(1)}
f32[4,3]{1,0:L(4 S(1)}
f32[4,3]{1,0:S(1 M(3)}
f32[]{:S(5)}
f32[]{:T(128)}
f32[]{:T(128)S(6)}
f32[<=10]
f32[<=10,?,3]
f32[?]
f32[?,<=4]{0,1}
token[]
opaque[]
()
(f32[2])
(f32[2], s32[])
(f32[2], (s32[], token[]))
((((f32[1]))))
(f32[1], f32[2], f32[3], f32[4], f32[5], /*index=5*/f32[6])
(f32[1]{0:T(256)}, (f32[2]{0:S(1)}, ()))
b(f32[4])
b(f32[4]{0:S(3)})
(b(f32[4]), f32[2])
'''.strip().split('\n')

LITERALS = '''
pred[] true
pred[] false
pred[] 1
pred[2] {true, false}
pred[3] {1, 0, 2}
s1[2] {0, -1}
u1[2] {0, 1}
s2[3] {-2, 1, 0}
u2[2] {3, 0}
s4[3] {-8, 7, 0}
u4[2] {0, 15}
s8[3] {-128, 127, 18446744073709551615}
u8[2] {0, 255}
s16[2] {-32768, 32767}
u16[2] {0, 65535}
s32[2] {-2147483648, 2147483647}
u32[2] {0, 4294967295}
s64[3] {-9223372036854775808, 9223372036854775807, 18446744073709551615}
u64[3] {18446744073709551615, -1, 0}
f4e2m1fn[6] {6, 0.5, 1000, -1.5, 0, -0.0}
f8e3m4[4] {15.5, 0.25, -inf, nan}
f8e4m3[4] {240, 0.5, inf, nan}
f8e4m3b11fnuz[3] {30, 0.5, nan}
f8e4m3fn[6] {448, 464, 0.3125, -nan, 0.00195, -0.0}
f8e4m3fnuz[3] {240, 0.0625, nan}
f8e5m2[5] {57344, inf, 1.3e+02, -inf, nan}
f8e5m2fnuz[2] {57344, nan}
f8e8m0fnu[4] {1, 2, 1.7e+38, nan}
f16[5] {65504, 6e-8, 0.1, -inf, nan}
bf16[5] {3.39e+38, 1e-40, 0.1, nan, -0.0}
f32[] 0
f32[] -1
f32[] 1e10
f32[] 1.5
f32[] 5.
f32[] 1e3
f32[] inf
f32[] -inf
f32[] nan
f32[] -nan
f32[] nan(0x7fc00)
f32[] nan(0x1)
f32[] -nan(0x200000)
f32[4] {3.40282347e+38, 1.17549435e-38, 1e-45, 0.1}
f32[] 9223372036854775808
f64[4] {0.1, 1e300, -9.2233720368547758e+18, 1e-09}
f64[] nan(0x8000000000001)
f64[3] {4.9e-324, 1.7976931348623157e+308, 123456789.125}
bf16[] nan(0x1)
f16[] nan(0x3)
f8e5m2[] nan(0x1)
c64[] (1, 2)
c64[2] {(1, -2.5), (nan, inf)}
c64[] (-0.0, 0.0)
c128[] (0.1, 1e-300)
f32[2,3] {{1, 2, 3}, {4, 5, 6}}
f32[2,3]{0,1} {{1, 2, 3}, {4, 5, 6}}
f32[2,1,3] {{{1,2,3}},{{4,5,6}}}
f32[2,1,1,2] {{/*i0=0*/{/*i1=0*/{1,2}}},{{{4,5}}}}
s32[1,2,1,1,2] {{{{{1,2}}},{{{3,4}}}}}
f32[0] {}
f32[0,3] {}
f32[2,0] {{},{}}
f32[1,0,2] {{}}
s8[1] {5}
s8[1,1] {{5}}
s8[2,1] {{5},{6}}
s8[4,4] {{1,2,3,4},{1,2,3,4},{1,2,3,4},{1,2,3,4}}
f32[1000] {...}
f32[1000,1000] {...}
(f32[2], s32[]) ({1, 2}, 3)
(f32[2], s32[], (pred[])) ( {1, 2}, 3, (true) )
() ()
(f32[9]) ({...})
(f32[]) ( 1 )
'''.strip().split('\n')

METADATA = '''
{op_name="a"}
{op_type="t" op_name="n"}
{op_name='single'}
{op_type="t", op_name="n"}
{source_file="f.py" source_line=3}
{source_file="f.py" source_line=3 source_end_line=4 source_column=5 source_end_column=6}
{stack_frame_id=1}
{scheduling_name="s"}
{op_name="n" deduplicated_name="d"}
{op_name="n" profile_type={1}}
{op_name="it's \\"q\\" \\\\ \\303\\251\\n\\t"}
{op_name="a/b[c=d]{e}"}
{op_name=""}
{op_name="\\x41\\101"}
{op_name="two
lines"}
'''.strip().split('\n{')
METADATA = ['{' + m.lstrip('{') for m in METADATA]

# Attributes that any instruction may have, on an add of f32[2].
COMMON = '''
backend_config="text"
backend_config="a\\"b"
backend_config={}
backend_config={"a":1}
backend_config={"a": {"b": "}"}, "c": [1, 2, {"d": null}]}
frontend_attributes={a="x"}
frontend_attributes={a="x",b="y"}
frontend_attributes={b="x",a={nested="y"}}
frontend_attributes={}
frontend_attributes={a.b-c="x"}
frontend_attributes={a={b={c="}"}}}
statistics={visualizing_index=0,a=1.5}
statistics={visualizing_index=1,a=1,b=2.25}
origin={{"a"}}
origin={{"a" {0}}}
origin={{"a" {0,1}}}
control-predecessors={a}
control-predecessors={a, %b}
'''.strip().split('\n')

# Header attributes of a module whose entry has an f32[2] parameter and result.
HEADERS = '''
is_scheduled=true
is_scheduled=false
entry_computation_layout={(f32[2]{0})->f32[2]{0}}
entry_computation_layout={(f32[2])->f32[2]}
entry_computation_layout={(f32[2]{0:T(256)})->f32[2]{0:T(128)}}
input_output_alias={ {}: (0, {}, may-alias) }
input_output_alias={ {}: (0, {}, must-alias) }
input_output_alias={ {}: (0, {}) }
buffer_donor={ (0, {}) }
replica_count=2
num_partitions=4
replica_count=2, num_partitions=4
allow_spmd_sharding_propagation_to_parameters={true}
allow_spmd_sharding_propagation_to_output={true}
allow_spmd_sharding_propagation_to_output={true}, allow_spmd_sharding_propagation_to_parameters={false}
frontend_attributes={a="b"}
frontend_attributes={b="x",a={c="d"}}
alias_passthrough_params=true
num_partitions=2, is_scheduled=true
origin_recovery_table={}
'''.strip().split('\n')

WINDOWS = '''
size=3x3
size=3x3 stride=2x2
size=3x3 pad=1_1x1_1
size=3x3 pad=0_1x-1_0
size=3x3 stride=2x2 pad=1_1x1_1 lhs_dilate=1x2 rhs_dilate=2x1
size=3x3 rhs_reversal=1x0
size=3x3 stride=1x1
size=3x3 pad=0_0x0_0
size=3x3 rhs_reversal=0x0 lhs_dilate=1x1
rhs_dilate=1x2 size=3x3
'''.strip().split('\n')

DIM_LABELS = 'b01f_01io->b01f bf01_oi01->bf01 01bf_01io->01bf b01f_o01i->b01f f01b_i01o->f01b'.split()

ALGORITHMS = ('unset dot_any_f8_any_f8_f32 dot_any_f8_any_f8_f32_fast_accum dot_f16_f16_f16 dot_f16_f16_f32 '
              'dot_bf16_bf16_bf16 dot_bf16_bf16_f32 dot_bf16_bf16_f32_x3 dot_bf16_bf16_f32_x6 dot_bf16_bf16_f32_x9 dot_tf32_tf32_f32 dot_tf32_tf32_f32_x3 '
              'dot_f32_f32_f32 dot_f64_f64_f64').split()

# Bodies of an entry, by topic. `RG` is replaced by each of the replica groups.
BODIES = {
    'iota': ' ROOT c = s32[2,3] iota(), iota_dimension=1',
    'is-finite': A2 + ' ROOT c = pred[2] is-finite(a)',
    'count-leading-zeros': ' a = s32[2] parameter(0)\n ROOT c = s32[2] count-leading-zeros(a)',
    'popcnt': ' a = u32[2] parameter(0)\n ROOT c = u32[2] popcnt(a)',
    'not': ' a = pred[2] parameter(0)\n ROOT c = pred[2] not(a)',
    'real': ' a = c64[2] parameter(0)\n ROOT c = f32[2] real(a)',
    'imag': ' a = c64[2] parameter(0)\n ROOT c = f32[2] imag(a)',
    'complex': AB + ' ROOT c = c64[2] complex(a, b)',
    'convert': A2 + ' ROOT c = f8e4m3fn[2] convert(a)',
    'bitcast-convert': A2 + ' ROOT c = s32[2] bitcast-convert(a)',
    'reduce-precision': A2 + ' ROOT c = f32[2] reduce-precision(a), exponent_bits=5, mantissa_bits=10',
    'stochastic-convert': A2 + ' r = u32[2] parameter(1)\n ROOT c = s8[2] stochastic-convert(a, r)',
    'clamp': AB + ' ROOT c = f32[2] clamp(a, b, a)',
    'select': AB + ' p = pred[2] parameter(2)\n ROOT c = f32[2] select(p, a, b)',
    'bitcast': A2 + ' ROOT c = f32[1,2] bitcast(a)',
    'broadcast': A2 + ' ROOT c = f32[3,2] broadcast(a), dimensions={1}',
    'broadcast scalar': ' a = f32[] parameter(0)\n ROOT c = f32[3,2] broadcast(a), dimensions={}',
    'concatenate': AB + ' ROOT c = f32[4] concatenate(a, b), dimensions={0}',
    'copy': A2 + ' ROOT c = f32[2] copy(a)',
    'dynamic-reshape': ' a = f32[4] parameter(0)\n s = s32[] parameter(1)\n ROOT c = f32[<=4] dynamic-reshape(a, s)',
    'dynamic-slice': ' a = f32[4] parameter(0)\n s = s32[] parameter(1)\n'
                     ' ROOT c = f32[2] dynamic-slice(a, s), dynamic_slice_sizes={2}',
    'dynamic-update-slice': ' a = f32[4] parameter(0)\n u = f32[2] parameter(1)\n s = s32[] parameter(2)\n'
                            ' ROOT c = f32[4] dynamic-update-slice(a, u, s)',
    'gather': ' a = f32[8,4] parameter(0)\n i = s32[3,1] parameter(1)\n ROOT c = f32[3,4] gather(a, i), offset_dims={1}, '
              'collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}',
    'gather batched': ' a = f32[8,4] parameter(0)\n i = s32[8,1] parameter(1)\n ROOT c = f32[8,1] gather(a, i), '
                      'offset_dims={1}, collapsed_slice_dims={}, start_index_map={1}, operand_batching_dims={0}, '
                      'start_indices_batching_dims={0}, index_vector_dim=1, slice_sizes={1,1}, indices_are_sorted=true',
    'pad': ' a = f32[8,4] parameter(0)\n z = f32[] constant(0)\n ROOT c = f32[11,4] pad(a, z), padding=1_2x-1_1_0',
    'pad interior of one': ' a = f32[3,2] parameter(0)\n z = f32[] constant(0)\n ROOT c = f32[8,3] pad(a, z), padding=1_2_1x0_1',
    'pad interior': ' a = f32[3] parameter(0)\n z = f32[] constant(0)\n ROOT c = f32[8] pad(a, z), padding=1_2_1',
    'reshape': ' a = f32[8,4] parameter(0)\n ROOT c = f32[32] reshape(a)',
    'reshape inferred': ' a = f32[8,4] parameter(0)\n ROOT c = f32[32] reshape(a), inferred_dimension=0',
    'reverse': A2 + ' ROOT c = f32[2] reverse(a), dimensions={0}',
    'slice': ' a = f32[8,4] parameter(0)\n ROOT c = f32[4,2] slice(a), slice={[0:8:2], [1:3]}',
    'slice of a scalar': ' a = f32[] parameter(0)\n ROOT c = f32[] slice(a), slice={}',
    'transpose': ' a = f32[8,4] parameter(0)\n ROOT c = f32[4,8] transpose(a), dimensions={1,0}',
    'dot': AB + ' ROOT c = f32[] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}',
    'dot outer': AB + ' ROOT c = f32[2,2] dot(a, b)',
    'dot batched': ' a = f32[3,2,4] parameter(0)\n b = f32[3,4,5] parameter(1)\n ROOT c = f32[3,2,5] dot(a, b), '
                   'lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}',
    'ragged-dot': ' a = f32[8,4] parameter(0)\n b = f32[3,4,5] parameter(1)\n g = s32[3] parameter(2)\n ROOT c = f32[8,5] '
                  'ragged-dot(a, b, g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, '
                  'rhs_group_dims={0}, operand_precision={high,default}',
    'ragged-dot batched': ' a = f32[2,8,4] parameter(0)\n b = f32[2,3,4,5] parameter(1)\n g = s32[2,3] parameter(2)\n ROOT c = f32[2,8,5] '
                          'ragged-dot(a, b, g), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, '
                          'rhs_contracting_dims={2}, lhs_ragged_dims={1}, rhs_group_dims={1}',
    'scaled-dot batched': ' a = f8e4m3fn[2,8,32] parameter(0)\n b = f8e4m3fn[2,32,8] parameter(1)\n s = f8e8m0fnu[2,8,1] parameter(2)\n'
                          ' t = f8e8m0fnu[2,1,8] parameter(3)\n ROOT c = f32[2,8,8] scaled-dot(a, b, s, t), lhs_batch_dims={0}, '
                          'lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}, operand_precision={high,'
                          'default}, algorithm=dot_f32_f32_f32',
    'scaled-dot': ' a = f8e4m3fn[8,32] parameter(0)\n b = f8e4m3fn[32,8] parameter(1)\n s = f8e8m0fnu[8,1] parameter(2)\n'
                  ' t = f8e8m0fnu[1,8] parameter(3)\n ROOT c = f32[8,8] scaled-dot(a, b, s, t), lhs_contracting_dims={1}, '
                  'rhs_contracting_dims={0}',
    'cholesky': ' a = f32[4,4] parameter(0)\n ROOT c = f32[4,4] cholesky(a), lower=true',
    'cholesky upper': ' a = f32[4,4] parameter(0)\n ROOT c = f32[4,4] cholesky(a)',
    'triangular-solve': ' a = f32[4,4] parameter(0)\n b = f32[4,2] parameter(1)\n ROOT c = f32[4,2] triangular-solve(a, b), '
                        'left_side=true, lower=true, unit_diagonal=false, transpose_a=NO_TRANSPOSE',
    'triangular-solve transposed': ' a = f32[4,4] parameter(0)\n b = f32[4,2] parameter(1)\n ROOT c = f32[4,2] '
                                   'triangular-solve(a, b), left_side=true, transpose_a=TRANSPOSE',
    'triangular-solve adjoint': ' a = f32[4,4] parameter(0)\n b = f32[4,2] parameter(1)\n ROOT c = f32[4,2] '
                                'triangular-solve(a, b), left_side=true, transpose_a=ADJOINT',
    'fft': ' a = c64[8] parameter(0)\n ROOT c = c64[8] fft(a), fft_type=FFT, fft_length={8}',
    'ifft': ' a = c64[8] parameter(0)\n ROOT c = c64[8] fft(a), fft_type=IFFT, fft_length={8}',
    'rfft': ' a = f32[8] parameter(0)\n ROOT c = c64[5] fft(a), fft_type=RFFT, fft_length={8}',
    'irfft': ' a = c64[5] parameter(0)\n ROOT c = f32[8] fft(a), fft_type=IRFFT, fft_length={8}',
    'batch-norm-training': ' a = f32[2,3] parameter(0)\n s = f32[3] parameter(1)\n ROOT c = (f32[2,3], f32[3], f32[3]) '
                           'batch-norm-training(a, s, s), epsilon=0.001, feature_index=1',
    'batch-norm-inference': ' a = f32[2,3] parameter(0)\n s = f32[3] parameter(1)\n ROOT c = f32[2,3] '
                            'batch-norm-inference(a, s, s, s, s), epsilon=1, feature_index=1',
    'batch-norm-grad': ' a = f32[2,3] parameter(0)\n s = f32[3] parameter(1)\n ROOT c = (f32[2,3], f32[3], f32[3]) '
                       'batch-norm-grad(a, s, s, s, a), epsilon=1e-05, feature_index=1',
    'tuple': AB + ' ROOT c = (f32[2], f32[2]) tuple(a, b)',
    'tuple of none': ' ROOT c = () tuple()',
    'tuple of many': A2 + ' ROOT c = (f32[2], f32[2], f32[2], f32[2], f32[2], f32[2], f32[2], f32[2], f32[2], f32[2], f32[2]) '
                     'tuple(a, a, a, a, a, a, a, a, a, a, a)',
    'get-tuple-element': ' p = (f32[2], s32[]) parameter(0)\n ROOT c = s32[] get-tuple-element(p), index=1',
    'opt-barrier': A2 + ' t = (f32[2]) tuple(a)\n ROOT c = (f32[2]) opt-barrier(t)',
    'domain': A2 + ' ROOT c = f32[2] domain(a), domain={kind="sharding", entry={maximal device=0}, exit={maximal device=1}}',
    'domain tuple': ' p = (f32[2], s32[]) parameter(0)\n ROOT c = (f32[2], s32[]) domain(p), domain={kind="sharding", '
                    'entry={{replicated}, {maximal device=0}}, exit={{replicated}, {maximal device=1}}}',
    'domain devices': A2 + ' ROOT c = f32[2] domain(a), domain={kind="sharding", entry={devices=[2]<=[2]}, exit={replicated}}',
    'add-dependency': A2 + ' t = token[] after-all()\n ROOT c = f32[2] add-dependency(a, t)',
    'after-all': ' t = token[] after-all()\n u = token[] after-all()\n ROOT c = token[] after-all(t, u)',
    'get-dimension-size': A2 + ' ROOT c = s32[] get-dimension-size(a), dimensions={0}',
    'set-dimension-size': A2 + ' s = s32[] parameter(1)\n ROOT c = f32[<=2] set-dimension-size(a, s), dimensions={0}',
    'rng': ' x = f32[] parameter(0)\n ROOT c = f32[2] rng(x, x), distribution=rng_uniform',
    'rng normal': ' x = f32[] parameter(0)\n ROOT c = f32[2] rng(x, x), distribution=rng_normal',
    'rng-bit-generator': ' s = u64[2] parameter(0)\n ROOT c = (u64[2], u32[4]) rng-bit-generator(s), algorithm=rng_default',
    'rng three_fry': ' s = u64[2] parameter(0)\n ROOT c = (u64[2], u32[4]) rng-bit-generator(s), algorithm=rng_three_fry',
    'rng philox': ' s = u64[3] parameter(0)\n ROOT c = (u64[3], u32[4]) rng-bit-generator(s), algorithm=rng_philox',
    'rng-get-and-update-state': ' ROOT c = u64[2] rng-get-and-update-state(), delta=4096',
    'topk': ' a = f32[8] parameter(0)\n ROOT c = (f32[2], s32[2]) topk(a), k=2, largest=true',
    'partition-id': ' ROOT c = u32[] partition-id()',
    'replica-id': ' ROOT c = u32[] replica-id()',
    'all-gather': A2 + ' ROOT c = f32[4] all-gather(a), replica_groups={{0,1}}, dimensions={0}',
    'all-gather more': A2 + ' ROOT c = f32[4] all-gather(a), channel_id=1, replica_groups=[1,2]<=[2], dimensions={0}, '
                       'use_global_device_ids=true, constrain_layout=true',
    'all-gather variadic': AB + ' ROOT c = (f32[4], f32[4]) all-gather(a, b), replica_groups={{0,1}}, dimensions={0}',
    'all-gather-start': A2 + ' s = (f32[2], f32[4]) all-gather-start(a), replica_groups={{0,1}}, dimensions={0}\n'
                        ' ROOT d = f32[4] all-gather-done(s)',
    'all-gather-start more': A2 + ' s = (f32[2], f32[4]) all-gather-start(a), channel_id=1, replica_groups=[1,2]<=[2], '
                             'dimensions={0}, use_global_device_ids=true, constrain_layout=true\n ROOT d = f32[4] all-gather-done(s)',
    'all-to-all': A2 + ' ROOT c = f32[2] all-to-all(a), replica_groups={{0,1}}, dimensions={0}',
    'all-to-all tuple': AB + ' ROOT c = (f32[2], f32[2]) all-to-all(a, b), channel_id=3, replica_groups={{0,1}}',
    'ragged-all-to-all': ' i = f32[8] parameter(0)\n o = f32[8] parameter(1)\n s = s64[2] parameter(2)\n ROOT c = f32[8] '
                         'ragged-all-to-all(i, o, s, s, s, s), replica_groups={{0,1}}',
    'ragged-all-to-all channel': ' i = f32[8] parameter(0)\n o = f32[8] parameter(1)\n s = s64[2] parameter(2)\n ROOT c = f32[8] '
                                 'ragged-all-to-all(i, o, s, s, s, s), channel_id=5, replica_groups={{0,1}}',
    'collective-broadcast': A2 + ' ROOT c = f32[2] collective-broadcast(a), replica_groups={{0,1}}',
    'collective-permute': A2 + ' ROOT c = f32[2] collective-permute(a), source_target_pairs={{0,1},{1,0}}',
    'collective-permute spaces': A2 + ' ROOT c = f32[2] collective-permute(a), channel_id=2, source_target_pairs={ { 0 , 1 } }',
    'collective-permute none': A2 + ' ROOT c = f32[2] collective-permute(a), source_target_pairs={}',
    'collective-permute-start': A2 + ' s = (f32[2], f32[2]) collective-permute-start(a), source_target_pairs={{0,1}}\n'
                                ' ROOT d = f32[2] collective-permute-done(s)',
    'collective-permute-start in place': ' a = f32[8] parameter(0)\n b = f32[8] parameter(1)\n i = s32[] parameter(2)\n'
                                         ' t = (s32[]) tuple(i)\n s = (f32[8], f32[8], u32[], u32[]) collective-permute-start(a, b, t, '
                                         't), channel_id=1, source_target_pairs={{0,1}}, slice_sizes={{4}}\n ROOT d = f32[8] '
                                         'collective-permute-done(s)',
    'send': A2 + ' t = token[] after-all()\n s = (f32[2], u32[], token[]) send(a, t), channel_id=1\n'
            ' ROOT d = token[] send-done(s), channel_id=1',
    'send host': A2 + ' t = token[] after-all()\n s = (f32[2], u32[], token[]) send(a, t), channel_id=1, is_host_transfer=true\n'
                 ' ROOT d = token[] send-done(s), channel_id=1, is_host_transfer=true',
    'send without a channel': A2 + ' t = token[] after-all()\n s = (f32[2], u32[], token[]) send(a, t)\n'
                              ' ROOT d = token[] send-done(s)',
    'recv': ' t = token[] after-all()\n r = (f32[2], u32[], token[]) recv(t), channel_id=1\n'
            ' ROOT d = (f32[2], token[]) recv-done(r), channel_id=1',
    'recv host': ' t = token[] after-all()\n r = (f32[2], u32[], token[]) recv(t), channel_id=1, is_host_transfer=true\n'
                 ' ROOT d = (f32[2], token[]) recv-done(r), channel_id=1, is_host_transfer=true',
    'infeed': ' t = token[] after-all()\n ROOT c = (f32[2], token[]) infeed(t), infeed_config="x"',
    'infeed plain': ' t = token[] after-all()\n ROOT c = (f32[2], token[]) infeed(t)',
    'outfeed': A2 + ' t = token[] after-all()\n ROOT c = token[] outfeed(a, t), outfeed_shape=f32[2]{0}, outfeed_config="x"',
    'outfeed tuple': ' p = (f32[2], s32[]) parameter(0)\n t = token[] after-all()\n ROOT c = token[] outfeed(p, t), '
                     'outfeed_shape=(f32[2]{0}, s32[])',
    'copy-start': A2 + ' s = (f32[2], f32[2], u32[]) copy-start(a)\n ROOT d = f32[2] copy-done(s)',
    'copy-start prefetch': A2 + ' s = (f32[2], f32[2], u32[]) copy-start(a), cross_program_prefetch_index=0\n'
                           ' ROOT d = f32[2] copy-done(s)',
    'custom-call': AB + ' ROOT c = f32[2] custom-call(a, b), custom_call_target="t$x"',
    'custom-call layouts': AB + ' ROOT c = f32[2] custom-call(a, b), custom_call_target="t", '
                           'operand_layout_constraints={f32[2]{0}, f32[2]{0}}',
    'custom-call aliasing': AB + ' ROOT c = (f32[2], f32[2]) custom-call(a, b), custom_call_target="t", '
                            'output_to_operand_aliasing={{0}: (1, {}), {1}: (0, {})}',
    'custom-call literal': A2 + ' ROOT c = f32[2] custom-call(a), custom_call_target="t", literal=s32[2]{0} {4, 5}',
    'custom-call scalar literal': A2 + ' ROOT c = f32[2] custom-call(a), custom_call_target="t", literal=s32[] 5',
    'custom-call window': ' a = f32[1,8,8,3] parameter(0)\n k = f32[3,3,3,16] parameter(1)\n ROOT c = f32[1,6,6,16] '
                          'custom-call(a, k), window={size=3x3}, dim_labels=b01f_01io->b01f, custom_call_target="conv", '
                          'feature_group_count=1, batch_group_count=1, padding_type=PADDING_VALID',
    'custom-call precision': AB + ' ROOT c = f32[2] custom-call(a, b), custom_call_target="t", operand_precision={high,highest}',
    'custom-call side effect': A2 + ' ROOT c = () custom-call(a), custom_call_target="t", custom_call_has_side_effect=true',
    'custom-call empty target': A2 + ' ROOT c = f32[2] custom-call(a), custom_call_target=""',
    'compare total': AB + ' ROOT c = pred[2] compare(a, b), direction=LT, type=TOTALORDER',
    'compare signed': ' a = s32[2] parameter(0)\n ROOT c = pred[2] compare(a, a), direction=GE, type=SIGNED',
    'compare unsigned': ' a = u32[2] parameter(0)\n ROOT c = pred[2] compare(a, a), direction=NE, type=UNSIGNED',
    'compare float': AB + ' ROOT c = pred[2] compare(a, b), direction=LT, type=FLOAT',
    'parameter replication': ' ROOT p = (f32[2], s32[]) parameter(0), parameter_replication={true,false}',
    'origin of a tuple': ' ROOT p = (f32[2], s32[]) parameter(0), origin={({"a" {0}}, {"b"})}',
    'origin of a part': ' ROOT p = (f32[2], s32[]) parameter(0), origin={({"a"}, {})}',
    # HLO constructs, each with modules.
    'operands with shapes': AB + ' ROOT c = f32[2]{0} add(f32[2]{0} %a, f32[2] b)',
    'no percent': AB + ' ROOT c = f32[2] add(a, b)',
    'percent': ' %a = f32[2] parameter(0)\n ROOT %c = f32[2] negate(%a)',
    'result shape left out': AB + ' c = add(a, b)\n d = negate(c)\n ROOT e = tuple(c, d)',
    'nested operands': AB + ' ROOT c = f32[2] add(negate(a), f32[2] multiply(b, f32[2] constant({1, 2})))',
    'nested deeper': A2 + ' ROOT c = f32[2] negate(negate(negate(sqrt(a))))',
    'no root': AB + ' c = f32[2] add(a, b)',
    'root in the middle': AB + ' ROOT c = f32[2] add(a, b)\n d = f32[2] negate(c)',
    'comments': AB + ' // a comment\n ROOT /* another\n one */ c = f32[2]{0} /**/ add(a, // b\n b)',
    'index comments': A2 + ' ROOT c = (f32[2], f32[2], f32[2], f32[2], f32[2], /*index=5*/f32[2]) tuple(a, a, a, a, a, '
                      '/*index=5*/a)',
    'CRLF': (AB + ' ROOT c = f32[2] add(a, b)').replace('\n', '\r\n'),
    'CR': (AB + ' ROOT c = f32[2] add(a, b)').replace('\n', '\r'),
    'tabs': AB.replace(' ', '\t') + '\tROOT\tc\t=\tf32[2]\tadd(a,\tb)',
    'one line': (AB + ' ROOT c = f32[2] add(a, b)').replace('\n', ' '),
    'names': ' a-b.c_d = f32[2] parameter(0)\n _x = f32[2] negate(a-b.c_d)\n ROOT %tuple = (f32[2]) tuple(_x)',
    'names like opcodes': ' add = f32[2] parameter(0)\n buffer = f32[2] negate(add)\n ROOT tuple = f32[2] add(buffer, add)',
    'names like attributes': ' dimensions = f32[2] parameter(0)\n index = f32[2] negate(dimensions)\n'
                             ' ROOT metadata = f32[2] add(dimensions, index)',
    'names with numbers': ' p.1 = f32[2] parameter(0)\n p.1.2 = f32[2] negate(p.1)\n ROOT p = f32[2] add(p.1, p.1.2)',
    'many attributes': A2 + ' ROOT c = f32[4] all-gather(a), metadata={op_name="x"}, backend_config={"a":1}, '
                       'sharding={replicated}, dimensions={0}, frontend_attributes={k="v"}, replica_groups={{0,1}}, channel_id=1',
    'integers in lists': ' a = f32[8,4] parameter(0)\n ROOT c = f32[4,8] transpose(a), dimensions={ 1 , 0 }',
    'elided operands': ' a = f32[100] constant({...})\n ROOT c = f32[100] negate(a)',
    'parameters out of order': ' b = f32[3] parameter(1)\n a = f32[2] parameter(0)\n ROOT c = (f32[2], f32[3]) tuple(a, b)',
}

# Texts of whole modules.
MODULES = {
    'reduce': ADD + 'ENTRY e {\n a = f32[8] parameter(0)\n z = f32[] constant(0)\n ROOT c = f32[] reduce(a, z), '
              'dimensions={0}, to_apply=add\n}\n',
    'reduce of two': 'HloModule m\nmax2 {\n a = f32[] parameter(0)\n b = s32[] parameter(1)\n c = f32[] parameter(2)\n'
                     ' d = s32[] parameter(3)\n e = f32[] maximum(a, c)\n f = s32[] maximum(b, d)\n ROOT t = (f32[], s32[]) '
                     'tuple(e, f)\n}\nENTRY e {\n a = f32[8] parameter(0)\n i = s32[8] parameter(1)\n z = f32[] constant(0)\n'
                     ' y = s32[] constant(0)\n ROOT c = (f32[], s32[]) reduce(a, i, z, y), dimensions={0}, to_apply=max2\n}\n',
    'reduce-window': 'HloModule m\n' + ADD + 'ENTRY e {\n a = f32[8] parameter(0)\n z = f32[] constant(0)\n ROOT c = f32[6] '
                     'reduce-window(a, z), window={size=3}, to_apply=add\n}\n',
    'select-and-scatter': 'HloModule m\n' + ADD + 'ge {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT z = pred[] '
                          'compare(x, y), direction=GE\n}\nENTRY e {\n a = f32[8] parameter(0)\n s = f32[4] parameter(1)\n'
                          ' z = f32[] constant(0)\n ROOT c = f32[8] select-and-scatter(a, s, z), window={size=2 stride=2}, '
                          'select=ge, scatter=add\n}\n',
    'scatter': 'HloModule m\n' + ADD + 'ENTRY e {\n a = f32[8,4] parameter(0)\n i = s32[3,1] parameter(1)\n'
               ' u = f32[3,4] parameter(2)\n ROOT c = f32[8,4] scatter(a, i, u), update_window_dims={1}, '
               'inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, indices_are_sorted=true, '
               'unique_indices=true, to_apply=add\n}\n',
    'scatter batched': 'HloModule m\n' + ADD + 'ENTRY e {\n a = f32[8,4] parameter(0)\n i = s32[8,1] parameter(1)\n'
                       ' u = f32[8] parameter(2)\n ROOT c = f32[8,4] scatter(a, i, u), update_window_dims={}, '
                       'inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, input_batching_dims={0}, '
                       'scatter_indices_batching_dims={0}, index_vector_dim=1, to_apply=add\n}\n',
    'sort': 'HloModule m\n' + LESS + 'ENTRY e {\n a = f32[8] parameter(0)\n ROOT c = f32[8] sort(a), dimensions={0}, '
            'is_stable=true, to_apply=less\n}\n',
    'sort unstable': 'HloModule m\n' + LESS + 'ENTRY e {\n a = f32[8] parameter(0)\n ROOT c = f32[8] sort(a), '
                     'dimensions={0}, is_stable=false, to_apply=less\n}\n',
    'map': 'HloModule m\n' + ADD + 'ENTRY e {\n a = f32[8] parameter(0)\n ROOT c = f32[8] map(a, a), dimensions={0}, '
           'to_apply=add\n}\n',
    'scan': 'HloModule m\nstep {\n c = f32[] parameter(0)\n x = f32[] parameter(1)\n s = f32[] add(c, x)\n ROOT t = (f32[], '
            'f32[]) tuple(s, s)\n}\nENTRY e {\n a = f32[8] parameter(0)\n z = f32[] constant(0)\n ROOT c = (f32[8], f32[]) '
            'scan(a, z), dimensions={0}, num_carries=1, is_reverse=true, is_associative=true, to_apply=step\n}\n',
    'call': 'HloModule m\n' + NEG + 'ENTRY e {\n a = f32[2] parameter(0)\n ROOT c = f32[2] call(a), to_apply=neg\n}\n',
    'call composite': 'HloModule m\n' + NEG + 'ENTRY e {\n a = f32[2] parameter(0)\n ROOT c = f32[2] call(a), to_apply=%neg, '
                      'is_composite=true, frontend_attributes={composite.name="x",composite.attributes={n = 1},'
                      'composite.version="1"}\n}\n',
    'while': 'HloModule m\ncond {\n p = (s32[], f32[2]) parameter(0)\n i = s32[] get-tuple-element(p), index=0\n n = s32[] '
             'constant(5)\n ROOT c = pred[] compare(i, n), direction=LT\n}\nbody {\n q = (s32[], f32[2]) parameter(0)\n ROOT r = '
             '(s32[], f32[2]) copy(q)\n}\nENTRY e {\n a = (s32[], f32[2]) parameter(0)\n ROOT w = (s32[], f32[2]) while(a), '
             'condition=cond, body=body, backend_config={"known_trip_count":{"n":"5"}}\n}\n',
    'conditional': 'HloModule m\n' + NEG + TWICE + 'ENTRY e {\n p = pred[] parameter(0)\n a = f32[2] parameter(1)\n ROOT c = '
                   'f32[2] conditional(p, a, a), true_computation=neg, false_computation=twice\n}\n',
    'conditional index': 'HloModule m\n' + NEG + TWICE + 'ENTRY e {\n p = s32[] parameter(0)\n a = f32[2] parameter(1)\n ROOT c '
                         '= f32[2] conditional(p, a, a, a), branch_computations={neg, %twice, neg}\n}\n',
    'all-reduce': 'HloModule m\n' + ADD + 'ENTRY e {\n a = f32[2] parameter(0)\n ROOT c = f32[2] all-reduce(a), '
                  'channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add\n}\n',
    'all-reduce-start': 'HloModule m\n' + ADD + 'ENTRY e {\n a = f32[2] parameter(0)\n s = f32[2] all-reduce-start(a), '
                        'replica_groups={}, to_apply=add\n ROOT d = f32[2] all-reduce-done(s)\n}\n',
    'all-reduce-start more': 'HloModule m\n' + ADD + 'ENTRY e {\n a = f32[2] parameter(0)\n s = f32[2] all-reduce-start(a), '
                             'channel_id=1, replica_groups=[1,2]<=[2], constrain_layout=true, use_global_device_ids=true, '
                             'to_apply=add\n ROOT d = f32[2] all-reduce-done(s)\n}\n',
    'reduce-scatter': 'HloModule m\n' + ADD + 'ENTRY e {\n a = f32[2] parameter(0)\n ROOT c = f32[1] reduce-scatter(a), '
                      'to_apply=add, replica_groups={{0,1}}, dimensions={0}, channel_id=7, use_global_device_ids=true\n}\n',
    'custom-call computations': 'HloModule m\n' + NEG + TWICE + 'ENTRY e {\n a = f32[2] parameter(0)\n ROOT c = f32[2] '
                                'custom-call(a), custom_call_target="t", called_computations={neg, %twice}\n}\n',
    'custom-call to_apply': 'HloModule m\n' + NEG + 'ENTRY e {\n a = f32[2] parameter(0)\n ROOT c = f32[2] '
                            'custom-call(a), custom_call_target="t", to_apply=neg\n}\n',
    'fusion aliasing': 'HloModule m\n' + NEG + 'ENTRY e {\n a = f32[2] parameter(0)\n ROOT c = f32[2] fusion(a), kind=kLoop, '
                       'output_to_operand_aliasing={{}: (0, {})}, calls=neg\n}\n',
    'async-start of one operation, aliasing': 'HloModule m\n' + NEG + 'ENTRY e {\n a = f32[2] parameter(0)\n s = ((f32[2]), f32[2]) async-start(a), '
                            'calls=neg, output_to_operand_aliasing={{1}: (0, {})}\n ROOT d = f32[2] async-done(s)\n}\n',
    'branches in a branch': 'HloModule m\nf { ROOT x = f32[] parameter(0) }\nENTRY e {\n i = s32[] parameter(0)\n x = f32[] parameter(1)\n ROOT r = f32[] '
                            'conditional(i, x, x, x), branch_computations={f, { y = f32[] parameter(0)\n j = s32[] constant(1)\n ROOT q = f32[] '
                            'conditional(j, y, y), branch_computations={{ ROOT v = f32[] parameter(0) }, { ROOT w = f32[] parameter(0) }} }, '
                            'f}\n}\n',
    'parameter called ENTRY': 'HloModule m\nENTRY e (x: f32[], ENTRY: f32[]) -> f32[] {\n x = f32[] parameter(0)\n ROOT %ENTRY = f32[] '
                              'parameter(1)\n}\n',
    'reserved prefix': 'HloModule m\nENTRY e { ROOT __xla_a = f32[] parameter(0) }\n',
    'f8e8m0fnu of 2^-127': 'HloModule m\nENTRY e { ROOT c = f8e8m0fnu[4] constant({5.877e-39, 5.9e-39, 1e-50, 1.2e-38}) }\n',
    'inline to_apply': 'HloModule m\nENTRY e {\n p = f32[4] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[] reduce(p, z), '
                       'dimensions={0}, to_apply={\n q = f32[] parameter(0)\n s = f32[] parameter(1)\n ROOT t = f32[] add(q, s)\n '
                       '}\n}\n',
    'inline calls': 'HloModule m\nENTRY e {\n a = f32[2] parameter(0)\n ROOT r = f32[2] fusion(a), kind=kLoop, calls={\n'
                    ' a = f32[2] parameter(0)\n ROOT n = f32[2] negate(a)\n }\n}\n',
    'inline branches': 'HloModule m\nENTRY e {\n i = s32[] parameter(0)\n x = f32[] parameter(1)\n ROOT r = f32[] '
                       'conditional(i, x, x), branch_computations={{ ROOT x = f32[] parameter(0) }, { y = f32[] parameter(0)\n'
                       ' ROOT n = f32[] negate(y) }}\n}\n',
    'inline within inline': 'HloModule m\nENTRY e {\n a = f32[2] parameter(0)\n ROOT r = f32[2] call(a), to_apply={\n'
                            ' b = f32[2] parameter(0)\n ROOT s = f32[2] call(b), to_apply={\n c = f32[2] parameter(0)\n'
                            ' ROOT t = f32[2] negate(c)\n }\n }\n}\n',
    'inline twice': 'HloModule m\nENTRY e {\n a = f32[2] parameter(0)\n r = f32[2] call(a), to_apply={\n b = f32[2] parameter(0)\n'
                    ' ROOT s = f32[2] sqrt(b)\n }\n ROOT r2 = f32[2] call(r), to_apply={\n b = f32[2] parameter(0)\n'
                    ' ROOT s = f32[2] sqrt(b)\n }\n}\n',
    'same names': 'HloModule m\nf {\n a = f32[] parameter(0)\n ROOT r = f32[] negate(a)\n}\ng {\n a = f32[] parameter(0)\n'
                  ' ROOT r = f32[] sqrt(a)\n}\nENTRY e {\n a = f32[] parameter(0)\n f = f32[] call(a), to_apply=f\n'
                  ' ROOT r = f32[] call(f), to_apply=g\n}\n',
    'same names with numbers': 'HloModule m\nf {\n a.1 = f32[] parameter(0)\n a = f32[] negate(a.1)\n ROOT r = f32[] add(a, a.1)\n'
                               '}\nf.1 {\n a = f32[] parameter(0)\n a.1 = f32[] negate(a)\n ROOT r = f32[] sqrt(a.1)\n}\n'
                               'ENTRY e {\n a.2 = f32[] parameter(0)\n a = f32[] call(a.2), to_apply=f\n ROOT r = f32[] call(a), '
                               'to_apply=f.1\n}\n',
    'signatures': 'HloModule m\n%neg (n: f32[2]) -> f32[2] {\n %n = f32[2]{0} parameter(0)\n ROOT %m = f32[2]{0} negate(%n)\n}\n\n'
                  'ENTRY %e (a: f32[2], b: (f32[], s32[])) -> f32[2] {\n a = f32[2] parameter(0)\n b = (f32[], s32[]) '
                  'parameter(1)\n ROOT r = f32[2] call(a), to_apply=neg\n}\n',
    'signature of none': 'HloModule m\nENTRY e () -> f32[] {\n ROOT c = f32[] constant(1)\n}\n',
    'no header': NEG + 'ENTRY e {\n a = f32[2] parameter(0)\n ROOT r = f32[2] call(a), to_apply=neg\n}\n',
    'no header, no ENTRY': NEG + 'g {\n a = f32[2] parameter(0)\n ROOT r = f32[2] call(a), to_apply=neg\n}\n',
    'only ENTRY': 'ENTRY e { ROOT x = f32[] parameter(0) }',
    'no ENTRY': 'HloModule m\n' + NEG + 'g {\n a = f32[2] parameter(0)\n ROOT r = f32[2] call(a), to_apply=neg\n}\n',
    'ENTRY first': 'HloModule m\nENTRY e { ROOT x = f32[] parameter(0) }\n' + NEG,
    'stray colon': 'HloModule m:\nENTRY e { ROOT x = f32[] parameter(0) }\n',
    'name with a percent': 'HloModule %m\nENTRY %e { ROOT %x = f32[] parameter(0) }\n',
    'execution_thread': 'HloModule m\nt { ROOT x = f32[] parameter(0) }, execution_thread="other"\n'
                        'ENTRY e { x = f32[] parameter(0)\n ROOT r = f32[] negate(x) }\n',
    'tables': 'HloModule m\n\nFileNames\n1 "a.py"\n2 "b\\"c.py"\n\nFunctionNames\n1 "f"\n2 "g"\n\nFileLocations\n'
              '1 {file_name_id=1 function_name_id=2 line=3 end_line=4 column=5 end_column=6}\n'
              '2 {file_name_id=2 function_name_id=1 line=7 end_line=8 column=9 end_column=10}\n\nStackFrames\n'
              '1 {file_location_id=2 parent_frame_id=1}\n2 {file_location_id=1 parent_frame_id=2}\n\n\n'
              'ENTRY e { ROOT x = f32[] parameter(0), metadata={op_name="n" stack_frame_id=2} }\n',
    'recovery table': 'HloModule m, origin_recovery_table={\n  {"a"} : {"b"},\n  "\n   ENTRY r {\n    ROOT p = f32[2] parameter(0)\n'
                      '   }\n  "\n}\nENTRY e { ROOT x = f32[2] parameter(0) }\n',
    'alias of parts': 'HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {0}, must-alias) }, buffer_donor={ (1, '
                      '{1}) }\nENTRY e {\n a = f32[2] parameter(0)\n b = (f32[2], f32[2]) parameter(1)\n g = f32[2] '
                      'get-tuple-element(b), index=0\n ROOT t = (f32[2], f32[2]) tuple(a, g)\n}\n',
    'layout unlike the entry': 'HloModule m, entry_computation_layout={(f32[2,3]{0,1})->f32[2,3]{0,1}}\nENTRY e {\n ROOT a = '
                               'f32[2,3] parameter(0)\n}\n',
    'one instruction': '%x = f32[2] add(f32[2] %a, f32[2] %b)',
    'one instruction with ROOT': 'ROOT x = f32[2] add(f32[2]{0} a, f32[2] a), metadata={op_name="k"}',
    'one instruction, inline': 'x = f32[2] fusion(f32[2] a), kind=kLoop, calls={ p = f32[2] parameter(0)\nROOT n = f32[2] '
                               'negate(p) }',
    'one instruction without a name': 'f32[2] add(f32[2] a, f32[2] b)',
    'one constant': 'c = f32[2] constant({1, 2})',
    'one dot': '%d = f32[2,4]{1,0} dot(f32[2,3]{1,0} %l, f32[3,4]{1,0} %r), lhs_contracting_dims={1}, rhs_contracting_dims={0}',
    # Modules with asynchronous operations.
    'async-start': 'HloModule m\n' + TWICE + 'ENTRY e {\n a = f32[2] parameter(0)\n s = ((f32[2]), f32[2]) async-start(a), '
                   'calls=twice\n u = ((f32[2]), f32[2]) async-update(s)\n ROOT d = f32[2] async-done(u)\n}\n',
    'async-start with calls everywhere': 'HloModule m\n' + TWICE + 'ENTRY e {\n a = f32[2] parameter(0)\n s = ((f32[2]), f32[2], '
                                         's32[]) async-start(a), calls=twice\n u = ((f32[2]), f32[2], s32[]) async-update(s), '
                                         'calls=twice\n ROOT d = f32[2] async-done(u), calls=twice\n}\n',
    'async-start of one operation': 'HloModule m\n' + NEG + 'ENTRY e {\n a = f32[2] parameter(0)\n s = ((f32[2]), f32[2]) '
                                    'async-start(a), calls=neg\n u = ((f32[2]), f32[2]) async-update(s)\n ROOT d = f32[2] '
                                    'async-done(u)\n}\n',
    'async-start on a thread': 'HloModule m\nw {\n n = f32[2] parameter(0)\n o = f32[2] negate(n)\n ROOT m = f32[2] negate(o)\n}, '
                               'execution_thread="t"\nENTRY e {\n a = f32[2] parameter(0)\n s = ((f32[2]), f32[2]) '
                               'async-start(a), async_execution_thread="t", calls=w\n ROOT d = f32[2] async-done(s)\n}\n',
    'async-start with its thread everywhere': 'HloModule m\nw {\n n = f32[2] parameter(0)\n o = f32[2] negate(n)\n ROOT m = f32[2] '
                                              'negate(o)\n}, execution_thread="t"\nENTRY e {\n a = f32[2] parameter(0)\n s = ((f32[2]), '
                                              'f32[2]) async-start(a), async_execution_thread="t", calls=w\n u = ((f32[2]), f32[2]) '
                                              'async-update(s), async_execution_thread="t", calls=w\n ROOT d = f32[2] async-done(u), '
                                              'async_execution_thread="t", calls=w\n}\n',
    'call-start': 'HloModule m\n' + NEG + 'ENTRY e {\n a = f32[2] parameter(0)\n s = ((f32[2]), f32[2]) call-start(a), '
                  'to_apply=neg\n u = ((f32[2]), f32[2]) call-update(s)\n ROOT d = f32[2] call-done(u)\n}\n',
    'call-start on a thread': 'HloModule m\n' + NEG + 'ENTRY e {\n a = f32[2] parameter(0)\n s = ((f32[2]), f32[2]) call-start(a), '
                              'async_execution_thread="host", to_apply=neg\n ROOT d = f32[2] call-done(s)\n}\n',
    'fusion-start': 'HloModule m\n' + NEG + 'ENTRY e {\n a = f32[2] parameter(0)\n s = ((f32[2]), f32[2]) fusion-start(a), '
                    'kind=kLoop, calls=neg\n u = ((f32[2]), f32[2]) fusion-update(s)\n ROOT d = f32[2] fusion-done(u)\n}\n',
    'reduce-scatter-start': 'HloModule m\n' + ADD + 'ENTRY e {\n a = f32[2] parameter(0)\n s = ((f32[2]), f32[1]) '
                            'reduce-scatter-start(a), replica_groups={{0,1}}, dimensions={0}, to_apply=add\n'
                            ' u = ((f32[2]), f32[1]) reduce-scatter-update(s)\n ROOT d = f32[1] reduce-scatter-done(u)\n}\n',
}
ASYNC = {  # Entry bodies with asynchronous operations.
    'negate': AB + ' s = ((f32[2]), f32[2]) negate-start(a)\n u = ((f32[2]), f32[2]) negate-update(s)\n'
              ' ROOT d = f32[2] negate-done(u)',
    'abs': A2 + ' s = ((f32[2]), f32[2], u32[]) abs-start(a), metadata={op_name="x"}\n ROOT d = f32[2] abs-done(s)',
    'add': AB + ' s = ((f32[2], f32[2]), f32[2], s32[]) add-start(a, b), backend_config="z"\n ROOT d = f32[2] add-done(s)',
    'add of one': A2 + ' s = ((f32[2], f32[2]), f32[2]) add-start(a, a)\n ROOT d = f32[2] add-done(s)',
    'slice': ' a = f32[8] parameter(0)\n s = ((f32[8]), f32[4], s32[]) slice-start(a), slice={[0:4]}\n ROOT d = f32[4] '
             'slice-done(s)',
    'dynamic-update-slice': ' a = f32[4] parameter(0)\n u = f32[2] parameter(1)\n i = s32[] parameter(2)\n s = ((f32[4], f32[2], '
                            's32[]), f32[4], u32[]) dynamic-update-slice-start(a, u, i)\n ROOT d = f32[4] '
                            'dynamic-update-slice-done(s)',
    'dynamic-slice': ' a = f32[4] parameter(0)\n i = s32[] parameter(1)\n s = ((f32[4], s32[]), f32[2], u32[]) '
                     'dynamic-slice-start(a, i), dynamic_slice_sizes={2}\n ROOT d = f32[2] dynamic-slice-done(s)',
    'all-to-all': A2 + ' s = ((f32[2]), f32[2]) all-to-all-start(a), replica_groups={{0,1}}, dimensions={0}\n ROOT d = f32[2] '
                  'all-to-all-done(s)',
    'dot': AB + ' s = ((f32[2], f32[2]), f32[]) dot-start(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n'
           ' ROOT d = f32[] dot-done(s)',
    'custom-call': AB + ' s = ((f32[2]), f32[2], s32[]) custom-call-start(a), custom_call_target="foo"\n u = ((f32[2]), f32[2], '
                   's32[]) custom-call-update(s)\n ROOT d = f32[2] custom-call-done(u)',
    'custom-call thread': A2 + ' s = ((f32[2]), f32[2], s32[]) custom-call-start(a), async_execution_thread="sparse", '
                          'custom_call_target="foo", frontend_attributes={a="b"}, metadata={op_name="n"}, '
                          'backend_config={"a":1}\n ROOT d = f32[2] custom-call-done(s), metadata={op_name="k"}',
    'custom-call of none': ' s = ((), f32[2], s32[]) custom-call-start(), custom_call_target="foo"\n ROOT d = f32[2] '
                           'custom-call-done(s)',
    'two': AB + ' s = ((f32[2]), f32[2]) negate-start(a)\n t = ((f32[2]), f32[2]) negate-start(b)\n d = f32[2] negate-done(s)\n'
           ' f = f32[2] negate-done(t)\n ROOT r = f32[2] add(d, f)',
    'aliased': A2 + ' s = ((f32[2]), f32[2]) negate-start(a), output_to_operand_aliasing={{1}: (0, {})}\n ROOT d = f32[2] negate-done(s)',
    'aliased within': A2 + ' s = ((f32[2]), f32[2]) custom-call-start(a), custom_call_target="t", output_to_operand_aliasing={{}: (0, {})}'
                      '\n ROOT d = f32[2] custom-call-done(s)',
    'aliased reduce-scatter': A2 + ' s = ((f32[2]), f32[1]) reduce-scatter-start(a), dimensions={0}, replica_groups={{0,1}}, to_apply={'
                              ' x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT z = f32[] add(x, y) }, '
                              'output_to_operand_aliasing={{}: (0, {})}, async_execution_thread="t"\n ROOT d = f32[1] reduce-scatter-done(s)',
    'main thread': A2 + ' s = ((f32[2]), f32[2]) negate-start(a), async_execution_thread="main"\n ROOT d = f32[2] negate-done(s), '
                   'async_execution_thread="main"',
    'sharded': A2 + ' s = ((f32[2]), f32[2]) negate-start(a), sharding={{replicated}, {replicated}}\n ROOT d = f32[2] '
               'negate-done(s), sharding={replicated}',
}


def entry(body, header='m'):
    return f'HloModule {header}\nENTRY e {{\n{body}\n}}\n'


def good():
    for op in UNARY_FLOAT:
        yield f'opcode {op}', entry(A2 + f' ROOT c = f32[2] {op}(a)')
    for op in BINARY_FLOAT:
        yield f'opcode {op}', entry(AB + f' ROOT c = f32[2] {op}(a, b)')
    for op in BINARY_INT:
        yield f'opcode {op} of s32', entry(' a = s32[2] parameter(0)\n' + f' ROOT c = s32[2] {op}(a, a)')
    for op in ACCURATE:
        yield f'{op} mode', entry(A2 + f' ROOT c = f32[2] {op}(a), result_accuracy={{mode=highest}}')
        yield f'{op} tolerance', entry(A2 + f' ROOT c = f32[2] {op}(a), result_accuracy={{tolerance={{atol=0.5,rtol=1e-05,'
                                            'ulps=2}}')
    for name in ELEMENT_TYPES:
        yield f'type {name}', entry(f' a = {name}[2,3] parameter(0)\n ROOT c = {name}[3,2]{{1,0}} transpose(a), dimensions={{1,0}}')
    for shape in SHAPES:
        yield f'shape {shape}', entry(f' ROOT c = {shape} parameter(0)')
    for literal in LITERALS:
        shape, value = literal.split(' ', 1) if literal[0] != '(' else split_tuple(literal)
        yield f'literal {literal}', entry(f' ROOT c = {shape} constant({value})')
    for sharding in SHARDINGS:
        yield f'sharding {sharding}', entry(f' ROOT a = f32[8] parameter(0), sharding={sharding}')
    for sharding in TUPLE_SHARDINGS:
        yield f'sharding {sharding}', entry(f' ROOT a = (f32[8], s32[]) parameter(0), sharding={sharding}')
    for groups in REPLICA_GROUPS:
        yield f'replica_groups {groups}', entry(f' a = f32[8] parameter(0)\n ROOT c = f32[8] all-to-all(a), '
                                                f'replica_groups={groups}, dimensions={{0}}')
    for metadata in METADATA:
        yield f'metadata {metadata}', entry(A2 + f' ROOT c = f32[2] negate(a), metadata={metadata}')
    for attr in COMMON:
        yield attr, entry(AB + f' ROOT c = f32[2] add(a, b), {attr}')
    for attr in HEADERS:
        yield f'header {attr}', entry(A2 + ' ROOT c = f32[2] negate(a)', f'm, {attr}')
    for window in WINDOWS:
        yield f'window {window}', entry(
            ' a = f32[1,8,8,3] parameter(0)\n k = f32[3,3,3,16] parameter(1)\n ROOT c = f32[1,6,6,16] convolution(a, k), '
            f'window={{{window}}}, dim_labels=b01f_01io->b01f')
    for labels in DIM_LABELS:
        yield f'dim_labels {labels}', entry(
            ' a = f32[8,8,8,8] parameter(0)\n k = f32[3,3,3,3] parameter(1)\n ROOT c = f32[6,6,6,6] convolution(a, k), '
            f'window={{size=3x3}}, dim_labels={labels}')
    for count in ('feature_group_count=3', 'batch_group_count=2', 'feature_group_count=1', 'operand_precision={high,highest}'):
        yield f'convolution {count}', entry(
            ' a = f32[2,8,8,3] parameter(0)\n k = f32[3,3,1,6] parameter(1)\n ROOT c = f32[2,6,6,6] convolution(a, k), '
            f'window={{size=3x3}}, dim_labels=b01f_01io->b01f, {count}')
    yield 'convolution without a window', entry(' a = f32[8,8] parameter(0)\n k = f32[8,8] parameter(1)\n ROOT c = f32[8,8] '
                                                'convolution(a, k), dim_labels=bf_io->bf')
    for algorithm in ALGORITHMS:
        yield f'algorithm {algorithm}', entry(AB + ' ROOT c = f32[] dot(a, b), lhs_contracting_dims={0}, '
                                              f'rhs_contracting_dims={{0}}, algorithm={algorithm}')
    for precision in ('default,default', 'high,highest', 'highest,default'):
        yield f'precision {precision}', entry(AB + ' ROOT c = f32[] dot(a, b), lhs_contracting_dims={0}, '
                                              f'rhs_contracting_dims={{0}}, operand_precision={{{precision}}}')
    for direction in 'EQ NE GE GT LE LT'.split():
        yield f'direction {direction}', entry(AB + f' ROOT c = pred[2] compare(a, b), direction={direction}')
    for kind in 'kLoop kInput kOutput kCustom'.split():
        yield f'fusion {kind}', 'HloModule m\n' + NEG + (f'ENTRY e {{\n a = f32[2] parameter(0)\n ROOT c = f32[2] fusion(a), '
                                                         f'kind={kind}, calls=neg\n}}\n')
    for version in ('API_VERSION_ORIGINAL', 'API_VERSION_STATUS_RETURNING', 'API_VERSION_STATUS_RETURNING_UNIFIED',
                    'API_VERSION_TYPED_FFI'):
        yield version, entry(A2 + f' ROOT c = f32[2] custom-call(a), custom_call_target="t", api_version={version}')
    for schedule in 'SCHEDULE_NONE SCHEDULE_LATEST SCHEDULE_EARLIEST'.split():
        yield schedule, entry(A2 + f' ROOT c = f32[2] custom-call(a), custom_call_target="t", schedule={schedule}')
    for name, body in BODIES.items():
        yield name, entry(body)
    for name, body in ASYNC.items():
        yield f'async {name}', entry(body)
    yield from MODULES.items()
    for name, body in INLINE.items():
        yield name, entry(body)
    yield 'inline and named', 'HloModule m\n_ { a = f32[2] parameter(0)\n ROOT t = f32[2] negate(a) }\n_.1 { a = f32[2] parameter(0)\n' \
                              ' ROOT t = f32[2] negate(a) }\n' + 'ENTRY e {\n' + INLINE['inline twice'] + '\n}\n'


# Invalid modules that XLA's reader accepts: they are read and printed as XLA does, and rejected when verified.
LAX = {
    'layout {1,1}': ' ROOT c = f32[2,3]{1,1} parameter(0)',
    'layout {2,-1}': ' ROOT c = f32[2,3]{2,-1} parameter(0)',
    'layout from 2^64-1': ' ROOT c = f32[2,3]{18446744073709551615,0} parameter(0)',
    'layout that ends early': ' ROOT c = f32[2,3]{1,0:T(8} parameter(0)',
    'layout that ends after a comma': ' ROOT c = f32[2,3]{1,0:T(8,} parameter(0)',
    'memory space that ends early': ' ROOT c = f32[2,3]{1,0:S(5} parameter(0)',
    'split config that ends early': ' ROOT c = f32[2,3]{1,0:SC(1:1,2)(0:1} parameter(0)',
    'tile without parentheses': ' ROOT c = f32[2,3]{1,0:T} parameter(0)',
    'split config without parentheses': ' ROOT c = f32[2,3]{1,0:SC} parameter(0)',
    'tail padding without parentheses': ' ROOT c = f32[2,3]{1,0:L} parameter(0)',
    'constant without braces': ' ROOT c = f32[2,2] constant(3)',
    'constant without commas': ' ROOT c = f32[2,2] constant({{1 2}{3 4}})',
    'constant without spaces': ' ROOT c = f32[7] constant({1.5nan 2e1-inf 5.-3-4})',
    'constant with many commas': ' ROOT c = f32[2] constant({,,1,,2,})',
    **{f'elided {shape} {value}': f' ROOT c = {shape} constant({value})' for shape, value in (
        ('f32[2,2]', '{1, ...}'), ('f32[2,2]', '{...}'), ('f32[2,2]', '{1, 2, 3, 4, ...}'), ('f32[2,2]', '{{1, 2}, 3, ...}'),
        ('f32[2,2]', '{1, {2, 3}, ...}'), ('f32[2,2]', '{{1, 2}, ...}'), ('f32[2,2]', '{1 2 ...}'),
        ('f32[2,2]', '{1.5...}'), ('f32[2,2]', '{nan(0x1), -inf, ...}'), ('f32[2,2]', '{1, /*a*/ ...}'),
        ('f32[2,2,2]', '{1, ...}'), ('f32[2,2,2]', '{{{1, 2}, {3, 4}}, 5, ...}'), ('s8[1,3]', '{-1, ...}'), ('pred[2,2]', '{true, 0, ...}'),
        ('f8e4m3fn[1,1]', '{448, ...}'), ('f32[1000]', '{1, 2, ...}'), ('f32[100,100]', '{1, 2, ...}'), ('f32[0,3]', '{...}'),
        ('(f32[2,2], s32[])', '({1, ...}, 1)'))},
    'tuple constant without commas': ' ROOT c = (f32[2], s32[]) constant(({1,2}3))',
    'tuple constant without braces': ' ROOT c = (f32[2], s32[]) constant((1, 3))',
    **{f'{sign}inf in {name}': f' ROOT c = {name}[] constant({sign}inf)' for sign in ('', '-') for name in
       'f4e2m1fn f8e4m3fn f8e4m3fnuz f8e5m2fnuz f8e4m3b11fnuz f8e8m0fnu'.split()},
    'stray commas': A2 + ' ROOT c = f32[2] add(,a,,a,)',
    'only a comma': ' ROOT c = () tuple(,)',
    'broadcast without a shape': A2 + ' ROOT c = broadcast(a), dimensions={3,5}',
    'add of a scalar': A2 + ' b = f32[] parameter(1)\n ROOT c = add(a, b)',
    'add of unlike types': A2 + ' b = bf16[2] parameter(1)\n ROOT c = add(a, b)',
    'compare of unlike dimensions': ' a = f32[1,3] parameter(0)\n b = f32[2,1] parameter(1)\n ROOT c = compare(a, b), direction=LT',
    'complex of a scalar': A2 + ' b = f32[] parameter(1)\n ROOT c = complex(a, b)',
    'numbers from 2^63 on': A2 + ' b = s32[] constant(1)\n ROOT c = f32[2] set-dimension-size(a, b), dimensions={18446744073709551615}',
}
# Instructions whose shape XLA's reader infers, regardless of the text.
for opcode, operands, others in (('send', 'a, t', 'channel_id=1'), ('recv', 't', 'channel_id=1'), ('infeed', 't', ''), ('outfeed', 'a, t', ''),
                                 ('after-all', 't', ''), ('add-dependency', 'a, t', ''), ('send-done', 's', 'channel_id=1'),
                                 ('recv-done', 'r', 'channel_id=2')):
    LAX |= {f'{opcode} of {shape}': f' a = f32[2]{{0:S(3)}} parameter(0)\n t = token[] after-all()\n s = (f32[2], u32[], token[]) send(a, t), '
                                    f'channel_id=1\n r = (f32[2]{{0:S(1)}}, u32[], token[]) recv(t), channel_id=2\n ROOT c = {shape} '
                                    f'{opcode}({operands}){others and ", "}{others}'
            for shape in ('(f32[2]{0:S(5)}, u32[]{:S(2)}, token[])', '(f32[2]{0:S(5)}, token[])', '((f32[3]{0}, s32[]), s32[], pred[2])', '(f32[])')}
for opcode, rest in (('all-gather', ''), ('reduce-scatter', ', to_apply={ x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT z = f32[] add(x, y) }'),
                     ('get-dimension-size', ''), ('all-gather-start', '')):
    LAX[f'{opcode} along two'] = f' a = f32[4,4] parameter(0)\n ROOT c = s32[] {opcode}(a), dimensions={{1,0}}{rest}'
LAX['set-dimension-size along two'] = ' a = f32[4,4] parameter(0)\n b = s32[] constant(1)\n ROOT c = f32[4,4] set-dimension-size(a, b), dimensions={1,0}'
# Valid but unusual modules.
ODD = {
    **{f'constant of {shape}': f' ROOT c = {shape} constant({value})' for shape, value in (
        ('f32[4]', '1.5'), ('pred[2]', 'true'), ('s32[1]', '3'), ('(f32[2], s32[3])', '(1, 2)'), ('s4[4]{0:E(4)}', '{1, 2, 3, 4}'),
        ('(s4[2]{0:T(8)E(4)S(1)}, u4[]{:E(4)})', '({1, 2}, 3)'), ('f4e2m1fn[2,1]{0,1:E(4)}', '{{1}, {2}}'), ('(f32[<=2])', '({1, 2})'))},
    **{f'literal {value}': A2 + f' ROOT c = f32[2] custom-call(a), custom_call_target="t", literal={value}' for value in (
        '(s32[] 1, f32[] 2)', '( s32[2]{0:S(1)} {1, 2} )', '()', '((), (pred[] true))', '(s32[] 1,)', '(s32[] 1 f32[] 2)', 's4[2]{0:E(4)} {1, 2}',
        '(b(f32[2]{0}) {1, 2})', '(f32[2,2]{0,1} {{1, 2}, {3, 4}}, u8[] 7)')},
    **{f'mode {opcode} {mode}': f' a = f32[4] parameter(0)\n ROOT c = f32[4] {opcode}(a), mode={mode}, use_global_device_ids=true, to_apply={{\n'
                                '  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT z = f32[] add(x, y)\n }' + rest
       for opcode, mode, rest in (('all-reduce', 'cross_replica', ', channel_id=1'), ('all-reduce', 'flattened_id', ', channel_id=1'),
                                  ('all-reduce-start', 'cross_partition', ', channel_id=1'),
                                  ('reduce-scatter', 'cross_replica_and_partition', ', channel_id=1, dimensions={0}'))},
    'ragged-all-to-all along one': ' a = f32[4] parameter(0)\n i = s32[2] parameter(1)\n ROOT c = f32[4] ragged-all-to-all(a, a, i, i, i, i), dimensions={0}',
    'outfeed of its operand': A2 + ' t = token[] after-all()\n ROOT c = token[] outfeed(a, t)',
    'empty window': A2 + ' ROOT c = f32[2] custom-call(a), custom_call_target="t", window={}',
    'operands in operands': A2 + ' ROOT c = f32[2] ' + 'add(a, f32[2] ' * 500 + 'negate(' * 500 + 'a' + ')' * 1000,
    'tuples in tuples': ' ROOT c = ' + '(' * 200 + 'f32[2]' + ')' * 200 + ' parameter(0), origin={' + '(' * 200 + '{"a"}' + ')' * 200 + '}',
    'constant in tuples': ' ROOT c = ' + '(' * 200 + 's32[]' + ')' * 200 + ' constant(' + '(' * 200 + '7' + ')' * 200 + ')',
    'origin in tuples': A2 + ' ROOT c = f32[2] negate(a), origin={' + '(' * 1200 + '{"a"}' + ')' * 1200 + '}',
    'names with colons': ' a: = f32[2] parameter(0)\n true:= f32[2] negate(a:)\n ROOT c = f32[2] negate(true:)',
    'shape over lines': ' ROOT c = f32 [\n2\n,3]\n{1,0} parameter(0)',
    'comments in a shape': ' ROOT c = f32/*c*/[/*d*/2,/*e*/3/*f*/]/*g*/{/*h*/1,/*i*/0/*j*/} parameter(0)',
    'comments in a list': ' a = f32[8,4] parameter(0)\n ROOT c = f32[4,8] transpose(a), dimensions={/*a*/1,/*b*/0/*c*/}',
    'comments in front of values': A2 + ' ROOT c = pred[2] compare(a, a), direction=/*d*/EQ, metadata={source_line=/*e*/3}',
    'buffer with a space': ' ROOT c = b (f32[2]) parameter(0)',
    'broadcast of a scalar without a shape': ' a = f32[] parameter(0)\n ROOT c = broadcast(a), dimensions={}',
    'empty layout of a scalar': ' ROOT c = f32[]{:} parameter(0)',
    'comments after commas': A2 + ' b = f32[2] negate(a), // a comment\n  metadata={op_name="x"}\n ROOT c = f32[2] add(a, // ,\n b) '
                              '// , sharding=\n , /*, */ metadata={ // }\n op_name="y"//"\n }\n',
    'comments with brackets': ' a = f32[8//]\n,4] parameter(0)\n ROOT c = f32[4,8]{1,0/*}*/} transpose(a), dimensions={ //}\n 1,/*}*/0}',
    'mesh with two commas': " ROOT c = f32[2] parameter(0), sharding={mesh['a'=2],, [{'a'}]}",
    'bounded constant': ' ROOT c = f32[<=2] constant({1, 2})',
    'constant in a buffer': ' ROOT c = b(f32[2]) constant({1, 2})',
    'dimensions of 2^63-1': ' ROOT c = f32[9223372036854775807,9223372036854775807] parameter(0)',
}


# Equal names, nested and in sequence, which are made unique by numbers.
INNER = 'f32[2] call(a), to_apply={\n a = f32[2] parameter(0)\n ROOT t = f32[2] %s\n }'
INLINE = {
    'inline in itself': f' a = f32[2] parameter(0)\n r = {INNER % "negate(a)"}\n ROOT t = f32[2] add(r, r)',
    'inline twice': f' a = f32[2] parameter(0)\n r = {INNER % "negate(a)"}\n s = {INNER % "abs(a)"}\n ROOT t = f32[2] add(r, s)',
    'inline twice nested': f' a = f32[2] parameter(0)\n r = {INNER % (INNER % "negate(a)")[7:]}\n ROOT t = f32[2] add(a, r)',
    'inline after an operand': f' a = f32[2] parameter(0)\n b = {INNER % "negate(negate(a))"}\n ROOT t = f32[2] add(negate(a), b)',
    'inline branches': ' p = s32[] parameter(0)\n a = f32[2] parameter(1)\n ROOT r = f32[2] conditional(p, a, a, a), branch_computations={'
                       + ', '.join(INNER.split('=', 1)[1] % f'{op}(a)' for op in ('negate', 'abs', 'exponential')) + '}',
    'inline predicate': ' p = pred[] parameter(0)\n a = f32[2] parameter(1)\n ROOT r = f32[2] conditional(p, a, a), true_computation='
                        + INNER.split('=', 1)[1] % 'negate(a)' + ', false_computation=' + INNER.split('=', 1)[1] % 'abs(a)',
    'inline while': ''' i = (f32[2], s32[]) parameter(0)
 ROOT w = (f32[2], s32[]) while(i), condition={
  i = (f32[2], s32[]) parameter(0)
  g = s32[] get-tuple-element(i), index=1
  c = s32[] constant(5)
  ROOT l = pred[] compare(g, c), direction=LT
 }, body={
  i = (f32[2], s32[]) parameter(0)
  g = f32[2] get-tuple-element(i), index=0
  h = s32[] get-tuple-element(i), index=1
  c = f32[2] fusion(g), kind=kLoop, calls={
   i = f32[2] parameter(0)
   ROOT c = f32[2] negate(i)
  }
  ROOT w = (f32[2], s32[]) tuple(c, h)
 }''',
    'inline reduction and async': ''' a = f32[4] parameter(0)
 z = f32[] constant(0)
 r = f32[] reduce(a, z), dimensions={0}, to_apply={
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
 }
 s = ((f32[4]), f32[4], s32[]) async-start(a), calls={
  a = f32[4] parameter(0)
  ROOT n = f32[4] negate(a)
 }
 d = f32[4] async-done(s)
 n = f32[4] negate(d)
 ROOT t = (f32[], f32[4]) tuple(r, n)''',
    'inline async in inline': ''' a = f32[4] parameter(0)
 s = ((f32[4]), f32[4], s32[]) negate-start(a)
 d = f32[4] negate-done(s)
 n = f32[4] call(d), to_apply={
  a = f32[4] parameter(0)
  s = ((f32[4]), f32[4], s32[]) abs-start(a)
  ROOT d = f32[4] abs-done(s)
 }
 ROOT negate.anon = f32[4] negate(abs(n))''',
    'inline sort and scatter': ''' a = f32[4] parameter(0)
 i = s32[1] parameter(1)
 b = f32[4] sort(a), dimensions={0}, to_apply={
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT
 }
 u = f32[1] slice(b), slice={[0:1]}
 ROOT c = f32[4] scatter(b, i, u), update_window_dims={0}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, index_vector_dim=0, to_apply={
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
 }''',
}


def lax():
    for name, body in {**LAX, **ODD}.items():
        yield name, entry(body)
    for text in ('add(f32[2], f32[2])', 'ROOT %x = f32[2] add(f32[2]{0}, f32[2]{0}), metadata={op_name="n"}', 'x = f32[2] add(f32[2] %a, f32[2])',
                 '(f32[2]{0:S(1)}) tuple(f32[2]{0:S(1)})', 'x = f32[2] add(f32[2] %_1, f32[2])',
                 'x = f32[2] custom-call((f32[2], s32[]), token[]), custom_call_target="t"',
                 'x = ((f32[2]), f32[2]) negate-start(f32[2])', 'f32[2] fusion(f32[2]), kind=kLoop, calls={ a = f32[2] parameter(0)\n ROOT n = f32[2] negate(a) }'):
        yield f'instruction {text}', text if '=' in text.split('(')[0] or text[0] == '(' else f'f32[2] {text.removeprefix("f32[2] ")}'
    thread = ', execution_thread="%s"\n'
    for given, started in ((thread % 'x', 'x'), (thread % 'x', 'y'), (thread % 'x', 'main'), ('\n', 'x'), (thread % 'main', 'x')):
        for called in (NEG.rstrip(), TWICE.rstrip(), NEG + 'two { n = f32[2] parameter(0)\n o = f32[2] negate(n)\n ROOT p = f32[2] call(o), to_apply=neg }'):
            name = called.split('\n')[-2 if called.endswith('}\n') else 0].split(' {')[0] if 'two {' not in called else 'two'
            yield f'thread {given!r} {started} {name}', 'HloModule m\n' + called + given + 'ENTRY e {\n' + A2 + \
                f' s = ((f32[2]), f32[2]) async-start(a), calls={name}, async_execution_thread="{started}"\n ROOT d = f32[2] async-done(s)\n}}\n'
    yield 'signature without colons', 'HloModule m\nENTRY e (a f32[2], b: s32[]) -> f32[2] { a = f32[2] parameter(0)\n' \
                                      ' b = s32[] parameter(1)\n ROOT c = f32[2] negate(a)\n}\n'
    yield 'numbers of rows', 'HloModule m\n\nFileNames\n7 "a.py"\n7 "b.py"\n\nFunctionNames\n-1 "f"\n\nFileLocations\n2 {file_name_id=1 ' \
                             'function_name_id=1 line=3 end_line=4 column=5 end_column=6}\n\nStackFrames\n0 {file_location_id=1 ' \
                             'parent_frame_id=1}\n\n\nENTRY e { ROOT a = f32[2] parameter(0), metadata={op_name="n" stack_frame_id=1} }\n'
    yield 'computation with a colon', 'HloModule m:\nENTRY e: { ROOT a = f32[2] parameter(0) }\n'


def split_tuple(literal):
    depth = 0
    for i, c in enumerate(literal):
        depth += (c == '(') - (c == ')')
        if not depth:
            return literal[:i + 1], literal[i + 2:]
    raise ValueError(literal)
