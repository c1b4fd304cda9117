"""Hard attention: the formula against loops in numpy, and the layer with masks, caches, packed rows and compilers."""

import numpy as np
import pytest
import tensorflow as tf

from tests import layer_checks, references
from ut_keras.layers.attention import MultiHeadAttention
from ut_keras.layers.hard_attention import harden

MASK = np.array([[True] * 5, [True] * 3 + [False] * 2])


def hardened(weights, k):
    """One query's weights [K]: the k-th largest different one is subtracted, 0 where there are fewer."""
    different = sorted(set(weights), reverse=True)
    left = np.maximum(weights - (different[k - 1] if len(different) >= k else 0.0), 0.0)
    return left / left.sum()


def rows_of(weights):
    return tf.constant(weights, tf.float32)[None, None, None]


@pytest.mark.parametrize(
    ("weights", "k", "expected"),
    [
        ([0.5, 0.3, 0.2], 2, [1, 0, 0]),
        ([0.5, 0.3, 0.2], 3, [0.75, 0.25, 0]),
        ([0.1, 0.2, 0.3, 0.4], 3, [0, 0, 1 / 3, 2 / 3]),
        ([0.5, 0.3, 0.2], 4, [0.5, 0.3, 0.2]),  # fewer than k keys
        ([0.6, 0.4, 0, 0], 3, [0.6, 0.4, 0, 0]),  # fewer than k keys may be seen
        ([0.3, 0.3, 0.2, 0.2], 2, [0.5, 0.5, 0, 0]),  # equal weights count once
        ([0.25] * 4, 2, [0.25] * 4),
    ],
)
def test_the_kth_largest_weight_is_subtracted(weights, k, expected):
    np.testing.assert_allclose(harden(rows_of(weights), k)[0, 0, 0], expected, atol=1e-6)


@pytest.mark.parametrize("k", [2, 3, 8, 40])
def test_equals_numpy(rng, k):
    weights = tf.nn.softmax(3 * rng.normal(size=[2, 2, 4, 12])).numpy()
    ours = harden(tf.constant(weights, tf.float32), k).numpy()
    expected = np.apply_along_axis(hardened, -1, weights, k)
    np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-6)
    if k <= 12:
        np.testing.assert_array_equal((ours > 0).sum(-1), np.full([2, 2, 4], k - 1))


def test_weights_that_rounding_alone_tells_apart_are_equal():
    weights = np.array([0.3, 0.3 * (1 + 2e-7), 0.2, 0.2])
    np.testing.assert_allclose(harden(rows_of(weights), 2)[0, 0, 0], [0.5, 0.5, 0, 0], atol=1e-5)


def test_gradient_takes_the_kth_largest_for_a_constant():
    """y_0 = (w_0 - c) / (w_0 + w_1 - 2 c) of 0.5, 0.3 and c = 0.2."""
    weights = rows_of([0.5, 0.3, 0.2])
    with tf.GradientTape() as tape:
        tape.watch(weights)
        first = harden(weights, 3)[0, 0, 0, 0]
    np.testing.assert_allclose(tape.gradient(first, weights)[0, 0, 0], [0.1 / 0.16, -0.3 / 0.16, 0], atol=1e-5)


class TestHardRelativeSelfAttention(layer_checks.LayerChecks):
    weight_count = 4 * 4 * 4 + 2 * 5 * 2
    half_tolerance = 0.1

    def make(self, **kwargs):
        return MultiHeadAttention(2, max_relative_position=2, hard_attention_k=3, **kwargs)

    def inputs(self, rng):
        return {"x": rng.normal(size=[2, 5, 4]).astype("float32"), "padding_mask": MASK}

    def call(self, layer, inputs):
        return layer(inputs["x"], attention_mask=inputs["padding_mask"][:, None, :])


@pytest.mark.slow  # the battery once more
class TestHardAttentionToAMemory(layer_checks.LayerChecks):
    weight_count = 4 * 4 * 4
    half_tolerance = 0.1

    def make(self, **kwargs):
        return MultiHeadAttention(2, hard_attention_k=3, **kwargs)

    def inputs(self, rng):
        x, memory = rng.normal(size=[2, 2, 5, 4]).astype("float32")
        return {"x": x[:, :3], "memory": memory, "memory_mask": MASK}


def kernels_of(layer):
    return [weight.numpy() for weight in (layer._q, layer._k, layer._v, layer._output_transform)]


@pytest.mark.parametrize("relative", [0, 2])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("k", [2, 3, 9])
def test_self_attention_equals_numpy(rng, k, causal, relative):
    layer = MultiHeadAttention(2, max_relative_position=relative, hard_attention_k=k)
    x = rng.normal(size=[2, 6, 8])
    visible = np.tril(np.ones([6, 6], bool)) if causal else np.ones([6, 6], bool)
    ours = layer(tf.constant(x, tf.float32), attention_mask=tf.constant(visible)[None])
    tables = [w.numpy() for w in (layer._relative_keys, layer._relative_values)] if relative else None
    for one, rows in zip(ours, x):
        expected = references.attention(
            rows, rows, kernels_of(layer), 2, visible, tables, lambda weights: hardened(weights, k)
        )
        np.testing.assert_allclose(one, expected, rtol=1e-4, atol=1e-5)


def test_an_empty_memory_reads_as_zero_with_finite_gradients(rng):
    layer = MultiHeadAttention(2, hard_attention_k=2)
    x, memory = (tf.constant(rng.normal(size=[1, length, 4]), tf.float32) for length in (3, 2))
    with tf.GradientTape() as tape:
        tape.watch([x, memory])
        y = layer(x, memory=memory, memory_mask=tf.zeros([1, 2], tf.bool))
    np.testing.assert_array_equal(y, np.zeros([1, 3, 4]))
    for gradient in tape.gradient(y, [x, memory]):
        np.testing.assert_array_equal(gradient, np.zeros(gradient.shape))


def test_the_weights_that_are_watched_are_those_that_are_used(rng):
    layer, watch = MultiHeadAttention(2, hard_attention_k=3), []
    x = tf.constant(rng.normal(size=[2, 6, 8]), tf.float32)
    layer.build(x.shape)
    layer.attend(x, layer.prepare(6), watch=watch)
    np.testing.assert_array_equal((watch[0].numpy() > 0).sum(-1), np.full([2, 2, 6], 2))
    np.testing.assert_allclose(tf.reduce_sum(watch[0], -1), np.ones([2, 2, 6]), rtol=1e-6)


@pytest.mark.parametrize("k", [1, -1])
def test_what_would_leave_nothing_is_refused(k):
    with pytest.raises(ValueError, match=f"hard_attention_k={k} is not 0"):
        MultiHeadAttention(2, hard_attention_k=k)
