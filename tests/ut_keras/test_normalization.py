"""Layer norm: forward, its hand-written gradient, and the battery."""

import numpy as np
import pytest
import tensorflow as tf

from tests import golden_files, layer_checks, references
from ut_keras.layers.normalization import LayerNorm, layer_norm


class TestLayerNorm(layer_checks.LayerChecks):
    weight_count = 2 * 4

    def make(self, **kwargs):
        return LayerNorm(**kwargs)

    def inputs(self, rng):
        return {"x": rng.normal(size=[2, 5, 4]).astype("float32")}


def test_forward_equals_numpy(rng):
    x = rng.normal(2.0, 3.0, [3, 5, 7])
    scale, bias = rng.normal(size=[2, 7])
    ours = layer_norm(tf.constant(x, tf.float32), tf.constant(scale), tf.constant(bias), 1e-6)
    for one, rows in zip(ours, x):
        np.testing.assert_allclose(one, references.layer_norm(rows, scale, bias), rtol=1e-4, atol=1e-5)


def test_gradients_equal_those_of_the_written_out_formula(rng):
    x, goal = (tf.constant(rng.normal(size=[4, 6])) for _ in range(2))
    scale, bias = (tf.constant(rng.normal(size=[6])) for _ in range(2))

    def gradients(function, dtype):
        arguments = [tf.cast(value, dtype) for value in (x, scale, bias)]
        with tf.GradientTape() as tape:
            tape.watch(arguments)
            loss = tf.reduce_sum(tf.cast(goal, dtype) * function(*arguments, 1e-3) ** 2)
        return tape.gradient(loss, arguments)

    def formula(x, scale, bias, epsilon):
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        return (x - mean) / tf.sqrt(variance + epsilon) * scale + bias

    ours, theirs = gradients(layer_norm, tf.float32), gradients(formula, tf.float64)
    for one, other in zip(ours, theirs):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("case", ["c0", "c1"])
def test_equals_tensor2tensor(case):
    golden = golden_files.load("blocks").under(f"{case}/layer_norm")
    weights = [golden[f"w/layer_norm/layer_norm_{name}"] for name in ("scale", "bias")]
    ours = layer_norm(tf.constant(golden["x"]), *weights, 1e-6)
    np.testing.assert_allclose(ours, golden["out"], rtol=1e-4, atol=5e-5)


def test_constant_rows_are_finite_forward_and_backward():
    x = tf.fill([2, 4], 3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = layer_norm(x, tf.ones(4), tf.zeros(4), 1e-6)[:, 0]
    np.testing.assert_array_equal(y, [0, 0])
    assert np.all(np.isfinite(tape.gradient(y, x)))


def test_statistics_are_float32_in_half_precision():
    x = np.array([[3000.0, 3001.0, 3002.0, 3003.0]]) * 16  # squares overflow float16
    y = layer_norm(tf.constant(x, tf.float16), tf.ones(4), tf.zeros(4), 1e-6)
    assert y.dtype == tf.float16
    np.testing.assert_allclose(y, references.layer_norm(x.astype("float16"), 1, 0), atol=5e-3)
