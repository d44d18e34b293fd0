#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that binary modules are read and written as by XLA's reader and writer.

Tests every module of --models, and one small module per construct. jaxlib's bytes, printed as text by hlo-fp8-opt, must
be the same module to jaxlib. hlo-fp8-opt's bytes of the text must be the same module to jaxlib as jaxlib's own bytes.
Each message that contains the bytes is read identically, the bytes round-trip through text, and the text format of the message
is equal to the bytes for protobuf.
"""
import pathlib
import re
import subprocess
import sys

from jaxlib import _hlo

import _converter
import _proto_unknown
import _script
import _text_forms
import _text_modules
import test_text

TWO = test_text.TWO
SUM = 'HloModule m\nadd {\n p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT z = f32[] add(p, q)\n}\nENTRY e {\n%s\n}\n'
A = ' a = f32[2]{0} parameter(0)\n'
READ = [TWO + ' ROOT c = f32[2]{0} add(a, b), sharding=' + text for text in (
    "{mesh['a'=2,'b'=4], [{'a', 'b':(2)2, ?}], unreduced={'b':(1)2}}",
    "{mesh['a'=2,'b'=4], device_ids=(7,6,5,4,3,2,1,0), [{'a'}]}",
    "{mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)), [{'a'}]}", "{mesh['a'=2], [{}]}", "{mesh['a'=2], [{?}]}",
    "{maximal_mesh[device_id=5]}", '{maximal device=1 metadata={op_name="a"}}',
    '{devices=[2,2]0,1,2,3 last_tile_dims={manual} metadata={{op_name="a"}, {op_name="b" source_line=3}}}',
    "{replicated shard_as 1}", "{devices=[2,2,2]<=[2,2,2]T(2,1,0) last_tile_dims={manual, replicated} shard_like 1}",
    "{devices=[2,1,2]<=[4] last_tile_dim_replicate}", "{manual}", "{unknown}", "{unreduced}", "{replicated}")] + [
    TWO + ' ROOT c = (f32[2],(f32[2],f32[2])) tuple(a, b), origin={({"a" {0}}, ({}, {"c" {1,2}}))}',
    *('HloModule m, origin_recovery_table={\n%s}\nENTRY e { ROOT x = f32[2] parameter(0), origin={{"a"}} }\n' % table for table in (
        '{"a"} : {"b" {0,1}},\n"\nHloModule r\nENTRY r { ROOT p = f32[2] parameter(0), metadata={op_name=\\"q\\\\\\"\\"} }\n"\n'
        '{"c" {1}} : {"d"},\n"ENTRY s { ROOT p = f32[] constant(1) }"', '{"a"} : {"b"}', '{"a"} : {}')),
    A + ' ROOT c = f32[2] negate(a), origin={{"a"}}', A + ' ROOT c = f32[2] negate(a), origin={[synthetic_call]}',
    A + ' ROOT c = f32[2] negate(a), metadata={op_name="n" metadata_payload="x"}',
    TWO + ' ROOT c = (f32[2]{0}, f32[2]{0}) tuple(a, b), sharding={{replicated}, {manual}}',
    A + ' ROOT c = f32[2]{0} exponential(a), result_accuracy={tolerance={atol=0.5,rtol=0.25,ulps=3}}',
    A + ' ROOT c = f32[2]{0} exponential(a), result_accuracy={mode=highest}',
    TWO + ' ROOT c = f32[2]{0} add(a, b), metadata={op_type="t" op_name="x" source_file="f" source_line=3'
    ' source_end_line=4 source_column=1 source_end_column=2 profile_type={1} deduplicated_name="d" scheduling_name="s"}',
    A + ' ROOT c = f32[2]{0} collective-permute(a), source_target_pairs={{0,1},{1,2}}',
    ' a = f32[8,8] parameter(0)\n i = s32[] parameter(1)\n t = (s32[], s32[]) tuple(i, i)\n u = ((s32[], s32[]), (s32[], s32[])) '
    'tuple(t, t)\n ROOT c = f32[8,8] collective-permute(a, a, u, u), source_target_pairs={{0,1},{1,0}}, slice_sizes={{4,2},{2,4}}',
    ' a = f32[8,8] parameter(0)\n b = f32[8] parameter(1)\n c = (f32[8,8], f32[8]) tuple(a, b)\n i = s32[] parameter(2)\n'
    ' t = (s32[], s32[]) tuple(i, i)\n u = (s32[]) tuple(i)\n v = ((s32[], s32[]), (s32[])) tuple(t, u)\n ROOT d = (f32[8,8], '
    'f32[8]) collective-permute(c, c, v, v), source_target_pairs={{0,1},{1,0}}, slice_sizes={{4,2},{4}}',
    A + ' ROOT c = f32[2]{0} domain(a), domain={kind="sharding", entry={maximal device=0}, exit={maximal device=1}}',
    A + ' ROOT c = f32[2]{0} custom-call(a), custom_call_target="x", output_to_operand_aliasing={{}: (0, {})},'
    ' schedule=SCHEDULE_LATEST, padding_type=PADDING_SAME, operand_layout_constraints={f32[2]{0}}',
    A + ' ROOT c = f32[2]{0} custom-call(), custom_call_target="x\\n\\001", operand_layout_constraints={}',
    A + ' ROOT c = (f32[2]{0}, f32[2]{0}, u32[]) copy-start(a), cross_program_prefetch_index=0',
    *(A + f' ROOT c = f32[2]{{0}} topk(a), k=1{largest}' for largest in (', largest=true', ', largest=false', '')), A + ' ROOT c = f32[2]{0} reshape(a), inferred_dimension=0',
    ' a = f32[1,8,8,3] parameter(0)\n k = f32[3,3,3,16] parameter(1)\n ROOT c = f32[1,8,8,16] convolution(a, k),'
    ' window={size=3x3 pad=1_1x1_1 rhs_reversal=1x1 lhs_dilate=2x1}, dim_labels=b01f_01io->b01f, convolution_kind=dgrad,'
    ' sparsity_config={lhs={sparsity=2x4 dimension=1 stride=1} rhs={sparsity=1x4 dimension=0 stride=2}}',
    ' a = f32[2,4] parameter(0)\n ROOT c = f32[2,4] triangular-solve(a, a), lower=true, transpose_a=NO_TRANSPOSE',
    ' t = token[] after-all()\n ROOT c = (f32[2], u32[], token[]) recv(t), channel_id=1, is_host_transfer=true',
    ' t = token[] after-all()\n ROOT c = (f32[2], token[]) infeed(t), infeed_config="ab"',
    TWO + ' ROOT d = pred[2]{0} compare(a, b), direction=EQ, type=TOTALORDER',
    ' ROOT c = c64[2] constant({(1,2),(3,4)})', ' ROOT c = u4[3] constant({1,2,15})', ' ROOT c = s2[3] constant({1,-2,-1})',
    ' ROOT c = f4e2m1fn[3] constant({1,-2,6})', ' ROOT c = bf16[3] constant({1,-2,6})', ' ROOT c = s16[2] constant({-1,6})',
    ' ROOT c = f8e4m3fn[3] constant({1,-2,nan})', ' ROOT c = f32[2,3]{0,1} constant({{1,2,3},{4,5,nan(0x7fc00)}})',
    ' ROOT c = s4[2,3,2]{1,0,2} constant({{{1,2},{3,-4},{5,6}},{{7,-8},{-1,0},{1,2}}})', ' ROOT c = pred[2] constant({1,0})',
    ' ROOT c = (f32[2], s32[]) constant(({1,2}, 3))', ' ROOT c = u64[2] constant({18446744073709551615, 1})',
    ' ROOT c = f64[2] constant({1e300,-0.0})', ' ROOT c = s8[0] constant({})',
    ' ROOT c = f32[3,8]{0,1:T(8,128)(2,1)L(4)E(32)S(5)SC(0:1,2)M(64)} parameter(0)', ' ROOT c = f32[?,3,<=4] parameter(0)',
    ' ROOT c = ((b(f32[3]), ()), token[], opaque[]) parameter(0)',
    ' a = u64[2] parameter(0)\n ROOT c = (u64[2], u32[4]) rng-bit-generator(a), algorithm=rng_default',
    A + ' ROOT c = f32[2]{0} rng(a, a), distribution=rng_uniform', A + ' ROOT c = c64[2] fft(a), fft_type=RFFT, fft_length={2}',
    A + ' ROOT c = (f32[2]{0}) all-to-all(a), replica_groups={}, constrain_layout=true',
    SUM % (A + ' ROOT c = f32[2] all-reduce(a), to_apply=add, replica_groups=mesh[\'a\'=2,\'b\'=2] {\'a\'}, channel_id=3'),
    SUM % (A + ' ROOT c = f32[2] all-reduce(a), to_apply=add, replica_groups={{0,1},{2,3}}'),
    SUM % (A + ' ROOT c = f32[2] all-reduce(a), to_apply=add, replica_groups=[2,2]<=[2,2]T(1,0)'),
    SUM % (A + ' ROOT c = f32[2] all-reduce(a), to_apply=add'),
    SUM % (A + ' ROOT c = f32[2] custom-call(a), custom_call_target="x", called_computations={add}, operand_precision={high}'),
    SUM % (' a = f32[] parameter(0)\n p = pred[] parameter(1)\n b = (f32[], f32[]) tuple(a, a)\n'
           ' ROOT c = f32[] map(a, a), dimensions={}, to_apply=add'),
    SUM % (A + ' b = f32[] constant(0)\n ROOT d = f32[2] scan(a, b), dimensions={0}, to_apply=add, num_carries=1,'
           ' is_associative=true, is_reverse=true'),
    'HloModule m, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, must-alias) },'
    ' buffer_donor={ (1, {}) }, entry_computation_layout={(f32[2,2]{0,1},f32[2]{0})->(f32[2,2]{0,1}, f32[2]{0})},'
    ' frontend_attributes={a="x",b={c="d"}}\nfused { x = f32[2] parameter(0)\n ROOT y = f32[2] negate(x) }\n'
    # The computation has two operations: a single one is printed as negate-start, and text then lacks the inner names.
    'other { x.1 = f32[2] parameter(0)\n y.1 = f32[2] negate(x.1)\n ROOT z.1 = f32[2] negate(y.1) }, execution_thread="foo"\nENTRY e {\n'
    ' d = f32[2] parameter(1)\n q = f32[2,2]{0,1} parameter(0)\n f = f32[2] fusion(d), kind=kLoop, calls=fused,'
    ' backend_config={"a": {"b": "}"}}\n s = ((f32[2]), f32[2], u32[]) async-start(f), calls=other,'
    ' async_execution_thread="foo"\n n = f32[2] negate(f), control-predecessors={d,q}, backend_config="q\\"x"\n'
    ' g = f32[2] async-done(s)\n ROOT r = (f32[2,2]{0,1}, f32[2]) tuple(q, n)\n}\n',
]

# Constructs that jaxlib cannot read from its own bytes, reads with another value than from text, or aborts on.
OUTSIDE = ('T(2,*)', '(nan, inf)', 'c = f6e')


def varint(value):
    out = b''
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def messages_with(module):
    """Yields the messages of XLA that contain a module, with no, empty or other fields."""
    field = lambda number, value: varint(number << 3 | 2) + varint(len(value)) + value
    empty_array = field(1, b'\x10\x0b\x1a\x01\0') # f32[0]
    yield 'HloProto', field(1, module)
    yield 'HloProto with a buffer assignment', field(1, module) + field(3, field(1, b'\x08\x01'))
    yield 'HloModuleProtoWithConfig', field(1, module) + field(2, b'\x10\x07\x20\x01\x28\x01\x38\x01' + field(14, b'\x08\x01'))
    yield 'HloSnapshot', field(1, field(1, module)) + field(2, empty_array) * 2 + field(3, empty_array) + field(4, b'Host')
    yield 'HloUnoptimizedSnapshot', field(1, module) + field(2, field(1, empty_array)) * 2
    sized = field(1, module) + field(2, field(2, b'\x10\x03'))
    yield 'HloUnoptimizedSnapshot with its size', varint(len(sized)) + sized + b'abc'


class Checker(_converter.Converter):
    def check(self, text):
        try:
            theirs = _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
            wanted = _hlo.HloModule.from_serialized_hlo_module_proto(theirs).to_string(test_text.options())
        except Exception as error:
            return f'jaxlib itself: {error}'
        same = lambda module: module.to_string(test_text.options())
        from_pb = self.convert(theirs, 'text')
        if same(_hlo.hlo_module_from_text(from_pb.decode('latin-1'))) != wanted:
            return 'read from bytes, another module:\n' + difference(same(_hlo.hlo_module_from_text(from_pb.decode('latin-1'))), wanted)
        pb = self.convert(text.encode('latin-1'), 'pb')
        got = same(_hlo.HloModule.from_serialized_hlo_module_proto(pb))
        if got != wanted:
            return 'written as bytes, another module:\n' + difference(got, wanted)
        for name, message in messages_with(theirs):
            if self.convert(message, 'text') != from_pb:
                return f'a module in an {name} is read otherwise'
        again = self.convert(self.convert(pb, 'text'), 'pb')
        if again != pb:
            return 'our bytes do not come back through our text'
        return ''


def difference(got, wanted):
    lines = [f'  wanted {a}\n  got    {b}' for a, b in zip(wanted.split('\n'), got.split('\n')) if a != b]
    return '\n'.join(lines[:3]) or 'one is longer'


def protobuf_says(checker, schema, text):
    """Returns the faults in the text format of a module, using protobuf's reader."""
    pb, form = checker.convert(text.encode('latin-1'), 'pb'), checker.convert(text.encode('latin-1'), 'pbtxt')
    command = ['protoc-c', f'--proto_path={schema.parent}', '--encode=xla.HloModuleProto', schema.name]
    encoded = subprocess.run(command, input=form, capture_output=True)
    if encoded.returncode:
        return encoded.stderr.decode()
    return '' if encoded.stdout == pb else 'other bytes'


