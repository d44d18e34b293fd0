#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the digests of every module of testdata with those in testdata/digests/.

usage: digests.py --program=BUILD/bin/digests [--update]

A difference means that the outputs of a module, the location of a diagnostic, or the error bounds of an operation
changed. To inspect it, build the previous commit in another folder and compare `digests --show=COLUMN FILE`, or
--operations=ROW, of both builds. For an intended change, --update writes new digests.
"""
import argparse
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGESTS = ROOT / "testdata" / "digests"
SHOWN = 20


def rows(lines):
    return {line.split()[0]: line.split()[1:] for line in lines}


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--program", required=True)
    options.add_argument("--update", action="store_true")
    options = options.parse_args()
    names = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "testdata").rglob("*.hlo"))
    names = [name for name in names if not name.endswith((".xla.hlo", ".spmd.hlo"))]
    rules = sorted((ROOT / "testdata" / "tool").glob("*.rules"))
    names += [str(path.relative_to(ROOT)) for path in rules if path.with_name(f"rules-{path.stem}.hlo").exists()]
    done = subprocess.run([options.program, *names], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"digests: status {done.returncode}: {done.stderr[-1000:]}")
    columns, *found = done.stdout.splitlines()
    operations = subprocess.run([options.program, "--operations"], capture_output=True, text=True, check=True).stdout.splitlines()
    if options.update:
        for folder in {line.split("/")[1] for line in found}:
            lines = [line for line in found if line.startswith(f"testdata/{folder}/")]
            (DIGESTS / f"{folder}.txt").write_text("\n".join([columns, *lines]) + "\n")
        (DIGESTS / "operations.txt").write_text("\n".join(["operation bounds", *operations]) + "\n")
        return 0
    kept = rows([line for path in DIGESTS.glob("*.txt") for line in path.read_text().splitlines()[1:]])
    found = rows(found + operations)
    changed = {name: kept[name] for name in sorted(kept) if found.get(name) != kept[name]}
    for name in list(changed)[:SHOWN]:
        pairs = list(zip(columns.split()[1:], kept[name], found.get(name, ())))
        which = [column for column, old, new in pairs if old != new] if len(found.get(name, ())) == len(kept[name]) else ["status"]
        print(f"{name}: {' '.join(which) if name in found else 'is missing'}")
    if changed:
        print(f"{len(changed)} of {len(kept)} rows have other digests: see digests.py --help")
    new = len(found.keys() - kept.keys())
    if new:
        print(f"{new} rows have no digests yet: --update adds them")
    return bool(changed or new)


if __name__ == "__main__":
    sys.exit(main())
