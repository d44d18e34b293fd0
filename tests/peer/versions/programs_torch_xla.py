# SPDX-License-Identifier: Apache-2.0
"""Programs in PyTorch/XLA. Each registered function returns a function of tensors, and its arguments."""
import numpy as np
import torch
import torch.nn.functional as F
import torch_xla
import torch_xla.core.xla_model as xm

import _program
from _program import Draw, program


def weights(draw, *shape):
    return draw.normal(*shape) / np.float32(shape[-1])**np.float32(0.5)


def gradients(loss, *values):
    values = [v.detach().requires_grad_() for v in values]
    result = loss(*values)
    return [result.detach(), *torch.autograd.grad(result, values)]


@program
def mlp():
    """A training step with layer norm, gelu and cross entropy."""
    d = Draw(1)

    def step(x, labels, w1, b1, w2, b2):
        loss = lambda w1, b1, w2, b2: F.cross_entropy(F.linear(F.gelu(F.linear(F.layer_norm(x, (16,)), w1, b1), approximate="tanh"), w2, b2), labels)
        value, *grads = gradients(loss, w1, b1, w2, b2)
        return [value] + [p - 0.1 * g for p, g in zip((w1, b1, w2, b2), grads)]

    return step, (d.normal(8, 16), d.below(10, 8).astype(np.int64), weights(d, 32, 16), 0.1 * d.normal(32), weights(d, 10, 32), 0.1 * d.normal(10))


@program
def mlp_bf16():
    """The gradient of an MLP in bf16."""
    d = Draw(2)

    def layers(x, w1, w2):
        x, w1, w2 = (v.to(torch.bfloat16) for v in (x, w1, w2))
        return gradients(lambda a, b: F.linear(F.silu(F.linear(x, a)), b).float().sum(), w1, w2)

    return layers, (d.normal(8, 16), weights(d, 32, 16), weights(d, 8, 32))


@program
def attention():
    """Causal attention and its gradient."""
    d = Draw(3)

    def attend(x, wqkv, wo):
        def loss(x, wqkv, wo):
            q, k, v = F.linear(x, wqkv).view(2, 8, 3, 2, 8).permute(2, 0, 3, 1, 4)
            scores = (q @ k.transpose(-1, -2)) / 8**0.5
            scores = scores.masked_fill(torch.ones(8, 8, device=x.device).tril() == 0, float("-inf"))
            return torch.sin(F.linear((scores.softmax(-1) @ v).transpose(1, 2).reshape(2, 8, 16), wo)).sum()

        return gradients(loss, x, wqkv, wo)

    return attend, (d.normal(2, 8, 16), weights(d, 48, 16), weights(d, 16, 16))


@program
def attention_fused():
    """PyTorch's function for attention."""
    d = Draw(4)
    return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), [d.normal(2, 2, 8, 16) for _ in range(3)]


@program
def resnet():
    """The gradient of a residual block: convolutions, batch norm, pooling."""
    d = Draw(5)

    def step(x, w1, w2, w3, g, b):
        def loss(x, w1, w2, w3, g, b):
            y = F.max_pool2d(x, 3, 2, 1)
            z = F.relu(F.batch_norm(F.conv2d(y, w1, stride=2, padding=1), None, None, g, b, True))
            z = F.relu(F.conv2d(z, w2, padding=1) + F.conv2d(y, w3, stride=2))
            return (F.avg_pool2d(z, 2, 1)**2).mean() + F.adaptive_avg_pool2d(z, 1).sum()

        return gradients(loss, x, w1, w2, w3, g, b)

    shapes = [(8, 3, 3, 3), (8, 8, 3, 3), (8, 3, 1, 1)]
    return step, [d.normal(2, 3, 16, 16)] + [weights(d, *s) / 3 for s in shapes] + [1 + 0.1 * d.normal(8), d.normal(8)]


@program
def convolutions():
    """Grouped, dilated, transposed and one-dimensional convolutions, and resizing."""
    d = Draw(6)

    def convs(x, grouped, dilated, transposed, line):
        return [F.conv2d(x, grouped, padding=1, groups=4), F.conv2d(x, dilated, dilation=2), F.conv_transpose2d(x, transposed, stride=2), F.conv1d(x[:, :, 0], line, padding=1), F.interpolate(x, size=(5, 11), mode="bilinear", align_corners=False),
                F.interpolate(x, scale_factor=2, mode="nearest"), F.pixel_shuffle(x, 2), F.group_norm(x, 2), F.instance_norm(x)]

    shapes = [(2, 4, 8, 8), (8, 1, 3, 3), (2, 4, 3, 3), (4, 4, 2, 2), (4, 4, 3)]
    return convs, [d.normal(*s) for s in shapes]


