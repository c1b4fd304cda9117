"""Whether the other workers are still there: no run waits for ever for one that has died.

Standard library only.
"""

import contextlib
import os
import socket
import sys
import threading
import time

from trainer.rendezvous import names, others, split
from ut_keras.errors import UserError

WATCH_SECONDS = 3.0  # between two looks at workers that are there
ANSWER_SECONDS = 5.0  # in which a live worker answers
LATE_SECONDS = 15.0  # in which a worker that fails has ended, after TensorFlow's error in the others
# What opens an HTTP/2 connection: a live TensorFlow server answers it, a stopped process does not.
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])


class Watch(contextlib.AbstractContextManager):
    """Watches the other workers while they compute together, from their `rendezvous.meet` to the last barrier.

    A worker that does not answer (dead, stopped, or cut off) makes TensorFlow raise in all others after some seconds:
    on the way out that becomes a UserError that names it. Where TensorFlow raises nothing, a thread ends this process
    with the same line and exit code 1 once the worker has been silent for `timeout` seconds. A worker that computes,
    compiles or waits is not silent: TensorFlow's own threads answer.

    Args:
        cluster: `trainer.cluster.Cluster`, or None: nothing is watched.
        timeout: seconds of silence until this process ends.
    """

    def __init__(self, cluster, timeout=120.0):
        self._cluster = cluster
        self._timeout = timeout
        self._silent = {}  # index of a worker: the time of the first look that it did not answer
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="peers", daemon=True)

    def __enter__(self):
        if self._cluster and len(self._cluster.addresses) > 1:
            self._thread.start()
        return self

    def __exit__(self, kind, error, trace):
        self._stop.set()
        if not self._thread.is_alive():
            return
        self._thread.join(len(self._cluster.addresses) * ANSWER_SECONDS)
        if is_of_tensorflow(error) and (lost := self._lost(error)):
            raise UserError(self._line(lost)) from error

    def _run(self):
        while not self._stop.wait(WATCH_SECONDS):
            self._look()
            now = time.monotonic()
            lost = [index for index, since in self._silent.items() if now - since > self._timeout]
            if lost and not self._stop.is_set():
                print(f"trainer: error: {self._line(lost)}", file=sys.stderr, flush=True)
                os._exit(UserError.exit_code)

    def _look(self):
        for index in others(self._cluster):
            if answers(self._cluster.addresses[index], ANSWER_SECONDS):
                self._silent.pop(index, None)
            else:
                self._silent.setdefault(index, time.monotonic())

    def _lost(self, error):
        """Returns the workers that were silent first; [] where all answer: then the error is of this worker."""
        end = time.monotonic() + (LATE_SECONDS if is_of_connection(error) else 0.0)
        while True:
            self._look()
            if self._silent or time.monotonic() > end:
                break
            time.sleep(LATE_SECONDS / 50)
        first = min(self._silent.values(), default=0.0)  # those that fell silent later have ended because of it
        return [index for index, since in self._silent.items() if since - first < WATCH_SECONDS]

    def _line(self, lost):
        verb = "do" if len(lost) > 1 else "does"
        return (
            f"{names(self._cluster, lost)} {verb} not answer any more (ended, stopped or cut off); "
            "start all workers again: training goes on from the last checkpoint"
        )


def is_of_tensorflow(error):
    """Returns whether an exception is an error of TensorFlow's runtime."""
    tensorflow = sys.modules.get("tensorflow")
    return bool(tensorflow) and isinstance(error, tensorflow.errors.OpError)


def is_of_connection(error):
    """Returns whether TensorFlow's error may come from another worker."""
    errors = sys.modules["tensorflow"].errors
    kinds = (errors.UnavailableError, errors.AbortedError, errors.CancelledError, errors.DeadlineExceededError)
    return isinstance(error, (*kinds, errors.InternalError, errors.UnknownError))


def answers(address, timeout):
    """Returns whether a TensorFlow server answers at "host:port"."""
    try:
        with socket.create_connection(split(address), timeout) as connection:
            connection.settimeout(timeout)
            connection.sendall(HELLO)
            return bool(connection.recv(1))
    except OSError:
        return False
