"""What is written of an answer."""

import json

import numpy as np
import pytest

from problems.vocabulary import ByteVocabulary, OpenWordVocabulary
from tests.scripted import CopyDigits, LastSentence
from trainer.answer_lines import AnswerLines
from trainer.answers import Decoded, Hypothesis
from trainer.token_texts import source_tokens, tokens


def _decoded(text="1 2", score=-0.12345678, normalized=None):
    ids, inputs = np.array([3, 4, 1]), np.array([5, 1])
    times = {"encoder": np.array([2.0, 1.25]), "decoder": np.array([3.0, 1.0, 2.00004])}
    best = Hypothesis(text, score, normalized, ids, times["decoder"])
    other = Hypothesis("1", -1.5, normalized and -1.25, np.array([3, 1]), np.array([3.0, 3.0]))
    return Decoded(text, score, ids, inputs, times, (best, other))


def test_plain_line_is_the_text_on_one_line():
    lines = AnswerLines(CopyDigits())
    assert lines.answered("3", _decoded()) == "1 2" and lines.broken == 0
    assert lines.answered("3", _decoded("a\nb\r")) == "a b\r" and lines.broken == 1
    assert lines.refused("\ufffd", "byte 0xff") == ""


def test_json_has_what_was_asked_for():
    record = json.loads(AnswerLines(CopyDigits(), with_scores=True).answered("3", _decoded()))
    assert record == {"input": "3", "output": "1 2", "score": -0.123457}
    record = json.loads(AnswerLines(CopyDigits(), with_scores=True).answered("3", _decoded(normalized=-0.1)))
    assert record == {"input": "3", "output": "1 2", "score": -0.123457, "normalized_score": -0.1}
    record = json.loads(AnswerLines(CopyDigits(), with_ponder=True).answered("3", _decoded()))
    assert record == {
        "input": "3",
        "output": "1 2",
        "ponder_times": {"encoder": [2.0, 1.25], "decoder": [3.0, 1.0, 2.0]},
        "tokens": {"encoder": ["3", "<end>"], "decoder": ["1", "2", "<end>"]},
    }


def test_json_of_hypotheses():
    record = json.loads(AnswerLines(CopyDigits(), with_ponder=True, with_hypotheses=True).answered("3", _decoded()))
    assert record["hypotheses"][1] == {
        "output": "1",
        "score": -1.5,
        "ponder_times": {"decoder": [3.0, 3.0]},
        "tokens": {"decoder": ["1", "<end>"]},
    }
    assert [hypothesis["output"] for hypothesis in record["hypotheses"]] == ["1 2", "1"]


def test_padding_that_was_produced_has_neither_token_nor_ponder_time():
    ids, times = np.array([3, 0, 4]), np.array([3.0, 0.0, 2.0])
    best = Hypothesis("1 2", -1.0, None, ids, times)
    decoded = _decoded()._replace(ids=ids, ponder_times={"decoder": times}, hypotheses=(best,))
    record = json.loads(AnswerLines(CopyDigits(), with_ponder=True, with_hypotheses=True).answered("3", decoded))
    for part in (record, record["hypotheses"][0]):
        assert part["tokens"] == {"decoder": ["1", "2"]} and part["ponder_times"] == {"decoder": [3.0, 2.0]}


def test_json_keeps_line_feeds_and_says_why_a_line_has_no_answer():
    lines = AnswerLines(CopyDigits(), with_scores=True)
    line = lines.answered("\u2028", _decoded("a\nb"))
    assert "\n" not in line and json.loads(line)["output"] == "a\nb" and json.loads(line)["input"] == "\u2028"
    assert json.loads(lines.refused("x", "'x' is unknown")) == {"input": "x", "output": "", "error": "'x' is unknown"}


@pytest.mark.parametrize("score", [float("nan"), float("-inf")])
def test_json_has_no_number_for_what_is_not_finite(score):
    line = AnswerLines(CopyDigits(), with_scores=True).answered("3", _decoded(score=score))
    assert json.loads(line)["score"] is None


def test_positions_are_named_by_symbol_or_sentence():
    assert source_tokens(CopyDigits(), CopyDigits().encode_input("3 1")) == ["3", "1", "<end>"]
    assert source_tokens(LastSentence(), LastSentence().encode_input("3 1. 4")) == ["3 1", "4"]


def test_unknown_words_and_bytes_have_a_name():
    assert tokens(OpenWordVocabulary(["up"]), [3, 2, 1, 0]) == ["up", "<unk>", "<end>"]
    assert tokens(ByteVocabulary(), ByteVocabulary().encode("a\u00e9")) == ["a", "0xc3", "0xa9"]
