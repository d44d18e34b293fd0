# SPDX-License-Identifier: Apache-2.0
"""Programs in JAX. Each registered function returns a function of arrays, and its arguments."""
import functools
import os

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import _program
from _program import Draw, program

BF16 = jnp.bfloat16


def weights(draw, *shape):
    return draw.normal(*shape) / np.float32(shape[0])**np.float32(0.5)


# ------------------------------------------------------------------------------------------------------------- layers


@program
def mlp():
    """A training step with layer norm, gelu and cross entropy."""
    d = Draw(1)

    def loss(params, x, labels):
        for w, b, g in params:
            x = (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * g
            x = jax.nn.gelu(x @ w + b)
        logs = jax.nn.log_softmax(x)
        return -jnp.take_along_axis(logs, labels[:, None], 1).mean()

    def step(params, x, labels):
        value, grads = jax.value_and_grad(loss)(params, x, labels)
        return value, jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, grads)

    sizes = [16, 32, 10]
    params = [(weights(d, i, o), 0.1 * d.normal(o), 1 + 0.1 * d.normal(i)) for i, o in zip(sizes, sizes[1:])]
    return step, (params, d.normal(8, 16), d.below(10, 8))


@program
def mlp_bf16():
    """The gradient of an MLP in bf16."""
    d = Draw(2)

    def loss(w1, w2, x):
        return jnp.sum(jax.nn.silu(x @ w1) @ w2, dtype=jnp.float32)

    return jax.value_and_grad(loss, argnums=(0, 1)), [v.astype(BF16) for v in (weights(d, 16, 32), weights(d, 32, 8), d.normal(8, 16))]


