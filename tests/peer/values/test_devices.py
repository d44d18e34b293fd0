#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares collectives before and after they are moved onto fp8 values, run by jaxlib on several CPU devices.

Every device has separate inputs, except for parameters whose sharding assigns one part to several devices. The
collectives that are moved only move values, so the results must be equal, except for a last digit after a division.
"""
import os
import pathlib
import re
import subprocess
import sys

DEVICES = 4
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = (f"--xla_force_host_platform_device_count={DEVICES} "
                           "--xla_allow_excess_precision=false")

import jax  # noqa: E402
import numpy as np  # noqa: E402
from jax._src.lib import xla_client  # noqa: E402
from jaxlib import _hlo, _jax  # noqa: E402

import _script

# Attributes that describe shardings before partitioning.
MARKS = re.compile(r', (?:channel_id=\d+|use_global_device_ids=true|sharding=\{(?:[^{}]|\{[^{}]*\})*\}'
                   r'|frontend_attributes=\{(?:[^{}"]|"(?:\\.|[^"\\])*"|\{[^{}]*\})*\})')
# Values of a vector from which scales are computed.
WIDE = re.compile(r"= (?:f32|bf16|f16)\[\d+,\S+ (?:all-gather|all-to-all|collective-permute)(?:-done)?\(")
SENT = re.compile(r"= f8\w+\[\S+ (?:all-gather|all-to-all|collective-permute)(?:-done)?\(")

# jaxlib aborts when it executes these modules, whose groups are along a part of a mesh axis.
PART = re.compile(r"'\w+':\(\d+\)\d")

# The entry of this module has a tuple parameter, which jaxlib does not execute.
TUPLE = re.compile(r"^ENTRY[^=]*=? *(?:[^(]*\([^()]*: \(|\{\n.* = \(.*\) parameter\()", re.M)


def as_replicas(text):
    """Returns the module with a replica per partition: jaxlib runs this unchanged, but would split partitions again."""
    text = text.replace("num_partitions=", "replica_count=")
    return MARKS.sub("", text)


def compiled(text):
    text = as_replicas(text)
    computation = _hlo.XlaComputation(_hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto())
    client = jax.devices("cpu")[0].client
    options = xla_client.CompileOptions()
    options.num_replicas = options.executable_build_options.num_replicas = DEVICES
    options.device_assignment = xla_client.DeviceAssignment.create(np.arange(DEVICES).reshape(DEVICES, 1))
    module = xla_client._xla.mlir.xla_computation_to_mlir_module(computation)
    program = client.compile_and_load(module, _jax.DeviceList(tuple(jax.devices("cpu"))), options)
    return program, computation.program_shape()


def parts(sharding):
    """Returns which part of a value each device has; None if the sharding replicates the value."""
    if sharding.startswith("{replicated"):
        return None
    places = re.search(r"\[([\d,]+)\]T\(([\d,]+)\)", sharding)  # the devices in the order of the sharding
    order = np.arange(DEVICES)
    if places:
        dims, perm = ([int(n) for n in group.split(",")] for group in places.groups())
        order = order.reshape(dims).transpose(perm).flatten()
    tiles = re.match(r"\{devices=\[([\d,]+)\](\d[\d,]*)?", sharding)
    if tiles:
        dims = [int(n) for n in tiles[1].split(",")]
        order = np.array([int(n) for n in tiles[2].split(",")]) if tiles[2] else order
        alike = ["replicate" in sharding and i == len(dims) - 1 for i in range(len(dims))]
    else:
        names, dims = zip(*re.findall(r"'(\w+)'=(\d+)", sharding))
        dims = [int(n) for n in dims]
        alike = [f"'{name}'" not in sharding.split("[", 2)[2] for name in names]
    part = np.arange(DEVICES).reshape(dims)
    for axis, same in enumerate(alike):
        part = np.broadcast_to(np.take(part, [0], axis), dims) if same else part
    out = np.empty(DEVICES, int)
    out[order] = part.flatten()
    return out


def inputs(text, shapes):
    """Returns an array per parameter, with its values on the devices side by side."""
    shardings = dict(re.findall(r" parameter\((\d+)\), sharding=(\{(?:[^{}]|\{[^{}]*\})*\})", text))
    random = np.random.default_rng(0)
    mesh = jax.sharding.Mesh(np.array(jax.devices("cpu")), ("x",))
    arrays = []
    for number, shape in enumerate(shapes):
        kind, dims = np.dtype(shape.numpy_dtype()), tuple(shape.dimensions())
        part = parts(shardings[str(number)]) if str(number) in shardings else np.arange(DEVICES)
        alike = part is None or not dims
        whole = dims if alike else (DEVICES,) + dims
        values = random.standard_normal(whole).astype(np.float32).astype(kind)
        if not alike:
            values = values[part].reshape((DEVICES * dims[0],) + dims[1:])
        spec = jax.sharding.PartitionSpec() if alike else jax.sharding.PartitionSpec("x")
        arrays.append(jax.device_put(values, jax.sharding.NamedSharding(mesh, spec)))
    return arrays


def results(text):
    program, shape = compiled(text)
    outputs = program.execute_sharded(inputs(text, shape.parameter_shapes()))
    return [np.asarray(part, dtype=np.float32)
            for parts in outputs.disassemble_into_single_device_arrays() for part in parts]


def near(a, b):
    """Returns whether arrays are equal except for the last digit: depending on other code, jaxlib divides by a number
    that is equal for all elements, or multiplies by its reciprocal."""
    return np.all(np.abs(a - b) <= 2.0**-20 * np.abs(a).max())


def check(args, name, module):
    """Checks whether a module sends only fp8 values, with the same results."""
    command = [args.bin / "hlo-fp8-opt", "--verify-each", "-"]
    before, after = (subprocess.run([*command, "--passes=" + passes], input=module, capture_output=True, text=True,
                                    check=True).stdout
                     for passes in ("", "algebra,fp8-devices,sink-dequantize,fp8-devices,dce"))
    sent = len(SENT.findall(after)), len(WIDE.findall(after))
    pairs = list(zip(results(before), results(after), strict=True))
    equal = all(np.array_equal(a, b, equal_nan=True) or "divide(" in module and near(a, b) for a, b in pairs)
    good = equal and sent[0] and not sent[1]
    print(f"{name:28} {sent[0]} in fp8, {sent[1]} wide, {len(pairs)} results "
          f"{'equal' if equal else 'DIFFERENT'}{'' if good else '  WRONG'}")
    return good


def main():
    args = _script.parser(pathlib.Path).parse_args()
    devices = args.models.parent / "passes" / "devices"
    wrong = 0
    for path in [*sorted(args.models.glob("*.spmd.hlo")), *sorted(devices.glob("*.hlo"))]:
        text = path.read_text()
        if path.name.startswith(("missed-", "not-")) or path.stem.endswith("variants") or TUPLE.search(text) or PART.search(text):
            continue
        for place, module in enumerate(text.split("// -----")):
            wrong += not check(args, path.stem + f".{place + 1}" * ("// -----" in text), module)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
