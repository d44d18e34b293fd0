#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares random modules with manual regions before and after scales are moved past collectives, on 4 CPU devices. jax
lowers each program, which has nested shard_maps over all or some axes of a mesh. A scale is replicated, passed to a
region in parts, dependent on the position along an axis, or the maximum along an axis. Regions are Shardy's, or older
ones with HLO shardings. Numbers are exact, so results must be equal bit for bit.

usage: test_manual.py ... [--first SEED] [--count N] [--print]
"""
import os
import pathlib
import random
import re
import subprocess
import sys

DEVICES = 4
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"  # the older partitioner warns about its deprecation
os.environ["XLA_FLAGS"] = (f"--xla_force_host_platform_device_count={DEVICES} "
                           "--xla_allow_excess_precision=false")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402
from jax._src import sharding_impls  # noqa: E402
from jax._src.lib import xla_client  # noqa: E402
from jax.sharding import NamedSharding, PartitionSpec  # noqa: E402
from jaxlib import _hlo, _jax  # noqa: E402

import _script

AXES = {"x": 2, "y": 2}
GOLDEN = ("not-partitioned-regions", "not-partitioned-older", "missed-nested-jax", "missed-nested-manual")
SENT = re.compile(r"= f8\w+\[\S+ (?:all-gather|all-to-all|collective-permute)(?:-done)?\(")
WIDE = re.compile(r"= f32\[\d+,\S+ (?:all-gather|all-to-all|collective-permute)(?:-done)?\(")


# ---------------------------------------------------------------------------------------------- programs

class Draw:
    """A random program. Random choices are recorded, so that tracing the program again gives the same program."""

    def __init__(self, seed, shardy, checks):
        self.random = random.Random(seed)
        self.shardy = shardy
        self.checks = checks
        order = self.random.choice([[0, 1, 2, 3], [0, 1, 2, 3], [0, 2, 1, 3], [3, 1, 0, 2]])
        self.mesh = jax.sharding.Mesh(np.array(jax.devices("cpu"))[order].reshape(2, 2), tuple(AXES))

    def chance(self, percent):
        return self.random.random() * 100 < percent

    def pick(self, *choices):
        return self.random.choice(choices)

    def axes(self, some):
        return self.pick(*[(a,) for a in some], *([tuple(some)] if len(some) > 1 else []))

    # -------------------------------------------------------------------------------------- in a region

    def scale(self, manual, one, many):
        """Returns a scale derived from the scalar `one` and the vector `many`, of which a device may have a part."""
        s = self.pick(*5 * [lambda: one], lambda: many[0], lambda: many[-1], lambda: jnp.max(many),
                      lambda: jnp.float32(0.5), lambda: one * many[0])()
        for _ in range(self.pick(0, 0, 1, 2)):
            axis = self.pick(*manual)
            s = self.pick(lambda: s * (1 + lax.axis_index(axis)).astype(jnp.float32),
                          lambda: lax.pmax(s, self.axes(manual)), lambda: lax.pmax(s, axis),
                          lambda: lax.psum(s, axis), lambda: self.looped(s, axis), lambda: self.chosen(s, axis),
                          lambda: jax.jit(lambda v: v * 2)(s), lambda: jnp.max(lax.all_gather(s, axis)))()
        return s

    def looped(self, s, axis):
        """Runs some iterations, whose number may differ between devices."""
        rounds = self.pick(lambda: 2, lambda: 1 + lax.axis_index(axis))()
        return lax.fori_loop(0, rounds, lambda i, v: v * 2, s)

    def chosen(self, s, axis):
        return lax.cond(lax.axis_index(axis) > 0, lambda v: v * 4, lambda v: v, s)

    def sends(self, manual, value):
        axis = self.axes(manual)
        size = int(np.prod([AXES[a] for a in axis]))
        axis = axis[0] if len(axis) == 1 else axis
        if self.chance(50):
            return lax.all_gather(value, axis, axis=self.pick(0, 1), tiled=True)
        if self.chance(40) and isinstance(axis, str):
            return lax.ppermute(value, axis, self.pick([(0, 1), (1, 0)], [(0, 1)], [(1, 0), (0, 0)][:1]))
        if value.shape[0] % size or value.shape[1] % size:
            return lax.all_gather(value, axis, axis=0, tiled=True)
        return lax.all_to_all(value, axis, 0, self.pick(0, 1), tiled=True)

    def body(self, manual, q, one, many):
        """Returns each device's result for its part: a number for each row; all devices have the same number of
        rows."""
        total = jnp.zeros((), jnp.float32)
        s = one
        for _ in range(self.pick(1, 1, 2)):
            s = self.scale(manual, one, many)
            wide = q.astype(jnp.float32)
            wide = wide * s if self.chance(70) else s * wide
            got = self.sends(manual, self.pick(lambda: wide, lambda: wide.T, lambda: -wide)())
            weight = (lax.iota(jnp.int32, got.size) & 7).astype(jnp.float32).reshape(got.shape)
            total = total + jnp.sum(got * weight) * self.pick(1, 3)
        rest = tuple(a for a in AXES if a not in manual)
        if rest and self.chance(75):
            own = (1 + lax.axis_index(self.pick(*manual))).astype(jnp.float32)
            total = total + self.region(rest, manual, q, self.pick(one, s, one * own, many[0]), many * self.pick(own, 1))
        return total

    # ------------------------------------------------------------------------------------------ regions

    def split(self, axes):
        """Returns a sharding along some of the axes, or none."""
        return PartitionSpec(self.pick(None, None, *axes))

    def region(self, axes, manual, q, one, many):
        """Returns the results of a region over `axes`, nested in a region over `manual`: a number equal on all devices,
        or one for each."""
        axes = self.axes(axes) if self.shardy else axes  # the older partitioner aborts on many programs with some axes
        mesh = self.mesh if not manual else jax.sharding.get_abstract_mesh()
        specs = (self.split(axes), PartitionSpec(), self.split(axes))
        fits = all(s % int(np.prod([AXES[a] for a in axes])) == 0 for s in many.shape)
        if not fits or self.chance(20):
            specs = (specs[0], specs[1], PartitionSpec())
        inside = manual + axes

        def inner(q, one, many):
            each = self.body(inside, q, one, many)
            return each.reshape((1,) * len(axes))

        made = jax.shard_map(inner, mesh=mesh, in_specs=specs, out_specs=PartitionSpec(*axes), axis_names=set(axes),
                             check_vma=self.checks)(q, one, many)
        return self.pick(jnp.sum, jnp.max)(made * jnp.arange(1, made.size + 1, dtype=jnp.float32).reshape(made.shape))

    def program(self, q, one, many):
        state = self.random.getstate()
        first = self.region(tuple(AXES), (), q, one, many)
        fed = self.chance(40)
        if fed:
            bounded = jnp.exp2(jnp.sign(first))
            first = jnp.stack([first, self.region(tuple(AXES), (), q, one * bounded, many * self.pick(1, 2))])
        self.random.setstate(state)
        return first

    def text(self):
        given = [PartitionSpec(), PartitionSpec("x"), PartitionSpec("y"), PartitionSpec(("x", "y"))]
        shapes = [jax.ShapeDtypeStruct(s, t) for s, t in (((16, 16), jnp.float8_e4m3fn), ((), jnp.float32),
                                                         ((4,), jnp.float32))]
        kept = [NamedSharding(self.mesh, s) for s in (self.pick(*given), PartitionSpec(), self.pick(*given))]
        f = jax.jit(self.program, in_shardings=kept, keep_unused=True)
        return without_marks(f.lower(*shapes).compiler_ir("hlo").as_hlo_text()), tuple(self.mesh.devices.flat)


# Shardings of each form, in brackets.
SHARDING = r", sharding=\{(?:[^{}]|\{[^{}]*\})*\}"
MARK = re.compile(r"^( *(?:ROOT )?(\S+) = .*)custom-call\(([^()]*)\), custom_call_target=\"Sharding\".*", re.M)


def without_marks(text):
    """Removes unsupported constructs: jaxlib treats parameters with HLO shardings as shardings of the older
    partitioner. Also replaces the annotations that jax adds after each value of a region that omits axes by copies,
    which no rule would otherwise match."""
    if "xla.sdy" in text:
        text = re.sub(r"( parameter\(\d+\))" + SHARDING, r"\1", text)
    entered = set(re.findall(r"custom-call\((\S+)\), custom_call_target=\"SPMDFullToShardShape\"", text))

    def copied(mark):
        kept = mark[2] in entered or "sharding={manual}" in mark[0]
        return mark[0] if kept else f"{mark[1]}copy({mark[3]})"

    return MARK.sub(copied, text)


def drawn(seed):
    shardy = seed % 3 != 0
    if jax.config.jax_use_shardy_partitioner != shardy:
        jax.config.update("jax_use_shardy_partitioner", shardy)
        jax.clear_caches()
    try:
        return Draw(seed, shardy, seed % 4 == 0).text()
    except (TypeError, ValueError):  # with this check, jax requires annotations in loops
        return Draw(seed, shardy, False).text()


# --------------------------------------------------------------------------------------------- execution

def compiled(text, devices):
    computation = _hlo.XlaComputation(_hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto())
    options = xla_client.CompileOptions()
    build = options.executable_build_options
    options.num_replicas = build.num_replicas = 1
    options.num_partitions = build.num_partitions = DEVICES
    build.use_spmd_partitioning = True
    build.use_shardy_partitioner = "xla.sdy" in text
    numbers = np.array([d.id for d in devices]).reshape(1, DEVICES)
    options.device_assignment = xla_client.DeviceAssignment.create(numbers)
    module = xla_client._xla.mlir.xla_computation_to_mlir_module(computation)
    program = devices[0].client.compile_and_load(module, _jax.DeviceList(tuple(devices)), options)
    return program, computation.program_shape()


def results(text, devices):
    program, shape = compiled(text, devices)
    numbers = np.random.default_rng(0)
    arrays = []
    for wanted, sharding in zip(shape.parameter_shapes(), program.get_parameter_shardings(), strict=True):
        dims, kind = tuple(wanted.dimensions()), np.dtype(wanted.numpy_dtype())
        values = numbers.integers(-4, 5, dims) if len(dims) == 2 else 4.0 ** numbers.permutation(4)[:int(np.prod(dims))]
        placed = sharding_impls.GSPMDSharding(devices, sharding)
        arrays.append(jax.device_put(values.reshape(dims).astype(kind), placed))
    outputs = program.execute_sharded(arrays).disassemble_into_single_device_arrays()
    return [np.asarray(part) for parts in outputs for part in parts]


def equal(a, b):
    return all(x.shape == y.shape and x.tobytes() == y.tobytes() and np.any(x) for x, y in zip(a, b, strict=True))


def rewritten(args, text, passes):
    command = [args.bin / "hlo-fp8-opt", "--verify-each", "-", "--passes=" + passes]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def same(args, name, text, devices):
    """Returns whether a module computes the same, and how many values are sent in fp8 and wide; None if XLA rejects the
    module."""
    after = rewritten(args, text, "inline,algebra,fp8-devices,sink-dequantize,fp8-devices,dce")
    sent, wide = len(SENT.findall(after)), len(WIDE.findall(after))
    try:
        expected = results(text, devices) if sent else []
    except jax.errors.JaxRuntimeError:
        return None, 0, 0
    good = not sent or equal(expected, results(after, devices))
    if not good:
        (args.work / f"{name}.hlo").write_text(text)
        print(f"{name}: {sent} in fp8, {wide} wide, results DIFFERENT: {args.work / name}.hlo", flush=True)
    return good, sent, wide


def main():
    parser = _script.parser(pathlib.Path)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--print", action="store_true")
    args = parser.parse_args()
    golden = args.models.parent / "passes" / "devices"
    outcomes = []
    for name in GOLDEN:
        text = rewritten(args, (golden / f"{name}.hlo").read_text(), "dce")
        outcomes.append(same(args, name, text, tuple(jax.devices("cpu"))))
    for seed in range(args.first, args.first + args.count):
        text, devices = drawn(seed)
        if args.print:
            print(f"// seed {seed}\n{text}", flush=True)
        outcomes.append(same(args, str(seed), text, devices))
    good, sent, wide = zip(*outcomes, strict=True)
    print(f"{len(good)} modules ({good.count(None)} refused by XLA), {sum(sent)} sent in fp8, {sum(wide)} wide, "
          f"{good.count(False)} different")
    return 1 if False in good or not sum(sent) or not sum(wide) or 4 * good.count(None) > len(good) else 0


if __name__ == "__main__":
    sys.exit(main())
