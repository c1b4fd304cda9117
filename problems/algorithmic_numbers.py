"""Generation of the strings of the algorithmic problems with more symbols than there are digits.

Legend: N strings, P longest length. A string is a row of symbols 0 .. base - 1.
"""

import dataclasses

import numpy as np

from problems.algorithmic_strings import Task, reversed_rows
from problems.packed import Packed
from problems.vocabulary import EOS, NUM_RESERVED

SHIFT = 10


@dataclasses.dataclass(frozen=True)
class NumberTask(Task):
    """A task whose strings are numbers with blanks between them; see `Task` for what is not said here.

    tensor2tensor draws the symbols of reverse_nlplike one too high: there symbol 0 never occurs, and the
    last one has an id past the end of the vocabulary.

    Args:
        kind: "identity"; "shift": add 10 to each of the numbers below base - 10; "sort": in ascending order;
            "reverse_nlplike": reversed, symbols after Zipf's law, lengths with normal distribution, half of
            the longest on average with a tenth of it as standard deviation.
        base: number of symbols.
        alpha: exponent of Zipf's law, of reverse_nlplike.
    """

    alpha: float = 0.0

    @property
    def symbols(self):
        return f"0 to {self.base - 1}"

    @property
    def label(self):
        return f"{super().label}_alpha{self.alpha}" if self.alpha else super().label

    def _lengths(self, rng, count, longest):
        if self.kind != "reverse_nlplike":
            return super()._lengths(rng, count, longest)
        return (np.abs(rng.normal(longest / 2, longest / 10, (count, 1))) + 1).astype(np.int64)

    def _strings(self, rng, parts):
        if not len(parts):
            return []
        lengths = parts[:, 0]
        symbols = self._symbols(rng, (len(lengths), lengths.max()))
        targets = symbols
        if self.kind == "shift":
            targets = symbols + SHIFT
        elif self.kind == "sort":
            real = np.arange(symbols.shape[1]) < lengths[:, None]
            targets = np.sort(np.where(real, symbols, self.base), axis=1)
        elif self.kind == "reverse_nlplike":
            targets = reversed_rows(symbols, lengths)
        return list(zip(self._spell(symbols, lengths), self._spell(targets, lengths), strict=True))

    def _symbols(self, rng, shape):
        if self.kind == "reverse_nlplike":
            weights = np.cumsum(np.arange(1, self.base + 1) ** -self.alpha)
            return np.searchsorted(weights / weights[-1], rng.random(shape), side="right")
        return rng.integers(0, self.base - SHIFT if self.kind == "shift" else self.base, shape)

    def _spell(self, symbols, lengths):
        names = [b"%d" % number for number in range(self.base)]
        rows = zip(symbols.tolist(), lengths.tolist(), strict=True)
        return [b" ".join([names[number] for number in row[:length]]) for row, length in rows]


def pack_numbers(strings):
    """Returns the `Packed` ids, end tokens included, of a list of bytes: numbers with blanks between them."""
    lengths = np.array([string.count(b" ") + 2 for string in strings], np.int32)
    end = b" %d " % (EOS - NUM_RESERVED)
    tokens = np.array(b"".join(string + end for string in strings).split(), np.int32) + NUM_RESERVED
    return Packed.from_tokens(tokens, lengths)
