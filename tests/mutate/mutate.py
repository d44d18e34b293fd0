#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mutation test: inserts mutations into the code at random places and lists those that no test detects.

usage: tools/dev mutate [--places=N] [--seed=S] [--minutes=M] [--jobs=N] [--patience=SECONDS] [--list]

All mutants are compiled into one build, of a copy of the tree in build/mutate; HLO_MUTANT=n,m in the environment selects
mutants. Each golden and unit test runs once without a mutant and logs the mutants that it reaches. Then each mutant runs
the first tests that reach it, quickest first. The mutants that remain run the other tests together: a test that passes
with all of them detects none of them. Then they run in a sanitized build, and then the slow tests. Mutants that no test
detects are printed: the change, and the tests that reach the mutant. An interrupted run resumes. If only tests change,
surviving mutants run the new tests.
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
import threading
import time

from mutant import Mutant, mutated

HERE = pathlib.Path(__file__).resolve().parent
ROOT = next((pathlib.Path(word[7:]).resolve() for word in sys.argv if word.startswith("--root=")), HERE.parents[1])
MADE = ROOT / "build" / "mutate"
COPY = MADE / "src"
BUILD = COPY / "build" / "dev"
SANITIZED = COPY / "build" / "asan-ubsan"
ROOMS = ("ir/", "grammar/", "matmul/", "passes/", "report/", "runtime/", "api/", "tools/")
STRICT = "sanitized/"  # prefix of the names of the sanitized build's tests
QUICK = "lit/", "unit/"
FIRST = 10  # number of tests that run on each mutant alone
LONG = 5  # tests that take more seconds than this do not run on each mutant alone
SLOW = 20  # tests that take more seconds than this run last
CHOSEN = 40  # minimum number of tests of the sanitized build that run on a mutant, if so many reach it
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
        if path.is_file() and COPY / "build" not in path.parents and str(path.relative_to(COPY)) not in wanted:
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


def configure(python, preset="dev"):
    (MADE / "build.log").write_bytes(b"")
    command("cmake", "--preset", preset, f"-DHLOFP8_PYTHON={python}", "-DHLOFP8_WERROR=OFF", cwd=COPY)


def build(jobs, folder):
    command("cmake", "--build", str(folder), "-j", str(jobs))


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


def execute(key, numbers, limit):
    """Runs a test with these mutants. Returns its status, its duration, and all mutants that it reaches."""
    import suite
    log = FOLDER / "reached"
    log.write_bytes(b"")
    environment = {"HLO_MUTANT_LOG": str(log), "HLO_MUTANT": ",".join(map(str, numbers))}
    status, seconds = suite.run(TESTS[key], FOLDER, environment, limit, FOLDER / "output")
    return status, round(seconds, 2), sorted({int(n) for n in log.read_bytes().split()})


def reach(key):
    """Runs a test without a mutant."""
    status, seconds, reached = execute(key, (), 3000)
    return {"key": key, "status": status, "seconds": seconds, "reached": reached}


def attempt(job):
    """Runs tests on a mutant up to the first test that detects the mutant."""
    number, keys, patience = job
    passed = []
    for key, seconds in keys:
        status, _, _ = execute(key, (number,), patience + 5 * seconds)
        if status != 0:
            return {"number": number, "passed": passed, "killed": TESTS[key].name, "status": status}
        passed.append(key)
    return {"number": number, "passed": passed, "killed": None}


def divide(key, numbers, limit, status):
    """Returns the status of a test with each mutant; `status` is the status with all of them."""
    if status == 0 or len(numbers) == 1:
        return dict.fromkeys(numbers, status)
    half, found = len(numbers) // 2, {}
    for part in (numbers[:half], numbers[half:]):
        found.update(divide(key, part, limit, execute(key, part, limit)[0]))
    return found


def together(job):
    """Runs a test on many mutants. `row` is the result without a mutant; if None, the test also runs without one after
    a failure."""
    import suite
    key, numbers, row, patience = job
    status, seconds, reached = execute(key, numbers, patience + 5 * row["seconds"] if row else TESTS[key].limit)
    if not row and status in (0, suite.SKIPPED):
        return {"key": key, "status": status, "seconds": seconds, "reached": reached}, dict.fromkeys(set(numbers) & set(reached), 0)
    row = row or reach(key)
    numbers = [number for number in numbers if number in row["reached"]]
    if row["status"] != 0 or not numbers:
        return row, {}
    return row, divide(key, numbers, patience + 5 * row["seconds"], status)


def lazily(pool, function, jobs, most):
    """Yields the results of jobs; takes a job only when a process is ready for it, so that jobs can depend on earlier
    results."""
    free, over = threading.Semaphore(most), []

    def fed():
        free.acquire()
        for job in jobs:
            if over:
                return
            yield job
            free.acquire()
    try:
        for result in pool.imap_unordered(function, fed()):
            free.release()
            yield result
    finally:
        over.append(True)
        free.release()


