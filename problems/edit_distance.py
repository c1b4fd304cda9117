"""Edit distance of token sequences. Standard library only."""

import collections


def edit_distance(first, second):
    """Returns how many insertions, deletions and substitutions turn one list into the other.

    A column of the usual table is two integers, whose bit i says whether it rises or falls from row i to i + 1.

    Source: Hyyro 2003, A bit-vector algorithm for computing Levenshtein and Damerau edit distances.
    """
    if not first:
        return len(second)
    places = collections.defaultdict(int)
    for place, token in enumerate(first):
        places[token] |= 1 << place
    full = (1 << len(first)) - 1
    last = len(first) - 1
    rises, falls, distance = full, 0, len(first)
    for token in second:
        met = places.get(token, 0)
        level = (((met & rises) + rises) ^ rises) | met | falls  # no rise along the diagonal
        grows = falls | full & ~(level | rises)  # from the column before to this one, row by row
        shrinks = level & rises
        distance += (grows >> last & 1) - (shrinks >> last & 1)
        grows = grows << 1 | 1
        shrinks = shrinks << 1
        rises = (shrinks | ~(level | grows)) & full
        falls = grows & level & full
    return distance


def edit_distance_rate(outputs, references):
    """Returns the edit distance in words of a list of texts, divided by the words of the right ones."""
    pairs = [(output.split(), reference.split()) for output, reference in zip(outputs, references, strict=True)]
    words = sum(len(reference) for _, reference in pairs)
    return sum(edit_distance(*pair) for pair in pairs) / max(words, 1)
