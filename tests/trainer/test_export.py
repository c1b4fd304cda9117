"""Exports of real models: the same answers as `decode`, from a model server's own loader and without our packages."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

import trainer
from tests.trainer import c_loader
from tests.trainer.saved_runs import STORIES, STRINGS, algorithmic_run, babi_run
from trainer.decode import decode_lines
from trainer.export import export
from ut_keras.errors import UserError

_WITHOUT_US = """
import json, sys
import tensorflow as tf
for directory, lines in json.load(sys.stdin):
    found = tf.saved_model.load(directory).signatures["serving_default"](inputs=tf.constant(lines))
    print(json.dumps([[text.decode() for text in found["outputs"].numpy()], found["scores"].numpy().tolist()]))
assert not {"ut_keras", "problems", "trainer"} & set(sys.modules)
"""

needs_compiler = pytest.mark.skipif(bool(c_loader.missing()), reason=str(c_loader.missing()))


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    """{problem: (Loaded, directory of its export, lines: mixed lengths and empty ones)}."""
    path = tmp_path_factory.mktemp("runs")
    babi_run(path / "babi")
    algorithmic_run(path / "reverse", recurrence_type="act", act_max_steps=3)
    runs = {"babi": trainer.load(path / "babi"), "reverse": trainer.load(path / "reverse")}
    lines = {"babi": list(STORIES), "reverse": list(STRINGS)}
    return {name: (loaded, export(loaded), lines[name]) for name, loaded in runs.items()}


@pytest.fixture(params=["babi", "reverse"])
def exported(request, exports):
    return exports[request.param]


@needs_compiler
def test_cpp_loader_gives_the_answers_of_decode(exported):
    loaded, directory, lines = exported
    found = c_loader.run(directory, lines)
    expected = decode_lines(loaded, lines)
    assert found["outputs"].tolist() == [answer.text for answer in expected]
    assert any(found["outputs"]), "an untrained model that answers nothing tests nothing"
    np.testing.assert_allclose(found["scores"], [answer.score for answer in expected], rtol=1e-5, atol=1e-5)
    for row, answer in zip(found["ponder_times"], expected, strict=True):
        times = answer.ponder_times["encoder"]
        np.testing.assert_allclose(row, np.pad(times, [0, len(row) - len(times)]))


@needs_compiler
def test_cpp_loader_answers_a_line_alone_as_in_a_batch(exports):
    _, directory, lines = exports["reverse"]
    assert (
        c_loader.run(directory, lines[2:3])["outputs"].tolist()
        == c_loader.run(directory, lines)["outputs"].tolist()[2:3]
    )
    assert c_loader.run(directory, [])["outputs"].tolist() == []


def test_a_process_without_our_packages_gives_the_answers_of_decode(exports, tmp_path):
    task = json.dumps([[str(directory), lines] for _, directory, lines in exports.values()])
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-I", "-c", _WITHOUT_US],
        input=task, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    for (loaded, _, lines), found in zip(exports.values(), done.stdout.splitlines(), strict=True):
        outputs, scores = json.loads(found)
        expected = decode_lines(loaded, lines)
        assert outputs == [answer.text for answer in expected]
        np.testing.assert_allclose(scores, [answer.score for answer in expected], rtol=1e-5, atol=1e-5)


def test_line_that_decode_refuses_is_answered_with_nothing(exported):
    loaded, directory, lines = exported
    found = tf.saved_model.load(str(directory)).signatures["serving_default"](
        inputs=tf.constant(["Goodbye!", lines[0]])
    )
    assert found["outputs"].numpy()[0] == b""
    assert found["outputs"].numpy()[1].decode() == loaded.generate(lines[:1])[0]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "small"
    algorithmic_run(path, num_rec_steps=1)
    return trainer.load(path)


def test_every_export_takes_the_next_number(small, tmp_path):
    (tmp_path / "12").mkdir()
    (tmp_path / "notes").mkdir()
    assert export(small, tmp_path) == tmp_path / "13"
    assert (tmp_path / "13" / "saved_model.pb").is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["12", "13", "notes"]


def test_export_can_be_read_by_other_users_and_moved(small, tmp_path):
    directory = export(small, tmp_path / "new" / "folder")
    assert directory.stat().st_mode & 0o055 == 0o055
    moved = directory.rename(tmp_path / "moved")
    found = tf.saved_model.load(str(moved)).signatures["serving_default"](inputs=tf.constant(["12"]))
    assert found["outputs"].numpy()[0].decode() == small.generate(["12"])[0]


def test_export_that_fails_leaves_nothing(small, tmp_path, monkeypatch):
    from ut_keras.serving import TextModel

    def fail(self, directory):
        (tmp_path / "export" / os.path.basename(directory) / "half").write_text("written")
        raise OSError("no space left on device")

    monkeypatch.setattr(TextModel, "save", fail)
    with pytest.raises(OSError, match="no space"):
        export(small, tmp_path / "export")
    assert list((tmp_path / "export").iterdir()) == []


def test_file_in_the_place_of_the_folder_is_refused(small, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="--export_dir=.*file is not a directory"):
        export(small, tmp_path / "file")
