"""Characters and numbers: closed vocabularies in which blanks count, and their twins."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from problems.closed_vocabularies import CharacterVocabulary, NumberVocabulary
from problems.text_graph import decoder, encoder
from problems.vocabulary import BLANKS, SymbolVocabulary, Vocabulary
from ut_keras.errors import UserError

CHARACTERS = CharacterVocabulary(" #()<if019x")
NUMBERS = NumberVocabulary(12)
LINES = ["", " ", "0 if  9<1#", "x", " x ", "11 0 3", "\t7", "12", "-1", "01", "1\n2", "\u00a01", "\ufffd", "caf\u00e9"]


def test_blank_is_a_character_and_drops_out_of_symbols():
    assert CHARACTERS.encode("0 if", "task") == [9, 2, 7, 8]
    assert CHARACTERS.decode([9, 2, 7, 8, 1, 9]) == "0 if"
    assert SymbolVocabulary("0 if").encode("0 if", "task") == [2, 4, 5]


def test_numbers_are_read_between_any_blanks():
    assert NUMBERS.encode(" 3\t11 0\r", "task") == [5, 13, 2]
    assert NUMBERS.decode([5, 13, 2, 1]) == "3 11 0"


@pytest.mark.parametrize(
    ("vocabulary", "text", "message"),
    [
        (CHARACTERS, "if y", r"^task: 'y' is not one of its characters: ' #\(\)<if019x'$"),
        (CHARACTERS, "0\t1", r"^task: '\\t' is not one of its characters: "),
        (NUMBERS, "3 12", "^task: '12' is not one of its symbols: the numbers 0 to 11, with blanks between them$"),
        (NUMBERS, "03", "^task: '03' is not one of its symbols: "),
        (NUMBERS, "\u0663", "^task: '\u0663' is not one of its symbols: "),
    ],
)
def test_anything_else_is_refused(vocabulary, text, message):
    with pytest.raises(UserError, match=message):
        vocabulary.encode(text, "task")


@pytest.mark.parametrize("vocabulary", [CHARACTERS, NUMBERS], ids=["characters", "numbers"])
def test_survives_json(vocabulary):
    again = Vocabulary.from_dict(json.loads(json.dumps(vocabulary.to_dict())))
    assert again == vocabulary
    assert again.size == vocabulary.size == len(vocabulary.entries) + 2


@pytest.fixture(scope="module", params=[CHARACTERS, NUMBERS], ids=["characters", "numbers"])
def twins(request):
    """(vocabulary, function lines -> rows of ids without padding, decoder)."""
    twin = encoder(request.param)

    def rows(lines):
        ids = twin(lines).numpy()
        assert ids.shape[1] >= 1
        return [row[: np.count_nonzero(row)].tolist() for row in ids]

    return request.param, rows, decoder(request.param)


def _python(vocabulary, line):
    try:
        ids = vocabulary.encode(line, "task")
    except UserError:
        return []
    return [*ids, 1] if ids else []


def test_twin_gives_the_same_ids_and_refuses_the_same_lines(twins):
    vocabulary, rows, _ = twins
    assert rows(LINES) == [_python(vocabulary, line) for line in LINES]
    assert rows([""]) == [[]]


@settings(deadline=None, max_examples=60)
@given(lines=st.lists(st.text(st.sampled_from([*"0159 #()<ifx", *BLANKS]), max_size=8), min_size=1, max_size=4))
def test_twin_agrees_on_any_line(twins, lines):
    vocabulary, rows, _ = twins
    assert rows(lines) == [_python(vocabulary, line) for line in lines]


def test_decoding_twin_says_what_python_says(twins):
    vocabulary, _, decode = twins
    ids = np.array([[5, 2, 4, 1, 3], [1, 2, 3, 4, 5], [0, 2, 0, 3, 99], [13, 12, 11, 0, 0]])
    assert [text.decode() for text in decode(ids).numpy()] == [vocabulary.decode(row) for row in ids]


def test_encoder_without_end_gives_the_ids_alone():
    assert encoder(CHARACTERS, end=False)(["0 if"]).numpy().tolist() == [[9, 2, 7, 8]]
