"""Multi-head attention against numpy loops and tensor2tensor, and the battery."""

import numpy as np
import pytest
import tensorflow as tf

from tests import golden_files, layer_checks, references
from ut_keras.layers.attention import MultiHeadAttention

MASK = np.array([[True] * 5, [True] * 3 + [False] * 2])


def kernels_of(layer):
    return [weight.numpy() for weight in (layer._q, layer._k, layer._v, layer._output_transform)]


class TestAttentionToAMemory(layer_checks.LayerChecks):
    weight_count = 4 * 4 * 4

    def make(self, **kwargs):
        return MultiHeadAttention(2, **kwargs)

    def inputs(self, rng):
        x, memory = rng.normal(size=[2, 2, 5, 4]).astype("float32")
        return {"x": x[:, :3], "memory": memory, "memory_mask": MASK}


class TestRelativeSelfAttention(layer_checks.LayerChecks):
    weight_count = 4 * 4 * 4 + 2 * 5 * 2

    def make(self, **kwargs):
        return MultiHeadAttention(2, max_relative_position=2, **kwargs)

    def inputs(self, rng):
        return {"x": rng.normal(size=[2, 5, 4]).astype("float32"), "padding_mask": MASK}

    def call(self, layer, inputs):
        return layer(inputs["x"], attention_mask=inputs["padding_mask"][:, None, :])


@pytest.mark.parametrize("num_heads", [1, 2, 4])
@pytest.mark.parametrize("relative", [0, 1, 3])
@pytest.mark.parametrize("causal", [False, True])
def test_self_attention_equals_numpy(rng, num_heads, relative, causal):
    layer = MultiHeadAttention(num_heads, max_relative_position=relative)
    x = rng.normal(size=[2, 5, 8])
    visible = np.tril(np.ones([5, 5], bool)) if causal else np.ones([5, 5], bool)
    ours = layer(tf.constant(x, tf.float32), attention_mask=tf.constant(visible)[None])
    tables = [w.numpy() for w in (layer._relative_keys, layer._relative_values)] if relative else None
    for one, rows in zip(ours, x):
        expected = references.attention(rows, rows, kernels_of(layer), num_heads, visible, tables)
        np.testing.assert_allclose(one, expected, rtol=1e-4, atol=1e-5)


def test_attention_to_a_padded_memory_equals_numpy_on_its_real_part(rng):
    layer = MultiHeadAttention(2)
    x, memory = rng.normal(size=[2, 3, 4]), rng.normal(size=[2, 5, 4])
    ours = layer(tf.constant(x, tf.float32), memory=tf.constant(memory, tf.float32), memory_mask=tf.constant(MASK))
    for one, rows, keys, length in zip(ours, x, memory, (5, 3)):
        visible = np.ones([3, length], bool)
        expected = references.attention(rows, keys[:length], kernels_of(layer), 2, visible)
        np.testing.assert_allclose(one, expected, rtol=1e-4, atol=1e-5)


def test_an_empty_memory_reads_as_zero_with_finite_gradients(rng):
    layer = MultiHeadAttention(2)
    x = tf.constant(rng.normal(size=[1, 3, 4]), tf.float32)
    memory = tf.constant(rng.normal(size=[1, 2, 4]), tf.float32)
    with tf.GradientTape() as tape:
        tape.watch([x, memory])
        y = layer(x, memory=memory, memory_mask=tf.zeros([1, 2], tf.bool))
    np.testing.assert_array_equal(y, np.zeros([1, 3, 4]))
    for gradient in tape.gradient(y, [x, memory]):
        np.testing.assert_array_equal(gradient, np.zeros(gradient.shape))


@pytest.mark.parametrize("case", ["c0/cross_padding", "c1/cross_padding", "c1/self_causal"])
def test_equals_tensor2tensor(case):
    golden = golden_files.load("blocks").under(case)
    layer = MultiHeadAttention(int(golden["heads"]))
    layer.build(golden["query"].shape)
    names = [f"w/multihead_attention/{name}/kernel" for name in ("q", "k", "v", "output_transform")]
    layer.set_weights([golden[name] for name in names])
    if "memory" in golden:
        real = golden["memory_padding"] == 0
        ours = layer(golden["query"], memory=golden["memory"], memory_mask=tf.constant(real))
    else:
        length = golden["query"].shape[1]
        ours = layer(golden["query"], attention_mask=tf.constant(np.tril(np.ones([1, length, length], bool))))
    np.testing.assert_allclose(ours, golden["out"], rtol=1e-4, atol=5e-5)


def test_dropout_drops_attention_weights_by_its_seed(rng):
    layer = MultiHeadAttention(2, dropout=0.5)
    x = tf.constant(rng.normal(size=[2, 6, 4]), tf.float32)
    one, again, other = (layer(x, seed=tf.constant(seed)) for seed in ([1, 2], [1, 2], [1, 3]))
    np.testing.assert_array_equal(one, again)
    assert np.abs(one - other).max() > 1e-3
    np.testing.assert_array_equal(layer(x), layer(x))