# A module, and edits of its text format that make it invalid: position, replacement, and error message.
RIGHT = """HloModule m
ENTRY e {
 a = f32[1,8,8,4] parameter(0), sharding={mesh['a'=2], [{'a'}, {}, {}, {}]}, origin={{"a"}}
 k = f32[3,3,4,6] parameter(1)
 b = b(f32[2]) parameter(2)
 t = (f32[2], s32[]) constant(({1,2}, 3))
 d = f32[1,8,8,4] domain(a), domain={kind="sharding", entry={replicated}, exit={manual}}
 ROOT c = f32[1,6,6,6] convolution(a, k), window={size=3x3}, dim_labels=b01f_01io->b01f
}
"""
WRONG_BYTES = [
    (r'dim_shardings \{\s+axes \{', 'dim_shardings { axes { mesh_axis_index: 5', 'mesh axis 5 does not exist'),
    (r'(original_value \{\s+)', r'\1elements { shape_index: 0 } ', 'the origin does not form a tuple'),
    (r'(element_type: BUFFER\s+)', r'\1tuple_shapes { element_type: F32 } ', 'a buffer must have exactly one array'),
    (r'(element_type: F32\s+)(?=dimensions: 3)', r'\1' + 'dimensions: 1 ' * 100, 'a shape has 104 dimensions'),
    (r'(?=tuple_literals \{)', 'tuple_literals { shape { element_type: S32 } s32s: 3 } ', 'a constant tuple has 3 elements'),
    ('input_feature_dimension: 3', 'input_feature_dimension: 77', "a convolution has invalid dimension number 77"),
    (r'(?=input_spatial_dimensions: 1)', 'input_spatial_dimensions: 1 ' * 12, 'a convolution'),
    (r'(opcode: "parameter"\s)', r'\1 metadata { metadata_payload { id: 7 } } ', 'payload 7 does not exist'),
    (r'domain_exit_sharding \{[^}]*\}', '', 'a side of the domain is missing'),
] + [(r'(opcode: "convolution"\s)', r'\1 sharding { %s } ' % sharding, said) for sharding, said in (
    ('type: MAXIMAL tile_assignment_devices: [0, 1]', 'a maximal sharding requires exactly one device, found 2'),
    ('type: TUPLE tuple_shardings { type: TUPLE }', 'sharding type 2 is invalid here'),
    ('type: OTHER tile_assignment_dimensions: 4 iota_reshape_dims: [2, 2]', 'expected a permutation of 2 dimensions'),
    ('named_sharding { }', 'the mesh is missing'),
    ('named_sharding { mesh { device_ids: [0, 1] } }', 'a maximal sharding has exactly one device'))]
