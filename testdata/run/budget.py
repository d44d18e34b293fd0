"""Checks of --max-error.

usage: budget.py selection hlo-fp8-opt hlo-fp8-run MODULE NAMES.txt REMARKS.json REPORT.html
       budget.py sets FIRST SECOND BOTH
       budget.py additive hlo-fp8-run FOLDER COUNT

selection: a rewrite with --wide=@NAMES quantizes the matmuls that the remarks name, and changes the outputs as measured.
sets: each change in the table for two sets of inputs is the larger of the two changes in the tables for one set.
additive: for random sets of matmuls of an MLP with its gradients, the change of each output is at most 1.6 times the
root of the sum of the squares of the changes with one matmul.
"""
import json
import os
import random
import subprocess
import sys

import ml_dtypes
import numpy

OPTIONS = ("--quantize=current", "--min-gain=0.001")


def program(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def outputs(run, module, path, *options):
    program(run, module, *options, f"--outputs={path}")
    with numpy.load(path) as arrays:
        # numpy.load() reads bf16 as raw bytes; numpy has all other types of the modules.
        found = [arrays[name] for name in arrays.files]
        return [(a.view(ml_dtypes.bfloat16) if a.dtype.kind == "V" else a).astype(numpy.float64) for a in found]


def distances(before, after):
    norms = [(numpy.linalg.norm(b - a), numpy.linalg.norm(b)) for b, a in zip(before, after, strict=True)]
    return [moved / size if moved else 0 for moved, size in norms]


def rows(path):
    """Returns the lines of the matmuls, by name, and the number of executions."""
    lines = [line.split() for line in open(path)]
    end = next(i for i, line in enumerate(lines) if line[-2:] == ["all", "matmuls"])
    table = {next(line[i + 1] for i, word in enumerate(line) if word in ("fp8", "wide")): line for line in lines[2:end]}
    return table, next(int(line[0]) for line in lines if line[1:] == ["executions"])


def selection(opt, run, module, names, remarks, report):
    said = {dot["input_instruction"]: dot for dot in json.load(open(remarks))["dots"]}
    words = open(names).read().split()
    assert all(word.startswith("%") for word in words) and len(set(words)) == len(words), words
    path = names + ".json"
    program(opt, module, *OPTIONS, f"--wide=@{names}", "--remarks=all", "--remarks-format=json", f"--remarks-file={path}", "-o", os.devnull)
    made = {dot["input_instruction"]: dot for dot in json.load(open(path))["dots"]}
    assert {n for n, dot in made.items() if dot["verdict"] != "wide"} == {n for n, dot in said.items() if dot["verdict"] != "wide"}
    assert {n for n, dot in made.items() if dot["verdict"] == "wide"} == {word[1:] for word in words}
    for name, dot in made.items():
        assert (dot["quantized"] is not None) == (dot["verdict"] != "wide") and said[name]["quantized"]["recipe"] == "current"
        if dot["quantized"]:
            assert set(dot["quantized"]) == {"recipe", "predicted_gain"}
            assert dot["quantized"]["predicted_gain"] == said[name]["quantized"]["predicted_gain"]
        assert set(said[name]["quantized"]) == {"recipe", "predicted_gain", "snr_db", "output_distance"}
    calls = {dot["instruction"] for dot in made.values() if dot["verdict"] != "wide"}
    print(f"the same {len(calls)} matmuls, {len(words)} are wide")
    before = outputs(run, module, names + ".npz")
    for name, dot in said.items():
        others = ",".join(f"%{other}" for other, one in said.items() if other != name and one["instruction"] != dot["instruction"])
        alone = distances(before, outputs(run, module, names + ".npz", "--optimize", *OPTIONS, f"--wide={others}"))
        assert dot["verdict"] == "wide" or abs(max(alone) - dot["quantized"]["output_distance"]) < 1e-6, (name, alone)
    print("each matmul alone changes the outputs as reported")
    print(open(report).read().count("<circle"), "points")


def sets(*paths):
    (first, one), (second, other), (both, together) = map(rows, paths)
    assert one == other and first.keys() == second.keys() == both.keys()
    for name, line in both.items():
        assert float(line[0]) == max(float(first[name][0]), float(second[name][0])), name
    print(f"{len(both)} rows have the largest change of both sets; {together} executions")


def mlp(layers, batch, size):
    """Returns an MLP with residual connections, and the gradients of its weights."""
    x, w, lines = f"f32[{batch},{size}]", f"f32[{size},{size}]", []

    def add(name, shape, text):
        lines.append(f"  {name} = {shape} {text}")
        return name

    def dot(name, shape, a, b, i, j):
        return add(name, shape, f"dot({a}, {b}), lhs_contracting_dims={{{i}}}, rhs_contracting_dims={{{j}}}")

    values = [add("x0", x, "parameter(0)")]
    weights = [add(f"p{k}", w, f"parameter({k + 1})") for k in range(layers)]
    add("root", "f32[]", f"constant({size ** -0.5})")
    add("scale", w, "broadcast(root), dimensions={}")
    for k in range(layers):
        add(f"w{k}", w, f"multiply(p{k}, scale)")
        dot(f"h{k}", x, values[-1], f"w{k}", 1, 0)
        add(f"t{k}", x, f"tanh(h{k})")
        values.append(add(f"x{k + 1}", x, f"add(x{k}, t{k})"))
    add("one", "f32[]", "constant(1)")
    add("ones", x, "broadcast(one), dimensions={}")
    gradient, results = values[-1], [values[-1]]
    for k in reversed(range(layers)):
        add(f"q{k}", x, f"multiply(t{k}, t{k})")
        add(f"r{k}", x, f"subtract(ones, q{k})")
        add(f"g{k}", x, f"multiply({gradient}, r{k})")
        results.append(dot(f"dw{k}", w, f"x{k}", f"g{k}", 0, 0))
        dot(f"dx{k}", x, f"g{k}", f"w{k}", 1, 1)
        gradient = add(f"dy{k}", x, f"add({gradient}, dx{k})")
    results.append(gradient)
    shapes = ", ".join([x, *[w] * layers, x])
    return "HloModule mlp\n\nENTRY e {\n" + "\n".join(lines) + f"\n  ROOT t = ({shapes}) tuple({', '.join(results)})\n}}\n", len(weights)


def additive(run, folder, count):
    os.makedirs(folder, exist_ok=True)
    module, path = os.path.join(folder, "mlp.hlo"), os.path.join(folder, "out.npz")
    text, layers = mlp(4, 32, 64)
    with open(module, "w") as file:
        file.write(text)
    names = [f"{kind}{k}" for kind in ("h", "dw", "dx") for k in range(layers)]
    before = outputs(run, module, path)

    def changes(quantized):
        wide = ",".join(f"%{name}" for name in names if name not in quantized)
        return numpy.array(distances(before, outputs(run, module, path, "--optimize", *OPTIONS, f"--wide={wide}")))

    alone = {name: changes([name]) ** 2 for name in names}
    with open(path + ".txt", "w") as file:
        file.write(program(run, module, *OPTIONS, "--max-error=0.04"))
    table, runs = rows(path + ".txt")
    assert runs == len(names) + 3, runs
    for name in names:
        assert abs(float(table[name][0]) - max(alone[name]) ** 0.5) < 5e-3 * float(table[name][0]), name
    draw, ratios = random.Random(0), []
    for _ in range(count):
        chosen = [name for name in names if draw.random() < 0.5]
        predicted = sum((alone[name] for name in chosen), numpy.zeros(len(before))) ** 0.5
        moved = changes(chosen)
        ratios += [a / b for a, b in zip(moved, predicted) if b]
        assert all(m <= 1.6 * p for m, p in zip(moved, predicted)), (chosen, moved, predicted)
    print(f"{len(names)} matmuls, {runs} executions; {count} sets are within 1.6 times the prediction")
    print(f"measured / predicted: {min(ratios):.2f} to {max(ratios):.2f}", file=sys.stderr)


if __name__ == "__main__":
    what, *given = sys.argv[1:]
    if what == "additive":
        additive(given[0], given[1], int(given[2]))
    else:
        {"selection": selection, "sets": sets}[what](*given)
# SPDX-License-Identifier: Apache-2.0