@program
def attention():
    """Causal attention with rotary angles and grouped heads, and its gradient."""
    d = Draw(3)
    batch, length, heads, groups, size = 2, 8, 4, 2, 8

    def rotate(x):
        angles = jnp.arange(length)[:, None] / 10000**(jnp.arange(size // 2) / (size // 2))
        cos, sin = jnp.cos(angles)[:, None], jnp.sin(angles)[:, None]
        a, b = jnp.split(x, 2, -1)
        return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)

    def attend(x, wq, wk, wv, wo):
        q, k = rotate(jnp.einsum("bld,dhs->blhs", x, wq)), rotate(jnp.einsum("bld,dgs->blgs", x, wk))
        v = jnp.einsum("bld,dgs->blgs", x, wv)
        k, v = jnp.repeat(k, heads // groups, 2), jnp.repeat(v, heads // groups, 2)
        scores = jnp.einsum("blhs,bmhs->bhlm", q, k) / np.sqrt(size).astype(np.float32)
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -jnp.inf)
        return jnp.einsum("bhlm,bmhs,hsd->bld", jax.nn.softmax(scores), v, wo)

    def both(*args):
        y, pull = jax.vjp(attend, *args)
        return (y,) + pull(jnp.cos(y))

    shapes = [(16, heads, size), (16, groups, size), (16, groups, size), (heads, size, 16)]
    return both, [d.normal(batch, length, 16)] + [weights(d, *s) for s in shapes]


@program
def attention_bf16():
    """Attention in bf16 with an f32 softmax."""
    d = Draw(4)

    def attend(q, k, v):
        scores = jnp.einsum("blhs,bmhs->bhlm", q, k, preferred_element_type=jnp.float32) / 4
        return jnp.einsum("bhlm,bmhs->blhs", jax.nn.softmax(scores).astype(BF16), v)

    return attend, [d.normal(2, 8, 2, 16).astype(BF16) for _ in range(3)]


@program
def resnet():
    """The gradient of a residual block: convolutions, batch norm, pooling."""
    d = Draw(5)

    def conv(x, w, stride=1):
        return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def norm(x, g):
        return (x - x.mean((0, 1, 2))) * lax.rsqrt(x.var((0, 1, 2)) + 1e-5) * g

    def loss(params, x):
        w1, w2, w3, g1, g2 = params
        y = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        z = norm(conv(jax.nn.relu(norm(conv(y, w1, 2), g1)), w2), g2)
        z = jax.nn.relu(z + conv(y, w3, 2))
        z = lax.reduce_window(z, 0.0, lax.add, (1, 2, 2, 1), (1, 1, 1, 1), "VALID") / 4
        return (z**2).mean(), z

    params = [weights(d, 3, 3, 3, 8) / 3, weights(d, 3, 3, 8, 8) / 3, weights(d, 1, 1, 3, 8), 1 + 0.1 * d.normal(8), 1 + 0.1 * d.normal(8)]
    return jax.value_and_grad(loss, argnums=(0, 1), has_aux=True), (params, d.normal(2, 16, 16, 3))


@program
def convolutions():
    """Grouped, dilated, transposed and one-dimensional convolutions."""
    d = Draw(6)

    def convs(x, grouped, dilated, transposed, line):
        numbers = ("NHWC", "HWIO", "NHWC")
        return (lax.conv_general_dilated(x, grouped, (1, 1), "SAME", dimension_numbers=numbers, feature_group_count=4),
                lax.conv_general_dilated(x, dilated, (1, 1), "VALID", rhs_dilation=(2, 2), dimension_numbers=numbers),
                lax.conv_transpose(x, transposed, (2, 2), "SAME", dimension_numbers=numbers),
                lax.conv_general_dilated(x[:, :, 0], line, (1,), [(2, 0)], dimension_numbers=("NWC", "WIO", "NWC")))

    shapes = [(2, 8, 8, 4), (3, 3, 1, 8), (3, 3, 4, 2), (2, 2, 4, 4), (3, 4, 4)]
    return convs, [d.normal(*s) for s in shapes]


@program
def lstm():
    """The gradient of an LSTM as a scan."""
    d = Draw(7)

    def loss(w, u, b, xs):
        def cell(carry, x):
            h, c = carry
            i, f, g, o = jnp.split(x @ w + h @ u + b, 4, -1)
            c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zero = jnp.zeros((xs.shape[1], u.shape[0]))
        _, hs = lax.scan(cell, (zero, zero), xs)
        return (hs**2).mean(), hs

    return jax.value_and_grad(loss, argnums=(0, 1, 2), has_aux=True), [weights(d, 6, 32), weights(d, 8, 32), d.normal(32), d.normal(5, 3, 6)]


@program
def embedding():
    """Gathers, scatters, one-hot and segment sums, with gradients."""
    d = Draw(8)

    def loss(table, ids, values):
        x = table[ids]
        y = jnp.zeros((20, 6)).at[ids[0]].add(x[0] * values[0]).at[ids[1]].max(x[1])
        z = jax.ops.segment_sum(values.reshape(-1, 6), ids.reshape(-1), 20)
        w = jax.nn.one_hot(ids, 20) @ table
        return jnp.sum(jnp.sin(x) * w) + jnp.sum(y * z), (y, z, w)

    def step(table, ids, values):
        (value, rest), grads = jax.value_and_grad(loss, argnums=(0, 2), has_aux=True)(table, ids, values)
        return value, rest, grads, table.at[ids[0, :2], 1:3].set(7), table.at[3].mul(2, indices_are_sorted=True), lax.dynamic_update_slice(table, values[0, :2], (ids[0, 0], 1))

    return step, (d.normal(20, 6), d.below(20, 2, 7), d.normal(2, 7, 6))


@program
def sort_topk():
    """Sorts with and without payload, selections, scans of the sorted values."""
    d = Draw(9)

    def sorts(x, k):
        order = jnp.argsort(x, axis=0)
        top, where = lax.top_k(x, 3)
        return (jnp.sort(x), order, lax.sort((k, x[0], x[1]), num_keys=2), top, where, jnp.median(x, 1), jnp.searchsorted(jnp.sort(x[0]), x[1]),
                jnp.cumsum(x, 1), jnp.cumprod(x, 0), lax.cummax(x, 1), lax.cumlogsumexp(x, 1), jnp.argmax(x, 1), jnp.argmin(x), jnp.quantile(x, 0.3, axis=0),
                jnp.unique(k, size=6), jnp.bincount(k, length=8), jnp.sort(x.astype(BF16), 0), jnp.sort(k)[::-1])

    return sorts, (d.normal(5, 12), d.below(8, 12))


@program
def approximate_topk():
    """The partial reduction of approx_max_k, and its aggregation."""
    return lambda x: lax.approx_max_k(x, 4), [Draw(10).normal(4, 256)]


@program
def fft():
    """Fourier transforms of each kind, also of sizes other than powers of two."""
    d = Draw(11)

    def transforms(x, y):
        c = x + 1j * y
        return (jnp.fft.fft(c), jnp.fft.ifft(c), jnp.fft.rfft(x), jnp.fft.irfft(c), jnp.fft.fft2(c), jnp.fft.rfftn(x), jnp.fft.fftshift(jnp.abs(jnp.fft.fft(y[:, :7]))),
                jnp.convolve(x[0], y[0]), jnp.angle(c), jnp.exp(c), jnp.log(c), jnp.sqrt(c), c * c / (c + 2))

    return transforms, (d.normal(4, 12), d.normal(4, 12))


@program
def linalg():
    """Factorizations. Outputs do not depend on the signs of vectors."""
    d = Draw(12)

    def factors(a, b):
        s = a @ a.T + 4 * jnp.eye(6)
        l = jnp.linalg.cholesky(s)
        q, r = jnp.linalg.qr(a)
        w, v = jnp.linalg.eigh(s)
        u, t, vt = jnp.linalg.svd(b, full_matrices=False)
        return (l, q @ r, q.T @ q, w, (v * w) @ v.T, t, (u * t) @ vt, jnp.linalg.solve(a, b), jnp.linalg.inv(s), jnp.linalg.det(a),
                jnp.linalg.slogdet(s), jax.scipy.linalg.solve_triangular(l, b, lower=True), jax.scipy.linalg.lu(a), jax.scipy.linalg.cho_solve((l, True), b),
                jnp.linalg.matrix_power(a, 3), jax.scipy.linalg.expm(a / 4), jnp.linalg.norm(a, 2), jnp.linalg.lstsq(b, a)[0])

    return factors, (d.normal(6, 6), d.normal(6, 4))


@program
def linalg_grad():
    """Gradients of factorizations, batched."""
    d = Draw(13)

    def loss(a, b):
        s = a @ a.transpose(0, 2, 1) + 4 * jnp.eye(5)
        return jnp.sum(jnp.linalg.cholesky(s)) + jnp.sum(jnp.linalg.eigvalsh(s)**2) + jnp.sum(jnp.linalg.solve(s, b)) + jnp.sum(jnp.linalg.slogdet(s)[1])

    return jax.value_and_grad(loss, argnums=(0, 1)), (d.normal(2, 5, 5), d.normal(2, 5, 3))


@program
def eig():
    """Eigenvalues of a matrix that is not symmetric, and Schur and Hessenberg forms."""
    a = Draw(14).normal(5, 5)

    def values(a):
        w = jnp.linalg.eigvals(a)
        return jnp.sort(jnp.abs(w)), jnp.sum(w)

    return values, [a]


@program
def optimizer():
    """Adam with clipping, decay, a schedule and an average of the weights."""
    d = Draw(15)

    def step(params, grads, mu, nu, average, count):
        norm = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree_util.tree_leaves(grads)))
        grads = jax.tree_util.tree_map(lambda g: jnp.where(norm < 1, g, g / norm), grads)
        count = count + 1
        rate = 1e-2 * jnp.minimum(count / 10, 0.5 * (1 + jnp.cos(jnp.pi * count / 100)))
        mu = jax.tree_util.tree_map(lambda m, g: 0.9 * m + 0.1 * g, mu, grads)
        nu = jax.tree_util.tree_map(lambda n, g: 0.999 * n + 0.001 * g * g, nu, grads)
        params = jax.tree_util.tree_map(
            lambda p, m, n: p - rate * (m / (1 - 0.9**count) / (jnp.sqrt(n / (1 - 0.999**count)) + 1e-8) + 0.01 * p), params, mu, nu)
        average = jax.tree_util.tree_map(lambda a, p: (a.astype(jnp.float32) * 0.99 + 0.01 * p).astype(a.dtype), average, params)
        return params, mu, nu, average, count

    tree = lambda f: {"w": f(8, 12), "b": f(12), "scale": f()}
    params = tree(d.normal)
    return step, (params, tree(d.normal), tree(d.normal), tree(d.uniform), jax.tree_util.tree_map(lambda p: np.asarray(p).astype(BF16), params), np.int32(3))


