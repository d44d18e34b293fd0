#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests every word of the tables, and jaxlib's keywords, as a name in every position: hlo-fp8-opt rejects what jaxlib
rejects, and accepts the others."""
import pathlib
import re
import sys

import _converter
import _jaxlib_text
import _script

KEYWORDS = ('inf nan true false manual replicated maximal unknown unreduced ROOT ENTRY HloModule shard_as shard_like FileNames '
            'last_tile_dim_replicate FunctionNames FileLocations StackFrames last_tile_dims devices mesh device_ids sparse dense '
            'b e s t T L D E M S C x y w f32x NaN INF Infinity b01f_01io dim_labels tuple token opaque arrow u3 f8').split()
PLACES = {
    'instruction': 'ENTRY e {{\n  {w} = f32[] parameter(0)\n  ROOT r = f32[] negate({w})\n}}\n',
    '%instruction': 'ENTRY e {{\n  %{w} = f32[] parameter(0)\n  ROOT r = f32[] negate(%{w})\n}}\n',
    'root': 'ENTRY e {{\n  ROOT {w} = f32[] parameter(0)\n}}\n',
    'operand': 'ENTRY e {{\n  %{w} = f32[] parameter(0)\n  ROOT r = f32[] negate({w})\n}}\n',
    'operand with a shape': 'ENTRY e {{\n  %{w} = f32[] parameter(0)\n  ROOT r = f32[] negate(f32[] {w})\n}}\n',
    'control predecessor': 'ENTRY e {{\n  %{w} = f32[] parameter(0)\n  ROOT r = f32[] negate(%{w}), control-predecessors={{{w}}}\n}}\n',
    'computation': '{w} {{\n  ROOT a = f32[] parameter(0)\n}}\n\nENTRY e {{\n  ROOT a = f32[] parameter(0)\n}}\n',
    'computation with a signature': '{w} (a: f32[]) -> f32[] {{\n  ROOT a = f32[] parameter(0)\n}}\n\n'
                                    'ENTRY e {{\n  ROOT a = f32[] parameter(0)\n}}\n',
    'called': '%{w} {{\n  ROOT a = f32[] parameter(0)\n}}\n\nENTRY e {{\n  a = f32[] parameter(0)\n'
              '  ROOT r = f32[] call(a), to_apply={w}\n}}\n',
    'branches': '%{w} {{\n  ROOT a = f32[] parameter(0)\n}}\n\nENTRY e {{\n  a = f32[] parameter(0)\n  p = s32[] parameter(1)\n'
                '  ROOT r = f32[] conditional(p, a, a), branch_computations={{{w}, {w}}}\n}}\n',
    'entry': 'ENTRY {w} {{\n  ROOT a = f32[] parameter(0)\n}}\n',
    'entry with a signature': 'ENTRY {w} (x: f32[]) -> f32[] {{\n  ROOT a = f32[] parameter(0)\n}}\n',
    'parameter': 'ENTRY e ({w}: f32[]) -> f32[] {{\n  ROOT a = f32[] parameter(0)\n}}\n',
    'module': 'ENTRY e {{\n  ROOT a = f32[] parameter(0)\n}}\n',
}


def words():
    found = set(KEYWORDS)
    root = pathlib.Path(__file__).resolve().parents[3]
    for table in 'op', 'attr', 'type', 'attr_value':
        for quoted in re.findall(r'"([^"\n]*)"', (root / f'ir/table/{table}.def').read_text()):
            found.update(word for word in quoted.split() if re.fullmatch(r'[A-Za-z_][\w.-]*', word))
    return sorted(found | {word.upper() for word in found})


def main():
    args = _script.parser().parse_args()
    names = words()
    cases = [(place, word, f'HloModule {word if place == "module" else "m"}\n\n' + text.format(w=word))
             for place, text in PLACES.items() for word in names]
    converter = _converter.Converter(args.bin)
    failed = refused = 0
    for (place, word, text), theirs in zip(cases, _jaxlib_text.read([text for _, _, text in cases])):
        try:
            converter.convert(text.encode())
            said = None
        except _converter.Refused as error:
            said = str(error)
        refused += said is not None
        if (said is None) != isinstance(theirs, list):
            failed += 1
            print(f'{word} as {place}: jaxlib {"reads" if said else "refuses"} it, we say {said or "nothing"}'[:400])
    converter.close()
    print(f'{len(cases)} names, {refused} refused, {failed} failed')
    return 1 if failed or len(names) < 300 or refused < 300 else 0


if __name__ == '__main__':
    sys.exit(main())
