#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks on mutated texts that hlo-fp8-opt accepts the texts that jaxlib accepts, as the same modules.

In modules of _text_modules.py and _text_forms.py, a word or an attribute is omitted, doubled, exchanged with another or
replaced; or space and comments are inserted between words. Semantic errors that jaxlib's reader reports may be reported
by hlo-fp8-opt's verifier. Texts that jaxlib accepts by accident (ACCIDENTS) do not count; other differences must be
rare.
"""
import os
import pathlib
import random
import re
import subprocess
import sys

import _jaxlib_text
import _script
import _text_forms
import _text_modules

SPLIT = '// -----\n'
WORD = re.compile(r'''"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|//[^\n]*|/\*.*?\*/|%?[A-Za-z_][\w.\-]*|-?\d[\w.]*|->|<=|\.\.\.|\s+|.''', re.S)
ATTRIBUTE = re.compile(r', [a-z_\-]+=(?:\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}|"(?:[^"\\]|\\.)*"|[^,\s{}]+)')
NUMBER = re.compile(r'(?<![\w.%])-?\d+(?![\w.])')
GAPS = ('/**/', ' ', '\n', '/*,{]"=*/', '//{,"=\n', '\t/* x */\r\n', '')
NUMBERS = ('0', '1', '2', '3', '5', '7', '-1', '10', '12', '1.5', '01')
MAX = {'jaxlib alone reads': 0.001, 'jaxlib alone refuses': 0.001, 'read as another module': 0.001}

# Patterns of texts that jaxlib misreads: it drops or invents a part.
ACCIDENTS = {
    'numbers that do not follow are 0': r'(atol|rtol|ulps)= *[,}]',
    'an alias without a number has any': r'\( *, *\{',
    'the first name of statistics is not looked at': r'statistics=\{(?!visualizing_index=)\w+',
    'what stands between two parts of an origin is dropped': r'origin=\{.*(\{\S*\} *\(|, *,|\) *\(|\( *,)',
    'a `*` outside a tile is dropped': r'T\([\d*, ]*[\d*] *\*|:\*\w|\*\)\(',
    'an operand that is a word of the language is dropped': r'\((\S+, )*(f32|s32|pred|after-all|inf|nan|true|false|manual|replicated|maximal)[,)]',
    'the third operand of a product is dropped': r'= dot\(\w+, \w+, ',
    'the second operand of a generator is dropped': r' rng-bit-generator\(\w+, ',
    'a window of a negative size': r'size=-',
}


def is_accident(text):
    orders = [[int(n) for n in order.split(',')] for order in re.findall(r'T\((\d+(?:,\d+)*)\)', text)]
    swapped = re.search(r'<=', text) and any(sorted(order) != list(range(len(order))) for order in orders)
    unclosed = any(origin.count('(') != origin.count(')') for origin in re.findall(r'origin=.*', text))
    return swapped or unclosed or any(re.search(pattern, text) for pattern in ACCIDENTS.values())


def replaced(text, match, by):
    return text[:match.start()] + by + text[match.end():]


def mutated(text, rng, words, attributes):
    kind = rng.randrange(10)
    if kind > 7:
        words_of = list(WORD.finditer(text))
        for at in sorted({rng.choice(words_of).end() for _ in range(rng.choice((1, 1, 2, 6)))}, reverse=True):
            text = text[:at] + rng.choice(GAPS) + text[at:]
        return text
    found = list((NUMBER if kind < 2 else ATTRIBUTE if kind < 4 else WORD).finditer(text))
    found = [m for m in found if not m.group().isspace() and not m.group().startswith('//')]
    if len(found) < 2:
        return text
    one, other = sorted(rng.sample(found, 2), key=lambda m: m.start())
    if kind < 2:
        return replaced(text, one, rng.choice(NUMBERS))
    if kind < 4:
        return replaced(text, one, rng.choice(('', '', rng.choice(attributes), one.group() + rng.choice(attributes))))
    if kind == 4:
        return replaced(text, one, '')
    if kind == 5:
        return replaced(text, one, one.group() + rng.choice(('', ' ')) + one.group())
    if kind == 6:
        return replaced(replaced(text, other, one.group()), one, other.group())
    return replaced(text, one, rng.choice((other.group(), rng.choice(words))))


def sample(count, seed):
    rng = random.Random(seed)
    modules = [text for table in (_text_modules.good, _text_modules.lax, _text_forms.forms) for _, text in table()]
    modules = [text for text in modules if len(text) < 3000 and SPLIT not in text and '...' not in text and text.isascii()]
    words = sorted({w for text in modules for w in WORD.findall(text) if not w.isspace() and len(w) < 40 and w[:2] != '//'})
    attributes = sorted({a for text in modules for a in ATTRIBUTE.findall(text) if len(a) < 80})
    made = {mutated(rng.choice(modules), rng, words, attributes): None for _ in range(count)}
    return [text.rstrip('\n') + '\n' for text in made if 'HloModule' in text and '\n//' not in text]


def refused(program, path, texts, *options):
    """Returns the indices of the texts that hlo-fp8-opt rejects, and, if it rejects none, the printed modules."""
    path.write_text(SPLIT.join(texts))
    ran = subprocess.run([program, '--passes=', '--max-errors=0', *options, path], capture_output=True)
    lines = {int(n) for n in re.findall(rb'^%s:(\d+):\d+: error: ' % re.escape(str(path).encode()), ran.stderr, re.M)}
    if ran.returncode not in (0, 1) or (ran.returncode == 1) != bool(lines):
        raise RuntimeError(f'status {ran.returncode}: {ran.stderr[-2000:]}')
    out, first = set(), 1
    for i, text in enumerate(texts):
        behind = first + text.count('\n') + 1
        if any(line in lines for line in range(first, behind)):
            out.add(i)
        first = behind
    return out, ran.stdout.decode('latin-1').split(SPLIT)


def another(text, printed, forms):
    """Returns whether two texts are different modules to a new jaxlib process. In a process that has read other
    texts, the answer may depend on these."""
    return _jaxlib_text.read([text], forms) != _jaxlib_text.read([printed], forms)


def main():
    parser = _script.parser()
    parser.add_argument('--count', type=int, default=1500)
    parser.add_argument('--seed', type=int, default=1)
    args = parser.parse_args()
    program, path = os.path.join(args.bin, 'hlo-fp8-opt'), pathlib.Path(args.work) / 'in.hlo'
    texts = sample(args.count, args.seed)
    forms = ('long', 'canonical')
    theirs = _jaxlib_text.read(texts, forms)
    no, _ = refused(program, path, texts, '--no-verify')
    read = [i for i in range(len(texts)) if i not in no]
    both = [i for i in read if isinstance(theirs[i], list)]
    none, printed = refused(program, path, [texts[i] for i in both], '--no-verify')
    if none or len(printed) != len(both):
        raise RuntimeError('what was read once is not read again')
    back = dict(zip(both, zip(printed, _jaxlib_text.read(printed, forms))))
    told = {why: [] for why in MAX}
    for i, text in enumerate(texts):
        if isinstance(theirs[i], list) and i in no:
            told['jaxlib alone reads'] += [] if is_accident(text) else [(text, theirs[i][0])]
        elif isinstance(theirs[i], str) and i not in no and not refused(program, path, [text])[0]:
            told['jaxlib alone refuses'].append((text, theirs[i]))
        elif i in back and back[i][1] != theirs[i] and not refused(program, path, [text])[0] and another(text, back[i][0], forms):
            told['read as another module'].append((text, back[i][0]))
    print(f'{len(texts)} texts, {len(both)} read by both')
    failed = len(both) < len(texts) // 8
    for why, cases in told.items():
        print(f'{why}: {len(cases)}')
        if len(cases) > MAX[why] * len(texts):
            failed = True
            for text, answer in cases:
                print(f'{text}=> {answer[:600]}\n')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
