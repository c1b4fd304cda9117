"""What a person sees of a token: blanks and bytes made visible, reserved ids by name. Standard library only.

Shapes: L positions, S sentences of W words.
"""

import re
import typing
import unicodedata

from problems.vocabulary import EOS, NUM_RESERVED, PAD, UNKNOWN

BLANK = "\u2423"  # an open box
_SUBWORD_BLANK = "\u2581"
_BYTE_PIECE = re.compile("<0x([0-9A-F]{2})>")
_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
_JOINERS = "\u200c\u200d"  # between letters they shape a word or a picture, and are seen by that
_DOTTED_CIRCLE = "\u25cc"  # carries a mark that has no letter of its own


class Token(typing.NamedTuple):
    """One position.

    Attributes:
        text: what is shown.
        special: whether this is no text but a name (the end token, an unknown word).
    """

    text: str
    special: bool = False


START = Token("<start>", True)
END = Token("<end>", True)


def token_names(vocabulary, ids):
    """Returns the `Token` of each of the ids [L] that is not padding.

    Pieces of words keep their blanks, as open boxes; a byte that is no printable ASCII is shown as its number.
    """
    return [_token(vocabulary, int(number)) for number in ids if number != PAD]


def sentence_names(vocabulary, rows):
    """Returns a `Token` for each of the sentences [S, W] that is not padding; the last is the question."""
    texts = [visible(vocabulary.decode(row), blank=" ") for row in rows if any(row)]
    return [Token(text) for text in texts[:-1]] + [Token(f"{text}?") for text in texts[-1:]]


def visible(text, blank=BLANK):
    """Returns `text` with a sign in place of each character that shows nothing (or turns the direction of others).

    Args:
        text: a token, or with `blank` " " a running text, where every kind of blank may stay.
        blank: sign of a blank.

    >>> visible("a\\u2028b")
    'aU+2028b'
    """
    if text and unicodedata.category(text[0]).startswith("M"):
        text = _DOTTED_CIRCLE + text
    return "".join(_sign(character, blank, alone=len(text) == 1) for character in text)


def direction(text):
    """Returns "rtl" where the first letter of `text` is of a script that is written from right to left, else "ltr"."""
    found = (unicodedata.bidirectional(character) for character in text)
    first = next((kind for kind in found if kind in ("L", "R", "AL")), "L")
    return "ltr" if first == "L" else "rtl"


def _token(vocabulary, number):
    if number == EOS:
        return END
    if vocabulary.kind == "bytes":
        value = number - NUM_RESERVED
        return Token(_byte(value)) if value < 256 else Token(f"<id {number}>", True)
    spelled = "".join(vocabulary.decode_tokens([number]))
    if not spelled:
        return Token(f"<id {number}>", True)
    if vocabulary.kind == "subwords":
        byte = _BYTE_PIECE.fullmatch(spelled)
        return Token(_byte(int(byte[1], 16)) if byte else visible(spelled.replace(_SUBWORD_BLANK, " ")))
    return Token(visible(spelled), special=number == vocabulary.unknown and spelled == UNKNOWN)


def _byte(value):
    character = chr(value)
    return visible(character) if value < 0x7F and (value >= 0x20 or character in _ESCAPES) else f"0x{value:02X}"


def _sign(character, blank, alone):
    if character == " ":
        return blank
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character in _JOINERS and not alone:
        return character
    category = unicodedata.category(character)
    hidden = category[0] == "C" or category in ("Zl", "Zp") or category == "Zs" and blank != " "
    return f"U+{ord(character):04X}" if hidden else character
