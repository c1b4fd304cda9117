"""`model.generate` of every kind of model: rows are independent, and one compiled function serves all shapes."""

import gc
import weakref

import keras
import numpy as np
import pytest

from ut_keras import Classifier, LSTMSeq2Seq, UniversalTransformer, UniversalTransformerEncoder, UniversalTransformerLM
from ut_keras.decoding.answer import answer
from ut_keras.decoding.options import DecodingOptions
from ut_keras.errors import UsageError

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


def test_language_model_goes_on_from_nothing():
    keras.utils.set_random_seed(5)
    model = UniversalTransformerLM(12, **SIZES)
    whole = model.generate(np.zeros([2, 0], int), max_length=4)
    assert whole.shape[0] == 2 and np.all(whole[:, 0] > 0)
    np.testing.assert_array_equal(model.generate(np.zeros([2, 1], int), max_length=4), whole)


def test_classifier_generates_one_id_or_the_best_ones():
    keras.utils.set_random_seed(3)
    model = Classifier(UniversalTransformerEncoder(12, **SIZES), num_classes=12)
    logits = model({"inputs": INPUTS}).numpy()[:, 1:]
    np.testing.assert_array_equal(model.generate(INPUTS), logits.argmax(-1)[:, None] + 1)
    best = np.argsort(-logits, axis=-1)[:, :3, None] + 1
    np.testing.assert_array_equal(model.generate(INPUTS, n_best=3), best)


def test_encoder_with_a_head_chooses_at_each_position_and_searches_for_nothing():
    keras.utils.set_random_seed(3)
    model = UniversalTransformerEncoder(12, head="tokens", **SIZES)
    logits = model({"inputs": INPUTS}).numpy()[..., 1:]
    np.testing.assert_array_equal(model.generate(INPUTS), np.where(INPUTS, logits.argmax(-1) + 1, 0))
    with pytest.raises(UsageError, match="beam_size=2: an encoder's ids are each the best one"):
        model.generate(INPUTS, beam_size=2)


def teacher_forced(model, inputs, ids):
    """Log-probabilities [B, n] of ids [B, n, N] under one full pass for each of the n."""
    result = np.zeros(ids.shape[:2])
    for index in range(ids.shape[1]):
        targets = ids[:, index]
        logits = model({"inputs": inputs, "targets": targets}).numpy()
        chosen = np.take_along_axis(logits - np.log(np.exp(logits).sum(-1, keepdims=True)), targets[..., None], -1)
        result[:, index] = np.where(targets, chosen[..., 0], 0).sum(-1)
    return result


@pytest.mark.slow
@pytest.mark.parametrize("make", [lambda: _ut(halting="basic"), lambda: _ut(halting="frozen"), _lstm])
@pytest.mark.parametrize("cached", [True, False])
def test_beam_and_samples_of_a_real_model_have_the_scores_of_a_full_pass(make, cached):
    """U94: the encoder's output did not belong to its beams. U95: with a cache there were other numbers."""
    model = make()
    inputs, limits = np.pad(INPUTS[:2], [[0, 0], [0, 1]]), np.array([7, 6], "int32")
    options = [{"beam_size": 3, "n_best": 3, "alpha": 0.0}, {"temperature": 1.0, "n_best": 3, "seed": 3}]
    for option in options:
        found = answer(model, inputs, limits, "sequence", DecodingOptions(cached=cached, **option))
        expected = teacher_forced(model, inputs, found.ids.numpy())
        np.testing.assert_allclose(found.log_probability, expected, rtol=1e-4, atol=1e-4)
        assert np.all(np.count_nonzero(found.ids, axis=-1) <= limits[:, None])


