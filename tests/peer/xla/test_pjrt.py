#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs modules in XLA's runtime through C: `hlo-fp8-run --backend=pjrt:PLUGIN`.

- Every model that the cpu backend executes has the same results on a plugin for the CPU, with `--optimize --emit=dq`,
  and with `--emit=ffi`, whose calls this project's handler executes. Sharded programs have the same results on 8
  devices, rewritten and unmodified, with Shardy's and GSPMD's shardings.
- Compiled for absent GPUs, every model has as many FP8 calls as with XLA's compiler called from Python on the same
  text; on sm_90 and sm_100.
- Unsupported modules cause an error of one line, and exit status 1. Without a plugin for the CPU
  (requirements-pjrt.txt), execution is skipped with a message.
"""
import glob
import importlib.util
import os
import pathlib
import re
import subprocess
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import NamedSharding, PartitionSpec as P  # noqa: E402

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import _script  # noqa: E402
import _xla_gpu  # noqa: E402

CPU_PLUGIN = ("lammps_jax_pjrt_cpu", "pjrt_c_api_cpu_plugin.so")
TARGETS = {"sm_90": "h100_sxm.txtpb", "sm_100": "b200.txtpb"}
HERE = pathlib.Path(__file__).parent
FP8_CALL = 'custom_call_target="__cublas$lt$matmul$f8"'
# Models compiled for GPUs: one call, a forward pass, training steps, a loop; a deep model only for the first target.
COMPILED = ("bias_relu", "mlp_qdq_fwd", "mlp_qdq_train", "scan_layers", "encoder_qdq_fwd")
DEEP = COMPILED[4:]
# These take ten seconds in each form, so they are tested in one form, except with --long.
LARGE = ("llama_train.hlo",)


def cpu_plugin():
    found = importlib.util.find_spec(CPU_PLUGIN[0])
    path = found and pathlib.Path(found.submodule_search_locations[0]) / CPU_PLUGIN[1]
    return path if path and path.exists() else None


def execute(args, *options):
    """Runs hlo-fp8-run; reports of leaks in the plugin are suppressed."""
    env = {**os.environ, "LSAN_OPTIONS": f"suppressions={args.work / 'plugin.supp'}:print_suppressions=0"}
    return subprocess.run([args.bin / "hlo-fp8-run", *options], capture_output=True, text=True, env=env)


# ------------------------------------------------------------------------------------- executing

def sharded_programs(work):
    """Returns HLO of a dequantized product over a 4 x 2 mesh, in every sharding of the operands that JAX users use."""
    mesh = jax.sharding.Mesh(np.array(jax.devices("cpu")).reshape(4, 2), ("d", "m"))
    quantized = jnp.float8_e4m3fn

    def product(x, w, sx, sw):
        wide = [(q.astype(jnp.bfloat16) * s.astype(jnp.bfloat16)) for q, s in ((x, sx), (w, sw))]
        return jax.nn.relu(wide[0] @ wide[1])

    divisions = {"data": (P("d"), P(), P("d")),
                 "tensor": (P(), P(None, "m"), P(None, "m")),
                 "fsdp": (P(("d", "m")), P(("m", "d")), P(("d", "m"))),
                 "both": (P("d", "m"), P("m", "d"), P("m", "d"))}
    shapes = [jax.ShapeDtypeStruct((32, 64), quantized), jax.ShapeDtypeStruct((64, 128), quantized),
              jax.ShapeDtypeStruct((), jnp.float32), jax.ShapeDtypeStruct((), jnp.float32)]
    for shardy in (True, False):
        jax.config.update("jax_use_shardy_partitioner", shardy)
        for name, (x, w, y) in divisions.items():
            inputs = [NamedSharding(mesh, p) for p in (x, w, P(), P())]
            lowered = jax.jit(product, in_shardings=inputs, out_shardings=NamedSharding(mesh, y)).lower(*shapes)
            path = work / f"{name}-{'shardy' if shardy else 'gspmd'}.hlo"
            path.write_text(lowered.as_text(dialect="hlo"))
            yield path, ["--devices=8"]


# Layouts of the entry's parameters and results: 4-bit elements, a tuple parameter, types of every width, empty arrays.
FORMS = {"layouts": """HloModule m, entry_computation_layout={(f32[2,3]{0,1}, s4[4,2]{1,0}, f8e4m3fn[3,5]{0,1})->(f32[3,2]{0,1}, s32[4,2]{0,1}, bf16[5,3]{1,0})}
ENTRY e {
  p = f32[2,3]{0,1} parameter(0)
  q = s4[4,2]{1,0} parameter(1)
  r = f8e4m3fn[3,5]{0,1} parameter(2)
  t = f32[3,2]{0,1} transpose(p), dimensions={1,0}
  c = s32[4,2]{0,1} convert(q)
  u = bf16[3,5]{0,1} convert(r)
  v = bf16[5,3]{1,0} transpose(u), dimensions={1,0}
  ROOT o = (f32[3,2]{0,1}, s32[4,2]{0,1}, bf16[5,3]{1,0}) tuple(t, c, v)
}
""", "tuple": """HloModule m
ENTRY e {
  p = (f32[2,3], s32[4], f32[0,3]) parameter(0)
  a = f32[2,3] get-tuple-element(p), index=0
  c = s32[4] get-tuple-element(p), index=1
  d = f32[0,3] get-tuple-element(p), index=2
  n = f32[2,3] negate(a)
  m = s32[4] negate(c)
  ROOT o = (f32[2,3], s32[4], f32[0,3]) tuple(n, m, d)
}
""", "types": """HloModule m
ENTRY e {
  a = pred[3] parameter(0)
  b = u4[5] parameter(1)
  c = f8e5m2[3] parameter(2)
  d = s4[5] parameter(3)
  f = f64[2] parameter(4)
  n = pred[3] not(a)
  bb = u4[5] add(b, b)
  cc = f8e5m2[3] negate(c)
  dd = s4[5] add(d, d)
  ff = f64[2] negate(f)
  ROOT o = (pred[3], u4[5], f8e5m2[3], s4[5], f64[2]) tuple(n, bb, cc, dd, ff)
}
"""}


def forms(work):
    for name, text in FORMS.items():
        path = work / f"{name}.hlo"
        path.write_text(text)
        yield path, ["--seed=3"]


def models(args):
    """Yields the models that the cpu backend and XLA's CPU compiler support, except those that are XLA's output."""
    for path in sorted(glob.glob(str(args.models / "*.hlo"))):
        if not path.endswith((".xla.hlo", ".spmd.hlo")):
            yield pathlib.Path(path), []


def test_executing(args, plugin):
    wrong = runs = fp8 = 0
    backend = f"--backend=pjrt:{plugin}"
    for path, options in [*models(args), *forms(args.work), *sharded_programs(args.work)]:
        every = [[]] * bool(options) + [["--optimize", "--emit=ffi"], ["--optimize", "--emit=dq"]]
        for form in every[:1] if path.name in LARGE and not args.long else every:
            got = execute(args, backend, *options, *form, "--compare=before", path)
            runs += 1
            if got.returncode or not re.search("compare: .* agree", got.stdout):
                wrong += 1
                print(f"{path.name} {' '.join(options + form)}: status {got.returncode}\n{got.stdout}{got.stderr}")
        text = subprocess.run([args.bin / "hlo-fp8-opt", path], capture_output=True, text=True).stdout
        fp8 += text.count(FP8_CALL)
    print(f"{runs} executions by the plugin, {wrong} do not agree with the cpu backend; {fp8} FP8 matmuls")
    return wrong + (runs < 95) + (fp8 < 100)


def test_partitioned(args, plugin):
    """All devices of a partitioned module run, and agree with the cpu backend's simulated devices; after the
    rewrite, their results are the same except for rounding."""
    path, found = args.models / "fsdp_matmul.spmd.hlo", []
    for form in ([], ["--optimize", "--emit=dq"]):
        out = args.work / f"fsdp{len(found)}.npz"
        got = execute(args, f"--backend=pjrt:{plugin}", "--devices=4", "--partitioned", *form, "--compare=before", f"--outputs={out}", path)
        if got.returncode or "compare: 4 outputs agree" not in got.stdout:
            print(got.stdout, got.stderr)
            return 1
        with np.load(out) as arrays:
            found.append([(arrays[str(i)].view(np.uint16).astype(np.uint32) << 16).view(np.float32) for i in range(4)])
    greatest = np.abs(found[0][0]).max()
    error = max(np.abs(a - b).max() for a, b in zip(*found)) / greatest
    print(f"partitioned: 4 devices, greatest difference {error:.2e} of the greatest output")
    return int(not 0 < greatest < np.inf) + int(error > 2 ** -6)


def test_refusals(args, plugin):
    model = args.models / "mlp_qdq_fwd.hlo"
    uneven = args.work / "uneven.hlo"
    uneven.write_text("HloModule m\nENTRY e {\n  ROOT p = f32[6] parameter(0), sharding={devices=[4]<=[4]}\n}\n")
    other = args.work / "other.hlo"
    other.write_text("HloModule m\nENTRY e {\n  ROOT p = f32[8] parameter(0), sharding={devices=[2]<=[2]}\n}\n")
    nested = args.work / "nested.hlo"
    nested.write_text("HloModule m\nENTRY e {\n  ROOT p = ((f32[2])) parameter(0)\n}\n")
    beside = args.work / "mixed.hlo"
    beside.write_text("HloModule m\nENTRY e {\n  p = (f32[2]) parameter(0)\n  ROOT q = f32[2] parameter(1)\n}\n")
    cases = [([nested], "a nested tuple parameter is not supported"),
             ([beside], "a tuple parameter next to other parameters is not supported"),
             (["--devices=4", uneven], "does not divide this array evenly"),
             (["--devices=4", other], "the sharding has a different number of devices"),
             (["--xla=xla_no_such_option=1", model], "cannot compile the module"),
             (["--compile-only", f"--topology={model}", model], "cannot read the target"),
             (["--devices=8", "--partitioned", args.models / "fsdp_matmul.spmd.hlo"], "the module has 4 partitions, but 8 devices are given"),
             (["--optimize", model], "XLA supports only cuBLASLt calls that it makes itself")]
    wrong = 0
    for options, message in cases:
        got = execute(args, f"--backend=pjrt:{plugin}", *options)
        if got.returncode != 1 or message not in got.stderr:
            wrong += 1
            print(f"{options}: status {got.returncode}\n{got.stderr}")
    return wrong


# ------------------------------------------------------------------------------------- compiling

def fp8_calls(path):
    return path.read_text().count(FP8_CALL)


def test_compiling(args, plugin):
    wrong = total = 0
    kernels = args.work / "kernels"
    for name in COMPILED:
        path = args.work / f"{name}.qdq.hlo"
        subprocess.run([args.bin / "hlo-fp8-opt", "--emit=qdq", "-o", path, args.models / f"{name}.hlo"], check=True)
        for target, file in list(TARGETS.items())[:1 if name in DEEP and not args.long else None]:
            made = args.work / f"{name}.{target}.hlo"
            got = execute(args, f"--backend=pjrt:{plugin}", "--compile-only", f"--xla=xla_gpu_autotune_level=0 xla_gpu_kernel_cache_file={kernels}",
                          f"--topology={HERE / 'targets' / file}", f"--optimized={made}", path)
            alone = subprocess.run([sys.executable, HERE / "_xla_gpu.py", "--default-flags", f"--target={target}",
                                    "--kernels", kernels, path],
                                   capture_output=True, text=True)
            if got.returncode or alone.returncode or not got.stdout.count("matmuls: "):
                wrong += 1
                print(f"{name} {target}: status {got.returncode} and {alone.returncode}\n{got.stderr}{alone.stderr}")
                continue
            total += fp8_calls(made)
            if fp8_calls(made) != alone.stdout.count(FP8_CALL):
                wrong += 1
                print(f"{name} {target}: {fp8_calls(made)} FP8 calls, {alone.stdout.count(FP8_CALL)} by XLA alone")
    print(f"{len(COMPILED)} modules compiled for GPUs, {total} FP8 calls; {wrong} differ")
    return wrong + (total < 20)


def main():
    parser = _script.parser(pathlib.Path)
    parser.add_argument("--long", action="store_true", help="the slow ones in every form and for every target too")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    (args.work / "plugin.supp").write_text(f"leak:{CPU_PLUGIN[1]}\nleak:xla_cuda_plugin.so\n")
    _xla_gpu.require_plugin()
    wrong = test_compiling(args, _xla_gpu.find_plugin())
    plugin = cpu_plugin()
    if plugin:
        wrong += test_executing(args, plugin) + test_partitioned(args, plugin) + test_refusals(args, plugin)
    else:
        print("skipped: no PJRT plugin for the CPU is installed; nothing was executed")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