def same_code(job):
    """Returns whether the compiler output is the same with and without a mutation of a source."""
    number, words, folder, texts = job
    made = [subprocess.run(words, input=text, cwd=folder, capture_output=True, check=False) for text in texts]
    return number, made[0].returncode == 0 and made[0].stdout == made[1].stdout


def comparisons(files, rows):
    """Yields the jobs of same_code for mutants."""
    entries = {entry["file"]: entry for entry in json.loads((BUILD / "compile_commands.json").read_text())}
    for row in rows:
        mutant = row["mutant"]
        entry = entries.get(str(COPY / mutant.file))
        if entry:  # not a header
            words = shlex.split(entry["command"])
            words = [word for word in words[:words.index("-o")] if word not in ("-g", "-Werror")]
            words += ["-w", "-g0", "-iquote", str((COPY / mutant.file).parent), "-S", "-o", "-", "-x", "c", "-"]
            data = files[mutant.file]
            yield row["number"], words, entry["directory"], (data, mutant.changed(data))


class Run:
    """Runs the mutants of a plan, and stores the results."""

    def __init__(self, plan, rows, tests, end, options):
        self.patience, self.workers, self.end = options.patience, options.jobs, end
        self.reaches, self.results = plan.with_suffix(".reached"), plan.with_suffix(".results")
        self.rows, self.map = rows, {}
        self.know(tests)
        self.killed, self.passed, self.same, self.compared = {}, {row["number"]: set() for row in rows}, set(), set()
        for row in appended(self.results):
            self.take(row)

    def know(self, tests):
        keys = {test.key for test in tests}
        self.map.update({row["key"]: row for row in appended(self.reaches) if row["key"] in keys})

    def take(self, row):
        number = row["number"]
        self.passed[number].update(row.get("passed", ()))
        if row.get("killed"):
            self.killed[number] = row
        if "same" in row:
            self.compared.add(number)
        if row.get("same"):
            self.same.add(number)

    def record(self, path, row):
        with open(path, "a", encoding="utf-8") as to:
            to.write(json.dumps(row) + "\n")

    def reached_by(self, number):
        found = [row for row in self.map.values() if row["status"] == 0 and number in row["reached"] and not row["key"].startswith(STRICT)]
        return sorted(found, key=lambda row: row["seconds"])

    def look(self, pool, tests):
        missing = [test.key for test in tests if test.key not in self.map]
        if missing:
            say(f"{len(missing)} tests run with a log of what they reach")
        for row in pool.imap_unordered(reach, missing):
            self.learn(row)

    def learn(self, row):
        import suite
        self.map[row["key"]] = row
        self.record(self.reaches, row)
        if row["status"] not in (0, suite.SKIPPED):
            say(f"left out, fails without a mutant: {row['key'].split()[0]} ({row['status']})")

    def left(self):
        return sum(self.open(row["number"]) for row in self.rows)

    def open(self, number):
        return number not in self.killed and number not in self.same

    def first(self, pool):
        """Runs the first tests that reach each mutant."""
        jobs = []
        for row in self.rows:
            left = [(test["key"], test["seconds"]) for test in self.reached_by(row["number"])
                    if test["key"] not in self.passed[row["number"]] and test["seconds"] < LONG]
            if left and self.open(row["number"]) and len(self.passed[row["number"]]) < FIRST:
                jobs.append((row["number"], left[:FIRST], self.patience))
        for row in lazily(pool, attempt, self.timely(jobs), self.workers):
            self.settle(row)

    def compare(self, pool, files):
        """Finds mutants whose code is that of the original."""
        asked = [row for row in self.rows if self.open(row["number"]) and row["number"] not in self.compared]
        for number, same in lazily(pool, same_code, self.timely(comparisons(files, asked)), self.workers):
            self.settle({"number": number, "same": same})

    def settle(self, row):
        self.take(row)
        self.record(self.results, row)
        told = f"killed by {row['killed']}" if row.get("killed") else "the same code" if row.get("same") else None
        if told:
            place = self.rows[row["number"]]
            say(f"[{len(self.killed) + len(self.same)}/{len(self.rows)}] {row['number']} {place['file']}:{place['line']} {place['kind']}: {told}")

    def late(self):
        return time.monotonic() > self.end

    def timely(self, jobs):
        """Yields jobs until the time limit."""
        for job in jobs:
            if self.late():
                return
            yield job

    def rest(self, pool, tests, every, wanted=lambda test, number: True):
        """Runs each test on all surviving mutants for which the test is chosen, together."""
        def jobs():
            for at, test in enumerate(tests, 1):
                row = self.map.get(test.key)
                numbers = [one["number"] for one in self.rows if self.open(one["number"]) and test.key not in self.passed[one["number"]]
                           and (not row or one["number"] in row["reached"]) and wanted(test, one["number"])]
                if numbers and (not row or row["status"] == 0):
                    if at % every == 0:
                        say(f"[{at}/{len(tests)}] {test.name}, on {len(numbers)} mutants")
                    yield test.key, numbers, row, self.patience
        for row, found in lazily(pool, together, self.timely(jobs()), self.workers):
            if row["key"] not in self.map:
                self.learn(row)
            for number, status in sorted(found.items()):
                if self.open(number):
                    name = row["key"].split()[0]
                    self.settle({"number": number, "killed": name, "status": status} if status else {"number": number, "passed": [row["key"]]})

    def sanitized(self, pool, tests):
        """Runs tests of the sanitized build, first those that reach most mutants, until CHOSEN tests reach each
        mutant."""
        open_now = {row["number"] for row in self.rows if self.open(row["number"])}
        reached = {STRICT + row["key"]: open_now & set(row["reached"]) for row in self.map.values()
                   if row["key"].startswith(QUICK) and row["status"] == 0 and row["seconds"] < LONG}
        count, chosen = dict.fromkeys(open_now, 0), []
        for test in sorted(tests, key=lambda test: -len(reached.get(test.key, ()))):
            numbers = reached.get(test.key, ())
            if any(count[number] < CHOSEN for number in numbers):
                chosen.append(test)
                count.update({number: count[number] + 1 for number in numbers})
        self.rest(pool, chosen, 20, lambda test, number: number in reached[test.key])

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


