"""Vocabularies and the text form of stories, in Python."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from problems import stories
from problems.vocabulary import SymbolVocabulary, Vocabulary, WordVocabulary
from ut_keras.errors import UserError


def test_ids_begin_after_padding_and_end():
    vocabulary = SymbolVocabulary("01+")
    assert vocabulary.encode("0+1", "task") == [2, 4, 3]
    assert vocabulary.size == 5


def test_symbols_may_stand_apart():
    vocabulary = SymbolVocabulary("0123456789")
    assert vocabulary.encode(" 3 1\t4\r\x0b\x0c", "task") == vocabulary.encode("314", "task") == [5, 3, 6]


@pytest.mark.parametrize("symbol", ["G", "\u0661", "\u00a0", "\0", "-"])
def test_unknown_symbol_is_named_with_task_and_known_ones(symbol):
    with pytest.raises(UserError) as error:
        SymbolVocabulary("01").encode(f"01{symbol}0", "algorithmic_copy")
    assert str(error.value) == f"algorithmic_copy: {symbol!r} is not one of its symbols: 0 1"


def test_unknown_word_is_named_with_near_ones():
    with pytest.raises(
        UserError, match="^babi: the word 'marry' is not in its vocabulary of 2 words; near names: mary$"
    ):
        WordVocabulary(["mary", "john"]).encode(["marry"], "babi")


@pytest.mark.parametrize(
    ("ids", "text"),
    [([], ""), ([0], ""), ([0, 1], ""), ([2, 0, 0], "0"), ([2, 3, 1, 3], "01"), ([1, 2], ""), ([2, 99, 3], "01")],
)
def test_reserved_ids_are_never_spelt(ids, text):
    assert SymbolVocabulary("01").decode(ids) == text


def test_spelling_of_a_reserved_id_is_plain_text():
    vocabulary = WordVocabulary(["<EOS>", "<pad>"])
    assert vocabulary.encode(["<EOS>", "<pad>"], "task") == [2, 3]
    assert vocabulary.decode([2, 3, 1]) == "<EOS> <pad>"


def test_entry_that_stands_twice_is_an_error():
    with pytest.raises(UserError, match="'b' is both entry 2 and entry 4"):
        WordVocabulary(["a", "b", "c", "b"])


def test_empty_entry_is_an_error():
    with pytest.raises(UserError, match="entry 2 is empty"):
        WordVocabulary(["a", ""])


@pytest.mark.parametrize("vocabulary", [SymbolVocabulary("01+"), WordVocabulary(["mary", "e\u00e9"])])
def test_vocabulary_survives_its_dictionary(vocabulary):
    assert Vocabulary.from_dict(vocabulary.to_dict()) == vocabulary


def test_kinds_are_not_equal():
    assert SymbolVocabulary("ab") != WordVocabulary("ab")


@given(st.text("0123456789"))
def test_decoding_what_was_encoded_gives_the_text(text):
    vocabulary = SymbolVocabulary("0123456789")
    assert vocabulary.decode(vocabulary.encode(text, "task")) == text


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("", []),
        (" \t\r ", []),
        ("...?!", []),
        ("Where is Mary", [["where", "is", "mary"]]),
        ("Mary  went.Where is\tMary? ", [["mary", "went"], ["where", "is", "mary"]]),
        ("Mary, John!went", [["mary", "john"], ["went"]]),
        ("don't stop", [["don", "t", "stop"]]),
        ("a\u00a0b \u00c9", [["a\u00a0b", "\u00c9"]]),
    ],
)
def test_sentences_of_a_line(text, sentences):
    assert stories.sentences(text) == sentences
