"""Flags of training that change how a run goes, from the command line to the run directory."""

import json

import numpy as np
import pytest
import tensorflow as tf

import trainer
from tests.trainer.run_files import saved
from trainer.run_dir import RunDir

pytestmark = pytest.mark.slow  # each of them compiles training


def test_averages_are_what_every_other_command_uses(train, tmp_path, capsys):
    # The weights jump, their averages lag behind.
    assert train("run", "--train_steps=6", "--ema_decay=0.9", "--hparams=learning_rate_constant=0.05,eval_every=6") == 0
    last = saved(tmp_path / "run")
    best = saved(tmp_path / "run", "best")
    names = [name for name in best if name.startswith("model/")]
    assert names
    for name in names:
        np.testing.assert_array_equal(best[name], last[name.replace("model/", "averaged/", 1)])
    assert any(np.abs(last[name] - best[name]).max() > 0.01 for name in names)
    for checkpoint in ("best", "last"):
        weights = [weight.numpy() for weight in trainer.load(str(tmp_path / "run"), checkpoint).model.weights]
        assert sum(any(np.array_equal(weight, best[name]) for weight in weights) for name in names) == len(names)


def test_a_run_ends_when_it_no_longer_gets_better_and_says_so_again(train, tmp_path, capsys):
    recipe = ["--train_steps=60", "--eval_every=2", "--early_stopping=2", "--hparams=learning_rate_constant=0.0"]
    assert train("run", *recipe) == 0
    err = capsys.readouterr().err
    assert "is finished early, at step 6: since step 2 no evaluation was better" in err
    assert [line["step"] for line in RunDir.open(tmp_path / "run").metrics() if "dev/count" in line] == [2, 4, 6]
    assert train("run", *recipe) == 0
    assert "is finished early, at step 6" in capsys.readouterr().err
    assert train("run", *recipe[:2], "--train_steps=8", recipe[3]) == 0, "without the flag it goes on"
    assert RunDir.open(tmp_path / "run").metrics()[-1]["step"] == 8


def test_each_best_evaluation_is_exported(train, tmp_path, capsys):
    assert train("run", "--train_steps=4", "--eval_every=2", "--export_best", problem="tiny_label") == 0
    kept = capsys.readouterr().err.count("(kept as the best)")
    versions = sorted((tmp_path / "run" / "export").iterdir())
    assert len(versions) == kept >= 1
    best = json.loads((tmp_path / "run" / "best.json").read_text())["step"]
    assert f'"step": {best}' in (versions[-1] / "export.json").read_text()
    served = tf.saved_model.load(str(versions[-1])).signatures["serving_default"]
    answer = served(inputs=tf.constant(["up down"]))["outputs"].numpy()[0].decode()
    assert answer == trainer.load(str(tmp_path / "run")).generate(["up down"])[0]


def test_what_cannot_be_exported_is_said_before_the_first_step(train, tmp_path, capsys):
    assert train("run", "--train_steps=4", "--export_best") == 2
    err = capsys.readouterr().err
    assert "text_encoder" in err
    assert "step 1" not in err
    assert list(tmp_path.iterdir()) == []


def test_a_profile_is_written_of_the_steps_that_were_asked_for(train, tmp_path):
    assert train("run", "--train_steps=6", "--schedule=train", "--profile=3,2", "--steps_per_execution=4") == 0
    assert list((tmp_path / "run" / "tb" / "plugins" / "profile").glob("*/*.xplane.pb"))


def test_a_broken_update_is_left_out_and_counted(train, tmp_path, capsys):
    recipe = "--hparams=learning_rate_constant=1e30,eval_every=40"
    assert train("stops", "--train_steps=8", recipe, "--schedule=train") == 1
    assert "is nan at step" in capsys.readouterr().err
    assert train("skips", "--train_steps=8", recipe, "--schedule=train", "--on_nan=skip") == 0
    lines = RunDir.open(tmp_path / "skips").metrics()
    assert sum(line.get("train/skipped", 0) for line in lines) >= 1
    assert all(np.all(np.isfinite(value)) for value in saved(tmp_path / "skips").values())


def test_switches_of_precision_and_speed_reach_the_same_run(train, tmp_path):
    assert train("plain", "--train_steps=3", "--schedule=train") == 0
    for name, *flags in (
        ("deterministic", "--deterministic"),
        ("remat", "--remat"),
        ("several", "--steps_per_execution=3"),
        ("parts", "--gradient_accumulation=3"),
    ):
        assert train(name, "--train_steps=3", "--schedule=train", "--hparams=relu_dropout=0", *flags) == 0
    for name in ("deterministic", "several"):
        first, other = (saved(tmp_path / run) for run in ("plain", name))
        assert first.keys() == other.keys()
    assert RunDir.open(tmp_path / "remat").hparams.remat


def test_a_changed_recipe_is_accepted_and_said(train, capsys):
    assert train("run", "--train_steps=2", "--schedule=train") == 0
    capsys.readouterr()
    changes = "--hparams=learning_rate_constant=0.5,clip_grad_norm=1,weight_decay=0.01"
    assert train("run", "--train_steps=3", "--schedule=train", changes) == 0
    err = capsys.readouterr().err
    assert "learning_rate_constant was 0.003 and is 0.5 from here on" in err
    assert "clip_grad_norm was 0.0 and is 1.0 from here on" in err
