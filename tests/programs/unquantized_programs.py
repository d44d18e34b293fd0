# SPDX-License-Identifier: Apache-2.0
"""Defines training steps of transformers without quantization, with the layers of public libraries, at sizes for which
--quantize=current selects matmuls: 8192 tokens, width 4096. They are only lowered."""
import os

os.environ["KERAS_BACKEND"] = "jax"
import equinox as eqx
import haliax as hax
import jax
import jax.numpy as jnp
import optax
from flax import linen as nn
from flax import nnx

from _jax import array, program

BF16 = jnp.bfloat16
BATCH, LENGTH, WIDTH, HIDDEN, HEADS, BYTES = 4, 2048, 4096, 16384, 32, 32768
TOKENS = array((BATCH, LENGTH), jnp.int32)
OPTIMIZER = optax.sgd(0.1)


def step(loss):
    """Returns a training step for a loss of parameters and further arguments."""

    def train_step(params, state, *args):
        value, gradients = jax.value_and_grad(loss)(params, *args)
        updates, state = OPTIMIZER.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, value

    return train_step


def entropy(logits, labels):
    return optax.softmax_cross_entropy_with_integer_labels(logits.astype(jnp.float32), labels).mean()


class Block(nn.Module):
    """A decoder layer of linen."""

    @nn.compact
    def __call__(self, x, mask):
        a = nn.RMSNorm(dtype=BF16)(x)
        x = x + nn.MultiHeadDotProductAttention(num_heads=HEADS, dtype=BF16, use_bias=False)(a, mask=mask)
        a = nn.RMSNorm(dtype=BF16)(x)
        gate, up = (nn.Dense(HIDDEN, use_bias=False, dtype=BF16)(a) for _ in range(2))
        return x + nn.Dense(WIDTH, use_bias=False, dtype=BF16)(nn.silu(gate) * up), None


def linen_step(model):
    variables = jax.eval_shape(model.init, jax.random.key(0), TOKENS)
    return step(lambda v, x, y: entropy(model.apply(v, x), y)), variables, jax.eval_shape(OPTIMIZER.init, variables), TOKENS, TOKENS


@program
def linen_encoder():
    """Trains an encoder layer of linen on pairs of arrays, with biases, dropout and LayerNorm."""

    class Encoder(nn.Module):
        @nn.compact
        def __call__(self, x, train):
            a = nn.LayerNorm(dtype=BF16)(x)
            a = nn.MultiHeadDotProductAttention(num_heads=HEADS, dtype=BF16)(a)
            x = x + nn.Dropout(0.1, deterministic=not train)(a)
            a = nn.gelu(nn.Dense(HIDDEN, dtype=BF16)(nn.LayerNorm(dtype=BF16)(x)))
            return x + nn.Dropout(0.1, deterministic=not train)(nn.Dense(WIDTH, dtype=BF16)(a))

    model, x = Encoder(), array((BATCH, LENGTH, WIDTH), BF16)
    variables = jax.eval_shape(lambda x: model.init(jax.random.key(0), x, False), x)

    def loss(v, x, y, key):
        return jnp.square(model.apply(v, x, True, rngs={"dropout": key}) - y).astype(jnp.float32).mean()

    return step(loss), variables, jax.eval_shape(OPTIMIZER.init, variables), x, x, jax.eval_shape(lambda: jax.random.key(0))


@program
def linen_decoder_scan():
    """Trains four decoder layers of linen in one loop, with rematerialization and stacked weights."""

    class Model(nn.Module):
        @nn.compact
        def __call__(self, tokens):
            x = nn.Embed(BYTES, WIDTH, dtype=BF16)(tokens)
            layers = nn.scan(nn.remat(Block, prevent_cse=False), variable_axes={"params": 0}, split_rngs={"params": True},
                             in_axes=nn.broadcast, length=4)
            x, _ = layers()(x, nn.make_causal_mask(tokens))
            return nn.Dense(BYTES, use_bias=False, dtype=BF16)(nn.RMSNorm(dtype=BF16)(x))

    return linen_step(Model())


