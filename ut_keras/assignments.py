"""Assignments as the command line has them: "name=value,name=value". Standard library only."""

from ut_keras.errors import UsageError


def parse_assignments(text, source):
    """Returns {name: text} from "name=value,name=value"; spaces around names and values are dropped.

    A value may be quoted, and a list in brackets keeps its commas. A later name wins over an earlier one.

    Args:
        text: what the flag says.
        source: the flag, for messages.

    Raises:
        UsageError: a part that is no assignment.

    Example:

    >>> parse_assignments("a=1, b='2,3'", "--hparams")
    {'a': '1', 'b': '2,3'}
    """
    result, before = {}, ""
    for part in _split_commas(text):
        name, equals, value = part.partition("=")
        if not equals or not name.strip():
            hint = f"; a value with a comma is quoted: {before}='...,{part.strip()}'" if before and not equals else ""
            raise UsageError(f"{source}: {part.strip()!r} is not name=value{hint}")
        before = name.strip()
        value = value.strip()
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        result[name.strip()] = value
    return result


def as_value(text):
    """Returns a value as `parse_assignments` reads it back, in quotes where it has commas, quotes or brackets.

    >>> as_value("en,de"), as_value("en")
    ('"en,de"', 'en')
    """
    if not set(text) & set(",'\"[]()"):
        return text
    quote = "'" if '"' in text else '"'
    return f"{quote}{text}{quote}"


def _split_commas(text):
    parts, depth, quote, current = [], 0, "", ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in "[(":
            depth += 1
        elif character in ")]":
            depth -= 1
        if character == "," and not depth and not quote:
            parts.append(current)
            current = ""
        else:
            current += character
    parts.append(current)
    return [part for part in parts if part.strip()]
