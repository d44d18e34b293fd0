#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that hlo-fp8-run --compare distinguishes wrong programs from correct ones, on real models.

- Every model with all outputs 5% too large: each float output is rejected, except outputs that are 0 and those whose
  measured noise is too large, which are listed here.
- Deep models with one internal error, in each dot in turn, on inputs like those of a trained model. A dequantizing
  scale is dropped, doubled or taken from the other operand, a square operand is transposed, or a bias or relu is
  missing.
- A training step with each dequantizing scale dropped in turn, compared as modules, which may omit roundings. On inputs
  like those of a trained model, all errors are detected; on normal numbers, half of them are within the noise.
"""
import concurrent.futures
import glob
import os
import re
import subprocess
import sys

import _script

DEEP = ('encoder_qdq_fwd', 'encoder_qdq_train', 'scan_layers', 'mlp_qdq_train')
# These models are slow, and only tested with --long.
LARGE = ('llama_train', 'qkv_shared')
LARGE_DEEP = LARGE[:1]
# e5m2 outputs for which 5% is less than half a step are doubled instead.
COARSE = ('seed_matmul_mixed',)
# Models in which correct executions also differ by 5%: maximum number of outputs that are not rejected, and
# the largest measured noise among these, in percent; with all roundings, and with
# optional roundings to bf16. Untrained, with normal inputs and scales that do not match them, small
# differences after the first layers grow in each later layer.
NOISY = {
    'dense_qdq_fwd': ((0, 0), (1, 2.5)), 'dense_qdq_train': ((0, 0), (2, 3)),
    'encoder_qdq_fwd': ((0, 0), (1, 14)), 'encoder_qdq_train': ((11, 170), (16, 230)),
    'fsdp_quantize': ((0, 0), (1, 2.7)), 'llama_train': ((19, 60), (19, 110)),
    'mlp_qdq_fwd': ((0, 0), (1, 3.6)), 'mlp_qdq_train': ((1, 2.4), (5, 10)),
    'qdq_bf16': ((0, 0), (1, 2)), 'scan_layers': ((0, 0), (1, 5.2)),
    'seed_current_scaling': ((0, 0), (1, 2.3))}
# These gradients are 0 except for rounding: a softmax does not depend on a constant added to all its operands.
ZERO = {'encoder_qdq_train': (42,)}
# On realistic inputs, every dropped scale of this model is detected. On normal numbers, two are not; without --long,
# only these two are tested.
TRAINED = 'encoder_qdq_train'
HIDDEN = ('%dot_general.32: scale of operand 0 dropped', '%dot_general.43: scale of operand 1 dropped')
LINE = re.compile(r'\s+(?:ROOT )?(%[\w.\-]+) = (\S+\[[\d,]*\])(?:\{[^}]*\})? ([\w\-]+)\(([^)]*)\)(.*)')


class Instr:
    """One line of HLO text that defines an array."""

    def __init__(self, match):
        self.name, self.shape, self.op, operands, self.rest = match.groups()
        self.operands = re.findall(r'%[\w.\-]+', operands)
        self.type, dims = self.shape[:-1].split('[')
        self.dims = [int(d) for d in dims.split(',') if d]

    def ints(self, name):
        found = re.search(name + r'=\{([\d,]*)\}', self.rest)
        return [int(d) for d in found[1].split(',') if d] if found else []


class Text:
    """A module's text as lines; names are looked up in the computation that contains a line."""

    def __init__(self, path):
        with open(path) as file:
            self.lines = file.read().split('\n')

    def at(self, line):
        found = LINE.match(self.lines[line])
        return Instr(found) if found else None

    def find(self, name, line):
        while line > 0 and not self.lines[line].endswith('{'):
            line -= 1
            instr = self.at(line)
            if instr and instr.name == name:
                return instr
        return None

    def dots(self):
        return [i for i in range(len(self.lines)) if (x := self.at(i)) and x.op == 'dot']

    def with_operand(self, line, old, new, before):
        """Returns the text with one operand of a line replaced, and lines inserted before it."""
        head, tail = self.lines[line].split('(', 1)
        changed = head + '(' + re.sub(re.escape(old) + r'(?![\w.\-])', new, tail, count=1)
        return '\n'.join(self.lines[:line] + before + [changed] + self.lines[line + 1:])


