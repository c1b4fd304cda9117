"""Metrics against tensor2tensor's numbers; padding and batches change nothing."""

import keras
import numpy as np
import pytest

from tests import golden_files
from ut_keras import losses, metrics

GOLDEN = golden_files.load("metrics")


@pytest.mark.parametrize("case", GOLDEN.cases())
def test_sums_equal_tensor2tensor(case):
    golden = GOLDEN.under(case)
    sums = metrics.sums(golden["logits"], golden["labels"])
    for name in ("accuracy", "accuracy_top5", "sequence_accuracy"):
        total, count = sums[name]
        np.testing.assert_allclose(total / count, golden[f"{name}/weighted_mean"], rtol=1e-5)
    total, count = sums["neg_log_likelihood"]
    np.testing.assert_allclose(-total / count, golden["neg_log_perplexity/weighted_mean"], rtol=1e-5)
    assert count == golden["neg_log_perplexity/weights"].sum()


@pytest.mark.parametrize("case", GOLDEN.cases())
def test_numbers_of_each_token_and_row_equal_tensor2tensor(case):
    golden = {key: value.squeeze() for key, value in GOLDEN.under(case).items()}
    logits, labels = golden["logits"], golden["labels"]
    mine = {name: values.numpy() for name, values in metrics.by_example(logits, labels).items()}
    tokens = {
        "accuracy": mine["right"],
        "accuracy_top5": metrics.right_in_top(logits, labels),
        "neg_log_perplexity": -mine["neg_log_likelihood"],
    }
    for name, values in tokens.items():
        theirs, weights = golden[f"{name}/values"], golden[f"{name}/weights"]
        np.testing.assert_allclose(values, (theirs * weights).sum(axis=1), rtol=1e-5, err_msg=name)
        np.testing.assert_array_equal(mine["tokens"], weights.sum(axis=1), err_msg=name)
    each = -losses.token_cross_entropy(logits, labels)
    np.testing.assert_allclose(each, golden["neg_log_perplexity/values"] * weights, rtol=1e-5, atol=1e-6)
    # Their rows weigh alike as well: one weight for all of them.
    np.testing.assert_array_equal(mine["sequence_right"], golden["sequence_accuracy/values"])
    np.testing.assert_array_equal(mine["sequences"], golden["sequence_accuracy/weights"] + np.zeros(len(labels)))


@pytest.mark.parametrize("case", GOLDEN.cases())
def test_keras_metrics_equal_tensor2tensor(case):
    golden = GOLDEN.under(case)
    expected = {
        metrics.TokenAccuracy: golden["accuracy/weighted_mean"],
        metrics.SequenceAccuracy: golden["sequence_accuracy/weighted_mean"],
        metrics.Perplexity: np.exp(-golden["neg_log_perplexity/weighted_mean"]),
    }
    for kind, value in expected.items():
        metric = kind()
        metric.update_state(golden["labels"], golden["logits"])
        np.testing.assert_allclose(metric.result(), value, rtol=1e-5)


METRICS = [metrics.TokenAccuracy, metrics.SequenceAccuracy, metrics.Perplexity]


@pytest.mark.parametrize("kind", METRICS)
def test_result_does_not_depend_on_batches_or_padding(rng, kind):
    logits = rng.normal(size=[6, 4, 5]).astype("float32")
    targets = np.array([[2, 3, 1, 0], [1, 0, 0, 0], [4, 4, 4, 1], [2, 1, 0, 0], [0, 0, 0, 0], [3, 1, 0, 0]])
    logits[:3, np.arange(4)] += 9 * np.eye(5)[targets[:3]]
    whole, parts = kind(), kind()
    whole.update_state(targets, logits)
    for rows, length in (([0], 3), ([1, 3, 5], 2), ([2, 4], 4)):
        parts.update_state(targets[rows, :length], logits[rows, :length])
    np.testing.assert_allclose(whole.result(), parts.result(), rtol=1e-6)


@pytest.mark.parametrize(("kind", "empty"), list(zip(METRICS, [0.0, 0.0, 1.0])))
def test_nothing_counted_is_a_finite_result(kind, empty):
    metric = kind()
    assert float(metric.result()) == empty
    metric.update_state(np.zeros([2, 3], int), np.ones([2, 3, 5]))
    assert float(metric.result()) == empty


def test_rows_without_a_real_token_are_not_right_sequences():
    total, count = metrics.sums(np.zeros([2, 1, 3]), [[0], [1]])["sequence_accuracy"]
    assert (float(total), float(count)) == (0.0, 1.0)


def test_class_logits_count_rows():
    logits = np.array([[0.0, 9.0, 0.0], [0.0, 9.0, 0.0]])
    for targets in ([1, 2], [[1], [2]]):
        sums = metrics.sums(logits, targets)
        assert [float(value) for value in sums["accuracy"]] == [1.0, 2.0]
        assert [float(value) for value in sums["sequence_accuracy"]] == [1.0, 2.0]
        assert [float(value) for value in sums["accuracy_top5"]] == [2.0, 2.0]


