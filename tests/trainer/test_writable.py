"""What keeps a run from being written is said at its start."""

import os

import pytest

from trainer.writable import refuse_unwritable
from ut_keras.errors import UserError


@pytest.fixture
def run(tmp_path):
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "metrics.jsonl").write_text("")
    return tmp_path


def test_a_run_that_can_be_written_passes(run):
    refuse_unwritable(run, exports=True)
    refuse_unwritable(run / "nowhere")


@pytest.mark.parametrize("name", ["best", "tb", "export"])
def test_a_file_in_the_place_of_a_directory_is_named(run, name):
    (run / name).write_text("")
    with pytest.raises(UserError, match=f"/{name} is no directory, .* move it away"):
        refuse_unwritable(run, exports=True)


def test_a_file_called_export_is_nothing_to_a_run_that_does_not_export(run):
    (run / "export").write_text("")
    refuse_unwritable(run)


@pytest.mark.parametrize("name", ["best.json", "eval.json", ".lock", "ponder.png", "checkpoints/checkpoint"])
def test_a_directory_in_the_place_of_a_file_is_named(run, name):
    (run / name).mkdir()
    with pytest.raises(UserError, match=f"/{name} is a directory, .* move it away"):
        refuse_unwritable(run)


@pytest.mark.parametrize("name", ["", "checkpoints", "metrics.jsonl"])
def test_what_is_read_only_is_named(run, name, monkeypatch):
    # The tests may run as root, to whom all is open.
    read_only = os.path.normpath(run / name)
    monkeypatch.setattr(os, "access", lambda path, mode: os.path.normpath(path) != read_only)
    with pytest.raises(UserError, match=f"^{read_only} is not writable: training"):
        refuse_unwritable(run)
