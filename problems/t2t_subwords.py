r"""tensor2tensor's subwords: the same ids from the same file, `vocab.*.subwords`. Standard library only.

A text is cut into runs of letters and numbers and runs of everything else; a run that is one blank between two others
is left out, and implied by the two. In a run a backslash is spelled \\, an underscore \u, a character that occurs in
no entry of the file, or a line feed, \N; with its number, and an underscore is put behind it. What comes out is taken
apart from the left, always by the longest entry that fits. So every text comes back.

Source: T2T data_generators/text_encoder.py (SubwordTextEncoder) and tokenizer.py.
"""

import re

from problems.vocabulary import NUM_RESERVED, Vocabulary, quoted
from ut_keras.errors import UserError

ESCAPES = "\\_u;0123456789"  # always spelled as they are
RESERVED = (("<pad>", "<pad>_"), ("<EOS>", "<EOS>_"))  # spellings of the first two lines
UNDEFINED = "\u3013"  # stands for a number that is no character's
ESCAPED = r"\\u|\\\\|\\[0-9]+;"
_RUNS = re.compile(r"[^\W_]+|[\W_]+")  # as str.isalnum: T2T's Unicode categories L and N
_ESCAPED = re.compile(ESCAPED)
_CACHED = 1 << 20  # runs whose ids are kept


class T2tSubwordVocabulary(Vocabulary):
    """Parts of words from a file of tensor2tensor's.

    Args:
        entries: str, all lines of the file from the third on; entry i has id i + 2. Of equal ones the last counts;
            an empty one is never used.

    Attributes:
        entries: the same, a tuple.
        alphabet: frozenset of the characters that are spelled as they are.
        longest: characters of the longest entry.

    Raises:
        UserError: one of `ESCAPES` has no entry of its own, so that not every text could be spelled.

    Example:

    >>> vocabulary = T2tSubwordVocabulary([*ESCAPES, "the_", "c", "at_", ", _"])
    >>> vocabulary.encode("the cat, the")
    [16, 17, 18, 19, 16]
    >>> vocabulary.decode([16, 17, 18, 19, 16, 1])
    'the cat, the'
    """

    kind = "t2t_subwords"

    def __init__(self, entries):
        self.entries = tuple(entries)
        self._ids = {entry: number for number, entry in enumerate(self.entries, NUM_RESERVED) if entry}
        for character in ESCAPES:
            if character not in self._ids:
                raise UserError(f"not a subword vocabulary of tensor2tensor: it has no entry {character!r}")
        self.alphabet = frozenset("".join((*self.entries, *RESERVED[0], *RESERVED[1], ESCAPES))) - {"\n"}
        self.longest = max(map(len, self.entries))
        self._cache = {}

    @property
    def ids(self):
        """{entry: id} of the entries that are used."""
        return dict(self._ids)

    def encode(self, text, task="vocabulary"):
        """Returns the ids of a text, without an end token.

        Raises:
            UserError: a character occurs inside of entries alone and no entry fits; T2T has no answer there either.
        """
        ids = []
        for run in runs(text):
            found = self._cache.get(run)
            if found is None:
                found = self._apart(self._spelled(run), task)
                if len(self._cache) >= _CACHED:
                    self._cache.clear()
                self._cache[run] = found
            ids += found
        return ids

    def decode(self, ids):
        """Returns the text of `ids` up to the end token; padding and ids without an entry are left out."""
        spelled = "".join(self.decode_tokens(ids)).split("_")
        text, after_word = [], False
        for run in (_ESCAPED.sub(_character, part) for part in spelled if part):
            word = run[0].isalnum()
            text += [" ", run] if word and after_word else [run]
            after_word = word
        return "".join(text)

    def _spelled(self, run):
        run = run.replace("\\", "\\\\").replace("_", "\\u")
        return "".join(c if c in self.alphabet else f"\\{ord(c)};" for c in run) + "_"

    def _apart(self, spelled, task):
        ids, start = [], 0
        while start < len(spelled):
            for end in range(min(len(spelled), start + self.longest), start, -1):
                found = self._ids.get(spelled[start:end])
                if found is not None:
                    ids.append(found)
                    start = end
                    break
            else:
                raise UserError(f"{task}: its subwords cannot spell {quoted(spelled[start:-1])}")
        return ids


def runs(text):
    """Returns what tensor2tensor takes apart for itself: letters and numbers, and what is between them.

    >>> runs("Dude - that's so cool.")
    ['Dude', ' - ', 'that', "'", 's', 'so', 'cool', '.']
    """
    found = _RUNS.findall(text)
    return found[:1] + [run for run in found[1:-1] if run != " "] + found[1:][-1:]


def _character(match):
    spelled = match[0]
    if not spelled.endswith(";"):
        return "_" if spelled == "\\u" else "\\"
    try:
        character = chr(int(spelled[1:-1]))
    except (ValueError, OverflowError):  # also of more digits than Python reads
        return UNDEFINED
    # Half of a pair is no text that could be written; T2T would fail when it does.
    return UNDEFINED if "\ud800" <= character <= "\udfff" else character
