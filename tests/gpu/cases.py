# SPDX-License-Identifier: Apache-2.0
"""Defines the cases of speeds.py: HLO modules as text, as jax would lower them, and the FLOPs of their matmuls."""
import dataclasses
import re

SQUARES = (1024, 2048, 4096, 8192, 16384)
# By model: hidden and feed-forward sizes, and the total width of keys and values.
LLAMA = {"llama-8b": (4096, 14336, 2048), "llama-70b": (8192, 28672, 2048)}
TOKENS = 8192


@dataclasses.dataclass
class Case:
    name: str
    text: str
    flops: int
    sizes: tuple = None  # (m, n, k) if the case is only one matmul


def matmul(m, n, k, fused=False, scales=True, precision="default"):
    """Returns D[m,n] = A[m,k] B[n,k]^T of fp8 operands as bf16 or, if fused, with a relu, an amax and an fp8 result."""
    f8, wide = "f8e4m3fn", "f32" if fused else "bf16"
    relu = "\n".join((
        "  %zero = f32[] constant(0)",
        f"  %zeros = f32[{m},{n}]{{1,0}} broadcast(%zero), dimensions={{}}",
        f"  %relu = f32[{m},{n}]{{1,0}} maximum(%dot, %zeros)",
        f"  %amax = f32[] reduce(%relu, %zero), dimensions={{0,1}}, to_apply=%max",
        '  %sd = f32[] parameter(4), metadata={op_name="d_scale"}',
        f"  %sds = f32[{m},{n}]{{1,0}} broadcast(%sd), dimensions={{}}",
        f"  %scaled = f32[{m},{n}]{{1,0}} multiply(%relu, %sds)",
        "  %least = f32[] constant(-448)",
        "  %most = f32[] constant(448)",
        f"  %clamped = f32[{m},{n}]{{1,0}} clamp(%least, %scaled, %most)",
        f"  %d = {f8}[{m},{n}]{{1,0}} convert(%clamped)",
        f"  ROOT %out = ({f8}[{m},{n}]{{1,0}}, f32[]) tuple(%d, %amax)"))
    lines = []
    for name, number, rows in (("a", 0, m), ("b", 1, n)):
        lines.append(f"  %{name} = {f8}[{rows},{k}]{{1,0}} parameter({number})")
        lines.append(f"  %{name}w = f32[{rows},{k}]{{1,0}} convert(%{name})")
        value = f"%{name}w"
        if scales:
            lines.append(f'  %s{name} = f32[] parameter({number + 2}), metadata={{op_name="{name}_scale"}}')
            lines.append(f"  %s{name}s = f32[{rows},{k}]{{1,0}} broadcast(%s{name}), dimensions={{}}")
            lines.append(f"  %{name}m = f32[{rows},{k}]{{1,0}} multiply({value}, %s{name}s)")
            value = f"%{name}m"
        lines.append(f"  %{name}d = {wide}[{rows},{k}]{{1,0}} convert({value})")
    root = "" if fused else "ROOT "
    lines.append(f"  {root}%dot = {wide}[{m},{n}]{{1,0}} dot(%ad, %bd), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}, "
                 f"operand_precision={{{precision},{precision}}}")
    lines += [relu] if fused else []
    given = f"a: {f8}[{m},{k}], b: {f8}[{n},{k}]" + (", sa: f32[], sb: f32[]" if scales else "")
    given += ", sd: f32[]" if fused else ""
    made = f"({f8}[{m},{n}], f32[])" if fused else f"bf16[{m},{n}]"
    maximum = ("%max (x: f32[], y: f32[]) -> f32[] {\n  %x = f32[] parameter(0)\n  %y = f32[] parameter(1)\n"
               "  ROOT %m = f32[] maximum(%x, %y)\n}\n\n") if fused else ""
    return f"HloModule matmul\n\n{maximum}ENTRY %main ({given}) -> {made} {{\n" + "\n".join(lines) + "\n}\n"


def matmul_case(name, m, n, k, **how):
    return Case(f"{name} {m}x{n}x{k}", matmul(m, n, k, **how), 2 * m * n * k, (m, n, k))


def squares(sizes=SQUARES):
    return [matmul_case("matmul", s, s, s) for s in sizes]


