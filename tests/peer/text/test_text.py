#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that hlo-fp8-opt reads and prints text as XLA's reader and printer do.

Tests every module of --models, in the forms that XLA can print (names with and without %, operands with and without
shapes, with and without signatures, layouts and metadata), and one small module per construct of HLO text. jaxlib must
read the print as the same module as the text, printing must be idempotent, and for the original modules the print must
equal XLA's. Texts that jaxlib rejects must be rejected.
"""
import os
import pathlib
import subprocess
import sys

from jaxlib import _hlo

import _converter
import _script

ENTRY = 'HloModule m\nENTRY e {{\n{}\n}}\n'
TWO = ' a = f32[2]{0} parameter(0)\n b = f32[2]{0} parameter(1)\n'

# Bodies of an entry; rows that begin with HloModule are whole texts.
READ = [
    TWO + ' ROOT c = f32[2]{0} add(a, b)',
    TWO + ' ROOT c = f32[2] add(f32[2]{0} a, f32[2] %b)',
    TWO + ' ROOT c = add(a, b)',
    TWO + ' ROOT c = f32[2] add(negate(a), f32[2] multiply(b, f32[2] constant({1, 2})))',
    TWO + ' c = f32[2] add(a, b)',
    TWO + ' // a comment\n ROOT /* another\n one */ c = f32[2]{0} /**/ add(a, // b\n b)',
    ' ROOT c = f32[2,3]{0,1} constant({{1, 2.5, -3e-9}, {inf, -inf, nan}})',
    ' ROOT c = f32[2,1,3] constant({{{1,2,3}},{{4,5,6}}})',
    ' ROOT c = f32[4] constant({-nan, nan(0x7fc00), 1.17549435e-38, 3.40282347e+38})',
    ' ROOT c = f64[3] constant({0.1, 1e300, -9.2233720368547758e+18})',
    ' ROOT c = f16[3] constant({65504, 6e-8, 0.1})',
    ' ROOT c = bf16[4] constant({3.39e+38, 1e-40, 0.1, nan})',
    ' ROOT c = f8e4m3fn[5] constant({448, 464, 0.3125, -nan, 0.00195})',
    ' ROOT c = f8e5m2[3] constant({57344, inf, 1.3e+02})',
    ' ROOT c = f8e4m3fnuz[2] constant({240, nan})',
    ' ROOT c = f8e8m0fnu[3] constant({1, 2, 1.7e+38})',
    ' ROOT c = f4e2m1fn[4] constant({6, 0.5, 1000, -1.5})',
    ' ROOT c = f6e2m3fn[6] constant({7.5, 0.125, 1000, -1.5, 0.0625, -0.0})',
    ' ROOT c = f6e3m2fn[6] constant({28, 0.0625, 1000, -1.5, 0.03125, -0.0})',
    ' ROOT c = s4[2] constant({-8, 7})',
    ' ROOT c = u4[2] constant({0, 15})',
    ' ROOT c = s8[3] constant({-128, 127, 18446744073709551615})',
    ' ROOT c = s64[3] constant({-9223372036854775808, 9223372036854775807, 18446744073709551615})',
    ' ROOT c = u64[3] constant({18446744073709551615, -1, 0})',
    ' ROOT c = pred[3] constant({1, false, true})',
    ' ROOT c = pred[] constant(true)',
    ' ROOT c = c64[2] constant({(1, -2.5), (nan, inf)})',
    ' ROOT c = c128[] constant((0.1, 1e-300))',
    ' ROOT c = (f32[2], s32[], (pred[])) constant(({1, 2}, 3, (true)))',
    ' ROOT c = f32[0,3] constant({})',
    ' ROOT c = f32[2,0] constant({{},{}})',
    ' ROOT c = f32[4,3]{1,0:T(8,128)(2,1)E(16)S(5)} parameter(0)',
    ' ROOT c = f32[4,3]{1,0:T(2,*)L(64)M(16)} parameter(0)',
    ' ROOT c = f32[4,3]{1,0:S(5)SC(1:2)} parameter(0)',
    ' ROOT c = f32[]{:S(5)} parameter(0)',
    ' ROOT c = f32[<=10, ?, 3] parameter(0)',
    ' a = ((f32[2], ()), token[], b(s32[4])) parameter(0)\n'
    ' ROOT c = token[] get-tuple-element(a), index=1',
    ' p = (f32[1], f32[2], f32[3], f32[4], f32[5], /*index=5*/f32[6]) parameter(0)\n'
    ' ROOT c = f32[6] get-tuple-element(p), index=5',
    ' a = f32[8,4] parameter(0)\n ROOT c = f32[4,2] slice(a), slice={[0:8:2], [1:3]}',
    ' a = f32[8,4] parameter(0)\n z = f32[] constant(0)\n'
    ' ROOT c = f32[11,4] pad(a, z), padding=1_2x-1_1_0',
    ' a = f32[3] parameter(0)\n z = f32[] constant(0)\n ROOT c = f32[8] pad(a, z), padding=1_2_1',
    ' ROOT i = s32[2,3] iota(), iota_dimension=1',
    TWO + ' ROOT c = pred[2] compare(a, b), direction=LT, type=TOTALORDER',
    TWO + ' ROOT c = f32[] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0},'
    ' operand_precision={highest,default}, algorithm=dot_bf16_bf16_f32_x3',
    ' a = f32[1,8,8,3] parameter(0)\n k = f32[3,3,3,16] parameter(1)\n'
    ' ROOT c = f32[1,4,4,16] convolution(a, k), window={size=3x3 stride=2x2 pad=0_1x0_1'
    ' rhs_dilate=1x1}, dim_labels=b01f_01io->b01f, feature_group_count=1',
    TWO + ' ROOT c = f32[2] add(a, b), metadata={op_type="t", op_name="it\'s \\"q\\" \\\\ \\303\\251\\n"'
    ' source_file="x.py" source_line=3}, backend_config="a\\"b"',
    TWO + " ROOT c = f32[2] add(a, b), metadata={op_name='single'}",
    TWO + ' ROOT c = f32[2] add(a, b), sharding={devices=[2]<=[2]}, control-predecessors={a, %b}',
    TWO + ' ROOT c = f32[2] add(a, b), frontend_attributes={k="v",n={x="}"}}, statistics='
    '{visualizing_index=0,a=1.5}',
    TWO + ' ROOT c = (f32[2]) custom-call(a, b), custom_call_target="t$x", api_version='
    'API_VERSION_TYPED_FFI, custom_call_has_side_effect=true, operand_layout_constraints='
    '{f32[2]{0}, f32[2]{0}}, output_to_operand_aliasing={{0}: (1, {})}, backend_config={"a": {"b": "}"}}',
    TWO + ' ROOT c = f32[2] custom-call(a), custom_call_target="t", literal=s32[2]{0} {4, 5}',
    ' a = f32[4] parameter(0)\n ROOT c = f32[8] all-gather(a), dimensions={0}, replica_groups='
    '[1,2]<=[2], channel_id=1, use_global_device_ids=true',
    ' a = f32[4] parameter(0)\n ROOT c = f32[4] collective-permute(a), source_target_pairs={{0,1},{1,0}}',
    ' a = f32[4] parameter(0)\n t = token[] after-all()\n ROOT o = token[] outfeed(a, t),'
    ' outfeed_shape=f32[4]{0}, outfeed_config="x"',
    ' a = f32[4] parameter(0)\n s = u64[2] rng-get-and-update-state(), delta=4096\n'
    ' ROOT o = (f32[4], u64[2]) tuple(a, s)',
    'ENTRY e { ROOT x = f32[] parameter(0) }',
    'f { ROOT x = f32[] parameter(0) }\n\ng { ROOT x = f32[] parameter(0) }',
    'HloModule m\nadd { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT add = f32[] add(a, b) }\n'
    'ENTRY e { p = f32[4] parameter(0)\n add = f32[] constant(0)\n'
    ' ROOT r = f32[] reduce(p, add), dimensions={0}, to_apply=add }',
    'HloModule m\nENTRY e { p = f32[4] parameter(0)\n z = f32[] constant(0)\n'
    ' ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply={ q = f32[] parameter(0)\n'
    ' s = f32[] parameter(1)\n ROOT t = f32[] add(q, s) } }',
    'HloModule m\nt { ROOT x = f32[] parameter(0) }\nf { ROOT x = f32[] parameter(0) }\n'
    'ENTRY e { i = s32[] parameter(0)\n x = f32[] parameter(1)\n'
    ' ROOT r = f32[] conditional(i, x, x), branch_computations={t, %f} }',
    'HloModule m\nt { ROOT x = f32[] parameter(0) }, execution_thread="other"\n'
    'ENTRY e { x = f32[] parameter(0)\n ROOT r = f32[] negate(x) }',
    'HloModule m, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }, replica_count=2, '
    'num_partitions=4, frontend_attributes={a="b"}, entry_computation_layout={(f32[2]{0})->f32[2]{0}}\n'
    'ENTRY %e (x: f32[2]) -> f32[2] {\n  ROOT %x = f32[2]{0} parameter(0)\n}\n',
    'HloModule m\n\nFileNames\n1 "a.py"\n\nFunctionNames\n1 "f"\n2 "g"\n\nFileLocations\n'
    '1 {file_name_id=1 function_name_id=2 line=3 end_line=4 column=5 end_column=6}\n'
    '2 {file_name_id=1 function_name_id=1 line=7 end_line=8 column=9 end_column=10}\n\nStackFrames\n'
    '1 {file_location_id=2 parent_frame_id=1}\n2 {file_location_id=1 parent_frame_id=2}\n\n\n'
    'ENTRY e { ROOT x = f32[] parameter(0), metadata={stack_frame_id=2} }',
]

REFUSED = [
    '', 'x', 'HloModule m', '\x7fELF', 'HloModule m\nENTRY e {\n}\n',
    TWO + ' ROOT c = f32[2] addd(a, b)',
    TWO + ' ROOT c = f33[2] add(a, b)',
    TWO + ' ROOT c = f32[2] add(a)',
    TWO + ' ROOT c = f32[2] add(a, bb)',
    TWO + ' a = f32[2] add(a, b)',
    TWO + ' ROOT c = f32[2] add(a, b), dimensions={0}',
    TWO + ' ROOT c = f32[2] add(a, b), nope=1',
    TWO + ' ROOT c = f32[2] add(a, b), metadata={op_name="a"}, metadata={op_name="a"}',
    TWO + ' ROOT c = pred[2] compare(a, b)',
    TWO + ' ROOT c = f32[2] add(a b)',
    TWO + ' ROOT c = f32[2] add(a, b), metadata={op_name="a}',
    TWO + ' ROOT c = f32[2] add(a, f32[3] b)',
    TWO + ' ROOT c = f32[2] add(a, b)\n ROOT d = f32[2] add(a, b)',
    TWO + ' ROOT c = f32[2] call(a, b), to_apply=nope',
    ' ROOT c = f32[]{} parameter(0)',
    ' ROOT c = f32[-1] parameter(0)',
    ' ROOT c = f32[9223372036854775808] parameter(0)',
    ' ROOT c = f32[2]{0,1} parameter(0)',
    ' ROOT c = f32[2] constant({1})',
    ' ROOT c = f32[2] constant({1, 2, 3})',
    ' ROOT c = f32[2] constant({1, x})',
    ' ROOT c = s8[] constant(128)',
    ' ROOT c = s32[] constant(1.0)',
    ' ROOT c = s32[] constant(1e3)',
    ' ROOT c = f8e4m3fn[] constant(465)',
    ' ROOT c = f16[] constant(65520)',
    ' ROOT c = f64[] constant(1e400)',
    ' ROOT c = u64[] constant(18446744073709551616)',
    ' ROOT c = f8e8m0fnu[] constant(-1)',
    ' ROOT c = f32[] constant(.5)',
    ' ROOT c = f32[] constant(0x10)',
    ' ROOT c=f32[] parameter(0)',
    ' ROOT c = f32[] parameter(0)\0',
    'HloModule m, nope=1\nENTRY e { ROOT x = f32[] parameter(0) }',
    'HloModule m\nENTRY e { ROOT x = f32[] parameter(0) }\nENTRY f { ROOT x = f32[] parameter(0) }',
    'HloModule m\nENTRY e (x: f32[]) -> f32[2] { ROOT x = f32[] parameter(0) }',
]


def text_of(snippet):
    whole = not snippet.startswith(' ')
    return snippet if whole else ENTRY.format(snippet)


def options(**changes):
    made = _hlo.HloPrintOptions()
    made.print_large_constants = True
    for name, value in changes.items():
        setattr(made, name, value)
    return made


FORMS = {
    'short': lambda: _hlo.HloPrintOptions.short_parsable(),
    'no percent': lambda: options(print_percent=False),
    'operand shapes': lambda: options(print_operand_shape=True),
    'no signature': lambda: options(print_program_shape=False, print_percent=False),
    'no metadata': lambda: options(print_metadata=False, print_operand_shape=True, print_percent=False),
}


class Checker:
    def __init__(self, folder, work):
        self.program, self.work = os.path.join(folder, 'hlo-fp8-opt'), pathlib.Path(work)
        self.converter = _converter.Converter(folder)
        self.passed = self.failed = 0

    def run(self, text):
        path = self.work / 'in.hlo'
        path.write_bytes(text.encode('latin-1'))
        return subprocess.run([self.program, '--passes=', '--no-verify', path], capture_output=True)

    def verdict(self, name, what):
        if not what:
            self.passed += 1
            return
        self.failed += 1
        print(f'{name}: {what}')

    def printed(self, text):
        return self.converter.convert(text.encode('latin-1')).decode('latin-1')

    def same(self, name, text, exact=False):
        try:
            printed = self.printed(text)
        except _converter.Refused as error:
            return self.verdict(name, f'refused: {error}')
        try:
            back = _hlo.hlo_module_from_text(printed)
        except Exception as error:
            return self.verdict(name, f'jaxlib does not read the print: {error}')
        wanted = _hlo.hlo_module_from_text(text).to_string(options())
        got = back.to_string(options())
        if got != wanted:
            lines = [(a, b) for a, b in zip(wanted.split('\n'), got.split('\n')) if a != b]
            return self.verdict(name, f'another module: wanted, got\n{lines[0][0]}\n{lines[0][1]}')
        if exact and printed != text:
            return self.verdict(name, 'not the text itself')
        self.verdict(name, '' if self.printed(printed) == printed else 'the print does not come back')

    def refused(self, text):
        try:
            _hlo.hlo_module_from_text(text)
            return self.verdict(repr(text), 'jaxlib reads it')
        except Exception:
            pass
        ours = self.run(text)
        first = ours.stderr.decode('latin-1').split('\n')[0]
        right = ours.returncode == 1 and not ours.stdout and ': error: ' in first
        self.verdict(repr(text), '' if right else f'status {ours.returncode}, said {first}')


def main():
    args = _script.parser().parse_args()
    checker = Checker(args.bin, args.work)
    models = sorted(pathlib.Path(args.models).glob('*.hlo'))
    for path in models:
        text = path.read_text(encoding='latin-1')
        checker.same(path.name, text, exact=True)
        module = _hlo.hlo_module_from_text(text)
        for form, make in FORMS.items():
            checker.same(f'{path.name} ({form})', module.to_string(make()))
    for snippet in READ:
        checker.same(snippet, text_of(snippet))
    for snippet in REFUSED:
        checker.refused(text_of(snippet))
    checker.converter.close()
    print(f'{checker.passed} passed, {checker.failed} failed')
    return 1 if checker.failed or not models else 0


if __name__ == '__main__':
    sys.exit(main())