# Constructs that the text form has, but the binary form does not.
NO_BYTES = [
    (' ROOT c = f32[4,3]{1,0:D(D,C)} parameter(0)', "layout property 'D(D,C)' has no binary form"),
    (' ROOT c = (f32[9]) constant(({...}))', 'a constant tuple with an elided element has no binary form'),
    (TWO + " ROOT c = f32[2] add(a, b), sharding={mesh['a'=2], [{}], unreduced=max{'a'}}", 'has no binary form'),
    (TWO + ' ROOT c = f32[2] reduce-precision(a), exponent_bits=5000000000, mantissa_bits=1', "5000000000 is out of range for field 'exponent_bits'"),
]


def accepted(checker, schema):
    """Returns the wrong error messages for invalid bytes, and for text without a binary form."""
    right = checker.convert(RIGHT.encode(), 'pbtxt').decode()
    command = ['protoc-c', f'--proto_path={schema.parent}', '--encode=xla.HloModuleProto', schema.name]
    for pattern, replacement, said in WRONG_BYTES:
        edited, count = re.subn(pattern, replacement, right, count=1)
        encoded = subprocess.run(command, input=edited.encode(), capture_output=True)
        yield from unlike(checker, encoded.stdout, 'text', said if count and encoded.stdout else 'no such edit')
    for body, said in NO_BYTES:
        yield from unlike(checker, test_text.text_of(body).encode(), 'pb', said)


