"""A preparation that was killed is never trained on: the next one makes the data again, whole."""

import os
import signal
import subprocess
import sys

import pytest

import problems
from tests.problems.test_own_text import prepare, texts, write

LINES = [f"line {number} of the text" for number in range(400)]
FILES = {"train.txt": "\n".join(LINES) + "\n", "dev.txt": "line 1\n"}

# Prepares and stops for ever at a place that the test names, after it has said that it is there.
CHILD = """
import sys, time
import numpy as np
import problems
from problems import builders, packed, subwords

data, files, place = sys.argv[1:]

def stop(*args, **kwargs):
    print("there", flush=True, file=sys.__stdout__)  # tensorflow-datasets has its output taken away
    time.sleep(100)
    sys.exit("nobody killed me")

def rows(make):
    def some(root, name, columns, splits):
        def half():
            for number, row in enumerate(splits["train"]()):
                if number == 200:
                    stop()
                yield row
        return make(root, name, columns, {**splits, "train": half})
    return some

def half_an_array(path, array):
    path.write_bytes(b"half")
    stop()

if place == "rows":
    builders.prepare_text = rows(builders.prepare_text)
elif place == "vocabulary":
    subwords.SubwordVocabulary.train = stop
elif place == "arrays":
    np.save = half_an_array
else:
    packed.os = type("os", (), {"rename": stop, "path": packed.os.path})
problems.get("text_lm", vocabulary_size=290).prepare(data, files)
"""


@pytest.mark.slow
@pytest.mark.parametrize("place", ["rows", "vocabulary", "arrays", "rename"])
def test_preparation_that_was_killed_is_done_again(tmp_path, place):
    files = write(tmp_path / "files", FILES)
    command = [sys.executable, "-c", CHILD, str(tmp_path / "data"), str(files), place]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "there\n"
        os.kill(child.pid, signal.SIGKILL)
    left = [path for path in (tmp_path / "data").rglob("*") if "incomplete" in path.name]
    assert bool(left) == (place != "vocabulary")
    problem = prepare(tmp_path, files=FILES)
    assert texts(problem, "train") == LINES
    assert problem.fingerprint == prepare(tmp_path / "undisturbed", files=FILES).fingerprint
    opened = problems.get("text_lm", vocabulary_size=290).prepare(tmp_path / "data", files)
    assert opened.fingerprint == problem.fingerprint
