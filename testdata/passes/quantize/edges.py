"""Runs dots of operands with NaN, infinity, zeros, and tiny and huge values, quantized by --quantize.

usage: edges.py hlo-fp8-run FOLDER OPTION...

For each type and case, prints the non-finite elements of the wide and of the quantized product, and whether the
quantized product is close to the wide one. The rewrite must agree with the inserted quantization (--compare=before).
"""
import os
import subprocess
import sys

import numpy as np

MODULE = """HloModule m
ENTRY e {{
  a = u{bits}[16,64] parameter(0)
  b = u{bits}[64,48] parameter(1)
  x = {type}[16,64] bitcast-convert(a)
  w = {type}[64,48] bitcast-convert(b)
  d = f32[16,48] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT t = (f32[16,48]) tuple(d)
}}
"""
# By type: number of bits, exponents of the smallest and the largest normal number, bits of infinity, of NaNs, and of the largest finite number.
TYPES = {"bf16": (16, -126, 127, 0x7F80, (0x7FC0, 0x7FFF, 0xFFFF), 0x7F7F),
         "f16": (16, -14, 15, 0x7C00, (0x7E00, 0x7FFF, 0xFFFF), 0x7BFF),
         "f32": (32, -126, 127, 0x7F800000, (0x7FC00000, 0x7FFFFFFF, 0xFFFFFFFF), 0x7F7FFFFF)}


def bits_of(name, values):
    if name == "f16":
        return values.astype(np.float16).view(np.uint16)
    wide = values.astype(np.float32).view(np.uint32)
    return wide if name == "f32" else (wide >> 16).astype(np.uint16)


def main():
    program, folder, options = sys.argv[1], sys.argv[2], sys.argv[3:]
    os.makedirs(folder, exist_ok=True)
    inputs, module, output = (os.path.join(folder, name) for name in ("in.npz", "m.hlo", "out.npz"))

    def run(x, w, *options):
        np.savez(inputs, x, w)
        subprocess.run([program, module, "--inputs=" + inputs, "--outputs=" + output, *options], check=True, stdout=subprocess.DEVNULL)
        return np.load(output)["0"]

    draw = np.random.default_rng(0)
    normal, weights = draw.standard_normal((16, 64)), draw.standard_normal((64, 48))
    for name, (bits, least, greatest, infinity, nans, largest) in TYPES.items():
        with open(module, "w") as file:
            file.write(MODULE.format(type=name, bits=bits))
        with np.errstate(all="ignore"):
            x, w = bits_of(name, normal), bits_of(name, weights)
            sign = 1 << (bits - 1)

            def one(value):
                y = x.copy()
                y[3, 5] = value
                return y

            small, tiny = 2.0 ** (least // 2), 2.0 ** (least + 12)
            cases = [("normal", x, w), ("zero", 0 * x, w), ("negative zero", 0 * x + sign, w), ("both zero", 0 * x, 0 * w),
                     *((f"NaN {value:x}", one(value), w) for value in nans), ("infinity", one(infinity), w),
                     ("-infinity", one(infinity + sign), w), ("largest", one(largest), bits_of(name, weights / 2**12)),
                     ("all largest", 0 * x + largest, bits_of(name, weights / 2**12)),
                     ("small", bits_of(name, normal * small), w), ("tiny", bits_of(name, normal * tiny), w),
                     ("subnormal", 0 * x + 1, w), ("huge", bits_of(name, normal * 2.0 ** (greatest - 3)), bits_of(name, weights / 2**12))]
            for case, a, b in cases:
                wide = run(a, b)
                found = run(a, b, "--optimize", *options, "--min-gain=0.001", "--compare=before")
                finite = np.isfinite(wide) & np.isfinite(found)
                size, distance = (np.linalg.norm(a[finite].astype(np.float64)) for a in (wide, found.astype(np.float64) - wide))
                error = distance / max(size, 1e-300)
                print(f"{name} {case}: wide {np.sum(~np.isfinite(wide))}, quantized {np.sum(~np.isfinite(found))} not finite;",
                      "no finite element" if not finite.any() else "equal" if error == 0 else "close" if error < 0.06 else f"off by {error:.2g}")


if __name__ == "__main__":
    main()
# SPDX-License-Identifier: Apache-2.0
