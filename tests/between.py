#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests functions between a dequantization and a dot: FP8 passes through them, or the reason names them.

usage: between.py --bin DIR [--seed N] [--count N]

Every function of FUNCTIONS is inserted between the dequantization and the dot, on one side or on both, in each wide
type, with and without a scale. The verdict must be that of the table, and the blocker must be the instruction %f of the
function. With the function before the quantization, as the hint suggests, the dot must be FP8. With --count, N random
chains of functions are tested: the reason must name the function nearest to the dot that FP8 cannot pass. Modules that
become FP8 are executed before and after, with exact data.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

ROWS, K, COLUMNS = 32, 64, 48
COMPUTATIONS = """
add_{t} {{ p = {t}[] parameter(0)
  q = {t}[] parameter(1)
  ROOT r = {t}[] add(p, q) }}
max_{t} {{ p = {t}[] parameter(0)
  q = {t}[] parameter(1)
  ROOT r = {t}[] maximum(p, q) }}
less_{t} {{ p = {t}[] parameter(0)
  q = {t}[] parameter(1)
  ROOT r = pred[] compare(p, q), direction=LT }}
twice_{t} {{ p = {t}[] parameter(0)
  ROOT r = {t}[] add(p, p) }}
"""
FP8, OPERATION, SCALE, ZERO_POINT, SIGN = (
    "fp8", "operation-after-dequantize", "scale-not-scalar", "dequantize-not-recognized", "relu-scale-sign")


def unary(op, extra=""):
    return f"%f = {{s}} {op}({{d}}){extra}"


ONE = "%one = {t}[] constant(1)\n  %ones = {s} broadcast(%one), dimensions={{}}\n  "
HALF = "%half = {t}[] constant(0.5)\n  %halves = {s} broadcast(%half), dimensions={{}}\n  "
ZERO = "%zero = {t}[] constant(0)\n  %zeros = {s} broadcast(%zero), dimensions={{}}\n  "
IOTA = "%iota = {s} iota(), iota_dimension=1\n  "
ROW = "%row = {t}[{n}] reduce({d}, %zero), dimensions={{1}}, to_apply=add_{t}\n  %rows = {s} broadcast(%row), dimensions={{0}}\n  "
EXTREME = "%low = {t}[] constant(-inf)\n  %high = {t}[{n}] reduce({d}, %low), dimensions={{1}}, to_apply=max_{t}\n  " \
          "%highs = {s} broadcast(%high), dimensions={{0}}\n  "

# name: (HLO text, verdict without a scale or with a scale of unknown sign, verdict with a positive scale)
# {d} is the dequantized value, {s} its shape, {t} its type, {n} its rows, {i} an integer type of its width.
FUNCTIONS = {name: (unary(name), OPERATION, OPERATION) for name in (
    "abs acos acosh asin asinh atanh cbrt ceil cosine cosh erf exponential exponential-minus-one floor log log-plus-one logistic negate "
    "round-nearest-afz round-nearest-even rsqrt sign sine sinh sqrt tan tanh").split()}
FUNCTIONS |= {name: (ONE + f"%f = {{s}} {name}({{d}}, %ones)", OPERATION, OPERATION)
              for name in "add subtract maximum minimum power remainder atan2".split()}
FUNCTIONS |= {f"{name} of itself": (f"%f = {{s}} {name}({{d}}, {{d}})", OPERATION, OPERATION)
              for name in "add subtract maximum multiply divide power".split()}
FUNCTIONS |= {f"{name} with an input": (f"%f = {{s}} {name}({{d}}, %x{{side}})", OPERATION, OPERATION)
              for name in "add subtract maximum minimum power atan2".split()}
