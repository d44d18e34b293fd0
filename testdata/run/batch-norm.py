"""Writes inputs of batch-norm.hlo, its outputs computed in f64, and the same outputs with one element off by 1 %."""

import sys

import numpy as np

work = sys.argv[1]
rng = np.random.default_rng(0)
x, g = 10 + rng.standard_normal((8, 3, 16)), rng.standard_normal((8, 3, 16))
s, o = rng.random(3) + 0.5, rng.standard_normal(3)
inputs = [a.astype(np.float32) for a in (x, s, o, g)]
x, s, o, g = (a.astype(np.float64) for a in inputs)


def along(vector):
    return vector[:, None]


def normalized(mean, variance):
    return (x - along(mean)) / np.sqrt(along(variance) + 0.001) * along(s) + along(o)


axes, count = (0, 2), 8 * 16
mean, variance = x.mean(axes), x.var(axes)
inverse, apart = 1 / np.sqrt(s + 0.001), x - along(o)
products, sums = (g * apart).sum(axes), g.sum(axes)
gradient = g - along(sums) / count - apart * along(inverse**2 * products) / count
outputs = [normalized(mean, variance), mean, variance, normalized(o, s), along(s * inverse) * gradient, products * inverse, sums]
outputs = [a.astype(np.float32) for a in outputs]
np.savez(f'{work}/in.npz', *inputs)
np.savez(f'{work}/out.npz', *outputs)
outputs[3][5, 1, 7] *= 1.01
np.savez(f'{work}/off.npz', *outputs)
# SPDX-License-Identifier: Apache-2.0
