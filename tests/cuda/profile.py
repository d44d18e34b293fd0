#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the times of steps with the fake libraries (tests/cuda/README.md), whose clock only advances with the device's work.

usage: profile.py --bin DIR --work DIR --standin FILE

- In the trace, each step takes as long as the work between the begin and the end of its profiler range, and begins when
  the previous work of the run is done. The tables have the sums.
- Jobs and decisions of the host have a separate track.
- A bounded number of events is created once, and read when the device is idle. A failing event causes one error and no
  memory leak.
"""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys

import _standin

# The duration of each function's work in milliseconds. The duration of a matmul depends on its algorithm (cublaslt.c).
WORK = {"cuLaunchKernel": 1.0, "cuMemcpyDtoDAsync": 0.25, "cuMemsetD8Async": 0.25}
MAX_EVENTS = 4096 + 64

# The module has a data-dependent loop that contains a job of the host, and a conditional.
CONTROL = """HloModule control

%small (s: (f32[8], u64[2], f32[8])) -> pred[] {
  %s = (f32[8], u64[2], f32[8]) parameter(0)
  %x = f32[8] get-tuple-element(%s), index=0
  %first = f32[1] slice(%x), slice={[0:1]}
  %v = f32[] reshape(%first)
  %limit = f32[] constant(12)
  ROOT %more = pred[] compare(%v, %limit), direction=LT
}

%grow (s: (f32[8], u64[2], f32[8])) -> (f32[8], u64[2], f32[8]) {
  %s = (f32[8], u64[2], f32[8]) parameter(0)
  %x = f32[8] get-tuple-element(%s), index=0
  %key = u64[2] get-tuple-element(%s), index=1
  %step = f32[8] get-tuple-element(%s), index=2
  %sum = f32[8] add(%x, %step)
  %rng = (u64[2], u32[4]) rng-bit-generator(%key), algorithm=rng_three_fry
  %next = u64[2] get-tuple-element(%rng), index=0
  ROOT %out = (f32[8], u64[2], f32[8]) tuple(%sum, %next, %step)
}

%even (x: f32[8]) -> f32[8] {
  %x = f32[8] parameter(0)
  ROOT %n = f32[8] negate(%x)
}

%odd (x: f32[8]) -> f32[8] {
  %x = f32[8] parameter(0)
  %r = f32[8] reverse(%x), dimensions={0}
  %s = f32[16] concatenate(%r, %x), dimensions={0}
  ROOT %n = f32[8] slice(%s), slice={[4:12]}
}

ENTRY %main (x: f32[8], key: u64[2], which: s32[]) -> (f32[8], u64[2], f32[8]) {
  %x = f32[8] parameter(0)
  %key = u64[2] parameter(1)
  %which = s32[] parameter(2)
  %two = f32[] constant(2)
  %twos = f32[8] broadcast(%two), dimensions={}
  %square = f32[8] multiply(%x, %x)
  %up = f32[8] add(%square, %twos)
  %init = (f32[8], u64[2], f32[8]) tuple(%x, %key, %up)
  %loop = (f32[8], u64[2], f32[8]) while(%init), condition=%small, body=%grow
  %y = f32[8] get-tuple-element(%loop), index=0
  %n = u64[2] get-tuple-element(%loop), index=1
  %c = f32[8] conditional(%which, %y, %up), branch_computations={%even, %odd}
  ROOT %out = (f32[8], u64[2], f32[8]) tuple(%y, %n, %c)
}
"""

# The module has more steps than there are events.
LONG = """HloModule long

