#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nests every construct of HLO text and of binary modules. Each command must succeed, or print an error with a
location. All threads of the programs have stacks of 128 KiB; a signal is a failure.

usage: nesting.py --bin DIR --work DIR [--depth N,N...] [--only NAME]
"""
import argparse
import pathlib
import re
import resource
import subprocess
import sys

STACK = 128 << 10
ENTRY = 'ENTRY %e {\n %a = f32[] parameter(0)\n'


def chain(depth, level, first=' ROOT %p = f32[] parameter(0)\n', last=None):
    """Returns computations, each of which applies the previous one; `level` returns the body of computation i."""
    yield 'HloModule m\n%f0 {\n' + first + '}\n'
    for i in range(1, depth + 1):
        yield f'%f{i} {{\n %p = f32[] parameter(0)\n' + level(i) + '}\n'
    yield ENTRY + (last or level)(depth + 1) + '}\n'


def called(op, attribute):
    def make(depth):
        def level(i):
            return f' ROOT %r = f32[] {op}({{}}), {attribute}=%f{i - 1}\n'

        yield from chain(depth, lambda i: level(i).format('%p'), last=lambda i: level(i).format('%a'))

    return make


def conditionals(depth):
    def level(i, x='%p'):
        return (f' %q = pred[] compare({x}, {x}), direction=EQ\n ROOT %r = f32[] conditional(%q, {x}, {x}), '
                f'true_computation=%f{i - 1}, false_computation=%f0\n')

    yield from chain(depth, level, last=lambda i: level(i, '%a'))


def indexed(depth):
    def level(i, x='%p'):
        return (f' %i = s32[] constant(1)\n ROOT %r = f32[] conditional(%i, {x}, {x}), '
                f'branch_computations={{%f0, %f{i - 1}}}\n')

    yield from chain(depth, level, last=lambda i: level(i, '%a'))


def whiles(depth):
    """Returns loops in the bodies of loops; the state ensures that no body runs twice."""
    def level(i, x='%p'):
        return (f' %k = pred[] constant(true)\n %t = (f32[], pred[]) tuple({x}, %k)\n'
                f' %w = (f32[], pred[]) while(%t), condition=%c, body=%b{i}\n'
                f' ROOT %r = f32[] get-tuple-element(%w), index=0\n')

    yield 'HloModule m\n%c {\n %p = (f32[], pred[]) parameter(0)\n ROOT %r = pred[] get-tuple-element(%p), index=1\n}\n'
    yield '%f0 {\n ROOT %p = f32[] parameter(0)\n}\n'
    for i in range(1, depth + 2):
        yield (f'%b{i} {{\n %s = (f32[], pred[]) parameter(0)\n %x = f32[] get-tuple-element(%s), index=0\n'
               f' %y = f32[] call(%x), to_apply=%f{i - 1}\n %n = pred[] constant(false)\n'
               f' ROOT %r = (f32[], pred[]) tuple(%y, %n)\n}}\n')
        if i <= depth:
            yield f'%f{i} {{\n %p = f32[] parameter(0)\n' + level(i) + '}\n'
    yield ENTRY + level(depth + 1, '%a') + '}\n'


def fusions(depth):
    for line in called('fusion', 'kind=kLoop, calls')(depth):
        yield line


def asyncs(depth):
    def level(i, x='%p'):
        return (f' %s = ((f32[]), f32[], u32[]) async-start({x}), calls=%f{i - 1}, async_execution_thread="main"\n'
                f' ROOT %r = f32[] async-done(%s)\n')

    yield from chain(depth, level, last=lambda i: level(i, '%a'))


def applied(head, tail):
    """Returns a computation that calls others and is applied to elements by an instruction."""
    def make(depth):
        yield 'HloModule m\n%f0 {\n %p = f32[] parameter(0)\n %q = f32[] parameter(1)\n ROOT %r = f32[] add(%p, %q)\n}\n'
        for i in range(1, depth + 1):
            yield (f'%f{i} {{\n %p = f32[] parameter(0)\n %q = f32[] parameter(1)\n'
                   f' ROOT %r = f32[] call(%p, %q), to_apply=%f{i - 1}\n}}\n')
        yield f'ENTRY %e {{\n %a = f32[4] parameter(0)\n %z = f32[] constant(0)\n ROOT %r = {head}, {tail}to_apply=%f{depth}\n}}\n'

    return make


def reducers(depth):
    """Returns reductions in the computations of reductions."""
    yield 'HloModule m\n%f0 {\n %p = f32[] parameter(0)\n %q = f32[] parameter(1)\n ROOT %r = f32[] add(%p, %q)\n}\n'
    for i in range(1, depth + 1):
        yield (f'%f{i} {{\n %p = f32[] parameter(0)\n %q = f32[] parameter(1)\n %b = f32[1] reshape(%p)\n'
               f' ROOT %r = f32[] reduce(%b, %q), dimensions={{0}}, to_apply=%f{i - 1}\n}}\n')
    yield f'ENTRY %e {{\n %a = f32[4] parameter(0)\n %z = f32[] constant(0)\n ROOT %r = f32[] reduce(%a, %z), dimensions={{0}}, to_apply=%f{depth}\n}}\n'


def elementwise(depth):
    """Returns a chain of elementwise instructions, which passes and kernels traverse."""
    yield 'HloModule m\nENTRY %e {\n %a = f32[8] parameter(0)\n %v0 = f32[8] negate(%a)\n'
    for i in range(1, depth + 1):
        yield f' %v{i} = f32[8] {"abs" if i % 2 else "negate"}(%v{i - 1})\n'
    yield f' ROOT %r = f32[8] add(%v{depth}, %v0)\n}}\n'


def moves(depth):
    """Returns a chain of movements between a dequantization and a matmul."""
    yield ('HloModule m\nENTRY %e {\n %a = f8e4m3fn[16,16] parameter(0)\n %b = f8e4m3fn[16,16] parameter(1)\n %s = f32[] parameter(2)\n'
           ' %c = f32[16,16] convert(%a)\n %d = f32[16,16] convert(%b)\n %t = f32[16,16] broadcast(%s), dimensions={}\n'
           ' %v0 = f32[16,16] multiply(%c, %t)\n')
    for i in range(1, depth + 1):
        yield f' %v{i} = f32[16,16] {"transpose" if i % 2 else "reverse"}(%v{i - 1}), dimensions={{1,0}}\n'
    yield f' ROOT %r = f32[16,16] dot(%v{depth}, %d), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n}}\n'


def scales(depth):
    """Returns a scale that a chain of scalars computes."""
    yield ('HloModule m\nENTRY %e {\n %a = f8e4m3fn[16,16] parameter(0)\n %b = f8e4m3fn[16,16] parameter(1)\n %k0 = f32[] parameter(2)\n'
           ' %c = f32[16,16] convert(%a)\n %d = f32[16,16] convert(%b)\n')
    for i in range(1, depth + 1):
        yield f' %k{i} = f32[] {"abs" if i % 2 else "negate"}(%k{i - 1})\n'
    yield (f' %t = f32[16,16] broadcast(%k{depth}), dimensions={{}}\n %v0 = f32[16,16] multiply(%c, %t)\n'
           ' ROOT %r = f32[16,16] dot(%v0, %d), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n')


def products(depth):
    """Returns matmuls of results of matmuls, with scales between them."""
    yield 'HloModule m\nENTRY %e {\n %a = f8e4m3fn[16,16] parameter(0)\n %v0 = f32[16,16] convert(%a)\n %s = f32[] parameter(1)\n %t = f32[16,16] broadcast(%s), dimensions={}\n'
    for i in range(1, depth // 4 + 1):
        yield (f' %d{i} = f32[16,16] dot(%v{i - 1}, %v{i - 1}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n'
               f' %q{i} = f8e4m3fn[16,16] convert(%d{i})\n %w{i} = f32[16,16] convert(%q{i})\n %v{i} = f32[16,16] multiply(%w{i}, %t)\n')
    yield f' ROOT %r = f32[16,16] negate(%v{depth // 4})\n}}\n'


def tuples(depth):
    """Returns a value that enters and leaves nested tuples."""
    shape = 'f32[]'
    yield 'HloModule m\n' + ENTRY.replace('%a', '%v0')
    for i in range(1, depth + 1):
        shape = f'({shape})'
        yield f' {"ROOT " * (i == depth)}%v{i} = tuple(%v{i - 1})\n'
    yield '}\n'


def shape(depth):
    yield 'HloModule m\nENTRY %e {\n ROOT %a = ' + '(' * depth + 'f32[]' + ')' * depth + ' parameter(0)\n}\n'


def header_layout(depth):
    deep = '(' * depth + 'f32[]' + ')' * depth
    yield 'HloModule m, entry_computation_layout={(f32[])->' + deep + '}\n' + ENTRY + ' ROOT %r = f32[] negate(%a)\n}\n'


def constraints(depth):
    deep = '(' * depth + 'f32[]' + ')' * depth
    yield 'HloModule m\n' + ENTRY + f' ROOT %r = f32[] custom-call(%a), custom_call_target="x", operand_layout_constraints={{{deep}}}\n}}\n'


def parentheses(depth):
    yield 'HloModule m\n' + ENTRY + ' ROOT %r = f32[] negate(' + '(' * depth + '%a' + ')' * depth + ')\n}\n'


def inner(depth):
    yield 'HloModule m\n' + ENTRY + ' ROOT %r = ' + 'f32[] negate(' * depth + '%a' + ')' * depth + '\n}\n'


def bodies(depth):
    """Returns calls whose computations are written in place of their names."""
    yield 'HloModule m\n' + ENTRY
    for _ in range(depth):
        yield ' ROOT %r = f32[] call(%a), to_apply={\n %a = f32[] parameter(0)\n'
    yield ' ROOT %r = f32[] negate(%a)\n' + '}\n' * depth + '}\n'


def attribute(before, opening, content, closing, after=''):
    def make(depth):
        yield ('HloModule m\n' + ENTRY + f' ROOT %r = f32[] negate(%a), {before}' + opening * depth + content +
               closing * depth + after + '\n}\n')

    return make


def header(before, opening, content, closing):
    def make(depth):
        yield 'HloModule m, ' + before + opening * depth + content + closing * depth + '\n' + ENTRY + ' ROOT %r = f32[] negate(%a)\n}\n'

    return make


def literal(depth):
    yield ('HloModule m\nENTRY %e {\n ROOT %a = ' + '(' * depth + 's32[]' + ')' * depth + ' constant(' + '(' * depth + '1' + ')' * depth + ')\n}\n')


def braces(depth):
    yield 'HloModule m\nENTRY %e {\n ROOT %a = s32[' + ','.join(['1'] * depth) + '] constant(' + '{' * depth + '1' + '}' * depth + ')\n}\n'


def call_config(depth):
    """Returns a matmul call with nested JSON."""
    yield ('HloModule m\nENTRY %e {\n %a = f8e4m3fn[16,16] parameter(0)\n %b = f8e4m3fn[16,16] parameter(1)\n %s = f32[] parameter(2)\n'
           ' ROOT %r = f32[16,16] custom-call(%a, %b, %s, %s), custom_call_target="__cublas$lt$matmul$f8", backend_config={"gemm_backend_config":{"x":'
           + '[' * depth + '1' + ']' * depth + '}}\n}\n')


def typed_config(depth):
    yield ('HloModule m\nENTRY %e {\n %a = f8e4m3fn[16,16] parameter(0)\n %b = f8e4m3fn[16,16] parameter(1)\n %s = f32[] parameter(2)\n'
           ' ROOT %r = f32[16,16] custom-call(%a, %b, %s, %s), custom_call_target="hlofp8.matmul", api_version=API_VERSION_TYPED_FFI, backend_config="{x = '
           + '[' * depth + '1' + ']' * depth + '}"\n}\n')


def message(depth):
    """Returns a binary module with nested shapes, in HloModuleProto.host_program_shape.result."""
    def field(number, data):
        size, length = len(data), b''
        while True:
            length += bytes([size & 127 | (128 if size > 127 else 0)])
            size >>= 7
            if not size:
                return bytes([number << 3 | 2]) + length + data

    shape = b'\x10\x0b'
    for _ in range(min(depth, 3000)):  # limited, because each level copies its contents
        shape = b'\x10\x0d' + field(4, shape)
    yield field(1, b'm') + field(4, field(2, shape))


def message_text(depth):
    yield 'name: "m"\nhost_program_shape { result {' + ' tuple_shapes {' * depth + '}' * depth + '} }\n'


def snapshot(depth):
    yield 'HloModule m, frontend_attributes={a=' + '{b=' * depth + '"c"' + '}' * depth + '}\n' + ENTRY + ' ROOT %r = f32[] negate(%a)\n}\n'


TEXTS = {
    'calls': called('call', 'to_apply'), 'fusions': called('fusion', 'kind=kLoop, calls'), 'conditionals': conditionals,
    'indexed': indexed, 'whiles': whiles, 'asyncs': asyncs, 'bodies': bodies,
    'reduce': applied('f32[] reduce(%a, %z)', 'dimensions={0}, '), 'map': applied('f32[4] map(%a, %a)', 'dimensions={0}, '),
    'window': applied('f32[4] reduce-window(%a, %z)', 'window={size=1}, '), 'sum': applied('f32[4] all-reduce(%a)', 'replica_groups={}, '),
    'reducers': reducers, 'elementwise': elementwise, 'moves': moves, 'scales': scales, 'products': products,
    'tuples': tuples, 'shape': shape, 'header-layout': header_layout, 'constraints': constraints, 'parentheses': parentheses,
    'inner': inner, 'literal': literal, 'braces': braces,
    'frontend': attribute('frontend_attributes={a=', '{b=', '"c"', '}', '}'), 'sharding': attribute('sharding=', '{', 'replicated', '}'),
    'sharding-last': attribute('sharding={devices=[1]<=[1] last_tile_dims=', '{', 'manual', '}', '}'),
    'mesh': attribute('sharding={mesh[', "'a'=(", '1', ')', ']}'), 'metadata': attribute('metadata={', 'a={', 'op_name="x"', '}', '}'),
    'origin': attribute('origin=', '{', '"x"', '}'), 'origin-tuple': attribute('origin={', '(', '{"x"}', ')', '}'),
    'statistics': attribute('statistics=', '{', 'x=1', '}'), 'config': attribute('backend_config=', '{"a":', '1', '}'),
    'config-list': attribute('backend_config={"a":', '[', '1', ']', '}'), 'config-text': attribute('backend_config="', '[', '1', ']', '"'),
    'unknown': attribute('x=', '{', '1', '}'), 'windows': attribute('window=', '{', 'size=1', '}'),
    'parameters': attribute('parameter_replication=', '{', 'true', '}'), 'dimensions': attribute('dimensions=', '{', '0', '}'),
    'tree': attribute('output_to_operand_aliasing={', '{', '0', '}', ':(0,{})}'), 'config-call': call_config, 'config-typed': typed_config,
    'alias': header('input_output_alias=', '{', '0', '}'), 'donor': header('buffer_donor=', '{', '0', '}'),
    'config-header': header('frontend_attributes={fingerprint=', '{x=', '"1"', '}'), 'devices': header('device_assignment=', '{', '0', '}'),
    'recovery': header('origin_recovery_table=', '{', '"x"', '}'), 'snapshot': snapshot,
}
MESSAGES = {'message': (message, '.hlo.pb'), 'message-text': (message_text, '.hlo.pbtxt')}
OPT = (['--passes='], ['--extract=r'], ['--emit=dq', '--lint'], ['--passes=', '--print=canonical'], ['--passes=', '--format=pb'])
RUN = (['--optimize', '--compare=before'], ['--check-nan'], ['--profile'], ['--plan', '--backend=cuda', '--target=sm_90'])


def small():
    resource.setrlimit(resource.RLIMIT_STACK, (STACK, STACK))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--bin', type=pathlib.Path, required=True)
    parser.add_argument('--work', type=pathlib.Path, required=True)
    parser.add_argument('--depth', default='90,20000')
    parser.add_argument('--only')
    parser.add_argument('--seconds', type=float, default=60)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    failed = count = 0

    def check(name, depth, command):
        nonlocal failed, count
        try:
            ran = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=small, timeout=options.seconds)
            rc, err = ran.returncode, ran.stderr.decode(errors='replace')
        except subprocess.TimeoutExpired:
            rc, err = 'timeout', ''
        count += 1
        text = command[-1].suffix == '.hlo' and '--extract=r' not in command
        placed = rc in (0, 3) or (rc == 1 and re.search(r':\d+:\d+: error: ' if text else r': error: ', err))
        if not placed:
            failed += 1
            print(f'{name}, depth {depth}: {" ".join(map(str, command))}: status {rc}: {err[:300]}', flush=True)

    for depth in map(int, options.depth.split(',')):
        for name, make in TEXTS.items():
            if options.only and name not in options.only.split(','):
                continue
            file = options.work / f'{name}.hlo'
            file.write_text(''.join(make(depth)))
            for how in OPT:
                check(name, depth, [options.bin / 'hlo-fp8-opt', *how, '-o', '/dev/null', file])
            for how in RUN:
                check(name, depth, [options.bin / 'hlo-fp8-run', *how, file])
            file.unlink()
        for name, (make, suffix) in MESSAGES.items():
            if options.only and name not in options.only.split(','):
                continue
            file = options.work / f'{name}{suffix}'
            text = [t if isinstance(t, bytes) else t.encode() for t in make(depth)]
            file.write_bytes(b''.join(text))
            for how in ['--passes='], ['--passes=', '--format=pbtxt']:
                check(name, depth, [options.bin / 'hlo-fp8-opt', *how, file])
    print(f'{count} commands')
    return 1 if failed or not count else 0


if __name__ == '__main__':
    sys.exit(main())
