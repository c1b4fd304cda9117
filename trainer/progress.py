"""What a training run says on standard error: lines, a bar on a terminal, a sign of life every half minute."""

import sys
import threading
import time

HEARTBEAT = 25.0  # seconds


class Progress:
    """Writes lines to standard error; a context manager.

    Args:
        file: where to; None is standard error.
        heartbeat: seconds without a line after which one is written that says what goes on.
        quiet: see below.

    Attributes:
        quiet: write warnings only, no lines, no bar, no sign of life: what a worker does that is not the chief.
    """

    def __init__(self, file=None, heartbeat=HEARTBEAT, quiet=False):
        self.quiet = quiet
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
        if not self.quiet:
            self._write(line)

    def warn(self, line):
        """Writes one line that begins with "warning: ", also where all else is quiet."""
        self._write(f"warning: {line}")

    def _write(self, line):
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
        if self._terminal and not self.quiet:
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


def line(step, total, metrics, seconds_left=None):
    """Returns the progress line of `Interval.metrics`."""
    parts = [f"step {step}/{total}"]
    for name in ("loss", "accuracy"):
        if f"train/{name}" in metrics:  # not where every step was skipped
            parts.append(f"{name} {metrics[f'train/{name}']:.4f}")
    for name, value in metrics.items():
        if name.startswith("train/ponder_time/") and name.endswith("/mean"):
            side = name.split("/")[2]
            parts.append(f"ponder {side} {value:.2f} (max {metrics[f'train/ponder_time/{side}/max']:.0f})")
    if "train/skipped" in metrics:
        parts.append(f"{metrics['train/skipped']} skipped")
    if seconds_left is not None:  # unknown at the first step, most of which is compiling
        parts.append(f"{metrics['train/examples_per_second']:.0f} examples/s")
        parts.append(f"{duration(seconds_left)} left")
    return "  ".join(parts)


def duration(seconds):
    """Returns seconds as "1:05" or "2:01:05"."""
    minutes, seconds = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
