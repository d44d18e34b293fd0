# SPDX-License-Identifier: Apache-2.0
"""Defines programs of PyTorch, as traced by torch-xla: weights [n, k], fake quantization, PT2E's operators,
torchao's layers, an export."""
import dataclasses
import itertools
import os

os.environ["PJRT_DEVICE"] = "CPU"
os.environ["XLA_DISABLE_FUNCTIONALIZATION"] = "1"  # torchao's tensor subclasses do not support it
import torch
import torch_xla
from torch.ao.quantization.fx import _decomposed as pt2e
from torch_xla import stablehlo
from torchao.float8 import Float8LinearConfig, convert_to_float8_training

from _program import collect

E4M3, E5M2, BF16 = torch.float8_e4m3fn, torch.float8_e5m2, torch.bfloat16


VALUES = itertools.count(3)


def array(*shape, dtype=torch.float32):
    """Returns an array that is a separate argument: torch-xla makes 0 and 1 constants, and equal scalars one
    argument."""
    return torch.full(shape, next(VALUES) / 8).to(dtype).to(torch_xla.device())


@collect
def program(make):
    """Registers a program; `make` returns values computed on the device, or StableHLO."""
    made = make()
    if isinstance(made, str):
        return made
    return torch_xla._XLAC._get_xla_tensors_hlo(list(made) if isinstance(made, tuple) else [made])


@program
def torch_linear():
    x, w, b = array(32, 64, dtype=E4M3), array(96, 64, dtype=E4M3), array(96, dtype=BF16)
    sx, sw = array(), array()
    return torch.nn.functional.linear(x.to(BF16) * sx.to(BF16), w.to(BF16) * sw.to(BF16), b)


@program
def torch_linear_quantize():
    """Quantizes activations at run time with the current amax; weights are stored in fp8."""
    x, w, sw, b = array(32, 64, dtype=BF16), array(96, 64, dtype=E4M3), array(), array(96, dtype=BF16)
    scale = x.abs().max().float() / 448
    q = (x.float() / scale).clamp(-448, 448).to(E4M3)
    y = torch.nn.functional.linear(q.to(torch.float32) * scale, w.to(torch.float32) * sw)
    return torch.relu(y.to(BF16) + b)


@program
def torch_pt2e():
    """Uses PT2E's operators, with one scale each and a zero point of 0."""
    x, w = array(32, 64), array(96, 64, dtype=E4M3)
    q = pt2e.quantize_per_tensor(x, 0.05, 0, -448, 448, E4M3)
    x = pt2e.dequantize_per_tensor(q, 0.05, 0, -448, 448, E4M3)
    w = pt2e.dequantize_per_tensor(w, 0.002, 0, -448, 448, E4M3)
    return torch.nn.functional.linear(x, w, array(96))


@program
def torch_pt2e_bf16():
    """Uses PT2E's operators with scales that are tensors, and bf16 as the wide type."""
    x, w, b = array(32, 64, dtype=BF16), array(96, 64, dtype=E4M3), array(96, dtype=BF16)
    sx, sw = array(), array()
    q = (x.float() / sx).clamp(-448, 448).to(E4M3)
    x = pt2e.dequantize_per_tensor(q, sx, 0, -448, 448, E4M3, out_dtype=BF16).to(BF16)
    w = pt2e.dequantize_per_tensor(w, sw, 0, -448, 448, E4M3, out_dtype=BF16).to(BF16)
    return torch.relu(torch.nn.functional.linear(x, w, b))


@program
def torch_pt2e_zero_points():
    """Has zero points that are arguments and may differ from 0, so the product is not converted to FP8."""
    x, w = array(32, 64, dtype=E4M3), array(96, 64, dtype=E4M3)
    x, w = ((q.to(torch.float32) - array()) * array() for q in (x, w))
    return torch.nn.functional.linear(x, w)


@program
def torch_fake_quantize():
    """Trains with quantized and dequantized values, a straight-through estimator, and gradients in e5m2."""

    class FakeQuantize(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale, dtype):
            top = torch.finfo(dtype).max
            return ((x / scale).clamp(-top, top).to(dtype).to(x.dtype)) * scale

        @staticmethod
        def backward(ctx, g):
            return g, None, None

    x, w = array(32, 64), array(96, 64)
    x.requires_grad_(True), w.requires_grad_(True)
    sx, sw = array(), array()
    y = torch.nn.functional.linear(FakeQuantize.apply(x, sx, E4M3), FakeQuantize.apply(w, sw, E4M3))
    torch.relu(y).sum().backward()
    return y, x.grad, w.grad


@program
def torch_rowwise():
    """Multiplies by a scale per token and per output channel after the product."""
    x, w = array(32, 64, dtype=E4M3), array(96, 64, dtype=E4M3)
    sx, sw = array(32, 1), array(1, 96)
    return ((x.to(torch.float32) @ w.to(torch.float32).t()) * sx * sw).to(BF16)


@program
def torch_attention():
    """Computes attention by bmm of quantized operands, with a wide softmax."""
    q, k, v = (array(8, 16, 32, dtype=E4M3) for _ in range(3))
    sq, sk, sv = array(), array(), array()
    p = torch.softmax(torch.bmm(q.to(BF16) * sq.to(BF16), (k.to(BF16) * sk.to(BF16)).transpose(1, 2)) / 5.65, -1)
    return torch.bmm((p / 0.0025).clamp(-448, 448).to(E4M3).to(BF16) * 0.0025, v.to(BF16) * sv.to(BF16))



