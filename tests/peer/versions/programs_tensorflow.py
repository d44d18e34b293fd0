# SPDX-License-Identifier: Apache-2.0
"""Programs in TensorFlow. Each registered function returns a function of arrays, and its arguments."""
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import dtypes

import _program
from _program import Draw, program


def weights(draw, *shape):
    return draw.normal(*shape) / np.float32(shape[0])**np.float32(0.5)


def gradients(loss, *values):
    with tf.GradientTape() as tape:
        for value in values:
            tape.watch(value)
        result = loss(*values)
    return [result, *tape.gradient(result, values)]


@program
def mlp():
    """A training step with layer norm, gelu and cross entropy."""
    d = Draw(1)

    def step(x, labels, *params):
        def loss(*params):
            y = x
            for w, b in zip(params[::2], params[1::2]):
                mean, variance = tf.nn.moments(y, [-1], keepdims=True)
                y = tf.nn.gelu((y - mean) * tf.math.rsqrt(variance + 1e-5) @ w + b, approximate=True)
            return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, y))

        value, *grads = gradients(loss, *params)
        return [value] + [p - 0.1 * g for p, g in zip(params, grads)]

    return step, (d.normal(8, 16), d.below(10, 8), weights(d, 16, 32), 0.1 * d.normal(32), weights(d, 32, 10), 0.1 * d.normal(10))


@program
def mlp_bf16():
    """An MLP in bf16."""
    d = Draw(2)

    def layers(x, w1, w2):
        x, w1, w2 = (tf.cast(v, tf.bfloat16) for v in (x, w1, w2))
        return tf.cast(tf.nn.silu(x @ w1) @ w2, tf.float32)

    return layers, (d.normal(8, 16), weights(d, 16, 32), weights(d, 32, 8))


@program
def attention():
    """Masked attention and its gradient."""
    d = Draw(3)

    def attend(x, wq, wk, wv, wo):
        def loss(x, *w):
            q, k, v = (tf.einsum("bld,dhs->bhls", x, m) for m in w[:3])
            scores = tf.einsum("bhls,bhms->bhlm", q, k) / 8**0.5
            mask = tf.linalg.band_part(tf.ones((8, 8)), -1, 0)
            scores = scores * mask - 1e9 * (1 - mask)
            return tf.reduce_sum(tf.sin(tf.einsum("bhlm,bhms,hsd->bld", tf.nn.softmax(scores), v, w[3])))

        return gradients(loss, x, wq, wk, wv, wo)

    return attend, [d.normal(2, 8, 16)] + [weights(d, 16, 2, 8) for _ in range(3)] + [weights(d, 2, 8, 16)]


@program
def resnet():
    """The gradient of a residual block: convolutions, fused batch norm, pooling."""
    d = Draw(5)

    def step(x, w1, w2, w3, g, b):
        def loss(x, w1, w2, w3, g, b):
            y = tf.nn.max_pool2d(x, 3, 2, "SAME")
            z, mean, variance = tf.compat.v1.nn.fused_batch_norm(tf.nn.conv2d(y, w1, 2, "SAME"), g, b)
            z = tf.nn.conv2d(tf.nn.relu(z), w2, 1, "SAME") + tf.nn.conv2d(y, w3, 2, "SAME")
            z = tf.nn.avg_pool2d(tf.nn.relu(z), 2, 1, "VALID")
            return tf.reduce_mean(z * z) + tf.reduce_sum(mean) + tf.reduce_sum(variance)

        return gradients(loss, x, w1, w2, w3, g, b)

    shapes = [(3, 3, 3, 8), (3, 3, 8, 8), (1, 1, 3, 8)]
    return step, [d.normal(2, 16, 16, 3)] + [weights(d, *s) / 3 for s in shapes] + [1 + 0.1 * d.normal(8), d.normal(8)]


@program
def convolutions():
    """Depthwise, dilated, transposed and one-dimensional convolutions."""
    d = Draw(6)

    def convs(x, depth, dilated, transposed, line):
        return (tf.nn.depthwise_conv2d(x, depth, (1, 1, 1, 1), "SAME"), tf.nn.conv2d(x, dilated, 1, "VALID", dilations=2), tf.nn.conv2d_transpose(x, transposed, (2, 16, 16, 4), 2),
                tf.nn.conv1d(x[:, :, 0], line, 1, "SAME"), tf.nn.local_response_normalization(x), tf.nn.space_to_depth(x, 2))

    shapes = [(2, 8, 8, 4), (3, 3, 4, 2), (3, 3, 4, 2), (2, 2, 4, 4), (3, 4, 4)]
    return convs, [d.normal(*s) for s in shapes]


