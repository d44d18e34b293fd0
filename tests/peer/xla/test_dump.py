#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the history of dumps of all passes of XLA's GPU compiler: it names the pass that loses FP8. With default
flags, Triton fuses each dot before the FP8 rewriter runs: that of seed_scaled with the dequantization of its operands,
that of seed_matmul with its fp8 operands. With Triton's matmuls disabled, qkv_shared loses its FP8 calls in XLA's dot
merger, and the rewriter leaves rowwise_before's matmul wide; encoder_qdq_fwd keeps six of eight FP8 calls. summary.json
has the same counts as the last stage.
"""
import json
import pathlib
import subprocess
import sys

import jsonschema

import _script

HERE = pathlib.Path(__file__).parent
SCHEMA = HERE.parents[2] / "docs" / "history.schema.json"
WANTED = {
    "qkv_shared": (3, [("dot-merger", "merged 3 matmuls into 1")] * 2 + [("cublas-gemm-rewriter", "replaced by a cuBLASLt call on wide types")]),
    "rowwise_before": (1, [("cublas-gemm-rewriter", "replaced by a cuBLASLt call on wide types")]),
    "encoder_qdq_fwd": (8, []),
}
TRITON = "triton-gemm-rewriter", "now part of a Triton fusion that multiplies wide types"
BY_DEFAULT = {"seed_scaled": ("wide", TRITON), "dense_qdq_fwd": ("wide", TRITON), "seed_matmul": ("fp8", None)}


def history(args, name, flags):
    folder = args.work / (name + "".join(flags))
    subprocess.run([sys.executable, HERE / "_xla_gpu.py", "--keep", folder, "--xla-flags=" + " ".join(["--xla_dump_hlo_pass_re=.*", *flags]),
                    args.models / f"{name}.hlo"], check=True, stdout=subprocess.DEVNULL)
    told = subprocess.run([args.bin / "hlo-fp8-opt", "--remarks-format=json", folder], check=True, capture_output=True)
    document = json.loads(told.stdout)
    jsonschema.validate(document, json.loads(SCHEMA.read_text()), cls=jsonschema.Draft202012Validator)
    [module] = document["modules"]
    assert module["target"].endswith("_gpu"), module["target"]
    return module


def check_default(args):
    for name, (outcome, loss) in BY_DEFAULT.items():
        [matmul] = history(args, name, ["--xla_gpu_enable_triton_gemm=true"])["matmuls"]
        found = matmul["loss"] and (matmul["loss"]["pass"], matmul["loss"]["how"])
        assert (matmul["outcome"], found, matmul["fusion"]) == (outcome, loss, "a Triton fusion"), (name, matmul)


def main():
    args = _script.parser(pathlib.Path).parse_args()
    summary = json.loads((args.models / "summary.json").read_text())
    for name, (matmuls, losses) in WANTED.items():
        module = history(args, name, [])
        assert len(module["stages"]) > 30 and module["stages"][0] == "before_optimizations", module["stages"]
        assert module["stages"][-1].endswith("after_optimizations"), module["stages"]
        assert len(module["matmuls"]) == matmuls, module["matmuls"]
        found = [(m["loss"]["pass"], m["loss"]["how"]) for m in module["matmuls"] if m["loss"]]
        assert sorted(found) == sorted(losses), (name, found)
        fp8 = sum(m["outcome"] in ("fp8", "missed") for m in module["matmuls"])
        assert fp8 == summary[name]["fp8"], (name, fp8)
    check_default(args)
    print(f"{len(WANTED)} folders: {', '.join(WANTED)}; as XLA runs by default {', '.join(BY_DEFAULT)}")


if __name__ == "__main__":
    sys.exit(main())