@pytest.mark.slow
@pytest.mark.parametrize("make", [lambda: _ut(halting="accumulated"), lambda: _ut(transition="sepconv"), _lstm])
@pytest.mark.parametrize("options", [{"beam_size": 3, "n_best": 2}, {"temperature": 0.7, "top_k": 5, "n_best": 2}])
def test_a_row_is_searched_alone_as_in_a_padded_batch(make, options):
    model = make()
    together = model.generate(np.pad(INPUTS, [[0, 1], [0, 3]]), max_length=[6, 9, 4, 5], **options)
    assert together.shape[:2] == (4, 2)
    alone = model.generate(INPUTS[:1], max_length=6, **options)
    np.testing.assert_array_equal(together[0, :, : alone.shape[2]], alone[0])
    assert not together[3].any()


@pytest.mark.slow
def test_cached_search_finds_what_the_recomputed_one_finds():
    model = _ut(halting="frozen")
    for options in ({}, {"beam_size": 4, "n_best": 4}, {"temperature": 1.0, "top_p": 0.9}):
        ours = [model.generate(INPUTS, max_length=40, cached=cached, **options) for cached in (True, False)]
        np.testing.assert_array_equal(*ours)


@pytest.mark.slow  # traces a model of its own
def test_two_prompts_in_one_process_are_independent():
    """U97: the answer to the second file overlapped the first one's."""
    keras.utils.set_random_seed(5)
    model = UniversalTransformerLM(12, **SIZES)
    first = model.generate(np.array([[5, 6, 7]]), max_length=5)
    second = model.generate(np.array([[8]]), max_length=5)
    np.testing.assert_array_equal(model.generate(np.array([[5, 6, 7]]), max_length=5), first)
    keras.utils.set_random_seed(5)
    fresh = UniversalTransformerLM(12, **SIZES)
    np.testing.assert_array_equal(fresh.generate(np.array([[8]]), max_length=5), second)


@pytest.mark.parametrize("beam_size", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_max_length_is_obeyed(beam_size):
    """U96: it was ignored without a word."""
    assert _ut().generate(INPUTS, max_length=3, beam_size=beam_size).shape[1] <= 3
    with pytest.raises(UsageError, match="no decoding option is called 'max_len'"):
        _ut().generate(INPUTS, max_len=3)


def test_fewer_steps_can_be_asked_for():
    model = _ut()
    one = model.generate(INPUTS, max_length=6, max_steps=1)
    logits = model({"inputs": INPUTS, "targets": one}, max_steps=1).numpy()
    np.testing.assert_array_equal(np.where(one, logits[..., 1:].argmax(-1) + 1, 0), one)


@pytest.mark.slow
def test_default_limit_is_the_inputs_length_and_a_hundred():
    assert _ut().generate(INPUTS).shape[1] <= 106


def test_a_call_of_the_wrong_rank_does_not_spoil_the_next_one():
    """The function that was traced for the wrong number of axes stayed."""
    model = _ut(words_per_sentence=2)
    with pytest.raises(ValueError, match="this model reads .B, S, W. sentences"):
        model.generate(INPUTS, max_length=2)
    assert model.generate(INPUTS.reshape(3, 3, 2), max_length=2).shape[0] == 3


@pytest.mark.slow
def test_compiled_search_is_made_once_and_goes_with_its_model():
    model = _ut()
    model.generate(INPUTS, max_length=2)
    (search,) = vars(model)["_generate"].values()
    model.generate(INPUTS[:1, :3], max_length=3)
    model.generate(INPUTS, max_length=50, alpha=0.6)
    assert search.experimental_get_tracing_count() == 1
    model.generate(INPUTS, max_length=2, beam_size=2)
    assert len(vars(model)["_generate"]) == 2
    samples = [model.generate(INPUTS, max_length=9, temperature=1.0, seed=seed) for seed in range(3)]
    assert any(a.shape != b.shape or (a != b).any() for a, b in zip(samples, samples[1:]))
    expected = answer(model, INPUTS, [9] * 3, "sequence", DecodingOptions(temperature=1.0, seed=2)).ids[:, 0]
    np.testing.assert_array_equal(samples[2], expected)
    assert len(vars(model)["_generate"]) == 3  # a seed has no graph of its own
    gone = weakref.ref(model)
    del model, search
    keras.backend.clear_session()
    gc.collect()
    assert gone() is None
