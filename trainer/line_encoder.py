"""Lines as ids, or with the reason why they cannot be: no line of a file ends the work on the others."""

import sys
import typing

import numpy as np

from trainer.answers import encode_line
from ut_keras.errors import UserError

WARNINGS = 1000  # that are shown; all are counted


class Entry(typing.NamedTuple):
    """A line that was read.

    Attributes:
        number: of the line, from 0.
        text: the line.
        inputs: its ids, [L] or [S, W]; None where it has a fault.
        fault: why it has no ids; "" where it has.
    """

    number: int
    text: str
    inputs: np.ndarray | None
    fault: str


class LineEncoder:
    """Makes an `Entry` of each `textio.Line`, and says on standard error what is wrong with it or left out of it.

    Args:
        problem: the `Problem`.
        source: how messages begin: "line" for "warning: line 3: ..." (counted from 1).
        most: as of `encode_line`.

    Attributes:
        faults: lines that cannot be answered, so far.
        cuts: lines of which something was left out, so far.
    """

    def __init__(self, problem, source="line", most=None):
        self._problem, self._source, self._most = problem, source, most
        self._number = 0
        self.faults = self.cuts = 0

    def __call__(self, line):
        number, fault, inputs = self._number, line.fault, None
        self._number += 1
        if not fault:
            try:
                inputs = encode_line(self._problem, line.text, self._most)
            except UserError as error:
                fault = str(error)
        if fault:
            self.refuse(number, fault)
        elif cut := self._problem.cut(line.text):
            self.cuts += 1
            self._warn(number, cut)
        return Entry(number, line.text, inputs, fault)

    def refuse(self, number, fault):
        """Counts a line that cannot be answered, and says why."""
        self.faults += 1
        self._warn(number, f"{fault}; answered with nothing")

    def _warn(self, number, what):
        warnings = self.faults + self.cuts
        if warnings <= WARNINGS:
            print(f"warning: {self._source} {number + 1}: {what}", file=sys.stderr)
        if warnings == WARNINGS:
            print("warning: further ones are counted and not shown", file=sys.stderr)


def encode_or_raise(problem, line, where, most=None):
    """Returns the ids of one line, and says what is left out of it.

    Args:
        problem, most: as of `LineEncoder`.
        line: a string.
        where: how messages begin: "line 3".

    Raises:
        UserError: the line cannot be encoded.
    """
    try:
        inputs = encode_line(problem, line, most)
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    warn_of_cut(problem, line, where)
    return inputs


def warn_of_cut(problem, line, where):
    """Says on standard error what `encode_input` leaves out of a line, where it leaves anything out."""
    cut = problem.cut(line)
    if cut:
        print(f"warning: {where}: {cut}", file=sys.stderr)
