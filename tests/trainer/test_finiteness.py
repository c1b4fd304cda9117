"""A run does not go on from numbers that are not finite."""

import keras
import numpy as np
import pytest

from trainer.finiteness import ALL_SKIPPED, refuse_bad_steps, refuse_bad_weights
from trainer.interval import Interval
from ut_keras.errors import UserError


def interval(loss, norm, applied, before=None):
    """Returns the Interval of steps 11, 12, ..., behind another one."""
    count = len(loss)
    measured = {"loss": loss, "gradient_norm": norm, "applied": applied, "cross_entropy": np.ones(count)}
    measured |= {name: np.ones(count) for name in ("right", "tokens", "examples", "learning_rate")}
    result = Interval(before)
    result.add(11, measured)
    return result


def test_finite_steps_pass():
    refuse_bad_steps(interval([1.0, 2.0], [1.0, 1.0], [1, 1]), 12, skips=False)
    refuse_bad_steps(Interval(), 12, skips=False)


@pytest.mark.parametrize(
    ("loss", "norm", "name"), [([1, np.nan, 1], [1, 1, 1], "loss"), ([1] * 3, [1, np.inf, 1], "norm")]
)
def test_a_step_that_is_not_finite_is_named(loss, norm, name):
    with pytest.raises(UserError, match=f"{name} is (nan|inf) at step 12") as error:
        refuse_bad_steps(interval(loss, norm, [1, 1, 1]), 13, skips=False)
    assert "--on_nan=skip" in str(error.value)


def test_steps_that_were_left_out_are_no_fault_until_there_is_nothing_else():
    refuse_bad_steps(interval([1, np.nan], [1, np.nan], [1, 0]), 12, skips=True)
    lost = ([np.nan] * ALL_SKIPPED, [np.nan] * ALL_SKIPPED, [0] * ALL_SKIPPED)
    with pytest.raises(UserError, match=f"no update of the last {ALL_SKIPPED} had a finite gradient"):
        refuse_bad_steps(interval(*lost), 10 + ALL_SKIPPED, skips=True)
    refuse_bad_steps(interval(*[values[1:] for values in lost]), 9 + ALL_SKIPPED, skips=True)


def test_lines_do_not_divide_the_steps_that_were_left_out_in_a_row():
    lines = None
    for _ in range(ALL_SKIPPED // 10):
        refuse_bad_steps(lines or Interval(), 10, skips=True)
        lines = interval([np.nan] * 10, [np.nan] * 10, [0] * 10, lines)
    with pytest.raises(UserError, match=f"no update of the last {ALL_SKIPPED} "):
        refuse_bad_steps(lines, 10, skips=True)


def test_weights_that_no_step_has_measured_are_not_saved_where_they_are_not_finite():
    good, bad = keras.Variable([1.0, 2.0], name="good"), keras.Variable([1.0, np.nan], name="bad")
    refuse_bad_weights([good], 4)
    with pytest.raises(UserError, match="not finite after step 4 .*bad"):
        refuse_bad_weights([good, bad], 4)