# --------------------------------------------------------------------------------------------------------------- math


@program
def math():
    """Elementary and special functions, and their gradients."""
    d = Draw(16)
    special = jax.scipy.special
    names = "exp log sin cos tan tanh sinh cosh asinh arctan exp2 expm1 log1p sqrt cbrt abs sign floor ceil round rint".split()

    def functions(x, p):
        unary = {n: getattr(jnp, n)(p if n in ("log", "sqrt") else x) for n in names if hasattr(jnp, n)}
        more = [lax.erf(x), lax.erfc(x), lax.erf_inv(x / 4), lax.lgamma(p), lax.digamma(p), lax.logistic(x), special.gammainc(p, p + 1), special.betainc(p, p + 1, p / 4),
                special.i0e(x), special.i1e(x), special.zeta(p + 2, p), special.polygamma(1, p), special.ndtr(x), special.ndtri(p / 4), special.xlogy(p, p), special.entr(p)]
        binary = [p**x, jnp.arctan2(x, p), x % p, jnp.fmod(x, p), jnp.maximum(x, p), jnp.hypot(x, p), jnp.nextafter(x, p), jnp.logaddexp(x, p), jnp.floor_divide(x, p), jnp.ldexp(x, 3)]
        grad = jax.grad(lambda x: sum(jnp.sum(f(x)) for f in (lax.erf, jnp.tanh, jax.nn.gelu, jax.nn.softplus, jax.nn.elu, jax.nn.selu)))(x)
        return unary, more, binary, grad, x.astype(BF16) * p.astype(BF16) + 1, jnp.exp(x.astype(jnp.float16)), jnp.tanh(x.astype(BF16))

    return functions, (2 * d.normal(24), 0.1 + 3 * d.uniform(24))


