#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mutation test: inserts mutations into the code at random places and lists those that no test detects.

usage: tools/dev mutate [--places=N] [--seed=S] [--jobs=N] [--slow=SECONDS] [--patience=SECONDS] [--list]

All mutants are compiled into one build, of a copy of the tree in build/mutate; HLO_MUTANT=n in the environment selects
one. Each test runs once without a mutant and logs the mutants that it reaches. Then each mutant runs the tests that
reach it, quickest first, up to the first test that fails or does not end. Mutants that no test detects are printed: the
change, and the tests that reach the mutant. An interrupted run resumes. If only tests change, surviving mutants run the
new tests.
"""
import argparse
import hashlib
import json
import multiprocessing
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

from mutant import Mutant, mutated

HERE = pathlib.Path(__file__).resolve().parent
ROOT = next((pathlib.Path(word[7:]).resolve() for word in sys.argv if word.startswith("--root=")), HERE.parents[1])
MADE = ROOT / "build" / "mutate"
COPY = MADE / "src"
BUILD = COPY / "build" / "dev"
ROOMS = ("ir/", "grammar/", "matmul/", "passes/", "report/", "runtime/", "api/", "tools/")
HEADER = b'#include "%s"\n'


def say(text):
    print(text, flush=True)


def tree():
    """Returns the files of the tree, and the files that can have mutants. Sources of kernels cannot: the build does not
    compile them."""
    names = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"], check=True,
                           capture_output=True, text=True).stdout.split("\0")
    files = {name: (ROOT / name).read_bytes() for name in names if name and (ROOT / name).is_file()}
    embedded = files["CMakeLists.txt"].decode()
    return files, {name: data for name, data in files.items() if name.startswith(ROOMS) and name.endswith((".c", ".h"))
                   and f"/{name}" not in embedded}


def lay(files, mutants):
    """Updates the copy of the tree; writes only files that differ, so that little is compiled again."""
    wanted = dict(files)
    for name in {row["mutant"].file for row in mutants}:
        placed = [(row["number"], row["mutant"]) for row in mutants if row["mutant"].file == name]
        text = HEADER % os.fsencode(HERE / "mutant.h") + mutated(files[name], placed)
        if name.endswith(".h"):
            wanted[name] = text
        else:
            wanted[name + ".mutated"] = text
            wanted[name] = b'#include "%s"\n' % os.fsencode(pathlib.Path(name).name + ".mutated")
    for path in COPY.rglob("*"):
        if path.is_file() and BUILD not in path.parents and str(path.relative_to(COPY)) not in wanted:
            path.unlink()
    for name, data in wanted.items():
        path = COPY / name
        if not path.exists() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            if name in files:
                shutil.copymode(ROOT / name, path)


def command(*words, **options):
    with open(MADE / "build.log", "ab") as log:
        if subprocess.run(words, stdout=log, stderr=log, check=False, **options).returncode:
            sys.exit(f"mutate: {shlex.join(words)} failed: see {MADE / 'build.log'}")


def configure(python):
    (MADE / "build.log").write_bytes(b"")
    command("cmake", "--preset", "dev", f"-DHLO_PYTHON={python}", "-DHLO_WERROR=OFF", cwd=COPY)


def build(jobs):
    command("cmake", "--build", str(BUILD), "-j", str(jobs))


def arguments(rows, name):
    """Returns libclang's arguments for a file: those of the compiler or, for a header, those of a source in its
    folder."""
    here = [row for row in rows if row["file"] == str(COPY / name)] or \
        [row for row in rows if os.path.dirname(row["file"]) == os.path.dirname(str(COPY / name))]
    words = shlex.split(here[0]["command"]) if here else ["cc", "-D_GNU_SOURCE", "-std=c17", f"-I{COPY}", f"-I{COPY}/include"]
    kept = [word for word in words if word.startswith(("-D", "-std")) or word.startswith("-I") and len(word) > 2]
    kept += [part for at, word in enumerate(words) if word == "-isystem" for part in (word, words[at + 1])]
    system = subprocess.run(["gcc", "-print-file-name=include"], capture_output=True, text=True, check=True).stdout.strip()
    return [*kept, "-x", "c", "-w", "-ferror-limit=0", "-isystem", system]


def written(plan):
    rows = json.loads(plan.read_text())
    for row in rows:
        row["mutant"] = Mutant(row["file"], row["start"], row["end"], row["kind"], row["form"], row["text"].encode())
    return rows


def draw(files, sources, options):
    """Returns the recorded mutants; draws and records mutants if there are none."""
    text = b"".join(name.encode() + b"\0" + data for name, data in sorted(sources.items()))
    plan = options.plan or MADE / f"{options.seed}-{options.places}-{hashlib.sha256(text).hexdigest()[:12]}.plan"
    if plan.exists():
        return plan, written(plan)
    say("drawing places")
    from places import File, draw as drawn
    lay(files, [])
    configure(options.python)
    made = subprocess.run(["ninja", "-C", str(BUILD), "-t", "targets", "all"], capture_output=True, text=True, check=True).stdout
    generated = [line.split(":")[0] for line in made.split("\n") if line.startswith("generated/")]
    if generated:  # headers that the sources include
        command("ninja", "-C", str(BUILD), "-j", str(options.jobs), *generated)
    compiled = json.loads((BUILD / "compile_commands.json").read_text())
    rows = []
    for number, (mutant, line) in enumerate(drawn(sources, options.places, options.seed, lambda name: File(
            name, str(COPY / name), files[name], arguments(compiled, name)))):
        rows.append({"number": number, "file": mutant.file, "line": line, "start": mutant.start, "end": mutant.end,
                     "kind": mutant.kind, "form": mutant.form, "text": mutant.text.decode()})
    plan.write_text(json.dumps(rows, indent=1))
    return plan, written(plan)


def appended(path):
    """Returns the rows of a file of JSON lines, whose last line may be incomplete."""
    rows = []
    for line in path.read_text().split("\n") if path.exists() else ():
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue
    return rows


TESTS, FOLDER = {}, None


def begin(tests):
    global FOLDER
    TESTS.update({test.key: test for test in tests})
    FOLDER = MADE / "work" / str(multiprocessing.current_process()._identity[0])
    FOLDER.mkdir(parents=True, exist_ok=True)


def reach(key):
    """Runs a test without a mutant. Returns its status, its time, and the mutants that it reaches."""
    import suite
    log = FOLDER / "reached"
    log.write_bytes(b"")
    status, seconds = suite.run(TESTS[key], FOLDER, {"HLO_MUTANT_LOG": str(log)}, 3000, FOLDER / "output")
    return {"key": key, "status": status, "seconds": round(seconds, 2), "reached": sorted({int(n) for n in log.read_bytes().split()}),
            "output": (FOLDER / "output").read_text(errors="replace")[-2000:] if status not in (0, suite.SKIPPED) else ""}


def attempt(job):
    """Runs tests on a mutant up to the first test that detects the mutant."""
    import suite
    number, keys, patience = job
    passed = []
    for key, seconds in keys:
        status, _ = suite.run(TESTS[key], FOLDER, {"HLO_MUTANT": str(number)}, patience + 10 * seconds, FOLDER / "output")
        if status != 0:
            return {"number": number, "passed": passed, "killed": TESTS[key].name, "status": status}
        passed.append(key)
    return {"number": number, "passed": passed, "killed": None}


def same_code(files, row):
    """Returns whether the compiler output is the same with and without the mutation."""
    mutant = row["mutant"]
    if not mutant.file.endswith(".c"):
        return False
    entry = next(entry for entry in json.loads((BUILD / "compile_commands.json").read_text()) if entry["file"] == str(COPY / mutant.file))
    words = shlex.split(entry["command"])
    words = [word for word in words[:words.index("-o")] if word not in ("-g", "-Werror")]
    words += ["-w", "-g0", "-iquote", str((COPY / mutant.file).parent), "-S", "-o", "-", "-x", "c", "-"]
    data = files[mutant.file]
    made = [subprocess.run(words, input=text, cwd=entry["directory"], capture_output=True, check=False)
            for text in (data, mutant.changed(data))]
    return made[0].returncode == 0 and made[0].stdout == made[1].stdout


class Run:
    """Runs the mutants of a plan, and stores the results."""

    def __init__(self, plan, rows, tests, patience):
        self.patience = patience
        self.reaches, self.results = plan.with_suffix(".reached"), plan.with_suffix(".results")
        self.rows, self.tests = rows, tests
        keys = {test.key for test in tests}
        self.map = {row["key"]: row for row in appended(self.reaches) if row["key"] in keys}
        self.killed, self.passed, self.same = {}, {row["number"]: set() for row in rows}, set()
        for row in appended(self.results):
            self.take(row)

    def take(self, row):
        number = row["number"]
        self.passed[number].update(row.get("passed", ()))
        if row.get("killed"):
            self.killed[number] = row
        if row.get("same"):
            self.same.add(number)

    def record(self, path, row):
        with open(path, "a", encoding="utf-8") as to:
            to.write(json.dumps(row) + "\n")

    def reached_by(self, number):
        found = [row for row in self.map.values() if row["status"] == 0 and number in row["reached"]]
        return sorted(found, key=lambda row: row["seconds"])

    def look(self, pool, tests):
        missing = [test.key for test in tests if test.key not in self.map]
        if missing:
            say(f"{len(missing)} tests run with a log of what they reach")
        for row in pool.imap_unordered(reach, missing):
            self.map[row["key"]] = row
            self.record(self.reaches, row)
        import suite
        for row in (self.map[test.key] for test in tests):
            if row["status"] not in (0, suite.SKIPPED):
                say(f"left out, fails without a mutant: {row['key'].split()[0]} ({row['status']})")

    def jobs(self, most):
        for row in self.rows:
            number = row["number"]
            left = [(test["key"], test["seconds"]) for test in self.reached_by(number)
                    if test["seconds"] < most and test["key"] not in self.passed[number]]
            if left and number not in self.killed and number not in self.same:
                yield number, left, self.patience

    def hunt(self, pool, files, most):
        jobs = list(self.jobs(most))
        for count, row in enumerate(pool.imap_unordered(attempt, jobs), 1):
            place = self.rows[row["number"]]
            if not row["killed"] and not self.passed[row["number"]] and same_code(files, place):
                row["same"] = True
            self.take(row)
            self.record(self.results, row)
            told = f"killed by {row['killed']}" if row["killed"] else "the same code" if row.get("same") else "survived"
            say(f"[{count}/{len(jobs)}] {row['number']} {place['file']}:{place['line']} {place['kind']}: {told}")

    def survivors(self):
        return [row for row in self.rows if row["number"] not in self.killed and row["number"] not in self.same
                and self.reached_by(row["number"])]

    def tell(self, files):
        """Prints undetected mutants, then the counts."""
        unreached = [row for row in self.rows if row["number"] not in self.killed and not self.reached_by(row["number"])]
        survived = self.survivors()
        for row in survived + unreached:
            tests = self.reached_by(row["number"])
            left = sum(test["key"] not in self.passed[row["number"]] for test in tests)
            names = " ".join(test["key"].split()[0] for test in tests[:8]) + " ..." * (len(tests) > 8)
            print(f"\n## {row['number']} {row['file']}:{row['line']} ({row['kind']})\n\n```diff")
            print(row["mutant"].difference(files[row["file"]]) + "\n```")
            print(f"Reached by {len(tests)} tests{f', {left} of them not run yet' * (left > 0)}: {names}" if tests else "No test reaches it.")
        changing = len(self.rows) - len(self.same)
        say(f"\n{len(self.rows)} mutants: {len(self.killed)} killed, {len(survived)} survived, {len(unreached)} not reached, "
            f"{len(self.same)} the same code; {len(self.killed)} of {changing} that change something"
            f" ({100 * len(self.killed) // max(changing, 1)} %)")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--places", type=int, default=100, help="how many mutants")
    options.add_argument("--seed", type=int, default=1, help="which are drawn")
    options.add_argument("--jobs", type=int, default=2, help="tests at a time")
    options.add_argument("--slow", type=float, default=5, help="tests of so many seconds run after all quicker ones")
    options.add_argument("--list", action="store_true", help="run nothing: what is known of the last run so far")
    options.add_argument("--patience", type=float, default=30, help="a test has not ended after so many seconds and ten times its own")
    options.add_argument("--plan", type=pathlib.Path, help="mutants that were written down, instead of drawn ones")
    options.add_argument("--root", help="another tree")
    options.add_argument("--python", default=sys.executable, help=argparse.SUPPRESS)
    options = options.parse_args()
    if options.places > 4096:
        sys.exit("mutate: at most 4096 places")
    MADE.mkdir(parents=True, exist_ok=True)
    sys.path.insert(0, str(HERE.parents[1] / "build" / "mutate" / "python"))
    files, sources = tree()
    plan, rows = draw(files, sources, options)
    if not options.list:
        say(f"building {len(rows)} mutants")
        lay(files, rows)
        configure(options.python)
        build(options.jobs)
    import suite
    tests = suite.all_tests(BUILD)
    run = Run(plan, rows, tests, options.patience)
    if not options.list:
        with multiprocessing.get_context("fork").Pool(options.jobs, begin, (tests,)) as pool:
            quick = [test for test in tests if test.name.startswith(("lit/", "unit/"))]
            for part, most in ((quick, options.slow), (tests, float("inf"))):
                run.look(pool, part)
                run.hunt(pool, files, most)
    run.tell(files)


if __name__ == "__main__":
    main()
