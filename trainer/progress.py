"""What a training run says on standard error: lines, a bar on a terminal, a sign of life every half minute."""

import sys
import threading
import time

import numpy as np

HEARTBEAT = 25.0  # seconds


class Progress:
    """Writes lines to standard error; a context manager.

    Args:
        file: where to; None is standard error.
        heartbeat: seconds without a line after which one is written that says what goes on.
    """

    def __init__(self, file=None, heartbeat=HEARTBEAT):
        self._file = file or sys.stderr
        self._terminal = self._file.isatty()
        self._lock = threading.Lock()
        self._bar = ""
        self._doing = "starting"
        self._said = time.monotonic()
        self._heartbeat = heartbeat
        self._ended = threading.Event()

    def __enter__(self):
        threading.Thread(target=self._beat, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        with self._lock:
            self._draw("")

    def say(self, line):
        """Writes one line."""
        with self._lock:
            bar = self._bar
            self._draw("")
            print(line, file=self._file, flush=True)
            self._said = time.monotonic()
            self._draw(bar)

    def doing(self, what):
        """Sets what the sign of life says: "evaluating"."""
        self._doing = what

    def bar(self, done, total):
        """Draws how far the run is, on a terminal only."""
        self._doing = f"training, step {done} of {total}"
        if self._terminal:
            filled = int(40 * done / total)
            with self._lock:
                self._draw(f"[{'#' * filled}{'.' * (40 - filled)}] {done}/{total}")

    def _draw(self, bar):
        if self._terminal and bar != self._bar:
            print(f"\r{bar}{' ' * (len(self._bar) - len(bar))}\r", end="", file=self._file, flush=True)
            self._bar = bar

    def _beat(self):
        while not self._ended.wait(min(1.0, self._heartbeat)):
            silent = time.monotonic() - self._said
            if silent >= self._heartbeat:
                self.say(f"... {self._doing} ({silent:.0f} s since the last line)")


class Interval:
    """Collects what training steps returned and makes one dict of metrics of it."""

    def __init__(self):
        self._steps = []
        self._start = time.monotonic()

    def add(self, step, measured):
        """Adds the result of one step: a dict of scalar tensors, which are not waited for here."""
        self._steps.append((step, measured))

    def __len__(self):
        return len(self._steps)

    @property
    def seconds(self):
        """Seconds since the interval began."""
        return time.monotonic() - self._start

    def first_bad_step(self):
        """Returns (step, loss) of the first step with a loss that is not finite, or None."""
        for step, measured in self._steps:
            loss = float(measured["loss"])
            if not np.isfinite(loss):
                return step, loss
        return None

    def metrics(self):
        """Returns {"train/<metric>": number}; means are over tokens and positions, of loss and norm over steps."""
        table = {name: np.asarray([float(measured[name]) for _, measured in self._steps]) for name in self._steps[0][1]}
        total = {name: float(values.sum()) for name, values in table.items()}
        tokens = max(total["tokens"], 1.0)
        result = {
            "train/loss": float(table["loss"].mean()),
            "train/cross_entropy": total["cross_entropy"] / tokens,
            "train/accuracy": total["right"] / tokens,
        }
        for name in table:
            if name.startswith("ponder_time/"):
                side = name.split("/")[1]
                result[f"train/{name}/mean"] = total[name] / max(total[f"positions/{side}"], 1.0)
                result[f"train/{name}/max"] = float(table[f"ponder_max/{side}"].max())
        result["train/gradient_norm"] = float(table["gradient_norm"].mean())
        result["train/examples_per_second"] = total["examples"] / self.seconds
        result["train/tokens_per_second"] = total["tokens"] / self.seconds
        return result


def line(step, total, metrics, seconds_left=None):
    """Returns the progress line of `Interval.metrics`."""
    parts = [
        f"step {step}/{total}",
        f"loss {metrics['train/loss']:.4f}",
        f"accuracy {metrics['train/accuracy']:.4f}",
    ]
    for name, value in metrics.items():
        if name.startswith("train/ponder_time/") and name.endswith("/mean"):
            side = name.split("/")[2]
            parts.append(f"ponder {side} {value:.2f} (max {metrics[f'train/ponder_time/{side}/max']:.0f})")
    if seconds_left is not None:  # unknown at the first step, most of which is compiling
        parts.append(f"{metrics['train/examples_per_second']:.0f} examples/s")
        parts.append(f"{duration(seconds_left)} left")
    return "  ".join(parts)


def duration(seconds):
    """Returns seconds as "1:05" or "2:01:05"."""
    minutes, seconds = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
