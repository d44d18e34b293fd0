#!/usr/bin/env python3
"""Writes what a device has measured into docs/performance.md, between its two marks.

usage: report.py RESULTS [--docs FILE]

RESULTS is the folder in which stages.py keeps its rows. A case that failed is named as such; without any row of the
stages matmul and models the page says that nothing was measured.
"""
import argparse
import json
import pathlib
import sys

BEGIN, END = "<!-- measured: begin -->\n", "<!-- measured: end -->\n"
NOTHING = "Nothing has been measured: the backend is built and checked without a device, and nothing has run on one.\n"
FACTS = ("name", "driver_version", "CUDA driver", "cuBLASLt", "NVRTC", "clocks.max.sm", "clocks.max.memory", "power.limit", "torch", "jax", "date")


def read_rows(path):
    """The rows of a stage that are whole."""
    rows = []
    for line in path.read_text(errors="replace").splitlines() if path.exists() else ():
        try:
            rows.append(json.loads(line))
        except ValueError:  # the machine was taken back meanwhile
            pass
    return rows


def read(path):
    """The facts of a stage, and the last row of each of its cases."""
    rows = read_rows(path)
    return rows[0] if rows else {}, {row["case"]: row for row in rows if "case" in row}


def cell(row, key, peak):
    seconds = row.get(key)
    if not seconds:
        return "-"
    rate = row["flops"] / seconds * 1e-12
    share = f" ({100 * rate / peak:.0f} %)" if peak else ""
    return f"{seconds * 1e6:.1f} us, {rate:.1f}{share}"


def table(rows, peak):
    text = "| | ours, first choice | ours, tuned | torch._scaled_mm | JAX/XLA |\n|---|---|---|---|---|\n"
    for name, row in rows.items():
        if "left_out" in row:
            continue
        cells = [cell(row, key, peak) for key in ("ours", "tuned", "torch", "xla")] if "ours" in row else \
            [row["error"].split("\n")[0][:80]]
        text += f"| {name} | {' | '.join(cells)} |\n"
    return text


def checked(results):
    text = ""
    for stage in ("smoke", "correct"):
        _, rows = read(results / f"{stage}.jsonl")
        failed = sum("error" in row for row in rows.values())
        left_out = sum("left_out" in row for row in rows.values())
        if rows:
            text += f"- `{stage}`: {len(rows) - failed - left_out} cases passed, {failed} failed, {left_out} left out\n"
    return text


def report(results):
    stages = {stage: read(results / f"{stage}.jsonl") for stage in ("matmul", "models")}
    if not any(rows for _, rows in stages.values()):
        return NOTHING
    facts = next(facts for facts, rows in stages.values() if rows)
    text = ", ".join(f"{key} {facts[key]}" for key in FACTS if key in facts) + ".\n\n" + checked(results)
    text += f"\nMedian time, TFLOP/s, and the share of the dense FP8 peak of {facts['peak_of']}, {facts['peak']} TFLOP/s:\n\n"
    return text + "\n".join(table(rows, facts["peak"]) for _, rows in stages.values() if rows)


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
    args.add_argument("--docs", type=pathlib.Path, default=pathlib.Path(__file__).parents[2] / "docs/performance.md")
    a = args.parse_args()
    return fill(a.results, a.docs)


if __name__ == "__main__":
    sys.exit(main())
