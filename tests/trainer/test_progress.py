"""What a run says while it trains."""

import io
import re
import time

import pytest

from trainer import progress

METRICS = {"train/loss": 1.0, "train/accuracy": 0.5, "train/gradient_norm": 3.0, "train/examples_per_second": 123.4}
PONDER = {"train/ponder_time/encoder/mean": 1.5, "train/ponder_time/encoder/max": 2.0}


def test_the_line_of_a_step():
    text = progress.line(5, 20, {**METRICS, **PONDER}, 75)
    assert text == "step 5/20  loss 1.0000  accuracy 0.5000  ponder encoder 1.50 (max 2)  123 examples/s  1:15 left"


def test_the_line_of_a_model_that_does_not_halt_says_nothing_of_pondering():
    assert progress.line(5, 20, METRICS, 75) == "step 5/20  loss 1.0000  accuracy 0.5000  123 examples/s  1:15 left"


def test_the_line_says_how_many_updates_were_skipped():
    assert progress.line(5, 20, {**METRICS, "train/skipped": 2}) == "step 5/20  loss 1.0000  accuracy 0.5000  2 skipped"


def test_steps_that_were_all_skipped_have_no_loss():
    assert progress.line(5, 20, {"train/skipped": 2, "train/learning_rate": 1.0}) == "step 5/20  2 skipped"


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


def test_where_it_is_quiet_there_are_warnings_only():
    file = Terminal()
    with progress.Progress(file, heartbeat=0.05) as log:
        log.quiet = True
        log.say("a line")
        log.bar(1, 2)
        log.warn("a disk is nearly full")
        time.sleep(0.2)
    assert file.getvalue() == "warning: a disk is nearly full\n"
