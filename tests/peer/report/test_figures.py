#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the figures of reports against an independent count in Python, on all models and programs.

FLOPs of dots from the shapes and attributes in the HLO text, exactly; times within 1 % of the formula in docs/cost.md; and the groups,
their order, what bounds them and what they save, from the figures of their matmuls.
"""
import collections
import itertools
import json
import math
import pathlib
import re
import subprocess
import sys

import _script

PEAK, BF16_PEAK, BANDWIDTH, LAUNCH = 1979e12, 989e12, 3352e9, 2e-6  # docs/cost.md: sm_90
SIZES = {"f32": 4, "bf16": 2, "f16": 2}
INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%?([\w.-]+) = (\w+)\[([\d,]*)\]\S* ([\w-]+)\((.*)")
SUMS = ("flops", "input_bytes", "bytes", "wide_seconds", "input_seconds", "seconds", "compute_seconds")


def close(a, b, tolerance=1e-9):
    return math.isclose(a or 0, b or 0, rel_tol=tolerance, abs_tol=1e-30)


def dims(text):
    return [int(size) for size in text.split(",") if size]


def operands(lines, place):
    """Returns the types and dimensions of the operands of the dot in a line, or an empty list."""
    found, shapes = INSTRUCTION.match(lines[place]), []
    names = re.findall(r"(?:\w+\[[\d,]*\]\S* )?%?([\w.-]+)[,)]", found[5])[:2] if found and found[4] == "dot" else []
    for name in names:
        for line in reversed(lines[:place]):
            operand = INSTRUCTION.match(line)
            if operand and operand[1] == name:
                shapes.append((operand[2], dims(operand[3])))
                break
    return shapes if len(shapes) == 2 else []


def flops(lines, place):
    """Returns the FLOPs of the dot in a line, or None: from its result and the contracting dimensions of its left operand."""
    found, shapes = INSTRUCTION.match(lines[place]), operands(lines, place)
    if not shapes:
        return None
    contracted = dims(re.search(r"lhs_contracting_dims=\{([\d,]*)\}", found[5])[1]) if "lhs_contracting_dims" in found[5] else []
    return 2 * math.prod(dims(found[3])) * math.prod(shapes[0][1][i] for i in contracted)


def check_line(dot, lines, entry, checked):
    """Checks figures of a dot against its line in the input: FLOPs, the time on wide types, and one execution in the entry."""
    place = dot["line"] - 1
    count = flops(lines, place)
    if count is None:
        return
    assert dot["flops"] == count, (dot, count)
    checked["flops"] += 1
    if entry < place:
        assert dot["runs"] == 1 and not dot["runs_assumed"], dot
        checked["entry"] += 1
    if not dot["input_seconds"]:
        return
    if all(kind.startswith("f8e") for kind, _ in operands(lines, place)):
        assert dot["wide_seconds"] * 1.01 > max(dot["input_seconds"], count / BF16_PEAK), dot
        checked["narrow"] += 1
    else:
        assert close(dot["wide_seconds"], dot["input_seconds"]), dot


def check_time(dot, checked):
    """Checks the time after rewriting: the matmul is bound by its FLOPs or by its own bytes, and other kernels by their bytes."""
    memory = dot["bytes"] / BANDWIDTH
    if dot["verdict"] != "wide":  # the bytes of scales and addends are not in the report
        low = max(dot["flops"] / PEAK, memory) if dot["operation"] == "dot" else memory
        assert low * 0.99 <= dot["seconds"] <= 1.01 * (dot["flops"] / PEAK + memory), dot
        checked["fp8"] += 1
        return
    shapes = [re.fullmatch(r"(\w+)\[([\d,]*)\]", shape) for shape in [dot["shape"], *dot["operands"].split()]]
    if dot["operation"] != "dot" or not all(shape and shape[1] in SIZES for shape in shapes):
        return
    own = sum(SIZES[shape[1]] * math.prod(dims(shape[2])) for shape in shapes)
    compute = dot["flops"] / (BF16_PEAK / (2 if "f32" in (shapes[1][1], shapes[2][1]) else 1))
    assert close(dot["seconds"], max(compute, own / BANDWIDTH) + (dot["bytes"] - own) / BANDWIDTH, 0.01), dot
    assert close(dot["compute_seconds"], compute, 0.01), dot
    checked["wide"] += 1


def check_dot(dot):
    seconds = dot["seconds"] if dot["input_seconds"] else None
    bound = None
    if seconds:
        bound = "launch" if seconds < LAUNCH else "compute" if dot["compute_seconds"] >= dot["bytes"] / BANDWIDTH else "memory"
        assert close(dot["peak_fraction"], dot["compute_seconds"] / seconds) and close(dot["flops_per_second"], dot["flops"] / seconds)
    assert dot["bound"] == bound, dot
    slower = dot["verdict"] != "wide" and not dot["quantized"] and seconds and seconds > 1.005 * dot["input_seconds"]
    # --min-gain=1 keeps a matmul wide that FP8 makes slower.
    other = dot["fp8_seconds"] if dot["verdict"] == "wide" else dot["wide_seconds"] if slower and not dot["reason"] else None
    before, after = max(seconds or 0, LAUNCH), max(other or 0, LAUNCH)
    saving = dot["runs"] * (before - after) * (before > 1.005 * after) if seconds and other else None
    assert (saving is None) == (dot["saving_seconds"] is None) and close(saving, dot["saving_seconds"]), dot
    return dot["reason"] or ("slower" if slower else None)


def check_order(groups, members):
    """The groups with savings are sorted by the saving of their layer in all directions, then by their own, and the others by time."""
    keys, totals = [], collections.Counter()
    for index, group in enumerate(groups):
        layer = re.sub(r" \((forward|backward|recomputed)\)$", "", group["layer"])
        named = any(dot["op_name"] for dot in members[index]) and group["shape"] not in layer and not layer.endswith(f":{group['source_line']}")
        keys.append(re.sub(r"\d+", "*", layer) if named else layer)
        totals[keys[-1]] += group["saving_seconds"] or 0
    order = [(-totals[key], key, -group["saving_seconds"], -(group["seconds"] or 0)) if group["saving_seconds"] else (0, "", 0, -(group["seconds"] or 0))
             for key, group in zip(keys, groups)]
    assert all(a[0] <= b[0] + 1e-9 * abs(b[0]) for a, b in zip(order, order[1:])), order
    runs = [key for key, _ in itertools.groupby(row[1] for row in order)]
    assert len(runs) == len(set(runs)), "the rows of a layer are not adjacent"
    assert all(a[2:] <= b[2:] for a, b in zip(order, order[1:]) if a[1] == b[1]), order


def check(report):
    """Checks the groups and the summary against the matmuls."""
    groups, dots, summary = report["groups"], report["dots"], report["summary"]
    members = collections.defaultdict(list)
    for dot in dots:
        cause = check_dot(dot)
        group = groups[dot["group"]]
        pattern = re.escape(group["layer"]).replace(r"\*", r"(\d+|\*)")
        assert group["reason"] == cause and group["verdict"] == dot["verdict"] and re.fullmatch(pattern, dot["layer"]), (group, dot)
        members[dot["group"]].append(dot)
    assert sorted(members) == list(range(len(groups)))
    for index, group in enumerate(groups):
        for name in SUMS:
            timed = [dot for dot in members[index] if "seconds" not in name or dot["seconds"] and dot["input_seconds"]]
            assert close(group[name], sum(dot["runs"] * dot[name] for dot in timed)), (group, name)
        assert group["matmuls"] == len(members[index])
        assert close(group["saving_seconds"], sum(dot["saving_seconds"] or 0 for dot in members[index])), group
    check_order(groups, members)
    for name in (*SUMS, "saving_seconds"):
        assert close(summary[name], sum(group[name] or 0 for group in groups), 1e-6), (name, summary)
    assert summary["runs_assumed"] == sum(dot["runs_assumed"] for dot in dots)
    assert summary["launch_bound"] == sum(dot["bound"] == "launch" for dot in dots)
    if summary["seconds"]:
        assert close(sum(group["share"] for group in groups), 1)


def main():
    args = _script.parser(pathlib.Path).parse_args()
    data = args.models.parent
    checked = collections.Counter()
    for folder, options in (("models", []), ("programs", []), ("unquantized", []), ("unquantized", ["--quantize=current"])):
        for path in sorted((data / folder).glob("*.hlo")):
            out = args.work / "figures.json"
            subprocess.run([args.bin / "hlo-fp8-opt", *options, "--remarks-format=json", f"--remarks-file={out}", "-o", "/dev/null", path],
                           check=True, capture_output=True)
            report = json.loads(out.read_text())
            check(report)
            lines = path.read_text(encoding="latin-1").splitlines()
            entry = max(i for i, line in enumerate(lines) if line.startswith("ENTRY"))
            for dot in report["dots"]:
                if dot["operation"] == "dot" and dot["line"]:
                    check_line(dot, lines, entry, checked)
                if dot["seconds"] and not options:
                    check_time(dot, checked)
            checked["groups"] += len(report["groups"])
    assert min(checked[name] for name in ("flops", "fp8", "wide", "entry")) > 200 and checked["narrow"] > 10, checked
    print(", ".join(f"{count} {name}" for name, count in checked.items()))


if __name__ == "__main__":
    sys.exit(main())
