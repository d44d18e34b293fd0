# SPDX-License-Identifier: Apache-2.0
"""Defines programs of JAX: block-scaled products, ragged products, and attention."""
import jax
import jax.numpy as jnp

from _jax import array, program

BF16, E4M3 = jnp.bfloat16, jnp.float8_e4m3fn


@program
def jax_scaled_matmul():
    """Multiplies in MXFP8, with a power-of-two scale for 32 elements along k."""
    e8m0 = jnp.float8_e8m0fnu
    return (lambda a, b, sa, sb: jax.nn.scaled_matmul(a, b, sa, sb, preferred_element_type=BF16),
            array((1, 64, 128), E4M3), array((1, 96, 128), E4M3), array((1, 64, 4), e8m0), array((1, 96, 4), e8m0))


@program
def jax_scaled_dot_general():
    """Quantizes to MXFP8 at run time, with both gradients."""
    config = jax.nn.get_scaled_dot_general_config("mxfp8")

    def loss(x, w):
        y = jax.nn.scaled_dot_general(x, w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32, configs=[config] * 3)
        return jnp.sum(y ** 2)

    return jax.grad(loss, (0, 1)), array((64, 128)), array((128, 96))


@program
def jax_ragged_dot():
    """Computes a mixture of experts with fp8 tokens and weights, and scales per token and per expert."""

    def experts(x, w, sizes, sx, sw):
        y = jax.lax.ragged_dot(x, w, sizes, preferred_element_type=jnp.float32)
        expert = jnp.repeat(jnp.arange(4), sizes, total_repeat_length=64)
        return (y * sx * sw[expert][:, None]).astype(BF16)

    return experts, array((64, 32), E4M3), array((4, 32, 48), E4M3), array((4,), jnp.int32), array((64, 1)), array((4,))


@program
def jax_algorithm():
    """Computes a product whose algorithm attribute requests fp8."""
    fast = jax.lax.DotAlgorithmPreset.ANY_F8_ANY_F8_F32_FAST_ACCUM

    def product(a, b, scale):
        return jax.lax.dot_general(a, b, (((1,), (1,)), ((), ())), precision=fast, preferred_element_type=jnp.float32) * scale

    return product, array((32, 64), E4M3), array((48, 64), E4M3), array(())


@program
def jax_experts():
    """Computes a mixture of experts by one-hot einsums, with a scale per token, and per expert and column."""

    def quantized(v, axis):
        scale = jnp.max(jnp.abs(v), axis=axis, keepdims=True).astype(jnp.float32) / 448
        return jnp.clip(v / scale, -448, 448).astype(E4M3), scale

    def experts(x, up, down, router):
        p = jax.nn.softmax(x.astype(jnp.float32) @ router)
        h, sh = quantized(jnp.einsum("te,td->etd", (p > 0.3).astype(BF16), x), -1)
        w, sw = quantized(up, 1)
        y = jax.nn.silu(jnp.einsum("etd,edf->etf", h, w, preferred_element_type=jnp.float32) * sh * sw).astype(BF16)
        (y, sy), (w, sw) = quantized(y, -1), quantized(down, 1)
        z = jnp.einsum("etf,efd->etd", y.astype(BF16) * sy.astype(BF16), w.astype(BF16) * sw.astype(BF16))
        return jnp.einsum("etd,te->td", z, p.astype(BF16))

    return experts, array((32, 64), BF16), array((4, 64, 128), BF16), array((4, 128, 64), BF16), array((64, 4))


def fixed(p, scale):
    """Quantizes probabilities with a constant scale, because they are at most 1."""
    return (p * scale).astype(E4M3).astype(BF16) * jnp.asarray(1 / scale, BF16)


@program
def jax_attention_grouped():
    """Computes both products of attention with groups of heads that share keys and values; the softmax has a separate
    scale."""

    def attention(q, k, v, sq, sk, sv):
        s = jnp.einsum("btgre,bsge->bgrts", q.astype(BF16) * sq, k.astype(BF16) * sk)
        p = jax.nn.softmax(s.astype(jnp.float32) / 32 ** 0.5)
        return jnp.einsum("bgrts,bsge->btgre", fixed(p, 448), v.astype(BF16) * sv)

    scales = [array((), BF16)] * 3
    return attention, array((2, 64, 2, 4, 32), E4M3), array((2, 64, 2, 32), E4M3), array((2, 64, 2, 32), E4M3), *scales


@program
def jax_attention_blocks():
    """Computes attention in a loop over blocks of keys and values, with the running maximum and sum of the softmax."""

    def attention(q, k, v, sq, sk, sv):
        b, t, h, e = q.shape
        wide = q.astype(BF16) * sq

        def step(carry, block):
            top, total, out = carry
            keys, values = block
            s = jnp.einsum("bqhe,bkhe->bhqk", wide, keys.astype(BF16) * sk, preferred_element_type=jnp.float32)
            peak = jnp.maximum(top, s.max(-1))
            p, shrink = jnp.exp(s - peak[..., None]), jnp.exp(top - peak)
            more = jnp.einsum("bhqk,bkhe->bhqe", fixed(p, 256), values.astype(BF16) * sv,
                              preferred_element_type=jnp.float32)
            return (peak, total * shrink + p.sum(-1), out * shrink[..., None] + more), None

        blocks = [x.reshape(b, 4, t // 4, h, e).swapaxes(0, 1) for x in (k, v)]
        start = jnp.full((b, h, t), -jnp.inf), jnp.zeros((b, h, t)), jnp.zeros((b, h, t, e))
        (_, total, out), _ = jax.lax.scan(step, start, blocks)
        return out / total[..., None]

    return attention, *[array((2, 64, 4, 32), E4M3)] * 3, *[array((), BF16)] * 3
