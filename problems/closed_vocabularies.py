"""Closed vocabularies beside that of symbols: characters, blanks included, and numbers with blanks between them.

Standard library only; the twins on tensors are in text_graph.py.
"""

from problems.vocabulary import Vocabulary, quoted, split_words
from ut_keras.errors import UserError


class CharacterVocabulary(Vocabulary):
    """Characters, of which a blank is one: every character of a line counts.

    >>> code = CharacterVocabulary("if <0123456789")
    >>> code.encode("1 if", "program"), code.decode([7, 4, 2, 3, 1, 0])
    ([7, 4, 2, 3], '1 if')
    """

    kind = "characters"
    separator = ""

    def encode(self, text, task):
        """Returns the ids of the characters of `text`, without an end token.

        Raises:
            UserError: a character is unknown; the message names `task`, the character and the known ones.
        """
        for character in text:
            if character not in self:
                raise UserError(f"{task}: {character!r} is not one of its characters: {''.join(self.entries)!r}")
        return [self.id_of(character) for character in text]


class NumberVocabulary(Vocabulary):
    """The numbers 0 to count - 1 as names of that many symbols, written with blanks between them.

    Args:
        count: number of symbols.

    >>> symbols = NumberVocabulary(20)
    >>> symbols.encode("3 14", "shift"), symbols.decode([5, 16, 1, 0])
    ([5, 16], '3 14')
    """

    kind = "numbers"

    def __init__(self, count):
        super().__init__(str(number) for number in range(count))

    def encode(self, text, task):
        """Returns the ids of the numbers of `text`, without an end token.

        Raises:
            UserError: a word is none of the numbers; the message names `task`, the word and their range.
        """
        words = split_words(text)
        for word in words:
            if word not in self:
                raise UserError(
                    f"{task}: {quoted(word)} is not one of its symbols: the numbers 0 to {len(self.entries) - 1}, "
                    "with blanks between them"
                )
        return [self.id_of(word) for word in words]

    def to_dict(self):
        return {"kind": self.kind, "count": len(self.entries)}

    @classmethod
    def _from_dict(cls, values):
        return cls(values["count"])
