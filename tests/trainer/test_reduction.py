"""Scores of parts are sums and counts over their examples, worked out by hand."""

import math

import numpy as np
import pytest

from trainer import reduction

VALUES = {
    "tokens": np.array([4.0, 2.0, 0.0, 2.0]),
    "right": np.array([4.0, 1.0, 0.0, 2.0]),
    "right_top5": np.array([4.0, 2.0, 0.0, 2.0]),
    "neg_log_likelihood": np.array([1.0, 5.0, 0.0, 2.0]),
    "sequences": np.array([1.0, 1.0, 0.0, 1.0]),
    "sequence_right": np.array([1.0, 0.0, 0.0, 1.0]),
    "ponder_time/encoder": np.array([8.0, 6.0, 0.0, 2.0]),
    "positions/encoder": np.array([4.0, 2.0, 0.0, 2.0]),
    "ponder_max/encoder": np.array([2.0, 5.0, 0.0, 1.0]),
}
WORDS = {
    "last_word/words": np.array([1.0, 1.0, 0.0, 1.0]),
    "last_word/log_probability": np.log([0.5, 0.25, 1.0, 0.5]),
    "last_word/rank": np.array([1.0, 30.0, 0.0, 2.0]),
    "last_word/right": np.array([1.0, 0.0, 0.0, 0.0]),
    "last_word/pairs": np.array([1.0, 1.0, 0.0, 0.0]),
    "last_word/preferred": np.array([1.0, 0.0, 0.0, 0.0]),
}


def test_tokens_weigh_alike_and_not_examples():
    assert reduction.teacher_forced(VALUES, sequence=True) == {
        "teacher_forced/accuracy": 7 / 8,
        "teacher_forced/sequence_accuracy": 2 / 3,
        "tokens": 8,
        "teacher_forced/log_perplexity": 1.0,
        "teacher_forced/perplexity": pytest.approx(math.e),
        "teacher_forced/accuracy_top5": 1.0,
        "teacher_forced/accuracy_per_sequence": 2 / 3,
        "teacher_forced/neg_log_perplexity": -1.0,
        "ponder_time/encoder/mean": 2.0,
        "ponder_time/encoder/max": 5.0,
    }
    of_classes = reduction.teacher_forced(VALUES, sequence=False)
    assert of_classes["accuracy"] == 7 / 8 and of_classes["neg_log_perplexity"] == -1.0
    assert "accuracy_per_sequence" not in of_classes


def test_a_part_is_scored_over_its_own_examples():
    part = reduction.chosen(VALUES, np.array([False, True, True, False]))
    scores = reduction.teacher_forced(part, sequence=True)
    assert scores["teacher_forced/accuracy"] == 0.5 and scores["tokens"] == 2
    assert scores["teacher_forced/perplexity"] == pytest.approx(math.exp(2.5))
    assert scores["ponder_time/encoder/max"] == 5.0


def test_last_word_has_scores_and_counts_of_its_own():
    scores = reduction.teacher_forced({**VALUES, **WORDS}, sequence=True)
    assert scores["last_word/accuracy"] == pytest.approx(1 / 3)
    assert scores["last_word/perplexity"] == pytest.approx(16 ** (1 / 3))
    assert scores["last_word/median_rank"] == 2.0
    assert scores["last_word/count"] == 3
    assert (scores["preference/accuracy"], scores["preference/count"]) == (0.5, 2)


def test_no_alternatives_no_preference():
    words = {**WORDS, "last_word/pairs": np.zeros(4)}
    assert not any("preference" in name for name in reduction.teacher_forced({**VALUES, **words}, sequence=True))


def test_nothing_counted_is_nought():
    nothing = reduction.chosen({**VALUES, **WORDS}, np.zeros(4, bool))
    scores = reduction.teacher_forced(nothing, sequence=True)
    assert scores["teacher_forced/accuracy"] == 0.0 and scores["teacher_forced/perplexity"] == 1.0
    assert scores["last_word/count"] == 0
    assert reduction.free_running({"symbols": np.zeros(0), "right": np.zeros(0), "sequence_right": np.zeros(0)}) == {
        "free_running/sequence_accuracy": 0.0,
        "free_running/accuracy": 0.0,
        "free_running/count": 0,
    }


def test_a_perplexity_beyond_floats_stays_a_number():
    values = {**VALUES, "neg_log_likelihood": np.array([1e9, 0.0, 0.0, 0.0])}
    assert math.isfinite(reduction.teacher_forced(values, sequence=False)["perplexity"])
