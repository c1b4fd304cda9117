"""The average of checkpoints: the exact mean, as a run of its own, and refused where it would not be one."""

import json

import numpy as np
import pytest
import tensorflow as tf

import trainer
from tests.trainer.checkpointed import build, damage, fill
from trainer import average, checkpoints
from trainer.named_tensors import Reader, model_variables, write
from trainer.run_dir import RunDir
from ut_keras.errors import UserError


@pytest.fixture
def three(run):
    """A run with checkpoints of the steps 2, 9 and 10, whose weights are 1, 2 and 6 times `base(run)`."""
    model, _, saved = build(run, keep=3)
    for step, factor in ((2, 1.0), (9, 2.0), (10, 6.0)):
        for variable, value in zip(model.trainable_variables, base(model), strict=True):
            variable.assign(factor * value)
        saved.save(step)
    return run


def base(model):
    """Returns arrays of the shapes of a model's weights, the same ones each time."""
    rng = np.random.default_rng(5)
    return [rng.normal(size=variable.shape).astype(np.float32) for variable in model.trainable_variables]


def averaged(run, tmp_path, **which):
    """Averages and returns (step, weights) of what `trainer.load` makes of it."""
    average.average(run, average.sources(run, **which), tmp_path / "average")
    loaded = trainer.load(tmp_path / "average")
    return loaded.step, [variable.numpy() for variable in loaded.model.trainable_variables]


def test_the_mean_of_three_known_checkpoints_is_exact(three, tmp_path, capsys):
    step, weights = averaged(three, tmp_path)
    assert step == 10
    for weight, value in zip(weights, base(build(three)[0]), strict=True):
        parts = [np.float32(factor * value).astype(np.float64) for factor in (1.0, 2.0, 6.0)]
        np.testing.assert_array_equal(weight, (sum(parts) / 3).astype(np.float32))
    assert "averaged 3 checkpoints: steps 2, 9, 10" in capsys.readouterr().err


def test_sums_are_made_in_float64(run, tmp_path):
    model, _, saved = build(run, keep=3)
    for step, value in ((1, 2.0**25), (2, 1.0), (3, 2.0)):
        fill(model.trainable_variables, value)
        saved.save(step)
    _, weights = averaged(run, tmp_path)
    assert np.all(weights[0] == np.float32((2.0**25 + 3.0) / 3.0))
    assert np.float32((np.float32(2.0**25) + np.float32(1.0) + np.float32(2.0)) / 3) != weights[0].flat[0]


@pytest.mark.parametrize(
    ("which", "factor", "step"),
    [
        ({"last": 2}, 4.0, 10),
        ({"last": 1}, 6.0, 10),
        ({"names": ["ckpt-9", "ckpt-2.index"]}, 1.5, 9),
        ({"names": ["last", "ckpt-2"]}, 3.5, 10),
    ],
)
def test_the_last_ones_or_those_that_are_named(three, tmp_path, which, factor, step):
    names = which.get("names", [])
    which["names"] = [name if name == "last" else str(three.path / "checkpoints" / name) for name in names]
    found, weights = averaged(three, tmp_path, **which)
    assert found == step
    np.testing.assert_allclose(weights[0], factor * base(build(three)[0])[0], rtol=1e-6)


def test_what_is_no_float_is_copied_from_the_last_step(tmp_path):
    parts = [{"model": {"counter": tf.Variable(number, dtype=tf.int64)}} for number in (5, 8)]
    for step, part in enumerate(parts):
        write(tmp_path / f"ckpt-{step}", part)
    mean = average._mean([Reader(tmp_path / f"ckpt-{step}") for step in (0, 1)], "model/counter")
    assert (mean, mean.dtype) == (8, np.int64)


def test_the_weights_are_averaged_and_not_their_moving_averages(run, tmp_path):
    model, optimizer, saved = build(run, ema_decay=0.5)
    for step in (1, 3):
        fill(model.trainable_variables, step)
        fill(optimizer._model_variables_moving_average, 70.0)
        saved.save(step)
    assert np.all(averaged(run, tmp_path)[1][0] == 2.0)


def test_it_is_a_run_that_later_commands_take_and_training_refuses(three, tiny_dir, tmp_path, capsys):
    assert trainer.main(["average", f"--output_dir={three.path}", "--last=2", f"--usr_dir={tiny_dir}"]) == 0
    made = three.path / "average"
    assert capsys.readouterr().out == f"{made}\n"
    assert sorted(entry.name for entry in made.iterdir()) == ["best", "hparams.json", "problem.json", "run.json"]
    run = RunDir.open(made)
    assert run.averaged_from == [str(three.path / "checkpoints" / f"ckpt-{step}") for step in (9, 10)]
    assert run.hparams == three.hparams
    assert run.settings["problem"] == "tiny_copy"
    fresh = build(three)[0]
    assert checkpoints.restore_model(run, fresh, "best") == 10
    assert trainer.load(made).generate(["ab"]) is not None
    with pytest.raises(UserError, match="holds no checkpoint yet; --checkpoint=best is there"):
        checkpoints.find_checkpoint(run, "last")
    with pytest.raises(UserError, match="an average of 2 checkpoints and cannot be trained: .*--warm_start_from="):
        run.refuse_training()
    assert trainer.main(["average", f"--output_dir={three.path}"]) == 1
    assert "average holds an earlier average: remove it or choose another directory" in capsys.readouterr().err


