"""When a line is due, and how long the rest will take."""

import pytest

from trainer.pace import LOG_SECONDS, Pace


@pytest.fixture
def clock():
    class Clock:
        now = 1000.0

        def __call__(self):
            return self.now

    return Clock()


def test_what_is_left_is_told_by_the_steps_after_the_first_call(clock):
    pace = Pace(10, 110, clock)
    clock.now += 77  # compiling
    assert pace.reached(15)
    assert pace.seconds_left(15) is None
    clock.now += 4
    assert not pace.reached(35)
    assert pace.seconds_left(35) == pytest.approx(75 * 4 / 20)
    assert pace.seconds_left(110) == 0.0


def test_a_line_is_due_when_nothing_was_said_for_long(clock):
    pace = Pace(0, 10, clock)
    clock.now += LOG_SECONDS
    assert not pace.line_is_due
    clock.now += 1
    assert pace.line_is_due
    pace.said()
    assert not pace.line_is_due
