"""In-graph twins of the text encoders and decoders, of core TensorFlow operations alone.

Legend: B lines of a batch, L positions, S sentences, W words of a sentence, N output ids.

On every line that the Python twin accepts the ids are identical. A line that the Python twin
refuses with an error (an unknown word, too long a sentence) cannot fail alone inside of a graph: it
becomes a row of padding, as an empty line does, and the answer to such a row is the empty string.
"""

import re

import tensorflow as tf

from problems.stories import PUNCTUATION, SENTENCE_ENDS
from problems.vocabulary import BLANKS, EOS, NUM_RESERVED, PAD

_UNKNOWN = -1


class SymbolEncoder(tf.Module):
    """Twin of SymbolVocabulary.encode with an end token after it.

    Args:
        vocabulary: SymbolVocabulary.

    Call arguments:
        lines: [B] string.

    Returns:
        [B, L] int32, padded with 0; L is at least 1.
    """

    def __init__(self, vocabulary):
        super().__init__(name="symbol_encoder")
        self._table = _table(vocabulary)

    def __call__(self, lines):
        text = tf.strings.regex_replace(lines, f"[{BLANKS}]", "")
        symbols = tf.strings.unicode_split(text, "UTF-8", errors="replace")
        ids = self._table.lookup(symbols.flat_values)
        accepted = tf.reduce_all(symbols.with_flat_values(ids != _UNKNOWN), axis=1) & (symbols.row_lengths() > 0)
        kept = _of_lines(ids, symbols.value_rowids(), accepted)
        ends = tf.RaggedTensor.from_row_lengths(
            tf.fill([tf.math.count_nonzero(accepted)], EOS), tf.cast(accepted, tf.int64)
        )
        return _at_least_one(tf.concat([kept, ends], axis=1).to_tensor(PAD))


class StoryEncoder(tf.Module):
    """Twin of the encoding of a story with its question.

    Args:
        vocabulary: WordVocabulary.
        words_per_sentence: W; a line with a longer sentence is refused.
        max_sentences: the most sentences of a row, the question included; the last ones are kept.

    Call arguments:
        lines: [B] string.

    Returns:
        [B, S, W] int32, padded with 0; S is at least 1.
    """

    def __init__(self, vocabulary, words_per_sentence, max_sentences):
        super().__init__(name="story_encoder")
        self._table = _table(vocabulary)
        self._words_per_sentence = words_per_sentence
        self._max_sentences = max_sentences

    def __call__(self, lines):
        text = tf.strings.regex_replace(tf.strings.lower(lines), f"[{BLANKS}{re.escape(PUNCTUATION)}]", " ")
        text = tf.strings.regex_replace(text, f"[{SENTENCE_ENDS}]", "\n")
        sentences = tf.strings.split(text, "\n")
        words = tf.strings.split(sentences.flat_values, " ")
        words = tf.ragged.boolean_mask(words, words != "")
        spoken = words.row_lengths() > 0
        lines_of = tf.boolean_mask(sentences.value_rowids(), spoken)
        words = tf.ragged.boolean_mask(words, spoken)
        ids = words.with_flat_values(self._table.lookup(words.flat_values))
        good = tf.reduce_all(ids != _UNKNOWN, axis=1) & (ids.row_lengths() <= self._words_per_sentence)
        count = tf.shape(lines, tf.int64)[0]
        accepted = tf.reduce_all(tf.RaggedTensor.from_value_rowids(good, lines_of, count), axis=1)
        rows = ids.to_tensor(PAD, shape=[None, self._words_per_sentence])
        kept = _of_lines(rows, lines_of, accepted)[:, -self._max_sentences :]
        return _at_least_one(kept.to_tensor(PAD, shape=[None, None, self._words_per_sentence]))


class SequenceDecoder(tf.Module):
    """Twin of Vocabulary.decode: the entries before the first end token, joined.

    Args:
        vocabulary: Vocabulary.
        separator: str between entries.

    Call arguments:
        ids: [B, N] int.

    Returns:
        [B] string.
    """

    def __init__(self, vocabulary, separator=""):
        super().__init__(name="sequence_decoder")
        self._entries = vocabulary.entries
        self._separator = separator

    def __call__(self, ids):
        ids = tf.cast(ids, tf.int32)
        before_end = tf.cumsum(tf.cast(ids == EOS, tf.int32), axis=1) == 0
        shown = before_end & (ids >= NUM_RESERVED) & (ids < NUM_RESERVED + len(self._entries))
        entries = tf.gather(tf.constant(self._entries), tf.where(shown, ids - NUM_RESERVED, 0))
        return tf.strings.reduce_join(tf.ragged.boolean_mask(entries, shown), axis=1, separator=self._separator)


class ClassDecoder(tf.Module):
    """Twin of the text of a class: its entry, or the empty string for the reserved ids.

    Args:
        vocabulary: Vocabulary.

    Call arguments:
        ids: [B] or [B, 1] int.

    Returns:
        [B] string.
    """

    def __init__(self, vocabulary):
        super().__init__(name="class_decoder")
        self._entries = ("",) * NUM_RESERVED + vocabulary.entries

    def __call__(self, ids):
        return tf.gather(tf.constant(self._entries), tf.reshape(tf.cast(ids, tf.int32), [-1]))


def _of_lines(values, lines_of, accepted):
    """Returns the ragged rows of `values`, empty for lines that are not accepted: they do not widen the batch.

    Args:
        values: [n, ...], what all lines hold.
        lines_of: [n] int64, the line of each value, ascending.
        accepted: [B] bool.
    """
    chosen = tf.gather(accepted, lines_of)
    return tf.RaggedTensor.from_value_rowids(
        tf.boolean_mask(values, chosen), tf.boolean_mask(lines_of, chosen), tf.size(accepted, tf.int64)
    )


def _at_least_one(padded):
    """Returns [B, L, ...] with L of 1 where it was 0: a batch of empty lines has a shape that a model takes."""
    missing = tf.maximum(0, 1 - tf.shape(padded)[1])
    return tf.pad(padded, [[0, 0], [0, missing]] + [[0, 0]] * (len(padded.shape) - 2))


def _table(vocabulary):
    initializer = tf.lookup.KeyValueTensorInitializer(
        tf.constant(vocabulary.entries),
        tf.range(NUM_RESERVED, vocabulary.size, dtype=tf.int32),
    )
    return tf.lookup.StaticHashTable(initializer, _UNKNOWN)
