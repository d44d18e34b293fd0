#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the calls of CUDA's libraries by plans for a device, with the fake libraries (tests/cuda/README.md).

usage: runs.py --bin DIR --work DIR --standin FILE [--few]

- Executing allocates, compiles, queries and creates nothing: with graphs it copies, replays and waits; without graphs
  it sets pointers and launches. Every capture that begins ends, and every object is released.
- Loops of unknown length, conditionals and jobs on the host divide a run, and have the same outputs with and without
  graphs and on the cpu backend.
- If the nodes of a graph run in another order that its edges allow, and kernels start as early as allowed, the outputs
  are the same.
- Every injected failure of a call causes exit status 1 with one error and no leak. For each function, the first call,
  the last and one in between fail; with --few only the last. A launch that fails while algorithms are timed drops the
  algorithm, with a warning.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

import _standin

# The calls of a run between the first copy of an input and the last of an output.
ALWAYS = {"cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuStreamSynchronize", "cuEventRecord", "cuEventSynchronize",
          "cuEventElapsedTime"}
REPLAY = ALWAYS | {"cuGraphLaunch"}
LAUNCH = ALWAYS | {"cuLaunchKernel", "cublasLtMatmul", "cublasLtMatmulDescSetAttribute", "cuMemcpyDtoDAsync",
                   "cuMemsetD8Async"}
# Failures of release functions are not tested.
ENDINGS = re.compile("Destroy|Free|Release|Unload|GetError|StatusName|Logger|GetVersion")
MADE = {"cuMemAlloc": "cuMemFree", "cuStreamCreate": "cuStreamDestroy", "cuEventCreate": "cuEventDestroy",
        "cuStreamBeginCapture": "cuStreamEndCapture", "cuGraphInstantiate": "cuGraphExecDestroy",
        "cuModuleLoadData": "cuModuleUnload", "cuDevicePrimaryCtxRetain": "cuDevicePrimaryCtxRelease",
        "cublasLtCreate": "cublasLtDestroy", "cublasLtMatmulDescCreate": "cublasLtMatmulDescDestroy",
        "cublasLtMatrixLayoutCreate": "cublasLtMatrixLayoutDestroy",
        "cublasLtMatmulPreferenceCreate": "cublasLtMatmulPreferenceDestroy"}

FP8 = """HloModule fp8

%most (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %m = f32[] maximum(%x, %y)
}

ENTRY %main (a: f8e4m3fn[32,64], b: f8e4m3fn[48,64], sa: f32[], sb: f32[]) -> (f32[32,48], f32[]) {
  %a = f8e4m3fn[32,64] parameter(0)
  %b = f8e4m3fn[48,64] parameter(1)
  %sa = f32[] parameter(2)
  %sb = f32[] parameter(3)
  %aw = f32[32,64] convert(%a)
  %sas = f32[32,64] broadcast(%sa), dimensions={}
  %ad = f32[32,64] multiply(%aw, %sas)
  %bw = f32[48,64] convert(%b)
  %sbs = f32[48,64] broadcast(%sb), dimensions={}
  %bd = f32[48,64] multiply(%bw, %sbs)
  %d = f32[32,48] dot(%ad, %bd), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  %t = f32[32,48] tanh(%d)
  %zero = f32[] constant(0)
  %r = f32[] reduce(%t, %zero), dimensions={0,1}, to_apply=%most
  ROOT %out = (f32[32,48], f32[]) tuple(%t, %r)
}
"""

