"""Simple recurrent units against numpy loops, with a cache against without, and the battery."""

import numpy as np
import pytest
import tensorflow as tf

from tests import layer_checks
from ut_keras.layers.cache import CacheLayout, CacheView, places_of, reorder
from ut_keras.layers.sru import Sru

MASK = np.array([[True] * 6, [True] * 4 + [False] * 2])


class TestSru(layer_checks.LayerChecks):
    weight_count = 2 * (4 * 12 + 12)

    def make(self, **kwargs):
        return Sru(**kwargs)

    def inputs(self, rng):
        return {"x": rng.normal(size=[2, 6, 4]).astype("float32"), "padding_mask": MASK}

    def call(self, layer, inputs):
        return layer(inputs["x"])


def randomized(rng, num_layers=2, size=4, **kwargs):
    """A layer whose biases are not 0 either."""
    layer = Sru(num_layers, **kwargs)
    layer.build((None, None, size))
    layer.set_weights([rng.normal(size=weight.shape) for weight in layer.weights])
    return layer


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def reference(rows, layer):
    """One sequence [L, D], position by position, in float64."""
    for kernel, bias in zip(layer.kernels, layer.biases):
        state, out = np.zeros(rows.shape[1]), []
        for x in rows:
            candidate, forget, reset = np.split(x @ kernel.numpy().astype(float) + bias.numpy(), 3)
            forget, reset = sigmoid(forget), sigmoid(reset)
            state = forget * state + (1 - forget) * candidate
            out.append(reset * state + (1 - reset) * x)
        rows = np.array(out)
    return rows


def test_weights_that_shut_the_gates_by_hand():
    """f = r = 1/2: c is 1 then 2 of candidates 2 and 3, and h lies half way to x."""
    layer = Sru(num_layers=1)
    layer.build((None, None, 1))
    layer.set_weights([np.array([[1.0, 0.0, 0.0]]), np.zeros(3)])
    assert layer(tf.constant([[[2.0], [3.0]]])).numpy().ravel().tolist() == [1.5, 2.5]


@pytest.mark.parametrize("num_layers", [1, 2, 3])
@pytest.mark.parametrize("length", [1, 5, 40])
def test_equals_numpy(rng, num_layers, length):
    layer = randomized(rng, num_layers)
    x = rng.normal(size=[2, length, 4])
    for ours, rows in zip(layer(tf.constant(x, tf.float32)), x):
        np.testing.assert_allclose(ours, reference(rows, layer), rtol=1e-4, atol=1e-4)


def test_reads_no_later_position(rng):
    layer = randomized(rng)
    x = rng.normal(size=[1, 20, 4]).astype("float32")
    changed = x.copy()
    changed[:, 9:] += 1
    before, after = layer(tf.constant(x)), layer(tf.constant(changed))
    np.testing.assert_array_equal(before[:, :9], after[:, :9])
    assert np.abs(before[:, 9:] - after[:, 9:]).max(axis=-1).min() > 1e-3


def test_states_are_float32_under_every_policy(rng):
    """A state that is a mean of 400 ones reaches 1 however slowly; in bfloat16 it would stick at 0.5."""
    layer = Sru(num_layers=1, dtype="bfloat16")
    layer.build((None, None, 1))
    # 1 - f is sigmoid(-6) = 0.0025, candidate 1, r = 1.
    layer.set_weights([np.zeros([1, 3]), np.array([1.0, 6.0, 20.0])])
    last = float(layer(tf.zeros([1, 400, 1], tf.bfloat16))[0, -1, 0])
    assert last == pytest.approx(1 - sigmoid(6.0) ** 400, abs=4e-3)


class Cached:
    """Two entries of a cache, of which the layer uses the second, moved on position by position."""

    layout = CacheLayout(2, 1, 1)

    def __init__(self, layer, batch, hypotheses):
        self.layer, self.batch, self.hypotheses = layer, batch, hypotheses
        shapes = {name: [2, batch, hypotheses, *shape] for name, shape in layer.latest_states().items()}
        self.tensors = {name: tf.zeros(shape) for name, shape in shapes.items()}

    def advance(self, x, position):
        """x: [B, K*Q, D] -> the same of the layer."""
        count = x.shape[1] // self.hypotheses
        keys = {"keys": tf.zeros([self.batch * 2, 30, self.hypotheses])}
        places = places_of(tf.constant(position), count, self.batch, keys, self.layout, self.hypotheses)
        view = CacheView(self.tensors, tf.constant(1), places)
        return self.layer.transform(tf.constant(x, tf.float32), self.layer.prepare(), view)


@pytest.mark.parametrize("groups", [[5], [2, 1, 2], [0, 3, 0, 1, 1]])
def test_cached_positions_are_those_of_a_full_pass(rng, groups):
    layer = randomized(rng)
    x = rng.normal(size=[2, 5, 4])
    cached, parts, position = Cached(layer, 2, 1), [], 0
    for count in groups:
        parts.append(cached.advance(x[:, position : position + count], position))
        position += count
    np.testing.assert_allclose(tf.concat(parts, axis=1), layer(tf.constant(x, tf.float32)), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(cached.tensors["sru"][0], np.zeros([2, 1, 2, 4]))


def test_hypotheses_go_on_each_from_its_own_state_and_follow_their_parents(rng):
    layer = randomized(rng)
    x = rng.normal(size=[2, 3, 4, 4])  # B, K, L, D
    cached = Cached(layer, 2, 3)
    for position in range(2):
        cached.advance(x[:, :, position], position)
    parents = np.array([[2, 2, 0], [1, 0, 0]])
    cached.tensors = reorder(cached.tensors, tf.constant(parents, tf.int32))
    found = [cached.advance(x[:, :, position], position) for position in (2, 3)]
    for row in range(2):
        for hypothesis in range(3):
            own = np.concatenate([x[row, parents[row, hypothesis], :2], x[row, hypothesis, 2:]])
            expected = layer(tf.constant(own[None], tf.float32))[0, 2:]
            ours = np.stack([part[row, hypothesis] for part in found])
            np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-5)


def test_no_layers_are_refused():
    with pytest.raises(ValueError, match="num_layers=0: there has to be at least one layer"):
        Sru(0)
