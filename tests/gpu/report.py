#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the measurements of a device to docs/evidence.md, between its two marks.

usage: report.py RESULTS [--docs FILE]

RESULTS is the folder in which stages.py keeps its rows. A failed case is reported as failed. Without rows, the page
states that there are no measurements.
"""
import argparse
import json
import os
import pathlib
import sys

BEGIN, END = "<!-- measured: begin -->\n", "<!-- measured: end -->\n"
NOTHING = "No measurements yet.\n"
FACTS = ("name", "driver_version", "CUDA driver", "cuBLASLt", "NVRTC", "clocks.max.sm", "clocks.max.memory", "power.limit", "torch", "jax",
         "beside", "date")


def read_rows(path):
    """Returns the complete rows of a stage."""
    rows = []
    for line in path.read_text(errors="replace").splitlines() if path.exists() else ():
        try:
            rows.append(json.loads(line))
        except ValueError:  # the machine was lost while the row was written
            pass
    return [row for row in rows if isinstance(row, dict) and isinstance(row.get("case", row.get("begun", "")), str)]


def machine_of(head):
    """Returns the properties that identify the machine of a stage's rows."""
    return tuple(head.get(key) for key in FACTS if key != "date")


def read(results):
    """Returns the properties of each machine, and its results as {stage: {case: row}}. The last row of a case counts; a
    case that was begun and has no row failed."""
    found = {}
    for stage in ("smoke", "correct", "matmul", "models"):
        head, last = {}, {}
        for row in read_rows(results / f"{stage}.jsonl"):
            head = row if "stage" in row else head
            if "case" in row:
                last[row["case"]] = head, row
            elif "begun" in row:
                last.setdefault(row["begun"], (head, {"error": "was begun, and has not ended"}))
        for name, (head, row) in last.items():
            found.setdefault(machine_of(head), (head, {}))[1].setdefault(stage, {})[name] = row
    return list(found.values())


def is_number(value):
    return isinstance(value, (int, float)) and 0 < value < float("inf")


def cell(row, key, peak):
    seconds, flops = row.get(key), row.get("flops")
    if not is_number(seconds) or not is_number(flops):
        return "-"
    rate = flops / seconds * 1e-12
    share = f" ({100 * rate / peak:.0f} %)" if is_number(peak) else ""
    return f"{seconds * 1e6:.1f} us, {rate:.1f}{share}"


def table(rows, peak):
    text = "| | ours, first choice | ours, tuned | torch._scaled_mm | JAX/XLA |\n|---|---|---|---|---|\n"
    for name, row in rows.items():
        if "left_out" in row:
            continue
        cells = [cell(row, key, peak) for key in ("ours", "tuned", "torch", "xla")] if "ours" in row else \
            [str(row.get("error", "-")).split("\n")[0][:80].replace("|", "\\|")]
        text += f"| {name} | {' | '.join(cells)} |\n"
    return text


def checked(stage, rows):
    failed = sum("error" in row for row in rows.values())
    left_out = sum("left_out" in row for row in rows.values())
    return f"- `{stage}`: {len(rows) - failed - left_out} cases passed, {failed} failed, {left_out} left out\n"


def report(results):
    """Returns a section for each machine, so that numbers of different machines are separate."""
    sections = []
    for facts, stages in read(results):
        text = (", ".join(f"{key} {facts[key]}" for key in FACTS if key in facts) or "A machine that is not known") + ".\n\n"
        text += "".join(checked(stage, stages[stage]) for stage in ("smoke", "correct") if stage in stages)
        tables = [table(stages[stage], facts.get("peak")) for stage in ("matmul", "models") if stage in stages]
        if tables:
            of = f", and the share of the dense FP8 peak of {facts['peak_of']}, {facts['peak']} TFLOP/s" \
                if is_number(facts.get("peak")) and "peak_of" in facts else ""
            text += f"\nMedian time, TFLOP/s{of}:\n\n" + "\n".join(tables)
        sections.append(text)
    return "\n".join(sections) or NOTHING


def fill(results, docs):
    """Writes the page; returns the exit status."""
    page = docs.read_text()
    before, found, rest = page.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not found or not ended:
        print(f"{docs}: error: the page lacks {BEGIN.strip()} and {END.strip()}", file=sys.stderr)
        return 1
    docs.write_text(before + BEGIN + report(results) + END + after)
    return 0


def main():
    args = argparse.ArgumentParser()
    args.add_argument("results", type=pathlib.Path)
    args.add_argument("--docs", type=pathlib.Path, default=pathlib.Path(__file__).parents[2] / "docs/evidence.md")
    a = args.parse_args()
    try:
        os.listdir(a.results)
        return fill(a.results, a.docs)
    except OSError as error:
        print(f"report.py: error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