@program
def resize():
    """Resizing of images."""
    return lambda x: (tf.compat.v1.image.resize_bilinear(x, (5, 11), align_corners=True), tf.compat.v1.image.resize_nearest_neighbor(x, (15, 15), align_corners=True)), [Draw(33).normal(2, 8, 8, 3)]


@program
def lstm():
    """The gradient of an LSTM as a while loop over a TensorArray."""
    d = Draw(7)

    def body(w, u, b, xs):
        zero = tf.zeros((3, 8))
        states = tf.TensorArray(tf.float32, 5, element_shape=(3, 8))

        def cell(t, h, c, states):
            i, f, g, o = tf.split(xs[t] @ w + h @ u + b, 4, -1)
            c = tf.sigmoid(f + 1) * c + tf.sigmoid(i) * tf.tanh(g)
            h = tf.sigmoid(o) * tf.tanh(c)
            return t + 1, h, c, states.write(t, h)

        states = tf.while_loop(lambda t, *_: t < 5, cell, (0, zero, zero, states), maximum_iterations=5)[3]
        return tf.reduce_mean(states.stack()**2)

    return lambda w, u, b, xs: gradients(lambda w, u, b: body(w, u, b, xs), w, u, b), [weights(d, 6, 32), weights(d, 8, 32), d.normal(32), d.normal(5, 3, 6)]


@program
def embedding():
    """Gathers, scatters, one-hot and segment sums, with gradients."""
    d = Draw(8)

    def step(table, ids, values):
        def loss(table):
            x = tf.gather(table, ids)
            return tf.reduce_sum(tf.sin(x) * values) + tf.reduce_sum(tf.one_hot(ids, 20) @ table)

        value, grad = gradients(loss, table)
        rows = tf.reshape(values, (-1, 6))
        return (value, tf.convert_to_tensor(grad), tf.tensor_scatter_nd_update(table, [[3], [5]], rows[:2]), tf.tensor_scatter_nd_add(table, ids[0][:, None], values[0]),
                tf.math.unsorted_segment_sum(rows, tf.reshape(ids, [-1]), 20), tf.scatter_nd(ids[0][:, None], values[1], (20, 6)), tf.gather_nd(table, [[1, 2], [3, 4]]),
                tf.tensor_scatter_nd_max(table, ids[1][:, None], values[0]), tf.gather(table, [0, 2], axis=1))

    return step, (d.normal(20, 6), d.below(20, 2, 7), d.normal(2, 7, 6))


@program
def sort_topk():
    """Sorts, selections and scans."""
    d = Draw(9)

    def sorts(x, k):
        top = tf.math.top_k(x, 3)
        return (tf.sort(x), tf.argsort(x, 0, "DESCENDING", stable=True), top[0], top[1], tf.argmax(x, 1), tf.argmin(x, 0), tf.cumsum(x, 1), tf.cumsum(x, 0, exclusive=True, reverse=True), tf.math.cumprod(x, 1),
                tf.searchsorted(tf.sort(x[0]), x[1]), tf.math.in_top_k(k[:5], x, 2), tf.sort(k), tf.math.top_k(k, 4)[0])

    return sorts, (d.normal(5, 12), d.below(8, 12))


@program
def dynamic():
    """Dynamic shapes: boolean masks, unique values, sizes that depend on values."""
    d = Draw(10)

    def sizes(x, k):
        chosen = tf.boolean_mask(x, k > 3)
        where = tf.where(k > 3)
        rows = tf.gather(x, tf.reshape(where, [-1]))
        return (tf.reduce_sum(chosen), tf.reduce_sum(where), tf.reduce_sum(rows * rows), tf.shape(where)[0], tf.reduce_sum(tf.unique(k)[0]), tf.reduce_sum(tf.nn.softmax(chosen) @ tf.ones((4, 2))),
                tf.reduce_max(tf.concat([rows, x], 0)))

    return sizes, (d.normal(12, 4), d.below(8, 12))


@program
def fft():
    """Fourier transforms, and a spectrogram."""
    d = Draw(11)

    def transforms(x, y):
        c = tf.complex(x, y)
        return (tf.signal.fft(c), tf.signal.ifft(c), tf.signal.rfft(x), tf.signal.irfft(c), tf.signal.fft2d(c), tf.abs(tf.signal.stft(tf.reshape(x, [-1]), 16, 8)), tf.math.angle(c), tf.exp(c), c * tf.math.conj(c),
                tf.signal.dct(x))

    return transforms, (d.normal(4, 12), d.normal(4, 12))


