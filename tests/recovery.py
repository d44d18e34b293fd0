#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that each mistake causes one error: each bracket, comma, quote, `=` and `->` of two modules, and each word of
a definition, is omitted in turn. A second mistake, in the second to last line, must also be reported, and nothing else.

usage: recovery.py hlo-fp8-opt

Computations in an attribute are excluded: after a missing brace, the following text belongs to the wrong computation.
"""
import re
import subprocess
import sys
import tempfile

LONG = r'''HloModule m, is_scheduled=true, entry_computation_layout={(f32[8]{0})->f32[]}, num_partitions=2

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(f32[] %a, f32[] %b)
}

%body (t: (f32[8], s32[])) -> (f32[8], s32[]) {
  %t = (f32[8]{0}, /*index=1*/s32[]) parameter(0)
  %g = f32[8]{0} get-tuple-element((f32[8]{0}, s32[]) %t), index=0
  %i = s32[] get-tuple-element(%t), index=1
  %k = f32[2,2]{1,0} constant({{1, 2}, {3, 4}})
  ROOT %u = (f32[8]{0}, s32[]) tuple(%g, %i), sharding={{devices=[2]<=[2]}, {replicated}}, metadata={op_name="x/y" source_line=3}
}, execution_thread="t"

%cond (t: (f32[8], s32[])) -> pred[] {
  %t = (f32[8]{0}, s32[]) parameter(0)
  %i = s32[] get-tuple-element(%t), index=1
  %n = s32[] constant(5)
  ROOT %l = pred[] compare(%i, %n), direction=LT
}

ENTRY %e (x: f32[8]) -> f32[] {
  %x = f32[8]{0} parameter(0), frontend_attributes={a="b",c={d="e"}}
  %z = s32[] constant(0)
  %w = (f32[8]{0}, s32[]) tuple(%x, %z)
  %v = (f32[8]{0}, s32[]) while(%w), condition=%cond, body=%body, backend_config={"known_trip_count":{"n":"5"}}
  %y = f32[8]{0} get-tuple-element(%v), index=0
  %c = f32[8]{0} custom-call(%y), custom_call_target="foo", operand_layout_constraints={f32[8]{0}}, backend_config="{\"a\":1}"
  %o = f32[] constant(0)
  ROOT %r = f32[] reduce(%c, %o), dimensions={0}, to_apply=%add, control-predecessors={%v}
}

%other {
  %q = f32[4] parameter(0), metadata={op_name="z"}
  ROOT %w = f32[4] negatee(%q)
}
'''
SHORT = '''HloModule m

scale {
  p = f32[8] parameter(0)
  two = f32[] constant(2)
  d = f32[8] broadcast(two), dimensions={}
  ROOT m = f32[8] multiply(p, d)
}

ENTRY e {
  x = f32[8] parameter(0), metadata={op_name="a"}
  y = f32[8] call(x), to_apply=scale, sharding={replicated}
  i = s32[] constant(0)
  s = f32[4] slice(y), slice={[0:8:2]}
  two = f32[] constant(2)
  u = f32[8] pad(s, two), padding=1_3
  c = f32[8] conditional(i, y, x), branch_computations={scale, scale}
  ROOT r = f32[8] add(c, y)
}

other {
  q = f32[4] parameter(0), metadata={op_name="z"}
  ROOT w = f32[4] negatee(q)
}
'''
TOKEN = re.compile(r'''"(?:[^"\\]|\\.)*"|/\*.*?\*/|%?[A-Za-z_][\w.\-]*|-?\d[\w.]*|->|<=|.''', re.S)


def texts():
    """Yields (omitted text, its line, the text without it)"""
    for module in (LONG, SHORT):
        for token in TOKEN.finditer(module, 0, module.index('other') - 1):
            word, at = token.group(), token.start()
            line = module[:at].count('\n') + 1
            starts = re.compile(r'\n  (ROOT )?%?[\w]+ = ').match(module, module.rfind('\n', 0, at))
            if word in '(){}[]=,->' or starts and at < starts.end() and not word.isspace() and word != 'ROOT':
                yield word, line, module[:at] + module[token.end():]
            elif word[0] == '"':
                yield 'opening "', line, module[:at] + module[at + 1:]
                yield 'closing "', line, module[:token.end() - 1] + module[token.end():]


def main():
    cases, errors = list(texts()), {}
    with tempfile.NamedTemporaryFile('w', suffix='.hlo') as file:
        file.write('// -----\n'.join(text for _, _, text in cases))
        file.flush()
        ran = subprocess.run([sys.argv[1], '--passes=', '--max-errors=1000000', file.name], capture_output=True, text=True)
        for line, said in re.findall(r'^%s:(\d+):\d+: error: (.*)' % re.escape(file.name), ran.stderr, re.M):
            errors[int(line)] = errors.get(int(line), []) + [said]
    failed, first = ran.returncode != 1, 1
    for word, line, text in cases:
        lines = text.count('\n') + 1
        told = {n - first + 1: errors[n] for n in range(first, first + lines) if n in errors}
        first += lines
        last = told.pop(text[:text.index('negatee')].count('\n') + 1, [])
        # An omission at the end of a line is reported in the next line; an omitted `}` at the next computation.
        reach = 100 if word == '}' else 2
        if len(last) != 1 or sum(map(len, told.values())) > 1 or any(not line <= n <= line + reach for n in told):
            failed = True
            print(f'without {word!r} in line {line}, {text.split(chr(10))[line - 1]!r}: {told} {last}')
    print(f'{len(cases)} mistakes')
    return 1 if failed or len(cases) < 300 else 0


if __name__ == '__main__':
    sys.exit(main())
