"""tensor2tensor's vocabularies: ids worked out by hand from its rules, its files as they are found, and the twins."""

import re
import unicodedata

import pytest
import tensorflow as tf

from problems import text_graph, vocabulary_file
from problems.t2t_subwords import ESCAPES, T2tSubwordVocabulary, runs
from problems.t2t_words import T2tWordVocabulary
from problems.vocabulary import OpenWordVocabulary
from ut_keras.errors import UserError

# Ids 2 to 15: \ _ u ; 0 1 2 3 4 5 6 7 8 9
SUBWORDS = T2tSubwordVocabulary([*ESCAPES, "the_", "c", "at_", ", _", "a", " ", ".", "th"])
KNOWN = [
    ("", []),
    ("the cat, the", [16, 17, 18, 19, 16]),
    ("that", [23, 18]),
    ("a  a", [20, 3, 21, 21, 3, 20, 3]),
    (" a", [21, 3, 20, 3]),
    ("a ", [20, 3, 21, 3]),
    (" ", [21, 3]),
    ("a_b", [20, 3, 2, 4, 3, 2, 15, 14, 5, 3]),
    ("\\", [2, 2, 3]),
    ("\\u", [2, 2, 3, 4, 3]),
    ("\n", [2, 7, 6, 5, 3]),
    ("\u00e9", [2, 8, 9, 9, 5, 3]),
    ("a\U0001f638.", [20, 3, 2, 7, 8, 14, 11, 12, 14, 5, 22, 3]),
]


def graph_ids(vocabulary, texts):
    """Returns the ids of each text in the graph, without padding."""
    rows = text_graph.encoder(vocabulary, end=False)(tf.constant(texts)).numpy()
    return [[number for number in row.tolist() if number] for row in rows]


def graph_texts(vocabulary, rows):
    width = max(map(len, rows))
    padded = [row + [0] * (width - len(row)) for row in rows]
    return [text.decode() for text in text_graph.decoder(vocabulary)(padded).numpy()]


@pytest.mark.parametrize(("text", "ids"), KNOWN)
def test_known_ids(text, ids):
    assert SUBWORDS.encode(text) == ids
    assert SUBWORDS.decode([*ids, 1, 16]) == text


def test_known_ids_in_the_graph():
    texts, ids = zip(*KNOWN)
    assert graph_ids(SUBWORDS, texts) == list(ids)
    assert graph_texts(SUBWORDS, list(ids)) == list(texts)


def test_the_ids_of_a_run_are_remembered():
    assert SUBWORDS.encode("cat cat") == [17, 18, 17, 18]
    assert SUBWORDS.encode("cat") == [17, 18]


def test_a_blank_between_words_alone_is_implied():
    assert runs("a b  c, d ") == ["a", "b", "  ", "c", ", ", "d", " "]
    assert runs("x_1 \u00b2\u0663") == ["x", "_", "1", "\u00b2\u0663"]


def test_letters_and_numbers_are_those_of_unicode():
    """T2T asks for the categories L and N; str.isalnum and \\w are to be the same, whatever Unicode Python has."""
    everything = list(map(chr, range(0x110000)))
    words = [unicodedata.category(character)[0] in "LN" for character in everything]
    assert [character.isalnum() for character in everything] == words
    assert [bool(re.match(r"[^\W_]", character)) for character in everything] == words


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        ([16, 0, 16], "the the"),
        ([2, 7, 3], "\\1"),
        ([2, 15, 14], "\\98"),
        ([2, 5, 3], "\\;"),
        ([2, *[15] * 9, 5, 3], "\u3013"),
        ([2, *[15] * 5000, 5, 3], "\u3013"),
        ([2, *[6] * 9, 12, 11, 5, 3], "A"),
        ([2, 11, 11, 8, 15, 12, 5, 3], "\u3013"),
        ([17, 19, 17], "c,  c"),
        ([17, 22, 17, 3, 17], "c.c c"),
        ([3, 3], ""),
    ],
)
def test_what_no_text_gives_is_decoded_alike(ids, text):
    """Models write such ids: halves of escapes, numbers of no character (the last but four: half of a pair)."""
    assert SUBWORDS.decode(ids) == text
    assert graph_texts(SUBWORDS, [ids]) == [text]


def test_what_no_entries_spell_is_refused_and_a_row_of_padding_in_the_graph():
    with pytest.raises(UserError, match="my_task: its subwords cannot spell 'e'$"):
        SUBWORDS.encode("the the", "my_task") + SUBWORDS.encode("a e", "my_task")
    assert graph_ids(SUBWORDS, ["the", "a e", "cat"]) == [[16], [], [17, 18]]