def slow_last(tests):
    """Sorts tests by their duration in earlier runs; tests without an earlier run follow, by their time limit."""
    seconds = {row["key"].split()[0]: row["seconds"] for path in MADE.glob("*.reached") for row in appended(path)}
    return sorted(tests, key=lambda test: (test.name not in seconds, seconds.get(test.name, test.limit)))


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--places", type=int, default=100, help="how many mutants")
    options.add_argument("--seed", type=int, default=1, help="which are drawn")
    options.add_argument("--minutes", type=float, default=float("inf"), help="no test begins after so many minutes")
    options.add_argument("--jobs", type=int, default=2, help="tests at a time")
    options.add_argument("--list", action="store_true", help="run nothing: what is known of the last run so far")
    options.add_argument("--patience", type=float, default=20, help="a test has not ended after so many seconds and five times its own")
    options.add_argument("--plan", type=pathlib.Path, help="mutants that were written down, instead of drawn ones")
    options.add_argument("--root", help="another tree")
    options.add_argument("--python", default=sys.executable, help=argparse.SUPPRESS)
    options = options.parse_args()
    if options.places > 4096:
        sys.exit("mutate: at most 4096 places")
    began = time.monotonic()
    MADE.mkdir(parents=True, exist_ok=True)
    sys.path.insert(0, str(HERE.parents[1] / "build" / "mutate" / "python"))
    files, sources = tree()
    plan, rows = draw(files, sources, options)
    if not options.list:
        say(f"building {len(rows)} mutants")
        lay(files, rows)
        configure(options.python)
        build(options.jobs, BUILD)
    import suite
    tests = suite.all_tests(BUILD)
    run = Run(plan, rows, tests, began + 60 * options.minutes, options)
    if not options.list:
        quick = [test for test in tests if test.name.startswith(QUICK)]
        stages(run, files, quick, [test for test in tests if test not in quick], options)
    run.tell(files)


def stages(run, files, quick, slow, options):
    import suite

    def pool(tests):
        return multiprocessing.get_context("fork").Pool(options.jobs, begin, (tests,))
    with pool(quick) as two:
        run.look(two, quick)
        slow += [test for test in quick if run.map[test.key]["seconds"] > SLOW]
        quick = [test for test in quick if test not in slow]
        say("the first tests of each mutant")
        run.first(two)
        say(f"{run.left()} mutants remain: compare the code")
        run.compare(two, files)
        say(f"{run.left()} mutants remain: the other tests, on all of them")
        run.rest(two, sorted(quick, key=lambda test: run.map[test.key]["seconds"]), 100)
    if run.left() and not run.late() and b"asan-ubsan" in files["CMakePresets.json"]:
        say(f"{run.left()} mutants remain: build sanitized code")
        configure(options.python, "asan-ubsan")
        build(options.jobs, SANITIZED)
        tests = suite.all_tests(SANITIZED, STRICT)
        run.know(tests)
        with pool(tests) as two:
            run.sanitized(two, tests)
    say(f"{run.left()} mutants remain: the slow tests, on all of them")
    with pool(slow) as two:
        run.rest(two, slow_last(slow), 1)


if __name__ == "__main__":
    main()