FUNCTIONS |= {
    "copy": (unary("copy"), FP8, FP8),
    "reverse": (unary("reverse", ", dimensions={{1}}"), FP8, FP8),
    "optimization-barrier": (unary("opt-barrier"), "chain-not-movable", "chain-not-movable"),
    "times a half": (HALF + "%f = {s} multiply({d}, %halves)", FP8, FP8),
    "over a half": (HALF + "%f = {s} divide({d}, %halves)", FP8, FP8),
    "times a vector": (IOTA + "%f = {s} multiply({d}, %iota)", SCALE, SCALE),
    "times an input": ("%f = {s} multiply({d}, %x{side})", SCALE, SCALE),
    "over an input": ("%f = {s} divide({d}, %x{side})", SCALE, SCALE),
    "times a gate": ("%e = {s} logistic(%x{side})\n  %f = {s} multiply({d}, %e)", OPERATION, OPERATION),
    "over a gate": ("%e = {s} exponential(%x{side})\n  %f = {s} divide({d}, %e)", OPERATION, OPERATION),
    "update with 0": ("%zero = {t}[] constant(0)\n  %zeros = {t}[1,{k}] broadcast(%zero), dimensions={{}}\n  %i = s32[] constant(1)\n  "
                      "%f = {s} dynamic-update-slice({d}, %zeros, %i, %i)", "chain-not-movable", "chain-not-movable"),
    "update with itself": ("%h = {t}[1,{k}] slice({d}), slice={{[0:1],[0:{k}]}}\n  %i = s32[] constant(1)\n  "
                           "%f = {s} dynamic-update-slice({d}, %h, %i, %i)", "chain-not-movable", "chain-not-movable"),
    "one over it": (ONE + "%f = {s} divide(%ones, {d})", OPERATION, OPERATION),
    "an input over it": ("%f = {s} divide(%x{side}, {d})", OPERATION, OPERATION),
    "relu": (ZERO + "%f = {s} maximum({d}, %zeros)", SIGN, FP8),
    "relu the other way round": (ZERO + "%f = {s} maximum(%zeros, {d})", SIGN, FP8),
    "relu as a clamp": (ZERO + "%inf = {t}[] constant(inf)\n  %f = {s} clamp(%zero, {d}, %inf)", SIGN, FP8),
    "relu of -0": ("%zero = {t}[] constant(-0)\n  %zeros = {s} broadcast(%zero), dimensions={{}}\n  %f = {s} maximum({d}, %zeros)", SIGN, FP8),
    "relu as a select": (ZERO + "%c = pred[{n},{k}] compare({d}, %zeros), direction=GT\n  %f = {s} select(%c, {d}, %zeros)", FP8, FP8),
    "leaky relu": (HALF + ZERO + "%c = pred[{n},{k}] compare({d}, %zeros), direction=GT\n  %m = {s} multiply({d}, %halves)\n  "
                   "%f = {s} select(%c, {d}, %m)", None, None),
    "relu6": (ZERO + "%six = {t}[] constant(6)\n  %f = {s} clamp(%zero, {d}, %six)", OPERATION, OPERATION),
    "minimum with 0": (ZERO + "%f = {s} minimum({d}, %zeros)", OPERATION, OPERATION),
    "mask": (ZERO + "%f = {s} select(%p{side}, {d}, %zeros)", FP8, FP8),
    "mask with 1": (ONE + "%f = {s} select(%p{side}, {d}, %ones)", OPERATION, OPERATION),
    "mask with an input": ("%f = {s} select(%p{side}, {d}, %x{side})", OPERATION, OPERATION),
    "clamp": (ONE + ZERO + "%f = {s} clamp(%zero, {d}, %one)", OPERATION, OPERATION),
    "reduce-precision": (unary("reduce-precision", ", exponent_bits=5, mantissa_bits=2"), OPERATION, OPERATION),
    "by way of integers": ("%i = s32[{n},{k}] convert({d})\n  %f = {s} convert(%i)", OPERATION, OPERATION),
    "by way of bits": ("%i = {i}[{n},{k}] bitcast-convert({d})\n  %n = {i}[{n},{k}] not(%i)\n  %f = {s} bitcast-convert(%n)", OPERATION, OPERATION),
    "is-finite": ("%c = pred[{n},{k}] is-finite({d})\n  %f = {s} convert(%c)", OPERATION, OPERATION),
    "map": ("%f = {s} map({d}), dimensions={{0,1}}, to_apply=twice_{t}", OPERATION, OPERATION),
    "sort": ("%f = {s} sort({d}), dimensions={{1}}, to_apply=less_{t}", OPERATION, OPERATION),
    "cumulative sum": (ZERO + "%f = {s} reduce-window({d}, %zero), window={{size=1x{k} pad=0_0x{last}_0}}, to_apply=add_{t}", OPERATION, OPERATION),
    "concatenate with an input": ("%h = {t}[{n},{half}] slice({d}), slice={{[0:{n}],[0:{half}]}}\n  %g = {t}[{n},{half}] slice(%x{side}), "
                                  "slice={{[0:{n}],[0:{half}]}}\n  %f = {s} concatenate(%h, %g), dimensions={{1}}", OPERATION, OPERATION),
    "custom-call": ('%f = {s} custom-call({d}), custom_call_target="somebody"', OPERATION, OPERATION),
    "mean": (ZERO + ROW + "%f = {s} subtract({d}, %rows)", OPERATION, OPERATION),
    "softmax": (ZERO + EXTREME + "%a = {s} subtract({d}, %highs)\n  %f = {s} exponential(%a)\n  %sum = {t}[{n}] reduce(%f, %zero), dimensions={{1}}, "
                "to_apply=add_{t}\n  %sums = {s} broadcast(%sum), dimensions={{0}}\n  %g = {s} divide(%f, %sums)", OPERATION, OPERATION),
    "rms norm": (ZERO + "%a = {s} multiply({d}, {d})\n  %sum = {t}[{n}] reduce(%a, %zero), dimensions={{1}}, to_apply=add_{t}\n  "
                 "%r = {t}[{n}] rsqrt(%sum)\n  %rs = {s} broadcast(%r), dimensions={{0}}\n  %f = {s} multiply({d}, %rs)", FP8, FP8),
    "layer norm": (ZERO + ROW + "%f = {s} subtract({d}, %rows)\n  %a = {s} multiply(%f, %f)\n  %sum = {t}[{n}] reduce(%a, %zero), dimensions={{1}}, "
                   "to_apply=add_{t}\n  %r = {t}[{n}] rsqrt(%sum)\n  %rs = {s} broadcast(%r), dimensions={{0}}\n  %g = {s} multiply(%f, %rs)", OPERATION, OPERATION),
    "gelu": (HALF + ONE + "%e = {s} erf({d})\n  %a = {s} add(%e, %ones)\n  %h = {s} multiply(%a, %halves)\n  %f = {s} multiply({d}, %h)", OPERATION, OPERATION),
    "silu": ("%e = {s} logistic({d})\n  %f = {s} multiply({d}, %e)", OPERATION, OPERATION),
}
TYPES = {"bf16": "u16", "f16": "u16", "f32": "u32"}
# name: (HLO text of a factor, whether the factor is known to be nonnegative); {v} is the converted value.
SCALES = {
    "none": ("", True),
    "scalar": ("%b = {t}[] parameter({next})\n  %bs = {s} broadcast(%b), dimensions={{}}\n  @d = {s} multiply({v}, %bs)", False),
    "rows": ("%b = {t}[{n}] parameter({next})\n  %bs = {s} broadcast(%b), dimensions={{0}}\n  @d = {s} multiply({v}, %bs)", False),
    "constant": ("%b = {t}[] constant(0.5)\n  %bs = {s} broadcast(%b), dimensions={{}}\n  @d = {s} multiply({v}, %bs)", True),
    "magnitude": ("%b = {t}[{n}] parameter({next})\n  %a = {t}[{n}] abs(%b)\n  %bs = {s} broadcast(%a), dimensions={{0}}\n  @d = {s} multiply({v}, %bs)", True),
}


