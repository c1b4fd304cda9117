"""In-graph twins of the text encoders and decoders; subwords need tensorflow-text, the others core TensorFlow alone.

Legend: B lines of a batch, L positions, S sentences, W words of a sentence, N output ids.

On every line that the Python twin accepts the ids are identical. A line that the Python twin
refuses with an error (an unknown word, too long a sentence) cannot fail alone inside of a graph: it
becomes a row of padding, as an empty line does, and the answer to such a row is the empty string.
"""

import re

import tensorflow as tf

from problems import subwords
from problems.stories import PUNCTUATION, SENTENCE_ENDS
from problems.t2t_subwords_graph import T2tSubwordText, T2tSubwordTokenizer
from problems.vocabulary import BLANKS, EOS, NUM_RESERVED, PAD, UNK, UNKNOWN

_UNKNOWN = -1


def encoder(vocabulary, end=True):
    """Returns the twin of `vocabulary.encode`: a tf.Module, [B] string -> [B, L] int32, padded with 0, L at least 1.

    Args:
        vocabulary: of any kind.
        end: an end token follows the ids of a line; a line without ids stays empty.
    """
    return _ENCODERS[vocabulary.kind](vocabulary, end)


def decoder(vocabulary):
    """Returns the twin of `vocabulary.decode`: a tf.Module, [B, N] int -> [B] string."""
    return _DECODERS.get(vocabulary.kind, SequenceDecoder)(vocabulary)


class _LineEncoder(tf.Module):
    """Lines to padded ids; a subclass gives `ids_of(lines)`: ragged [B, None] int32.

    Args:
        vocabulary: the vocabulary.
        end: see `encoder`.
    """

    def __init__(self, vocabulary, end=True):
        super().__init__(name=f"{vocabulary.kind}_encoder")
        self._end = end

    def __call__(self, lines):
        ids = self.ids_of(lines)
        if self._end:
            filled = tf.cast(ids.row_lengths() > 0, tf.int64)
            ends = tf.RaggedTensor.from_row_lengths(tf.fill([tf.reduce_sum(filled)], EOS), filled)
            ids = tf.concat([ids, ends], axis=1)
        return _at_least_one(ids.to_tensor(PAD))


class SubwordEncoder(_LineEncoder):
    """Twin of SubwordVocabulary.encode; see `encoder`."""

    def __init__(self, vocabulary, end=True):
        super().__init__(vocabulary, end)
        self._tokenizer = _tokenizer(vocabulary)
        self._sign = vocabulary.blank_sign_ids

    def ids_of(self, lines):
        # SentencePiece's sign for a blank is spelled by its bytes, between the parts of a line.
        parts = tf.strings.split(lines, subwords.BLANK_SIGN)
        ids = self._tokenizer.tokenize(parts.flat_values)
        numbers = tf.range(tf.size(parts.flat_values, tf.int64)) - tf.gather(parts.row_starts(), parts.value_rowids())
        signs = tf.RaggedTensor.from_row_lengths(
            tf.tile(tf.constant(self._sign, tf.int32), [tf.math.count_nonzero(numbers > 0, dtype=tf.int32)]),
            tf.where(numbers > 0, tf.constant(len(self._sign), tf.int64), 0),
        )
        spelled = tf.concat([signs, tf.cast(ids, tf.int32)], axis=1)
        return parts.with_flat_values(spelled).merge_dims(1, 2)


class T2tSubwordEncoder(_LineEncoder):
    """Twin of T2tSubwordVocabulary.encode; see `encoder`."""

    def __init__(self, vocabulary, end=True):
        super().__init__(vocabulary, end)
        self.ids_of = T2tSubwordTokenizer(vocabulary)


class ByteEncoder(_LineEncoder):
    """Twin of ByteVocabulary.encode; see `encoder`."""

    def ids_of(self, lines):
        values = tf.strings.bytes_split(lines)
        return values.with_flat_values(
            tf.cast(tf.reshape(tf.io.decode_raw(values.flat_values, tf.uint8), [-1]), tf.int32) + NUM_RESERVED
        )


class _ListedEncoder(_LineEncoder):
    """Twin of a vocabulary that looks up parts of a line; a subclass gives `parts_of(lines)`: ragged [B, None] string.

    Args:
        vocabulary: the vocabulary.
        end: see `encoder`.
    """

    def __init__(self, vocabulary, end=True):
        super().__init__(vocabulary, end)
        self._table = _table(vocabulary)

    def ids_of(self, lines):
        parts = self.parts_of(lines)
        ids = self._table.lookup(parts.flat_values)
        accepted = tf.reduce_all(parts.with_flat_values(ids != _UNKNOWN), axis=1)
        return _of_lines(ids, parts.value_rowids(), accepted)