@program
def linalg():
    """Factorizations. Outputs do not depend on the signs of vectors."""
    d = Draw(12)

    def factors(a, b):
        s = a @ tf.transpose(a) + 4 * tf.eye(6)
        l = tf.linalg.cholesky(s)
        q, r = tf.linalg.qr(a)
        w, v = tf.linalg.eigh(s)
        t, u, z = tf.linalg.svd(b)
        return (l, q @ r, w, (v * w) @ tf.transpose(v), t, (u * t) @ tf.transpose(z), tf.linalg.triangular_solve(l, b), tf.linalg.solve(a, b), tf.linalg.inv(s), tf.linalg.band_part(a, 1, 1),
                tf.linalg.diag(a), tf.linalg.diag_part(a), tf.linalg.cholesky_solve(l, b), tf.linalg.trace(a))

    return factors, (d.normal(6, 6), d.normal(6, 4))


@program
def optimizer():
    """Adam with clipping and decay."""
    d = Draw(15)

    def step(w, b, gw, gb, mw, mb, nw, nb, count):
        (gw, gb), norm = tf.clip_by_global_norm([gw, gb], 1.0)
        count = count + 1.0
        rate = 1e-2 * tf.minimum(count / 10, 0.5 * (1 + tf.cos(np.float32(np.pi) * count / 100)))
        results = [norm, count]
        for p, g, m, n in ((w, gw, mw, nw), (b, gb, mb, nb)):
            m, n = 0.9 * m + 0.1 * g, 0.999 * n + 0.001 * tf.square(g)
            results += [p - rate * (m / (1 - 0.9**count) / (tf.sqrt(n / (1 - 0.999**count)) + 1e-8) + 0.01 * p), m, n]
        return results

    pair = lambda f: [f(8, 12), f(12)]
    return step, pair(d.normal) + pair(d.normal) + pair(d.normal) + pair(d.uniform) + [np.float32(3)]


@program
def math():
    """Elementary and special functions, integers and conversions."""
    d = Draw(16)
    unary = "exp sin cos tan tanh sinh cosh asinh atan expm1 abs sign floor ceil round rint erf erfc sigmoid softplus".split()

    def functions(x, p, i, j):
        return ([getattr(tf.math, n)(x) for n in unary], [getattr(tf.math, n)(p) for n in "log log1p sqrt rsqrt lgamma digamma acosh reciprocal".split()], tf.math.erfinv(x / 4), tf.math.ndtri(p / 4), p**x, tf.atan2(x, p),
                tf.math.floormod(x, p), tf.math.igamma(p, p + 1), tf.math.betainc(p, p + 1, p / 4), tf.math.zeta(p + 2, p), tf.math.polygamma(1 + 0 * p, p), tf.math.bessel_i0e(x), tf.math.nextafter(x, p), tf.math.xlogy(p, p),
                i + j, i * j, i // j, i % j, tf.bitwise.bitwise_xor(i, j), tf.bitwise.left_shift(i, j % 8), tf.bitwise.invert(i), tf.cast(i, tf.uint8), tf.cast(x, tf.int32), tf.cast(x, tf.float16),
                tf.bitcast(x, tf.int32), tf.nn.relu6(x), tf.nn.elu(x), tf.nn.selu(x), tf.nn.leaky_relu(x), tf.clip_by_value(i, -5, 5), tf.reduce_all(x > 0), tf.math.l2_normalize(x), tf.math.reduce_logsumexp(x))

    return functions, (2 * d.normal(24), 1 + 3 * d.uniform(24), d.below(2000, 24) - 1000, d.below(50, 24) + 1)


@program
def shapes():
    """Movement of elements."""
    d = Draw(19)

    def moves(x, i):
        return (x[::2, 1:-1], tf.pad(x, [[1, 1], [0, 2]]), tf.pad(x, [[1, 1], [1, 1]], "REFLECT"), tf.reverse(x, [0]), tf.tile(x, (2, 1)), tf.roll(x, 2, 1), tf.transpose(x), tf.stack([x, x + 1], 1), tf.slice(x, (1, 1), (1, 3)),
  tf.gather(x, i, axis=1), tf.repeat(x, 2, 0), tf.reverse_sequence(x, i + 1, 1), tf.where(x > 0, x, 2.0), tf.meshgrid(x[0], x[:, 0]), tf.linspace(0.0, 1.0, 5), tf.range(3), tf.eye(3), tf.expand_dims(x, 1), tf.concat([x, x], 0), tf.unstack(x, axis=0)[1],
                tf.batch_to_space(tf.reshape(x, (4, 1, 6, 1)), (2, 2), [[0, 0], [0, 0]]), tf.sequence_mask(i, 6), tf.one_hot(i, 5, axis=0))

    return moves, (d.normal(4, 6), d.below(4, 4))


