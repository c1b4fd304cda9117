"""The plain Transformer's stack of different blocks, and the battery."""

import numpy as np
import pytest
import tensorflow as tf

from tests import layer_checks, references
from ut_keras.layers.stack import BlockStack

MASK = np.array([[True] * 5, [True] * 3 + [False] * 2])
BLOCK = 4 * 4 * 4 + (4 * 8 + 8 + 8 * 4 + 4) + 2 * 8


class TestBlockStack(layer_checks.LayerChecks):
    weight_count = 2 * BLOCK + 8

    def make(self, **kwargs):
        return BlockStack(max_steps=2, num_heads=2, filter_size=8, norm="pre", signal={"layout": "t2t"}, **kwargs)

    def inputs(self, rng):
        return {"x": rng.normal(size=[2, 5, 4]).astype("float32"), "padding_mask": MASK}

    def call(self, layer, inputs):
        return super().call(layer, inputs)[0]


def test_stack_is_its_blocks_one_after_the_other_behind_one_position_signal(rng):
    layer = BlockStack(max_steps=3, num_heads=2, filter_size=8)
    x = rng.normal(size=[2, 5, 4])
    output, ponder, trace = layer(tf.constant(x, tf.float32), tf.constant(MASK), trace=True)
    assert ponder == ()
    for row, length in ((0, 5), (1, 3)):
        state = x[row, :length] + references.sinusoids(range(length), 4, "paper")
        for step, block in enumerate(layer.blocks):
            state = references.block(state, block)
            np.testing.assert_allclose(trace["state"][step, row, :length], state, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(trace["pre_final_norm"][row, :length], state, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(output[row, :length], state, rtol=1e-3, atol=1e-4)


def test_rematerialised_stack_gives_the_same_gradients_with_dropout(rng):
    options = {"max_steps": 2, "num_heads": 2, "filter_size": 8, "residual_dropout": 0.2, "attention_dropout": 0.2}
    x, mask, seed = tf.constant(rng.normal(size=[2, 5, 4]), tf.float32), tf.constant(MASK), tf.constant([1, 2])
    plain, remat = BlockStack(**options), BlockStack(remat=True, **options)
    results = []
    for layer in (plain, remat):
        layer.build(x.shape)
        layer.set_weights(plain.get_weights())
        with tf.GradientTape() as tape:
            y = layer(x, mask, seed=seed)[0]
            loss = tf.reduce_sum(y * tf.cos(tf.range(4.0)))
        results.append([y, *tape.gradient(loss, [variable.value for variable in layer.trainable_variables])])
    for one, other in zip(*results):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_each_block_has_weights_of_its_own():
    counts = []
    for depth in (1, 4):
        layer = BlockStack(max_steps=depth, num_heads=2, filter_size=8)
        layer.build((None, None, 4))
        counts.append(layer.count_params())
    assert counts == [BLOCK, 4 * BLOCK]


def test_another_depth_is_refused():
    layer = BlockStack(max_steps=2, num_heads=2, filter_size=8)
    with pytest.raises(ValueError, match="max_steps=3: a stack of 2 different blocks has no other depth"):
        layer(tf.ones([1, 3, 4]), tf.ones([1, 3], tf.bool), max_steps=3)