def test_training_into_an_average_is_one_line(three, tiny_dir, capsys):
    settings = {"problem_args": {"train_size": 60}, "seed": 0, "mixed_precision": "none"}
    three.update({**three.settings, **settings})
    average.average(three, average.sources(three), three.path / "average")
    capsys.readouterr()
    flags = ["--problem=tiny_copy", f"--usr_dir={tiny_dir}", f"--output_dir={three.path / 'average'}"]
    assert trainer.main(flags) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert f"--warm_start_from={three.path / 'average'}" in err


@pytest.mark.parametrize(
    ("which", "message"),
    [
        ({"last": 5}, r"holds 3 checkpoints, not 5: ask for fewer, or train with --keep_checkpoints=5"),
        ({"names": ["checkpoints/ckpt-9", "checkpoints/../checkpoints/ckpt-9.index"]}, "ckpt-9 is named twice"),
        ({"names": ["checkpoints/ckpt-9", "checkpoints/ckpt-7"]}, "there is no checkpoint .*ckpt-7"),
        ({"names": ["checkpoints/ckpt-9", "checkpoints"]}, "there is no checkpoint .*checkpoints;"),
    ],
)
def test_checkpoints_that_are_not_there_or_there_twice_are_refused(three, which, message):
    which["names"] = [str(three.path / name) for name in which.get("names", [])]
    with pytest.raises(UserError, match=message):
        average.sources(three, **which)


def test_a_run_without_checkpoints_is_refused(run):
    with pytest.raises(UserError, match="holds no checkpoints$"):
        average.sources(run)
    with pytest.raises(UserError, match="there is no checkpoint best"):
        average.sources(run, names=["best"])


def test_the_same_weights_under_two_names_are_refused(three, tmp_path):
    model, _, saved = build(three, keep=3)
    saved.restore_last()
    saved.save_best(10, {"dev/accuracy": 0.5})
    with pytest.raises(UserError, match="hold the same weights; leave one of them out"):
        averaged(three, tmp_path, names=["best", "last"])
    assert not (tmp_path / "average").exists()


def test_a_damaged_one_is_named_and_nothing_is_left(three, tmp_path):
    damage(three.path / "checkpoints" / "ckpt-9.data-00000-of-00001", keep=0.2)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(UserError, match="checkpoint .*ckpt-9 is damaged"):
        averaged(three, tmp_path)
    assert sorted(tmp_path.iterdir()) == before


def test_another_architecture_is_refused(three, tmp_path):
    other = build(three, "hidden_size=32")[0]
    write(tmp_path / "ckpt-1", {"model": model_variables(other), "step": tf.Variable(1, dtype=tf.int64)})
    with pytest.raises(UserError, match=r"ckpt-1 is of another architecture: .*is \[5, 32\] there and \[5, 16\] here"):
        averaged(three, tmp_path, names=["last", str(tmp_path / "ckpt-1")])


def test_a_checkpoint_of_another_program_is_refused(three, tmp_path):
    path = tf.train.Checkpoint(weight=tf.Variable([1.0])).write(str(tmp_path / "ckpt-1"))
    with pytest.raises(UserError, match="is of another architecture"):
        average.average(three, [path, *average.sources(three)], tmp_path / "average")


def test_weights_that_are_not_finite_are_refused(three, tmp_path):
    model, _, saved = build(three, keep=3)
    fill(model.trainable_variables, float("nan"))
    saved.save(11)
    with pytest.raises(UserError, match="ckpt-11 has weights that are not finite: .*; leave it out"):
        averaged(three, tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [("run", "holds a run that was trained"), ("notes.txt", "holds notes.txt"), (".hidden", "holds .hidden")],
)
def test_a_target_that_holds_anything_is_refused(three, tmp_path, content, message):
    to = three.path if content == "run" else tmp_path / "there"
    if content != "run":
        to.mkdir()
        average.refuse_target(to)
        (to / content).write_text("")
    with pytest.raises(UserError, match=f"--to={to} {message}"):
        average.refuse_target(to)


def test_last_and_checkpoints_together_are_refused(three, capsys):
    assert trainer.main(["average", f"--output_dir={three.path}", "--last=2", "--checkpoints=last"]) == 2
    assert "--last takes the run's last checkpoints, --checkpoints names them" in capsys.readouterr().err


def test_settings_of_the_run_go_with_it(three, tmp_path):
    three.update({**three.settings, "data_dir": "/data"})
    average.average(three, average.sources(three), tmp_path / "average")
    settings = json.loads((tmp_path / "average" / "run.json").read_text())
    assert settings["data_dir"] == "/data"
