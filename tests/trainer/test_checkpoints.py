"""Checkpoints: everything comes back, nothing comes back by half, and what is damaged is said."""

import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf

import problems
from trainer import checkpoints
from trainer.checkpoints import Checkpoints
from trainer.run_dir import RunDir
from trainer.step import make_optimizer
from ut_keras.errors import UserError
from ut_keras.hparams import Features
from ut_keras.models.build import build_model
from ut_keras.registry import hparams_sets

FEATURES = Features("sequence", target_vocabulary_size=5, input_vocabulary_size=5)


@pytest.fixture
def run(tiny_dir, tmp_path):
    hparams = hparams_sets.get("tiny")()
    settings = {"problem": "tiny_copy", "usr_dir": None}
    return RunDir.create(tmp_path / "run", hparams, problems.get("tiny_copy").prepare(), settings)


def build(run, changes=""):
    """Returns a new (model, optimizer, Checkpoints)."""
    hparams = run.hparams.override(changes)
    model = build_model(hparams, FEATURES)
    optimizer = make_optimizer(hparams, model)
    return model, optimizer, Checkpoints(run, model, optimizer, keep=2)


def fill(variables, value):
    for variable in variables:
        variable.assign(tf.cast(tf.fill(variable.shape, value), variable.dtype))


def weights(model):
    return [variable.numpy() for variable in model.trainable_variables]


def damage(path, keep=0.5):
    """Cuts off the end of a file."""
    content = pathlib.Path(path).read_bytes()
    pathlib.Path(path).write_bytes(content[: int(len(content) * keep)])


def test_model_optimizer_and_step_come_back(run):
    model, optimizer, saved = build(run)
    for index, variable in enumerate(optimizer.variables):
        fill([variable], index + 1)
    assert len(optimizer.variables) > 2 * len(model.trainable_variables)
    saved.save(7)
    fresh_model, fresh_optimizer, fresh = build(run)
    assert fresh.restore_last() == 7
    for old, new in zip(weights(model), weights(fresh_model), strict=True):
        np.testing.assert_array_equal(old, new)
    for index, variable in enumerate(fresh_optimizer.variables):
        assert np.all(variable.numpy() == index + 1), variable.path


def test_every_weight_of_the_model_is_in_the_file(run):
    model, _, saved = build(run)
    saved.save(1)
    names = [name for name, _ in tf.train.list_variables(str(run.path / "checkpoints" / "ckpt-1"))]
    assert len([name for name in names if name.startswith("model/")]) == len(model.trainable_variables)


def test_a_run_without_checkpoint_starts_at_0(run):
    assert build(run)[2].restore_last() == 0


def test_the_last_ones_are_kept_also_over_a_restart(run):
    saved = build(run)[2]
    for step in (1, 2, 3):
        saved.save(step)
    saved = build(run)[2]
    saved.restore_last()
    saved.save(4)
    files = {path.stem for path in (run.path / "checkpoints").glob("*.index")}
    assert files == {"ckpt-3", "ckpt-4"}


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
    assert fresh.restore_last() == 1
    assert all(np.all(weight == 1.0) for weight in weights(fresh_model))
    err = capsys.readouterr().err
    assert "warning: checkpoint" in err
    assert "ckpt-2 is damaged" in err
    fresh.save(2)
    assert build(run)[2].restore_last() == 2


def test_only_damaged_checkpoints_are_an_error(run):
    saved = build(run)[2]
    saved.save(1)
    damage(run.path / "checkpoints" / "ckpt-1.index")
    with pytest.raises(UserError, match="none of the checkpoints in .* can be read"):
        build(run)[2].restore_last()


def test_leftovers_of_an_interrupted_save_are_ignored(run):
    saved = build(run)[2]
    saved.save(1)
    (run.path / "checkpoints" / "ckpt-2.data-00000-of-00001.tempstate123").write_text("")
    (run.path / "checkpoints" / "ckpt-2_temp").mkdir()
    assert build(run)[2].restore_last() == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("hidden_size=32", r"is \[5, 16\] there and \[5, 32\] here"),
        ("num_inrecurrence_layers=2", r"missing there and|there and .* here"),
        ("recurrence_type=basic", r"there and .* here"),
    ],
)
def test_another_architecture_is_one_line_and_changes_no_weight(run, change, message):
    build(run)[2].save(1)
    model, _, other = build(run, change)
    before = weights(model)
    with pytest.raises(UserError, match=message) as error:
        other.restore_last()
    assert "\n" not in str(error.value)
    assert "ckpt-1 is of another architecture" in str(error.value)
    with pytest.raises(UserError, match="another architecture"):
        checkpoints.restore_model(run, model, "last")
    for old, new in zip(before, weights(model), strict=True):
        np.testing.assert_array_equal(old, new)


