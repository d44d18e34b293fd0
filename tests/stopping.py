#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that a program ended by a signal leaves no temporary file, and that its status is that signal, for each signal
whose default is to end a process. An ignored signal must remain ignored.

usage: stopping.py hlo-fp8-opt MODULE

The first of two outputs is open when the program blocks on the second, a FIFO without a reader.
"""
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time


# AddressSanitizer reports some signals itself, which replaces their default action.
HANDLED = "".join(f":handle_{name}=0" for name in ("segv", "sigbus", "abort", "sigill", "sigtrap", "sigfpe"))


def wait_for(folder, count):
    for _ in range(2000):
        if len(list(folder.glob("hlo-fp8.*"))) == count:
            return
        time.sleep(0.01)
    raise AssertionError(f"not {count} temporary files: {sorted(folder.iterdir())}")


def stop(program, module, number, ignored=False):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        os.mkfifo(folder / "fifo")
        how = signal.SIG_IGN if ignored else signal.SIG_DFL
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        command = [program, f"--remarks-file={folder}/remarks.txt", f"--report={folder}/fifo", "-o", f"{folder}/out", module]
        env = dict(os.environ, ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + HANDLED)
        started = subprocess.Popen(command, env=env, preexec_fn=lambda: signal.signal(number, how))
        wait_for(folder, 1)
        started.send_signal(number)
        if ignored:
            time.sleep(0.2)
            assert started.poll() is None, "an ignored signal has ended it"
            with open(folder / "fifo", "rb") as reader:
                reader.read()
            assert started.wait() == 0
            left = {"fifo", "remarks.txt", "out"}
        else:
            assert started.wait() == -number, (number, started.returncode)
            left = {"fifo"}
        found = {path.name for path in folder.iterdir()}
        assert found == left, (number, found)


def main():
    program, module = sys.argv[1:]
    never = {signal.SIGKILL, signal.SIGSTOP}
    harmless = {signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
    ending = [number for number in sorted(signal.valid_signals() - never - harmless) if number <= signal.SIGSYS]
    assert len(ending) >= 22, ending
    for number in [*ending, signal.SIGRTMIN, signal.SIGRTMAX]:
        stop(program, module, number)
    stop(program, module, signal.SIGHUP, ignored=True)


if __name__ == "__main__":
    sys.exit(main())
