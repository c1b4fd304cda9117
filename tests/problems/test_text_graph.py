"""In-graph twins: the same ids and texts as Python, from core TensorFlow operations."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from problems import stories, text_graph
from problems.vocabulary import SymbolVocabulary, WordVocabulary
from ut_keras.errors import UserError

WORDS = WordVocabulary(["john", "mary", "where", "is", "went", "to", "the", "garden", "s,e"])
DIGITS = SymbolVocabulary("01+")
STORY = text_graph.StoryEncoder(WORDS, words_per_sentence=5, max_sentences=3)
SYMBOLS = text_graph.SymbolEncoder(DIGITS)

HOSTILE = [
    "",
    "   ",
    "\t\r\n",
    "?",
    ". . .",
    "Mary went to the garden. Where is Mary?",
    "MARY WENT TO THE GARDEN.WHERE IS MARY",
    "mary,went;to:the(garden)! where is 'mary' ?!",
    "mary went. john went. mary went. john went. where is john?",
    "mary went to the the garden. where is mary?",
    "zebra went. where is mary?",
    "where is m\u00e1ry?",
    "where is\u00a0mary?",
    "where is mary\0?",
    "where is mary\x0b\x0c?",
    "s,e",
    "\u0130 is mary",
]


def _story_twin(text):
    rows = []
    for words in stories.sentences(text):
        if len(words) > 5:
            return np.zeros((0, 5))
        try:
            rows.append(WORDS.encode(words, "task") + [0] * (5 - len(words)))
        except UserError:
            return np.zeros((0, 5))
    return np.array(rows[-3:]).reshape(-1, 5)


def _symbol_twin(text):
    try:
        ids = DIGITS.encode(text, "task")
    except UserError:
        return []
    return [*ids, 1] if ids else []


def _check(rows, expected):
    """rows: what the graph gives for a batch; expected: list of arrays without padding."""
    rows = rows.numpy()
    assert rows.dtype == np.int32
    assert rows.shape[1] == max(1, *(len(row) for row in expected))
    for row, real in zip(rows, expected, strict=True):
        np.testing.assert_array_equal(row[: len(real)], np.reshape(real, (len(real), *row.shape[1:])))
        assert not row[len(real) :].any()


def test_hostile_stories_in_one_batch():
    _check(STORY(tf.constant(HOSTILE)), [_story_twin(text) for text in HOSTILE])


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_story_alone(text):
    _check(STORY(tf.constant([text])), [_story_twin(text)])


def test_hostile_story_is_cut_to_its_last_sentences():
    last = _story_twin("mary went. john went. mary went. john went. where is john?")
    np.testing.assert_array_equal(last[:, 0], [WORDS.id_of(word) for word in ("mary", "john", "where")])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.lists(st.sampled_from(["Mary", "went", "WHERE", "x", ".", "?", "! ", " ", ",", "\t", "\n"])).map(
                "".join
            ),
            st.lists(st.sampled_from(["mary ", "went ", "where ", "is ", ". ", "?"]), max_size=20).map("".join),
            st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_any_stories(texts):
    _check(STORY(tf.constant(texts)), [_story_twin(text) for text in texts])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(st.text("01+ \t\r\x0b"), st.text(st.characters(exclude_categories=["Cs"]), max_size=6)),
        min_size=1,
        max_size=5,
    )
)
def test_any_symbols(texts):
    _check(SYMBOLS(tf.constant(texts)), [_symbol_twin(text) for text in texts])


def test_bytes_that_are_not_utf8_become_padding():
    assert not SYMBOLS(tf.constant([b"0\xff1"])).numpy().any()
    assert not STORY(tf.constant([b"mary \xff went"])).numpy().any()


def test_batch_without_lines_keeps_its_rank():
    assert STORY(tf.zeros([0], tf.string)).shape == (0, 1, 5)
    assert SYMBOLS(tf.zeros([0], tf.string)).shape[0] == 0


@pytest.mark.parametrize("ids", [[[2, 3, 1, 3]], [[0, 0]], [[1, 2]], [[3, 0, 2]], [[4, 2, 9], [1, 0, 0]], [[], []]])
def test_sequence_decoder_is_the_twin_of_decode(ids):
    decoded = text_graph.SequenceDecoder(DIGITS)(tf.constant(ids, tf.int32)).numpy()
    assert [text.decode() for text in decoded] == [DIGITS.decode(row) for row in ids]


def test_class_decoder_has_no_text_for_reserved_ids():
    decoded = text_graph.ClassDecoder(WORDS)(tf.constant([[2], [0], [1], [10]], tf.int64)).numpy()
    assert decoded.tolist() == [b"john", b"", b"", b"s,e"]
    assert text_graph.ClassDecoder(WORDS)(tf.constant([3])).numpy().tolist() == [b"mary"]


def test_twins_live_in_a_saved_model(tmp_path):
    class Service(tf.Module):
        def __init__(self):
            super().__init__()
            self.story, self.symbols, self.text = STORY, SYMBOLS, text_graph.SequenceDecoder(DIGITS)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def __call__(self, lines):
            return {"story": self.story(lines), "text": self.text(self.symbols(lines))}

    tf.saved_model.save(Service(), str(tmp_path / "model"))
    loaded = tf.saved_model.load(str(tmp_path / "model"))
    lines = tf.constant(["Where is Mary?", "", "1 0+1"])
    answer = loaded(lines)
    np.testing.assert_array_equal(answer["story"], STORY(lines))
    assert answer["text"].numpy().tolist() == [b"", b"", b"10+1"]