@program
def integers():
    """Integer arithmetic, bits, comparisons and conversions."""
    d = Draw(17)

    def functions(x, y, f):
        u = x.astype(jnp.uint32)
        return (x + y, x * y, x // y, x % y, x & y, x | ~y, x ^ y, x << 3, x >> 2, lax.shift_right_logical(x, 2), lax.population_count(u), lax.clz(u), x == y, (x < y).any(), jnp.clip(x, -5, 5),
                x.astype(jnp.int8), x.astype(jnp.uint16), f.astype(jnp.int32), f.astype(jnp.uint8), x.astype(jnp.float32), lax.bitcast_convert_type(f, jnp.int32), lax.bitcast_convert_type(x, jnp.uint8),
                lax.reduce_precision(f, 5, 2), jnp.sum(x), jnp.prod(y), jnp.max(x), lax.reduce(u, np.uint32(0), lax.bitwise_xor, (0,)), x.astype(jnp.int8) @ jnp.ones((16,), jnp.int8),
                lax.dot(x.astype(jnp.int8), y.astype(jnp.int8), preferred_element_type=jnp.int32))

    return functions, (d.below(2000, 16) - 1000, d.below(50, 16) + 1, 9 * d.normal(16))


@program
def int4():
    """Arrays of int4 as weights."""
    d = Draw(18)

    def product(x, w, scale):
        wide = w.astype(jnp.int4).astype(jnp.float32) * scale
        return x @ wide, (w + 8).astype(jnp.uint4).astype(jnp.int32), jnp.round(x).astype(jnp.int4).astype(jnp.int8)

    return product, (d.normal(4, 8), (d.below(16, 8, 6) - 8).astype(np.int8), d.uniform(6))


