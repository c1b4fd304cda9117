"""The LSTM baseline: the battery, both with and without attention, and what is its own."""

import numpy as np
import pytest
import tensorflow as tf

from tests import layer_checks
from ut_keras.models.lstm import LSTMSeq2Seq

INPUTS = np.array([[3, 5, 2, 4, 1], [4, 2, 1, 0, 0], [6, 1, 0, 0, 0]], "int32")
TARGETS = np.array([[2, 3, 4, 1], [4, 1, 0, 0], [3, 2, 1, 0]], "int32")


def make(**kwargs):
    return LSTMSeq2Seq(vocabulary_size=7, target_vocabulary_size=6, hidden_size=4, **kwargs)


class TestLSTM(layer_checks.ModelChecks):
    weight_count = (7 + 6 + 6) * 4 + 2 * (8 * 16 + 16)

    def make(self, **kwargs):
        return make(num_layers=1, **kwargs)

    def inputs(self, rng):
        return {"inputs": INPUTS, "targets": TARGETS}


class TestLSTMWithAttentionOverSentences(layer_checks.ModelChecks):
    weight_count = (7 + 6 + 6) * 4 + 2 * (8 * 16 + 16) + 2 * 3 * 4 + 4 * 4 + 8 * 4

    def make(self, **kwargs):
        return make(attention=True, num_layers=1, words_per_sentence=3, **kwargs)

    def inputs(self, rng):
        sentences = np.array([[[3, 4, 0], [5, 2, 3], [2, 1, 0]], [[4, 1, 0], [0, 0, 0], [0, 0, 0]]], "int32")
        return {"inputs": sentences, "targets": TARGETS[:2]}


@pytest.mark.parametrize("attention", [False, True])
def test_later_targets_are_not_read(attention):
    model = make(attention=attention)
    changed = TARGETS.copy()
    changed[:, 2:] = 5
    before = model({"inputs": INPUTS, "targets": TARGETS})[:, :3]
    np.testing.assert_array_equal(model({"inputs": INPUTS, "targets": changed})[:, :3], before)


@pytest.mark.parametrize("attention", [False, True])
def test_encode_then_decode_is_the_call(attention):
    model = make(attention=attention)
    x = {"inputs": INPUTS, "targets": TARGETS}
    np.testing.assert_allclose(model.decode(TARGETS, model.encode(x)), model(x), rtol=1e-5, atol=1e-6)


def test_attention_reads_the_inputs_directly():
    model = make(attention=True)
    memory = model.encode({"inputs": INPUTS})
    without = {**memory, "outputs": tf.zeros_like(memory["outputs"])}
    assert np.abs(model.decode(TARGETS, memory) - model.decode(TARGETS, without)).max() > 1e-4


def test_dropout_is_a_function_of_the_seed():
    model = make(dropout=0.5)
    x = {"inputs": INPUTS, "targets": TARGETS}
    one, again, other = (model(x, training=True, seed=tf.constant(seed)) for seed in ([1, 2], [1, 2], [1, 3]))
    np.testing.assert_array_equal(one, again)
    assert np.abs(one - other).max() > 1e-4
    np.testing.assert_array_equal(model(x), model(x))
    assert np.abs(model(x, training=True) - model(x, training=True)).max() > 1e-4


def test_ponder_is_empty():
    logits, ponder = make()({"inputs": INPUTS, "targets": TARGETS}, return_ponder=True)
    assert logits.shape == (3, 4, 6)
    assert ponder == {}


def test_layers_have_weights_of_their_own():
    layer = 8 * 16 + 16
    assert make(num_layers=3).count_params() - make(num_layers=1).count_params() == 4 * layer


def test_what_it_cannot_do_is_refused():
    with pytest.raises(ValueError, match="no recurrence over depth"):
        make()({"inputs": INPUTS, "targets": TARGETS}, max_steps=3)
    with pytest.raises(ValueError, match="needs inputs"):
        make()({"targets": TARGETS})


def test_generate_gives_ids_that_end():
    ids = np.array(make().generate(INPUTS, max_length=5))
    assert ids.shape[0] == 3
    assert ids.shape[1] <= 5
    for row in ids:
        ended = np.flatnonzero(row == 1)
        assert not len(ended) or not row[ended[0] + 1 :].any()


@pytest.mark.slow
def test_attention_model_learns_to_copy(rng):
    import keras

    from ut_keras.losses import TokenCrossEntropy

    lengths = rng.integers(2, 6, 256)
    ids = rng.integers(2, 7, [256, 6])
    ids = np.where(np.arange(6) < lengths[:, None], ids, 0)
    ids[np.arange(256), lengths] = 1
    model = LSTMSeq2Seq(7, 7, hidden_size=32, num_layers=1, attention=True)
    model.compile(optimizer=keras.optimizers.Adam(0.01), loss=TokenCrossEntropy(), jit_compile=False)
    model.fit({"inputs": ids, "targets": ids}, ids, batch_size=32, epochs=30, verbose=0)
    made = np.array(model.generate(ids[:64], max_length=7))
    right = [np.array_equal(np.trim_zeros(a), np.trim_zeros(b)) for a, b in zip(made, ids[:64])]
    assert np.mean(right) > 0.9
