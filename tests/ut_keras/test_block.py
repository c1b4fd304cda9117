"""The block against numpy, its dropouts, and the battery."""

import numpy as np
import pytest
import tensorflow as tf

from tests import layer_checks, references
from ut_keras.layers.block import Block

MASK = np.array([[True] * 5, [True] * 3 + [False] * 2])
MEMORY_MASK = np.array([[True] * 4, [True] + [False] * 3])


class TestEncoderBlock(layer_checks.LayerChecks):
    weight_count = 4 * 4 * 4 + (4 * 8 + 8 + 8 * 4 + 4) + 2 * 8

    def make(self, **kwargs):
        return Block(num_heads=2, filter_size=8, zero_padding=True, **kwargs)

    def inputs(self, rng):
        return {"x": rng.normal(size=[2, 5, 4]).astype("float32"), "padding_mask": MASK}


class TestDecoderBlock(layer_checks.LayerChecks):
    weight_count = 8 * 4 * 4 + 2 * 3 * 2 + (4 * 8 + 8 + 8 * 4 + 4 + 3 * 4 + 5 * 8) + 3 * 8

    def make(self, **kwargs):
        options = {"cross_attention": True, "causal": True, "norm": "pre", "transition": "sepconv"}
        return Block(num_heads=2, filter_size=8, max_relative_position=1, **options, **kwargs)

    def inputs(self, rng):
        x, memory = rng.normal(size=[2, 2, 5, 4]).astype("float32")
        return {"x": x, "padding_mask": MASK, "memory": memory[:, :4], "memory_mask": MEMORY_MASK}


def set_random_weights(layer, rng):
    layer.set_weights([rng.normal(scale=0.5, size=weight.shape) for weight in layer.weights])


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("transition", ["fc", "sepconv"])
@pytest.mark.parametrize("decoder", [False, True])
def test_block_equals_numpy(rng, norm, transition, decoder):
    layer = Block(2, 8, cross_attention=decoder, causal=decoder, transition=transition, norm=norm, norm_epsilon=1e-3)
    layer.build((None, None, 4))
    set_random_weights(layer, rng)
    x, memory = rng.normal(size=[2, 5, 4]), rng.normal(size=[2, 4, 4])
    options = {}
    if decoder:
        options = {"memory": tf.constant(memory, tf.float32), "memory_mask": tf.constant(MEMORY_MASK)}
    ours = layer(tf.constant(x, tf.float32), tf.constant(MASK), **options)
    for row, (length, memory_length) in enumerate(((5, 4), (3, 1))):
        expected = references.block(x[row, :length], layer, memory[row, :memory_length])
        np.testing.assert_allclose(ours[row, :length], expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("rate", ["residual_dropout", "attention_dropout", "relu_dropout"])
def test_each_dropout_acts_and_follows_the_seed(rng, rate):
    layer = Block(2, 8, **{rate: 0.4})
    x, mask = tf.constant(rng.normal(size=[2, 5, 4]), tf.float32), tf.constant(MASK)
    one, again, other = (layer(x, mask, seed=tf.constant(seed)) for seed in ([1, 2], [1, 2], [1, 3]))
    np.testing.assert_array_equal(one, again)
    assert np.abs(one - other).max() > 1e-2
    assert np.abs(one - layer(x, mask)).max() > 1e-2


def test_a_row_of_padding_is_finite_forward_and_backward(rng):
    for norm in ("post", "pre"):
        layer = Block(2, 8, norm=norm)
        x = tf.constant(rng.normal(size=[1, 3, 4]), tf.float32)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x, tf.zeros([1, 3], tf.bool))
        assert np.all(np.isfinite(y))
        assert np.all(np.isfinite(tape.gradient(y, x)))


def test_an_unknown_norm_is_refused():
    with pytest.raises(ValueError, match="norm='mid' is not one of post, pre"):
        Block(2, 8, norm="mid")
