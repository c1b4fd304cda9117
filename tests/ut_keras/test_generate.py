"""`model.generate` of every kind of model: rows are independent, and one compiled function serves all shapes."""

import gc
import weakref

import keras
import numpy as np
import pytest

from ut_keras import Classifier, LSTMSeq2Seq, UniversalTransformer, UniversalTransformerEncoder, UniversalTransformerLM

SIZES = {"hidden_size": 8, "num_heads": 2, "filter_size": 16, "max_steps": 3}
INPUTS = np.array([[5, 6, 7, 8, 9, 1], [4, 1, 0, 0, 0, 0], [9, 9, 3, 1, 0, 0]], np.int32)


def _ut(**options):
    keras.utils.set_random_seed(3)
    return UniversalTransformer(12, **SIZES, **options)


def _lstm():
    keras.utils.set_random_seed(3)
    return LSTMSeq2Seq(12, hidden_size=8, num_layers=1, attention=True)


@pytest.mark.parametrize("make", [lambda: _ut(halting="accumulated"), lambda: _ut(halting="frozen"), _lstm])
def test_a_row_is_decoded_alone_as_in_a_padded_batch_with_an_empty_row(make):
    model = make()
    batch = np.pad(INPUTS, [[0, 1], [0, 3]])
    together = model.generate(batch, max_length=[6, 9, 4, 5])
    for row, (inputs, limit) in enumerate(zip(INPUTS, (6, 9, 4), strict=True)):
        alone = model.generate(inputs[None, inputs != 0], max_length=limit)
        np.testing.assert_array_equal(together[row, : alone.shape[1]], alone[0])
        np.testing.assert_array_equal(together[row, alone.shape[1] :], 0)


def test_greedy_choices_are_those_of_one_teacher_forced_pass():
    model = _ut(halting="basic")
    ids = model.generate(INPUTS, max_length=8)
    logits = model({"inputs": INPUTS, "targets": ids}).numpy()
    logits[..., 0] = -np.inf
    np.testing.assert_array_equal(np.where(ids, logits.argmax(-1), 0), ids)


def test_language_model_keeps_its_prefix_and_makes_at_most_max_length_more():
    keras.utils.set_random_seed(5)
    model = UniversalTransformerLM(12, **SIZES)
    ids = model.generate(np.array([[5, 6, 0], [7, 0, 0]]), max_length=4)
    assert ids[0, :2].tolist() == [5, 6] and ids[1, 0] == 7
    assert np.count_nonzero(ids[0]) <= 6 and np.count_nonzero(ids[1]) <= 5
    alone = model.generate(np.array([[7]]), max_length=4)
    np.testing.assert_array_equal(ids[1, : alone.shape[1]], alone[0])


def test_classifier_generates_one_id():
    keras.utils.set_random_seed(3)
    model = Classifier(UniversalTransformerEncoder(12, **SIZES), num_classes=12)
    logits = model({"inputs": INPUTS}).numpy()
    np.testing.assert_array_equal(model.generate(INPUTS), logits[:, 1:].argmax(-1)[:, None] + 1)


def test_fewer_steps_can_be_asked_for():
    model = _ut()
    one = model.generate(INPUTS, max_length=6, max_steps=1)
    logits = model({"inputs": INPUTS, "targets": one}, max_steps=1).numpy()
    np.testing.assert_array_equal(np.where(one, logits[..., 1:].argmax(-1) + 1, 0), one)


def test_default_limit_is_the_inputs_length_and_a_hundred():
    assert _ut().generate(INPUTS).shape[1] <= 106


def test_compiled_search_is_made_once_and_goes_with_its_model():
    model = _ut()
    model.generate(INPUTS, max_length=2)
    (search,) = vars(model)["_generate"].values()
    model.generate(INPUTS[:1, :3], max_length=3)
    assert search.experimental_get_tracing_count() == 1
    gone = weakref.ref(model)
    del model, search
    keras.backend.clear_session()
    gc.collect()
    assert gone() is None
