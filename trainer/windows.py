"""Lines by the window: a stream of any length in memory that does not grow. Standard library only.

A window is as much as is sorted, answered and written at a time. The first one is small, so that the first answers
of a long stream come early; each is twice as long as the one before, up to a bound in lines and in characters.
"""

from ut_keras.errors import UserError

FIRST = 256  # lines
MOST = 4096  # lines
CHARACTERS = 4_000_000
MOST_INPUT = 4096  # positions of a line: the attention of one takes H x L x L numbers


def windows(lines, first=FIRST, most=MOST, characters=CHARACTERS):
    """Yields the windows of a stream: lists of its items, in order, none of them empty.

    Where the stream breaks, what was read before is yielded first.

    Args:
        lines: iterable of items with an attribute `text`.
        first: items of the first window.
        most: items of a window at most.
        characters: a window that holds this many characters is full.
    """
    window, size, bound = [], 0, first
    try:
        for line in lines:
            window.append(line)
            size += len(line.text)
            if len(window) >= bound or size >= characters:
                yield window
                window, size, bound = [], 0, min(2 * bound, most)
    except UserError:
        if window:
            yield window
        raise
    if window:
        yield window
