"""Every kind of vocabulary under any Unicode text: nothing is lost, nothing collides, both twins agree."""

import functools
import json

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from problems.subwords import SubwordVocabulary
from problems.t2t_subwords import ESCAPES, T2tSubwordVocabulary
from problems.t2t_words import T2tWordVocabulary
from problems.vocabulary import (
    BLANKS,
    EOS,
    PAD,
    UNK,
    ByteVocabulary,
    OpenWordVocabulary,
    SymbolVocabulary,
    Vocabulary,
    WordVocabulary,
)
from ut_keras.errors import UserError

# Spellings of control tokens, signs of tokenisers, combining marks, joined emoji, blanks of every sort.
PIECES = (
    "<pad> </s> <s> <unk> <0x41> <0x0A> \u2581 \u2581\u2581 \u2581the e\u0301 \u1112\u1161\u11ab \u2047 \ufffd \ufeff "
    "\U0001f469\u200d\U0001f4bb \U0001f1e9\U0001f1ea \u202e \ufdfa \u00c5 \u212b @@ ## the cat"
).split(" ") + [*" \t\v\f\r\0\x85\u00a0\u2028\u2029\u3000\x1a", "  ", "   "]
TEXT = st.lists(
    st.one_of(st.sampled_from(PIECES), st.text(st.characters(exclude_categories=["Cs"]), max_size=6)), max_size=8
).map("".join)
WORDS = ("the", "cat", "sat", "<unk>", "<pad>", "</s>", "\u2581", "e\u0301", "\u00e9", "\u00a0", "a\u2028b", "\0")

KINDS = ["bytes", "subwords", "t2t_subwords", "open_words", "t2t_words", "symbols"]


@functools.cache
def subwords():
    lines = ["the cat sat on the mat", "a  cat   and the hat", " the end ", "caf\u00e9 \u2581 na\u00efve"] * 30
    return SubwordVocabulary.train(lines, 290)


def t2t_subwords():
    longer = ["the_", "at_", ", _", "cat", " _", "  ", "\u2581\u2581_", "e\u0301", "\u1112."]
    alphabet = {*ESCAPES, *"<pad><EOS>", *"".join(longer)}
    return T2tSubwordVocabulary([*sorted(alphabet), *longer])


def whole_text_kinds():
    return {"bytes": ByteVocabulary(), "subwords": subwords(), "t2t_subwords": t2t_subwords()}


def all_kinds():
    return {
        **whole_text_kinds(),
        "open_words": OpenWordVocabulary(WORDS),
        "symbols": SymbolVocabulary("01+\u2581"),
        "t2t_words": T2tWordVocabulary(WORDS),
    }


@pytest.mark.parametrize("kind", ["bytes", "subwords", "t2t_subwords"])
@settings(deadline=None, max_examples=300)
@given(text=TEXT)
@example(text="")
@example(text="\n")
@example(text=" ")
@example(text="\u2581")
@example(text=" \u2581 \u2581")
@example(text="\0")
@example(text="a\0b")
@example(text="<0x41>")
@example(text="\ud7ff\ue000\U0010ffff")
def test_any_text_comes_back_and_holds_no_reserved_id(kind, text):
    vocabulary = whole_text_kinds()[kind]
    ids = vocabulary.encode(text, "task")
    assert vocabulary.decode(ids) == text
    assert vocabulary.decode([*ids, EOS, *ids]) == text
    assert vocabulary.decode([*ids, EOS, PAD, PAD]) == text
    assert all(EOS < number < vocabulary.size for number in ids)
    if kind == "subwords":
        assert UNK not in ids
    assert bool(ids) == bool(text)


def _padded(rows):
    batch = np.zeros([len(rows), max(1, *map(len, rows))], np.int32)
    for row, ids in zip(batch, rows, strict=True):
        row[: len(ids)] = ids
    return batch.tolist()


@functools.cache
def _graph(kind, end=True):
    """Compiled once for all examples, as it is in an export."""
    import tensorflow as tf

    from problems import text_graph

    encode, decode = text_graph.encoder(all_kinds()[kind], end), text_graph.decoder(all_kinds()[kind])
    signature = [tf.TensorSpec([None], tf.string)]
    compiled = tf.function(encode, input_signature=signature)
    return compiled, tf.function(decode, input_signature=[tf.TensorSpec([None, None], tf.int32)])


