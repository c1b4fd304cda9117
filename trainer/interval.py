"""What the training steps between two log lines measured, as one dict of metrics.

Shapes: n steps in one call of the training function, T steps of the recurrence.
"""

import time
from typing import NamedTuple

import numpy as np

from trainer.reduction import perplexity

_MAXIMUM = ("ponder_max/",)
_LAST = ("learning_rate",)


class BadStep(NamedTuple):
    """A step that measured what is not finite: the step, the value, and whose value it is ("loss", "gradient norm")."""

    step: int
    value: float
    name: str


class Interval:
    """Adds up what training steps measured.

    Sums are float64 and taken step by step in the order of the steps: they are the same however many steps one call
    makes, and whether or not the interval was cut by a restart (`state`, `from_state`). A step that was skipped
    counts in no mean of gradient norms, and in no mean at all where its loss is not finite.

    Args:
        before: the `Interval` before this one, where there is one: what its last steps skipped counts in `in_a_row`.

    Example:

    >>> interval = Interval()
    >>> interval.add(1, {"loss": [3.0, 1.0], "gradient_norm": [1.0, 1.0], "applied": [1, 1], "tokens": [2.0, 6.0],
    ...     "cross_entropy": [6.0, 6.0], "right": [0.0, 4.0], "examples": [1.0, 1.0]})
    >>> interval.metrics()["train/accuracy"]
    0.5
    """

    def __init__(self, before=None):
        self._waiting = []
        self._steps = 0
        self._skipped = 0
        self._in_a_row = before.in_a_row if before else 0
        self._sums = {}
        self._largest = {}
        self._last = {}
        self._bad = {False: None, True: None}
        self._start = time.monotonic()
        self._done = {"examples": 0.0, "tokens": 0.0}

    @classmethod
    def from_state(cls, state):
        """Returns the interval that goes on from `state()`; {} begins a new one."""
        interval = cls()
        if state:
            interval._steps, interval._skipped = state["steps"], state["skipped"]
            interval._in_a_row = state.get("in_a_row", 0)
            interval._sums = {name: np.asarray(value, np.float64) for name, value in state["sums"].items()}
            interval._largest, interval._last = dict(state["largest"]), dict(state["last"])
        return interval

    def state(self):
        """Returns the sums so far as a dict for JSON; waits for the steps."""
        self._fold()
        return {
            "steps": self._steps,
            "skipped": self._skipped,
            "in_a_row": self._in_a_row,
            "sums": {name: value.tolist() for name, value in self._sums.items()},
            "largest": dict(self._largest),
            "last": dict(self._last),
        }

    def add(self, first_step, measured):
        """Adds the steps of one call of the training function; does not wait for their values.

        Args:
            first_step: the first of the steps, counted from 1.
            measured: what `TrainStep.run` returns, {name: [n] or [n, ...]}.
        """
        self._waiting.append((first_step, measured))

    def __len__(self):
        """Returns the number of steps; waits for them."""
        self._fold()
        return self._steps

    @property
    def skipped(self):
        """The number of updates that were not applied; waits for the steps."""
        self._fold()
        return self._skipped

    @property
    def in_a_row(self):
        """How many updates were not applied since the last one that was, also of intervals before."""
        self._fold()
        return self._in_a_row

    def restart_clock(self):
        """Leaves the steps so far out of the rates."""
        self._fold()
        self._start = time.monotonic()
        self._done = dict.fromkeys(self._done, 0.0)

    @property
    def seconds(self):
        """Seconds since the interval began, in this process."""
        return time.monotonic() - self._start

    def first_bad_step(self, skipping=False):
        """Returns the `BadStep` that is the first in this process, or None.

        A step is bad where its loss is not finite, or where its update was applied although the norm of its gradient
        is not finite. `skipping`: steps that were not applied are never bad.
        """
        self._fold()
        return self._bad[skipping]

    def metrics(self):
        """Returns {"train/<metric>": number}, in the order in which they read well.

        Means are over tokens, sequences and positions, of loss and gradient norm over steps. Perplexity is e to the
        cross-entropy, which is smoothed where `label_smoothing` is. All but the two rates, which are those of this
        process, is a function of the steps alone. What no step counts in is left out: there is no mean of nothing.
        """
        self._fold()
        total = {name: float(value) for name, value in self._sums.items() if value.ndim == 0}
        result = self._means(total) if total["counted"] else {}
        if total["applied"]:
            result["train/gradient_norm"] = _mean(total, "gradient_norm", "applied")
        result.update({f"train/{name}": value for name, value in self._last.items()})
        if self._skipped:
            result["train/skipped"] = self._skipped
        result["train/examples_per_second"] = self._done["examples"] / self.seconds
        result["train/tokens_per_second"] = self._done["tokens"] / self.seconds
        return result

    def _means(self, total):
        cross_entropy = total["cross_entropy"] / max(total["tokens"], 1.0)
        result = {
            "train/loss": _mean(total, "loss", "counted"),
            "train/cross_entropy": cross_entropy,
            "train/perplexity": perplexity(cross_entropy),
            "train/accuracy": _mean(total, "right", "tokens"),
        }
        if "sequences" in total:
            result["train/sequence_accuracy"] = _mean(total, "sequence_right", "sequences")
        for side in self._sides():
            result[f"train/ponder_time/{side}/mean"] = _mean(total, f"ponder_time/{side}", f"positions/{side}")
            result[f"train/ponder_time/{side}/max"] = self._largest.get(f"ponder_max/{side}", 0.0)
        return result

    def vectors(self):
        """Returns numpy arrays by side, {} where nothing halts by itself.

        "ponder_time/<side>" [T + 1]: counts of positions by the number of steps they took, from 0.
        "halting_probability/<side>" [T]: mean over positions of the accumulated halting probability after each step.
        """
        self._fold()
        result = {}
        for side in self._sides() if self._sums["counted"] else ():
            positions = max(float(self._sums[f"positions/{side}"]), 1.0)
            result[f"ponder_time/{side}"] = self._sums[f"ponder_histogram/{side}"].copy()
            result[f"halting_probability/{side}"] = self._sums[f"halting_probability/{side}"] / positions
        return result

    def _sides(self):
        """Returns the sides that halt by themselves: of the others a ponder time says nothing."""
        prefix = "ponder_histogram/"
        return [name.removeprefix(prefix) for name in self._sums if name.startswith(prefix)]

    def _fold(self):
        """Adds the waiting steps to the sums."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        names = waiting[0][1].keys()
        table = {name: np.concatenate([_rows(measured[name]) for _, measured in waiting]) for name in names}
        loss, norm = table["loss"], table["gradient_norm"]
        applied = table.pop("applied", np.ones_like(loss)) > 0
        steps = np.concatenate([first + np.arange(len(_rows(measured["loss"]))) for first, measured in waiting])
        self._look(steps, loss, norm, applied)
        counted = applied | np.isfinite(loss)
        self._steps += len(loss)
        self._skipped += int(np.sum(~applied))
        self._in_a_row = int(np.argmax(applied[::-1])) if applied.any() else self._in_a_row + len(applied)
        for name in self._done:
            self._done[name] += float(table[name].sum())
        table |= {"counted": np.ones_like(loss), "applied": np.ones_like(loss)}
        for name, rows in table.items():
            if name.startswith(_LAST):
                self._last[name] = float(rows[-1])
            elif name.startswith(_MAXIMUM):
                self._largest[name] = float(np.max(rows[counted], initial=self._largest.get(name, 0.0)))
            else:
                members = applied if name in ("gradient_norm", "applied") else counted
                before = self._sums.get(name, np.zeros(rows.shape[1:]))
                # From left to right, as `cumsum` adds and `sum` does not.
                self._sums[name] = np.cumsum(np.concatenate([before[None], rows[members]]), axis=0)[-1]

    def _look(self, steps, loss, norm, applied):
        """Remembers the first bad step of those given, where none was found before."""
        broken_loss, broken_norm = ~np.isfinite(loss), ~np.isfinite(norm) & applied
        for skipping in self._bad:
            lost = broken_loss & applied if skipping else broken_loss
            bad = np.flatnonzero(lost | broken_norm)
            if len(bad) and self._bad[skipping] is None:
                index = bad[0]
                value, name = (loss, "loss") if lost[index] else (norm, "gradient norm")
                self._bad[skipping] = BadStep(int(steps[index]), float(value[index]), name)


def _rows(values):
    """Returns the values as a float64 array whose leading dimension is the steps of a call."""
    return np.atleast_1d(np.asarray(values, np.float64))


def _mean(total, name, count):
    return total[name] / max(total[count], 1.0)
