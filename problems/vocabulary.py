"""Vocabularies of listed entries, and bytes: text to ids and back. Standard library only.

Ids: 0 is padding, 1 the end of a sequence, an entry's id its index plus the number of reserved ids. Reserved
ids have no spelling, so no text can collide with them. Subwords are in subwords.py, tensor2tensor's in t2t_subwords.py
and t2t_words.py, the twins of all kinds on tensors in text_graph.py.
"""

import importlib
import re

from ut_keras.errors import UserError
from ut_keras.registry import near_names

PAD = 0
EOS = 1
NUM_RESERVED = 2
UNK = 2  # where a kind has an unknown word
UNKNOWN = "<unk>"  # how it is shown; never read

# Modules of the kinds that register themselves when they are first read.
_ELSEWHERE = {
    "subwords": "problems.subwords",
    "t2t_subwords": "problems.t2t_subwords",
    "t2t_words": "problems.t2t_words",
}

# The white space of both twins. Python's own idea of it (no-break space, U+0085, ...) differs from the graph's.
BLANKS = "\t\n\v\f\r "


def before_end(ids):
    """Yields `ids` as integers, up to the first end token."""
    for number in ids:
        if number == EOS:
            return
        yield int(number)


def split_words(text):
    """Returns the words of a line, which blanks separate."""
    return [word for word in re.split(f"[{BLANKS}]", text) if word]


def quoted(text, most=60):
    """Returns `text` as a message names it, in quotes, and of a long one its beginning.

    >>> quoted("abc"), quoted("a" * 100, most=3)
    ("'abc'", "'aaa'...")
    """
    return repr(text) if len(text) <= most else f"{text[:most]!r}..."


class Vocabulary:
    """A closed list of entries.

    Args:
        entries: distinct non-empty strings; entry i has id i + reserved.

    Attributes:
        entries: tuple of str.
        size: number of ids, the reserved ones included.
        reserved: number of ids below those of the entries.
        unknown: id of every entry that is not in the list; `PAD`: there is none.
        separator: what stands between decoded entries.

    Raises:
        UserError: an entry is empty or stands in the list twice.
    """

    kind = None
    reserved = NUM_RESERVED
    unknown = PAD
    separator = " "
    _kinds = {}

    def __init__(self, entries):
        self.entries = tuple(entries)
        self._ids = {}
        for number, entry in enumerate(self.entries, 1):
            if not entry:
                raise UserError(f"vocabulary: entry {number} is empty")
            if entry in self._ids:
                first = self._ids[entry] - self.reserved + 1
                raise UserError(f"vocabulary: {entry!r} is both entry {first} and entry {number}")
            self._ids[entry] = number + self.reserved - 1

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
        return self.reserved + len(self.entries)

    def id_of(self, entry):
        """Returns the id of `entry`; KeyError if it has none."""
        return self._ids[entry]

    def encode_all(self, texts):
        """Returns the ids of each of `texts`, for a kind whose `encode` takes text."""
        return [self.encode(text, "vocabulary") for text in texts]

    def decode(self, ids):
        """Returns the entries of `ids` up to the first end token, with the separator between them."""
        return self.separator.join(self.decode_tokens(ids))

    def decode_tokens(self, ids):
        """Returns the entries of `ids` up to the first end token; padding and ids without an entry are left out."""
        known = range(self.reserved, self.size)
        return [self.entries[number - self.reserved] for number in before_end(ids) if number in known]

    def to_dict(self):
        """Returns the vocabulary as what JSON can hold."""
        return {"kind": self.kind, "entries": list(self.entries)}

    @staticmethod
    def from_dict(values):
        """Returns the vocabulary that `to_dict` described."""
        if values["kind"] in _ELSEWHERE:
            importlib.import_module(_ELSEWHERE[values["kind"]])
        return Vocabulary._kinds[values["kind"]]._from_dict(values)

    @classmethod
    def _from_dict(cls, values):
        return cls(values["entries"])


class SymbolVocabulary(Vocabulary):
    """One-character symbols, written with or without blanks between them.

    >>> digits = SymbolVocabulary("0123456789")
    >>> digits.encode("3 14", "reverse"), digits.decode([5, 3, 6, 1, 0])
    ([5, 3, 6], '314')
    """

    kind = "symbols"
    separator = ""

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


class WordVocabulary(Vocabulary):
    """A closed list of words."""

    kind = "words"

    def encode(self, words, task):
        """Returns the ids of a list of words, or of the words of a line.

        Raises:
            UserError: a word is unknown; the message names `task`, the word and the nearest known ones.
        """
        words = split_words(words) if isinstance(words, str) else words
        for word in words:
            if word not in self:
                raise UserError(
                    f"{task}: the word {quoted(word)} is not in its vocabulary of {len(self.entries)} words"
                    f"{near_names(word, self.entries)}"
                )
        return [self.id_of(word) for word in words]


class OpenWordVocabulary(Vocabulary):
    """The most frequent words of a text; every other word is the unknown word, id 2.

    >>> words = OpenWordVocabulary(["the", "cat"])
    >>> words.encode("the dog", "task"), words.decode([3, 2, 1])
    ([3, 2], 'the <unk>')
    """

    kind = "open_words"
    reserved = NUM_RESERVED + 1
    unknown = UNK

    def encode(self, text, task=None):
        """Returns the ids of the words of `text`, which blanks separate. No word is refused."""
        return [self._ids.get(word, UNK) for word in split_words(text)]

    def decode_tokens(self, ids):
        """Returns the words of `ids` up to the end token; id 2 is shown as <unk>."""
        shown = (UNKNOWN, *self.entries)
        return [shown[number - UNK] for number in before_end(ids) if UNK <= number < self.size]


class ByteVocabulary(Vocabulary):
    """The bytes of UTF-8, ids 2 to 257: any text, without a list.

    >>> bytes_ = ByteVocabulary()
    >>> bytes_.encode("a!"), bytes_.decode([99, 35, 1])
    ([99, 35], 'a!')
    """

    kind = "bytes"

    def __init__(self, entries=None):
        super().__init__(tuple(f"0x{value:02x}" for value in range(256)))

    def encode(self, text, task=None):
        """Returns the ids of the bytes of `text`, without an end token."""
        return [value + NUM_RESERVED for value in text.encode("utf-8")]

    def decode(self, ids):
        """Returns the text of the bytes up to the end token; bytes that are not UTF-8 become U+FFFD."""
        values = [number - NUM_RESERVED for number in before_end(ids) if NUM_RESERVED <= number < self.size]
        return bytes(values).decode("utf-8", errors="replace")

    def to_dict(self):
        return {"kind": self.kind}

    @classmethod
    def _from_dict(cls, values):
        return cls()
