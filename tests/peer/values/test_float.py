#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that conversions between f32, f64 and every narrow float equal those of ml_dtypes, bit for bit.

Every code of every type is decoded. For encoding, the inputs are every bf16 and f16 value, every value of the type, and
every midpoint between two neighbors (which rounds up, down or to even), each with the f32 next to it on either side.
Further inputs are numbers beyond the largest and the smallest number, and f32 with random bits. A NaN equals any NaN of
its sign if the type has several.
"""
import os
import subprocess
import sys

import ml_dtypes
import numpy as np

import _script

TYPES = {
    'f4e2m1fn': ml_dtypes.float4_e2m1fn,
    'f6e2m3fn': ml_dtypes.float6_e2m3fn,
    'f6e3m2fn': ml_dtypes.float6_e3m2fn,
    'f8e3m4': ml_dtypes.float8_e3m4,
    'f8e4m3': ml_dtypes.float8_e4m3,
    'f8e4m3b11fnuz': ml_dtypes.float8_e4m3b11fnuz,
    'f8e4m3fn': ml_dtypes.float8_e4m3fn,
    'f8e4m3fnuz': ml_dtypes.float8_e4m3fnuz,
    'f8e5m2': ml_dtypes.float8_e5m2,
    'f8e5m2fnuz': ml_dtypes.float8_e5m2fnuz,
    'f8e8m0fnu': ml_dtypes.float8_e8m0fnu,
    'bf16': ml_dtypes.bfloat16,
    'f16': np.float16,
}


FEW_CODES = {ml_dtypes.float4_e2m1fn: 16, ml_dtypes.float6_e2m3fn: 64, ml_dtypes.float6_e3m2fn: 64}


def codes(dtype):
    if dtype in FEW_CODES:
        return np.arange(FEW_CODES[dtype], dtype=np.uint8)
    width = np.dtype(dtype).itemsize
    return np.arange(1 << 8 * width, dtype=np.uint32).astype(f'u{width}')


def inputs(dtype):
    """Returns f32 values around every boundary of `dtype`."""
    with np.errstate(all='ignore'):
        halves = [np.arange(1 << 16, dtype=np.uint16).view(t).astype(np.float32)
                  for t in (ml_dtypes.bfloat16, np.float16)]
        own = codes(dtype).view(dtype).astype(np.float64)
        own = np.unique(own[np.isfinite(own)])
        step, low = own[-1] - own[-2], np.abs(own[own != 0]).min()
        ends = np.array([own[-1] + step * f for f in (0.25, 0.5, 0.75, 1, 2)] + [low / 2, low / 4])
        near = np.concatenate([own, (own[1:] + own[:-1]) / 2, ends, -ends]).astype(np.float32)
        bits = np.random.default_rng(1).integers(0, 1 << 32, 1 << 20, dtype=np.uint64)
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan], np.float32)
        return np.concatenate(halves + [
            near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf)),
            bits.astype(np.uint32).view(np.float32), special])


def main():
    parser = _script.parser()
    parser.add_argument('--all', action='store_true', help='all 2^32 f32 to each type (minutes)')
    args = parser.parse_args()
    driver = os.path.join(args.bin, 'float_codes')
    failures = 0

    def convert(what, name, array, dtype):
        result = subprocess.run([driver, what, name], input=array.tobytes(), capture_output=True,
                                check=True)
        return np.frombuffer(result.stdout, dtype)

    def check(what, name, given, got, want, compare):
        nonlocal failures
        wrong = np.flatnonzero(~compare(got, want))
        if wrong.size:
            failures += 1
            i = wrong[0]
            print(f'{what} {name}: {wrong.size} of {got.size} differ, first {given[i]!r}: '
                  f'got {got[i]!r}, ml_dtypes has {want[i]!r}')

    def same_value(a, b):
        return (a == b) & (np.signbit(a) == np.signbit(b)) | np.isnan(a) & np.isnan(b)

    for name, dtype in TYPES.items():
        every, unsigned = codes(dtype), codes(dtype).dtype

        def same_code(a, b):
            with np.errstate(all='ignore'):
                x, y = a.view(dtype).astype(np.float32), b.view(dtype).astype(np.float32)
            return (a == b) | np.isnan(x) & np.isnan(y) & (np.signbit(x) == np.signbit(y))

        with np.errstate(all='ignore'):
            want = every.view(dtype).astype(np.float64)
            check('decode', name, every, convert('decode', name, every, np.float64), want, same_value)
            check('decode-row', name, every, convert('decode-row', name, every, np.float32),
                  want.astype(np.float32), same_value)
            given = inputs(dtype)
            want = given.astype(dtype).view(unsigned)
            check('encode-row', name, given, convert('encode-row', name, given, unsigned), want,
                  same_code)
            check('encode', name, given,
                  convert('encode', name, given.astype(np.float64), unsigned), want, same_code)
        if args.all:
            with subprocess.Popen([driver, 'all', name], stdout=subprocess.PIPE) as all_codes:
                count = 1 << 24
                for first in range(0, 1 << 32, count):
                    given = np.arange(first, first + count, dtype=np.uint32).view(np.float32)
                    got = np.frombuffer(all_codes.stdout.read(count * unsigned.itemsize), unsigned)
                    with np.errstate(all='ignore'):
                        want = given.astype(dtype).view(unsigned)
                    check('all', name, given, got, want, same_code)
    print('conversions differ' if failures else f'{len(TYPES)} types: every conversion is the same')
    return failures != 0


if __name__ == '__main__':
    sys.exit(main())
