"""No example depends on how it was batched: [A], [A padded] and [A, B, C, empty] give the same for A."""

import numpy as np
import pytest
import tensorflow as tf

from tests import tiny_models
from ut_keras import losses

CASES = [
    *(("seq2seq", name) for name in tiny_models.OPTIONS),
    ("language model", "frozen"),
    ("language model", "global"),
    ("language model", "start index step"),
    ("encoder", "start index step"),
    ("encoder", "accumulated relative hard"),
    ("encoder", "frozen pre sepconv"),
    ("classifier", "accumulated sepconv concat SRU"),
    ("classifier", "basic"),
    ("pointer", "frozen"),
]
PLAIN = [f"plain {kind}" for kind in ("seq2seq", "language model", "encoder", "classifier", "pointer")]
MORE_TYPES = [
    *(("seq2seq", name) for name in ("skip", "dwa", "rnn", "lstm")),
    *((kind, name) for kind in ("language model", "encoder") for name in tiny_models.TYPES),
]
BATTERY = pytest.mark.parametrize(
    ("kind", "options"),
    [
        *((kind, tiny_models.OPTIONS[name]) for kind, name in CASES),
        *((kind, {"norm": "pre", "transition": "sepconv"}) for kind in PLAIN),
        ("seq2seq", {"numbering": "end", "target_space_id": 3, "shared_embedding": False}),
        ("seq2seq", tiny_models.TYPES["highway"]),
        ("seq2seq", tiny_models.TYPES["gru"]),
        *(pytest.param(kind, tiny_models.TYPES[name], marks=pytest.mark.slow) for kind, name in MORE_TYPES),
    ],
    ids=[
        *(f"{kind}, {name}" for kind, name in CASES),
        *PLAIN,
        "seq2seq, numbered from the end",
        "seq2seq, highway",
        "seq2seq, gru",
        *(f"{kind}, {name}" for kind, name in MORE_TYPES),
    ],
)


def real_parts(model, batch, row=0):
    """Outputs, ponder times and remainders of one row at its real positions, by name."""
    outputs, ponder = model({name: tf.constant(value) for name, value in batch.items()}, return_ponder=True)
    lengths = {name: int(np.reshape(ids[row], [len(ids[row]), -1]).any(-1).sum()) for name, ids in batch.items()}
    if outputs.shape.rank == 2:
        parts = {"outputs": outputs[row]}
    else:
        parts = {"outputs": outputs[row, : lengths.get("targets", lengths.get("inputs"))]}
    for side, one in ponder.items():
        length = lengths["inputs" if side == "encoder" else "targets"]
        parts[f"{side} ponder times"] = one.ponder_times[row, :length]
        parts[f"{side} remainders"] = one.remainders[row, :length]
        parts[f"{side} halting probability"] = one.halting_probability[:, row, :length]
        assert float(tf.reduce_sum(one.ponder_times)) == float(tf.reduce_sum(one.ponder_times * one.weights))
    return parts


@BATTERY
def test_padding_and_batch_mates_change_nothing(kind, options):
    model, batch = tiny_models.make(kind, **options), tiny_models.rows(kind)
    expected = real_parts(model, tiny_models.alone(batch))
    backwards = {name: value[::-1] for name, value in batch.items()}
    for other, row in ((tiny_models.alone(batch, extra=3), 0), (batch, 0), (backwards, 3)):
        parts = real_parts(model, other, row)
        assert set(parts) == set(expected)
        for name, value in parts.items():
            np.testing.assert_allclose(value, expected[name], rtol=1e-4, atol=1e-5, err_msg=name)


@BATTERY
def test_an_empty_example_changes_neither_loss_nor_gradients(kind, options):
    model, batch = tiny_models.make(kind, **options), tiny_models.alone(tiny_models.rows(kind))
    with_empty = {name: np.concatenate([value, 0 * value]) for name, value in batch.items()}
    for one, other in zip(loss_and_gradients(model, batch), loss_and_gradients(model, with_empty), strict=True):
        assert np.all(np.isfinite(other))
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)


def labels_of(batch, outputs):
    """What the tests let a model predict: its targets, its inputs, or one class, the first word of its inputs."""
    labels = batch.get("targets", batch.get("inputs"))
    first = labels[:, 0] if labels.ndim == 2 else labels[:, 0, 0]
    return labels if len(outputs.shape) == 3 else np.minimum(first, outputs.shape[-1] - 1)


def loss_and_gradients(model, batch):
    """The loss that a trainer takes from sums and counts, the cost that `fit` adds, and the gradients of the loss."""
    with tf.GradientTape() as tape:
        outputs, ponder = model({name: tf.constant(value) for name, value in batch.items()}, return_ponder=True)
        total, count = losses.token_cross_entropy_sums(outputs, labels_of(batch, outputs), 0.1)
        loss = total / count + 0.1 * sum(one / many for one, many in losses.ponder_sums(ponder).values())
    variables = [variable.value for variable in model.trainable_variables]
    gradients = tape.gradient(loss, variables, unconnected_gradients="zero")
    return [loss, sum(model.losses, tf.constant(0.0)), *gradients]


def test_the_battery_has_positions_that_halt_at_different_steps():
    for name, options in (tiny_models.OPTIONS | tiny_models.TYPES).items():
        if "halting" in options:
            model, batch = tiny_models.make("seq2seq", **options), tiny_models.rows("seq2seq")
            _, ponder = model(batch, return_ponder=True)
            times = [side.ponder_times.numpy()[side.weights.numpy() == 1] for side in ponder.values()]
            assert max(len(np.unique(one)) for one in times) > 1, name


def test_a_batch_of_empty_examples_is_finite_forward_and_backward():
    model = tiny_models.make("seq2seq", halting="frozen")
    batch = {"inputs": np.zeros([2, 3], "int32"), "targets": np.zeros([2, 2], "int32")}
    with tf.GradientTape() as tape:
        logits, ponder = model(batch, return_ponder=True)
        loss = tf.reduce_sum(logits)
    assert np.all(np.isfinite(logits))
    for gradient in tape.gradient(loss, [v.value for v in model.trainable_variables], unconnected_gradients="zero"):
        assert np.all(np.isfinite(gradient))
    for side in ponder.values():
        np.testing.assert_array_equal(side.ponder_times, 0 * side.weights)


def test_the_vector_of_the_padding_id_is_never_read():
    model, ids = tiny_models.make("encoder", halting="basic", shared_embedding=False), np.array([[3, 4, 1, 0, 0]])
    before = model(ids).numpy()
    for row in (0, 3):
        table = model.embedding.table.numpy()
        table[row] += np.arange(8)
        model.embedding.table.assign(table)
        assert (np.abs(model(ids) - before).max() > 1e-3) == (row == 3)