def llama(tokens=TOKENS, divisor=1):
    """Returns the matmuls of a layer: q, k and v as one matmul, gate and up as one."""
    cases = []
    for model, widths in LLAMA.items():
        hidden, ffn, kv = (width // divisor for width in widths)
        for name, n, k in (("qkv", hidden + kv, hidden), ("out", hidden, hidden), ("gate+up", 2 * ffn, hidden),
                           ("down", hidden, ffn)):
            cases.append(matmul_case(f"{model} {name}", tokens, n, k))
    return cases


def fused(size=8192):
    return [matmul_case("matmul+relu+amax+fp8", size, size, size, fused=True)]


def questions(size=8192):
    """Returns cases that measure the cost of scale pointers, and the speed with fast accumulation on (the default)
    and off."""
    return [matmul_case(f"{'scales' if scales else 'no scales'}, {'fast' if precision == 'default' else 'full'} "
                        "accumulation", size, size, size, scales=scales, precision=precision)
            for scales in (True, False) for precision in ("default", "highest")]


# Each group of rows is multiplied by a separate matrix.
RAGGED = """HloModule ragged

ENTRY %main (x: f8e4m3fn[64,32], w: f8e4m3fn[4,32,48], g: s32[4], sx: f32[], sw: f32[]) -> f32[64,48] {
  %x = f8e4m3fn[64,32]{1,0} parameter(0)
  %w = f8e4m3fn[4,32,48]{2,1,0} parameter(1)
  %g = s32[4]{0} parameter(2)
  %sx = f32[] parameter(3), metadata={op_name="x_scale"}
  %sw = f32[] parameter(4), metadata={op_name="w_scale"}
  %xc = f32[64,32]{1,0} convert(%x)
  %sxs = f32[64,32]{1,0} broadcast(%sx), dimensions={}
  %xd = f32[64,32]{1,0} multiply(%xc, %sxs)
  %wc = f32[4,32,48]{2,1,0} convert(%w)
  %sws = f32[4,32,48]{2,1,0} broadcast(%sw), dimensions={}
  %wd = f32[4,32,48]{2,1,0} multiply(%wc, %sws)
  ROOT %d = f32[64,48]{1,0} ragged-dot(%xd, %wd, %g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}
}
"""
# Element type, scale type, and the number of elements that share a scale.
BLOCKS = {"mxfp8": ("f8e4m3fn", "f8e8m0fnu", 32), "nvfp4": ("f4e2m1fn", "f8e4m3fn", 16)}


def block_scaled(kind, m, n, k):
    """Returns D[m,n] = A[m,k] B[n,k]^T as bf16, with nonnegative scales per block along k."""
    element, scale, block = BLOCKS[kind]
    given = {"a": f"{element}[{m},{k}]", "b": f"{element}[{n},{k}]", "s": f"{scale}[{m},{k // block}]",
             "t": f"{scale}[{n},{k // block}]"}
    lines = [f"  %{name} = {shape}{{1,0}} parameter({i})" for i, (name, shape) in enumerate(given.items())]
    scales = ["%s", "%t"]
    if kind == "nvfp4":
        lines += [f"  %{name}a = {given[name]}{{1,0}} abs(%{name})" for name in "st"]
        scales = ["%sa", "%ta"]
    lines.append(f"  ROOT %d = bf16[{m},{n}]{{1,0}} scaled-dot(%a, %b, {', '.join(scales)}), lhs_contracting_dims={{1}}, "
                 "rhs_contracting_dims={1}")
    header = ", ".join(f"{name}: {shape}" for name, shape in given.items())
    text = f"HloModule {kind}\n\nENTRY %main ({header}) -> bf16[{m},{n}] {{\n" + "\n".join(lines) + "\n}\n"
    return Case(f"block-scaled {kind} {m}x{n}x{k}", text, 2 * m * n * k)


# Sizes of a corpus module, and their replacements. Other sizes (lengths of histories, and 1) are not replaced.
MLP = {32: 8192, 64: 4096, 256: 16384}
ENCODER = {2: 4, 4: 32, 16: 128, 32: 2048, 64: 4096, 256: 16384}
# Half the head size equals the batch size, before and after scaling.
LLAMA_TRAIN = {4: 32, 8: 64, 16: 128, 31: 127, 32: 128, 64: 4096, 128: 8192, 256: 8192}
MODELS = {"mlp_qdq_fwd": MLP, "mlp_qdq_train": MLP, "encoder_qdq_fwd": ENCODER, "encoder_qdq_train": ENCODER,
          "llama_train": LLAMA_TRAIN}


def scaled(text, sizes):
    """Returns the module with other sizes: in shapes, slices, padding, and in constants that represent a size."""
    def number(found):
        return str(sizes.get(int(found[0]), int(found[0])))

    def numbers(found):
        return re.sub(r"\d+", number, found[0])

    def shape(found):
        return found[1] + re.sub(r"\d+", number, found[2]) + "]"

    def constant(found):
        value = int(found[2])
        if found[1].startswith("bf16"):  # a constant that is the square root of the head size
            return found[1] + f"{sizes[value * value] ** 0.5:.4g})"
        return found[1] + f"{sizes[value]})"

    head, body = text.split("\n%", 1)
    head = re.sub(r"\b((?:f32|bf16|f8e4m3fn|f8e5m2|s32|pred)\[)(\d[\d,]*)\]", shape, head.split("\n")[0])
    body = re.sub(r", metadata=\{(?:[^{}\"]|\"(?:[^\"\\]|\\.)*\")*\}", "", body)
    body = re.sub(r"\b((?:f32|bf16|f16|f8e4m3fn|f8e5m2|s32|u32|pred)\[)(\d[\d,]*)\]", shape, body)
    body = re.sub(r"\b(?:slice|slice_sizes|dynamic_slice_sizes)=\{[^}]*\}|\bpadding=[-\dx_]+", numbers, body)
    body = re.sub(r"(f32\[\](?:\{\})? constant\()(64)\)", constant, body)
    body = re.sub(r"(bf16\[\](?:\{\})? constant\()(4)\)", constant, body)
    return f"{head}\n\n%{body}"


def model_case(name, text, flops_of, sizes=None):
    """Returns a scaled-up corpus module as a case; flops_of(text) counts its FLOPs."""
    text = scaled(text, MODELS[name] if sizes is None else sizes)
    return Case(name, text, flops_of(text))
