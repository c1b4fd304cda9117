"""One field of the hyperparameters: its type, choices and limits, and its value from text. Standard library only."""

import dataclasses
import math

from ut_keras.errors import UsageError

_FALSE = ("false", "f", "no", "n", "0")
_TRUE = ("true", "t", "yes", "y", "1")


def hparam(default, doc, models=None, choices=None, least=0, below=None):
    """Returns a dataclass field.

    Args:
        default: its default.
        doc: one line.
        models: names of the models that have it; None: all.
        choices: its possible values; None: all of its type.
        least, below: numbers are `least` or more and less than `below`, where these are not None.
    """
    limits = {"least": least, "below": below}
    return dataclasses.field(default=default, metadata={"doc": doc, "models": models, "choices": choices, **limits})


def _optional(field):
    return field.type not in (int, float, str, bool)


def type_name(field):
    """Returns "int", "float", "bool" or "str"; what may be None is a str."""
    return "str" if _optional(field) else field.type.__name__


def parse(field, text):
    """Returns the value that a text stands for; UsageError where it is not of the field's type."""
    kind = type_name(field)
    if _optional(field) and text.lower() in ("none", "null", ""):
        return None
    if kind == "bool":
        if text.lower() in _TRUE + _FALSE:
            return text.lower() in _TRUE
    elif kind == "str":
        return text
    else:
        try:
            number = float(text)
            if kind == "float":
                return number
            if number == int(number):
                return int(number)
        except (ValueError, OverflowError):
            pass
    raise UsageError(f"hparam {field.name}={text!r} is not {_article(kind)}")


def check(field, value):
    """Returns the value, of the field's type; UsageError where it is not, or is outside of choices or limits."""
    kind = type_name(field)
    if kind == "float" and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    fits = type(value).__name__ == kind or (value is None and _optional(field))
    if not fits or (kind == "float" and not math.isfinite(value)):
        raise UsageError(f"hparam {field.name}={value!r} is not {_article(kind)}")
    choices = field.metadata["choices"]
    if choices and value not in choices:
        raise UsageError(f"hparam {field.name}={value!r} is not one of {', '.join(str(c) for c in choices)}")
    least, below = field.metadata["least"], field.metadata["below"]
    if kind in ("int", "float") and least is not None and value < least:
        raise UsageError(f"hparam {field.name}={value!r} is less than {least}")
    if kind in ("int", "float") and below is not None and value >= below:
        raise UsageError(f"hparam {field.name}={value!r} is not below {below}")
    return value


def _article(kind):
    return {"int": "an integer", "float": "a number", "bool": "true or false", "str": "a string"}[kind]
