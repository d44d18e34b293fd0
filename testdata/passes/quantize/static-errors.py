"""usage: static-errors.py hlo-fp8-opt hlo-fp8-run MODULE AMAXES.json FOLDER

Uses changed files of amaxes, and prints the error, or the number of FP8 matmuls."""
import json
import os
import re
import subprocess
import sys

import numpy as np

opt, run, module, path, folder = sys.argv[1:]
os.makedirs(folder, exist_ok=True)
changed, out = os.path.join(folder, "changed.json"), os.path.join(folder, "out.hlo")
with open(path) as file:
    recorded = json.load(file)


def use(name, text):
    with open(changed, "w") as file:
        file.write(text)
    if os.path.exists(out):
        os.remove(out)
    done = subprocess.run([opt, module, "--quantize=static", f"--amaxes={changed}", "--min-gain=0.001", "--remarks=all", "-o", out],
                          capture_output=True, text=True)
    assert done.returncode in (0, 1) and os.path.exists(out) == (done.returncode == 0), done
    if done.returncode:
        print(f"{name}: " + done.stderr.split("\n")[0].replace(changed, ""))
    else:
        reason = re.search(r"amax-not-recorded", done.stderr)
        print(f"{name}: " + re.search(r"\d of \d", done.stderr)[0] + (f", {reason[0]}" if reason else ""))


def with_amax(text):
    amaxes = {**recorded["amaxes"], "a": "HERE"}
    return json.dumps({**recorded, "amaxes": amaxes}).replace('"HERE"', text)


def outputs(a, b):
    np.savez(os.path.join(folder, "in.npz"), a=a, b=b)
    subprocess.run([run, out, f"--inputs={folder}/in.npz", f"--outputs={folder}/out.npz"], check=True, stdout=subprocess.DEVNULL)
    return np.load(os.path.join(folder, "out.npz"))["0"]


use("as recorded", json.dumps(recorded))
for value in ("-1", '"1"', "[1, null]", "NaN", "Infinity", "1e999", "0", "[]", "[0.5, 2]", "1e300", "1.7e308"):
    use(value, with_amax(value))
with open(out) as file:
    largest = file.read()
use("absent", json.dumps({**recorded, "amaxes": {"b": 1}}))
use("twice", with_amax('1, "a": 2'))
use("empty", "")
use("another document", '{"version": 1}')
use("version 2", json.dumps({**recorded, "version": 2}))
use("fingerprint", json.dumps({**recorded, "fingerprint": "0123456789abcdef"}))
with open(changed, "w") as file:
    file.write(with_amax("65504"))
command = [opt, module, "--quantize=static", "--min-gain=0.001", "-o", out]
subprocess.run([*command, f"--amaxes={changed}"], check=True)
with open(out) as file:
    print("values: " + ("equal to the scale from amax 65504" if file.read() == largest else "different"))
with open(changed, "w") as file:
    file.write(with_amax("4"))
subprocess.run([*command, f"--amaxes={changed}"], check=True)
a, b = np.ones((16, 32), np.float16), np.ones((32, 16), np.float16)
a[0, 0] = np.nan
print(f"NaN in a: {np.isnan(outputs(a, b)).sum()} NaN of 256")
a[0, 0] = np.inf
result = outputs(a, b).astype(float)
print("infinity in a: " + ("clamped" if (result[1:] == 32).all() and (result[0] >= 31 + 64).all() and (result[0] < 31 + 128 + 8).all() else f"{result[0]}"))
np.savez(os.path.join(folder, "in.npz"), a=a, b=b)
done = subprocess.run([run, module, f"--inputs={folder}/in.npz", f"--record-amaxes={folder}/none.json"], capture_output=True, text=True)
assert done.returncode == 1 and not os.path.exists(f"{folder}/none.json")
print("recorded NaN: " + done.stderr.split("\n")[0])
# SPDX-License-Identifier: Apache-2.0
