"""A process that trains, evaluates, decodes and exports again and again lets go of every graph."""

import pytest

from tests import traced_graphs
from tests.benchmarks import traced_memory


@pytest.mark.slow  # a training, a decoding and an export of each
@pytest.mark.parametrize(
    "changes, flags",
    [
        ("", []),
        (",recurrence_type=act,act_type=frozen,add_sru=True", ["--remat=true", "--steps_per_execution=2"]),
    ],
)
def test_nothing_that_was_traced_stays(tmp_path, changes, flags):
    with traced_graphs.gone():
        traced_memory.journey(tmp_path, changes, flags)