def unlike(checker, data, form, said):
    try:
        checker.convert(data, form)
        yield f'{said}: not refused'
    except ValueError as error:
        if said not in str(error):
            yield f'{said}: {error}'


def lost(checker, messages, text):
    """Returns what happens to unknown fields in every message of a module when the bytes are rewritten."""
    theirs = _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    kinds = []
    data = _proto_unknown.inject(messages, theirs, 'HloModuleProto', kinds)
    again = _proto_unknown.found(messages, checker.convert(data, 'pb'), 'HloModuleProto', {})
    wrong = [f'{kind} {number}' for number, kind in enumerate(kinds, 1) if again.get(number) != kind]
    return ', '.join(wrong)


# Forms that jaxlib reads from text, but cannot read from its own bytes, or reads with another value.
TEXT_ONLY = ('shard_as -1', '<=[0]', '{devices=[2]<=[4]}', '[-2]', "'a'=0", "'a'=-1", '<=[1]}', 'form {high}', '{high,high,high}',
             'form {0}', 'form {{4', 'form { { 4 } }', 'form {source_line', 'form {profile_type', 'form {dedup', 'form ROOT c', 'form f32',
             'form (/*(')

# Modules that jaxlib cannot read from its own bytes, or reads with another value; layouts and constants that have no
# bytes or are not distinguished; names of computations that text lacks.
NO_MODULE = ('1,0:T(2,*', '1,0:T(*,*', '1,0:SC(1:2,1', '1,0:#(', '1,0:*(', '1,0:D(', '1,0:T S', 'literal s1', 'literal u1', 'inf)}', '...',
             'origin_recovery_table={}', 'elided', 'inline', 'async-start of one operation')


