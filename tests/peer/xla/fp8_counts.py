#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the FP8 calls that hlo-fp8-opt and XLA's GPU compiler make of each module of the corpus.

Prints a table of all modules: dots, FP8 calls, and calls that have each epilogue, an amax, or an fp8 result. XLA's
counts are those of the models' summary.json. Fails if a module has fewer FP8 calls, fewer amaxes or fewer fp8 results
than with XLA, or if an epilogue that XLA fuses is missing. Also fails if the count of FP8 calls is not XLA's or, for
the modules of DIFFERENT, the count listed with its reason. So a rule that stops firing is detected. jaxlib must be able
to read the output, in both forms of the call.

With --handover, each row also shows whether XLA's GPU compiler accepts the output (test_handover.py tests
this): `yes` if it keeps all FP8 calls; `-` if it does not compile the original in the same way. The row also has the
FP8 calls that stock XLA, without disabled passes or flags, makes of the output with --emit=qdq, and the typed calls
that it keeps with --emit=ffi (test_emit.py tests this). Both must equal the calls of hlo-fp8-opt, except for the
modules of FEWER.
"""
import collections
import json
import pathlib
import re
import subprocess
import sys

from jaxlib import _hlo

import _script
import test_emit
import test_handover

# Module: (count of FP8 calls with hlo-fp8, reason for the difference from XLA).
DIFFERENT = {
    "rowwise_before": (1, "a scale for each row goes past the call; XLA leaves the dot wide"),
    "qkv_shared": (3, "XLA merges the three dots of one operand before it looks for fp8, and none is left"),
    # Programs:
    "aqt_fake_quantize": (1, "a scale for each row goes past the call; XLA leaves the dot wide"),
    "haliax_mlp_train": (5, "a dequantized value that is converted again"),
    "jax_attention_blocks": (2, "queries are dequantized before the loop, which XLA leaves so"),
    "jax_attention_grouped": (2, "a transpose and a reshape after the dequantization"),
    "jax_experts": (2, "a scale for each row goes past the call; XLA leaves the dot wide"),
    "jax_moe_columns": (1, "a scale for each row and column goes past the product; XLA leaves it wide"),
    "jax_moe_gated": (3, "XLA merges the two products of one operand into one"),
    "jax_moe_train_dequantized": (2, "a scale for each row and group goes past the product; XLA leaves it wide"),
    "qwix_dequantized": (1, "a scale for each row goes past the call; XLA leaves the dot wide"),
    "qwix_nnx_attention": (6, "XLA merges the three dots of one operand into one"),
    "qwix_ptq_int4": (2, "weights of 4 bits become fp8"),
    "torch_attention": (2, "a dequantized value that is converted again"),
    "torch_einsum": (1, "a dequantized value that is converted again"),
    "torch_export_linear": (1, "a scale for each row goes past the call; XLA leaves the dot wide"),
    "torch_kv_cache": (2, "a product of a row and a matrix"),
    "torch_linear": (1, "a dequantized value that is converted again"),
    "torch_pt2e_bf16": (1, "a dequantized value that is converted again"),
    "torch_swiglu": (3, "XLA merges the two dots of one operand into one"),
    "torchao_float8_rowwise": (1, "a scale for each row goes past the call; XLA leaves the dot wide"),
}

# Module: (XLA's count of FP8 calls with --emit=qdq, reason).
FEWER = {
    "qkv_shared": (1, "XLA merges the three dots of one operand into one"),
}

CALL = re.compile(r' = (\((?P<d>\w+)\[.*?custom_call_target="__cublas\$lt\$matmul\$f8".*)')
EPILOGUE = re.compile(r'"epilogue":"(\w+)"')
DOT = re.compile(r"^\s*(?:ROOT )?%\S+ = \S+ dot\(", re.M)


def rewrite(program, path, form):
    """Returns the rewritten module and messages; the module is None if hlo-fp8-opt or jaxlib rejects it."""
    command = [program, "--verify-each", "--scale-operands=" + form, path]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return None, f"status {done.returncode}\n{done.stderr}"
    try:
        _hlo.hlo_module_from_text(done.stdout)
    except Exception as refusal:  # jaxlib's exception has no specific base class
        return None, f"jaxlib refuses the output with --scale-operands={form}: {refusal}"
    return done.stdout, done.stderr


class Calls:
    """Collects the features of a module's FP8 calls."""

    def __init__(self, count, epilogues, amax, fp8_results):
        self.count, self.epilogues, self.amax, self.fp8_results = count, epilogues, amax, fp8_results

    @classmethod
    def of_text(cls, text):
        calls = [match for match in CALL.finditer(text)]
        epilogues = collections.Counter(EPILOGUE.search(call[1])[1] for call in calls)
        return cls(len(calls), epilogues, sum('"damax_output":true' in call[1] for call in calls),
                   sum(call["d"].startswith("f8") for call in calls))

    @classmethod
    def of_summary(cls, facts):
        return cls(facts["fp8"], collections.Counter(facts["epilogue"]), facts["damax"].get("true", 0),
                   facts["fp8_out"])

    def lacks(self, other):
        """Returns the features that the other calls have and these lack. DEFAULT fuses nothing, and a gelu that XLA did
        not fuse may be fused here."""
        wrong = []
        for name in ("amax", "fp8_results"):
            if getattr(self, name) < getattr(other, name):
                wrong.append(f"{name} {getattr(self, name)}, XLA {getattr(other, name)}")
        left = self.epilogues - other.epilogues
        for epilogue, count in (other.epilogues - self.epilogues).items():
            for more in [e for e in left if richer(e, epilogue)]:
                taken = min(count, left[more])
                left[more] -= taken
                count -= taken
            if epilogue != "DEFAULT" and count:
                wrong.append(f"{count} {epilogue} less than XLA")
        return wrong

    def __str__(self):
        words = [f"{count} {name}" for name, count in sorted(self.epilogues.items()) if name != "DEFAULT"]
        words += [f"{self.amax} amax"] * bool(self.amax) + [f"{self.fp8_results} fp8 out"] * bool(self.fp8_results)
        return ", ".join(words)