@program
def control():
    """Loops and branches."""
    d = Draw(20)

    def flow(x, n):
        a = tf.while_loop(lambda i, v: (i < n) & (tf.reduce_sum(v) < 100), lambda i, v: (i + 1, v * 1.5 + 1), (0, x))
        b = tf.cond(n > 2, lambda: tf.sin(x), lambda: x * 2)
        c = tf.switch_case(n - 2, [lambda: x, lambda: -x, lambda: x + 1])
        e = tf.map_fn(lambda row: tf.reduce_sum(row) * row, x)
        f = tf.scan(lambda s, row: s * 0.5 + row, x)
        return a, b, c, e, f

    return flow, (d.uniform(3, 4), np.int32(3))


@program
def random():
    """Random numbers without a state."""
    def draws(seed):
        return (tf.random.stateless_uniform((3, 4), seed), tf.random.stateless_normal((7,), seed), tf.random.stateless_truncated_normal((4,), seed), tf.random.stateless_uniform((6,), seed, 0, 10, tf.int32),
                tf.random.stateless_uniform((5,), seed, None, None, tf.int32))

    return draws, [np.array([7, 8], np.int32)]


@program
def wide_types():
    """f64, s64 and c128."""
    d = Draw(21)

    def functions(x, n):
        c = tf.complex(x, tf.reverse(x, [0]))
        return x @ tf.transpose(x), tf.exp(x), n * 3 // 7, tf.cast(n, tf.float64), c @ tf.transpose(c), tf.signal.fft(c), tf.linalg.cholesky(x @ tf.transpose(x) + 9 * tf.eye(4, dtype=tf.float64)), tf.sort(x), tf.reduce_sum(n)

    return functions, (d.normal(4, 6).astype(np.float64) / 3, d.below(100, 6).astype(np.int64) * 12345678901)


# ---------------------------------------------------------------------------------------------------------------- FP8


def fp8():
    return dtypes.float8_e4m3fn, dtypes.float8_e5m2


@program
def fp8_casts():
    """Conversions to and from FP8 types. The inputs include ties and large values."""
    d = Draw(22)
    x = np.concatenate([3 * d.normal(200), np.float32(2.0)**(d.below(40, 56) - 24) * (1 + d.below(64, 56) / np.float32(64)), [448, 464, 480, 57344, 1e6, -1e6, 0, -0.0]]).astype(np.float32)

    def casts(x):
        return [tf.cast(tf.cast(tf.cast(x, s), t), tf.float32) for t in fp8() for s in (tf.float32, tf.bfloat16, tf.float16)]

    fp8()
    return casts, [x]


def qdq(x, scale, dtype):
    limit = 448.0 if dtype == dtypes.float8_e4m3fn else 57344.0
    return tf.cast(tf.cast(tf.clip_by_value(x / scale, -limit, limit), dtype), tf.float32) * scale


@program
def fp8_grad():
    """The gradient of a quantized layer, whose gradient is quantized, too."""
    d = Draw(24)
    e4m3, e5m2 = fp8()

    @tf.custom_gradient
    def dense(x, w, sx, sw, sg):
        qx, qw = qdq(x, sx, e4m3), qdq(w, sw, e4m3)

        def grad(g):
            q = qdq(g, sg, e5m2)
            return q @ tf.transpose(qw), tf.transpose(qx) @ q, None, None, None

        return qx @ qw, grad

    return lambda x, w, sx, sw, sg: gradients(lambda x, w: tf.reduce_sum(tf.sin(tf.nn.relu(dense(x, w, sx, sw, sg)))), x, w), (d.normal(16, 32), weights(d, 32, 16), np.float32(0.01), np.float32(0.004), np.float32(0.0001))


@program
def fp8_out():
    """A layer whose result and amax are outputs."""
    d = Draw(26)
    e4m3, _ = fp8()

    def layer(x, w, b, sx, sw, sy):
        y = tf.nn.relu(qdq(x, sx, e4m3) @ qdq(w, sw, e4m3) + b)
        return tf.cast(tf.cast(tf.clip_by_value(y / sy, -448.0, 448.0), e4m3), tf.bfloat16), tf.reduce_max(y)

    return layer, (d.normal(16, 32), weights(d, 32, 16), d.normal(16), np.float32(0.01), np.float32(0.004), np.float32(0.02))


def run(make):
    """Returns the inputs and outputs of a program."""
    function, args = make()
    inputs = [np.asarray(v) for v in args]
    compiled = tf.function(_program.named(lambda *v: function(*v), make.__name__), jit_compile=True)
    return inputs, [v.numpy() for v in tf.nest.flatten(compiled(*[tf.constant(v) for v in inputs]))]


if __name__ == "__main__":
    _program.main(run)
