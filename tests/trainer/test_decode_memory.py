"""Memory does not grow with the number of lines."""

import pytest

from tests.benchmarks import decode_memory


@pytest.mark.slow  # a process that decodes 20,000 lines
def test_memory_does_not_grow_with_the_lines(tmp_path):
    measured = decode_memory.measure(tmp_path, 20_000)
    assert measured["growth_mb"] < 50, measured
    assert measured["tokens_per_second"] > 0
