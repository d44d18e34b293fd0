#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares collectives of `hlo-fp8-run --devices=8`, on simulated devices, with those of XLA's CPU backend on 8
devices.

A module has every collective several times, with random groups in every notation and every kind of ids, over random
types, shapes and layouts. Each device has separate inputs. Numbers are small integers, so that all results must be
equal on every device. XLA's devices are replicas, because XLA would partition a module with partitions again. XLA's
module has all groups as lists of devices.
"""
import itertools
import os
import sys

import jax
import numpy as np
from jax._src.lib import xla_client
from jaxlib import _hlo, _jax

import _script
from test_eval import TYPES, Runner  # must come before jax: sets environment variables that jax reads

DEVICES = 8
os.environ['XLA_FLAGS'] = (f'--xla_force_host_platform_device_count={DEVICES} '
                           '--xla_allow_excess_precision=false --xla_backend_optimization_level=0')
jax.config.update('jax_enable_x64', True)
RNG = np.random.default_rng(0)
SUMMED = ['f32', 'f64', 'f16', 'bf16', 's8', 's32', 'u16', 'u64', 'pred']
MOVED = SUMMED + ['f8e4m3fn', 'f8e5m2', 's16']
REDUCERS = {'pred': ['and', 'or']}
MODES = ['replicas', 'partitions', 'both', 'devices']


def dims_of(dims):
    return f'[{",".join(map(str, dims))}]'


def groups_of(count, size, first_form):
    """Returns groups of `size` numbers below `count`, as text in one of the notations, and as an array."""
    many = count // size
    form = RNG.integers(first_form, 4)
    if form == 0 and size == count:
        return '{}', np.arange(count).reshape(1, count)
    if form == 1:
        return f'[{many},{size}]<=[{count}]', np.arange(count).reshape(many, size)
    if form == 2 and 1 < size < count:
        return f'[{many},{size}]<=[{size},{many}]T(1,0)', np.arange(count).reshape(size, many).T
    numbers = RNG.permutation(count).reshape(many, size)
    return listed(numbers), numbers


def listed(numbers):
    return '{' + ','.join('{' + ','.join(map(str, g)) + '}' for g in numbers) + '}'


class Module:
    def __init__(self, replicas, partitions):
        self.replicas, self.partitions = replicas, partitions
        self.inputs, self.results, self.labels, self.regions = [], [], [], {}
        self.lines, self.theirs = [], []  # lines of text for hlo-fp8-run, and for XLA

    def line(self, text, theirs=None):
        self.lines.append(text)
        self.theirs.append(theirs or text)

    def input(self, name, dims):
        """Returns an array for each device."""
        values = RNG.integers(0, 2 if name in ('pred', 's8') else 4, (DEVICES, *dims)).astype(TYPES[name])
        order = RNG.permutation(len(dims)) if RNG.random() < 0.3 else np.arange(len(dims))[::-1]
        made = f'%p{len(self.inputs)}'
        self.line(f'  {made} = {name}{dims_of(dims)}{{{",".join(map(str, order))}}} parameter({len(self.inputs)})')
        self.inputs.append(values)
        return made

    def region(self, name, op):
        self.regions[f'{op}.{name}'] = (
            f'%{op}.{name} {{\n  %a.{op}.{name} = {name}[] parameter(0)\n  %b.{op}.{name} = {name}[] parameter(1)\n'
            f'  ROOT %c.{op}.{name} = {name}[] {op}(%a.{op}.{name}, %b.{op}.{name})\n}}\n\n')
        return f', to_apply=%{op}.{name}'

    def add(self, shapes, text, ours='', theirs=''):
        """Adds one instruction, with different text for XLA."""
        made = f'%r{len(self.lines)}'
        shape = shapes[0] if len(shapes) == 1 else f'({", ".join(shapes)})'
        self.line(f'  {made} = {shape} {text}{ours}', f'  {made} = {shape} {text}{theirs}')
        for i, s in enumerate(shapes):
            if len(shapes) > 1:
                self.line(f'  {made}.{i} = {s} get-tuple-element({made}), index={i}')
            self.results.append((made if len(shapes) == 1 else f'{made}.{i}', s))
            self.labels.append(text + ours)

    def count(self, mode):
        """Returns the number of ids (devices, replicas or partitions) in all groups."""
        return {'partitions': self.partitions, 'devices': DEVICES}.get(mode, self.replicas)

    def devices(self, mode, numbers):
        """Returns the devices that groups of such ids represent."""
        r, p = self.replicas, self.partitions
        if mode == 'replicas':
            return [[n * p + k for n in g] for k in range(p) for g in numbers]
        if mode == 'partitions':
            return [[k * p + n for n in g] for k in range(r) for g in numbers]
        if mode == 'both':
            return [[n * p + k for n in g for k in range(p)] for g in numbers]
        return numbers

    def groups(self, mode, channel):
        """Returns the number of devices per group, and the attributes, for hlo-fp8-run and for XLA."""
        count = self.count(mode)
        text, numbers = groups_of(count, int(RNG.choice([d for d in (1, 2, 4, 8) if d <= count])),
                                  mode == 'devices')  # `{}` contains no devices
        devices = self.devices(mode, numbers)
        return len(devices[0]), f', replica_groups={text}{marks(mode, channel)}', f', replica_groups={listed(devices)}'

    def text(self, for_xla=False):
        shapes, names = (', '.join(of) for of in zip(*((s, n) for n, s in self.results)))
        header = f'replica_count={self.replicas}, num_partitions={self.partitions}'
        lines = '\n'.join(self.theirs if for_xla else self.lines)
        return (f'HloModule case, {f"replica_count={DEVICES}" if for_xla else header}\n\n'
                f'{"".join(self.regions.values())}ENTRY %main {{\n{lines}\n'
                f'  ROOT %all = ({shapes}) tuple({names})\n}}\n')


def marks(mode, channel):
    """Returns the attributes that select this kind of ids."""
    if mode == 'replicas':
        return ''
    return f', channel_id={channel}' + (', use_global_device_ids=true' if mode == 'devices' else '')


def along_one(module, op, mode, channel):
    """Adds a collective of one operand, along one of its dimensions or, for all-reduce, of all elements."""
    name = str(RNG.choice(SUMMED if 'reduce' in op else MOVED))
    size, ours, theirs = module.groups(mode, channel)
    dims = [int(d) for d in RNG.integers(1, 4, RNG.integers(1, 4))]
    along = int(RNG.integers(len(dims)))
    result = list(dims)
    if op == 'all-gather':
        result[along] *= size
    elif op != 'all-reduce':
        dims[along] *= size
        result[along] *= size if op == 'all-to-all' else 1
    text = f'{op}({module.input(name, dims)})' + ('' if op == 'all-reduce' else f', dimensions={{{along}}}')
    if 'reduce' in op:
        text += module.region(name, str(RNG.choice(REDUCERS.get(name, ['add', 'maximum', 'minimum', 'multiply']))))
    module.add([name + dims_of(result)], text, ours, theirs)


def of_several(module, mode, channel):
    size, ours, theirs = module.groups(mode, channel)
    if size == 1:  # in the other form, XLA supports only one operand
        return
    name, dims = str(RNG.choice(MOVED)), [int(RNG.integers(1, 4))]
    operands = ', '.join(module.input(name, dims) for _ in range(size))
    module.add([name + dims_of(dims)] * size, f'all-to-all({operands})', ours, theirs)


def permute(module, mode, channel):
    count = module.count(mode)
    numbers = np.stack([RNG.permutation(count), RNG.permutation(count)], 1)[:RNG.integers(1, count + 1)]
    name, dims = str(RNG.choice(MOVED)), [int(d) for d in RNG.integers(1, 4, RNG.integers(1, 3))]
    pairs = module.devices(mode, numbers)
    module.add([name + dims_of(dims)], f'collective-permute({module.input(name, dims)})',
               f', source_target_pairs={listed(numbers)}{marks(mode, channel)}',
               f', source_target_pairs={listed(pairs)}')


def fill(module, rounds):
    channels = itertools.count(1)
    for _ in range(rounds):
        for mode in MODES:  # an all-to-all between replicas and partitions, or between devices, has no notation
            for op in ('all-reduce', 'all-gather', 'reduce-scatter', 'all-to-all'):
                if mode not in (('both', 'devices') if op == 'all-to-all' else ('partitions',)):
                    along_one(module, op, mode, next(channels))
        for mode in MODES[:2]:
            of_several(module, mode, next(channels))
            permute(module, mode, next(channels))
    # The number of an XLA replica is split into a replica id and a partition id.
    module.add(['u32[]'], '', 'replica-id()', 'replica-id()')
    module.add(['u32[]'], '', 'partition-id()', 'replica-id()')


def xla(module):
    text = module.text(for_xla=True)
    computation = _hlo.XlaComputation(_hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto())
    devices = jax.devices('cpu')
    options = xla_client.CompileOptions()
    options.num_replicas = options.executable_build_options.num_replicas = DEVICES
    options.device_assignment = xla_client.DeviceAssignment.create(np.arange(DEVICES).reshape(DEVICES, 1))
    mlir = xla_client._xla.mlir.xla_computation_to_mlir_module(computation)
    program = devices[0].client.compile_and_load(mlir, _jax.DeviceList(tuple(devices)), options)
    sharding = jax.sharding.NamedSharding(jax.sharding.Mesh(np.array(devices), ('x',)),
                                          jax.sharding.PartitionSpec('x'))
    arrays = [jax.device_put(v.reshape(DEVICES * v.shape[1], *v.shape[2:]), sharding) for v in module.inputs]
    parts = program.execute_sharded(arrays).disassemble_into_single_device_arrays()
    return [[np.asarray(parts[i][d]) for i in range(len(module.results))] for d in range(DEVICES)]


def ours(run, module):
    inputs = [v[d] for d in range(DEVICES) for v in module.inputs]
    results = run.execute(module.text(), inputs, f'--devices={DEVICES}')
    count = len(module.results)
    return [[results[str(d * count + i)] for i in range(count)] for d in range(DEVICES)]


def main():
    run = Runner(_script.parser().parse_args())
    for replicas, partitions in ((8, 1), (1, 8), (4, 2), (2, 4)):
        module = Module(replicas, partitions)
        fill(module, 3)
        want, got = xla(module), ours(run, module)
        for i, label in enumerate(module.labels):
            run.cases += 1
            for d in range(DEVICES):
                a, b = want[d][i], got[d][i]
                if label == 'replica-id()':
                    a = a // partitions
                elif label == 'partition-id()':
                    a = a % partitions
                b = b if b.dtype == a.dtype else b.view(a.dtype)
                if a.shape == b.shape and np.array_equal(a, b):
                    continue
                run.failures += 1
                print(f'{replicas} x {partitions}, device {d}, {label}: got {b}, XLA has {a}')
                break
    print(f'{run.cases} results on {DEVICES} devices, {run.failures} differ')
    return run.failures != 0


if __name__ == '__main__':
    sys.exit(main())
