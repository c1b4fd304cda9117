"""Training from the command line to the report, and going on where it stopped."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

import trainer
from tests.trainer.run_files import distance, losses, saved
from trainer import loop
from trainer.chief import Chief
from trainer.run_dir import RunDir


def test_a_run_trains_evaluates_saves_and_reports(train, tmp_path, capsys):
    assert train("run", "--hparams=train_steps=8,eval_every=3", problem="tiny_copy") == 0
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert any("parameters" in line and "universal_transformer (tiny)" in line for line in lines)
    assert "training examples: 60; 0 above max_length=256 were dropped" in lines
    batches = next(line for line in lines if line.startswith("batches: "))
    assert "16 examples in all; 4 in an epoch; the largest is 16 x 7 inputs" in batches
    assert "devices: 1 x CPU" in lines
    step = next(line for line in lines if line.startswith("step 5/8  loss"))
    assert all(word in step for word in ("accuracy", "ponder encoder", "ponder decoder", "max", "examples/s", "left"))
    assert sum("dev (12 examples): teacher_forced/accuracy" in line for line in lines) == 3
    assert "\r" not in err
    assert "test/free_running/sequence_accuracy" in out
    assert out.count("right ") >= 3
    run = tmp_path / "run"
    for name in ("hparams.json", "problem.json", "best.json", "eval.json", "decodes.txt", "ponder.png"):
        assert (run / name).is_file()
    assert list((run / "tb").glob("events*"))
    assert sorted(losses(run)) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [line["step"] for line in RunDir.open(run).metrics() if "dev/count" in line] == [3, 6, 8]
    assert {path.stem for path in (run / "checkpoints").glob("*.index")} == {"ckpt-3", "ckpt-6", "ckpt-8"}
    assert json.loads((run / "eval.json").read_text())["test/count"] == 12
    assert RunDir.open(run).settings["seed"] == 0
    assert trainer.load(str(run)).generate(["ab", ""])[1] == ""


@pytest.mark.slow  # compiles training three times
def test_twice_six_steps_are_twelve(train, tmp_path, capsys):
    """A regression test of resuming: slots, step, order of the data, dropout and learning rate all go on."""
    recipe = ["--hparams=learning_rate_schedule=constant*linear_warmup,learning_rate_warmup_steps=9", "--seed=5"]
    assert train("whole", "--train_steps=12", *recipe) == 0
    assert train("parts", "--train_steps=6", "--schedule=train", *recipe) == 0
    assert train("parts", "--train_steps=12", *recipe) == 0
    assert "train_steps was 6 and is 12 from here on" in capsys.readouterr().err
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")
    assert distance(saved(tmp_path / "parts"), saved(tmp_path / "whole")) == 0.0


@pytest.mark.slow  # compiles training
def test_a_signal_during_the_last_evaluation_ends_the_run_before_its_report(train, capsys, monkeypatch):
    evaluate = Chief.evaluate
    monkeypatch.setattr(
        Chief, "evaluate", lambda chief, step: (evaluate(chief, step), os.kill(os.getpid(), signal.SIGTERM))
    )
    assert train("run", "--train_steps=2") == 143
    out, err = capsys.readouterr()
    assert "stopped by SIGTERM and saved at step 2" in err
    assert out == ""
    assert train("run", "--train_steps=2") == 0
    assert "test/accuracy" in capsys.readouterr().out


@pytest.mark.slow  # compiles training
def test_averages_of_a_run_without_an_update_are_its_weights(train, tmp_path, monkeypatch):
    """A regression test: Keras begins its averages at 0."""
    monkeypatch.setattr(loop.TrainStep, "_act_weight", lambda step, _: 1e30)  # overflows in float16
    assert train("run", "--train_steps=1", "--mixed_precision=mixed_float16", "--ema_decay=0.9") == 0
    tensors = saved(tmp_path / "run")
    weights, averages = (
        {name.partition("/")[2]: tensor for name, tensor in tensors.items() if name.startswith(part)}
        for part in ("model/", "averaged/")
    )
    assert [line["train/skipped"] for line in RunDir.open(tmp_path / "run").metrics() if "train/skipped" in line] == [1]
    assert distance(weights, averages) == 0.0


@pytest.mark.slow  # compiles training
def test_the_seed_decides(train, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        train(name, "--train_steps=3", f"--seed={seed}", "--schedule=train")
    assert losses(tmp_path / "a") == losses(tmp_path / "b")
    assert losses(tmp_path / "a")[1] != losses(tmp_path / "c")[1]


@pytest.mark.slow  # compiles training
def test_a_finished_run_says_so_and_reports_again(train, tmp_path, capsys):
    train("run", "--train_steps=2")
    first = capsys.readouterr().out
    assert train("run", "--train_steps=2") == 0
    out, err = capsys.readouterr()
    assert "is finished: 2 steps; raise --train_steps to go on" in err
    assert out == first


def test_a_changed_architecture_is_refused_with_both_values(train, tmp_path, capsys):
    train("run", "--train_steps=2", "--schedule=train")
    before = saved(tmp_path / "run")
    capsys.readouterr()
    assert train("run", "--train_steps=4", "--hparams=hidden_size=32") == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "hidden_size=16, not hidden_size=32" in err
    assert distance(saved(tmp_path / "run"), before) == 0.0


@pytest.mark.slow  # compiles training
def test_a_loss_that_is_not_finite_stops_the_run_before_it_saves(train, tmp_path, capsys):
    train("run", "--train_steps=3", "--schedule=train")
    capsys.readouterr()
    recipe = "--hparams=learning_rate_constant=1e30,eval_every=40"
    assert train("run", "--train_steps=40", recipe, "--log_every=40") == 1
    err = capsys.readouterr().err
    assert "trainer: error: the loss is" in err
    step = int(err.split(" at step ")[1].split(";")[0])
    assert 3 < step < 10
    assert int(saved(tmp_path / "run")["step"]) == 3


def test_an_error_before_the_first_step_leaves_nothing(train, tmp_path, capsys, monkeypatch):
    assert train("run", "--hparams=batch_size=3,use_fixed_batch_size=false") == 2
    assert "batch_size=3 is too small" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow  # compiles training
def test_the_same_for_a_class(train, tmp_path, capsys):
    assert train("run", "--train_steps=4") == 0
    out, err = capsys.readouterr()
    assert "test/accuracy" in out
    assert "dev (12 examples): accuracy" in err
    assert trainer.load(str(tmp_path / "run")).generate(["red green blue red"])[0] in ("red", "green", "blue", "")


@pytest.mark.slow  # compiles training
def test_a_run_of_another_start(train, tmp_path, capsys):
    train("run", "--train_steps=2", "--schedule=train")
    changes = "--hparams=learning_rate_constant=0.0"
    train("warm", "--train_steps=1", "--schedule=train", changes, "--seed=8", f"--warm_start_from={tmp_path / 'run'}")
    old, new = saved(tmp_path / "run"), saved(tmp_path / "warm")
    model = {name for name in old if name.startswith("model/")}
    assert distance({name: old[name] for name in model}, {name: new[name] for name in model}) == 0.0


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_signal_saves_and_exits_and_the_same_command_goes_on(train, tmp_path, capsys, monkeypatch, number):
    original = loop.Interval.add

    def add(self, done, measured):
        original(self, done, measured)
        if done == 4:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(loop.Interval, "add", add)
    before = signal.getsignal(number)
    assert train("run", "--train_steps=30", "--hparams=eval_every=30") == 128 + number
    assert signal.getsignal(number) is before
    err = capsys.readouterr().err
    assert f"stopped by {number.name} and saved at step 4; the same command goes on from there" in err
    assert int(saved(tmp_path / "run")["step"]) == 4
    assert train("run", "--train_steps=6", "--schedule=train") == 0
    assert "going on from step 4" in capsys.readouterr().err


@pytest.mark.slow  # compiles training
def test_what_was_logged_after_the_last_checkpoint_is_logged_once(train, tmp_path):
    train("run", "--train_steps=3", "--schedule=train")
    with open(tmp_path / "run" / "metrics.jsonl", "a") as file:
        file.write('{"step": 4, "train/loss": 77.0}\n')
    train("run", "--train_steps=5", "--schedule=train")
    lines = RunDir.open(tmp_path / "run").metrics()
    assert [line["step"] for line in lines if "train/loss" in line] == [1, 2, 3, 4, 5]
    assert losses(tmp_path / "run")[4] != 77.0


@pytest.mark.slow  # two processes that import TensorFlow
def test_a_killed_process_goes_on(tiny_dir, tmp_path):
    command = [sys.executable, "-m", "trainer", "--problem=tiny_class", f"--usr_dir={tiny_dir}", "--schedule=train"]
    command += [f"--output_dir={tmp_path / 'run'}", "--train_steps=100000", "--eval_every=5", "--log_every=5"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not (tmp_path / "run" / "checkpoints" / "ckpt-10.index").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.kill()
    process.wait()
    reached = int(saved(tmp_path / "run")["step"])
    command[-3:] = [f"--train_steps={reached + 5}", "--eval_every=5", "--log_every=5"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert f"going on from step {reached}" in result.stderr
