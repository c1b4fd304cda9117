"""What a run says while it trains."""

import io
import re
import time

import pytest

from trainer import progress


def measured(loss=1.0, tokens=10.0, right=5.0, ponder=6.0, most=2.0):
    return {
        "loss": loss,
        "cross_entropy": 2.0 * tokens,
        "right": right,
        "tokens": tokens,
        "examples": 4.0,
        "gradient_norm": 3.0,
        "ponder_time/encoder": ponder,
        "positions/encoder": 4.0,
        "ponder_max/encoder": most,
    }


def test_an_interval_adds_up_counts_before_it_divides():
    interval = progress.Interval()
    interval.add(1, measured(loss=1.0, tokens=10.0, right=5.0))
    interval.add(2, measured(loss=3.0, tokens=30.0, right=25.0, ponder=10.0, most=5.0))
    metrics = interval.metrics()
    assert metrics["train/loss"] == 2.0
    assert metrics["train/cross_entropy"] == 2.0
    assert metrics["train/accuracy"] == 0.75
    assert metrics["train/ponder_time/encoder/mean"] == 2.0
    assert metrics["train/ponder_time/encoder/max"] == 5.0
    assert len(interval) == 2


def test_an_interval_without_tokens_is_finite():
    interval = progress.Interval()
    interval.add(1, measured(tokens=0.0, right=0.0))
    assert interval.metrics()["train/accuracy"] == 0.0


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_the_first_loss_that_is_not_finite_is_found(bad):
    interval = progress.Interval()
    for step, loss in ((8, 1.0), (9, bad), (10, float("nan"))):
        interval.add(step, measured(loss=loss))
    assert interval.first_bad_step()[0] == 9


def test_the_line_of_a_step():
    interval = progress.Interval()
    interval.add(5, measured())
    text = progress.line(5, 20, {**interval.metrics(), "train/examples_per_second": 123.4}, 75)
    assert text == "step 5/20  loss 1.0000  accuracy 0.5000  ponder encoder 1.50 (max 2)  123 examples/s  1:15 left"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (59.6, "1:00"), (75, "1:15"), (3600, "1:00:00"), (90061, "25:01:01")]
)
def test_durations(seconds, text):
    assert progress.duration(seconds) == text


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_bar_is_drawn_on_a_terminal_only_and_lines_stay_whole():
    for file in (io.StringIO(), Terminal()):
        with progress.Progress(file) as log:
            log.bar(1, 2)
            log.say("a line")
            log.bar(2, 2)
        text = file.getvalue()
        assert ("[####" in text) == isinstance(file, Terminal)
        assert "a line\n" in text
        assert text.count("\n") == 1


def test_a_sign_of_life_comes_when_nothing_was_said():
    file = io.StringIO()
    with progress.Progress(file, heartbeat=0.05) as log:
        log.doing("evaluating")
        deadline = time.monotonic() + 60
        while not file.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
    assert re.match(r"\.\.\. evaluating \(\d+ s since the last line\)\n", file.getvalue())
