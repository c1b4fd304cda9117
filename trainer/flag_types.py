"""What the values of flags may be: functions from text to value, as argparse takes them. Standard library only."""

import argparse


def positive(text):
    """Parses an integer above 0."""
    return _at_least(1, text, "a positive integer")


def natural(text):
    """Parses an integer of 0 or more."""
    return _at_least(0, text, "an integer of 0 or more")


def number(text):
    """Parses a number; what it may be is checked where it is used."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def fraction(text):
    """Parses a number from 0 to below 1."""
    value = number(text)
    if not 0.0 <= value < 1.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not from 0 to below 1")
    return value


def seconds(text):
    """Parses a number of seconds above 0."""
    value = number(text)
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value


def interval(text):
    """Parses "START,COUNT" into two positive integers."""
    parts = text.split(",")
    if len(parts) != 2:
        raise argparse.ArgumentTypeError(f"{text!r} is not START,COUNT")
    return tuple(positive(part.strip()) for part in parts)


def paths(text):
    """Parses "PATH,PATH" into a list of str."""
    return [filled(part.strip()) for part in text.split(",")]


def seed(text):
    """Parses an integer that numpy, Keras and TensorFlow all take as a seed."""
    value = natural(text)
    if value >= 2**32:
        raise argparse.ArgumentTypeError(f"{text!r} is not below 2^32")
    return value


def filled(text):
    """Parses a name or a path: `--output_dir=$UNSET` is a mistake and not a wish for the default."""
    if not text.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not a name; leave the flag out for its default")
    return text


def switch(text):
    """Parses true or false."""
    if text.lower() in ("true", "t", "yes", "y", "1"):
        return True
    if text.lower() in ("false", "f", "no", "n", "0"):
        return False
    raise argparse.ArgumentTypeError(f"{text!r} is not true or false")


def lengths(text):
    """Parses "40,80,400" into a tuple of positive integers."""
    return tuple(positive(part.strip()) for part in text.split(","))


def add_switch(parser, flag, help_, default=False):
    """Adds a flag that stands alone or has a value, true or false."""
    parser.add_argument(flag, nargs="?", const=True, default=default, type=switch, metavar="BOOL", help=help_)


def _at_least(limit, text, kind):
    try:
        value = int(text)
    except ValueError:
        value = limit - 1
    if value < limit:
        raise argparse.ArgumentTypeError(f"{text!r} is not {kind}")
    return value