@program
def shapes():
    """Movement of elements: slices, pads, reversals, tilings, gathers with a window."""
    d = Draw(19)

    def moves(x, i):
        return (x[::2, 1:-1], jnp.pad(x, 1), lax.pad(x, 9.0, [(1, -1, 1), (-2, 3, 0)]), x[::-1], jnp.tile(x, (2, 1)), jnp.roll(x, 2, 1), jnp.flip(x, 1), x.T.reshape(3, -1), jnp.stack([x, x + 1], 1),
                lax.dynamic_slice(x, (i[0], i[1]), (2, 3)), x[i], x[:, i], jnp.take_along_axis(x, i[None, :] % 6, 1), jnp.diag(x), jnp.tri(4), jnp.triu(x), jnp.where(x > 0, x, 2), jnp.nonzero(x[0] > 0, size=4),
                lax.gather(x, i[:, None], lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 4), mode="clip"), jnp.meshgrid(x[0], x[:, 0]), jnp.linspace(0, 1, 5), lax.broadcasted_iota(jnp.int32, (2, 3), 1),
                lax.rev(x, (0, 1)), lax.expand_dims(x, (1,)), jnp.moveaxis(x[None], 0, 2), jnp.block([[x, x], [x, x]]), lax.select_n(i % 2 == 0, i, -i))

    return moves, (d.normal(4, 6), d.below(4, 4))


@program
def control():
    """Loops, branches and maps, also nested."""
    d = Draw(20)

    def flow(x, n):
        a = lax.while_loop(lambda s: (s[0] < n) & (jnp.sum(s[1]) < 100), lambda s: (s[0] + 1, s[1] * 1.5 + 1), (0, x))
        b = lax.fori_loop(0, 4, lambda i, v: lax.cond(i % 2 == 0, lambda u: u + i, lambda u: jnp.sin(u), v), x)
        c = lax.switch(n - 2, [lambda v: v, lambda v: -v, lambda v: v * 2], x)
        e = lax.map(lambda row: jnp.sum(row) * row, x)
        f = lax.associative_scan(lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (x, x + 1))
        g = jax.checkpoint(lambda v: jnp.sin(jnp.sin(v)))
        return a, b, c, e, f, jax.grad(lambda v: jnp.sum(g(v)))(x), jax.vmap(lambda v: lax.while_loop(lambda s: jnp.sum(s) < 5, lambda s: s + 1, v))(x), jax.jvp(jnp.tanh, (x,), (x,))

    return flow, (d.uniform(3, 4), np.int32(3))


@program
def random():
    """Random numbers of JAX's generator."""
    def draws(seed):
        keys = jax.random.split(jax.random.PRNGKey(seed), 8)
        return (keys, jax.random.bits(keys[0], (5,)), jax.random.uniform(keys[1], (3, 4)), jax.random.normal(keys[2], (7,)), jax.random.randint(keys[3], (6,), 0, 10), jax.random.bernoulli(keys[4], 0.3, (9,)),
                jax.random.permutation(keys[5], 8), jax.random.categorical(keys[6], jnp.arange(4.0), shape=(5,)), jax.random.truncated_normal(keys[7], -1, 1, (4,)), jax.random.gumbel(keys[0], (3,), BF16))

    return draws, [np.int32(7)]


@program
def random_bits():
    """Random numbers of XLA's generator."""
    return lambda key: [lax.rng_bit_generator(key, (3, 5), dtype) for dtype in (jnp.uint32, jnp.uint8)], [np.arange(4, dtype=np.uint32)]


