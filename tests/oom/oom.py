#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails every allocation of every command. The command must end with status 1 and "out of memory", without a crash, a
leak or a partially written file, or succeed.

usage: oom.py --bin DIR --failing failing.so --models DIR --work DIR [--long] [WORD]

Each command runs once for each of its allocations, or for a sample of them (all with --long): with only that
allocation failing, and with all later ones failing as well. With WORD, only commands that contain WORD run.
"""
import argparse
import pathlib
import re
import shutil
import signal
import subprocess
import sys

RUN = pathlib.Path(__file__).parents[2] / "testdata" / "run"
FEEDS, APPLIED = RUN / "feeds.hlo", RUN / "applied-loops.hlo"
FORMATS = pathlib.Path(__file__).parents[2] / "report" / "format.def"
MAX = 60  # maximum number of runs per command and kind of failure, without --long
SAYS = "out of memory"
RULES = """phase algebra measure expression_size
let twice(%x) = negate(negate(%x))
rule quiet %x = twice(%y) => %y
  example
    ENTRY e { ROOT x = f32[] parameter(0) }
  end
"""
KERNEL = "ENTRY e {\n  x = f32[8] parameter(0)\n  ROOT n = f32[8] negate(x)\n}\n"
WIDE = """ENTRY e {
  x = bf16[16,16] parameter(0)
  w = bf16[16,16] parameter(1)
  a = bf16[16,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = bf16[16,16] dot(a, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT c = bf16[16,16] dot(b, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
CALLS = r"""ENTRY e {
  x = f32[8,4] parameter(0)
  w = f32[4,6] parameter(1)
  m = (f32[8,6], u8[64]) custom-call(x, w), custom_call_target="__onednn$matmul", backend_config={"onednn_matmul_config":{"fused_ops":["GELU_ERF","LINEAR"],"alpha_typecast":1040187392}}
  g = f32[8,6] get-tuple-element(m), index=0
  s = f32[8,6] custom-call(g), custom_call_target="__onednn$softmax", backend_config={"onednn_softmax_config":{"softmax_axis":1}}
  c = (f32[8,6], f32[], u8[0]) custom-call(x, w), dim_labels=bf_io->bf, custom_call_target="__cudnn$convForwardGraph", backend_config={"cudnn_conv_backend_config":{"conv_result_scale":1,"serialized_graph":"1:[f32]conv();2:[f32]relu(1);3:[f32]amax(2);"}}
  d = (f32[4,6], u8[0]) custom-call(x, s), dim_labels=bf_io->bf, custom_call_target="__cudnn$convBackwardFilter"
  ROOT t = ((f32[8,6], f32[], u8[0]), (f32[4,6], u8[0])) tuple(c, d)
}
"""
WRONG = "ENTRY e {\n  a = f32[2] parameter(0)\n  ROOT b = f32[3] negate(c)\n}\n"


def commands(work, model, other):
    """Returns (name, program, arguments, output files, expected status) of each command."""
    run, opt = "hlo-fp8-run", "hlo-fp8-opt"
    out = work / "out"
    yield "help", opt, ["--help"], [], 0
    yield "explain", opt, ["--explain=all"], [], 0
    yield "list-passes", opt, ["--list-passes"], [], 0
    yield "bad-option", opt, ["--pases=", model], [], 2
    yield "bad-pass", opt, ["--passes=alegbra", model], [], 2
    yield "print", opt, ["--passes=", model, "-o", out], [out], 0
    yield "short", opt, ["--passes=", "--print=short", "--stats", model, "-o", out], [out], 0
    yield "rewrite", opt, [model, "-o", out], [out], 0
    yield "stdout", opt, ["--verify-each", "--time-passes", "--print-after=all", model], [], 0
    yield "wrong", opt, [work / "wrong.hlo", "-o", out], [], 1
    yield "pb", opt, ["--format=pb", model, "-o", out], [out], 0
    yield "pbtxt", opt, ["--format=pbtxt", model, "-o", out], [out], 0
    yield "from-pb", opt, ["--passes=", work / "model.pb", "-o", out], [out], 0
    yield "from-gz", opt, ["--passes=", work / "model.hlo.gz", "-o", out], [out], 0
    for form in re.findall(r"^HLO_REMARKS_FORMAT\(\w+, (\w+)", FORMATS.read_text(), re.M):
        yield f"remarks-{form}", opt, ["--remarks=all", f"--remarks-format={form}", f"--remarks-file={out}", "--lint", other, "-o", "/dev/null"], [out], 0
    yield "report", opt, [f"--report={out}", model, "-o", "/dev/null"], [out], 0
    yield "gates", opt, ["--expect-fp8=2", "--fail-on-missed", f"--baseline={work}/baseline.json", model, "-o", out], [out], 3
    for name in "number", "string":
        yield f"baseline-{name}", opt, [f"--baseline={work}/{name}.json", model, "-o", "/dev/null"], [], 1
    yield "min-gain", opt, ["--min-gain=1000", "--merge-dots", "--allow-bias-rounding", "--cuda=12.9", model, "-o", out], [out], 0
    for form in ("ffi", "qdq", "dq"):
        yield f"emit-{form}", opt, [f"--emit={form}", model, "-o", out], [out], 0
    yield "ahead", opt, ["--quantize=current", "--min-gain=0.001", "--ahead=*", f"--ahead-output={work}/ahead.hlo", model, "-o", out], [out], 0
    yield "amaxes", opt, ["--quantize=static", f"--amaxes={work}/amaxes.json", model, "-o", out], [out], 0
    yield "wrong-amaxes", opt, ["--quantize=static", f"--amaxes={work}/baseline.json", model, "-o", out], [], 1
    yield "emit-read", opt, [work / "typed.hlo", "-o", out], [out], 0
    yield "rules", opt, [f"--rules={work}/quiet.rules", model, "-o", out], [out], 0
    yield "wrong-rules", opt, [f"--rules={work}/wrong.rules", model, "-o", out], [], 1
    yield "diff", opt, ["--diff", model, other, "-o", out], [out], 3
    yield "folder", opt, [work / "dumps", "-o", out], [out], 0
    yield "folder-json", opt, ["--remarks-format=json", work / "dumps", "-o", out], [out], 0
    yield "folder-module", opt, ["--module=m", "--expect-fp8=all", f"--baseline={work}/baseline.json", work / "dumps", "-o", out], [out], 0
    yield "sarif-names", opt, ["--remarks=all", "--remarks-format=sarif", "--remarks-file=-", work / "a b \udcff.hlo", "-o", out], [out], 0
    yield "several", opt, ["--no-verify", "--print=canonical", "--stats", "--framework-files=*.py,x", model, other, "-o", out], [out], 0
    yield "wrong-reason", opt, ["--explain=not-quantize"], [], 2
    yield "wrong-names", run, [f"--inputs={work}/out.npz", model], [], 1
    yield "run", run, [model, f"--outputs={out}"], [out], 0
    yield "snapshot", run, ["--all-outputs", "--compare=snapshot", f"--outputs={out}", work / "snapshot.pb.gz"], [out], 0
    yield "sized-snapshot", run, [f"--outputs={out}", work / "sized.pb"], [out], 0
    yield "inputs", run, [f"--inputs={work}/in.npz", model, f"--outputs={out}"], [out], 0
    yield "record", run, [f"--record-amaxes={out}", f"--inputs={work}/in.npz,{work}/in.npz", model], [out], 0
    yield "look", run, [f"--values={out}", "--dump-values=*", "--check-nan", f"--trace={work}/t.json", model], [out], 0
    yield "compare", run, ["--optimize", "--compare=before", model], [], 0
    yield "compare-npz", run, [f"--compare={work}/out.npz", model], [], 0
    yield "compare-optimized-npz", run, ["--optimize", f"--compare={work}/out.npz", model], [], 0
    yield "calls", run, [work / "calls.hlo"], [], 0
    yield "feeds", run, ["--compare=before", "--optimize", f"--outputs={out}", FEEDS], [out], 0
    yield "compare-feeds", run, [f"--compare={work}/feeds.npz", FEEDS], [], 0
    yield "applied-loops", run, [APPLIED], [], 0
    yield "compare-wrong", run, [f"--compare={work}/doubled.hlo", "--all-outputs", model], [], 3
    yield "budget", run, ["--quantize=current", "--min-gain=0.001", "--max-error=0.01", f"--wide=@{work}/names.txt", f"--wide-file={out}",
                          f"--remarks-file={work}/t.json", work / "wide.hlo"], [out], 0
    yield "typed-call", "test_runtime_ffi", ["once"], [], 0
    yield "plan-kernel", run, ["--plan", "--backend=cuda", "--target=sm_90", work / "kernel.hlo"], [], 0
    yield "plan", run, ["--plan", "--backend=cuda", "--target=sm_90", "--optimize", model], [], 0


def prepare(args, model):
    work = args.work
    shutil.rmtree(work, ignore_errors=True)
    (work / "dumps").mkdir(parents=True)
    text = model.read_bytes()
    for stage in "before_optimizations", "sm_9.0_gpu_after_optimizations":
        (work / "dumps" / f"module_0000.m.{stage}.txt").write_bytes(text)
    (work / "quiet.rules").write_text(RULES)
    (work / "wrong.rules").write_text(RULES.replace("=> %y", "=> %z"))
    (work / "wrong.hlo").write_text(WRONG)
    (work / "kernel.hlo").write_text(KERNEL)
    (work / "wide.hlo").write_text(WIDE)
    (work / "calls.hlo").write_text(CALLS)
    (work / "names.txt").write_text("%c\n")

    def do(program, *rest):
        subprocess.run([args.bin / program, *rest], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    do("hlo-fp8-opt", "--emit=ffi", model, "-o", work / "typed.hlo")
    do("hlo-fp8-opt", "--passes=", "--format=pb", model, "-o", work / "model.pb")
    subprocess.run(["gzip", "-kc", model], check=True, stdout=(work / "model.hlo.gz").open("wb"))
    do("hlo-fp8-opt", "--remarks=all", "--remarks-format=json", f"--remarks-file={work}/baseline.json", model, "-o", "/dev/null")
    # Tokens that end where jansson's buffer of 16 bytes, and its doubled buffer, is full.
    (work / "number.json").write_text("{" + ",".join(f'"{n}":{"1" * n}' for n in (15, 31, 63)) + "}")
    (work / "string.json").write_text("[" + ",".join('"' + "a" * (n - 1) + '"' for n in (15, 31, 63)) + "]")
    (work / "a b \udcff.hlo").write_bytes(text)
    do("hlo-fp8-run", model, f"--outputs={work}/out.npz")
    do("hlo-fp8-run", FEEDS, f"--outputs={work}/feeds.npz")
    do("hlo-fp8-run", model, f"--record-amaxes={work}/amaxes.json")
    do("hlo-fp8-opt", model, "-o", work / "doubled.hlo")
    rewritten = (work / "doubled.hlo").read_text()
    doubled = re.sub(r'"alpha_real":([\d.]+)', lambda found: f'"alpha_real":{2 * float(found[1])}', rewritten, count=1)
    (work / "doubled.hlo").write_text(doubled)
    run = args.models.parent / "run"
    do("hlo-fp8-opt", "--passes=", "--format=pb", run / "snapshot.hlo", "-o", work / "unwrapped.pb")
    do("hlo-fp8-run", "--dump-values=a,t,b,c", f"--values={work}/arguments.npz", f"--outputs={work}/result.npz", run / "snapshot.hlo")
    for form, last in ("snapshot", [work / "result.npz"]), ("sized", []):
        subprocess.run([sys.executable, run / "snapshot.py", form, work / "unwrapped.pb", work / f"{form}.pb", work / "arguments.npz", *last], check=True)
    subprocess.run(["gzip", work / "snapshot.pb"], check=True)
    # Inputs from another run, with the number, types and dimensions of the module's parameters.
    identity = work / "identity.hlo"
    identity.write_text(entry_of_parameters(model.read_text()))
    do("hlo-fp8-run", identity, f"--outputs={work}/in.npz")


def entry_of_parameters(text):
    lines = [line.strip() for line in text[text.index("ENTRY"):].splitlines() if " parameter(" in line]
    lines.sort(key=lambda line: int(line.split(" parameter(")[1].split(")")[0]))
    names = [line.split(" = ")[0] for line in lines]
    shapes = [line.split(" = ")[1].split(" parameter(")[0] for line in lines]
    lines = [f"  {name} = {shape} parameter({i})" for i, (name, shape) in enumerate(zip(names, shapes))]
    return "ENTRY e {\n" + "\n".join(lines) + f"\n  ROOT t = ({', '.join(shapes)}) tuple({', '.join(names)})\n}}\n"


class Command:
    def __init__(self, args, name, program, arguments, outputs, status):
        self.failing, self.name, self.outputs, self.status = args.failing, name, outputs, status
        self.line = [args.bin / program, *arguments]
        self.tell = args.work / "tell"
        self.tidy = "report" not in name  # Graphviz, which draws the graphs, may be missing

    def run(self, at=0, on=0):
        for path in [*self.outputs, self.tell]:
            path.unlink(missing_ok=True)
        environment = {"LD_PRELOAD": str(self.failing), "FAIL_AT": str(at), "FAIL_ON": str(on), "FAIL_TELL": str(self.tell),
                       "PATH": "/nowhere", "ASAN_OPTIONS": "detect_leaks=0"}
        ran = subprocess.run(self.line, env=environment, capture_output=True, timeout=60)
        count, left = map(int, self.tell.read_text().split()) if self.tell.exists() else (0, 0)
        return ran, count, left, {path: path.read_bytes() for path in self.outputs if path.exists()}

    def faults(self, most):
        whole, count, left, files = self.run()
        assert whole.returncode == self.status, (self.name, whole.returncode, whole.stderr.decode(errors="replace"))
        assert count and len(files) == len(self.outputs), self.name
        step = 1 if most is None else max(1, -(-count // most))
        for on in 0, 1:
            for at in range(1, count + 1, step):
                ran, _, lost, made = self.run(at, on)
                said = ran.stderr.decode(errors="replace")
                if ran.returncode < 0:
                    yield at, on, f"ended by {signal.Signals(-ran.returncode).name}"
                elif "(null)" in said:
                    yield at, on, f"says {said.strip()[-200:]!r}"
                elif ran.returncode == 1 and SAYS in said:
                    if made:
                        yield at, on, f"wrote {sorted(path.name for path in made)}"
                    if lost > left + 1:  # the buffer of standard error may also be allocated
                        yield at, on, f"{lost - left} allocations were not freed"
                elif ran.returncode != self.status or (self.tidy and (made, ran.stdout) != (files, whole.stdout)):
                    yield at, on, f"status {ran.returncode}, {said.strip()[-200:]!r}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--failing", type=pathlib.Path, required=True)
    parser.add_argument("--models", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("word", nargs="?", default="")
    args = parser.parse_args()
    model, other = args.models / "seed_relu_damax.hlo", args.models / "slice_between.hlo"
    prepare(args, model)
    failed = 0
    for row in commands(args.work, model, other):
        if args.word not in row[0]:
            continue
        command = Command(args, *row)
        faults = list(command.faults(None if args.long else MAX))
        failed += bool(faults)
        for at, on, fault in faults[:5]:
            print(f"{command.name}: allocation {at}{' and all later ones' if on else ''}: {fault}")
        if len(faults) > 5:
            print(f"{command.name}: {len(faults) - 5} more")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