def product(numbers):
    result = 1
    for number in numbers:
        result *= number
    return result


def dequantized(text, line, side):
    """Returns the multiplication or division that computes an operand of the dot: (instr, quantized, scale), or None."""
    dot = text.at(line)
    name = dot.operands[side]
    instr = text.find(name, line)
    while instr and instr.op in ('transpose', 'reshape', 'copy'):
        instr = text.find(instr.operands[0], line)
    if not instr or instr.op not in ('multiply', 'divide') or len(instr.operands) != 2:
        return None
    parts = [text.find(o, line) for o in instr.operands]
    if None in parts or parts[0].op != 'convert' or parts[1].op != 'broadcast':
        return None
    return instr, parts[0], parts[1]


def line_of(text, instr, line):
    while text.at(line) is None or text.at(line).name != instr.name:
        line -= 1
    return line


def scale_mutants(text, line, side):
    found, other = dequantized(text, line, side), dequantized(text, line, 1 - side)
    if not found:
        return
    instr, quantized, scale = found
    at = line_of(text, instr, line)
    lines = list(text.lines)
    lines[at] = lines[at].replace(f'{instr.op}({instr.operands[0]}, {instr.operands[1]})',
                                  f'copy({quantized.name})')
    yield f'scale of operand {side} dropped', '\n'.join(lines)
    twice = f'  %twice = {scale.shape} add({scale.name}, {scale.name})'
    yield f'scale of operand {side} doubled', text.with_operand(at, scale.name, '%twice', [twice])
    if not other or other[2].type != scale.type or at < line_of(text, other[2], line):
        return
    scalar = other[2]
    while scalar and scalar.dims and scalar.op in ('broadcast', 'reshape', 'bitcast'):
        scalar = text.find(scalar.operands[0], line)
    if not scalar or scalar.dims:
        return
    wrong = f'  %wrong = {scale.shape} broadcast({scalar.name}), dimensions={{}}'
    yield f"scale of operand {side} is the other's", text.with_operand(at, scale.name, '%wrong',
                                                                       [wrong])


def transposed(text, line, side):
    dot = text.at(line)
    name = dot.operands[side]
    instr = text.find(name, line)
    prefix = ('lhs', 'rhs')[side]
    contracting = dot.ints(prefix + '_contracting_dims')
    if not instr or dot.ints('lhs_batch_dims'):
        return
    size = product(instr.dims[d] for d in contracting)
    if size * size != product(instr.dims):
        return
    square = f'{instr.type}[{size},{size}]'
    before = [f'  %turned.1 = {square} reshape({name})',
              f'  %turned.2 = {square} transpose(%turned.1), dimensions={{1,0}}',
              f'  %turned.3 = {instr.shape} reshape(%turned.2)']
    yield f'operand {side} transposed', text.with_operand(line, name, '%turned.3', before)


def missing(text, line):
    """Yields the program without the bias that is added to the dot, and the program without the relu."""
    value = text.at(line)
    for at in range(line + 1, len(text.lines)):
        if text.lines[at] == '}':
            return
        user = text.at(at)
        if not user or value.name not in user.operands:
            continue
        if user.op == 'add' and len(user.operands) == 2:
            other = [o for o in user.operands if o != value.name]
            maker = text.find(other[0], at) if other else None
            if maker and maker.op in ('broadcast', 'reshape'):
                lines = list(text.lines)
                lines[at] = re.sub(r'add\([^)]*\)', f'copy({value.name})', lines[at])
                yield 'bias missing', '\n'.join(lines)
                value = user
        elif user.op == 'maximum' or (user.op == 'call' and 'relu' in user.rest + user.name):
            lines = list(text.lines)
            lines[at] = re.sub(r'(maximum|call)\([^)]*\)(, to_apply=%[\w.\-]+)?',
                               f'copy({value.name})', lines[at])
            yield 'relu missing', '\n'.join(lines)
            value = user


