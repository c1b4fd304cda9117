"""Whether the other workers are there: no run waits for ever for one that does not come or that has died.

TensorFlow alone would. With a worker missing, its strategy's constructor does not return, holds Python's lock and does
not listen to SIGTERM; so the workers first find each other here. Standard library only.
"""

import contextlib
import faulthandler
import os
import socket
import subprocess
import sys
import threading
import time

from ut_keras.errors import UserError

POLL_SECONDS = 0.2  # between two looks for workers that have not come
WATCH_SECONDS = 3.0  # between two looks at workers that are there
ANSWER_SECONDS = 5.0  # in which a live worker answers
LATE_SECONDS = 15.0  # in which a worker that fails has ended, after TensorFlow's error in the others
# What opens an HTTP/2 connection: a live TensorFlow server answers it, a stopped process does not.
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])


def gather(cluster, timeout):
    """Returns when all workers have started: each listens at its address until it has reached all others.

    Args:
        cluster: `trainer.cluster.Cluster`; TensorFlow takes the address over afterwards.
        timeout: seconds to wait.

    Raises:
        UserError: names the workers that have not started in time, or that this one's port is taken.
    """
    end = time.monotonic() + timeout
    with _listening(cluster):
        while missing := [index for index in others(cluster) if not reachable(cluster.addresses[index])]:
            if time.monotonic() > end:
                raise UserError(
                    f"{_names(cluster, missing)} {'have' if len(missing) > 1 else 'has'} not started within "
                    f"{timeout:g} s (--worker_timeout), or cannot be reached from {cluster.named(cluster.index)}"
                )
            time.sleep(POLL_SECONDS)


@contextlib.contextmanager
def forming(cluster, timeout):
    """Bounds the time that TensorFlow takes to connect the workers: ends this process, exit code 1, with one line.

    Python's threads stand still meanwhile. So a small process of its own prints the line, and a timer of the
    interpreter's that needs no lock ends this one.
    """
    words = [str(timeout), cluster.named(cluster.index)]
    words += [word for index in others(cluster) for word in (cluster.addresses[index], cluster.named(index))]
    helper = subprocess.Popen([sys.executable, "-S", "-c", LAST_WORDS, *words], stdin=subprocess.PIPE)
    with open(os.devnull, "w") as nowhere:
        faulthandler.dump_traceback_later(timeout + 5, exit=True, file=nowhere)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()
            helper.kill()
            helper.wait()
            helper.stdin.close()


LAST_WORDS = """
import select, socket, sys
timeout, own, *others = sys.argv[1:]
if not select.select([sys.stdin], [], [], float(timeout))[0]:  # readable: the process that waits has ended
    lost = []
    for address, name in zip(others[::2], others[1::2]):
        host, port = address.rsplit(":", 1)
        try:
            socket.create_connection((host.strip("[]"), int(port)), 2).close()
        except OSError:
            lost.append(name)
    reason = f"{', '.join(lost)} cannot be reached any more" if lost else "all can be reached"
    line = f"trainer: error: {own}: the workers have not connected within {float(timeout):g} s; {reason}"
    print(line, file=sys.stderr)
"""


class Watch(contextlib.AbstractContextManager):
    """Watches the other workers while they compute together, from `gather` to the last barrier.

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
            if answers(self._cluster.addresses[index]):
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
            time.sleep(POLL_SECONDS)
        first = min(self._silent.values(), default=0.0)  # those that fell silent later have ended because of it
        return [index for index, since in self._silent.items() if since - first < WATCH_SECONDS]

    def _line(self, lost):
        verb = "do" if len(lost) > 1 else "does"
        return (
            f"{_names(self._cluster, lost)} {verb} not answer any more (ended, stopped or cut off); "
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


def others(cluster):
    """Returns the indices of the workers that this process is not."""
    return [index for index in range(len(cluster.addresses)) if index != cluster.index]


def reachable(address, timeout=2.0):
    """Returns whether something listens at "host:port"."""
    try:
        socket.create_connection(_split(address), timeout).close()
    except OSError:
        return False
    return True


def answers(address, timeout=ANSWER_SECONDS):
    """Returns whether a TensorFlow server answers at "host:port"."""
    try:
        with socket.create_connection(_split(address), timeout) as connection:
            connection.settimeout(timeout)
            connection.sendall(HELLO)
            return bool(connection.recv(1))
    except OSError:
        return False


@contextlib.contextmanager
def _listening(cluster):
    """Listens at this worker's port, on all interfaces, as TensorFlow will."""
    host, port = _split(cluster.addresses[cluster.index])
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("", port))
            listener.listen(512)
        except OSError as error:
            raise UserError(
                f"{cluster.named(cluster.index)} cannot listen at port {port} ({error.strerror}): "
                "end the process that has it, or give this worker another port"
            ) from None
        yield


def _split(address):
    host, port = address.rsplit(":", 1)
    return host.strip("[]"), int(port)


def _names(cluster, indices):
    return " and ".join(cluster.named(index) for index in indices)