# A data-dependent loop, a loop that contains such a loop, and a conditional that uses a result of each.
CONTROL = """HloModule control

%small (s: (f32[8], s32[], f32[8])) -> pred[] {
  %s = (f32[8], s32[], f32[8]) parameter(0)
  %x = f32[8] get-tuple-element(%s), index=0
  %first = f32[1] slice(%x), slice={[0:1]}
  %v = f32[] reshape(%first)
  %limit = f32[] constant(100)
  ROOT %more = pred[] compare(%v, %limit), direction=LT
}

%grow (s: (f32[8], s32[], f32[8])) -> (f32[8], s32[], f32[8]) {
  %s = (f32[8], s32[], f32[8]) parameter(0)
  %x = f32[8] get-tuple-element(%s), index=0
  %i = s32[] get-tuple-element(%s), index=1
  %step = f32[8] get-tuple-element(%s), index=2
  %sum = f32[8] add(%x, %step)
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  ROOT %out = (f32[8], s32[], f32[8]) tuple(%sum, %next, %step)
}

%twice (s: (s32[], f32[8], s32[], f32[8])) -> pred[] {
  %s = (s32[], f32[8], s32[], f32[8]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %n = s32[] get-tuple-element(%s), index=2
  %seven = s32[] constant(7)
  %left = s32[] remainder(%n, %seven)
  %zero = s32[] constant(0)
  ROOT %more = pred[] compare(%left, %zero), direction=NE
}

%inner (s: (s32[], f32[8], s32[], f32[8])) -> (s32[], f32[8], s32[], f32[8]) {
  %s = (s32[], f32[8], s32[], f32[8]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %x = f32[8] get-tuple-element(%s), index=1
  %n = s32[] get-tuple-element(%s), index=2
  %step = f32[8] get-tuple-element(%s), index=3
  %half = f32[] constant(0.5)
  %halves = f32[8] broadcast(%half), dimensions={}
  %less = f32[8] multiply(%x, %halves)
  %init = (f32[8], s32[], f32[8]) tuple(%less, %n, %step)
  %loop = (f32[8], s32[], f32[8]) while(%init), condition=%small, body=%grow
  %y = f32[8] get-tuple-element(%loop), index=0
  %m = s32[] get-tuple-element(%loop), index=1
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  ROOT %out = (s32[], f32[8], s32[], f32[8]) tuple(%next, %y, %m, %step)
}

%even (x: f32[8]) -> f32[8] {
  %x = f32[8] parameter(0)
  ROOT %n = f32[8] negate(%x)
}

%odd (x: f32[8]) -> f32[8] {
  %x = f32[8] parameter(0)
  ROOT %n = f32[8] add(%x, %x)
}

ENTRY %main (x: f32[8], step: f32[8], which: s32[]) -> (f32[8], s32[], f32[8]) {
  %x = f32[8] parameter(0)
  %step = f32[8] parameter(1)
  %which = s32[] parameter(2)
  %big = f32[8] multiply(%step, %step)
  %one = f32[] constant(1.5)
  %ones = f32[8] broadcast(%one), dimensions={}
  %up = f32[8] add(%big, %ones)
  %zero = s32[] constant(0)
  %init = (f32[8], s32[], f32[8]) tuple(%x, %zero, %up)
  %loop = (f32[8], s32[], f32[8]) while(%init), condition=%small, body=%grow
  %y = f32[8] get-tuple-element(%loop), index=0
  %n = s32[] get-tuple-element(%loop), index=1
  %outer.init = (s32[], f32[8], s32[], f32[8]) tuple(%zero, %y, %n, %up)
  %outer = (s32[], f32[8], s32[], f32[8]) while(%outer.init), condition=%twice, body=%inner
  %z = f32[8] get-tuple-element(%outer), index=1
  %m = s32[] get-tuple-element(%outer), index=2
  %c = f32[8] conditional(%which, %y, %z, %up), branch_computations={%even, %odd, %even}
  ROOT %out = (f32[8], s32[], f32[8]) tuple(%z, %m, %c)
}
"""

