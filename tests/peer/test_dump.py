#!/usr/bin/env python3
"""Folders that XLA's GPU compiler has dumped, every pass of it: where the history says that FP8 is lost, it is.

XLA's dot merger is what costs qkv_shared its FP8 calls, and the rewriter leaves rowwise_before's matmul wide; encoder_qdq_fwd keeps
six of eight. The outcome at the last stage is what summary.json counts.
"""
import json
import pathlib
import subprocess
import sys

import jsonschema

import _script

HERE = pathlib.Path(__file__).parent
SCHEMA = HERE.parents[1] / "docs" / "history.schema.json"
WANTED = {
    "qkv_shared": (3, [("dot-merger", "merged: of 3 matmuls 1 are left")] * 2 + [("cublas-gemm-rewriter", "made a cuBLASLt call on wide types")]),
    "rowwise_before": (1, [("cublas-gemm-rewriter", "made a cuBLASLt call on wide types")]),
    "encoder_qdq_fwd": (8, []),
}


def main():
    args = _script.parser(pathlib.Path).parse_args()
    summary = json.loads((args.models / "summary.json").read_text())
    for name, (matmuls, losses) in WANTED.items():
        folder = args.work / name
        subprocess.run([sys.executable, HERE / "_xla_gpu.py", "--keep", folder, "--xla-flags=--xla_dump_hlo_pass_re=.*",
                        args.models / f"{name}.hlo"], check=True, stdout=subprocess.DEVNULL)
        told = subprocess.run([args.bin / "hlo-fp8-opt", "--remarks-format=json", folder], check=True, capture_output=True)
        history = json.loads(told.stdout)
        jsonschema.validate(history, json.loads(SCHEMA.read_text()), cls=jsonschema.Draft202012Validator)
        [module] = history["modules"]
        assert len(module["stages"]) > 30 and module["stages"][0] == "before_optimizations", module["stages"]
        assert module["stages"][-1].endswith("after_optimizations"), module["stages"]
        assert len(module["matmuls"]) == matmuls, module["matmuls"]
        found = [(m["loss"]["pass"], m["loss"]["how"]) for m in module["matmuls"] if m["loss"]]
        assert sorted(found) == sorted(losses), (name, found)
        fp8 = sum(m["outcome"] in ("fp8", "missed") for m in module["matmuls"])
        assert fp8 == summary[name]["fp8"], (name, fp8)
    print(f"{len(WANTED)} folders: {', '.join(WANTED)}")


if __name__ == "__main__":
    sys.exit(main())
