"""Encoded inputs in, answers out: order, batches, samples by number, hypotheses, traces."""

import numpy as np
import pytest

from tests.scripted import Copier, CopyDigits, LastSentence
from trainer import answers
from trainer.answers import answer_ids, encode_line, kind_of, pad
from trainer.loaded import Loaded
from trainer.output_limit import OutputLimit
from ut_keras.decoding.options import DecodingOptions
from ut_keras.errors import UserError


@pytest.fixture(scope="module")
def copying():
    return Loaded(Copier(), CopyDigits())


@pytest.fixture(scope="module")
def sure():
    """As `copying`, with probabilities of which no shorter answer has a higher one."""
    run = Loaded(Copier(), CopyDigits())
    run.model.strength.assign(8.0)
    return run


@pytest.fixture(scope="module")
def inputs():
    return [CopyDigits().encode_input(line) for line in ("1 2 3 4 5 6 7", "1", "", "9 9", "4 5 6", "1 2")]


def _ids(copying, inputs, **options):
    return [decoded.ids.tolist() for decoded in answer_ids(copying, inputs, **options)]


def test_answers_are_in_the_order_of_the_inputs_whatever_the_batch_size(copying, inputs):
    expected = [ids.tolist() for ids in inputs]
    for batch_size in (1, 2, 100):
        assert _ids(copying, inputs, batch_size=batch_size) == expected


def test_longest_inputs_go_first_and_like_lengths_together():
    batches = answers._batches([3, 9, 1, 9, 2], [4, 4, 4, 9, 4], 2, 1, "sequence")
    assert list(batches) == [[3, 1], [0, 4], [2]]


def test_long_inputs_and_wide_beams_make_small_batches(monkeypatch):
    monkeypatch.setattr(answers, "SQUARES", 2 * (100 + 400))

    def sizes(lengths, limits, beams, kind="sequence"):
        return [len(rows) for rows in answers._batches(lengths, limits, 32, beams, kind)]

    assert sizes([10] * 6, [20] * 6, 1) == [2, 2, 2]
    assert sizes([10] * 6, [20] * 6, 2) == [1] * 6
    assert sizes([10] * 12, [1] * 12, 1, "class") == [10, 2]
    assert sizes([10] * 6, [20] * 6, 1, "continuation") == [1] * 6
    assert sizes([1000, 1], [1, 1], 1) == [1, 1]


def test_one_trace_serves_a_file_of_mixed_lengths(inputs):
    run = Loaded(Copier(), CopyDigits())
    rng = np.random.default_rng(3)
    mixed = [np.append(rng.integers(2, 12, length), 1) for length in rng.integers(1, 60, 300)]
    for batch_size, options in ((32, DecodingOptions()), (7, DecodingOptions())):
        answer_ids(run, mixed, batch_size, options)
        assert run.answers(options).experimental_get_tracing_count() == 1
    beam = DecodingOptions(beam_size=3)
    answer_ids(run, mixed[:100], 7, beam)
    answer_ids(run, mixed[100:], 32, beam)
    assert run.answers(beam).experimental_get_tracing_count() == 1


def test_samples_depend_on_seed_and_key_and_on_no_batch(copying, inputs):
    options = DecodingOptions(temperature=1.0, seed=5)
    whole = _ids(copying, inputs, options=options, batch_size=100)
    assert _ids(copying, inputs, options=options, batch_size=2) == whole
    parts = _ids(copying, inputs[:2], options=options) + _ids(copying, inputs[2:], options=options, keys=[2, 3, 4, 5])
    assert parts == whole
    assert _ids(copying, inputs, options=DecodingOptions(temperature=1.0, seed=6)) != whole
    same = _ids(copying, [inputs[0]] * 3, options=options)
    assert len({tuple(ids) for ids in same}) > 1, "each line draws for itself"