# An unrolled loop that contains a conditional and a loop of unknown length; and one that is too long for unrolling.
NESTED = """HloModule nested

%small (s: (f32[8], f32[8])) -> pred[] {
  %s = (f32[8], f32[8]) parameter(0)
  %x = f32[8] get-tuple-element(%s), index=0
  %first = f32[1] slice(%x), slice={[0:1]}
  %v = f32[] reshape(%first)
  %limit = f32[] constant(20)
  ROOT %more = pred[] compare(%v, %limit), direction=LT
}

%grow (s: (f32[8], f32[8])) -> (f32[8], f32[8]) {
  %s = (f32[8], f32[8]) parameter(0)
  %x = f32[8] get-tuple-element(%s), index=0
  %step = f32[8] get-tuple-element(%s), index=1
  %sum = f32[8] add(%x, %step)
  ROOT %out = (f32[8], f32[8]) tuple(%sum, %step)
}

%loop (p: (f32[8], f32[8])) -> f32[8] {
  %p = (f32[8], f32[8]) parameter(0)
  %w = (f32[8], f32[8]) while(%p), condition=%small, body=%grow
  ROOT %x = f32[8] get-tuple-element(%w), index=0
}

%halve (p: (f32[8], f32[8])) -> f32[8] {
  %p = (f32[8], f32[8]) parameter(0)
  %x = f32[8] get-tuple-element(%p), index=0
  %half = f32[] constant(0.5)
  %halves = f32[8] broadcast(%half), dimensions={}
  ROOT %y = f32[8] multiply(%x, %halves)
}

%three (s: (s32[], f32[8], f32[8])) -> pred[] {
  %s = (s32[], f32[8], f32[8]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %n = s32[] constant(3)
  ROOT %more = pred[] compare(%i, %n), direction=LT
}

%body (s: (s32[], f32[8], f32[8])) -> (s32[], f32[8], f32[8]) {
  %s = (s32[], f32[8], f32[8]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %x = f32[8] get-tuple-element(%s), index=1
  %step = f32[8] get-tuple-element(%s), index=2
  %pair = (f32[8], f32[8]) tuple(%x, %step)
  %first = f32[1] slice(%x), slice={[0:1]}
  %v = f32[] reshape(%first)
  %limit = f32[] constant(20)
  %small = pred[] compare(%v, %limit), direction=LT
  %y = f32[8] conditional(%small, %pair, %pair), true_computation=%loop, false_computation=%halve
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  ROOT %out = (s32[], f32[8], f32[8]) tuple(%next, %y, %step)
}

%many (s: (s32[], f32[8], f32[8])) -> pred[] {
  %s = (s32[], f32[8], f32[8]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %n = s32[] constant(8301)
  ROOT %more = pred[] compare(%i, %n), direction=LT
}

%count (s: (s32[], f32[8], f32[8])) -> (s32[], f32[8], f32[8]) {
  %s = (s32[], f32[8], f32[8]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %x = f32[8] get-tuple-element(%s), index=1
  %step = f32[8] get-tuple-element(%s), index=2
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  ROOT %out = (s32[], f32[8], f32[8]) tuple(%next, %step, %x)
}

ENTRY %main (x: f32[8], step: f32[8]) -> (f32[8], s32[], f32[8], f32[8]) {
  %x = f32[8] parameter(0)
  %step = f32[8] parameter(1)
  %one = f32[] constant(1.5)
  %ones = f32[8] broadcast(%one), dimensions={}
  %square = f32[8] multiply(%step, %step)
  %up = f32[8] add(%square, %ones)
  %zero = s32[] constant(0)
  %init = (s32[], f32[8], f32[8]) tuple(%zero, %x, %up)
  %nested = (s32[], f32[8], f32[8]) while(%init), condition=%three, body=%body
  %y = f32[8] get-tuple-element(%nested), index=1
  %start = (s32[], f32[8], f32[8]) tuple(%zero, %x, %up)
  %long = (s32[], f32[8], f32[8]) while(%start), condition=%many, body=%count
  %n = s32[] get-tuple-element(%long), index=0
  %p = f32[8] get-tuple-element(%long), index=1
  %q = f32[8] get-tuple-element(%long), index=2
  ROOT %out = (f32[8], s32[], f32[8], f32[8]) tuple(%y, %n, %p, %q)
}
"""