def test_right_in_top_counts_real_tokens_with_fewer_than_k_ids_above_them():
    logits = np.array([[[9, 8, 7, 6]] * 3, [[5, 5, 5, 5], [1, 2, 3, 4], [9, 0, 0, 0]]], "float32")
    targets = np.array([[1, 2, 3], [3, 1, 0]])
    assert [metrics.right_in_top(logits, targets, k).numpy().tolist() for k in (1, 2, 3, 9)] == [
        [0, 1],  # of four equal ones none is above the other
        [1, 1],
        [2, 2],
        [3, 2],
    ]
    assert metrics.right_in_top(logits[:, 0], [[3], [2]], k=1).numpy().tolist() == [0, 1]


@pytest.mark.parametrize("kind", METRICS)
def test_sample_weight_of_zero_leaves_a_row_out(kind, rng):
    logits, targets = rng.normal(size=[2, 3, 5]), np.array([[2, 4, 1], [3, 1, 0]])
    weighted, alone = kind(), kind()
    weighted.update_state(targets, logits, sample_weight=np.array([0.0, 1.0]))
    alone.update_state(targets[1:], logits[1:])
    np.testing.assert_allclose(weighted.result(), alone.result(), rtol=1e-6)


@pytest.mark.parametrize("kind", METRICS)
def test_metric_survives_serialisation(kind):
    metric = keras.metrics.deserialize(keras.metrics.serialize(kind(name="mine")))
    assert type(metric) is kind
    assert metric.name == "mine"


def test_metrics_and_loss_work_in_fit_and_evaluate(rng):
    model = keras.Sequential([keras.Input([4], dtype="int32"), keras.layers.Embedding(6, 6)])
    model.compile(
        optimizer=keras.optimizers.Adam(0.3),
        loss=losses.TokenCrossEntropy(0.1),
        metrics=[kind() for kind in METRICS],
        jit_compile=False,
    )
    ids = rng.integers(1, 6, [16, 4])
    model.fit(ids, ids, epochs=15, batch_size=6, verbose=0)
    result = model.evaluate(ids, ids, batch_size=5, verbose=0, return_dict=True)
    assert result["accuracy"] == 1.0
    assert result["teacher_forced_sequence_accuracy"] == 1.0
    assert result["loss"] < 0.1
    assert 1.0 < result["perplexity"] < 1.3


def test_numbers_of_each_example_are_over_its_real_tokens():
    targets = np.array([[2, 3, 1], [1, 0, 0], [0, 0, 0]])
    logits = np.zeros([3, 3, 4], "float32")
    logits[0, 0, 2] = logits[0, 1, 3] = logits[0, 2, 2] = np.log(3.0)  # right, right, wrong
    logits[1, 0, 1] = np.log(3.0)
    found = {name: values.numpy().tolist() for name, values in metrics.by_example(logits, targets).items()}
    assert found["tokens"] == [3, 1, 0]
    assert found["right"] == [2, 1, 0]
    assert found["sequences"] == [1, 1, 0]
    assert found["sequence_right"] == [0, 1, 0]
    np.testing.assert_allclose(found["neg_log_likelihood"], [2 * np.log(2) + np.log(6), np.log(2), 0], rtol=1e-6)


def test_last_word_is_the_last_real_token_before_the_end():
    targets = np.array([[3, 2, 1, 0], [3, 1, 0, 0], [2, 3, 3, 2], [1, 0, 0, 0], [0, 0, 0, 0]])
    logits = np.zeros([5, 4, 4], "float32")
    logits[0, 1] = np.log([1, 1, 4, 2])
    logits[1, 0] = np.log([1, 5, 1, 1])  # the word 3 is as good as two others
    logits[2, 3] = np.log([1, 1, 3, 3])  # and here as good as its alternative
    found = metrics.last_word(logits, targets, np.array([3, 2, 3, 2, 2]))
    found = {name: values.numpy().tolist() for name, values in found.items()}
    assert found["words"] == [1, 1, 1, 0, 0]
    np.testing.assert_allclose(found["log_probability"], np.log([4 / 8, 1 / 8, 3 / 8, 1, 1]), atol=1e-6)
    assert found["rank"] == [1, 4, 2, 0, 0]
    assert found["right"] == [1, 0, 0, 0, 0]
    assert found["pairs"] == [1, 1, 1, 0, 0]
    assert found["preferred"] == [1, 0, 0, 0, 0]
    unknown = metrics.last_word(logits, targets, np.zeros(5, int), unknown=2)
    assert unknown["right"].numpy().tolist() == [0, 0, 0, 0, 0] and unknown["rank"].numpy().tolist() == found["rank"]
    assert metrics.last_word(logits, targets, np.zeros(5, int))["pairs"].numpy().sum() == 0
