"""A decoder reads no later target, and decoding is the call itself."""

import numpy as np
import pytest
import tensorflow as tf

from tests import tiny_models

LANGUAGE_MODELS = ("frozen pre sepconv", "global", "basic", "start index step")
MORE_TYPES = [
    *(("seq2seq", name) for name in ("highway", "skip", "rnn", "gru")),
    *(("language model", name) for name in tiny_models.TYPES),
]
CASES = [
    *(("seq2seq", options) for options in tiny_models.OPTIONS.values()),
    *(("language model", tiny_models.OPTIONS[name]) for name in LANGUAGE_MODELS),
    *((f"plain {kind}", {"transition": "sepconv"}) for kind in ("seq2seq", "language model")),
    ("seq2seq", tiny_models.TYPES["dwa"]),
    ("seq2seq", tiny_models.TYPES["lstm"]),
    *(pytest.param(kind, tiny_models.TYPES[name], marks=pytest.mark.slow) for kind, name in MORE_TYPES),
]
IDS = [
    *(f"seq2seq, {name}" for name in tiny_models.OPTIONS),
    *(f"language model, {name}" for name in LANGUAGE_MODELS),
    "plain seq2seq",
    "plain language model",
    "seq2seq, dwa",
    "seq2seq, lstm",
    *(f"{kind}, {name}" for kind, name in MORE_TYPES),
]
BATTERY = pytest.mark.parametrize(("kind", "options"), CASES, ids=IDS)


@BATTERY
def test_later_targets_change_no_earlier_logit(kind, options):
    """Row r of the batch is the same sequence but for the targets from position r on."""
    model = tiny_models.make(kind, **options)
    targets = np.tile(np.array([5, 6, 7, 2, 3], "int32"), [5, 1])
    for row in range(1, 5):
        targets[row, row:] = (targets[row, row:] + 1) % 7 + 2
    features = {"inputs": np.tile(np.array([3, 4, 2, 1], "int32"), [5, 1]), "targets": targets}
    logits = model({name: features[name] for name in tiny_models.rows(kind)}).numpy()
    for row in range(1, 5):
        # Position r reads the targets before r, so that logits up to and including r are the same.
        np.testing.assert_allclose(logits[row, : row + 1], logits[0, : row + 1], rtol=1e-4, atol=1e-5)
        if row < 4:
            assert np.abs(logits[row, row + 1 :] - logits[0, row + 1 :]).max() > 1e-3


@BATTERY
def test_decoding_a_prefix_gives_the_logits_of_the_whole(kind, options):
    model, batch = tiny_models.make(kind, **options), tiny_models.rows(kind)
    whole = model(batch).numpy()
    memory = model.encode(batch)
    for length in (1, 3, 5):
        real = np.any(batch["targets"][:, length - 1 : length] != 0, axis=1)
        prefix = batch["targets"][:, :length].copy()
        prefix[:, -1] = np.where(real, 8, 0)  # the id at the position that is to be predicted is not read
        logits = model.decode(tf.constant(prefix), memory).numpy()
        np.testing.assert_allclose(logits[real, -1], whole[real, length - 1], rtol=1e-4, atol=1e-5)
        last = model.decode(tf.constant(prefix), memory, last=True).numpy()
        assert last.shape[1] == 1
        np.testing.assert_allclose(last[real, -1], logits[real, -1], rtol=1e-4, atol=1e-5)


def test_tensor2tensors_mean_over_all_targets_is_not_causal():
    """The option that brings back T2T's numbers brings back its leak; the default has none."""
    from ut_keras.layers.halting import AdaptiveComputationTime

    targets = np.array([[5, 6, 7, 2, 3], [5, 6, 2, 8, 8]], "int32")
    inputs = np.array([[3, 4, 1]] * 2, "int32")
    differences = []
    for over in ("prefix", "all"):
        halting = AdaptiveComputationTime("global", global_over=over)
        logits = tiny_models.make("seq2seq", halting=halting)({"inputs": inputs, "targets": targets}).numpy()
        differences.append(np.abs(logits[0, :3] - logits[1, :3]).max())
    assert differences[0] < 1e-5 < 1e-3 < differences[1]
