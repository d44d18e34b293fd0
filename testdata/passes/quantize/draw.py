"""Rewrites random modules of wide dots with --quantize, and compares them with the inserted quantization.

usage: draw.py hlo-fp8-opt hlo-fp8-run FOLDER COUNT

A fusion of epilogues and factors into the calls omits roundings. Without the passes that fuse, all results must be equal,
bit for bit; with the default passes, they must be within the derived bound. The bound also applies to all results of mx,
because a call adds up the products of each block separately. Every recipe is combined with every form of output. A
second rewrite must change nothing, and --wide=* must not change the module. Prints the number of dots, and of those
that were quantized, for each recipe.
"""
import itertools
import os
import random
import subprocess
import sys

PASSES = ("--passes=inline,canonicalize,quantize-wide,quantize-narrow,sink-dequantize,collapse-dots,algebra,cse,move-dequantize,fp8-matmul,fp8-rows,"
          "fp8-geometry,clean-up")
TYPES = ("bf16", "bf16", "f32", "f16")
RECIPES = (("current",), ("rows",), ("rows", "--cuda=12.9"), ("mx", "--target=sm_100"))
FORMS = ("cublas", "ffi", "qdq", "dq")


class Module:
    def __init__(self, seed):
        self.draw, self.lines, self.count = random.Random(seed), [], 0
        self.values, self.results = [], []

    def add(self, kind, dims, text):
        name = f"v{self.count}"
        self.count += 1
        self.lines.append(f"  {name} = {kind}[{','.join(map(str, dims))}] {text}")
        self.values.append((name, kind, dims))
        return self.values[-1]

    def moved(self, value):
        """Moves, converts or scales a value."""
        name, kind, dims = value
        step = self.draw.randrange(7)
        if step == 0:
            order = list(range(len(dims)))
            self.draw.shuffle(order)
            return self.add(kind, [dims[d] for d in order], f"transpose({name}), dimensions={{{','.join(map(str, order))}}}")
        if step == 1:
            return self.add(kind, [dims[0] * dims[1], *dims[2:]] if len(dims) > 2 else dims[::-1], f"reshape({name})")
        if step == 2:
            return self.add(kind, dims, f"reverse({name}), dimensions={{{self.draw.randrange(len(dims))}}}")
        if step == 3:
            return self.add(self.draw.choice(TYPES), dims, f"convert({name})")
        if step == 4:
            return self.add(kind, dims, f"tanh({name})")
        if step == 5:
            return self.add(kind, [3, *dims], f"broadcast({name}), dimensions={{{','.join(str(d + 1) for d in range(len(dims)))}}}") if len(dims) < 3 else value
        return self.add(kind, dims, f"copy({name})")

    def dot(self):
        """Multiplies two values of equal type along a dimension that both have, with a batch if they have the same one."""
        left, right = self.draw.choice(self.values), self.draw.choice(self.values)
        a, b = list(left[2]), list(right[2])
        pairs = [(i, j) for i in range(len(a)) for j in range(len(b)) if a[i] == b[j]]
        if left[1] != right[1] or not pairs or len(a) < 2 or len(b) < 2:
            return False
        i, j = self.draw.choice(pairs)
        batch = [(0, 0)] if len(a) == len(b) == 3 and a[0] == b[0] and i and j and self.draw.random() < 0.7 else []
        if not batch and len(a) + len(b) > 5:
            return False
        dims = [a[0]] * len(batch) + [d for n, d in enumerate(a) if n != i and not (batch and n == 0)] \
            + [d for n, d in enumerate(b) if n != j and not (batch and n == 0)]
        lists = f"lhs_contracting_dims={{{i}}}, rhs_contracting_dims={{{j}}}"
        if batch:
            lists = "lhs_batch_dims={0}, rhs_batch_dims={0}, " + lists
        self.results.append(self.add(self.draw.choice((left[1], "f32")), dims, f"dot({left[0]}, {right[0]}), {lists}"))
        return True

    def text(self):
        sizes = (16, 24, 32, 64)
        for number in range(4):
            dims = self.draw.choice(([], [], [self.draw.choice((4, 16))])) + [self.draw.choice(sizes), self.draw.choice(sizes)]
            self.add(self.draw.choice(TYPES[:3]), dims, f"parameter({number})")
        for _ in range(8):
            self.moved(self.draw.choice(self.values))
        for _ in range(60):
            if len(self.results) < 4 and self.dot() and self.draw.random() < 0.5:
                self.moved(self.values[-1])
        shapes = ", ".join(f"{kind}[{','.join(map(str, dims))}]" for _, kind, dims in self.results)
        self.lines.append(f"  ROOT t = ({shapes}) tuple({', '.join(name for name, _, _ in self.results)})")
        return "HloModule m\n\nENTRY e {\n" + "\n".join(self.lines) + "\n}\n"


def main():
    opt, run, folder, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    os.makedirs(folder, exist_ok=True)
    module, once, twice, wide, same = (os.path.join(folder, name + ".hlo") for name in ("in", "once", "twice", "wide", "same"))
    dots, quantized = dict.fromkeys(RECIPES, 0), dict.fromkeys(RECIPES, 0)

    def program(*words):
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout + done.stderr

    for seed, (form, recipe) in zip(range(count), itertools.cycle(itertools.product(FORMS, RECIPES))):
        options = ["--quantize=" + recipe[0], "--min-gain=0.001", *recipe[1:]]
        made = Module(seed)
        with open(module, "w") as file:
            file.write(made.text())
        told = program(opt, module, *options, "--verify-each", "--remarks=all", "-o", once)
        dots[recipe] += len(made.results)
        quantized[recipe] += told.count(f"quantized here ({recipe[0]})")
        program(opt, once, *options, "-o", twice)
        assert open(once).read() == open(twice).read(), seed
        program(opt, module, *options, "--wide=*", "-o", wide)
        program(opt, module, "--passes=", "-o", same)
        assert open(wide).read() == open(same).read(), seed
        options += ["--optimize", "--emit=" + form, "--compare=before", "--all-outputs"]
        told = program(run, module, *options, PASSES)
        for line in told.splitlines():
            row = line.split()
            if len(row) == 9 and row[0].isdigit() and recipe[0] != "mx":
                assert row[2] == "agrees" and row[4] == "0", (seed, line)
        program(run, module, *options)
    for recipe in RECIPES:
        print(f"{' '.join(recipe)}: {quantized[recipe]} of {dots[recipe]} dots quantized")


if __name__ == "__main__":
    main()
# SPDX-License-Identifier: Apache-2.0
