# SPDX-License-Identifier: Apache-2.0
"""Lists the tests of a build (golden tests by file, others by ctest name), and runs each in a separate process
group."""
import fcntl
import hashlib
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import time

# Tests that are independent of mutants: checks of the tree itself, of mutants of another tree, of packages and of
# times.
LEFT_OUT = ("lit/", "lint/", "mutate", "embed", "package", "bench", "cuda/headers")
KEPT = ("lint/example",)
SKIPPED = 77


class Test:
    """A test with a name, a key that changes with the test's source, and the number of seconds that it may take."""

    def __init__(self, name, source, limit):
        self.name, self.limit = name, limit
        self.key = name + " " + hashlib.sha256(source).hexdigest()[:12]


class Golden(Test):
    """A golden test, run by lit's internal shell in this process."""

    def __init__(self, test, config, prefix):
        super().__init__(prefix + "lit/" + "/".join(test.path_in_suite), pathlib.Path(test.getSourcePath()).read_bytes(), 300)
        self.test, self.lit = test, config

    def run(self, folder):
        self.test.suite.exec_root = str(folder / "lit")
        for name in ("HLO_MUTANT", "HLO_MUTANT_LOG"):
            if name in os.environ:
                self.test.config.environment[name] = os.environ[name]
        result = self.test.config.test_format.execute(self.test, self.lit)
        code, told = (result.code, result.output) if hasattr(result, "code") else (result[0], result[1])
        print(told)
        return SKIPPED if code.name == "UNSUPPORTED" else int(code.isFailure)


class Command(Test):
    """A test that ctest would run. Its output goes to a folder of the worker if --work specifies one."""

    def __init__(self, name, told):
        properties = {row["name"]: row["value"] for row in told.get("properties", [])}
        self.command = told["command"]
        files = [pathlib.Path(word) for word in self.command if word.endswith((".py", ".sh")) and os.path.exists(word)]
        programs = [pathlib.Path(word) for word in self.command[:1] if "/bin/test_" in word]
        super().__init__(name, b"".join(path.read_bytes() for path in files + [source_of(path) for path in programs]),
                         properties.get("TIMEOUT", 600))
        self.unit = bool(programs)
        self.environment = dict(row.split("=", 1) for row in properties.get("ENVIRONMENT", []))
        self.folder = properties.get("WORKING_DIRECTORY")
        self.skip = properties.get("SKIP_RETURN_CODE", SKIPPED)

    def run(self, folder):
        command, lock = list(self.command), None
        work = folder / self.name.replace("/", "_")
        work.mkdir(parents=True, exist_ok=True)
        if "--work" in command:
            command[command.index("--work") + 1] = str(work)
        elif not self.unit:  # this test writes to the same place as its run by another worker
            lock = open(folder.parent / (self.name.replace("/", "_") + ".lock"), "w")
            fcntl.flock(lock, fcntl.LOCK_EX)
        os.environ.update(self.environment)
        status = subprocess.run(command, cwd=work if self.unit else self.folder, check=False,
                                stdin=subprocess.DEVNULL).returncode
        return SKIPPED if status == self.skip else status


def source_of(program):
    found = list((pathlib.Path(program).parents[3] / "tests" / "unit").glob(f"*/{program.name}.c"))
    return found[0] if found else program


def goldens(folders, prefix):
    import lit.LitConfig
    import lit.discovery
    config = lit.LitConfig.LitConfig("lit", [], "error", False, False, [], False, False, False, None, {})
    return [Golden(test, config, prefix) for test in lit.discovery.find_tests_for_inputs(config, folders)]


def all_tests(build, prefix=""):
    """Returns the tests of a build, whose names in ctest begin with `prefix`."""
    told = subprocess.run(["ctest", "--test-dir", str(build), "--show-only=json-v1"], check=True, capture_output=True, text=True)
    rows = {row["name"].removeprefix(prefix): row for row in json.loads(told.stdout)["tests"] if "command" in row}
    folders = [str(build / "testdata" / name[4:]) for name in rows if name.startswith("lit/")]
    return [*(Command(prefix + name, row) for name, row in rows.items() if not name.startswith(LEFT_OUT) or name in KEPT),
            *goldens(folders, prefix)]


def run(test, folder, environment, limit, output):
    """Runs a test in a separate process. Returns the status, or "timeout", and the duration."""
    began = time.monotonic()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setsid()
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.environ.update(environment)
            to = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            os.dup2(to, 1)
            os.dup2(to, 2)
            sys.stdout = open(1, "w", closefd=False, errors="replace")
            status = test.run(folder)
            sys.stdout.flush()
        finally:
            os._exit(status & 0xFF or int(status != 0))
    handle = os.pidfd_open(child)
    ended = select.select([handle], [], [], limit)[0]
    os.close(handle)
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        pass
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return ("timeout" if not ended else status), time.monotonic() - began
