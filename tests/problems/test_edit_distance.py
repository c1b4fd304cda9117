"""Edit distance against the textbook's table."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from problems.edit_distance import edit_distance, edit_distance_rate

SEQUENCES = st.lists(st.integers(0, 3), max_size=9)


def table_distance(first, second):
    table = np.add.outer(np.arange(len(first) + 1), np.arange(len(second) + 1))
    for i, j in np.ndindex(len(first), len(second)):
        replaced = table[i, j] + (first[i] != second[j])
        table[i + 1, j + 1] = min(replaced, table[i, j + 1] + 1, table[i + 1, j] + 1)
    return table[-1, -1]


def test_insertions_deletions_and_substitutions_count():
    assert edit_distance("kitten", "sitting") == 3
    assert edit_distance("", "abc") == edit_distance("abc", "") == 3
    assert edit_distance("", "") == 0


@given(SEQUENCES, SEQUENCES)
@settings(max_examples=300, deadline=None)
def test_distance_is_that_of_the_table(first, second):
    assert edit_distance(first, second) == table_distance(first, second)


def test_distance_of_long_sequences(rng):
    first, second = (rng.integers(0, 20, size).tolist() for size in (150, 130))
    assert edit_distance(first, second) == table_distance(first, second)


def test_rate_is_of_all_words():
    assert edit_distance_rate(["1 2 3", ""], ["1 3 3 4", "5"]) == 3 / 5
    assert edit_distance_rate([], []) == 0
