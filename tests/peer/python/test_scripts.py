#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that `python -m hlofp8 --quantize=current` runs training programs of Keras, Equinox and Flax without changes: the matmuls
that it quantizes, and the losses next to those without hlofp8. With --long, also two processes, public scripts, and the
ratio of the times to compile. These scripts are those of Flax' source distribution, and those of the repositories of Keras and Equinox that are in
the folder `sources` of --work."""
import glob
import json
import os
import re
import subprocess
import sys

import _cases
import numpy as np
from scipy import stats

OPTIONS = ('--quantize=current', '--min-gain=0.001')
SEEDS = 4

# Each program trains once per seed, with one compiled step, and prints the first and the last loss.
KERAS = f'''
import keras, numpy as np
from keras import layers

class Block(layers.Layer):
    def __init__(self, width):
        super().__init__()
        self.attention, self.norm = layers.MultiHeadAttention(2, width // 2), layers.LayerNormalization()
        self.up, self.down = layers.Dense(2 * width, activation='gelu'), layers.Dense(width)

    def call(self, x):
        x = x + self.attention(x, x)
        return x + self.down(self.up(self.norm(x)))

keras.utils.set_random_seed(0)
model = keras.Sequential([layers.Embedding(64, 32), Block(32), layers.GlobalAveragePooling1D(), layers.Dense(2)])
model.compile(optimizer=keras.optimizers.Adam(3e-3), loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.build((None, 16))
weights = model.get_weights()
for seed in range({SEEDS}):
    random = np.random.default_rng(seed)
    model.set_weights([random.permutation(w.ravel()).reshape(w.shape) for w in weights])
    for variable in model.optimizer.variables[2:]:  # after the iteration and the learning rate
        variable.assign(np.zeros(variable.shape))
    tokens = random.integers(0, 64, (1024, 16))
    losses = model.fit(tokens, (tokens < 32).mean(1) > 0.5, batch_size=32, epochs=4, verbose=0).history['loss']
    print('loss', losses[0], losses[-1])
'''

EQUINOX = f'''
import equinox as eqx, jax, jax.numpy as jnp, optax
optimizer = optax.adam(3e-3)

@eqx.filter_value_and_grad
def loss_of(model, x, y):
    return jnp.mean((jax.vmap(model)(x) - y) ** 2)

@eqx.filter_jit
def make_step(model, state, x, y):
    loss, grads = loss_of(model, x, y)
    updates, state = optimizer.update(grads, state, eqx.filter(model, eqx.is_array))
    return eqx.apply_updates(model, updates), state, loss

for seed in range({SEEDS}):
    keys = jax.random.split(jax.random.key(seed), 41)
    model, losses = eqx.nn.MLP(32, 16, 64, 2, key=keys[0]), []
    state = optimizer.init(eqx.filter(model, eqx.is_array))
    for key in keys[1:]:
        x = jax.random.normal(key, (64, 32))
        model, state, loss = make_step(model, state, x, jnp.sin(2 * x[:, :16]) + x[:, 16:])
        losses.append(float(loss))
    print('loss', losses[0], sum(losses[-8:]) / 8)
'''

NNX = f'''
import jax
jax.distributed.initialize()
import jax.numpy as jnp, numpy as np, optax
from flax import nnx
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((jax.device_count(),), ('data',), axis_types=(AxisType.Auto,))

@nnx.jit
def train_step(model, optimizer, x):
    def loss_of(model):
        return jnp.mean((model(x) - jnp.sin(x[:, :16])) ** 2)
    loss, grads = nnx.value_and_grad(loss_of)(model)
    optimizer.update(model, grads)
    return loss

for seed in range({SEEDS}):
    rngs, random = nnx.Rngs(seed), np.random.default_rng(seed)
    model = nnx.Sequential(nnx.Linear(32, 64, rngs=rngs), nnx.gelu, nnx.Linear(64, 16, rngs=rngs))
    optimizer, losses = nnx.Optimizer(model, optax.adam(3e-3), wrt=nnx.Param), []
    state = nnx.state((model, optimizer))
    nnx.update((model, optimizer), jax.device_put(jax.device_get(state), NamedSharding(mesh, P())))
    for _ in range(40):
        x = random.standard_normal((64, 32)).astype('f')
        x = jax.make_array_from_callback(x.shape, NamedSharding(mesh, P('data')), lambda at: x[at])
        losses.append(float(train_step(model, optimizer, x)))
    print('loss', losses[0], sum(losses[-8:]) / 8)
'''

# The modules of this folder take the place of data sets, seed what the public scripts do not seed, and print the CPU
# time to compile.
STUBS = {
    'tensorflow_datasets.py': '''
import os
import numpy as np

def digits(count, part):
    """Returns noisy copies of ten images, and their labels."""
    images = np.random.default_rng(0).random((10, 7, 7)).repeat(4, 1).repeat(4, 2)
    random = np.random.default_rng([int(os.environ['SEED']), part])
    labels = random.integers(0, 10, count)
    noisy = images[labels] * 160 + random.normal(0, 60, (count, 28, 28))
    return np.clip(noisy, 0, 255).astype(np.uint8), labels

def load(name, split):
    import tensorflow as tf
    images, labels = digits(2048 if split == 'train' else 512, split == 'test')
    return tf.data.Dataset.from_tensor_slices({'image': images[..., None], 'label': labels})

class Sentences:
    """Sentences of words, each of which has three successors. All processes have the same ones."""
    class info:
        class splits:
            num_examples = 2048
            def __class_getitem__(cls, name):
                return cls

    def as_dataset(self, split, shuffle_files):
        import tensorflow as tf
        grammar, random = np.random.default_rng(0), np.random.default_rng(int(os.environ['SEED']))
        words, after = [''.join(grammar.choice(list('abcdefghij'), 4)) for _ in range(64)], grammar.integers(0, 64, (64, 3))
        texts, word = [], 0
        for _ in range(2048):
            text = []
            for _ in range(random.integers(5, 12)):
                word = after[word, random.integers(3)]
                text.append(words[word])
            texts.append(' '.join(text))
        return tf.data.Dataset.from_tensor_slices({'text': texts})

def builder(name):
    return Sentences()

class core:
    DatasetBuilder = DatasetInfo = None
''',
    'datasets.py': '''
from tensorflow_datasets import digits

def load_dataset(name):
    return {split: {'image': list(digits(2048, part)[0])} for part, split in enumerate(('train', 'test'))}
''',
    'sitecustomize.py': '''
import atexit, os, random, sys, time, types
if 'SEED' in os.environ:  # not in pip
    import jax, numpy as np
    if 'OMPI_COMM_WORLD_SIZE' in os.environ:  # the script leaves it to a launcher to connect the processes
        import tensorflow as tf
        jax.distributed.initialize()
        tf.random.set_seed(int(os.environ['SEED']))  # the script passes its batch as a replicated array
        sys.modules['clu.deterministic_data'] = types.SimpleNamespace(get_read_instruction_for_host=lambda split, *_, **__: split)
    seed, spent, start = int(os.environ['SEED']), [0.0], [0.0]
    random.seed(seed)
    np.random.seed(seed)

    def reviews(num_words):
        """Returns reviews as words by their frequency, of which some depend on the label, which may be wrong."""
        made = np.random.default_rng(seed)
        def part(count):
            labels = made.integers(0, 2, count)
            moods = np.where(made.random(count) < 0.9, labels, 1 - labels)
            words = np.concatenate([made.zipf(1.3, (count, 120)) % (num_words - 200) + 200, made.integers(3, 103, (count, 12)) + 100 * moods[:, None]], 1)
            return made.permuted(words, axis=1).tolist(), labels
        return part(2048), part(512)

    if 'text_classification' in sys.orig_argv[-1]:
        import keras
        keras.datasets.imdb.load_data = reviews

    def ended(event, seconds, **_):
        if event.endswith('jaxpr_to_mlir_module_duration'):
            start[0] = time.process_time()
        elif event.endswith('backend_compile_duration'):
            spent[0] += time.process_time() - start[0]
    jax.monitoring.register_event_duration_secs_listener(ended)
    atexit.register(lambda: print(f'compile {spent[0]}', file=sys.stderr))
'''}

# What the public scripts import, with the versions of requirements*.txt. Flax, whose scripts are run, is in this list, too.
PACKAGES = ('jax==0.10.2', 'flax==0.12.8', 'optax==0.2.6', 'equinox==0.13.8', 'keras==3.15.1', 'cffi==2.1.1', 'clu==0.0.12', 'ml-collections==1.1.0',
            'matplotlib==3.11.2', 'tensorboard==2.21.0', 'tensorflow-cpu==2.21.0', 'orbax-export==0.0.8', 'sentencepiece==0.2.3', 'tensorflow-text==2.21.1')

SMALL = ('vocab_size=64', 'num_layers=2', 'emb_dim=64', 'qkv_dim=64', 'mlp_dim=128', 'num_heads=2', 'max_target_length=32', 'max_eval_target_length=32',
         'max_predict_length=8', 'per_device_batch_size=8', 'eval_per_device_batch_size=8', 'num_train_steps=41', 'eval_every_steps=40',
         'num_eval_steps=2', 'warmup_steps=10', 'save_checkpoints=False', 'restore_checkpoints=False', 'max_corpus_chars=100000')

# Path in `sources`, arguments, the loss in the output, the reasons of wide matmuls.
TWO_PROCESSES = 'flax-*/examples/lm1b/main.py'
SCRIPTS = {
    'flax-*/examples/mnist/main.py': (['--config=configs/default.py', '--config.num_epochs=1', '--verbosity=0', '--workdir'], 'train_loss: ([0-9.]+)', ['convolution']),
    'flax-*/examples/seq2seq/train.py': (['--num_train_steps=61', '--decode_frequency=20', '--hidden_size=128', '--verbosity=0', '--workdir'], 'loss=([0-9.]+)', []),
    TWO_PROCESSES: (['--config=configs/default.py', '--verbosity=0', *('--config.' + option for option in SMALL), '--workdir'], 'train_loss=([0-9.]+)', ['attention']),
    'flax-*/examples/nnx_toy_examples/05_vae.py': ([], 'loss: ([0-9.]+)', []),
    'keras-io/examples/nlp/text_classification_with_transformer.py': ([], ' loss: ([0-9.]+) - val_', ['attention']),
    'equinox/docs/examples/train_rnn.ipynb': ([], 'loss=([0-9.]+)', []),
}


def near(name, wide, quantized, first):
    """Checks that quantized runs end with other losses than wide runs of the same seeds, and that a t-test at 0.1 % cannot
    tell the two groups apart, although it can tell the last losses from the first."""
    assert (wide != quantized).all(), (name, wide)
    same, trained = (stats.ttest_ind(wide, other).pvalue for other in (quantized, first))
    assert same > 1e-3 > trained and wide.mean() < first.mean(), (name, wide, quantized, first, same, trained)


def counts(said):
    """Returns the numbers of FP8 matmuls, of matmuls, and of matmuls by the reason why they are wide, and the share of FLOPs."""
    lines = [line for line in said.splitlines() if 'hlofp8:   ' in line and 'matmuls in FP8' in line]
    fp8, of, share = map(int, re.search(r'(\d+) of (\d+) matmuls in FP8 \((\d+) % of FLOPs\)', lines[-1]).groups())
    assert f'{fp8} quantized here' in lines[-1], lines  # the programs have no FP8 matmuls of their own
    wide = re.search(r'\d+ wide: ([^;]*)', lines[-1])
    return fp8, of, {reason: int(n) for n, reason in re.findall(r'(\d+) ([\w-]+)', wide[1])} if wide else {}, share


def losses(output):
    return np.array([line.split()[1:] for line in output.splitlines() if line.startswith('loss ')], float).T


def program(args, name, text, reasons, two=False):
    """Runs a program with and without hlofp8, in one process or in two."""
    path = os.path.join(args.work, name + '.py')
    with open(path, 'w') as file:
        file.write(text)
    commands = [path], ['-m', 'hlofp8', *OPTIONS, path]
    if two:
        plain, found = (_cases.processes(args, command, {}, {}) for command in commands)
    else:
        environment = {**os.environ, 'PYTHONPATH': os.pathsep.join([args.site, os.environ['PYTHONPATH']]), 'JAX_PLATFORMS': 'cpu', 'KERAS_BACKEND': 'jax'}
        started = [subprocess.Popen([sys.executable, *command], env=environment, text=True, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE) for command in commands]
        plain, found = ([(*process.communicate(), process.returncode)] for process in started)
    assert all(status == 0 for _, _, status in plain + found), (plain, found)
    assert not any('hlofp8' in said for _, said, _ in plain + found[1:]), (plain, found)
    (first, wide), (_, quantized) = losses(plain[0][0]), losses(found[0][0])
    assert all((losses(out) == losses(runs[0][0])).all() for runs in (plain, found) for out, _, _ in runs), (plain, found)
    near(name, wide, quantized, first)
    fp8, of, why, share = counts(found[0][1])
    assert fp8 and set(why) == set(reasons) and fp8 + sum(why.values()) == of and (share == 100) == (not why), found
    return f'{fp8} of {of} matmuls, {share} % of FLOPs; losses {first.mean():.3f} to {wide.mean():.4f} and {quantized.mean():.4f}'


def keras(args):
    """Keras' fit: all matmuls but those of attention."""
    return program(args, 'keras_fit', KERAS, ['attention'])