def mutants(text):
    """Yields (error, text) of each wrong program."""
    for line in text.dots():
        name = text.at(line).name
        made = [m for side in (0, 1) for m in scale_mutants(text, line, side)]
        made += [m for side in (0, 1) for m in transposed(text, line, side)]
        made += missing(text, line)
        for what, mutant in made:
            yield f'{name}: {what}', mutant


def chosen(text, every):
    """Returns all mutants, or one of each kind, in the first dot that has this kind: most of the computation depends on
    that dot."""
    kinds = set()
    for what, mutant in mutants(text):
        kind = what.split(': ')[1]
        if every or kind not in kinds:
            yield what, mutant
        kinds.add(kind)


def root_line(text):
    start = max(i for i, line in enumerate(text.lines) if line.startswith('ENTRY'))
    return next(i for i in range(start, len(text.lines)) if text.lines[i].startswith('  ROOT'))


def scaled(text, by):
    """Returns the module with every float output multiplied by `by`."""
    at = root_line(text)
    root = re.match(r'  ROOT (%[\w.\-]+) = (.*?) ([\w\-]+)\(([^()]*)\)(.*)', text.lines[at])
    single = root[3] != 'tuple'
    shapes = re.findall(r'\w+\[[\d,]*\]', root[2])
    names = ['%unscaled'] if single else re.findall(r'%[\w.\-]+', root[4])
    lines = [text.lines[at].replace(f'ROOT {root[1]} ', '%unscaled ')] if single else []
    results = []
    for i, (name, shape) in enumerate(zip(names, shapes)):
        type_, dims = shape[:-1].split('[')
        if not re.match(r'b?f\d', type_):
            results.append(name)
            continue
        wide = f'f32[{dims}]'
        lines += [f'  %k{i} = f32[] constant({by})',
                  f'  %k{i}b = {wide} broadcast(%k{i}), dimensions={{}}',
                  f'  %k{i}c = {wide} convert({name})',
                  f'  %k{i}m = {wide} multiply(%k{i}c, %k{i}b)',
                  f'  %k{i}r = {shape} convert(%k{i}m)']
        results.append(f'%k{i}r')
    if single:
        lines[-1] = lines[-1].replace(results[0], 'ROOT ' + results[0])
    else:
        lines.append(f'  ROOT {root[1]} = {root[2]} tuple({", ".join(results)})')
    return '\n'.join(text.lines[:at] + lines + text.lines[at + 1:])