@program
def nnx_decoder():
    """Trains a decoder layer of nnx with nnx's optimizer."""

    class Decoder(nnx.Module):
        def __init__(self, rngs):
            options = {"dtype": BF16, "rngs": rngs}
            self.embed = nnx.Embed(BYTES, WIDTH, **options)
            self.norms = nnx.List([nnx.RMSNorm(WIDTH, **options) for _ in range(3)])
            self.attention = nnx.MultiHeadAttention(HEADS, WIDTH, decode=False, **options)
            self.gate, self.up = (nnx.Linear(WIDTH, HIDDEN, use_bias=False, **options) for _ in range(2))
            self.down = nnx.Linear(HIDDEN, WIDTH, use_bias=False, **options)

        def __call__(self, tokens):
            x = self.embed(tokens)
            x = x + self.attention(self.norms[0](x), mask=nnx.make_causal_mask(tokens))
            a = self.norms[1](x)
            x = x + self.down(nnx.silu(self.gate(a)) * self.up(a))
            return self.embed.attend(self.norms[2](x))

    def make():
        model = Decoder(nnx.Rngs(0))
        return model, nnx.Optimizer(model, optax.adamw(1e-3), wrt=nnx.Param)

    graph, state = nnx.split(nnx.eval_shape(make))

    def train_step(state, x, y):
        model, optimizer = nnx.merge(graph, state)
        loss, gradient = nnx.value_and_grad(lambda m: entropy(m(x), y))(model)
        optimizer.update(model, gradient)
        return loss, nnx.split((model, optimizer))[1]

    return train_step, state, TOKENS, TOKENS


@program
def equinox_encoder():
    """Trains an encoder layer of Equinox, whose layers are functions of one token, mapped over tokens and batch."""

    class Encoder(eqx.Module):
        norms: list
        attention: eqx.nn.MultiheadAttention
        mlp: eqx.nn.MLP

        def __init__(self, key):
            self.norms = [eqx.nn.LayerNorm(WIDTH, dtype=BF16) for _ in range(2)]
            self.attention = eqx.nn.MultiheadAttention(HEADS, WIDTH, dtype=BF16, key=key)
            self.mlp = eqx.nn.MLP(WIDTH, WIDTH, HIDDEN, 1, jax.nn.gelu, dtype=BF16, key=key)

        def __call__(self, x):
            a = jax.vmap(self.norms[0])(x)
            x = x + self.attention(a, a, a)
            return x + jax.vmap(self.mlp)(jax.vmap(self.norms[1])(x))

    model = eqx.filter_eval_shape(Encoder, jax.random.key(0))
    shapes, rest = eqx.partition(model, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))
    x = array((BATCH, LENGTH, WIDTH), BF16)

    def loss(params, x, y):
        return jnp.square(jax.vmap(eqx.combine(params, rest))(x) - y).astype(jnp.float32).mean()

    return step(loss), shapes, jax.eval_shape(OPTIMIZER.init, shapes), x, x


@program
def haliax_decoder_stacked():
    """Trains stacked decoder layers of Haliax, folded in one loop with rematerialization. Parameters are f32, and
    computation is bf16."""
    Batch, Length, Embed, Hidden, Heads, Size, Vocab, Layers = (hax.Axis(name, size) for name, size in (
        ("batch", BATCH), ("position", LENGTH), ("embed", WIDTH), ("mlp", HIDDEN), ("heads", HEADS), ("head_size", WIDTH // HEADS),
        ("vocab", BYTES), ("layers", 4)))
    Keys = Length.alias("key_position")

    class Layer(eqx.Module):
        norms: list
        q: hax.nn.Linear
        k: hax.nn.Linear
        v: hax.nn.Linear
        o: hax.nn.Linear
        mlp: hax.nn.MLP

        @staticmethod
        def init(*, key):
            q, k, v, o, m = jax.random.split(key, 5)
            linear = lambda key, a, b: hax.nn.Linear.init(a, b, key=key, use_bias=False)
            return Layer([hax.nn.RmsNorm.init(Embed, use_bias=False) for _ in range(2)], *(linear(key, Embed, (Heads, Size)) for key in (q, k, v)),
                         linear(o, (Heads, Size), Embed),
                         hax.nn.MLP.init(Embed, Embed, Hidden, 1, activation=hax.nn.silu, use_bias=False, key=m))

        def __call__(self, x, mask):
            a = self.norms[0](x)
            keys = {"position": "key_position"}
            mixed = hax.nn.attention.dot_product_attention(Keys, Size, self.q(a), self.k(a).rename(keys), self.v(a).rename(keys), mask=mask)
            x = x + self.o(mixed.astype(x.dtype))
            return x + self.mlp(self.norms[1](x))

    class Model(eqx.Module):
        embed: hax.nn.Embedding
        layers: hax.nn.Stacked
        norm: hax.nn.RmsNorm
        head: hax.nn.Linear

        def __call__(self, tokens):
            mask = hax.nn.attention.causal_mask(Length, Keys)
            x = self.layers.fold(self.embed(tokens), mask)
            return self.head(self.norm(x))

    def make():
        key = jax.random.key(0)
        layers = hax.nn.Stacked.init(Layers, Layer, gradient_checkpointing=True)(key=jax.random.split(key, Layers.size))
        return Model(hax.nn.Embedding.init(Vocab, Embed, key=key), layers, hax.nn.RmsNorm.init(Embed, use_bias=False),
                     hax.nn.Linear.init(Embed, Vocab, key=key, use_bias=False))

    shapes, rest = eqx.partition(eqx.filter_eval_shape(make), lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))

    def loss(params, x, y):
        params = jax.tree.map(lambda leaf: leaf.astype(BF16), params)
        return entropy(eqx.combine(params, rest)(hax.named(x, (Batch, Length))).array, y)

    return step(loss), shapes, jax.eval_shape(OPTIMIZER.init, shapes), TOKENS, TOKENS


