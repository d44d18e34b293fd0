#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the pages about reasons: for each id, the module has this reason or lint before the edit of the page, and
not after the edit.

usage: explain.py hlo-fp8-opt

A page has its module in a ```hlo block, optionally after a ```rules block for --rules, and the edit in a ```diff block,
whose hunks are separated by empty lines. Options are in the lines that begin with Before and After. With
--quantize=static, the amaxes of a run on random inputs are used.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

BEFORE = re.compile(r"^Before(?:, with `([^`]*)`)?:\n(?:```rules\n(.*?)```\nand\n)?```hlo\n(.*?)```$", re.S | re.M)
AFTER = re.compile(r"^After(?:, with `([^`]*)`)?( without the rule| with the same rule)?:"
                   r"(?: the same module\.|\n```diff\n(.*?)\n```)$", re.S | re.M)


def edited(module, diff):
    for hunk in filter(None, diff.split("\n\n")):
        lines = hunk.split("\n")
        old = "\n".join(line[1:] for line in lines if line[0] in " -")
        assert module.count(old) == 1, hunk
        module = module.replace(old, "\n".join(line[1:] for line in lines if line[0] in " +"))
    return module


def verdicts(program, options, rules, module):
    with tempfile.NamedTemporaryFile("w", suffix=".hlo") as hlo, tempfile.NamedTemporaryFile("w", suffix=".rules") as file, \
         tempfile.TemporaryDirectory() as folder:
        hlo.write(module)
        hlo.flush()
        command = [program, *options.split(), "--remarks=all", "--remarks-format=json", f"--remarks-file={folder}/remarks", "-o", "/dev/null", hlo.name]
        if "--quantize=static" in command:
            amaxes = f"{folder}/amaxes.json"
            run = program.replace("hlo-fp8-opt", "hlo-fp8-run")
            subprocess.run([run, f"--record-amaxes={amaxes}", hlo.name], check=True)
            command.append(f"--amaxes={amaxes}")
        if "--max-error" in options:
            command = [program.replace("hlo-fp8-opt", "hlo-fp8-run"), *(word for word in command[1:] if word not in ("-o", "/dev/null"))]
        if rules:
            file.write(rules)
            file.flush()
            command.append("--rules=" + file.name)
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            return done.stderr
        told = json.loads(pathlib.Path(folder, "remarks").read_text())
        return [(dot["verdict"], dot["reason"]) for dot in told["dots"]], [lint["reason"] for lint in told["lints"]]


def main():
    program = sys.argv[1]
    text = subprocess.run([program, "--explain=all"], capture_output=True, text=True, check=True).stdout
    pages = re.split(r"^## ", text, flags=re.M)[1:]
    bad = 0
    for page in pages:
        reason = page.split("\n", 1)[0]
        if not BEFORE.search(page) or not AFTER.search(page):
            bad += 1
            print(f"{reason}: no page, or one without a module before and after")
            continue
        if page.count("\n```") != sum(found[0].count("\n```") for found in (BEFORE.search(page), AFTER.search(page))):
            bad += 1
            print(f"{reason}: a block that is neither before nor after")
        options, rules, module = BEFORE.search(page).groups("")
        before = verdicts(program, options, rules, module)
        options, same, diff = AFTER.search(page).groups("")
        after = verdicts(program, options, rules if same == " with the same rule" else "", edited(module, diff))
        if reason.startswith("lint-"):
            held = before[1] == [reason] and after[1] == []
        else:
            held = len(before[0]) == 1 and before[0][0][1] == reason and after[0] == [("fp8", None)]
        if not held:
            bad += 1
            print(f"{reason}: before {before}, after {after}")
    print(f"{len(pages) - bad} of {len(pages)} pages hold")
    return bad != 0 or len(pages) < 2


if __name__ == "__main__":
    sys.exit(main())
