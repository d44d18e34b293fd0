#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the remarks of all models in the machine-readable formats with independent readers.

JSON against docs/remarks.schema.json; SARIF against a model that was generated from the published schema (pydantic-sarif);
JUnit XML with junitparser; and all formats and the gates with one another.
"""
import json
import pathlib
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


def main():
    args = _script.parser(pathlib.Path).parse_args()
    program = args.bin / "hlo-fp8-opt"
    models = sorted(p for p in args.models.glob("*.hlo") if p.name.count(".") == 1)
    told = {}
    for kind in ("json", "sarif", "junit"):
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
    rules = {r["id"] for r in log["runs"][0]["tool"]["driver"]["rules"]}
    assert [r["ruleId"] for r in log["runs"][0]["results"]] == reasons and rules.issuperset(reasons)
    for result in log["runs"][0]["results"]:
        place = result["locations"][0]["physicalLocation"]
        line = pathlib.Path(place["artifactLocation"]["uri"]).read_text().splitlines()[place["region"]["startLine"] - 1]
        assert "dot(" in line, line

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