def main():
    args = _script.parser().parse_args()
    checker = Checker(args.bin)
    cases = [(p.name, p.read_text(encoding='latin-1')) for p in sorted(pathlib.Path(args.models).glob('*.hlo'))]
    cases += [(s, test_text.text_of(s)) for s in READ + test_text.READ if not any(word in s for word in OUTSIDE)]
    cases += [(name, text) for name, text in _text_forms.forms() if not any(word in name for word in TEXT_ONLY)]
    cases += [(name, text) for name, text in _text_modules.good() if not any(word in name for word in NO_MODULE)]
    failed = 0
    for name, text in cases:
        try:
            wrong = checker.check(text)
        except Exception as error:
            wrong = str(error)
        if wrong:
            failed += 1
            print(f'{name}: {wrong}')
    schema = pathlib.Path(__file__).resolve().parents[3] / 'grammar' / 'proto' / 'hlo.proto'
    for name, text in cases[:3] + [(s, test_text.text_of(s)) for s in READ if 'nan(' not in s]:
        wrong = protobuf_says(checker, schema, text)
        if wrong:
            failed += 1
            print(f'{name}: text format: {wrong}')
    for wrong in accepted(checker, schema):
        failed += 1
        print(f'wrong bytes: {wrong}')
    messages = _proto_unknown.schema(schema)
    for name, text in cases:
        wrong = lost(checker, messages, text)
        if wrong:
            failed += 1
            print(f'{name}: unknown fields are lost: {wrong}')
    checker.close()
    print(f'{len(cases)} modules, {failed} failures')
    return 1 if failed or not cases else 0


if __name__ == '__main__':
    sys.exit(main())
