"""Vocabularies: text to ids and back. Standard library only; the in-graph twins are in text_graph.py.

Ids: 0 is padding, 1 the end of a sequence, an entry's id is its index plus 2. The two reserved ids
have no spelling, so no text can collide with them.
"""

import re

from ut_keras.errors import UserError
from ut_keras.registry import near_names

PAD = 0
EOS = 1
NUM_RESERVED = 2

# The white space of both twins. Python's own idea of it (no-break space, U+0085, ...) differs from the graph's.
BLANKS = "\t\n\v\f\r "


class Vocabulary:
    """A closed list of entries.

    Args:
        entries: distinct non-empty strings; entry i has id i + 2.

    Attributes:
        entries: tuple of str.
        size: number of ids, the two reserved ones included.

    Raises:
        UserError: an entry is empty or stands in the list twice.
    """

    kind = None
    _kinds = {}

    def __init__(self, entries):
        self.entries = tuple(entries)
        self._ids = {}
        for index, entry in enumerate(self.entries, NUM_RESERVED):
            if not entry:
                raise UserError(f"vocabulary: entry {index - NUM_RESERVED + 1} is empty")
            if entry in self._ids:
                first = self._ids[entry] - NUM_RESERVED + 1
                raise UserError(f"vocabulary: {entry!r} is both entry {first} and entry {index - NUM_RESERVED + 1}")
            self._ids[entry] = index

    def __init_subclass__(cls):
        Vocabulary._kinds[cls.kind] = cls

    def __eq__(self, other):
        return type(self) is type(other) and self.entries == other.entries

    def __hash__(self):
        return hash(self.entries)

    def __contains__(self, entry):
        return entry in self._ids

    @property
    def size(self):
        return NUM_RESERVED + len(self.entries)

    def id_of(self, entry):
        """Returns the id of `entry`; KeyError if it has none."""
        return self._ids[entry]

    def decode_tokens(self, ids):
        """Returns the entries of `ids` up to the first end token; padding and ids without an entry are left out."""
        tokens = []
        for number in ids:
            number = int(number)
            if number == EOS:
                break
            if NUM_RESERVED <= number < self.size:
                tokens.append(self.entries[number - NUM_RESERVED])
        return tokens

    def to_dict(self):
        """Returns the vocabulary as what JSON can hold."""
        return {"kind": self.kind, "entries": list(self.entries)}

    @staticmethod
    def from_dict(values):
        """Returns the vocabulary that `to_dict` described."""
        return Vocabulary._kinds[values["kind"]](values["entries"])


class SymbolVocabulary(Vocabulary):
    """One-character symbols, written with or without blanks between them.

    >>> digits = SymbolVocabulary("0123456789")
    >>> digits.encode("3 14", "reverse"), digits.decode([5, 3, 6, 1, 0])
    ([5, 3, 6], '314')
    """

    kind = "symbols"

    def encode(self, text, task):
        """Returns the ids of the symbols of `text`, without an end token.

        Raises:
            UserError: a symbol is unknown; the message names `task`, the symbol and the known ones.
        """
        symbols = re.sub(f"[{BLANKS}]", "", text)
        for symbol in symbols:
            if symbol not in self:
                raise UserError(f"{task}: {symbol!r} is not one of its symbols: {' '.join(self.entries)}")
        return [self.id_of(symbol) for symbol in symbols]

    def decode(self, ids):
        """Returns the symbols of `ids` up to the end token, without blanks between them."""
        return "".join(self.decode_tokens(ids))


class WordVocabulary(Vocabulary):
    """Words that were split elsewhere."""

    kind = "words"

    def encode(self, words, task):
        """Returns the ids of a list of words.

        Raises:
            UserError: a word is unknown; the message names `task`, the word and the nearest known ones.
        """
        for word in words:
            if word not in self:
                raise UserError(
                    f"{task}: the word {word!r} is not in its vocabulary of {len(self.entries)} words"
                    f"{near_names(word, self.entries)}"
                )
        return [self.id_of(word) for word in words]

    def decode(self, ids):
        """Returns the words of `ids` up to the end token, with blanks between them."""
        return " ".join(self.decode_tokens(ids))
