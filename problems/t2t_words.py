"""tensor2tensor's lists of words, a word a line, the reserved ones included. Standard library only."""

from problems.vocabulary import NUM_RESERVED, PAD, Vocabulary, quoted
from ut_keras.errors import UserError
from ut_keras.registry import near_names

UNKNOWNS = ("UNK", "<unk>", "<UNK>", "unk")  # entries that stand for every other word; the first that is there does


class T2tWordVocabulary(Vocabulary):
    """Words from a file of tensor2tensor's, `vocab.bpe.32000` for one.

    Every blank that Unicode knows separates words, as in T2T.

    Args:
        entries: str, all lines of the file from the third on; entry i has id i + 2. Of equal ones the last counts.

    Example:

    >>> words = T2tWordVocabulary(["the", "cat", "UNK"])
    >>> words.encode("the dog"), words.decode([2, 3, 1])
    ([2, 4], 'the cat')

    Source: T2T data_generators/text_encoder.py (TokenTextEncoder); which entry is the unknown word T2T's problems say.
    """

    kind = "t2t_words"

    def __init__(self, entries):
        self.entries = tuple(entries)
        self._ids = {entry: number for number, entry in enumerate(self.entries, NUM_RESERVED)}
        self.unknown = next((self._ids[entry] for entry in UNKNOWNS if entry in self._ids), PAD)

    def encode(self, text, task=None):
        """Returns the ids of the words of `text`.

        Raises:
            UserError: a word is unknown, and the list has none of `UNKNOWNS`.
        """
        return [self._id(word, task) for word in text.split()]

    def _id(self, word, task):
        found = self._ids.get(word, self.unknown)
        if found == PAD:
            raise UserError(
                f"{task}: the word {quoted(word)} is not in its vocabulary, which has no word for unknown ones "
                f"({', '.join(UNKNOWNS)}){near_names(word, self.entries)}"
            )
        return found