class Side:
    """The instructions that compute one operand of the dot."""

    def __init__(self, number, rows, wide, first):
        self.number, self.rows, self.wide, self.next = number, rows, wide, first
        self.lines = []
        self.shape = f"{wide}[{rows},{K}]"
        self.value = None

    def add(self, text, tag, value=None):
        """Adds the template `text`, whose names get the suffix `tag`. Its last instruction becomes the value."""
        text = text.format(d="@v", v="@v", s=self.shape, t=self.wide, n=self.rows, k=K, half=K // 2, last=K - 1, i=TYPES[self.wide],
                           side=f"{self.number}", next=self.next)
        self.next += text.count("parameter(")
        text = text.replace(f"%x{self.number}", "@x").replace(f"%p{self.number}", "@p")
        for name in sorted({word.split("%", 1)[1].strip("(), ") for word in text.replace(",", " ").replace("(", " ").split() if "%" in word}, key=len, reverse=True):
            text = text.replace(f"%{name}", f"%{name}\0{tag}")
        text = text.replace("\0", ".").replace("@v", str(self.value)).replace("@d", f"%d.{tag}")
        text = text.replace("@x", f"%x{self.number}").replace("@p", f"%p{self.number}")
        self.lines += text.split("\n  ")
        self.value = self.lines[-1].split(" ", 1)[0]

    def parameter(self, name, shape):
        self.lines.append(f"%{name}{self.number} = {shape} parameter({self.next})")
        self.next += 1


def operand(number, rows, wide, first, scale, functions, quantize_last=False):
    """Returns a side with its functions, in order, each a name of FUNCTIONS; their names end in `side_index`."""
    side = Side(number, rows, wide, first)
    side.parameter("x", side.shape)
    side.parameter("p", f"pred[{rows},{K}]")

    def quantize(value):
        side.lines.append(f"%q{number} = f8e4m3fn[{rows},{K}] convert({value})")
        side.lines.append(f"%w{number} = {side.shape} convert(%q{number})")
        side.value = f"%w{number}"
        if SCALES[scale][0]:
            side.add(SCALES[scale][0], f"s{number}")

    if not quantize_last:
        quantize(f"%x{number}")
    else:
        side.value = f"%x{number}"
    for index, name in enumerate(functions):
        side.add(FUNCTIONS[name][0], f"{number}_{index}")
    if quantize_last:
        quantize(side.value)
    return side


