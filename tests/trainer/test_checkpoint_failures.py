"""What can happen to the files of a run: cut, flipped, lost, half written, no room on the disk, a kill."""

import contextlib
import os
import resource
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from tests.trainer.checkpointed import all_are, build, damage, fill, steps, weights
from trainer import checkpoint_files, checkpoints
from ut_keras.errors import UserError


@pytest.fixture
def two(run):
    """A run with the checkpoints 9, of ones, and 10, of twos."""
    model, _, saved = build(run)
    for step, value in ((9, 1.0), (10, 2.0)):
        fill(model.trainable_variables, value)
        saved.save(step, {"value": value})
    return run


@pytest.mark.parametrize("suffix", [".index", ".data-00000-of-00001"])
@pytest.mark.parametrize("fault", ["cut", "missing"])
def test_a_damaged_newest_checkpoint_gives_way_to_the_one_before_with_a_warning(run, suffix, fault, capsys):
    model, _, saved = build(run)
    fill(model.trainable_variables, 1.0)
    saved.save(1)
    fill(model.trainable_variables, 2.0)
    saved.save(2)
    path = run.path / "checkpoints" / f"ckpt-2{suffix}"
    damage(path) if fault == "cut" else path.unlink()
    fresh_model, _, fresh = build(run)
    assert fresh.restore_last().step == 1
    assert all(np.all(weight == 1.0) for weight in weights(fresh_model))
    err = capsys.readouterr().err
    assert "warning: checkpoint" in err
    assert "ckpt-2 is damaged" in err
    fresh.save(2)
    assert build(run)[2].restore_last().step == 2


def test_only_damaged_checkpoints_are_an_error(run):
    saved = build(run)[2]
    saved.save(1)
    damage(run.path / "checkpoints" / "ckpt-1.index")
    with pytest.raises(UserError, match="none of the checkpoints in .* can be read"):
        build(run)[2].restore_last()


