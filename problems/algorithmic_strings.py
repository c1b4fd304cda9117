"""Generation of the strings of the algorithmic problems, after tensor2tensor's data_generators/algorithmic.py.

Legend: N strings, P longest length. A string is a row of symbols 0 .. base - 1, with `base` itself as
the separator of two numbers. Digits of numbers stand least significant first.
"""

import dataclasses

import numpy as np

from ut_keras.errors import UsageError

SEPARATORS = {"addition": "+", "multiplication": "*"}
_REDRAWS = 20


@dataclasses.dataclass(frozen=True)
class Task:
    """A task and the sizes of its splits; everything is a function of these settings.

    Args:
        kind: "identity", "reverse", "addition" or "multiplication".
        base: number of symbols (digits), at most 10.
        train_length: longest input of train, dev and test (symbols, end token not included).
        long_length: longest input of "long".
        sizes: pairs (split, number of examples), of train, dev, test and long.
        seed: of all draws.
    """

    kind: str
    base: int
    train_length: int
    long_length: int
    sizes: tuple
    seed: int

    @property
    def splits(self):
        return tuple(name for name, _ in self.sizes)

    @property
    def symbols(self):
        """The characters of the symbols; the separator, where there is one, is the last."""
        return "0123456789"[: self.base] + SEPARATORS.get(self.kind, "")

    @property
    def label(self):
        """A name of all settings but sizes and seed."""
        return f"{self.kind}_base{self.base}_length{self.train_length}_{self.long_length}"

    def split(self, name):
        """Returns the examples of a split: list of (inputs, targets), bytes of symbols.

        Inputs of all splits but train do not occur in train, where a string of their length that is
        not in train can be found by drawing again (all the shortest ones are in train).
        """
        count = dict(self.sizes)[name]
        rng = np.random.default_rng([self.seed, self.splits.index(name)])
        longest = self.long_length if name == "long" else self.train_length
        parts = self._lengths(rng, count, longest)
        return self._draw(rng, parts, known=() if name == "train" else self._train_inputs())

    def exact(self, length, count, seed):
        """Returns `count` examples with inputs of exactly `length` symbols, not in train where possible.

        Raises:
            UsageError: no input has this length.
        """
        shortest = 3 if self.kind in SEPARATORS else 1
        if length < shortest:
            raise UsageError(f"{self.kind} has no inputs of {length} symbols; the shortest has {shortest}")
        rng = np.random.default_rng([self.seed, len(self.sizes), seed, length])
        if self.kind in SEPARATORS:
            first = rng.integers(1, length // 2 + 1, count)
            parts = np.stack([first, length - 1 - first], axis=1)
        else:
            parts = np.full((count, 1), length)
        return self._draw(rng, parts, known=self._train_inputs() if length <= self.train_length else ())

    def _lengths(self, rng, count, longest):
        """Returns [N, 1] lengths, uniform in 1 .. longest; of two numbers: [N, 2], the digits of each."""
        if self.kind not in SEPARATORS:
            return rng.integers(1, longest + 1, (count, 1))
        first = rng.integers(1, longest // 2 + 1, count)
        return np.stack([first, rng.integers(1, longest - first)], axis=1)

    def _draw(self, rng, parts, known):
        examples = self._strings(rng, parts)
        if known:
            for _ in range(_REDRAWS):
                again = [i for i, (source, _) in enumerate(examples) if source in known]
                if not again:
                    break
                for i, example in zip(again, self._strings(rng, parts[again]), strict=True):
                    examples[i] = example
        return examples

    def _train_inputs(self):
        return {source for source, _ in self.split("train")}

    def _strings(self, rng, parts):
        if not len(parts):
            return []
        if self.kind in SEPARATORS:
            numbers = [self._numbers(rng, parts[:, i], parts.max() + 1) for i in (0, 1)]
            inputs = self._spell(*self._joined(*numbers, parts))
            if self.kind == "addition":
                return list(zip(inputs, self._spell(*self._sums(*numbers)), strict=True))
            return [(text, self._product(*text.split(b"*"))) for text in inputs]
        lengths = parts[:, 0]
        symbols = rng.integers(0, self.base, (len(lengths), lengths.max()), dtype=np.int8)
        targets = reversed_rows(symbols, lengths) if self.kind == "reverse" else symbols
        return list(zip(self._spell(symbols, lengths), self._spell(targets, lengths), strict=True))

    def _joined(self, first, second, parts):
        """Returns the rows "first separator second" and their lengths."""
        places = np.arange(parts.sum(axis=1).max() + 1)
        shape = (len(parts), len(places))
        split = parts[:, :1]
        low = np.take_along_axis(first, np.broadcast_to(np.minimum(places, first.shape[1] - 1), shape), 1)
        high = np.take_along_axis(second, np.clip(places - split - 1, 0, second.shape[1] - 1), 1)
        inputs = np.where(places < split, low, np.where(places == split, self.base, high))
        return inputs, parts.sum(axis=1) + 1

    def _sums(self, first, second):
        """Returns the rows of the sums and their lengths."""
        totals, carry = first + second, 0
        for place in range(totals.shape[1]):
            column = totals[:, place] + carry
            totals[:, place], carry = column % self.base, column // self.base
        # Zero is written with one digit; no other number begins (ends, in this order) with a zero.
        digits = np.maximum(1, totals.shape[1] - np.argmax(totals[:, ::-1] != 0, axis=1))
        digits[~totals.any(axis=1)] = 1
        return totals, digits

    def _product(self, first, second):
        """Returns the digits of the product of two numbers, all of them as in b"12": Python's int has a limit."""
        columns = np.convolve(
            *(np.frombuffer(number, np.uint8).astype(np.int64) - ord("0") for number in (first, second))
        )
        digits, carry = [], 0
        for column in columns.tolist():
            carry, digit = divmod(column + carry, self.base)
            digits.append(digit)
        while carry:
            carry, digit = divmod(carry, self.base)
            digits.append(digit)
        while len(digits) > 1 and not digits[-1]:
            digits.pop()
        return "".join(map(str, digits)).encode()

    def _numbers(self, rng, lengths, width):
        """Returns [N, width] digits, least significant first, 0 from `lengths` on; no leading zero but in a lone 0."""
        digits = rng.integers(0, self.base, (len(lengths), width), dtype=np.int8)
        rows = np.arange(len(lengths))
        top = rng.integers(1, self.base, len(lengths), dtype=np.int8)
        digits[rows, lengths - 1] = np.where(lengths == 1, digits[rows, 0], top)
        digits[np.arange(width) >= lengths[:, None]] = 0
        return digits

    def _spell(self, symbols, lengths):
        letters = np.frombuffer(self.symbols.encode(), np.uint8)[symbols]
        return [bytes(row[:length]) for row, length in zip(letters, lengths, strict=True)]


def reversed_rows(symbols, lengths):
    """Returns the rows of `symbols` [N, P], of which `lengths` [N] count, turned round: [N, P]."""
    places = np.maximum(lengths[:, None] - 1 - np.arange(symbols.shape[1]), 0)
    return np.take_along_axis(symbols, places, axis=1)
