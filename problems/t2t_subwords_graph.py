r"""In-graph twins of tensor2tensor's subwords: core TensorFlow, and tensorflow-text's WordpieceTokenizer.

Legend: B lines of a batch, N output ids, n characters (or runs, or parts) of all lines, one after the other. The steps
are those of `T2tSubwordVocabulary`, and so are ids and texts.
"""

import functools
import sys

import tensorflow as tf

from problems.t2t_subwords import ESCAPED, UNDEFINED
from problems.vocabulary import NUM_RESERVED

_UNKNOWN = -1
_CUT = b"\xff"  # no byte of UTF-8: it occurs in no text
_DIGITS = 7  # as many as the largest number of a character has


class T2tSubwordTokenizer(tf.Module):
    """Twin of T2tSubwordVocabulary.encode; a line that the entries cannot spell has no ids.

    Args:
        vocabulary: T2tSubwordVocabulary.

    Call arguments:
        lines: [B] string; bytes that are not UTF-8 become U+FFFD.

    Returns:
        ragged [B, None] int32.
    """

    def __init__(self, vocabulary):
        import tensorflow_text

        super().__init__(name="t2t_subword_tokenizer")
        ids = vocabulary.ids
        entries = tf.lookup.KeyValueTensorInitializer(list(ids), tf.constant(list(ids.values()), tf.int64))
        self._table = tf.lookup.StaticHashTable(entries, _UNKNOWN)
        self._tokenizer = tensorflow_text.WordpieceTokenizer(
            self._table,
            suffix_indicator="",
            max_bytes_per_word=2**31 - 1,
            max_chars_per_token=max(len(entry.encode()) for entry in ids),
            unknown_token=None,
        )
        self._alphabet = sorted(map(ord, vocabulary.alphabet))

    def __call__(self, lines):
        characters = tf.strings.unicode_split(lines, "UTF-8", errors="replace")
        codes = tf.strings.unicode_decode(lines, "UTF-8", errors="replace").flat_values
        runs, lines_of = _runs(self._spelled(characters.flat_values, codes), codes, characters.value_rowids())
        parts = tf.cast(self._tokenizer.tokenize(runs), tf.int32)
        ids = tf.RaggedTensor.from_value_rowids(parts, lines_of, characters.nrows()).merge_dims(1, 2)
        accepted = tf.reduce_all(ids != _UNKNOWN, axis=1)
        return tf.ragged.boolean_mask(ids, tf.RaggedTensor.from_row_splits(_repeated(accepted, ids), ids.row_splits))

    def _spelled(self, characters, codes):
        """Returns the spelling of each character [n]."""
        alphabet = tf.constant(self._alphabet)
        places = tf.minimum(tf.searchsorted(alphabet, codes), len(self._alphabet) - 1)
        numbers = tf.strings.join(["\\", tf.strings.as_string(codes), ";"])
        spelled = tf.where(tf.gather(alphabet, places) == codes, characters, numbers)
        return tf.where(codes == ord("_"), "\\u", tf.where(codes == ord("\\"), "\\\\", spelled))


class T2tSubwordText(tf.Module):
    """Twin of T2tSubwordVocabulary.decode.

    Args:
        vocabulary: T2tSubwordVocabulary.

    Call arguments:
        ids: [B, N] int.
        shown: [B, N] bool, those that have a text.

    Returns:
        [B] string.
    """

    def __init__(self, vocabulary):
        super().__init__(name="t2t_subword_text")
        self._entries = vocabulary.entries

    def __call__(self, ids, shown):
        entries = tf.gather(tf.constant(self._entries), tf.where(shown, ids - NUM_RESERVED, 0))
        spelled = tf.strings.reduce_join(tf.ragged.boolean_mask(entries, shown), axis=1)
        runs = tf.strings.split(spelled, "_")
        runs = tf.ragged.boolean_mask(runs, runs != "")
        texts, lines_of = _unescaped(runs.flat_values), runs.value_rowids()
        words = _is_word(tf.strings.unicode_decode(tf.strings.substr(texts, 0, 1, "UTF8_CHAR"), "UTF-8").flat_values)
        apart = words[1:] & words[:-1] & (lines_of[1:] == lines_of[:-1])
        blanks = tf.where(tf.concat([tf.zeros_like(words[:1]), apart], 0), " ", "")
        return tf.strings.reduce_join(runs.with_flat_values(tf.strings.join([blanks, texts])), axis=1)


def _runs(spelled, codes, lines_of):
    """Returns the runs that are taken apart, each with its underscore, and their lines, both [n].

    Args:
        spelled, codes, lines_of: spelling, code point and line of each character, [n].
    """
    words = _is_word(codes)
    begins = tf.ones_like(words[:1])  # of no characters, none
    changes = tf.concat([begins, lines_of[1:] != lines_of[:-1]], 0)
    starts = changes | tf.concat([begins, words[1:] != words[:-1]], 0)
    joined = tf.strings.unsorted_segment_join(
        spelled, tf.cumsum(tf.cast(starts, tf.int32)) - 1, tf.math.count_nonzero(starts, dtype=tf.int32)
    )
    alone = starts & tf.concat([starts[1:], begins], 0)
    implied = tf.boolean_mask(alone & (codes == ord(" ")) & ~changes & ~_last(changes, begins), starts)
    lines_of = tf.boolean_mask(tf.boolean_mask(lines_of, starts), ~implied)
    return tf.strings.join([tf.boolean_mask(joined, ~implied), "_"]), lines_of


def _last(changes, begins):
    """Returns which characters are the last of their line, where `changes` says which are the first."""
    return tf.concat([changes[1:], begins], 0)


def _repeated(accepted, ids):
    return tf.gather(accepted, ids.value_rowids())


def _unescaped(runs):
    """Returns the text of spelled runs, both [n]."""
    cut = tf.strings.regex_replace(runs, f"({ESCAPED})", _CUT + rb"\1" + _CUT)
    parts = tf.strings.split(cut, _CUT)
    spelled = parts.flat_values
    numbered = tf.strings.regex_full_match(spelled, r"\\[0-9]+;")
    digits = tf.strings.regex_replace(spelled, r"\\0*([0-9]*);", r"\1")
    small = numbered & (tf.strings.length(digits) <= _DIGITS)
    numbers = tf.strings.to_number(tf.where(small, tf.strings.join(["0", digits]), "0"), tf.int32)
    characters = tf.strings.unicode_encode(
        tf.where(small, numbers, -1)[:, None], "UTF-8", errors="replace", replacement_char=ord(UNDEFINED)
    )
    texts = tf.where(numbered, characters, spelled)
    texts = tf.where(spelled == "\\u", "_", tf.where(spelled == "\\\\", "\\", texts))
    return tf.strings.reduce_join(parts.with_flat_values(texts), axis=1)


def _is_word(codes):
    """Returns which of the code points [n] are letters or numbers."""
    return tf.searchsorted(tf.constant(_boundaries()), codes, side="right") % 2 == 1


@functools.cache
def _boundaries():
    """Returns the code points at which letters and numbers begin and end, in turn, as Python knows them."""
    words = [chr(code).isalnum() for code in range(sys.maxunicode + 1)]
    return [code for code in range(1, len(words)) if words[code] != words[code - 1]]
