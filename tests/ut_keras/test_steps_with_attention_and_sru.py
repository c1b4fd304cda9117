"""Relative attention, hard attention and SRU inside of the recurrence: its loop, remat, XLA, 16 bits, saving."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import references, tiny_models
from ut_keras.layers.block import Block
from ut_keras.layers.recurrence import UniversalRecurrence
from ut_keras.models.transformer import Transformer

MASK = np.array([[True] * 5, [True] * 3 + [False] * 2])
SIZES = {"num_heads": 2, "filter_size": 8}
OPTIONS = {
    "relative": {"max_relative_position": 2},
    "hard": {"hard_attention_k": 3},
    "SRU": {"sru": True},
    "all": {"max_relative_position": 2, "hard_attention_k": 3, "sru": True},
}
ALL = OPTIONS["all"]


def recurrence(rng, **options):
    """A recurrence whose weights are all different from what they begin with."""
    layer = UniversalRecurrence(**{"max_steps": 3, **SIZES, **options})
    layer.build((None, None, 4))
    layer.set_weights([0.5 * rng.normal(size=weight.shape) for weight in layer.weights])
    return layer


def sequence(rng):
    return tf.constant(rng.normal(size=[2, 5, 4]), tf.float32)


@pytest.mark.parametrize("causal", [False, True])
def test_sru_is_the_same_at_every_step_behind_the_signal(rng, causal):
    layer, x = recurrence(rng, sru=True, causal=causal), sequence(rng)
    output, _, trace = layer(x, tf.constant(MASK), trace=True)
    for row, length in ((0, 5), (1, 3)):
        state = x[row, :length].numpy()
        for step in range(3):
            signals = references.sinusoids(range(length), 4, "paper") + references.sinusoids([step], 4, "paper")
            state = layer.sru(tf.constant((state + signals)[None], tf.float32)).numpy()[0]
            np.testing.assert_allclose(trace["pre_state"][step, row, :length], state, rtol=1e-4, atol=1e-4)
            state = references.block(state, layer.blocks[0])
        np.testing.assert_allclose(output[row, :length], state, rtol=1e-3, atol=1e-3)


def test_hard_attention_is_that_of_the_block_to_itself_and_to_a_memory(rng):
    block = Block(cross_attention=True, hard_attention_k=3, **SIZES)
    watch = {"self_attention": [], "encdec_attention": []}
    x, mask = sequence(rng), tf.constant(MASK)
    block.build(x.shape)
    block.apply(x, block.prepare(mask, x, mask), watch=watch)
    for weights in (watch["self_attention"][0], watch["encdec_attention"][0]):
        counts = (weights.numpy() > 0).sum(-1)
        np.testing.assert_array_equal(counts[0], np.full([2, 5], 2))
        # Three keys may be seen in the second row: the third largest weight of them is subtracted as well.
        np.testing.assert_array_equal(counts[1], np.full([2, 5], 2))


@pytest.mark.parametrize("seed", [1, 2])
def test_equal_keys_are_hardened_alike_however_a_batch_is_padded(seed):
    """Without positions, equal tokens have equal keys but for the rounding of products, which depends on shapes."""
    rng = np.random.default_rng(seed)
    sizes = {"num_heads": 4, "filter_size": 192, "hard_attention_k": 4, "conditional": False}
    layer = UniversalRecurrence(6, signal={"position": False}, **sizes)
    layer.build((None, None, 64))
    scales = ["scale" in weight.name for weight in layer.weights]
    layer.set_weights(
        [one + 0.1 * rng.normal(size=weight.shape) for one, weight in zip(scales, layer.weights, strict=True)]
    )
    x = rng.normal(size=[8, 64])[rng.integers(0, 8, size=[1, 19])]
    outputs = []
    for padding in (0, 1, 9):
        padded = np.pad(x, [(0, 0), (0, padding), (0, 0)])
        outputs.append(layer(tf.constant(padded, tf.float32), tf.range(19 + padding)[None] < 19)[0][:, :19])
    for output in outputs[1:]:
        np.testing.assert_allclose(output, outputs[0], atol=1e-3)


def training_step(layer, jit_compile=False):
    """A compiled step with dropout: output and gradients."""

    @tf.function(jit_compile=jit_compile)
    def step(x, mask, seed):
        with tf.GradientTape() as tape:
            output, ponder = layer(x, mask, seed=seed)
            loss = tf.reduce_sum(tf.cast(output, tf.float32) * tf.cos(tf.range(4.0))) + tf.reduce_sum(ponder.remainders)
        return [output, *tape.gradient(loss, [variable.value for variable in layer.trainable_variables])]

    return step


def assert_same_training(one, other, rng, **jit):
    arguments = (sequence(rng), tf.constant(MASK), tf.constant([1, 2]))
    ours, theirs = training_step(one)(*arguments), training_step(other, **jit)(*arguments)
    for a, b in zip(ours, theirs, strict=True):
        assert np.abs(a).max() > 0
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


DROPOUTS = {"input_dropout": 0.2, "residual_dropout": 0.2, "attention_dropout": 0.2, "relu_dropout": 0.2}


@pytest.mark.slow  # compiles two training steps
def test_a_recomputed_step_has_the_same_values_and_gradients(rng):
    layers = [recurrence(rng, halting="accumulated", remat=remat, **ALL, **DROPOUTS) for remat in (False, True)]
    layers[1].set_weights(layers[0].get_weights())
    assert_same_training(*layers, rng)


@pytest.mark.slow
@pytest.mark.parametrize("remat", [False, True])
def test_a_training_step_compiles_with_xla_and_stays_the_same(rng, remat):
    layer = recurrence(rng, halting="basic", remat=remat, **ALL)
    assert_same_training(layer, layer, rng, jit_compile=True)


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_sixteen_bits_are_finite_close_and_have_gradients(rng, options, policy):
    # One step: what hard attention leaves out may change where weights are as close as 16 bits are.
    layers = [
        recurrence(rng, max_steps=1, causal=True, dtype=dtype, **OPTIONS[options]) for dtype in ("float32", policy)
    ]
    layers[1].set_weights(layers[0].get_weights())
    x, mask = sequence(rng), tf.constant(MASK)
    expected, found = (layer(tf.cast(x, layer.compute_dtype), mask)[0] for layer in layers)
    assert found.dtype == layers[1].compute_dtype
    np.testing.assert_allclose(tf.cast(found, tf.float32)[MASK], expected[MASK], atol=0.1)
    for gradient in training_step(layers[1])(tf.cast(x, layers[1].compute_dtype), mask, None)[1:]:
        assert np.all(np.isfinite(gradient))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["seq2seq", "language model", "encoder", "classifier"])
def test_models_save_and_load(kind, tmp_path):
    model, batch = tiny_models.make(kind, halting="basic", **ALL), tiny_models.rows(kind)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded(batch), model(batch), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("depth", [1, 7])
def test_more_and_fewer_steps_than_trained_are_those_of_a_model_so_deep(options, depth):
    batch = tiny_models.rows("seq2seq")
    trained = tiny_models.make("seq2seq", **OPTIONS[options])
    other = tiny_models.make("seq2seq", **{**OPTIONS[options], "max_steps": depth})
    other.set_weights(trained.get_weights())
    np.testing.assert_allclose(trained(batch, max_steps=depth), other(batch), rtol=1e-5, atol=1e-6)


def test_the_plain_transformer_has_relative_and_hard_attention_as_well():
    model = Transformer(9, max_steps=2, hidden_size=8, max_relative_position=2, hard_attention_k=3, **SIZES)
    batch = tiny_models.rows("seq2seq")
    assert np.all(np.isfinite(model(batch)))
    for side in (model.encoder, model.decoder):
        for block in side.body.blocks:
            assert (block.self_attention.max_relative_position, block.self_attention.hard_attention_k) == (2, 3)
    assert model.decoder.body.blocks[0].encdec_attention.max_relative_position == 0