# A data-dependent loop that updates an array in place, starting from an input that must not change.
PLACED = """HloModule placed

%less (s: (s32[], f32[16], f32[])) -> pred[] {
  %s = (s32[], f32[16], f32[]) parameter(0)
  %x = f32[] get-tuple-element(%s), index=2
  %limit = f32[] constant(9)
  ROOT %more = pred[] compare(%x, %limit), direction=LT
}

%next (s: (s32[], f32[16], f32[])) -> (s32[], f32[16], f32[]) {
  %s = (s32[], f32[16], f32[]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %all = f32[16] get-tuple-element(%s), index=1
  %x = f32[] get-tuple-element(%s), index=2
  %one = s32[] constant(1)
  %j = s32[] add(%i, %one)
  %start = s32[] add(%j, %j)
  %step = f32[] constant(1.5)
  %y = f32[] add(%x, %step)
  %part = f32[3] broadcast(%y), dimensions={}
  %updated = f32[16] dynamic-update-slice(%all, %part, %start)
  ROOT %out = (s32[], f32[16], f32[]) tuple(%j, %updated, %y)
}

ENTRY %main (all: f32[16], x: f32[]) -> (s32[], f32[16], f32[], f32[16]) {
  %all = f32[16] parameter(0)
  %x = f32[] parameter(1)
  %zero = s32[] constant(0)
  %init = (s32[], f32[16], f32[]) tuple(%zero, %all, %x)
  %w = (s32[], f32[16], f32[]) while(%init), condition=%less, body=%next
  %n = s32[] get-tuple-element(%w), index=0
  %a = f32[16] get-tuple-element(%w), index=1
  %y = f32[] get-tuple-element(%w), index=2
  %both = f32[16] add(%a, %all)
  ROOT %out = (s32[], f32[16], f32[], f32[16]) tuple(%n, %a, %y, %both)
}
"""


# Three products of one operand, two of which have layouts that cuBLASLt does not support, with dependent operations and
# reused memory.
BESIDE = """HloModule concurrent

%most (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %m = f32[] maximum(%x, %y)
}

ENTRY %main (x: f32[8,16,24], q: f32[24,40], k: f32[24,40], v: f32[24,40]) -> (f32[8,16,40], f32[8,16,16], f32[], f32[], f32[40]) {
  %x = f32[8,16,24] parameter(0)
  %q = f32[24,40] parameter(1)
  %k = f32[24,40] parameter(2)
  %v = f32[24,40] parameter(3)
  %dq = f32[8,16,40] dot(%x, %q), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  %dk = f32[8,16,40] dot(%x, %k), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  %dv = f32[8,16,40] dot(%x, %v), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  %zero = f32[] constant(0)
  %aq = f32[] reduce(%dq, %zero), dimensions={0,1,2}, to_apply=%most
  %av = f32[40] reduce(%dv, %zero), dimensions={0,1}, to_apply=%most
  %tq = f32[8,16,40] tanh(%dq)
  %tk = f32[8,16,40] tanh(%dk)
  %tkt = f32[16,8,40] transpose(%tk), dimensions={1,0,2}
  %ak = f32[] reduce(%tk, %zero), dimensions={0,1,2}, to_apply=%most
  %s = f32[8,16,16] dot(%tq, %tkt), lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
  %e = f32[8,16,16] exponential(%s)
  %sv = f32[8,16,40] dot(%e, %dv), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
  %avs = f32[8,16,40] broadcast(%av), dimensions={2}
  %o = f32[8,16,40] multiply(%sv, %avs)
  ROOT %out = (f32[8,16,40], f32[8,16,16], f32[], f32[], f32[40]) tuple(%o, %s, %aq, %ak, %av)
}
"""