@program
def wide_types():
    """f64, s64 and c128."""
    d = Draw(21)
    jax.config.update("jax_enable_x64", True)

    def functions(x, n):
        c = x + 1j * x[::-1]
        return x @ x.T, jnp.exp(x), n * 3 // 7, n.astype(jnp.float64), c @ c.T, jnp.fft.fft(c), jnp.linalg.cholesky(x @ x.T + 9 * jnp.eye(4)), jnp.sort(x), x.astype(jnp.float32).astype(BF16), jnp.sum(n)

    return functions, (d.normal(4, 6).astype(np.float64) / 3, d.below(100, 6).astype(np.int64) * 12345678901)


# ---------------------------------------------------------------------------------------------------------------- FP8

FP8 = [getattr(jnp, name) for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e4m3", "float8_e3m4", "float8_e8m0fnu", "float4_e2m1fn")
       if hasattr(jnp, name)]


@program
def fp8_casts():
    """Conversions to and from each FP8 type, from each wide type. The inputs include ties and large values."""
    d = Draw(22)
    x = np.concatenate([3 * d.normal(200), np.float32(2.0)**(d.below(40, 56) - 24) * (1 + d.below(64, 56) / np.float32(64)), [448, 464, 480, 57344, 1e6, -1e6, 0, -0.0]]).astype(np.float32)

    def casts(x):
        sources = [x, x.astype(BF16), x.astype(jnp.float16)]
        codes = [v.astype(t) for t in FP8 for v in sources]
        return codes, [c.astype(jnp.float32) for c in codes[::3]], [c.astype(BF16) for c in codes[::3]]

    return casts, [x]


@program
def fp8_dot():
    """Dots of FP8 operands, without scales."""
    d = Draw(23)
    e4m3, e5m2 = jnp.float8_e4m3fn, jnp.float8_e5m2

    def dots(x, w):
        a, b, c = x.astype(e4m3), w.astype(e4m3), w.astype(e5m2)
        dot = functools.partial(lax.dot_general, dimension_numbers=(((1,), (0,)), ((), ())))
        return dot(a, b, preferred_element_type=jnp.float32), dot(a, b, preferred_element_type=BF16), dot(a, c, preferred_element_type=jnp.float32)

    return dots, (d.normal(16, 32), d.normal(32, 16))


def quantized(x, scale, dtype):
    limit = float(jnp.finfo(dtype).max)
    return jnp.clip(x / scale, -limit, limit).astype(dtype)


def qdq(x, scale, dtype):
    return quantized(x, scale, dtype).astype(x.dtype) * scale.astype(x.dtype)


@program
def fp8_qdq():
    """A training step with quantized operands and gradients, and delayed scales."""
    d = Draw(24)

    @jax.custom_vjp
    def out_qdq(y, scale):
        return y

    out_qdq.defvjp(lambda y, scale: (y, scale), lambda scale, g: (qdq(g, scale, jnp.float8_e5m2), jnp.max(jnp.abs(g))))

    def loss(w1, w2, scales, x):
        y = jax.nn.relu(out_qdq(qdq(x, scales[0], jnp.float8_e4m3fn) @ qdq(w1, scales[1], jnp.float8_e4m3fn), scales[2]))
        z = out_qdq(qdq(y, scales[3], jnp.float8_e4m3fn) @ qdq(w2, scales[4], jnp.float8_e4m3fn), scales[5])
        return jnp.mean(z * z), jnp.max(jnp.abs(y))

    def step(w1, w2, scales, history, x):
        (value, amax), (g1, g2, amaxes) = jax.value_and_grad(loss, argnums=(0, 1, 2), has_aux=True)(w1, w2, scales, x)
        history = jnp.roll(history, 1).at[0].set(amax)
        return value, w1 - 0.1 * g1, w2 - 0.1 * g2, amaxes, history, jnp.max(history) / 448

    scales = np.array([0.01, 0.004, 0.0002, 0.02, 0.004, 0.0003], np.float32)
    return step, (weights(d, 32, 32), weights(d, 32, 16), scales, d.uniform(8), d.normal(16, 32))