@program
def torchao_float8_linear():
    """Trains torchao's layer, with its scaled product emulated: forward and both gradients."""
    layer = torch.nn.Sequential(torch.nn.Linear(64, 96, bias=False)).to(torch_xla.device())
    layer = convert_to_float8_training(layer, config=Float8LinearConfig(emulate=True))
    x = array(32, 64)
    x.requires_grad_(True)
    y = layer(x)
    y.square().sum().backward()
    return y, x.grad, layer[0].weight.grad


@program
def torchao_float8_rowwise():
    layer = torch.nn.Sequential(torch.nn.Linear(64, 96, bias=True)).to(torch_xla.device())
    config = dataclasses.replace(Float8LinearConfig.from_recipe_name("rowwise"), emulate=True)
    layer = convert_to_float8_training(layer, config=config)
    return layer(array(32, 64))


@program
def torch_export_linear():
    """Exports a module by torch.export, as StableHLO, with a scale per token, and per output channel of the weight."""

    class Linear(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bias = torch.nn.Parameter(torch.full((96,), 0.375))

        def forward(self, x, weight, weight_scale):
            scale = (x.abs().amax(-1, keepdim=True) / 448).clamp(min=1e-12)
            x = (x / scale).clamp(-448, 448).to(E4M3).to(torch.float32) * scale
            return torch.nn.functional.linear(x, weight.to(torch.float32) * weight_scale, self.bias)

    inputs = torch.zeros(32, 64), torch.zeros(96, 64).to(E4M3), torch.ones(96, 1)
    exported = torch.export.export(Linear(), inputs).run_decompositions()
    return stablehlo.exported_program_to_stablehlo(exported).get_stablehlo_text()


@program
def torch_linear_batch():
    """Multiplies a batch of sequences; scales, a bias and a gelu follow the product."""
    x, w = array(2, 16, 64, dtype=BF16), array(96, 64, dtype=E4M3)
    s = x.abs().max().float() / 448
    q = (x / s.to(BF16)).clamp(-448, 448).to(E4M3)
    y = torch.nn.functional.linear(q.to(BF16), w.to(BF16)) * (s * array()).to(BF16)
    return torch.nn.functional.gelu(y + array(96, dtype=BF16), approximate="tanh")


@program
def torch_einsum():
    """Multiplies queries and keys with two batch dimensions."""
    x, w = array(2, 16, 64, dtype=E4M3), array(4, 16, 64, dtype=E4M3)
    return torch.einsum("btd,hkd->bhtk", x.to(BF16) * array(dtype=BF16), w.to(BF16) * array(dtype=BF16))


@program
def torch_swiglu():
    """Computes the gated layer of a transformer; its middle value is quantized with the current amax."""
    x = array(32, 64, dtype=E4M3)
    gate, up, down = array(128, 64, dtype=E4M3), array(128, 64, dtype=E4M3), array(64, 128, dtype=E4M3)
    sx = array()
    d = lambda q, s: q.to(torch.float32) * s
    h = torch.nn.functional.silu(torch.nn.functional.linear(d(x, sx), d(gate, array()))) * torch.nn.functional.linear(d(x, sx), d(up, array()))
    sh = h.abs().max() / 448
    qh = (h / sh).clamp(-448, 448).to(E4M3)
    return torch.nn.functional.linear(d(qh, sh), d(down, array())).to(BF16)


@program
def torch_kv_cache():
    """Computes attention of a query with keys and values stored in fp8."""
    q, k, v = array(2, 4, 1, 32, dtype=BF16), array(2, 4, 64, 32, dtype=E4M3), array(2, 4, 64, 32, dtype=E4M3)
    sq = q.abs().max().float() / 448
    qq = (q.float() / sq).clamp(-448, 448).to(E4M3)
    s = (qq.to(BF16) @ k.to(BF16).transpose(-1, -2)).float() * sq * array() / 5.65
    p = torch.softmax(s, -1)
    pq = (p * 448).to(E4M3)
    return (pq.to(BF16) @ v.to(BF16)).float() * array() / 448


@program
def torch_train():
    """Runs a step of SGD on two layers: forward in e4m3, gradients in e5m2, current scales."""
    class Forward(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            scale = x.abs().max().clamp(min=1e-12) / 448
            return (x / scale).to(E4M3).to(x.dtype) * scale

        @staticmethod
        def backward(ctx, g):
            return g

    class Backward(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            scale = g.abs().max().clamp(min=1e-12) / 57344
            return (g / scale).to(E5M2).to(g.dtype) * scale

    weights = [array(64, 64).requires_grad_(True) for _ in range(2)]
    optimizer = torch.optim.SGD(weights, lr=0.1)
    h = array(32, 64)
    for w in weights:
        h = torch.relu(Backward.apply(torch.nn.functional.linear(Forward.apply(h), Forward.apply(w))))
    (h - array(32, 64)).square().mean().backward()
    optimizer.step()
    return tuple(weights)


@program
def torch_detach():
    """Multiplies x + (q - x).detach(), which is not exactly q: the product is not converted to FP8."""
    x, w = array(32, 64), array(96, 64)

    def quantize(v, s):
        q = (v / s).clamp(-448, 448).to(E4M3).to(torch.float32) * s
        return v + (q - v).detach()

    x.requires_grad_(True), w.requires_grad_(True)
    y = torch.nn.functional.linear(quantize(x, array()), quantize(w, array()))
    y.sum().backward()
    return y, x.grad, w.grad
