"""How fast a run goes: when a line is due, and how long what is left will take."""

import time

LOG_SECONDS = 60.0  # a progress line at least this often


class Pace:
    """Watches the steps of one process.

    The first call of the training function compiles it, which says nothing of the rest.

    Args:
        step: updates made before.
        total: updates in all.
        now: function that returns seconds, for tests.
    """

    def __init__(self, step, total, now=time.monotonic):
        self._total, self._now = total, now
        self._first = None  # (seconds, step) when the first call had ended
        self._said = now()

    def reached(self, step):
        """Is told of each call's last step. Returns whether it was the first call of the process."""
        if self._first is None:
            self._first = (self._now(), step)
            return True
        return False

    @property
    def line_is_due(self):
        """Whether nothing was said for long."""
        return self._now() - self._said > LOG_SECONDS

    def said(self):
        """Is told that a line was written."""
        self._said = self._now()

    def seconds_left(self, step):
        """Returns the seconds that the steps after `step` will take; None where no step was timed."""
        seconds, first = self._first
        if step <= first:
            return None
        return (self._now() - seconds) / (step - first) * (self._total - step)