@program
def fp8_qdq_bf16():
    """A quantized layer in bf16, with bias, gelu, an amax and an FP8 result."""
    d = Draw(25)

    def layer(x, w, b, sx, sw, sy):
        y = jax.nn.gelu(qdq(x, sx, jnp.float8_e4m3fn) @ qdq(w, sw, jnp.float8_e4m3fn) + b)
        return quantized(y, sy.astype(BF16), jnp.float8_e4m3fn), jnp.max(jnp.abs(y))

    scale = np.array(0.0078125, np.float32)
    return layer, (d.normal(16, 32).astype(BF16), weights(d, 32, 16).astype(BF16), d.normal(16).astype(BF16), scale, np.float32(0.004), scale)


@program
def fp8_out():
    """A matmul whose result is quantized."""
    d = Draw(26)

    def layer(a, b, s):
        y = jax.nn.relu(a.astype(jnp.float32) @ b.astype(jnp.float32) * s)
        return quantized(y, jnp.float32(0.03), jnp.float8_e4m3fn), quantized(y, jnp.float32(0.001), jnp.float8_e5m2), jnp.max(y)

    e4m3 = lambda *shape: np.asarray(4 * d.normal(*shape)).astype(jnp.float8_e4m3fn)
    return layer, (e4m3(16, 32), e4m3(32, 16), np.float32(0.02))


@program
def fp8_arithmetic():
    """Arithmetic, comparisons, sorts and reductions of FP8 values."""
    d = Draw(27)

    def functions(x, y):
        return [(a + b, a * b, -a, jnp.maximum(a, b), a < b, jnp.sum(a), jnp.max(a), jnp.sort(a), jnp.abs(a), jnp.where(a > b, a, b), jnp.exp(a), a[::2], jnp.pad(a, 1))
                for a, b in ((x.astype(t), y.astype(t)) for t in (jnp.float8_e4m3fn, jnp.float8_e5m2))]

    return functions, (d.normal(20), d.normal(20))


@program
def fp8_rows():
    """Scales per row and column, and per block."""
    d = Draw(28)

    def product(x, w):
        sx, sw = jnp.max(jnp.abs(x), 1, keepdims=True) / 448, jnp.max(jnp.abs(w), 0, keepdims=True) / 448
        rows = lax.dot((x / sx).astype(jnp.float8_e4m3fn).astype(BF16), (w / sw).astype(jnp.float8_e4m3fn).astype(BF16), preferred_element_type=jnp.float32) * sx * sw
        blocks = x.reshape(8, 2, 32)
        sb = jnp.exp2(jnp.ceil(jnp.log2(jnp.max(jnp.abs(blocks), 2, keepdims=True) / 448)))
        back = (blocks / sb).astype(jnp.float8_e4m3fn).astype(jnp.float32) * sb
        return rows, back.reshape(8, 64) @ w

    return product, (d.normal(8, 64), d.normal(64, 16))


@program
def fp8_scaled():
    """JAX's block-scaled matmul."""
    d = Draw(29)

    def product(x, w, sx, sw):
        return jax.nn.scaled_matmul(x.astype(jnp.float8_e4m3fn), w.astype(jnp.float8_e4m3fn), sx.astype(jnp.float8_e8m0fnu), sw.astype(jnp.float8_e8m0fnu), preferred_element_type=jnp.float32)

    return product, (d.normal(1, 16, 64), d.normal(1, 16, 64), 2 ** d.normal(1, 16, 2), 2 ** d.normal(1, 16, 2))


@program
def ragged():
    """Products of groups of rows."""
    d = Draw(30)
    return lambda x, w, n: lax.ragged_dot(x, w, n), (d.normal(12, 8), d.normal(3, 8, 4), np.array([5, 3, 4], np.int32))


# ------------------------------------------------------------------------------------------------------ eight devices