# A loop whose body contains an instruction without a kernel.
HOSTED = """HloModule hosted

%more (s: (s32[], u64[2])) -> pred[] {
  %s = (s32[], u64[2]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %k = u64[2] get-tuple-element(%s), index=1
  %five = s32[] constant(5)
  %lt = pred[] compare(%i, %five), direction=LT
  ROOT %r = pred[] and(%lt, %lt)
}

%draw (s: (s32[], u64[2])) -> (s32[], u64[2]) {
  %s = (s32[], u64[2]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %k = u64[2] get-tuple-element(%s), index=1
  %b = (u64[2], u32[4]) rng-bit-generator(%k), algorithm=rng_three_fry
  %n = u64[2] get-tuple-element(%b), index=0
  %v = u32[4] get-tuple-element(%b), index=1
  %first = u32[1] slice(%v), slice={[0:1]}
  %f = u32[] reshape(%first)
  %one = u32[] constant(1)
  %bit = u32[] and(%f, %one)
  %d = s32[] convert(%bit)
  %two = s32[] constant(1)
  %dd = s32[] add(%d, %two)
  %j = s32[] add(%i, %dd)
  ROOT %out = (s32[], u64[2]) tuple(%j, %n)
}

ENTRY %main (i: s32[], k: u64[2]) -> (s32[], u64[2]) {
  %i = s32[] parameter(0)
  %k = u64[2] parameter(1)
  %s = (s32[], u64[2]) tuple(%i, %k)
  ROOT %w = (s32[], u64[2]) while(%s), condition=%more, body=%draw
}
"""


def many(count):
    """Returns a module with more scalars than a kernel has pointers, and a chain of more instructions than a kernel has."""
    given = ", ".join(f"p{i}: f32[]" for i in range(count))
    lines = [f"  %p{i} = f32[] parameter({i})" for i in range(count)] + ["  %sum0 = f32[] sqrt(%p0)"]
    lines += [f"  %sum{i} = f32[] add(%sum{i - 1}, %p{i})" for i in range(1, count)]
    lines += ["  %n0 = f32[] sine(%p0)"] + [f"  %n{i} = f32[] {('negate', 'cosine')[i % 2]}(%n{i - 1})"
                                            for i in range(1, 5 * count)]
    lines.append(f"  ROOT %out = (f32[], f32[]) tuple(%sum{count - 1}, %n{5 * count - 1})")
    return f"HloModule many\n\nENTRY %main ({given}) -> (f32[], f32[]) {{\n" + "\n".join(lines) + "\n}\n"


class Runs:
    def __init__(self, a):
        self.program, self.work, self.faults = a.bin / "hlo-fp8-run", a.work, []
        self.environment = _standin.environment(a.standin)
        self.cache = a.work / "kernels"
        self.cache.mkdir(exist_ok=True)

    def write(self, name, text):
        path = self.work / name
        path.write_text(text)
        return path

    def run(self, module, *options, fail="", name="run", driver="13000", order="1"):
        """Returns exit status, messages, and the calls."""
        log = self.work / f"{name}.log"
        log.unlink(missing_ok=True)
        environment = dict(self.environment, HLO_STANDIN_LOG=str(log), HLO_STANDIN_DRIVER=driver, HLO_STANDIN_ORDER=order,
                           **{"HLO_STANDIN_FAIL" if ":" in fail else "HLO_STANDIN_FAIL_ALL": fail})
        command = [self.program, "--backend=cuda", f"--kernel-cache={self.cache}", *options, module]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        calls = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return done.returncode, done.stdout + done.stderr, calls

    def check(self, good, what):
        if not good:
            self.faults.append(what)


def names_of(calls):
    return [call.split(" ")[0] for call in calls]


def check_execution(runs, module):
    for graph, allowed in ((1, REPLAY), (0, LAUNCH)):
        status, said, calls = runs.run(module, "--optimize", f"--graph={graph}", "--time=3")
        runs.check(status == 0, f"--graph={graph}: status {status}: {said}")
        names = names_of(calls)
        copied = [i for i, name in enumerate(names) if name == "cuMemcpyDtoHAsync"]
        begun = [i for i, name in enumerate(names) if name == "cuMemcpyHtoDAsync" and i > names.index("cuModuleLoadData")]
        inside = names[begun[0]:copied[-1] + 1] if begun and copied else []
        runs.check(inside, f"--graph={graph}: no run in {names}")
        runs.check(set(inside) <= allowed, f"--graph={graph}: a run calls {set(inside) - allowed}")
        counts = collections.Counter(names)
        for made, ended in MADE.items():
            runs.check(counts[made] == counts[ended], f"{counts[made]} {made}, {counts[ended]} {ended}")
        runs.check(not any("leaked" in call for call in calls), "something is leaked")
        runs.check((counts["cuGraphLaunch"] > 0) == bool(graph), f"--graph={graph}: {counts['cuGraphLaunch']} launches")