class WordEncoder(_ListedEncoder):
    """Twin of the encoding of words between blanks: WordVocabulary, OpenWordVocabulary, NumberVocabulary."""

    blanks = BLANKS

    def parts_of(self, lines):
        words = tf.strings.split(tf.strings.regex_replace(lines, f"[{self.blanks}]", " "), " ")
        return tf.ragged.boolean_mask(words, words != "")


class T2tWordEncoder(WordEncoder):
    """Twin of T2tWordVocabulary.encode; see `encoder`."""

    blanks = "".join(filter(str.isspace, map(chr, range(0x3001))))


class CharacterEncoder(_ListedEncoder):
    """Twin of CharacterVocabulary.encode; see `encoder`."""

    def parts_of(self, lines):
        return tf.strings.unicode_split(lines, "UTF-8", errors="replace")


class SymbolEncoder(CharacterEncoder):
    """Twin of SymbolVocabulary.encode; see `encoder`."""

    def parts_of(self, lines):
        return super().parts_of(tf.strings.regex_replace(lines, f"[{BLANKS}]", ""))


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

    Call arguments:
        ids: [B, N] int.

    Returns:
        [B] string.
    """

    def __init__(self, vocabulary):
        super().__init__(name="sequence_decoder")
        self._entries = (UNKNOWN,) * (vocabulary.reserved - NUM_RESERVED) + vocabulary.entries
        self._separator = vocabulary.separator

    def __call__(self, ids):
        ids = tf.cast(ids, tf.int32)
        shown = _shown(ids, NUM_RESERVED, NUM_RESERVED + len(self._entries))
        entries = tf.gather(tf.constant(self._entries), tf.where(shown, ids - NUM_RESERVED, 0))
        return tf.strings.reduce_join(tf.ragged.boolean_mask(entries, shown), axis=1, separator=self._separator)


class ByteDecoder(tf.Module):
    """Twin of ByteVocabulary.decode: [B, N] int -> [B] string."""

    def __init__(self, vocabulary):
        super().__init__(name="byte_decoder")

    def __call__(self, ids):
        ids = tf.cast(ids, tf.int32)
        shown = _shown(ids, NUM_RESERVED, NUM_RESERVED + 256)
        values = tf.gather(
            tf.constant([bytes([value]) for value in range(256)]), tf.where(shown, ids - NUM_RESERVED, 0)
        )
        text = tf.strings.reduce_join(tf.ragged.boolean_mask(values, shown), axis=1)
        return tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="replace")


class SubwordDecoder(tf.Module):
    """Twin of SubwordVocabulary.decode: [B, N] int -> [B] string."""

    def __init__(self, vocabulary):
        super().__init__(name="subword_decoder")
        self._tokenizer = _tokenizer(vocabulary)
        self._size = vocabulary.size

    def __call__(self, ids):
        ids = tf.cast(ids, tf.int32)
        return self._tokenizer.detokenize(tf.ragged.boolean_mask(ids, _shown(ids, UNK + 1, self._size)))


class T2tSubwordDecoder(tf.Module):
    """Twin of T2tSubwordVocabulary.decode: [B, N] int -> [B] string."""

    def __init__(self, vocabulary):
        super().__init__(name="t2t_subword_decoder")
        self._text = T2tSubwordText(vocabulary)
        self._size = vocabulary.size

    def __call__(self, ids):
        ids = tf.cast(ids, tf.int32)
        return self._text(ids, _shown(ids, NUM_RESERVED, self._size))


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
        self._entries = ("",) * vocabulary.reserved + vocabulary.entries

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


def _shown(ids, first, end):
    """Returns where `ids` [B, N] stand before the first end token and are in first .. end - 1: [B, N] bool."""
    before_end = tf.cumsum(tf.cast(ids == EOS, tf.int32), axis=1) == 0
    return before_end & (ids >= first) & (ids < end)


def _table(vocabulary):
    """Returns the table from entries to ids; where the vocabulary has no unknown word, that of others is -1."""
    ids = {entry: number for number, entry in enumerate(vocabulary.entries, vocabulary.reserved)}
    initializer = tf.lookup.KeyValueTensorInitializer(
        tf.constant(list(ids), tf.string), tf.constant(list(ids.values()), tf.int32)
    )
    return tf.lookup.StaticHashTable(initializer, vocabulary.unknown or _UNKNOWN)


def _tokenizer(vocabulary):
    import tensorflow_text

    return tensorflow_text.SentencepieceTokenizer(vocabulary.model, out_type=tf.int32)


_ENCODERS = {
    "symbols": SymbolEncoder,
    "characters": CharacterEncoder,
    "numbers": WordEncoder,
    "words": WordEncoder,
    "open_words": WordEncoder,
    "bytes": ByteEncoder,
    "subwords": SubwordEncoder,
    "t2t_subwords": T2tSubwordEncoder,
    "t2t_words": T2tWordEncoder,
}

_DECODERS = {"bytes": ByteDecoder, "subwords": SubwordDecoder, "t2t_subwords": T2tSubwordDecoder}
