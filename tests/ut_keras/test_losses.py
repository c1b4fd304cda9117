"""Cross-entropy and ponder cost against tensor2tensor's numbers and a plain numpy form."""

import collections

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import golden_files
from ut_keras import losses

Ponder = collections.namedtuple("Ponder", "ponder_times remainders halting_probability weights")


def numpy_cross_entropy(logits, targets, label_smoothing):
    """Soft target written out, its entropy subtracted, float64."""
    logits = logits.astype("float64")
    classes = logits.shape[-1]
    log_p = logits - np.log(np.sum(np.exp(logits), axis=-1, keepdims=True))
    soft = np.full(logits.shape, label_smoothing / (classes - 1))
    np.put_along_axis(soft, targets[..., None], 1 - label_smoothing, axis=-1)
    entropy = -np.sum(np.where(soft > 0, soft * np.log(np.maximum(soft, 1e-30)), 0), axis=-1)
    return (-np.sum(soft * log_p, axis=-1) - entropy) * (targets != 0)


GOLDEN = golden_files.load("label_smoothed_xent")


@pytest.mark.parametrize("case", GOLDEN.cases())
@pytest.mark.parametrize("label_smoothing", [0.0, 0.1, 0.3])
def test_cross_entropy_and_gradient_equal_tensor2tensor(case, label_smoothing):
    golden = GOLDEN.under(case)
    logits, labels = tf.constant(golden["logits"]), tf.constant(golden["labels"])
    expected = {key.split("/")[1]: value for key, value in golden.items() if f"ls{label_smoothing}/" in key}
    with tf.GradientTape() as tape:
        tape.watch(logits)
        total, count = losses.token_cross_entropy_sums(logits, labels, label_smoothing)
        mean = total / count
    per_token = losses.token_cross_entropy(logits, labels, label_smoothing)
    np.testing.assert_allclose(total, expected["num"], rtol=1e-5)
    assert count == expected["den"]
    np.testing.assert_allclose(per_token, expected["per_token"] * (golden["labels"] != 0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(tape.gradient(mean, logits), expected["grad_mean_wrt_logits"], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1, 0.9])
def test_cross_entropy_equals_numpy(rng, label_smoothing):
    logits = rng.normal(size=[3, 5, 7]).astype("float32") * 4
    targets = rng.integers(0, 7, [3, 5])
    result = losses.token_cross_entropy(logits, targets, label_smoothing)
    np.testing.assert_allclose(result, numpy_cross_entropy(logits, targets, label_smoothing), rtol=1e-5, atol=1e-5)


def test_perfect_smoothed_prediction_scores_zero():
    soft = np.log([[[0.05, 0.05, 0.9]]]).astype("float32")
    assert abs(float(losses.token_cross_entropy(soft, [[2]], 0.1)[0, 0])) < 1e-6


def test_huge_logits_stay_finite():
    logits = tf.constant([[[1e4, -1e4, 0.0], [-1e4, 1e4, 0.0]]])
    with tf.GradientTape() as tape:
        tape.watch(logits)
        total, _ = losses.token_cross_entropy_sums(logits, [[1, 1]], 0.1)
    assert np.isfinite(total)
    assert np.all(np.isfinite(tape.gradient(total, logits)))


@pytest.mark.parametrize("targets", [[2, 1], [[2], [1]]])
def test_class_targets_of_either_rank_count_rows(targets):
    logits = np.array([[0.0, 1.0, 3.0], [2.0, 0.0, 1.0]], "float32")
    total, count = losses.token_cross_entropy_sums(logits, targets)
    log_z = np.log(np.exp(logits).sum(-1))
    np.testing.assert_allclose(total, log_z[0] - 3.0 + log_z[1] - 0.0, rtol=1e-6)
    assert count == 2


def test_padding_and_batch_mates_add_nothing(rng):
    logits = rng.normal(size=[2, 4, 6]).astype("float32")
    alone = losses.token_cross_entropy_sums(logits[:1, :3], [[3, 4, 1]], 0.1)
    padded = losses.token_cross_entropy_sums(logits, [[3, 4, 1, 0], [0, 0, 0, 0]], 0.1)
    np.testing.assert_allclose(alone, padded, rtol=1e-6)


def test_keras_loss_is_a_mean_over_real_tokens(rng):
    logits = rng.normal(size=[2, 3, 5]).astype("float32")
    targets = np.array([[2, 4, 1], [1, 0, 0]])
    expected = numpy_cross_entropy(logits, targets, 0.1).sum() / 4
    np.testing.assert_allclose(losses.TokenCrossEntropy(0.1)(targets, logits), expected, rtol=1e-5)


def test_keras_loss_without_a_real_token_is_zero():
    assert float(losses.TokenCrossEntropy()(np.zeros([2, 3], int), np.ones([2, 3, 5]))) == 0.0


def test_keras_loss_reads_half_precision_logits_in_float32():
    logits = tf.constant([[[0.0, 300.0, -300.0]]], tf.float16)
    assert losses.TokenCrossEntropy()([[2]], logits).numpy() == np.float32(600.0)


def test_sample_weight_weighs_loss_and_count(rng):
    logits = rng.normal(size=[2, 3, 5]).astype("float32")
    targets = np.array([[2, 4, 1], [3, 1, 0]])
    loss = losses.TokenCrossEntropy()
    np.testing.assert_allclose(
        loss(targets, logits, sample_weight=np.array([1.0, 0.0])), loss(targets[:1], logits[:1]), rtol=1e-6
    )


def test_keras_loss_survives_serialisation():
    loss = keras.losses.deserialize(keras.losses.serialize(losses.TokenCrossEntropy(0.2, name="mine")))
    assert (loss.label_smoothing, loss.name) == (0.2, "mine")


def test_label_smoothing_outside_of_its_range_is_refused():
    with pytest.raises(ValueError, match=r"label_smoothing=1.0 is not in \[0, 1\)"):
        losses.TokenCrossEntropy(1.0)


def test_ponder_cost_counts_weighted_positions_of_each_side():
    ponder = Ponder(
        tf.constant([[2.0, 3.0, 9.0]]), tf.constant([[0.5, 0.25, 9.0]]), None, tf.constant([[1.0, 1.0, 0.0]])
    )
    sums = losses.ponder_sums({"encoder": ponder})
    assert list(sums) == ["encoder"]
    assert [float(value) for value in sums["encoder"]] == [5.75, 2.0]
    assert losses.ponder_sums({}) == {}


def test_ponder_cost_has_its_gradient_through_the_remainder_alone():
    times, remainders = tf.constant([[2.0, 3.0]]), tf.constant([[0.5, 0.25]])
    with tf.GradientTape() as tape:
        tape.watch([times, remainders])
        cost, _ = losses.ponder_sums({"decoder": Ponder(times, remainders, None, tf.ones([1, 2]))})["decoder"]
    gradients = tape.gradient(cost, [times, remainders])
    assert gradients[0] is None
    np.testing.assert_array_equal(gradients[1], [[1.0, 1.0]])