def keras_step(model, loss):
    """Returns a step of Keras' optimizer and its arguments."""
    import keras

    optimizer = keras.optimizers.AdamW(1e-3)
    optimizer.build(model.trainable_variables)
    shapes = [[array(v.shape, v.dtype) for v in group]
              for group in (model.trainable_variables, model.non_trainable_variables, optimizer.variables)]

    def train_step(trainable, rest, state, x, y):
        def compute(trainable):
            out, after = model.stateless_call(trainable, rest, x, training=True)
            return loss(out, y), after

        (value, after), gradients = jax.value_and_grad(compute, has_aux=True)(trainable)
        trainable, new = optimizer.stateless_apply(state, gradients, trainable)
        return value, trainable, after, new

    return train_step, *shapes


@program
def keras_encoder():
    """Trains an encoder layer of Keras in mixed_bfloat16, with Keras' optimizer."""
    import keras

    layers = keras.layers
    keras.config.set_dtype_policy("mixed_bfloat16")
    x = inputs = keras.Input((LENGTH, WIDTH))
    a = layers.LayerNormalization()(x)
    x = x + layers.MultiHeadAttention(HEADS, WIDTH // HEADS)(a, a)
    a = layers.Dense(HIDDEN, activation="gelu")(layers.LayerNormalization()(x))
    x = x + layers.Dense(WIDTH)(a)
    model = keras.Model(inputs, x)
    values = array((BATCH, LENGTH, WIDTH))
    return *keras_step(model, lambda out, y: jnp.square(out.astype(jnp.float32) - y).mean()), values, values


def keras_hub_step(backbone):
    """Returns a step of a language model of KerasHub that predicts the next token, with tied weights."""
    import keras

    inputs = {name: keras.Input((LENGTH,), dtype="int32", name=name) for name in ("token_ids", "padding_mask")}
    model = keras.Model(inputs, backbone.token_embedding(backbone(inputs), reverse=True))
    return *keras_step(model, entropy), {"token_ids": TOKENS, "padding_mask": TOKENS}, TOKENS


@program
def keras_hub_llama():
    """Trains the Llama of KerasHub, with grouped queries, in mixed_bfloat16."""
    import keras
    import keras_hub

    keras.config.set_dtype_policy("mixed_bfloat16")
    return keras_hub_step(keras_hub.models.LlamaBackbone(
        vocabulary_size=BYTES, num_layers=1, num_query_heads=HEADS, num_key_value_heads=8, hidden_dim=WIDTH, intermediate_dim=HIDDEN))


@program
def keras_hub_mixtral():
    """Trains the Mixtral of KerasHub, whose experts are batched matmuls of all tokens, in mixed_bfloat16."""
    import keras
    import keras_hub

    keras.config.set_dtype_policy("mixed_bfloat16")
    return keras_hub_step(keras_hub.models.MixtralBackbone(
        vocabulary_size=BYTES, num_layers=1, num_query_heads=HEADS, num_key_value_heads=8, hidden_dim=WIDTH, intermediate_dim=HIDDEN // 2,
        num_experts=4, top_k=2, sliding_window=LENGTH))
