#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the remarks of all models in the machine-readable formats with independent readers.

JSON against docs/remarks.schema.json; SARIF against a model that was generated from the published schema (pydantic-sarif) and GitHub's
limits; JUnit XML with junitparser; GitLab's Code Quality report against its documented keys; GitHub's workflow commands; and all formats and
the gates with one another. What identifies a matmul across runs must not depend on the names of instructions.
"""
import html
import json
import pathlib
import re
import subprocess
import sys

import jsonschema
import junitparser
import pydantic_sarif.model

import _script

SCHEMA = pathlib.Path(__file__).parents[3] / "docs" / "remarks.schema.json"


def run(program, *arguments):
    return subprocess.run([program, *map(str, arguments), "-o", "/dev/null"], capture_output=True, text=True)


def complaints(done):
    """Returns the messages that begin with the program's name, so no warnings about a place in a module."""
    return [line for line in done.stderr.splitlines() if line.startswith("hlo-fp8-opt: ")]


SEVERITIES = ("info", "minor", "major", "critical", "blocker")
COMMAND = r"::(warning|notice) (?:file=[^:,]+,line=\d+,)?title=[^:,]*::.+"


def check_identity(args, program):
    """Other names of instructions and other lines change no fingerprint, and another verdict changes no name of a test case."""
    intact, renamed = args.models / "llama_train.hlo", args.work / "llama_train.hlo"
    text = intact.read_text()
    renamed.write_text("\n\n" + re.sub(r"(dot_general|mul|convert_element_type)\.(\d+)", lambda m: f"{m[1]}.{int(m[2]) + 1000}", text))

    def report(kind, *arguments):
        out = args.work / "identity"
        assert run(program, f"--remarks-format={kind}", f"--remarks-file={out}", *arguments).returncode == 0
        return out.read_text()

    def fingerprints(path):
        results = json.loads(report("sarif", path))["runs"][0]["results"]
        return [r["partialFingerprints"]["hloFp8/v1"] for r in results], [i["fingerprint"] for i in json.loads(report("gitlab", path))]

    before, after = fingerprints(intact), fingerprints(renamed)
    assert before == after and len(set(before[0])) == len(before[0]) == 8, (before, after)
    names = [re.findall(r' name="([^"]*)" file', report("junit", *options, intact)) for options in ([], ["--target=sm_80"])]
    assert names[0] == names[1] and len(set(names[0])) == len(names[0]) > 30
    assert "LM/ScanCheckpointBlock_0/bqhd,bkhd->bhqk (forward) jax_programs.py:234 dot_general.12" in map(html.unescape, names[0]), names[0]