def module(wide, scale, functions, both, quantize_last=False):
    left = operand(0, ROWS, wide, 0, scale, functions, quantize_last)
    right = operand(1, COLUMNS, wide, left.next, scale, functions if both else [], quantize_last)
    dot = (f"ROOT %dot = {wide}[{ROWS},{COLUMNS}] dot({left.value}, {right.value}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}")
    lines = [*left.lines, *right.lines, dot]
    return COMPUTATIONS.format(t=wide) + "ENTRY e {\n  " + "\n  ".join(lines) + "\n}\n"


def expected(scale, functions):
    """Returns the verdict and the name of the instruction that the reason names, or None if the table does not
    determine them."""
    if scale == "none" and "mask with 1" in functions:  # 1 is an fp8 value, unless a scale multiplies it
        return (None, None) if len(functions) > 1 else (FP8, None)
    if functions == ["leaky relu"]:
        return ("scales-of-branches" if scale == "none" else OPERATION), "f.0_0"
    rows = [(FUNCTIONS[name], f"f.0_{index}") for index, name in enumerate(functions)]
    signed, found = SCALES[scale][1], (FP8, None)
    for row, name in rows:  # the functions, from the dequantization to the dot
        verdict = row[1 + signed]
        # An iota is nonnegative; nothing is known about other vectors.
        signed &= (row[2] != SCALE or "multiply({d}, %iota)" in row[0]) and "rsqrt" not in row[0]
        if verdict == FP8 or (verdict == SCALE and found[0] != FP8) or (verdict == SIGN and found[0] == OPERATION):
            continue
        found = verdict, name
    return found


def verdicts(options, texts, folder):
    """Returns the verdict and the blocker of each module."""
    paths = []
    for index, text in enumerate(texts):
        paths.append(os.path.join(folder, f"{index}.hlo"))
        with open(paths[-1], "w") as file:
            file.write(text)
    found, out = [], os.path.join(folder, "remarks.json")
    for start in range(0, len(paths), 500):
        subprocess.run([os.path.join(options.bin, "hlo-fp8-opt"), "--remarks=all", "--remarks-format=json", f"--remarks-file={out}",
                        "-o", "/dev/null", *paths[start:start + 500]], check=True)
        with open(out) as file:
            found += [(dot["reason"] or dot["verdict"], dot["blocker"]) for dot in json.load(file)["dots"]]
    assert len(found) == len(texts)
    return found, paths


def agrees(options, path):
    done = subprocess.run([os.path.join(options.bin, "hlo-fp8-run"), "--optimize", "--compare=before", path], capture_output=True, text=True)
    return done.returncode == 0, done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=500)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    cases = [(wide, scale, [name], both) for name in FUNCTIONS for wide in TYPES for scale in SCALES for both in (False, True)]
    passing = [name for name, row in FUNCTIONS.items() if row[2] == FP8 and row[1] in (FP8, SIGN) and name != "rms norm"]
    for _ in range(options.count):
        chain = draw.choices(passing, k=draw.randrange(4)) + [draw.choice(sorted(FUNCTIONS.keys() - {"optimization-barrier"}))] + draw.choices(passing, k=draw.randrange(3))
        cases.append((draw.choice(list(TYPES)), draw.choice(list(SCALES)), chain, draw.random() < 0.3))
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        found, paths = verdicts(options, [module(*case) for case in cases], folder)
        ran = 0
        for case, (verdict, blocker), path in zip(cases, found, paths):
            wanted, name = expected(case[1], case[2])
            held = wanted is None or (verdict == wanted and (verdict in (FP8, SCALE) or blocker == name))
            if held and verdict == FP8 and "custom-call" not in case[2] and (len(case[2]) > 1 or case[0] == "bf16") and draw.random() < 0.3:
                held, blocker = agrees(options, path)
                ran += 1
            if not held:
                bad += 1
                print(f"{case}: {verdict} at {blocker}, expected {wanted} at {name}")
    with tempfile.TemporaryDirectory() as folder:
        mended = [(wide, scale, [name], False) for name in FUNCTIONS for wide in TYPES for scale in SCALES]
        found, _ = verdicts(options, [module(*case, quantize_last=True) for case in mended], folder)
        for case, (verdict, blocker) in zip(mended, found):
            if verdict != FP8:
                bad += 1
                print(f"{case}, before the quantization: {verdict} at {blocker}")
    print(f"{len(cases)} modules, {len(mended)} with the function before the quantization, {ran} executed: {bad} faults")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
