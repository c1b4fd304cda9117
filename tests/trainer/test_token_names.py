"""What a person sees of tokens of every kind of vocabulary."""

import pytest

from problems.closed_vocabularies import CharacterVocabulary, NumberVocabulary
from problems.vocabulary import ByteVocabulary, OpenWordVocabulary, SymbolVocabulary, WordVocabulary
from trainer.token_names import Token, direction, sentence_names, token_names, visible

BOX = "\u2423"


@pytest.mark.parametrize(
    ("vocabulary", "ids", "names"),
    [
        (SymbolVocabulary("01"), [2, 3, 1], ["0", "1", "<end>"]),
        (CharacterVocabulary("a b"), [2, 3, 4, 1], ["a", BOX, "b", "<end>"]),
        (NumberVocabulary(20), [21, 1], ["19", "<end>"]),
        (OpenWordVocabulary(["the", "cat"]), [3, 2, 4, 0, 0], ["the", "<unk>", "cat"]),
        (WordVocabulary(["<end>"]), [2, 1], ["<end>", "<end>"]),
        (ByteVocabulary(), [99, 34, 12, 2, 197, 190], ["a", BOX, "\\n", "0x00", "0xC3", "0xBC"]),
        (ByteVocabulary(), [129, 300, 1], ["0x7F", "<id 300>", "<end>"]),
    ],
)
def test_tokens_are_shown_as_a_person_reads_them(vocabulary, ids, names):
    assert [token.text for token in token_names(vocabulary, ids)] == names


def test_names_are_told_from_text_that_looks_like_them():
    assert token_names(WordVocabulary(["<end>"]), [2, 1]) == [Token("<end>"), Token("<end>", special=True)]
    assert token_names(OpenWordVocabulary(["a"]), [2]) == [Token("<unk>", special=True)]


def test_subwords_keep_their_blanks_and_bytes_have_numbers():
    from problems.subwords import SubwordVocabulary

    vocabulary = SubwordVocabulary.train(["the cat the cat", "the dog"] * 20, 290)
    for text in ("the cat", " the  dog", "\u2581\u00fc"):
        shown = [token.text for token in token_names(vocabulary, vocabulary.encode(text))]
        ascii_ = text.replace("\u2581", "0xE20x960x81").replace("\u00fc", "0xC30xBC")
        assert "".join(shown).replace(BOX, " ") == ascii_


def test_sentences_end_with_a_question():
    vocabulary = WordVocabulary(["mary", "left", "who"])
    rows = [[2, 3], [4, 3], [0, 0]]
    assert sentence_names(vocabulary, rows) == [Token("mary left"), Token("who left?")]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a b", f"a{BOX}b"),
        ("a\u2028b", "aU+2028b"),
        ("\u202eabc", "U+202Eabc"),
        ("\u00a0", "U+00A0"),
        ("\u200d", "U+200D"),
        ("\u0645\u06cc\u200c\u062e", "\u0645\u06cc\u200c\u062e"),
        ("\u0301", "\u25cc\u0301"),
        ("\x07\t", "U+0007\\t"),
        ("", ""),
    ],
)
def test_what_shows_nothing_has_a_sign(text, shown):
    assert visible(text) == shown


def test_running_text_keeps_its_blanks():
    assert visible("a b\u3000c\n\u202e", blank=" ") == "a b\u3000c\\nU+202E"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("abc", "ltr"), ("12 \u05e9 abc", "rtl"), ("<a> \u05e9", "ltr"), ("\u0645", "rtl"), ("12", "ltr"), ("", "ltr")],
)
def test_direction_is_that_of_the_first_letter(text, expected):
    assert direction(text) == expected
