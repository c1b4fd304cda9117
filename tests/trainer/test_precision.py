"""Mixed precision learns what float32 learns, and adaptive computation time is summed in float32 all the while."""

import pytest

from tests.benchmarks import precision


@pytest.mark.slow
def test_mixed_precision_learns_to_copy_as_float32_does(tmp_path):
    results = {result["policy"]: result for result in precision.compare(tmp_path, steps=300)}
    assert list(results) == ["float32", "mixed_bfloat16", "mixed_float16"]
    for policy, result in results.items():
        assert result["final_loss"] < 0.35 * result["first_loss"], policy
        assert abs(result["ratio"] - 1) < 0.05, policy
        assert result["finer"] > 0.2, f"{policy}: halting probabilities were rounded to bfloat16"