%more (s: (s32[], f32[8])) -> pred[] {
  %s = (s32[], f32[8]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %n = s32[] constant(1100)
  ROOT %lt = pred[] compare(%i, %n), direction=LT
}

%grow (s: (s32[], f32[8])) -> (s32[], f32[8]) {
  %s = (s32[], f32[8]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %x = f32[8] get-tuple-element(%s), index=1
  %one = s32[] constant(1)
  %j = s32[] add(%i, %one)
  %sum = f32[8] sine(%x)
  ROOT %out = (s32[], f32[8]) tuple(%j, %sum)
}

ENTRY %main (x: f32[8]) -> f32[8] {
  %x = f32[8] parameter(0)
  %zero = s32[] constant(0)
  %init = (s32[], f32[8]) tuple(%zero, %x)
  %loop = (s32[], f32[8]) while(%init), condition=%more, body=%grow
  ROOT %y = f32[8] get-tuple-element(%loop), index=1
}
"""


class Profiles:
    def __init__(self, a):
        self.program, self.work, self.faults = a.bin / "hlo-fp8-run", a.work, []
        self.environment = dict(_standin.environment(a.standin), NVTX_INJECTION64_PATH=str(a.standin), HLO_STANDIN_CLOCK="1")
        self.log, self.trace = a.work / "profile.log", a.work / "profile.json"

    def check(self, good, what):
        if not good:
            self.faults.append(what)

    def run(self, name, text, *options, fail=""):
        """Returns exit status, messages, the calls, and the events of the trace."""
        module = self.work / f"profile-{name}.hlo"
        module.write_text(text)
        for path in self.log, self.trace:
            path.unlink(missing_ok=True)
        done = subprocess.run(
            [self.program, "--backend=cuda", "--fallback=cpu", "--profile", f"--trace={self.trace}",
             f"--kernel-cache={self.work}/kernels", *options, module],
            capture_output=True, text=True, env=dict(self.environment, HLO_STANDIN_LOG=str(self.log), HLO_STANDIN_FAIL=fail))
        trace = json.loads(self.trace.read_text())["traceEvents"] if done.returncode == 0 else []
        return done.returncode, done.stdout + done.stderr, self.log.read_text().splitlines(), \
            [e for e in trace if e["ph"] == "X"]


def ranges_of(calls):
    """Returns (name, begin, milliseconds) of each range, in the order in which they end; that of a run is called "run"."""
    clock, open_ranges, out = 0.0, [], []
    for call in calls:
        word = call.split(" ")[0]
        if word == "nvtxRangePushA":
            open_ranges.append((call.split(" ", 1)[1] if open_ranges else "run", clock))
        elif word == "nvtxRangePop":
            name, begin = open_ranges.pop()
            out.append((name, begin, clock - begin))
        clock += WORK.get(word, 0)
    return out


def runs_of(events, is_run):
    """Returns lists of the events of each run; the event of the run is last."""
    out = [[]]
    for event in events:
        out[-1].append(event)
        if is_run(event):
            out.append([])
    return out[:-1]


def check_times(p):
    status, said, calls, events = p.run("control", CONTROL, "--time=2", "--seed=3")
    p.check(status == 0, f"status {status}: {said}")
    hosted = {e["name"] for e in events if e["tid"] == 2 and e.get("cat") != "decision"}
    p.check(hosted == {"rng"}, f"on the host: {hosted}")
    ranges = runs_of([r for r in ranges_of(calls) if r[0] not in hosted], lambda r: r[0] == "run")
    device = runs_of([e for e in events if e["tid"] == 1], lambda e: e["name"] == "run")
    p.check(len(ranges) == len(device) == 3, f"{len(ranges)} runs, {len(device)} in the trace")
    for told, seen in zip(ranges, device):
        p.check([r[0] for r in told] == [e["name"] for e in seen], f"other steps: {told} {seen}")
        for (name, begin, milliseconds), e in zip(told, seen):
            p.check(abs(1e3 * milliseconds - e["dur"]) < 1, f"{name} takes {e['dur']} us, not {milliseconds} ms")
            since = e["ts"] - seen[-1]["ts"]
            p.check(abs(1e3 * (begin - told[-1][1]) - since) < 1, f"{name} begins at {since} us")
        p.check(any(e["name"] == "loop" and e["dur"] >= 3000 for e in seen), "the loop takes no time")
    ends = [seen[-1]["ts"] + seen[-1]["dur"] for seen in device]
    p.check(device[1][-1]["ts"] > 0 and abs(device[2][-1]["ts"] - ends[1]) < 1, "runs are not consecutive")
    check_host(p, events)
    # The tables have the runs after the first.
    later = events[1 + [e["name"] for e in events].index("run"):]
    check_tables(p, said, [e for e in later if e.get("cat") not in (None, "while", "conditional")])


def check_host(p, events):
    """Checks that jobs and decisions of the host are within the time of the run."""
    host = [e for e in events if e["tid"] == 2]
    count = collections.Counter((e["name"], e.get("cat")) for e in host)
    rounds = count["rng", "rng-bit-generator"]
    p.check(rounds >= 6 and count["loop", "decision"] == rounds + 3 and count["c", "decision"] == 3, f"host: {count}")
    p.check(all(e["dur"] >= 0 and -1e6 < e["ts"] < 60e6 for e in host), f"host: {host}")
    p.check(all(a["ts"] + a["dur"] <= b["ts"] + .01 for a, b in zip(host, host[1:])), f"not in turn: {host}")


def check_tables(p, said, events):
    sums, times = collections.Counter(), collections.Counter()
    for e in events:
        sums[e["name"]] += e["dur"]
        times[e["name"]] += 1
    rows = re.findall(r"^ +([0-9.]+) +([0-9.]+) +([0-9.]+) +[0-9.]+ +([0-9.]+) .* (\w+)(?: \((?:group of \d+|copy|control flow)\))?  \s*$",
                      said, re.M)
    p.check("measured by the device clock" in said and len(rows) >= 6, f"rows: {rows} of {said}")
    for ms, least, median, count, name in rows:
        p.check(abs(float(ms) - sums[name] / 2e3) < 2e-3 and abs(float(count) - times[name] / 2) < 1e-3,
                f"{name}: {ms} ms {count} times, {sums[name]} us in {times[name]} events")
        p.check(float(least) <= float(median) and float(least) <= float(ms) + .001, f"{name}: {least} {median} {ms}")


def check_bound(p):
    status, said, calls, events = p.run("long", LONG, "--time=0")
    made = sum(call.startswith("cuEventCreate") for call in calls)
    p.check(status == 0 and 1000 < made <= MAX_EVENTS, f"status {status}, {made} events: {said}")
    steps = [e for e in events if e.get("cat") in ("sine", "add")]
    p.check(len(steps) == 2200 and all(abs(e["dur"] - 1000) < 1 for e in steps), f"{len(steps)} steps of the loop")
    overlaps = sum(a["ts"] + a["dur"] > b["ts"] + 1 for a, b in zip(steps, steps[1:]))
    p.check(overlaps <= 3, f"{overlaps} steps begin too early")  # after each reading of events, times restart from the host's clock


def check_failures(p):
    _, _, calls, _ = p.run("control", CONTROL, "--seed=3")
    counts = collections.Counter(call.split(" ")[0] for call in calls)
    for name in "cuEventCreate", "cuEventRecord", "cuEventElapsedTime", "cuMemcpyDtoHAsync", "cuStreamSynchronize":
        for at in sorted({counts[name] // 2, counts[name]}):
            status, said, calls, _ = p.run("control", CONTROL, "--seed=3", fail=f"{name}:{at}=7")
            p.check(status == 1 and said.count("error:") == 1 and "CUDA_ERROR_7" in said, f"{name} {at}: {status}: {said}")
            made = collections.Counter(call.split(" ")[0] for call in calls)
            p.check(made["cuEventCreate"] - made["cuEventDestroy"] == (name == "cuEventCreate") and "leaked" not in str(calls),
                    f"{name} {at}: a leak")


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--bin", type=pathlib.Path, required=True)
    args.add_argument("--work", type=pathlib.Path, required=True)
    args.add_argument("--standin", required=True)
    a = args.parse_args()
    p = Profiles(a)
    (a.work / "kernels").mkdir(exist_ok=True)
    check_times(p)
    check_bound(p)
    check_failures(p)
    for fault in p.faults:
        print("FAILED", fault)
    print(f"{len(p.faults)} faults")
    return 1 if p.faults else 0


sys.exit(main())
