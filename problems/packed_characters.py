"""Packing of many short strings of ASCII characters at once."""

import numpy as np

from problems.packed import Packed
from problems.vocabulary import EOS, NUM_RESERVED


def pack_characters(characters, strings):
    """Returns the `Packed` ids, end tokens included, of a list of bytes without line feeds.

    Args:
        characters: the vocabulary's entries, one ASCII character each; entry i has id i + 2.
        strings: list of bytes, of these characters alone.
    """
    table = np.zeros(256, np.uint8)
    table[np.frombuffer("".join(characters).encode("ascii"), np.uint8)] = np.arange(len(characters)) + NUM_RESERVED
    table[ord("\n")] = EOS
    text = b"".join(string + b"\n" for string in strings)
    return Packed.from_tokens(table[np.frombuffer(text, np.uint8)], [len(string) + 1 for string in strings])
