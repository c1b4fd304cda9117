"""Runs several processes as the workers of one cluster on 127.0.0.1, with bounded time, and cleans up after them."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).parents[2]


def free_ports(count):
    """Returns ports on 127.0.0.1 that nobody listens at."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def environments(count, ports=None, changes=None):
    """Returns the environment of each of `count` workers: this process's own, with TF_CONFIG and `changes`.

    Args:
        count: workers of the cluster.
        ports: their ports; by default free ones.
        changes: dict of variables, or a function of the worker's index that returns one; None takes a variable away.
    """
    workers = [f"127.0.0.1:{port}" for port in ports or free_ports(count)]
    common = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONUNBUFFERED": "1"}
    common |= {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}
    tasks = [{"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}} for index in range(count)]
    results = []
    for index, task in enumerate(tasks):
        own = changes(index) if callable(changes) else changes or {}
        result = {**common, "TF_CONFIG": json.dumps(task), **own}
        results.append({name: value for name, value in result.items() if value is not None})
    return results


@contextlib.contextmanager
def live_workers(argv, count=2, env=None, ports=None, only=None, directories=None):
    """Starts the workers and gives the list of their `Worker`s; kills those that still run at the end.

    Args:
        argv: arguments of Python: ["-m", "trainer", ...] or ["-c", program].
        count: workers of the cluster.
        env: changes to the environment, as of `environments`.
        ports: their ports; by default free ones.
        only: indices of those to start; by default all.
        directories: working directories, one per worker, which are made; by default the root of the sources.
    """
    with tempfile.TemporaryDirectory() as directory:
        started = []
        try:
            for index, environment in enumerate(environments(count, ports, env)):
                if only is None or index in only:
                    where = pathlib.Path(directories[index] if directories else ROOT)
                    where.mkdir(exist_ok=True)
                    started.append(Worker(argv, environment, index, pathlib.Path(directory), where))
            yield started
        finally:
            for worker in started:
                worker.kill()


def run_workers(argv, count=2, env=None, timeout=120.0, ports=None, only=None):
    """Runs the workers to their end and returns their subprocess.CompletedProcess, in order.

    Raises:
        subprocess.TimeoutExpired: not all have ended after `timeout` seconds; with what they had printed.
    """
    with live_workers(argv, count, env, ports, only) as workers:
        end = time.monotonic() + timeout
        return [worker.wait(end - time.monotonic()) for worker in workers]


class Worker:
    """One live worker.

    Attributes:
        index: its place in the cluster.
        process: subprocess.Popen.
    """

    def __init__(self, argv, environment, index, directory, where=ROOT):
        self.index = index
        self._paths = [directory / f"{index}.out", directory / f"{index}.err"]
        self._files = [open(path, "wb") for path in self._paths]  # noqa: SIM115 - closed by `kill`
        out, err = self._files
        self.process = subprocess.Popen([sys.executable, *argv], cwd=where, env=environment, stdout=out, stderr=err)

    @property
    def out(self):
        """What it has printed so far."""
        return self._paths[0].read_text(errors="replace")

    @property
    def err(self):
        """What it has written to standard error so far."""
        return self._paths[1].read_text(errors="replace")

    def wait_for(self, text, timeout=60.0):
        """Returns when its output or its log holds `text`; AssertionError, with both, when it ends or time is up."""
        end = time.monotonic() + timeout
        while text not in self.out + self.err:
            running = self.process.poll() is None
            if text in self.out + self.err:
                return
            assert running and time.monotonic() < end, f"no {text!r} from worker {self.index}:\n{self.out}\n{self.err}"
            time.sleep(0.05)

    def send(self, number):
        """Sends it a signal."""
        self.process.send_signal(number)

    def wait(self, timeout=60.0):
        """Returns its CompletedProcess; subprocess.TimeoutExpired where it does not end in time."""
        try:
            self.process.wait(max(timeout, 0.0))
        except subprocess.TimeoutExpired as error:
            raise subprocess.TimeoutExpired(error.cmd[:2], timeout, self.out[-4000:], self.err[-4000:]) from None
        return subprocess.CompletedProcess(self.process.args, self.process.returncode, self.out, self.err)

    def kill(self):
        """Kills it, also when it is stopped or does not listen to SIGTERM."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        for file in self._files:
            file.close()
