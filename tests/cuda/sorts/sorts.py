#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that sorts and scatters on the cuda and cpu backends have the same bytes, also with equal, out-of-range and
NaN values.

usage: sorts.py --bin DIR --work DIR --standin FILE [--first SEED] [--count N]

A seed determines a module of several random sorts and scatters. Sizes are near powers of two and tile sizes,
comparators read some or none of the operands, combiners depend on the order, and windows are equal, disjoint or overlap
partially. CUDA's libraries are the file of --standin (tests/cuda/README.md).
"""
import argparse
import pathlib
import subprocess
import sys

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import _standin  # noqa: E402

# Inputs have numpy types; elements of types that numpy lacks are given as bits.
BITS = {"f8e4m3fn": "u8", "f8e5m2": "u8", "bf16": "u16", "f16": "u16", "f32": "u32", "f64": "u64"}
NUMPY = {"pred": np.bool_, "s8": np.int8, "s16": np.int16, "s32": np.int32, "s64": np.int64, "u8": np.uint8,
         "u16": np.uint16, "u32": np.uint32, "u64": np.uint64}
TYPES = ["pred", "s8", "s32", "s64", "u8", "u32", "u64", *BITS]
SORTED = [0, 1, 2, 3, 4, 5, 8, 9, 16, 17, 31, 32, 33, 64, 100, 255, 256, 257, 511, 513, 1024, 2047, 2048, 2049, 4095,
          4096, 4100, 8193]
COMBINERS = {
    "add": "ROOT r = T[] add(a, b)", "last": "z = T[] constant(0) ROOT r = T[] maximum(b, z)",
    "most": "ROOT r = T[] maximum(a, b)", "least": "ROOT r = T[] minimum(b, a)",
    "odd": "c = T[] add(b, b) d = T[] maximum(a, c) ROOT r = T[] add(d, b)"}
WHOLE = {name: f"ROOT r = T[] {name}(a, b)" for name in ("and", "or", "xor")}  # element types without floats
WORKS = 10  # number of sorts and scatters in a module


def braces(numbers):
    return "{" + ",".join(map(str, numbers)) + "}"


class Draw:
    """Draws random values."""

    def __init__(self, numbers):
        self.random, self.below = numbers.random, lambda *ends: int(numbers.integers(*ends))
        self.shuffled = lambda values: [values[i] for i in numbers.permutation(len(values))]

    def choice(self, values):
        return values[self.below(len(values))]

    def sample(self, values, count):
        return self.shuffled(values)[:count]


class Module:
    def __init__(self, seed):
        self.numbers = np.random.default_rng(seed)
        self.draw = Draw(self.numbers)
        self.regions, self.lines, self.inputs, self.results = [], [], [], []
        for work in range(WORKS):
            self.sort(work) if self.draw.random() < 0.5 else self.scatter(work)
        root = f"  ROOT out = tuple({', '.join(self.results)})\n"
        self.text = "HloModule sorts\n\n" + "\n".join(self.regions) + "\nENTRY e {\n" + "".join(self.lines) + root + "}\n"

    def line(self, text):
        self.lines.append(f"  v{len(self.lines)} = {text}\n")
        return f"v{len(self.lines) - 1}"

    def array(self, kind, dims, values):
        """Returns an input with these numbers, or with these bits of floats."""
        of = BITS.get(kind, kind)
        self.inputs.append(np.array(values).astype(NUMPY[of]).reshape(dims))
        shape = f"[{','.join(map(str, dims))}]"
        name = self.line(f"{of}{shape} parameter({len(self.inputs) - 1})")
        return name if of == kind else self.line(f"{kind}{shape} bitcast-convert({name})")

    def codes(self, kind, count):
        """Returns arbitrary bits, or bits of a few values."""
        width = np.dtype(NUMPY[BITS.get(kind, kind)]).itemsize * 8
        every = self.numbers.integers(0, 2 ** width, count, dtype=np.uint64, endpoint=False) if width < 64 else \
            self.numbers.integers(0, 2 ** 64 - 1, count, dtype=np.uint64)
        if kind == "pred":
            return every & 1
        if self.draw.random() < 0.6 and count:
            every = self.numbers.choice(every[:self.draw.choice([1, 3, 40])], count)
        return every

    def small(self, kind, count):
        """Returns integers whose sums are representable."""
        values = self.numbers.integers(-4 if kind[0] == "s" else 0, 2 if kind == "pred" else 8, count)
        return values if kind not in BITS else self.bits_of(kind, values)

    @staticmethod
    def bits_of(kind, values):
        values = values.astype({"f16": np.float16, "f64": np.float64}.get(kind, np.float32))
        if kind in ("f16", "f32", "f64"):
            return values.view(NUMPY[BITS[kind]])
        if kind == "bf16":
            return values.view(np.uint32) >> 16
        half = values.astype(np.float16).view(np.uint16)
        return half >> 8 if kind == "f8e5m2" else np.where(half == 0, 0, (half >> 7) - 64)

    def keep(self, name, kind, dims):
        """Makes the value `name` a result, as bits."""
        shape = f"[{','.join(map(str, dims))}]"
        self.results.append(self.line(f"{BITS[kind]}{shape} bitcast-convert({name})") if kind in BITS else name)

    def sort(self, work):
        draw = self.draw
        size = draw.choice(SORTED)
        dims = [draw.choice([1, 2, 3, 7, 40]) for _ in range(draw.below(3))]
        if size * np.prod(dims) > 20000:
            dims = [1 for _ in dims]
        dim = draw.below(len(dims) + 1)
        dims.insert(dim, size)
        kinds = [draw.choice(TYPES) for _ in range(draw.choice([1, 1, 2, 2, 3, 4]))]
        order = draw.sample(range(len(dims)), len(dims))
        shapes = [f"{kind}[{','.join(map(str, dims))}]{braces(order)}" for kind in kinds]
        self.comparator(f"less{work}", kinds)
        names = [self.array(kind, dims, self.codes(kind, int(np.prod(dims)))) for kind in kinds]
        names = [self.line(f"{shape} copy({name})") for shape, name in zip(shapes, names)]
        result = shapes[0] if len(shapes) == 1 else f"({', '.join(shapes)})"
        name = self.line(f"{result} sort({', '.join(names)}), dimensions={{{dim}}}, "
                         f"is_stable={draw.choice(['true', 'false'])}, to_apply=less{work}")
        for i, (kind, shape) in enumerate(zip(kinds, shapes)):
            one = name if len(kinds) == 1 else self.line(f"{shape} get-tuple-element({name}), index={i}")
            plain = self.line(f"{kind}[{','.join(map(str, dims))}] copy({one})")
            self.keep(plain, kind, dims)

    def comparator(self, name, kinds):
        """Adds a comparator: the lexicographic order by some of the operands, in random order."""
        lines = [f"p{i} = {kinds[i // 2]}[] parameter({i})" for i in range(2 * len(kinds))]
        lines.append("z = pred[] constant(false)")
        found = "z"
        for i in self.draw.sample(range(len(kinds)), self.draw.choice([0] + [1] * 5 + [2] * 5) % (len(kinds) + 1)):
            total = ", type=TOTALORDER" if kinds[i] in BITS else ""
            way = self.draw.choice(["LT", "GT", "LE"]) if found == "z" else self.draw.choice(["LT", "GT"])
            lines.append(f"l{i} = pred[] compare(p{2 * i}, p{2 * i + 1}), direction={way}{total}")
            lines.append(f"e{i} = pred[] compare(p{2 * i}, p{2 * i + 1}), direction=EQ{total}")
            lines.append(f"a{i} = pred[] and(e{i}, {found})")
            lines.append(f"o{i} = pred[] or(l{i}, a{i})")
            found = f"o{i}"
        lines.append(f"ROOT r = pred[] or({found}, z)")
        self.regions.append(f"{name} {{ {' '.join(lines)} }}")

    def scatter(self, work):
        draw = self.draw
        kind, whole = draw.choice(TYPES), draw.choice(["s32", "s64", "u32", "u8", "s8"])
        rank = draw.below(1, 4)
        wide = [draw.choice([1, 2, 3, 8, 16, 70]) for _ in range(rank)]
        batching = [0] if rank > 1 and draw.random() < 0.3 else []
        moved = draw.sample([d for d in range(rank) if d not in batching],
                            draw.below(1, rank - len(batching) + 1))
        sizes = [draw.choice([1, 1, 1, size, size, (size + 1) // 2]) if d in moved else
                 draw.choice([size, size, 1]) for d, size in enumerate(wide)]
        sizes = [1 if d in batching else size for d, size in enumerate(sizes)]
        inserted = [d for d in range(rank) if d not in batching and sizes[d] == 1 and draw.random() < 0.6]
        window = [sizes[d] for d in range(rank) if d not in inserted + batching]
        most = max(1, 60000 // int(np.prod(window)))
        count = draw.choice([n for n in [0, 1, 2, 9, 30, 257, 2048, 2049, 4200] if n <= most])
        places = [wide[0]] * len(batching) + ([count] if draw.random() < 0.7 or count % 3 else [3, count // 3])
        if batching:
            places = [wide[0], min(count, 40)]
        vector = draw.below(len(places) + 1)
        indices = places[:vector] + [len(moved)] + places[vector:]
        updates = list(places)
        at = sorted(draw.sample(range(len(places) + len(window)), len(window)))
        for place, size in zip(at, window):
            updates.insert(place, size)
        # Indices are mostly in range, never in range, or all equal.
        low, high = draw.choice([(-1, 20), (0, 3), (0, 1), (50, 90), (-3, 90)])
        low = max(low, 0) if whole[0] == "u" else low
        i = self.array(whole, indices, self.numbers.integers(low, high, int(np.prod(indices))))
        arrays = draw.choice([1, 1, 1, 2])
        of = self.combiner(f"join{work}", kind, arrays)
        x = [self.array(kind, wide, self.small(kind, int(np.prod(wide)))) for _ in range(arrays)]
        u = [self.array(kind, updates, self.small(kind, int(np.prod(updates)))) for _ in range(arrays)]
        shape = f"{kind}[{','.join(map(str, wide))}]"
        result = shape if arrays == 1 else f"({shape}, {shape})"
        attributes = f"update_window_dims={braces(at)}, inserted_window_dims={braces(inserted)}, " + \
            f"scatter_dims_to_operand_dims={braces(moved)}, index_vector_dim={vector}, to_apply={of}"
        if batching:
            with_ = 0 if vector else 1
            attributes += f", input_batching_dims={{0}}, scatter_indices_batching_dims={{{with_}}}"
        name = self.line(f"{result} scatter({', '.join(x + [i] + u)}), {attributes}")
        for a in range(arrays):
            one = name if arrays == 1 else self.line(f"{shape} get-tuple-element({name}), index={a}")
            self.keep(one, kind, wide)

    def combiner(self, name, kind, arrays):
        body = "".join(f"{n} = {kind}[] parameter({i}) " for i, n in enumerate("abcd"[:2 * arrays]))
        if arrays == 1:
            combiners = COMBINERS if kind in BITS else COMBINERS | WHOLE
            body += self.draw.choice(list(combiners.values())).replace("T[]", f"{kind}[]")
        else:
            body += f"m = {kind}[] maximum(a, c) n = {kind}[] add(a, d) ROOT t = ({kind}[], {kind}[]) tuple(m, n)"
        body = body.replace("constant(0)", "constant(false)") if kind == "pred" else body
        self.regions.append(f"{name} {{ {body} }}")
        return name


def check(a, environment, seed):
    """Returns the faults of the module of a seed."""
    module = Module(seed)
    path, inputs = a.work / f"sorts-{seed}.hlo", a.work / f"sorts-{seed}.npz"
    path.write_text(module.text)
    np.savez(inputs, **{str(i): array for i, array in enumerate(module.inputs)})
    found = []
    for backend in ("cpu", "cuda"):
        outputs = a.work / f"sorts-{seed}.{backend}.npz"
        done = subprocess.run([a.bin / "hlo-fp8-run", f"--backend={backend}", f"--inputs={inputs}",
                               f"--outputs={outputs}", path], capture_output=True, text=True, env=environment)
        if done.returncode:
            return [f"seed {seed}, {backend}: status {done.returncode}\n{done.stdout}{done.stderr}"]
        with np.load(outputs) as arrays:
            found.append([arrays[str(i)] for i in range(len(module.results))])
    faults = [f"seed {seed}: {module.results[i]} differs in {np.count_nonzero(x != y)} of {x.size}: {path}"
              for i, (x, y) in enumerate(zip(*found)) if x.tobytes() != y.tobytes()]
    if not faults:
        for file in a.work.glob(f"sorts-{seed}.*"):
            file.unlink()
    return faults


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--bin", type=pathlib.Path, required=True)
    args.add_argument("--work", type=pathlib.Path, required=True)
    args.add_argument("--standin", required=True)
    args.add_argument("--first", type=int, default=1)
    args.add_argument("--count", type=int, default=1)
    a = args.parse_args()
    environment = _standin.environment(a.standin)
    faults = [fault for seed in range(a.first, a.first + a.count) for fault in check(a, environment, seed)]
    for fault in faults:
        print("FAILED", fault)
    print(f"{a.count} modules, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