def test_the_best_survives_restarts_and_later_worse_evaluations(run):
    def evaluation(accuracy, log_perplexity):
        return {"dev/count": 9, "dev/accuracy": accuracy, "dev/log_perplexity": log_perplexity}

    model, _, saved = build(run)
    fill(model.trainable_variables, 1.0)
    assert saved.save_best(5, evaluation(0.8, 0.5))
    fill(model.trainable_variables, 2.0)
    assert not saved.save_best(6, evaluation(0.7, 0.1))
    _, _, saved = build(run)
    assert not saved.save_best(7, evaluation(0.79, 0.4))
    fresh, _, _ = build(run)
    assert checkpoints.restore_model(run, fresh, "best") == 5
    assert all(np.all(weight == 1.0) for weight in weights(fresh))
    model, _, saved = build(run)
    fill(model.trainable_variables, 3.0)
    assert saved.save_best(8, evaluation(0.8, 0.6)), "of equals the later wins"
    fresh, _, _ = build(run)
    assert checkpoints.restore_model(run, fresh, "best") == 8
    assert all(np.all(weight == 3.0) for weight in weights(fresh))
    assert len(list((run.path / "best").glob("*.index"))) == 1


def test_the_accuracy_that_counts_is_teacher_forced(run):
    _, _, saved = build(run)
    values = {"dev/teacher_forced/accuracy": 0.5, "dev/teacher_forced/log_perplexity": 1.0}
    assert saved.save_best(1, {**values, "dev/free_running/accuracy": 0.9})
    worse = {**values, "dev/teacher_forced/accuracy": 0.4}
    assert not saved.save_best(2, {**worse, "dev/free_running/accuracy": 1.0})


def test_selection_by_loss_keeps_the_lowest_per_token(run):
    def evaluation(accuracy, log_perplexity):
        scores = {"accuracy": accuracy, "log_perplexity": log_perplexity}
        group = {"dev/a/teacher_forced/accuracy": 0.0, "dev/a/teacher_forced/log_perplexity": 0.0}
        return {**group, **{f"dev/teacher_forced/{name}": value for name, value in scores.items()}}

    model, optimizer, _ = build(run)
    saved = Checkpoints(run, model, optimizer, selection="loss")
    assert saved.save_best(1, evaluation(0.5, 2.0))
    assert not saved.save_best(2, evaluation(0.9, 2.1))
    assert saved.save_best(3, evaluation(0.4, 1.9))
    assert saved.save_best(4, evaluation(0.1, 1.9)), "of equals the later wins"
    record = json.loads((run.path / "best.json").read_text())
    assert (record["step"], record["selection"]) == (4, "loss")
    record.pop("selection")  # as it was written before there was a choice
    (run.path / "best.json").write_text(json.dumps(record))
    assert not Checkpoints(run, model, optimizer, selection="loss").save_best(5, evaluation(0.9, 2.0))
    assert Checkpoints(run, model, optimizer).save_best(6, evaluation(0.2, 9.0))


def test_without_an_evaluation_the_last_is_the_best_and_it_is_said(run, capsys):
    model, _, saved = build(run)
    with pytest.raises(UserError, match="holds no checkpoint yet"):
        checkpoints.restore_model(run, model, "best")
    saved.save(3)
    assert checkpoints.restore_model(run, model, "best") == 3
    assert "taking its last checkpoint" in capsys.readouterr().err


def test_a_checkpoint_is_named_by_its_path(run):
    model, _, saved = build(run)
    saved.save(3)
    saved.save(4)
    directory = run.path / "checkpoints"
    assert checkpoints.restore_model(run, model, str(directory / "ckpt-3")) == 3
    assert checkpoints.restore_model(run, model, str(directory / "ckpt-3.index")) == 3
    assert checkpoints.restore_model(run, model, str(directory)) == 4
    with pytest.raises(UserError, match="there is no checkpoint .*ckpt-9; name best, last, or a path"):
        checkpoints.restore_model(run, model, str(directory / "ckpt-9"))
    damage(directory / "ckpt-4.index")
    with pytest.raises(UserError, match="ckpt-4 is damaged"):
        checkpoints.restore_model(run, model, "last")


def test_a_lost_list_of_checkpoints_does_not_start_the_run_again(run):
    saved = build(run)[2]
    saved.save(9)
    saved.save(10)
    (run.path / "checkpoints" / "checkpoint").unlink()
    assert build(run)[2].restore_last() == 10


def test_a_damaged_record_of_the_best_is_named(run):
    saved = build(run)[2]
    saved.save_best(1, {"dev/accuracy": 0.5})
    (run.path / "best.json").write_text("{")
    with pytest.raises(UserError, match="best.json is damaged"):
        saved.save_best(2, {"dev/accuracy": 0.6})


@pytest.mark.parametrize("selection", ["accuracy", "loss"])
def test_what_is_not_a_number_is_never_better(run, selection):
    def evaluation(value):
        return {"dev/accuracy": value, "dev/log_perplexity": value}

    model, optimizer, _ = build(run)
    saved = Checkpoints(run, model, optimizer, selection=selection)
    assert saved.save_best(1, evaluation(float("nan")))
    assert saved.save_best(2, evaluation(0.5))
    assert not saved.save_best(3, evaluation(float("nan")))
    assert json.loads((run.path / "best.json").read_text())["step"] == 2