@pytest.mark.parametrize("place", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("suffix", [".index", ".data-00000-of-00001"])
def test_a_flipped_bit_is_noticed(two, suffix, place, capsys):
    path = two.path / "checkpoints" / f"ckpt-10{suffix}"
    content = bytearray(path.read_bytes())
    content[int(len(content) * place)] ^= 1
    path.write_bytes(content)
    model, _, fresh = build(two)
    assert fresh.restore_last() == (9, {"value": 1.0})
    assert all_are(model.trainable_variables, 1.0)
    assert "ckpt-10 is damaged: " in capsys.readouterr().err


def test_a_damaged_one_does_not_push_out_those_that_can_be_read(two):
    damage(two.path / "checkpoints" / "ckpt-10.index")
    saved = build(two)[2]
    saved.restore_last()
    for step, left in ((8, [8]), (9, [8, 9]), (10, [9, 10])):
        saved.save(step)
        assert steps(two.path / "checkpoints") == left
    assert build(two)[2].restore_last().step == 10


@pytest.mark.parametrize("content", [None, b"", b'model_checkpoint_path: "ck', b"\xff\x00", b"\n".join([b"x"] * 9)])
def test_the_list_of_checkpoints_may_be_lost_or_damaged(two, content):
    state = two.path / "checkpoints" / "checkpoint"
    state.unlink() if content is None else state.write_bytes(content)
    model, _, fresh = build(two)
    assert checkpoints.restore_model(two, model, "last") == 10
    assert fresh.restore_last().step == 10
    fresh.save(11)
    assert steps(two.path / "checkpoints") == [10, 11], "what is not in the list is still counted and deleted"


def test_a_newest_one_that_has_vanished_is_named(two, capsys):
    for file in (two.path / "checkpoints").glob("ckpt-10.*"):
        file.unlink()
    assert build(two)[2].restore_last().step == 9
    err = capsys.readouterr().err
    assert "ckpt-10 is damaged: it is missing or was not written to its end; trying the one before" in err


def test_last_falls_back_for_a_reader_too_and_deletes_nothing(two, capsys):
    damage(two.path / "checkpoints" / "ckpt-10.data-00000-of-00001")
    before = sorted(path.name for path in (two.path / "checkpoints").iterdir())
    model = build(two)[0]
    assert checkpoints.restore_model(two, model, "last") == 9
    assert all_are(model.trainable_variables, 1.0)
    assert "ckpt-10 is damaged" in capsys.readouterr().err
    assert sorted(path.name for path in (two.path / "checkpoints").iterdir()) == before
    damage(two.path / "checkpoints" / "ckpt-9.index")
    with pytest.raises(UserError, match="none of the checkpoints in .* can be read"):
        checkpoints.restore_model(two, model, "last")


def test_what_a_killed_save_has_left_is_ignored_and_removed(two):
    directory, best = two.path / "checkpoints", two.path / "best"
    clean = sorted(path.name for path in directory.iterdir())
    for name in ("ckpt-11_temp", ".ckpt-11.part"):
        (directory / name).mkdir()
        (directory / name / "ckpt-11.data-00000-of-00001").write_text("half")
    best.mkdir()
    for path in (
        directory / "ckpt-11.data-00000-of-00001",
        directory / "ckpt-11.data-00000-of-00001.tempstate123",
        directory / "ckpt-11.index.tempstate456",
        directory / "checkpoint.tmp0123",
        directory / ".checkpoint.0123.incomplete",
        best / "ckpt-11.data-00000-of-00001",
        two.path / ".best.json.0123.incomplete",
    ):
        path.write_text("half")
    (directory / "notes.txt").write_text("the user's own")
    assert checkpoints.find_checkpoint(two, "last") == str(directory / "ckpt-10")
    assert build(two)[2].restore_last().step == 10
    assert sorted(path.name for path in directory.iterdir()) == sorted([*clean, "notes.txt"])
    assert list(best.iterdir()) == []
    assert not list(two.path.glob(".*"))


@pytest.mark.parametrize("moved", [0, 1])
def test_a_kill_between_the_files_of_a_save_leaves_no_index(two, moved, monkeypatch):
    class Killed(BaseException):
        pass

    left = [None] * moved

    def replace(source, target, original=os.replace):
        if not left:
            raise Killed
        left.pop()
        original(source, target)

    saved = build(two)[2]
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(checkpoint_files.os, "replace", replace)
        saved.save(11)
    assert (two.path / "checkpoints" / "ckpt-11.data-00000-of-00001").exists() == bool(moved)
    assert not (two.path / "checkpoints" / "ckpt-11.index").exists()
    assert build(two)[2].restore_last() == (10, {"value": 2.0})
    assert steps(two.path / "checkpoints") == [9, 10]
    assert not [path for path in (two.path / "checkpoints").iterdir() if "ckpt-11" in path.name]


def test_a_first_save_that_was_killed_is_a_start_at_0(run, capsys):
    (run.path / "checkpoints" / ".ckpt-1.part").mkdir(parents=True)
    assert build(run)[2].restore_last() == (0, {})
    assert "ckpt-1 is damaged: it is missing or was not written to its end" in capsys.readouterr().err
    assert list((run.path / "checkpoints").iterdir()) == []


def test_lost_checkpoints_of_a_run_that_has_metrics_are_said(two, capsys):
    two.log_metrics(10, {"train/loss": 1.0})
    for file in (two.path / "checkpoints").iterdir():
        file.unlink()
    assert build(two)[2].restore_last() == (0, {})
    err = capsys.readouterr().err
    assert "holds no checkpoint, though its metrics.jsonl goes to step 10: starting from step 0" in err


@contextlib.contextmanager
def no_file_above(size):
    """Lets no file of this process grow above `size` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_checkpoint_that_does_not_fit_on_the_disk_is_one_line_and_leaves_those_before(two):
    model, _, saved = build(two)
    before = {path.name: path.read_bytes() for path in (two.path / "checkpoints").iterdir()}
    with no_file_above(2000), pytest.raises(UserError) as error:
        saved.save(11)
    line = str(error.value)
    assert line.startswith(f"cannot write checkpoint {two.path / 'checkpoints' / 'ckpt-11'}: File too large (")
    assert "MB are free there); ckpt-9, ckpt-10 in" in line
    assert "\n" not in line
    assert {path.name: path.read_bytes() for path in (two.path / "checkpoints").iterdir()} == before
    assert saved.restore_last() == (10, {"value": 2.0})
    saved.save(11)
    assert build(two)[2].restore_last().step == 11


def test_other_files_that_do_not_fit_are_one_line_and_stay_whole(run):
    run.write("best.json", '{"step": 1}\n')
    run.log_metrics(1, {"train/loss": 1.0})
    with no_file_above(40):
        with pytest.raises(UserError, match=r"cannot write .*best.json: File too large"):
            run.write("best.json", "x" * 100)
        with pytest.raises(UserError, match=r"cannot write .*metrics.jsonl: File too large \(.* MB are free there\)"):
            run.log_metrics(2, {"train/loss": 1.0, "train/accuracy": 1.0})
    assert (run.path / "best.json").read_text() == '{"step": 1}\n'
    assert [line["step"] for line in run.metrics()] == [1]
    run.log_metrics(2, {"train/loss": 1.0})
    assert [line["step"] for line in run.metrics()] == [1, 2]
    assert not list(run.path.glob(".*"))


KILLED_WHILE_SAVING = """
import json, pathlib, sys, keras
from tests.trainer.checkpointed import all_are, fill
from trainer.checkpoints import Checkpoints, restore_model
from trainer.run_dir import RunDir
from ut_keras.hparams import HParams

path, least, least_best = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
run = RunDir(path, {}, HParams())
model = keras.Sequential([keras.Input([300]), keras.layers.Dense(300)])
optimizer = keras.optimizers.Adam()
optimizer.build(model.trainable_variables)
saved = Checkpoints(run, model, optimizer)
step, host = saved.restore_last()
assert step >= least, f"{least} was saved, and {step} is restored"
if step:
    assert host == {"step": step}
    assert all_are(model.trainable_variables, step)
    assert all_are(optimizer.variables[2:], step)
if least_best:
    best = restore_model(run, model, "best")
    assert step >= best >= least_best, (step, best, least_best)
    assert all_are(model.trainable_variables, best)
    assert json.loads((path / "best.json").read_text())["step"] == best
print("restored", step, flush=True)
while True:
    step += 1
    fill(model.trainable_variables, float(step))
    fill(optimizer.variables[2:], float(step))
    saved.save(step, {"step": step})
    print("saved", step, flush=True)
    saved.save_best(step, {"dev/accuracy": step / 1e6})
    print("best", step, flush=True)
"""


@pytest.mark.slow  # a process that imports TensorFlow in each round
def test_a_process_killed_while_it_saves_loses_one_save_at_most(tmp_path, rng):
    done = {"restored": 0, "saved": 0, "best": 0}
    for wait in rng.uniform(0.0, 0.6, 20):
        command = [sys.executable, "-c", KILLED_WHILE_SAVING, str(tmp_path), str(done["saved"]), str(done["best"])]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        watchdog = threading.Timer(60, process.kill)
        watchdog.start()
        try:
            first = process.stdout.readline()
            assert first.startswith("restored"), process.stderr.read()
            time.sleep(wait)
        finally:
            process.kill()
            watchdog.cancel()
            lines = process.communicate()[0].split("\n")[:-1]
        done.update((what, int(step)) for what, step in (line.split() for line in lines))
    assert done["saved"] > 20
    assert done["best"] > 20
