"""The stand-in server in a process of its own."""

import contextlib
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import typing

ROOT = pathlib.Path(__file__).parents[2]


class Running(typing.NamedTuple):
    """A server that is running.

    Attributes:
        rest_port, grpc_port: on loopback.
        said: what it has said of each version so far; `next()` waits for the next one.
    """

    rest_port: int
    grpc_port: int
    said: list
    stream: typing.IO

    def next(self):
        """Waits until the server has taken up another version and returns what it says of it."""
        self.said.append(json.loads(self.stream.readline()))
        return self.said[-1]


def missing():
    """Returns why the server cannot run here, or None."""
    return None if importlib.util.find_spec("tensorflow_serving") else "tensorflow-serving-api is not installed"


@contextlib.contextmanager
def running(base, model_name, *flags):
    """A server over a base path, for the time of a `with` block.

    Args:
        base: directory of version directories.
        model_name: the name that it serves them under.
        *flags: more flags of tests/trainer/tfs_protocol.py.
    """
    environment = {"TF_CPP_MIN_LOG_LEVEL": "3", **os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.trainer.tfs_protocol", str(base), f"--model_name={model_name}", *flags]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            first = process.stdout.readline()
            if not first:
                raise RuntimeError(f"the server did not start: exit code {process.wait()}")
            said = json.loads(first)
            yield Running(said["rest_port"], said["grpc_port"], [said], process.stdout)
        finally:
            process.stdin.close()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
