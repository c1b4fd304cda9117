"""The examples of learning to execute: programs and what they print, and strings to remember.

After Zaremba and Sutskever, Learning to Execute (arXiv:1410.4615), and their published generator, whose form
of a program is kept to the character. Everything is a function of the settings of a `Task`.
"""

import dataclasses
import hashlib
import itertools
import random
import typing

from problems import learning_to_execute_language as language
from ut_keras.errors import UsageError

PROGRAM_KINDS = ("program", "control", "addition")
MEMORY_KINDS = ("copy", "double", "reverse")
_DIGITS = "0123456789"
_SHARES = 10  # of all inputs: one for test and hardest, one for dev, the others for train
_MOST_REJECTED = 10_000


class Example(typing.NamedTuple):
    """One example.

    Attributes:
        inputs: the program, or the digits to remember.
        targets: what the program prints, or the digits to say.
        length: digits of the program's numbers at most (addition: of both numbers); digits to remember.
        nesting: operations of the program; 1 for addition and memory.
    """

    inputs: str
    targets: str
    length: int
    nesting: int


@dataclasses.dataclass(frozen=True)
class Task:
    """A task and the sizes of its splits.

    "program" composes all of the authors' operations, "control" assignments, loops and if-expressions alone,
    "addition" adds two numbers of `length` digits; "copy", "double" and "reverse" are strings of digits. A
    split that is not "hardest" is mixed as the authors describe it: each example draws its own length
    from 1 to `length` and its own nesting from 1 to `nesting`.

    An input's digest decides which split it may stand in, so train, dev and test (with hardest) have no
    input in common, under any seed.

    Args:
        kind: one of PROGRAM_KINDS and MEMORY_KINDS.
        length: the greatest length.
        nesting: the greatest nesting.
        sizes: pairs (split, number of examples).
        seed: of all draws.
    """

    kind: str
    length: int
    nesting: int
    sizes: tuple
    seed: int

    def split(self, name):
        """Yields the examples of a split.

        Raises:
            UsageError: there are too few inputs for the split.
        """
        random_ = random.Random(f"{self.kind} {self.length} {self.nesting} {self.seed} {name}")
        return itertools.islice(self._examples(name, random_, name != "hardest"), dict(self.sizes)[name])

    def exact(self, length, count, seed):
        """Yields `count` examples of exactly `length` and the greatest nesting, none of which is in train or dev."""
        random_ = random.Random(f"{self.kind} {self.nesting} {self.seed} exact {length} {seed}")
        task = dataclasses.replace(self, length=length)
        return itertools.islice(task._examples("hardest", random_, False), count)

    def _examples(self, split, random_, mixed):
        rejected = 0
        while rejected < _MOST_REJECTED:
            length, nesting = self.length, self.nesting
            if mixed:
                length, nesting = _below(random_, length) + 1, _below(random_, nesting) + 1
            example = self._draw(random_, length, nesting)
            if _share(example.inputs) == split or _share(example.inputs) == "test" and split == "hardest":
                yield example
                rejected = 0
            else:
                rejected += 1
        raise UsageError(f"{self.kind} of length {self.length} has no inputs for the split {split!r}; raise length")

    def _draw(self, random_, length, nesting):
        if self.kind in MEMORY_KINDS:
            digits = "".join(_DIGITS[_below(random_, 10)] for _ in range(length))
            said = {"copy": digits, "double": digits * 2, "reverse": digits[::-1]}[self.kind]
            return Example(digits, said, length, 1)
        if self.kind == "addition":
            first, second = (10 ** (length - 1) + _below(random_, 9 * 10 ** (length - 1)) for _ in range(2))
            program, value, nesting = f"print({first}+{second})", first + second, 1
        else:
            program, value = _Composer(random_, length).compose(_OPERATIONS[self.kind], nesting)
        if language.run(program) != value:
            raise AssertionError(f"{program!r} does not print {value}")
        return Example(program, str(value), length, nesting)


def _share(inputs):
    number = int.from_bytes(hashlib.blake2b(inputs.encode(), digest_size=8).digest(), "big") % _SHARES
    return ("test", "dev")[number] if number < 2 else "train"


def _below(random_, limit):
    """Returns an integer from 0 to limit - 1. Only `random()` draws the same in every version of Python."""
    return int(random_.random() * limit)


class _Composer:
    """Composes one program: each operation uses the result of the one before it, and numbers beside it.

    Args:
        random_: random.Random.
        length: digits of a number at most.
    """

    def __init__(self, random_, length):
        self._random = random_
        self._length = length
        self._lines = []
        self._result = None
        self._names = sorted(language.VARIABLES, key=lambda _: random_.random())

    def compose(self, operations, nesting):
        """Returns (program, the value that it prints)."""
        for _ in range(nesting):
            self._result = operations[_below(self._random, len(operations))](self)
        expression, value = self._result
        return "".join(line + language.LINE_BREAK for line in self._lines) + f"print({expression})", value

    def add(self):
        (a, x), (b, y) = self._operands(2)
        sign, value = self._sum(x, y)
        return f"({a}{sign}{b})", value

    def multiply(self):
        ((a, x),) = self._operands(1)
        factor = self._small()
        return f"({a}*{factor})" if self._coin() else f"({factor}*{a})", x * factor

    def assign(self):
        (a, x), (b, y) = self._operands(2)
        name = self._names.pop()
        self._lines.append(f"{name}={a};")
        sign, value = self._sum(x, y)
        return f"({name}{sign}{b})", value

    def loop(self):
        (a, x), (b, y) = self._operands(2)
        name, rounds = self._names.pop(), self._small()
        sign, value = self._sum(x, rounds * y)
        self._lines += [f"{name}={a}", f"for x in range({rounds}):{name}{sign}={b}"]
        return name, value

    def choose(self):
        (a, x), (b, y), (c, then), (d, otherwise) = self._operands(4)
        if self._coin():
            return f"({c} if {a}>{b} else {d})", then if x > y else otherwise
        return f"({c} if {a}<{b} else {d})", then if x < y else otherwise

    def pass_on(self):
        return self._operands(1)[0]

    def _operands(self, count):
        """Returns `count` pairs (text, value) in random order: the last result, if there is one, and numbers."""
        numbers = (1 + _below(self._random, 10**self._length - 1) for _ in range(count))
        operands = [(str(number), number) for number in numbers]
        if self._result is not None:
            operands[_below(self._random, count)] = self._result
        return operands

    def _sum(self, x, y):
        return ("+", x + y) if self._coin() else ("-", x - y)

    def _small(self):
        return 1 + _below(self._random, 4 * self._length)

    def _coin(self):
        return self._random.random() < 0.5


_CONTROL = (_Composer.assign, _Composer.loop, _Composer.choose)
_OPERATIONS = {"program": (*_CONTROL, _Composer.add, _Composer.multiply, _Composer.pass_on), "control": _CONTROL}
