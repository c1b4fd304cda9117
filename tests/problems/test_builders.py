"""Preparing with tensorflow-datasets: atomic, quiet, into the right place."""

import dataclasses
import functools
import http.server
import os
import threading
import time

import pytest

import problems
from problems import babi_files, builders
from problems.algorithmic_strings import Task
from tests.problems.conftest import SMALL
from tests.problems.test_babi_files import TEST, TEXT, TRAIN, tar
from ut_keras.errors import UserError


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A folder that is served as the place of the official file."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("localhost", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://localhost:{server.server_port}/{babi_files.OFFICIAL.file}"
    monkeypatch.setattr(babi_files, "OFFICIAL", dataclasses.replace(babi_files.OFFICIAL, url=url))
    yield folder
    server.shutdown()
    server.server_close()


def _prepare(tmp_path):
    return problems.get("babi_qa_sentence_task1_10k").prepare(tmp_path / "data")


def test_download_gives_the_problem(served, tmp_path):
    tar(served / babi_files.OFFICIAL.file, {TRAIN: TEXT, TEST: TEXT})
    problem = _prepare(tmp_path)
    assert [len(problem.split(name)) for name in problem.splits] == [1, 1, 2]


@pytest.mark.parametrize("fault", ["page", "cut"])
def test_download_that_is_no_whole_tar_is_not_kept(served, tmp_path, fault):
    path = tar(served / babi_files.OFFICIAL.file, {TRAIN: TEXT * 100, TEST: TEXT})
    path.write_bytes(b"<html>Sorry</html>" if fault == "page" else path.read_bytes()[:150])
    with pytest.raises(UserError, match=r"cannot download http.*not a whole archive.*--manual_dir") as error:
        _prepare(tmp_path)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "data").exists()
    tar(path, {TRAIN: TEXT, TEST: TEXT})
    assert len(_prepare(tmp_path).split("test")) == 2


def test_interrupted_preparation_leaves_nothing_and_is_done_again(tmp_path, monkeypatch):
    problem = problems.get("algorithmic_identity_binary40", **SMALL)

    def stop(task, name):
        yield b"0", b"0"
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Task, "split", stop)
        problem.prepare(tmp_path / "data")
    assert not (tmp_path / "data").exists()
    assert len(problem.prepare(tmp_path / "data").split("train")) == 300


def test_data_that_another_process_made_in_the_meantime_are_taken(tmp_path, monkeypatch):
    prepare = builders.UtAlgorithmic.download_and_prepare

    def twice(builder):
        # The other process is faster: its data are in place when ours are about to be.
        prepare(builder)
        raise FileExistsError("Cannot rename: destination exists")

    monkeypatch.setattr(builders.UtAlgorithmic, "download_and_prepare", twice)
    problem = problems.get("algorithmic_identity_binary40", **SMALL).prepare(tmp_path)
    assert len(problem.split("train")) == 300


def test_remains_of_a_killed_preparation_are_removed(tmp_path):
    problem = problems.get("algorithmic_identity_binary40", **SMALL).prepare(tmp_path)
    (version,) = tmp_path.glob("ut_algorithmic/*/*")
    killed = version.with_name("incomplete.ABC_1.0.0")
    version.rename(killed)
    old = time.time() - 7200
    os.utime(killed, (old, old))
    problem.prepare(tmp_path)
    assert list(tmp_path.glob("ut_algorithmic/*/*")) == [version]


def test_default_place_is_that_of_tensorflow_datasets(monkeypatch):
    import tensorflow_datasets as tfds

    assert builders.data_root(None) == builders.data_root(tfds.core.constants.DATA_DIR)


def test_place_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot prepare data in .*file/data"):
        problems.get("algorithmic_identity_binary40", **SMALL).prepare(tmp_path / "file" / "data")


def test_damaged_data_name_the_directory_to_delete(tmp_path):
    problems.get("algorithmic_identity_binary40", **SMALL).prepare(tmp_path)
    for path in tmp_path.glob("ut_algorithmic/*/*/*train.tfrecord*"):
        path.write_bytes(path.read_bytes()[:100])
    for path in tmp_path.glob("packed/*/meta.json"):
        path.unlink()
    with pytest.raises(UserError, match="are damaged .*; delete that directory") as error:
        problems.get("algorithmic_identity_binary40", **SMALL).prepare(tmp_path)
    assert "\n" not in str(error.value)
