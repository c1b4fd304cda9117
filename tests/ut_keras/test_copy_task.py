"""Every recurrence type and every halting form learns to copy; tests/benchmarks/copy_task.py prints the table."""

import pytest

from tests.benchmarks import copy_task


@pytest.mark.slow  # trains a model
@pytest.mark.parametrize("name", copy_task.configurations())
def test_copying_is_learnt_to_the_last_string(name):
    """A gate that never opens, a state that is not carried or a memory that is not read shows here."""
    accuracy, steps, _ = copy_task.learn(name)
    assert accuracy >= copy_task.GOALS.get(name, 1.0), f"{accuracy} after {steps} steps"