def richer(epilogue, other):
    """Returns whether the epilogue includes the other epilogue and more."""
    return set(other.split("_")) < set(epilogue.split("_"))


def check(program, path, name, facts):
    """Returns the calls of hlo-fp8-opt and of XLA for one module, the number of dots that are left, and the faults."""
    ours = [rewrite(program, path, form) for form in ("used", "all")]
    for text, said in ours:
        if not text:
            return None, None, 0, [said]
    calls, theirs = Calls.of_text(ours[1][0]), Calls.of_summary(facts)
    wrong = calls.lacks(theirs)
    expected, _ = DIFFERENT.get(name, (theirs.count, ""))
    if calls.count != expected:
        wrong.append(f"{expected} FP8 calls expected")
    return calls, theirs, len(DOT.findall(ours[1][0])), wrong


def taken(args, name):
    """Returns whether XLA's GPU compiler accepts the output in the operand form that it supports, or its messages."""
    try:
        problems = test_handover.check(name, "sm_90", args)
    except test_handover.Refused as refused:
        problems = [str(refused)]
    return "-" if problems is None else "NO: " + "; ".join(problems) if problems else "yes"


def emitted(args, name):
    """Returns the numbers of stock XLA's calls with --emit=qdq and of those it keeps with --emit=ffi, as text; the first
    number; and the faults."""
    ours, fused, said = test_emit.fused(args, name)
    ours, (_, kept, told) = sum(ours.values()), test_emit.kept(args, name)
    if fused is None or kept is None:
        return "NO", 0, [said + told]
    fused = sum(fused.values())
    wrong = [f"XLA makes {fused} calls of --emit=qdq"] * (fused != FEWER.get(name, (ours,))[0])
    wrong += [f"XLA keeps {kept} typed calls"] * (kept != ours)
    return f"{fused} {kept}", fused, wrong


def main():
    parser = _script.parser(pathlib.Path)
    parser.add_argument("--handover", action="store_true", help="ask XLA's GPU compiler of each output as well")
    args = parser.parse_args()
    summary = json.loads((args.models / "summary.json").read_text())
    bad, sums = 0, collections.Counter()
    print(f"{'module':24} {'dots':>5} {'XLA':>5} {'ours':>5} {'left':>5}  {'taken':5} {'qdq ffi':7} folded in, XLA | ours")
    for name, facts in summary.items():
        calls, theirs, left, wrong = check(args.bin / "hlo-fp8-opt", args.models / f"{name}.hlo", name, facts)
        bad += bool(wrong)
        forms, fused, problems = emitted(args, name) if args.handover else ("", 0, [])
        bad += bool(problems)
        sums["fused"] += fused
        wrong += problems
        note = "WRONG: " + "; ".join(wrong) if wrong else DIFFERENT.get(name, (0, ""))[1]
        if not calls:
            print(f"{name:24} {note}")
            continue
        sums.update(dots=facts["dots"], theirs=theirs.count, ours=calls.count, left=left)
        handed = taken(args, name) if args.handover else ""
        bad += handed.startswith("NO")
        folded = f"{theirs} | {calls}" if str(theirs) or str(calls) else ""
        print(f"{name:24} {facts['dots']:5} {theirs.count:5} {calls.count:5} {left:5}  {handed:5} {forms:>7} {folded}  {note}".rstrip())
    print(f"{'in all':24} {sums['dots']:5} {sums['theirs']:5} {sums['ours']:5} {sums['left']:5}         {sums['fused']:5}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
