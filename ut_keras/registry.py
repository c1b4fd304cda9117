"""Names of models, hparams sets and problems. Standard library only.

A name stands for "module:attribute"; the module is imported when the name is looked up and not
before, so that listing names and refusing a wrong one never imports TensorFlow.
"""

import difflib
import functools
import importlib

from ut_keras.errors import UsageError


class Registry:
    """Maps names to things that are imported on demand.

    Args:
        kind: what is registered, for messages: "model".
        catalogue: module that registers our own names when it is imported; imported at the first
            look-up. None where the caller imports it.

    Example:

    >>> shapes = Registry("shape")
    >>> shapes.register("square", "fractions:Fraction", summary="four sides", numerator=4)
    >>> shapes.get("square")()
    Fraction(4, 1)
    >>> shapes.get("sqare")
    Traceback (most recent call last):
    ...
    ut_keras.errors.UsageError: no shape is called 'sqare'; near names: square
    """

    def __init__(self, kind, catalogue=None):
        self.kind = kind
        self._catalogue = catalogue
        self._entries = {}
        self._summaries = {}

    def register(self, name, target=None, summary="", **arguments):
        """Registers `target`, an object or "module:attribute", under `name`.

        `arguments` are bound to it by keyword. Without a target it is a decorator:
        `@problems.register("my_problem")`. A name that is taken is a UsageError.
        """
        if target is None:

            def decorate(value):
                lines = (value.__doc__ or "").strip().splitlines()
                self.register(name, value, summary=summary or (lines[0] if lines else ""), **arguments)
                return value

            return decorate
        if name in self._entries:
            raise UsageError(f"{self.kind} {name!r} is registered twice")
        self._entries[name] = (target, arguments)
        self._summaries[name] = summary
        return None

    def get(self, name):
        """Returns what is registered under `name`; UsageError with the nearest names if nothing is."""
        if name not in self:
            raise UsageError(f"no {self.kind} is called {name!r}{near_names(name, self.names())}")
        target, arguments = self._entries[name]
        if isinstance(target, str):
            module, attribute = target.split(":")
            target = getattr(importlib.import_module(module), attribute)
        return functools.partial(target, **arguments) if arguments else target

    def names(self):
        """Returns all names, sorted so that task2 stands before task10."""
        self._load()
        return sorted(self._entries, key=_natural)

    def summary(self, name):
        """Returns the one line that `ls` shows beside the name."""
        self._load()
        return self._summaries[name]

    def __contains__(self, name):
        self._load()
        return name in self._entries

    def _load(self):
        if self._catalogue:
            catalogue, self._catalogue = self._catalogue, None
            importlib.import_module(catalogue)


def near_names(name, names, count=3):
    """Returns "; near names: a, b" for the names most like `name`, or "" if none is like it."""
    names, name = list(names), str(name).lower()
    begun = [other for other in names if name and other.startswith(name)]
    near = [*begun, *difflib.get_close_matches(name, [n for n in names if n not in begun], n=count, cutoff=0.5)][:count]
    return f"; near names: {', '.join(near)}" if near else ""


def _natural(name):
    parts, digits = [], ""
    for character in name + "\0":
        if character.isdigit():
            digits += character
            continue
        if digits:
            parts.append((1, int(digits), ""))
            digits = ""
        parts.append((0, 0, character))
    return parts


models = Registry("model", catalogue="ut_keras.models")
hparams_sets = Registry("hparams set", catalogue="ut_keras.models.hparams_catalogue")
problems = Registry("problem")