def check_cache(runs, module):
    shared, runs.cache = runs.cache, runs.work / "odd-kernels"
    runs.cache.mkdir(exist_ok=True)
    for old in runs.cache.iterdir():
        old.unlink()
    status, said, calls = runs.run(module)
    kernels = list(runs.cache.iterdir())
    runs.check(status == 0 and kernels and "nvrtcCompileProgram" in names_of(calls), f"nothing is kept: {said}")
    for odd in "kept", "empty", "fifo":
        for kernel in kernels:
            if odd != "kept":
                kernel.unlink()
                os.mkfifo(kernel) if odd == "fifo" else kernel.touch()
        status, said, calls = runs.run(module)
        runs.check(status == 0, f"{odd} kernels: status {status}: {said}")
        runs.check(("nvrtcCompileProgram" in names_of(calls)) == (odd != "kept"), f"{odd} kernels: {names_of(calls)}")
        runs.check(all(kernel.is_file() and kernel.stat().st_size for kernel in kernels), f"{odd} kernels are not replaced")
    runs.cache = shared


# Ways to execute loops and conditionals: in the graph; between graphs, because the driver has no conditional nodes or
# because these fail; without graphs.
CONTROLLED = (dict(), dict(driver="12030"), dict(fail="cuGraphConditionalHandleCreate"), dict(fail="cuGraphAddNode"),
              dict(fail="cuModuleLoadData:3=218"), ["--graph=0"], ["--fallback=cpu"])


def check_control(runs, module, seeds, branches=True):
    """Checks loops and conditionals. With `branches`, the device decides: there is one launch besides those of trials,
    and only outputs and the result of a trial are copied out."""
    for seed in range(seeds):
        outputs = []
        for case in CONTROLLED:
            path = runs.work / "control.npz"
            options, how = (case, {}) if isinstance(case, list) else ([], case)
            status, said, calls = runs.run(module, f"--seed={seed}", *options, f"--compare={module}", f"--outputs={path}", **how)
            runs.check(status == 0 and re.search("compare: .* agree", said), f"seed {seed} {case}: status {status}: {said}")
            runs.check(not any("leaked" in call or "captures" in call or "early kernel" in call for call in calls), f"seed {seed} {case}: {calls}")
            outputs.append(path.read_bytes() if path.exists() else None)
            counts = collections.Counter(names_of(calls))
            copied = counts["cuMemcpyDtoHAsync"] - int(re.search(r"(\d+) outputs", said)[1])
            alone = not case or case == ["--fallback=cpu"]
            if branches:
                runs.check((counts["cuGraphLaunch"] == 3 and copied == 1) == alone,
                           f"seed {seed} {case}: {counts['cuGraphLaunch']} launches, {copied} copies")
        runs.check(len(set(outputs)) == 1, f"seed {seed}: outputs differ")


# Orders in which the fake runs the nodes of a graph (HLO_STANDIN_ORDER), and graph features that a driver may lack:
# concurrent nodes, or programmatic dependent launch.
ORDERED = (dict(order="0"), dict(order="1"), dict(order="2"), dict(order="3"), dict(fail="cuLaunchKernelEx:1=1"), dict(driver="12020"),
           dict(fail="cuStreamUpdateCaptureDependencies"), ["--graph=0"])