def mesh():
    return Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))


@program
def sharded_mlp():
    """A training step over eight devices, partitioned by XLA."""
    d = Draw(31)
    at = lambda *axes: NamedSharding(mesh(), PartitionSpec(*axes))

    def loss(w1, w2, x, y):
        h = jax.nn.relu(x @ w1)
        h = lax.with_sharding_constraint(h, at("data", "model"))
        return jnp.mean((h @ w2 - y)**2)

    def step(w1, w2, x, y):
        value, (g1, g2) = jax.value_and_grad(loss, argnums=(0, 1))(w1, w2, x, y)
        return value, w1 - 0.1 * g1, w2 - 0.1 * g2

    places = at(None, "model"), at("model", None), at("data", None), at("data", None)
    return jax.jit(_program.named(step, "sharded_mlp"), in_shardings=places, out_shardings=(at(), places[0], places[1])), (weights(d, 16, 32), weights(d, 32, 8), d.normal(16, 16), d.normal(16, 8))


@program
def sharded_collectives():
    """Every collective in a manual region."""
    d = Draw(32)
    shard_map = jax.shard_map if hasattr(jax, "shard_map") else __import__("jax.experimental.shard_map", fromlist=["shard_map"]).shard_map

    def parts(x):
        i = lax.axis_index("data")
        return (lax.psum(x, ("data", "model")), lax.pmax(jnp.abs(x), "data"), lax.all_gather(x, "model", axis=1, tiled=True), lax.psum_scatter(x, "data", scatter_dimension=0, tiled=True),
                lax.ppermute(x, "data", [(j, (j + 1) % 4) for j in range(4)]), lax.all_to_all(x, "data", 0, 1, tiled=True), x * i, lax.pmean(x, "model"))

    spec = PartitionSpec("data", "model")
    try:
        function = shard_map(parts, mesh=mesh(), in_specs=(spec,), out_specs=(spec,) * 8, check_vma=False)
    except TypeError:
        function = shard_map(parts, mesh=mesh(), in_specs=(spec,), out_specs=(spec,) * 8, check_rep=False)
    return jax.jit(_program.named(lambda x: function(x), "sharded_collectives"), in_shardings=NamedSharding(mesh(), spec)), [d.normal(16, 16)]


@program
def sharded_fp8():
    """A quantized layer over eight devices: weights are gathered in FP8."""
    d = Draw(33)
    at = lambda *axes: NamedSharding(mesh(), PartitionSpec(*axes))

    def layer(x, w, sx, sw):
        wide = qdq(w, sw, jnp.float8_e4m3fn)
        wide = lax.with_sharding_constraint(wide, at(None, "model"))
        return qdq(x, sx, jnp.float8_e4m3fn) @ wide

    return jax.jit(_program.named(layer, "sharded_fp8"), in_shardings=(at("data", None), at("data", "model"), at(), at()), out_shardings=at("data", "model")), (d.normal(16, 32), weights(d, 32, 16), np.float32(0.01), np.float32(0.004))


def run(make):
    """Returns the inputs and outputs of a program; for several devices, then those of each device."""
    several = make.__name__.startswith("sharded")
    if several:
        os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
    function, args = make()
    if not several:
        function = jax.jit(_program.named(function, make.__name__))
    leaves = jax.tree_util.tree_leaves(args)
    outputs = jax.tree_util.tree_leaves(function(*args))
    if not several:
        return leaves, outputs
    shardings = jax.tree_util.tree_leaves(function.lower(*args).compile().input_shardings[0])
    places = [s.devices_indices_map(np.shape(v)) for s, v in zip(shardings, leaves)]
    parts = [np.asarray(v)[p[device]] for device in jax.devices() for v, p in zip(leaves, places)]
    shards = [sorted(v.addressable_shards, key=lambda shard: shard.device.id) for v in outputs]
    return leaves, outputs, parts, [shard[i].data for i in range(8) for shard in shards]


if __name__ == "__main__":
    _program.main(run)