@program
def lstm():
    """An LSTM layer, unrolled, and its gradient."""
    d = Draw(7)

    def step(w, u, b, xs):
        def loss(w, u, b):
            h = c = torch.zeros(3, 8, device=xs.device)
            total = 0
            for x in xs.unbind(0):
                i, f, g, o = (F.linear(x, w) + F.linear(h, u) + b).chunk(4, -1)
                c = torch.sigmoid(f + 1) * c + torch.sigmoid(i) * torch.tanh(g)
                h = torch.sigmoid(o) * torch.tanh(c)
                total = total + (h * h).mean()
            return total

        return gradients(loss, w, u, b)

    return step, [weights(d, 32, 6), weights(d, 32, 8), d.normal(32), d.normal(5, 3, 6)]


@program
def embedding():
    """Gathers and scatters, with gradients."""
    d = Draw(8)

    def step(table, ids, values):
        loss = lambda table: (torch.sin(F.embedding(ids, table)) * values).sum()
        return [*gradients(loss, table), table.index_add(0, ids[0], values[0]), table.scatter(0, ids[:, :6], values[:, 0]), table.gather(0, ids[:, :6]), table.index_select(1, ids[0] % 6), F.one_hot(ids, 20),
                table.index_put((ids[1][:2],), values[0][:2]), table.scatter_add(0, ids[:, :6], values[:, 1]), table[ids[0]]]

    return step, (d.normal(20, 6), d.below(20, 2, 7).astype(np.int64), d.normal(2, 7, 6))


@program
def sort_topk():
    """Sorts, selections and scans."""
    d = Draw(9)

    def sorts(x, k):
        return [*x.sort(1), x.argsort(0, descending=True), *x.topk(3), x.argmax(1), x.cumsum(1), x.cumprod(0), *k.sort(), x.max(1)[0], x.min(0)[1], *x.kthvalue(2, 1), x.logsumexp(1)]

    return sorts, (d.normal(5, 12), d.below(8, 12).astype(np.int64))


@program
def linalg():
    """Factorizations. Outputs do not depend on the signs of vectors."""
    d = Draw(12)

    def factors(a, b):
        s = a @ a.T + 4 * torch.eye(6, device=a.device)
        l = torch.cholesky(s)
        u, t, v = torch.svd(b)
        return l, (u * t) @ v.T, t, torch.triangular_solve(b, l, upper=False)[0], torch.inverse(s), torch.linalg.vector_norm(a), a.tril(), a.diag(), a.trace(), torch.slogdet(s)[1]

    return factors, (d.normal(6, 6), d.normal(6, 4))


@program
def eigh():
    """Eigenvalues of a symmetric matrix."""
    def values(a):
        w, v = torch.linalg.eigh(a + a.T)
        return w, (v * w) @ v.T

    return values, [Draw(13).normal(6, 6)]


@program
def optimizer():
    """PyTorch's Adam, on leaves that are inputs."""
    d = Draw(15)

    def step(w, b, gw, gb):
        leaves = [w.detach().clone().requires_grad_(), b.detach().clone().requires_grad_()]
        adam = torch.optim.AdamW(leaves, lr=1e-2)
        for _ in range(2):
            for leaf, grad in zip(leaves, (gw, gb)):
                leaf.grad = grad * 1.5
            torch.nn.utils.clip_grad_norm_(leaves, 1.0)
            adam.step()
        return [v.detach() for v in leaves]

    return step, [d.normal(8, 12), d.normal(12), d.normal(8, 12), d.normal(12)]


@program
def math():
    """Elementary functions, integers and conversions."""
    d = Draw(16)
    unary = "exp sin cos tan tanh sinh cosh asinh atan expm1 abs sign floor ceil round trunc erf erfc sigmoid relu erfinv isfinite frac".split()

    def functions(x, p, i, j):
        y = x / 4
        return [getattr(torch, n)(y if n == "erfinv" else x) for n in unary] + [getattr(torch, n)(p) for n in "log log1p log2 sqrt rsqrt acosh reciprocal".split()] + [
            p**x, torch.atan2(x, p), torch.remainder(x, p), torch.fmod(x, p), i + j, i * j, i // j, i % j, i ^ j, i << (j % 8), ~i, i.to(torch.uint8), x.to(torch.int32), x.half(), x.clamp(-1, 1),
            F.elu(x), F.selu(x), F.leaky_relu(x), F.hardswish(x), F.hardtanh(x), F.softplus(x), F.mish(x), F.gelu(x), torch.where(x > 0, x, p), x.norm(), x.var(), x.std(), x.prod(), (x > 0).any(), F.logsigmoid(x), torch.lerp(x, p, 0.3)]

    return functions, (2 * d.normal(24), 1 + 3 * d.uniform(24), (d.below(2000, 24) - 1000).astype(np.int64), (d.below(50, 24) + 1).astype(np.int64))


