"""Streams by the window: order, bounds, and what is left when a stream breaks."""

import itertools

import pytest

from problems.textio import Line
from trainer.windows import windows
from ut_keras.errors import UserError


def _lines(count, text=""):
    return (Line(text or str(number), "") for number in range(count))


def test_windows_double_up_to_the_bound_and_keep_the_order():
    found = list(windows(_lines(100), first=4, most=20))
    assert [len(window) for window in found] == [4, 8, 16, 20, 20, 20, 12]
    assert [line.text for window in found for line in window] == [str(number) for number in range(100)]


def test_characters_bound_a_window():
    assert [len(window) for window in windows(_lines(7, "abcde"), first=100, most=100, characters=14)] == [3, 3, 1]


def test_no_lines_no_windows():
    assert list(windows([])) == []


def test_a_window_comes_before_the_next_line_is_read():
    read = []

    def lines():
        for line in _lines(10):
            read.append(line.text)
            yield line

    stream = windows(lines(), first=2, most=4)
    assert len(next(stream)) == 2 and len(read) == 2
    assert len(next(stream)) == 4 and len(read) == 6


def test_what_came_before_a_break_is_not_lost():
    def broken():
        yield from _lines(3)
        raise UserError("broken gzip file")

    stream = windows(itertools.chain(broken()), first=2, most=2)
    assert [len(next(stream)), len(next(stream))] == [2, 1]
    with pytest.raises(UserError, match="broken gzip file"):
        next(stream)
