"""Twins on tensors of the vocabularies of closed_vocabularies.py; see text_graph.py for what they share.

Legend: B lines of a batch, L positions, N output ids.
"""

import tensorflow as tf

from problems import text_graph
from problems.vocabulary import BLANKS


def encoder(vocabulary, end=True):
    """Returns the twin of `vocabulary.encode`: a tf.Module, [B] string -> [B, L] int32, padded with 0, L at least 1."""
    return {"characters": CharacterEncoder, "numbers": NumberEncoder}[vocabulary.kind](vocabulary, end)


def decoder(vocabulary):
    """Returns the twin of `vocabulary.decode`: a tf.Module, [B, N] int -> [B] string."""
    return text_graph.SequenceDecoder(vocabulary, separator=" " if vocabulary.kind == "numbers" else "")


class CharacterEncoder(text_graph.SymbolEncoder):
    """Twin of CharacterVocabulary.encode; see `encoder`."""

    def ids_of(self, lines):
        return self._accepted(tf.strings.unicode_split(lines, "UTF-8", errors="replace"))

    def _accepted(self, symbols):
        """Returns the ids of the symbols of each line, none where one of them is unknown: ragged [B, None] int32."""
        ids = symbols.with_flat_values(self._table.lookup(symbols.flat_values))
        known = tf.reduce_all(ids >= 0, axis=1)
        return tf.RaggedTensor.from_row_lengths(
            tf.boolean_mask(ids.flat_values, tf.gather(known, ids.value_rowids())),
            tf.where(known, ids.row_lengths(), 0),
        )


class NumberEncoder(CharacterEncoder):
    """Twin of NumberVocabulary.encode; see `encoder`."""

    def ids_of(self, lines):
        words = tf.strings.split(tf.strings.regex_replace(lines, f"[{BLANKS}]", " "), " ")
        return self._accepted(tf.ragged.boolean_mask(words, words != ""))
