"""The language of the programs of learning to execute: a subset of Python, parsed and run here without Python's eval.

    program    = {line break} "print(" compound ")"
    line       = NAME "=" compound [";"]
               | "for x in range(" NUMBER "):" NAME ("+=" | "-=") compound
    compound   = operand
               | operand ("+" | "-" | "*") operand
               | operand " if " operand ("<" | ">") operand " else " operand
    operand    = NUMBER | NAME | "(" compound ")"

NAME is a letter a to j, NUMBER has no leading zero, `line break` is LINE_BREAK and stands behind each line.
Nothing else is accepted: no other blank, no other name, no literal that Python reads in another way.
"""

import operator
import re

from ut_keras.errors import UserError

# A line of text cannot hold a line feed; the authors write a line break in the same way.
LINE_BREAK = "#"
VARIABLES = "abcdefghij"
CHARACTERS = " #()*+-0123456789:;<=>abcdefghijlnoprstx"

_NAMES = frozenset(VARIABLES)
_TOKEN = re.compile(r"print\(|for x in range\(| if | else |\):|\+=|-=|[()+\-*<>=;#]|[a-j]|0|[1-9][0-9]*|.", re.DOTALL)
_OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_COMPARISONS = {"<": operator.lt, ">": operator.gt}
_MOST_ROUNDS = 10_000
_MOST_NESTED = 50
_MOST_DIGITS = 100


def run(program):
    """Returns the integer that `program` prints.

    Raises:
        UserError: the text is not a program of the language, or a variable has no value yet.

    >>> run("j=8584#for x in range(8):j+=920#b=(1500+j)#print((b+7567))")
    25011
    """
    return _Interpreter(program).run()


class _Interpreter:
    """Reads the tokens once, from left to right; an expression becomes a function, for loops to call."""

    def __init__(self, program):
        self._program = program
        self._tokens = _TOKEN.findall(program)
        self._place = 0
        self._values = {}

    def run(self):
        while self._next() != "print(":
            self._line()
        self._place += 1
        result = self._compound(0)
        self._take(")")
        if self._place != len(self._tokens):
            raise self._error()
        return self._small(result())

    def _line(self):
        if self._accept("for x in range("):
            rounds = self._rounds()
            self._take("):")
            name = self._name()
            operation, change = _OPERATIONS[self._take("+=", "-=")[0]], self._compound(0)
            self._take(LINE_BREAK)
            for _ in range(rounds):
                self._assign(name, operation(self._value(name), change()))
        else:
            name = self._name()
            self._take("=")
            value = self._compound(0)
            self._accept(";")
            self._take(LINE_BREAK)
            self._assign(name, value())

    def _assign(self, name, value):
        self._values[name] = self._small(value)

    def _small(self, value):
        if abs(value) >= 10**_MOST_DIGITS:
            raise UserError(f"the program reaches numbers of more than {_MOST_DIGITS} digits: {self._program[:80]!r}")
        return value

    def _compound(self, depth):
        first = self._operand(depth)
        if self._next() in _OPERATIONS:
            operation, second = _OPERATIONS[self._take(*_OPERATIONS)], self._operand(depth)
            return lambda: operation(first(), second())
        if self._accept(" if "):
            left = self._operand(depth)
            comparison, right = _COMPARISONS[self._take(*_COMPARISONS)], self._operand(depth)
            self._take(" else ")
            otherwise = self._operand(depth)
            return lambda: first() if comparison(left(), right()) else otherwise()
        return first

    def _operand(self, depth):
        if self._accept("("):
            if depth == _MOST_NESTED:
                raise UserError(f"the program nests more than {_MOST_NESTED} parentheses")
            inner = self._compound(depth + 1)
            self._take(")")
            return inner
        if self._next() in _NAMES:
            name = self._name()
            return lambda: self._value(name)
        number = self._number()
        return lambda: number

    def _value(self, name):
        if name not in self._values:
            raise UserError(f"the program uses {name} before it has a value: {self._program!r}")
        return self._values[name]

    def _name(self):
        return self._take(*VARIABLES)

    def _rounds(self):
        number = self._number()
        if not 1 <= number <= _MOST_ROUNDS:
            raise UserError(f"the program has a loop of {number} rounds; 1 to {_MOST_ROUNDS} can be run")
        return number

    def _number(self):
        text = self._next()
        if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
            raise self._error()
        self._place += 1
        return int(text)

    def _next(self):
        return self._tokens[self._place] if self._place < len(self._tokens) else ""

    def _accept(self, token):
        found = self._next() == token
        self._place += found
        return found

    def _take(self, *allowed):
        token = self._next()
        if token not in allowed:
            raise self._error()
        self._place += 1
        return token

    def _error(self):
        column = sum(map(len, self._tokens[: self._place])) + 1
        found = repr(self._next()) if self._next() else "its end"
        return UserError(f"not a program of the language, at character {column} ({found}): {self._program[:80]!r}")