def test_without_an_escape_character_no_vocabulary():
    with pytest.raises(UserError, match="it has no entry ';'"):
        T2tSubwordVocabulary([*ESCAPES.replace(";", ""), "the_"])


def written(path, content):
    path.write_bytes(content.encode())
    return path


def subword_lines(first, *entries):
    return [*first, *ESCAPES, *entries]


@pytest.mark.parametrize("first", [("<pad>", "<EOS>"), ("<pad>_", "<EOS>_")])
def test_a_file_of_subwords_in_quotes(tmp_path, first):
    entries = subword_lines(first, "the_", " ", "'", '"_', "\u2028", "\u00a0_")
    path = written(tmp_path / "vocab.ende.8192", "".join(f"'{entry}'\n" for entry in entries))
    vocabulary = vocabulary_file.read(path)
    assert vocabulary == T2tSubwordVocabulary(entries[2:])
    assert vocabulary.size == len(entries) == 22
    assert vocabulary.encode("the '\u2028") == [16, 17, 18, 20, 3]


def test_a_file_of_subwords_without_quotes(tmp_path):
    """T2T strips such lines, so that the entry of a blank is empty there."""
    entries = subword_lines(("<pad>_", "<EOS>_"), "the_", " ", "a")
    path = written(tmp_path / "vocab.subwords", "\n".join(entries) + "\n")
    vocabulary = vocabulary_file.read(path)
    assert vocabulary.entries[-3:] == ("the_", "", "a")
    assert vocabulary.size == len(entries)


def test_a_carriage_return_is_dropped_and_of_equal_entries_the_last_counts(tmp_path):
    """As TensorFlow's file object reads lines; what T2T trained with is what it had read."""
    entries = subword_lines(("<pad>_", "<EOS>_"), "a_", "\r", "a\r_", "\n")
    path = written(tmp_path / "vocab.subwords", "".join(f"'{entry}'\n" for entry in entries))
    with tf.io.gfile.GFile(str(path)) as file:
        read = [line.rstrip() for line in file]
    vocabulary = vocabulary_file.read(path)
    assert vocabulary.size == len(read) == 2 + 14 + 5
    assert vocabulary.entries[-5:] == ("a_", "", "a_", "", "")
    assert vocabulary.encode("a\r") == [18, 2, 7, 9, 5, 3]
    assert graph_ids(vocabulary, ["a\r"]) == [[18, 2, 7, 9, 5, 3]]


WORDS = ["<pad>", "<EOS>", "the", "cat", "UNK", "the"]


def test_a_file_of_words(tmp_path):
    vocabulary = vocabulary_file.read(written(tmp_path / "vocab.bpe.32000", "\n".join(WORDS) + "\n"))
    assert type(vocabulary) is T2tWordVocabulary
    assert (vocabulary.size, vocabulary.unknown) == (6, 4)
    texts = ["the\u00a0cat\u2003dog", "", " the \t the\x1f"]
    assert [vocabulary.encode(text) for text in texts] == [[5, 3, 4], [], [5, 5]]
    assert graph_ids(vocabulary, texts) == [[5, 3, 4], [], [5, 5]]
    assert vocabulary.decode([2, 3, 4, 1, 3]) == "the cat UNK"
    assert graph_texts(vocabulary, [[2, 3, 4, 1, 3]]) == ["the cat UNK"]


def test_every_blank_of_unicode_separates_words():
    blanks = set(filter(str.isspace, map(chr, range(0x110000))))
    assert set(text_graph.T2tWordEncoder.blanks) == blanks


def test_without_an_unknown_word_others_are_refused():
    words = T2tWordVocabulary(["the", "cat"])
    with pytest.raises(UserError, match="my_task: the word 'cats' is not in its vocabulary.*near names: cat"):
        words.encode("the cats", "my_task")
    assert graph_ids(words, ["the cats", "the cat"]) == [[], [2, 3]]


def test_other_files_are_what_they_were(tmp_path):
    assert vocabulary_file.read(written(tmp_path / "words", "the\ncat\n")) == OpenWordVocabulary(["the", "cat"])
    assert vocabulary_file.read(written(tmp_path / "one", "<pad>\n")) == OpenWordVocabulary(["<pad>"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "the_\na_\n",
            r"vocab.subwords is no file of tensor2tensor's: its first two lines are not <pad> \(or <pad>_\)",
        ),
        ("'<pad>_'\n'<EOS>_'\n'a_'\n", r"vocab.subwords: not a subword vocabulary .*: it has no entry '\\\\'"),
    ],
)
def test_a_broken_file_is_one_line(tmp_path, content, message):
    with pytest.raises(UserError, match=message) as error:
        vocabulary_file.read(written(tmp_path / "vocab.subwords", content))
    assert "\n" not in str(error.value)
