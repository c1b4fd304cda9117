"""The transition against numpy loops and tensor2tensor, and the battery."""

import numpy as np
import pytest
import tensorflow as tf

from tests import golden_files, layer_checks, references
from ut_keras.layers.transition import Transition

MASK = np.array([[True] * 6, [True] * 4 + [False] * 2])


class TestFullyConnected(layer_checks.LayerChecks):
    weight_count = 4 * 8 + 8 + 8 * 4 + 4

    def make(self, **kwargs):
        return Transition(8, **kwargs)

    def inputs(self, rng):
        return {"x": rng.normal(size=[2, 6, 4]).astype("float32"), "padding_mask": MASK}


class TestSeparableConvolutions(TestFullyConnected):
    weight_count = TestFullyConnected.weight_count + 3 * 4 + 5 * 8

    def make(self, **kwargs):
        return Transition(8, kind="sepconv", **kwargs)


def weights_of(layer):
    weights = [layer._kernel1, layer._bias1, layer._kernel2, layer._bias2, *layer._depthwise]
    return [weight.numpy() for weight in weights]


@pytest.mark.parametrize("kind", ["fc", "sepconv"])
@pytest.mark.parametrize("causal", [False, True])
def test_real_positions_equal_numpy(rng, kind, causal):
    layer = Transition(8, kind, causal)
    x = rng.normal(size=[2, 6, 4])
    layer.build(x.shape)
    layer.set_weights([rng.normal(size=weight.shape) for weight in layer.weights])  # biases too
    ours = layer(tf.constant(x, tf.float32), tf.constant(MASK))
    for one, rows, length in zip(ours, x, (6, 4)):
        if kind == "fc":
            expected = references.fully_connected(rows[:length], weights_of(layer))
        else:
            expected = references.separable_convolutions(rows[:length], weights_of(layer), causal)
        np.testing.assert_allclose(one[:length], expected, rtol=1e-4, atol=1e-4)


def test_causal_convolutions_never_read_a_later_position(rng):
    layer = Transition(8, "sepconv", causal=True)
    x = rng.normal(size=[1, 6, 4]).astype("float32")
    changed = x.copy()
    changed[:, 3:] += 1
    before, after = layer(tf.constant(x)), layer(tf.constant(changed))
    np.testing.assert_array_equal(before[:, :3], after[:, :3])
    assert np.abs(before[:, 3:] - after[:, 3:]).min(axis=-1).max() > 0


def test_zero_padding_gives_zero_at_padding_and_changes_nothing_else(rng):
    x = tf.constant(rng.normal(size=[2, 6, 4]), tf.float32)
    plain, zeroed = Transition(8), Transition(8, zero_padding=True)
    full = plain(x, tf.constant(MASK))
    zeroed.build(x.shape)
    zeroed.set_weights(plain.get_weights())
    np.testing.assert_allclose(zeroed(x, tf.constant(MASK)), full * MASK[..., None], rtol=1e-6)
    assert np.abs(full[1, 4:]).max() > 0


@pytest.mark.parametrize("case", ["c0", "c1"])
@pytest.mark.parametrize("padding", ["SAME", "LEFT"])
def test_separable_convolutions_equal_tensor2tensor(case, padding):
    golden = golden_files.load("blocks").under(f"{case}/sepconv_{padding}")
    parts = {name.removeprefix("w/sepconv_relu_sepconv/"): value for name, value in golden.items()}
    filter_size = parts["conv1_single/bias"].shape[0]
    layer = Transition(filter_size, "sepconv", causal=padding == "LEFT")
    layer.build(golden["x"].shape)
    for index in (1, 2):
        conv = f"conv{index}_single"
        getattr(layer, f"_kernel{index}").assign(parts[f"{conv}/pointwise_kernel"][0, 0])
        getattr(layer, f"_bias{index}").assign(parts[f"{conv}/bias"])
        layer._depthwise[index - 1].assign(parts[f"{conv}/depthwise_kernel"][:, 0, :, 0])
    mask = tf.constant(golden["nonpadding"] != 0) if padding == "SAME" else None
    np.testing.assert_allclose(layer(golden["x"], mask), golden["out"], rtol=1e-4, atol=5e-5)


def test_dropout_is_a_function_of_the_seed(rng):
    layer = Transition(8, dropout=0.5)
    x = tf.constant(rng.normal(size=[2, 6, 4]), tf.float32)
    one, again, other = (layer(x, seed=tf.constant(seed)) for seed in ([1, 2], [1, 2], [1, 3]))
    np.testing.assert_array_equal(one, again)
    assert np.abs(one - other).max() > 1e-3


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="kind='conv' is not one of fc, sepconv"):
        Transition(8, "conv")
