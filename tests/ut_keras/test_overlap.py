"""BLEU and ROUGE of token ids against tensor2tensor's numbers, sacrebleu, and tables written out."""

import math

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.tokenizers.tokenizer_intl import TokenizerV14International

from tests import golden_files
from ut_keras import overlap

GOLDEN = golden_files.load_json("bleu")
SEQUENCES = st.lists(st.integers(0, 3), max_size=9)


def table_subsequence(first, second):
    """The longest common subsequence by the textbook's table."""
    table = np.zeros([len(first) + 1, len(second) + 1], int)
    for i, j in np.ndindex(len(first), len(second)):
        same = table[i, j] + 1
        table[i + 1, j + 1] = same if first[i] == second[j] else max(table[i, j + 1], table[i + 1, j])
    return table[-1, -1]


@pytest.mark.parametrize("case", GOLDEN["id_bleu"])
def test_bleu_equals_tensor2tensor(case):
    assert overlap.corpus_bleu(case["refs"], case["hyps"]) == pytest.approx(case["bleu"], rel=1e-6)
    without = overlap.corpus_bleu(case["refs"], case["hyps"], brevity_penalty=False)
    assert without == pytest.approx(case["bleu_no_bp"], rel=1e-6)


@pytest.mark.parametrize("case", GOLDEN["tokenize"], ids=lambda case: case["text"][:9])
def test_international_tokens_of_sacrebleu_equal_tensor2tensors(case):
    """So `sacrebleu -tok intl` of decoded text is what tensor2tensor's t2t-bleu gives."""
    assert TokenizerV14International()(case["text"]).split() == case["tokens"]


def test_bleu_of_a_corpus_is_sacrebleus(rng):
    references = [rng.integers(2, 9, size).tolist() for size in (7, 12, 5, 9)]
    predictions = [[*row[:4], 2, *row[5:-1]] for row in references]
    texts = [[" ".join(map(str, row)) for row in rows] for rows in (predictions, references)]
    theirs = sacrebleu.BLEU(tokenize="none", force=True).corpus_score(texts[0], [texts[1]]).score
    assert 0.3 < theirs / 100 < 0.9
    assert overlap.corpus_bleu(references, predictions) == pytest.approx(theirs / 100, rel=1e-9)


def test_ngrams_match_as_often_as_they_stand_in_the_reference():
    assert overlap.ngram_matches([5, 5, 6, 1], [5, 5, 5, 5, 1]) == ([3, 1, 0, 0], [5, 4, 3, 2])
    assert overlap.ngram_matches([5, 1], [5, 1]) == ([2, 1, 0, 0], [2, 1, 0, 0])
    assert overlap.ngram_matches([], []) == ([0, 0, 0, 0], [0, 0, 0, 0])


def test_orders_without_a_match_are_halved_once_more_each():
    assert overlap.bleu([2, 0, 0, 0], [4, 3, 2, 0]) == pytest.approx((2 / 4 * 1 / 6 * 1 / 8) ** 0.25)
    assert overlap.bleu([0, 0, 0, 0], [2, 1, 0, 0]) == pytest.approx((1 / 4 * 1 / 4) ** 0.25)
    assert overlap.bleu([4, 3, 2, 1], [4, 3, 2, 1], 4, 6) == pytest.approx(math.exp(1 - 6 / 4))
    assert overlap.bleu([4, 3, 2, 1], [4, 3, 2, 1], 6, 4) == 1.0


def test_nothing_is_worth_nothing():
    assert overlap.corpus_bleu([], []) == overlap.corpus_bleu([[3, 1]], [[]]) == overlap.corpus_bleu([[]], [[]]) == 0.0
    for score in (overlap.rouge_2, overlap.rouge_l):
        assert score([], []) == score([3, 1], []) == score([], [3, 1]) == score([3, 4], [5, 6]) == 0.0
    assert overlap.rouge_2([3], [3]) == 0.0 and overlap.rouge_l([3], [3]) == 1.0


def test_rouge_2_is_of_sets_of_bigrams():
    # {56, 65, 61} and {56, 65, 66}
    assert overlap.rouge_2([5, 6, 5, 6, 1], [5, 6, 5, 6, 6]) == pytest.approx(2 / 3)
    assert overlap.rouge_2([5, 6, 1], [5, 6, 5, 6, 1]) == pytest.approx(2 * 2 / (2 + 3))


def test_rouge_l_weighs_precision_and_recall():
    # 5, 6, 1 is common: R = 3/4, P = 3/6, b = 2/3
    expected = (1 + 4 / 9) * (3 / 4) * (3 / 6) / (3 / 4 + 4 / 9 * 3 / 6)
    assert overlap.rouge_l([5, 8, 6, 1], [5, 9, 6, 9, 9, 1]) == pytest.approx(expected)


@given(SEQUENCES, SEQUENCES)
@settings(max_examples=300, deadline=None)
def test_common_subsequence_is_that_of_the_table(first, second):
    assert overlap.common_subsequence(first, second) == table_subsequence(first, second)


def test_common_subsequence_of_long_sequences(rng):
    first, second = (rng.integers(0, 20, 150).tolist() for _ in range(2))
    assert overlap.common_subsequence(first, second) == table_subsequence(first, second)