class Runner:
    def __init__(self, options):
        self.program, self.models, self.work = (f'{options.bin}/hlo-fp8-run', options.models,
                                                options.work)

    def run(self, *arguments):
        done = subprocess.run([self.program, *arguments], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def compare(self, case, model, wrong, fused, turned=False, draw='normal'):
        """Compares a wrong module's outputs with a model's. `fused`: roundings may be omitted. `turned`: in the other
        order; the result must be the same."""
        path, outputs = f'{self.work}/{case}.hlo', f'{self.work}/{case}.npz'
        with open(path, 'w') as file:
            file.write(wrong)
        right = f'{self.models}/{model}.hlo'
        if fused:
            first, second = (right, path) if turned else (path, right)
            result = self.run(first, f'--compare={second}', '--all-outputs', f'--draw={draw}')
        else:
            result = self.run(path, f'--outputs={outputs}', f'--draw={draw}')
            if result[0] == 0:
                result = self.run(right, f'--compare={outputs}', '--all-outputs', f'--draw={draw}')
        for used in (path, outputs):
            if os.path.exists(used):
                os.remove(used)
        return result

    def scaled(self, model):
        """Returns, for each float output that is 5% off, (index, rejected, the model's noise in percent), compared with
        arrays, with the module and, for models that are not deep, in the other order."""
        by = 2 if model in COARSE else 1.05
        wrong, found = scaled(Text(f'{self.models}/{model}.hlo'), by), []
        for fused, turned in ((False, False), (True, False), (True, True)):
            if turned and model in LARGE + DEEP:
                continue
            status, said = self.compare(f'{model}.{fused}{turned}', model, wrong, fused, turned)
            if 'compare:' not in said:
                raise RuntimeError(f'{model}: {said}')
            outputs = []
            for line in said.split('\n'):
                # index, shape, verdict, elements, different elements, elements beyond bounds, not judged, error, noise
                output = re.match(r' *(\d+)  b?f\d\S* .*? +\d+ +([1-9]\d*) +(\d+) +\d+ +\S+ +(\S+) +\S+$', line)
                if not output:
                    continue
                noise = re.match(r'(\S+)/([\d.]+)', output[4])
                ratio = float(noise[1]) if noise else 0
                beyond = noise and ratio > float(noise[2])
                outputs.append((int(output[1]), bool(int(output[3]) or beyond),
                                100 * (by - 1) / ratio if ratio else None))
            found.append(outputs)
        return found


def main():
    parser = _script.parser()
    parser.add_argument('--long', action='store_true', help='every mutant of every dot, large models too')
    options = parser.parse_args()
    runner = Runner(options)
    names = sorted(os.path.basename(p)[:-4] for p in glob.glob(f'{options.models}/*.hlo')
                   if os.path.basename(p).count('.') == 1)
    failures = [] if len(names) == 40 else ['there are 40 models']
    if not options.long:
        names = [n for n in names if n not in LARGE]
    checked = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name, (exact, fused, *turned) in zip(names, pool.map(runner.scaled, names)):
            checked += len(exact) + len(fused) + sum(map(len, turned))
            if any([o[:2] for o in t] != [o[:2] for o in fused] for t in turned):
                failures.append(f'{name}: {fused} one way round, {turned} the other')
            if not exact or not fused:
                failures.append(f'{name}: nothing differs')
            noises = []
            for outputs in (exact, fused):
                missed = [n or 1e9 for i, good, n in outputs
                          if not good and i not in ZERO.get(name, ())]
                noises.append((len(missed), max(missed, default=0)))
            known = NOISY.get(name, ((0, 0), (0, 0)))
            if any(c > most or n > k or n < k / 2 for (c, n), (most, k) in zip(noises, known)):
                failures.append(f'{name}: not refused {noises}, known are {known} (outputs, %)')
        jobs = [(model, what, text) for model in DEEP + (LARGE_DEEP if options.long else ())
                for what, text in chosen(Text(f'{options.models}/{model}.hlo'), options.long)]
        results = pool.map(lambda j: runner.compare(f'mutant{j[0]}', j[1][0], j[1][2], False, draw='realistic'),
                           enumerate(jobs))
        for (model, what, _), (status, said) in zip(jobs, results):
            checked += 1
            if status != 3 or 'outputs differ' not in said:
                failures.append(f'{model}: {what}: status {status}\n{said[-1000:]}')
        dropped = [(what, text) for what, text in mutants(Text(f'{options.models}/{TRAINED}.hlo'))
                   if 'dropped' in what and (options.long or what in HIDDEN)]
        results = pool.map(lambda j: runner.compare(f'dropped{j[0]}', TRAINED, j[1][1], True, draw='realistic'),
                           enumerate(dropped))
        for (what, _), (status, said) in zip(dropped, results):
            checked += 1
            if status != 3 or 'outputs differ' not in said:
                failures.append(f'{TRAINED}, realistic: {what}: status {status}\n{said[-1000:]}')
        if len(dropped) != (34 if options.long else len(HIDDEN)):
            failures.append(f'{len(dropped)} scales of {TRAINED} were dropped')
    for what in ('dropped', 'doubled', "other's", 'transposed', 'bias missing', 'relu missing'):
        if not any(what in job[1] for job in jobs):
            failures.append(f'no mutant has its {what}')
    print('\n'.join(failures))
    print(f'{checked} wrong outputs and modules, {len(jobs)} of them with one thing wrong inside; '
          f'{len(failures)} not detected')
    return bool(failures)


if __name__ == '__main__':
    sys.exit(main())