def test_hypotheses_are_ranked_and_the_first_is_the_answer(sure, inputs):
    best = answer_ids(sure, inputs, options=DecodingOptions(beam_size=4, n_best=3, alpha=0.6))
    for given, decoded in zip(inputs, best, strict=True):
        first = decoded.hypotheses[0]
        assert (first.text, first.score) == (decoded.text, decoded.score)
        assert first.ids.tolist() == decoded.ids.tolist() == given.tolist()
        if not len(given):
            assert len(decoded.hypotheses) == 1 and first.score == 0.0
            continue
        assert len(decoded.hypotheses) == 3
        assert first.score == pytest.approx(len(given) * (8 - np.log(np.exp(8) + 11)), rel=1e-4)
        ranks = [hypothesis.normalized_score for hypothesis in decoded.hypotheses]
        assert ranks == sorted(ranks, reverse=True)
        for hypothesis in decoded.hypotheses:
            penalty = ((5 + len(hypothesis.ids)) / 6) ** 0.6
            assert hypothesis.normalized_score == pytest.approx(hypothesis.score / penalty, rel=1e-5)


@pytest.mark.slow  # traces a model of its own
def test_without_a_penalty_there_is_no_other_score(copying, inputs):
    for options in (DecodingOptions(), DecodingOptions(beam_size=2, alpha=0.0), DecodingOptions(temperature=1.0)):
        assert answer_ids(copying, inputs[:1], options=options)[0].hypotheses[0].normalized_score is None


def test_classes_are_hypotheses_too():
    run, given = Loaded(Copier(), LastSentence()), LastSentence().encode_input("3 1 4. 1 5 9")
    decoded = answer_ids(run, [given], options=DecodingOptions(n_best=2))[0]
    assert decoded.text == decoded.hypotheses[0].text == "1"
    assert len(decoded.hypotheses) == 2 and decoded.hypotheses[1].score < decoded.score
    np.testing.assert_array_equal(decoded.ponder_times["encoder"], [5, 3])


def test_limits_cut_answers(copying, inputs):
    cap = OutputLimit(copying.problem, max_output_length=3)
    assert [len(ids) for ids in _ids(copying, inputs, output_limit=cap)] == [3, 2, 0, 3, 3, 3]
    assert [len(ids) for ids in _ids(copying, inputs, limits=[1, 2, 3, 4, 5, 0])] == [1, 2, 0, 3, 4, 0]


def test_doing_is_told_of_answers_and_tokens(copying, inputs):
    said = []
    answer_ids(copying, inputs, 4, doing=lambda *numbers: said.append(numbers))
    assert said == [(4, 8 + 4 + 3 + 3), (6, 8 + 4 + 3 + 3 + 2)]


def test_no_inputs_no_answers(copying):
    assert answer_ids(copying, []) == []


def test_padding_goes_behind_in_every_dimension():
    np.testing.assert_array_equal(pad([np.array([1]), np.array([2, 3])]), [[1, 0], [2, 3]])
    np.testing.assert_array_equal(pad([np.ones([1, 2]), np.zeros([0, 2])]), [[[1, 1]], [[0, 0]]])
    assert pad([np.zeros([0])]).shape == (1, 1) and pad([np.zeros([0, 3])]).shape == (1, 1, 3)
    assert pad([np.ones([9]), np.ones([8])], 8).shape == (2, 16)
    assert pad([np.ones([8, 3])], 8).shape == (1, 8, 3)


def test_line_above_the_limit_is_refused_with_its_length():
    assert len(encode_line(CopyDigits(), "1 2 3", most=4)) == 4
    with pytest.raises(UserError, match="it has 5 tokens, more than max_input_length=4; raise that"):
        encode_line(CopyDigits(), "1 2 3 4", most=4)
    with pytest.raises(UserError, match="it has 2 sentences, more than"):
        encode_line(LastSentence(), "1. 2", most=1)


def test_half_of_a_surrogate_pair_is_refused_before_a_vocabulary_sees_it():
    class Anything(CopyDigits):
        def encode_input(self, text):
            raise TypeError("sentencepiece: must be str or bytes")

    with pytest.raises(UserError, match=r"'\\udc80' is half of a surrogate pair, or a byte that is not UTF-8"):
        encode_line(Anything(), "a\udc80")


def test_kind_of_answer():
    assert (kind_of(CopyDigits()), kind_of(LastSentence())) == ("sequence", "class")