def check_orders(runs, module):
    """Checks that the outputs stay the same if the nodes run in any other order that the edges of the graph allow. If an edge
    is missing, they differ."""
    outputs = []
    for case in ORDERED:
        path = runs.work / "ordered.npz"
        path.unlink(missing_ok=True)
        options, how = (case, {}) if isinstance(case, list) else ([], case)
        status, said, calls = runs.run(module, "--autotune=3", *options, f"--outputs={path}", **how)
        runs.check(status == 0, f"{case}: status {status}: {said}")
        runs.check(not any("leaked" in call or "early kernel" in call for call in calls), f"{case}: {calls}")
        outputs.append(path.read_bytes() if path.exists() else None)
        found = [list(map(int, re.findall(r"\d+", call))) for call in calls if call.startswith("cuGraphInstantiate")]
        if not found:
            runs.check(case == ["--graph=0"], f"{case}: no graph")
            continue
        nodes, deep, _, early, _ = found[-1]
        runs.check((deep < nodes) == ("Update" not in how.get("fail", "")), f"{case}: {nodes} nodes, {deep} deep")
        runs.check((early > 0) == ("order" in how), f"{case}: {early} early kernels")
    runs.check(len(set(outputs)) == 1, f"outputs differ: {[o == outputs[-1] for o in outputs]}")


def check_hosted(runs, module):
    status, said, calls = runs.run(module, "--fallback=cpu", f"--compare={module}")
    runs.check(status == 0 and "2 outputs agree" in said, f"hosted: status {status}: {said}")
    runs.check(names_of(calls).count("cuGraphLaunch") > 2, "hosted: the loop is in a graph")


def check_failures(runs, module, few):
    _, _, calls = runs.run(module, "--optimize", "--autotune=2")
    cases = []
    for name, count in collections.Counter(names_of(calls)).items():
        if not re.match("(cu|nvrtc)[A-Z]|cublasLt", name) or ENDINGS.search(name):
            continue
        cases += [(name, at) for at in ([count] if few else sorted({1, (count + 1) // 2, count}))]
    # The calls of the trial of graph features, from allocation to the end. Features that fail in it are not used.
    begun = names_of(calls).index("cuStreamBeginCapture")
    tried = range(max(i for i in range(begun) if calls[i] == "cuMemAlloc 4"),
                  names_of(calls).index("cuMemFree", names_of(calls).index("cuGraphExecDestroy")))
    runs.check(len(cases) > 20, f"only {len(cases)} calls to fail")

    def fail(case):
        name, at = case
        status, said, calls = runs.run(module, "--optimize", "--autotune=2", fail=f"{name}:{at}=7", name=f"{name}.{at}")
        return name, at, status, said, calls
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name, at, status, said, failing in pool.map(fail, cases):
            runs.check(not any("leaked" in call or "captures" in call for call in failing), f"{name} {at}: a leak")
            if name == "cublasLtMatmul" and "fails and is not used" in said:
                runs.check(status == 0, f"{name} {at}: another algorithm was not taken: {said}")
                continue
            if [i for i, call in enumerate(names_of(calls)) if call == name][at - 1] in tried:
                runs.check(status == 0 and "error" not in said, f"{name} {at}: status {status}: {said}")
                continue
            runs.check(status == 1, f"{name} {at}: status {status}: {said}")
            errors = said.replace("hlo-fp8-run: error: out of memory\n", "").count("error:")
            runs.check(errors <= 1 and "error:" in said, f"{name} {at}: {said}")
    return len(cases)


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--bin", type=pathlib.Path, required=True)
    args.add_argument("--work", type=pathlib.Path, required=True)
    args.add_argument("--standin", required=True)
    args.add_argument("--few", action="store_true")
    a = args.parse_args()
    runs = Runs(a)
    fp8 = runs.write("fp8.hlo", FP8)
    check_execution(runs, fp8)
    check_cache(runs, fp8)
    check_control(runs, runs.write("control.hlo", CONTROL), 1 if a.few else 4)
    check_control(runs, runs.write("placed.hlo", PLACED), 1)
    check_control(runs, runs.write("many.hlo", many(150)), 1, branches=False)
    check_orders(runs, runs.write("concurrent.hlo", BESIDE))
    check_hosted(runs, runs.write("hosted.hlo", HOSTED))
    if not a.few:
        check_control(runs, runs.write("nested.hlo", NESTED), 1)
    failures = check_failures(runs, fp8, a.few)
    for fault in runs.faults:
        print("FAILED", fault)
    print(f"{failures} failing calls, {len(runs.faults)} faults")
    return 1 if runs.faults else 0


sys.exit(main())