def main():
    args = _script.parser(pathlib.Path).parse_args()
    program = args.bin / "hlo-fp8-opt"
    models = sorted(p for p in args.models.glob("*.hlo") if p.name.count(".") == 1)
    told = {}
    for kind in ("json", "sarif", "junit", "github", "gitlab", "markdown"):
        path = args.work / f"remarks.{kind}"
        done = run(program, f"--remarks-format={kind}", f"--remarks-file={path}", *models)
        assert done.returncode == 0 and not complaints(done), done.stderr
        told[kind] = path.read_text()
    measured = args.work / "measured.json"
    subprocess.run([args.bin / "hlo-fp8-run", "--quantize=current", "--min-gain=0.001", "--max-error=0.05", "--remarks-format=json",
                    f"--remarks-file={measured}", SCHEMA.parents[1] / "testdata/run/budget-edges.hlo"], check=True, capture_output=True)
    jsonschema.validate(json.loads(measured.read_text()), json.loads(SCHEMA.read_text()))
    assert sum("snr_db" in (dot["quantized"] or {}) for dot in json.loads(measured.read_text())["dots"]) == 4

    report = json.loads(told["json"])
    jsonschema.validate(report, json.loads(SCHEMA.read_text()), cls=jsonschema.Draft202012Validator)
    dots = report["dots"]
    summary = json.loads((args.models / "summary.json").read_text())
    assert len(dots) == report["summary"]["matmuls"] == sum(m["dots"] for m in summary.values())
    fp8 = sum(d["verdict"] != "wide" for d in dots)
    assert fp8 == report["summary"]["fp8"] >= sum(m["fp8"] for m in summary.values())
    reasons = [d["reason"] for d in dots if d["reason"]]
    assert report["summary"]["reasons"] == {r: reasons.count(r) for r in reasons}
    attention = [d for d in dots if "llama_train" in d["file"] and d["verdict"] == "wide"]
    assert len(attention) == 8
    assert {(d["source_file"], d["source_line"]) for d in attention} == {("jax_programs.py", 234), ("jax_programs.py", 236)}
    assert all(d["source_file"] == "jax_programs.py" for d in dots), "a frame of the framework's before the user's own"

    cases = [case for suite in junitparser.JUnitXml.fromstring(told["junit"].encode()) for case in suite]
    assert len(cases) == len(dots)
    assert [result.type for case in cases for result in case.result] == reasons

    log = json.loads(told["sarif"])
    pydantic_sarif.model.StaticAnalysisResultsFormatSarifVersion210JsonSchema.model_validate(log)
    assert log["version"] == "2.1.0" and log["$schema"].endswith("sarif-2.1.0.json")
    driver, results = log["runs"][0]["tool"]["driver"], log["runs"][0]["results"]
    home = driver.get("informationUri")  # set if the build has HLOFP8_HOMEPAGE_URL
    assert driver["semanticVersion"] and (home is None or home.startswith("https://"))
    assert all(rule.get("helpUri") == (home and f"{home}#{rule['id']}") for rule in driver["rules"])
    assert [r["ruleId"] for r in results] == reasons and {r["id"] for r in driver["rules"]} == set(reasons), "a rule without a result"
    assert all(driver["rules"][r["ruleIndex"]]["id"] == r["ruleId"] for r in results)
    assert all(r["help"]["text"] and r["help"]["markdown"] for r in driver["rules"])
    assert len(results) <= 25000 and len(told["sarif"]) < 10 << 20  # limits of GitHub
    missed = [d for d in dots if d["reason"]]
    for result, dot in zip(results, missed):
        places = [p["physicalLocation"] for p in result["locations"] + result.get("relatedLocations", [])]
        assert places[0]["artifactLocation"]["uri"] == (dot["source_file"] or dot["file"]), result
        assert places[0]["region"]["startLine"] == (dot["source_line"] or dot["line"])
        line = pathlib.Path(places[-1]["artifactLocation"]["uri"]).read_text().splitlines()[places[-1]["region"]["startLine"] - 1]
        assert "dot(" in line, line

    issues = json.loads(told["gitlab"])
    assert [issue["check_name"] for issue in issues] == reasons
    assert len({issue["fingerprint"] for issue in issues}) == len(issues)
    for issue, dot in zip(issues, missed):
        assert set(issue) == {"description", "check_name", "fingerprint", "severity", "location"} and issue["severity"] in SEVERITIES
        assert issue["location"] == {"path": dot["source_file"] or dot["file"], "lines": {"begin": dot["source_line"] or dot["line"]}}

    commands = [re.fullmatch(COMMAND, line) for line in told["github"].splitlines()]
    assert all(commands), told["github"]
    assert [c[1] for c in commands] == ["warning"] * 10 + ["notice"], "GitHub shows 10 annotations of a kind in a step"
    assert len(told["markdown"]) < 1 << 20 and f"{fp8} of {len(dots)} matmuls in FP8" in told["markdown"]
    rows = [re.split(r"(?<!\\)\|", line) for line in told["markdown"].splitlines() if line.startswith("|")]
    assert len(rows) == 22 and {len(row) for row in rows} == {11}, rows
    check_identity(args, program)

    for gate, status in ((f"--expect-fp8={fp8}", 0), (f"--expect-fp8={fp8 + 1}", 3), ("--expect-fp8=all", 3),
                         ("--expect-fp8=50%", 0), ("--fail-on-missed", 3), ("--fail-on-missed=amax-init", 0),
                         ("--fail-on-missed=amax-init,not-quantized", 3), ("--fail-on-missed=nonsense", 2),
                         (f"--baseline={args.work}/remarks.json", 0)):
        done = run(program, gate, *models)
        assert done.returncode == status, (gate, done.returncode, done.stderr)
        assert len(complaints(done)) == (status != 0), done.stderr
    print(f"{len(dots)} verdicts: the formats and the gates agree")


if __name__ == "__main__":
    sys.exit(main())