@program
def shapes():
    """Movement of elements."""
    d = Draw(19)

    def moves(x, i):
        return [x[::2, 1:-1], F.pad(x, (1, 2, 0, 1)), F.pad(x[None], (1, 1, 1, 1), mode="reflect"), x.flip(0), x.repeat(2, 1), x.roll(2, 1), x.t().contiguous(), torch.stack([x, x + 1], 1), x.narrow(1, 1, 3), x.repeat_interleave(2, 0),
                x.expand(2, 4, 6), torch.cat([x, x]), x.triu(1), torch.arange(5, device=x.device) + i[0], torch.meshgrid(x[0], x[:, 0], indexing="ij")[1], x.permute(1, 0).reshape(3, 8), x.as_strided((3, 3), (6, 1)), x.unbind(1)[2], x.masked_fill(x > 0, 3)]

    return moves, (d.normal(4, 6), d.below(4, 4).astype(np.int64))


@program
def wide_types():
    """f64, and sums of s64."""
    d = Draw(21)

    def functions(x, n):
        return x @ x.T, x.exp(), n * 3 // 7, n.double(), x.sort()[0], x.float(), n.sum(), x.cumsum(0)

    return functions, (d.normal(4, 6).astype(np.float64) / 3, d.below(100, 6).astype(np.int64) * 12345678901)


# ---------------------------------------------------------------------------------------------------------------- FP8


@program
def fp8_casts():
    """Conversions to and from FP8 types. The inputs include ties and large values."""
    d = Draw(22)
    x = np.concatenate([3 * d.normal(200), np.float32(2.0)**(d.below(40, 56) - 24) * (1 + d.below(64, 56) / np.float32(64)), [448, 464, 480, 57344, 1e6, -1e6, 0, -0.0]]).astype(np.float32)

    def casts(x):
        return [v.to(t).float() for t in (torch.float8_e4m3fn, torch.float8_e5m2) for v in (x, x.bfloat16(), x.half())]

    return casts, [x]


def qdq(x, scale, dtype):
    limit = torch.finfo(dtype).max
    return (x / scale).clamp(-limit, limit).to(dtype).to(x.dtype) * scale.to(x.dtype)


@program
def fp8_qdq():
    """A quantized layer with bias and relu, whose operands are in bf16."""
    d = Draw(24)

    def layer(x, w, b, sx, sw):
        e4m3 = torch.float8_e4m3fn
        x, w, b = (v.bfloat16() for v in (x, w, b))
        return [F.relu(F.linear(qdq(x, sx, e4m3), qdq(w, sw, e4m3), b)).float()]

    return layer, (d.normal(16, 32), weights(d, 16, 32), d.normal(16), np.float32(0.0078125), np.float32(0.00390625))


@program
def fp8_train():
    """The gradient of a layer, whose gradient is quantized, too."""
    d = Draw(25)

    class Quantize(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale, forward, backward):
            ctx.scale, ctx.type = scale, backward
            return qdq(x, scale, forward) if forward else x

        @staticmethod
        def backward(ctx, g):
            return (qdq(g, ctx.scale, ctx.type) if ctx.type else g), None, None, None

    def step(x, w, sx, sw, sg):
        e4m3, e5m2 = torch.float8_e4m3fn, torch.float8_e5m2
        return gradients(lambda x, w: torch.sin(F.relu(Quantize.apply(F.linear(Quantize.apply(x, sx, e4m3, None), Quantize.apply(w, sw, e4m3, None)), sg, None, e5m2))).sum(), x, w)

    return step, (d.normal(16, 32), weights(d, 16, 32), np.float32(0.01), np.float32(0.004), np.float32(0.0001))


def array(tensor):
    """Returns the elements as an array: raw bytes for types that NumPy lacks."""
    tensor, size = tensor.detach().cpu(), tensor.element_size()
    if tensor.dtype == torch.bfloat16 or "float8" in str(tensor.dtype):
        return tensor.contiguous().view(torch.int16 if size == 2 else torch.int8).numpy().view("V" + str(size))
    return tensor.numpy()


def run(make):
    """Returns the inputs and outputs of a program. The inputs are those of the module, which also has parameters for
    some constants, in the order of the module."""
    function, args = make()
    tensors = [torch.from_numpy(np.array(v)).to(xm.xla_device()) for v in args]
    outputs = function(*tensors)
    outputs = [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)
    inputs = [array(v) for v in torch_xla._XLAC._get_tensors_xla_device_data_node(outputs)[1]]
    torch_xla._XLAC._xla_sync_multi(outputs, [str(xm.xla_device())], True, True)
    return inputs, [array(v) for v in outputs]


if __name__ == "__main__":
    _program.main(run)