def equinox(args):
    """Equinox' filter_jit, with --long: all matmuls."""
    if not args.long:
        return 'not without --long'
    return program(args, 'equinox_step', EQUINOX, [])


def nnx(args):
    """A step of nnx.jit over two processes, which are found by jax.distributed.initialize(), with --long: all matmuls."""
    if not args.long:
        return 'not without --long'
    return program(args, 'nnx_processes', NNX, [], two=True)


def public(args):
    """Public scripts, with --long: those of Flax, and those of checkouts of Keras' examples and Equinox."""
    if not args.long:
        return 'not without --long'
    sources, stubs, python = (os.path.join(args.work, name) for name in ('sources', 'stubs', 'venv/bin/python'))
    if not os.path.exists(python):
        subprocess.run([sys.executable, '-m', 'venv', os.path.join(args.work, 'venv')], check=True)
        subprocess.run([python, '-m', 'pip', 'install', '--quiet', *PACKAGES], check=True)
    if not glob.glob(os.path.join(sources, 'flax-*', 'examples')):
        subprocess.run([python, '-m', 'pip', 'download', '--quiet', '--no-deps', '--no-binary=flax', '-d', sources, PACKAGES[1]], check=True)
        subprocess.run(['tar', '-xf', *glob.glob(os.path.join(sources, 'flax-*.tar.gz')), '-C', sources], check=True)
    os.makedirs(stubs, exist_ok=True)
    for name, text in STUBS.items():
        with open(os.path.join(stubs, name), 'w') as file:
            file.write(text)
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join([stubs, args.site]), 'JAX_PLATFORMS': 'cpu', 'KERAS_BACKEND': 'jax', 'MPLBACKEND': 'agg'}
    for pattern, (arguments, loss, reasons) in SCRIPTS.items():
        path = next(iter(glob.glob(os.path.join(sources, pattern))), None)
        if path is None:
            print(f'{pattern}: not in {sources}')
            continue
        name = os.path.splitext(os.path.basename(path))[0]
        if path.endswith('.ipynb'):
            with open(path) as file:
                cells = [''.join(cell['source']) for cell in json.load(file)['cells'] if cell['cell_type'] == 'code']
            path = os.path.join(args.work, name + '.py')
            with open(path, 'w') as file:
                file.write('\n\n'.join(cells))
        found, said = {}, ''
        for seed in range(SEEDS):
            for options in (), ('-m', 'hlofp8', *OPTIONS):  # in turn, so that both see the same load of the machine
                folder = [os.path.join(args.work, f'{name}.{seed}.{len(options)}')] if arguments else []
                command, own = [*options, os.path.basename(path), *arguments, *folder], {**environment, 'SEED': str(seed)}
                if pattern == TWO_PROCESSES:
                    done = _cases.processes(args, command, *2 * [{**own, 'XLA_FLAGS': ''}], python=python, folder=os.path.dirname(path))
                else:
                    run = subprocess.run([python, *command], cwd=os.path.dirname(path), env=own, capture_output=True, text=True)
                    done = [(run.stdout, run.stderr, run.returncode)]
                assert not any(status for _, _, status in done), (path, done)
                assert len({re.findall(loss, out + said)[-1] for out, said, _ in done}) == 1, (path, done)
                out, said, _ = done[0]
                last, seconds = re.findall(loss, out + said)[-1], re.search(r'(?m)^compile (.*)', said)[1]
                found.setdefault(bool(options), []).append((float(last), float(seconds)))
        (wide, before), (quantized, after) = (np.array(found[kind]).T for kind in (False, True))
        fp8, of, why, share = counts(said)
        assert fp8 and set(why) == set(reasons) and fp8 + sum(why.values()) == of and (share == 100) == (not why), said
        assert stats.ttest_ind(wide, quantized).pvalue > 1e-3 and (wide != quantized).any(), (path, wide, quantized)
        print(f'{pattern}: {fp8} of {of} matmuls, {share} % of FLOPs; losses {wide.mean():.4f} (deviation {wide.std(ddof=1):.4f}) '
              f'and {quantized.mean():.4f} (deviation {quantized.std(ddof=1):.4f}); {before.min():.1f} -> {after.min():.1f} s of CPU time to compile', flush=True)


def main():
    args = _cases.arguments()
    return _cases.run([keras, equinox, nnx, public], args)


if __name__ == '__main__':
    sys.exit(main())