@pytest.mark.parametrize("end", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=60)
@given(texts=st.lists(TEXT, min_size=1, max_size=4))
@example(texts=["", "\u2581", "a", "\0"])
@example(texts=["\u2581a\u2581\u2581", " b ", ""])
def test_ids_in_the_graph_are_those_of_python(kind, end, texts):
    vocabulary = all_kinds()[kind]
    if kind == "symbols":
        # A line that Python refuses is a row of padding in the graph; that is tested with the twins.
        texts = ["".join(character for character in text if character in "01+\u2581" + BLANKS) for text in texts]
    rows = [vocabulary.encode(text, "task") for text in texts]
    encode, decode = _graph(kind, end)
    expected = _padded([[*row, EOS] if end and row else row for row in rows])
    assert encode(texts).numpy().tolist() == expected
    shown = [text.decode() for text in decode(expected).numpy()]
    assert shown == [vocabulary.decode(row) for row in rows]


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=60)
@given(rows=st.lists(st.lists(st.integers(-2, 320), max_size=8), min_size=1, max_size=3))
def test_any_ids_have_the_same_text_in_the_graph(kind, rows):
    """What an untrained model answers: broken bytes, reserved ids, ids past the end."""
    padded = _padded(rows)
    _, decode = _graph(kind)
    shown = [text.decode() for text in decode(padded).numpy()]
    assert shown == [all_kinds()[kind].decode(row) for row in padded]


@settings(deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=6), st.lists(st.text("xyz", min_size=1, max_size=3), max_size=3))
def test_known_words_come_back_and_others_are_the_unknown_one(known, others):
    vocabulary = OpenWordVocabulary(WORDS)
    ids = vocabulary.encode(" ".join(known + others))
    assert vocabulary.decode(ids[: len(known)]) == " ".join(known)
    assert ids[len(known) :] == [UNK] * len(others)
    assert UNK not in ids[: len(known)]


ENTRIES = st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4), unique=True, max_size=8)


@pytest.mark.parametrize("kind", [WordVocabulary, OpenWordVocabulary, SymbolVocabulary])
@settings(deadline=None)
@given(entries=ENTRIES)
def test_listed_kinds_survive_json_and_keep_their_ids(kind, entries):
    vocabulary = kind(entries)
    again = Vocabulary.from_dict(json.loads(json.dumps(vocabulary.to_dict())))
    assert again == vocabulary and type(again) is kind
    ids = [vocabulary.id_of(entry) for entry in entries]
    assert ids == [again.id_of(entry) for entry in entries]
    assert ids == list(range(kind.reserved, kind.reserved + len(entries)))
    assert vocabulary.decode_tokens([*ids, EOS, *ids]) == list(entries)


@settings(deadline=None, max_examples=50)
@given(text=TEXT)
def test_subwords_and_bytes_survive_json(text):
    for vocabulary in whole_text_kinds().values():
        again = Vocabulary.from_dict(json.loads(json.dumps(vocabulary.to_dict())))
        assert again == vocabulary and again.size == vocabulary.size
        assert again.encode(text) == vocabulary.encode(text)


@settings(deadline=None)
@given(ENTRIES.filter(bool), st.data())
def test_labels_with_blanks_are_entries_and_come_back(entries, data):
    """text_class keeps its labels as a closed list: an entry is one class whatever characters it has."""
    vocabulary = WordVocabulary(entries)
    label = data.draw(st.sampled_from(entries))
    assert vocabulary.decode_tokens(vocabulary.encode([label], "task")) == [label]


@settings(deadline=None, max_examples=25)
@given(lines=st.lists(TEXT, max_size=6), text=TEXT)
@example(lines=["\u2581\u2581", "\0", "\n"], text="\u2581\0\n")
@example(lines=["a\nb c"], text="a\nb c")
@example(lines=[], text="")
@example(lines=["<pad>"], text=" ")
@example(lines=["\u2585 a" * 3], text="\u2585")
@example(lines=["\U0001f469\u200d\U0001f4bb" * 40], text="\U0001f469")
def test_subwords_trained_on_any_text_are_lossless_or_one_clear_error(lines, text):
    try:
        vocabulary = SubwordVocabulary.train(lines, 400, "my_task")
    except UserError as error:
        assert str(error).startswith("my_task: ") and "\n" not in str(error)
        assert not any(line.strip(BLANKS + "\u2581\0") for line in lines) or len(set("".join(lines))) > 100
        return
    for line in [*lines, text]:
        assert vocabulary.decode(vocabulary.encode(line)) == line
    assert vocabulary == SubwordVocabulary.train(lines, 400)
