"""Checkpoints: everything comes back, nothing comes back by half, also from those of earlier versions."""

import numpy as np
import pytest
import tensorflow as tf

from tests.trainer.checkpointed import all_are, build, damage, fill, make_run, steps, weights
from trainer import checkpoints
from trainer.named_tensors import Reader, model_variables
from ut_keras import optimizers
from ut_keras.errors import UserError


def test_model_optimizer_and_step_come_back(run):
    model, optimizer, saved = build(run)
    for index, variable in enumerate(optimizer.variables):
        fill([variable], index + 1)
    assert len(optimizer.variables) > 2 * len(model.trainable_variables)
    saved.save(7)
    fresh_model, fresh_optimizer, fresh = build(run)
    assert fresh.restore_last() == (7, {})
    for old, new in zip(weights(model), weights(fresh_model), strict=True):
        np.testing.assert_array_equal(old, new)
    for index, variable in enumerate(fresh_optimizer.variables):
        assert np.all(variable.numpy() == index + 1), variable.path


@pytest.mark.parametrize("name", ["lr=[0.1]", "a[!b]c", "back\\slash", "all*", "blank and?"])
def test_a_directory_may_be_called_what_tensorflow_reads_as_a_pattern(tiny_dir, tmp_path, name):
    run = make_run(tmp_path / name)
    model, _, saved = build(run)
    fill(model.trainable_variables, 3.0)
    saved.save(7)
    fresh, _, checkpoints_there = build(run)
    assert checkpoints_there.restore_last() == (7, {})
    assert all_are(fresh.trainable_variables, 3.0)


def test_every_weight_of_the_model_is_in_the_file(run):
    model, _, saved = build(run)
    saved.save(1)
    names = Reader(run.path / "checkpoints" / "ckpt-1").shapes
    assert len([name for name in names if name.startswith("model/")]) == len(model.trainable_variables)


def test_a_run_without_checkpoint_starts_at_0(run):
    assert build(run)[2].restore_last().step == 0


def test_the_last_ones_are_kept_also_over_a_restart(run):
    saved = build(run)[2]
    for step in (1, 2, 10):
        saved.save(step)
    saved = build(run)[2]
    saved.restore_last()
    saved.save(11)
    assert steps(run.path / "checkpoints") == [10, 11]


def test_what_the_loop_remembers_comes_back(run):
    saved = build(run)[2]
    host = {"sums": {"loss": 0.1 + 0.2}, "steps": [1, 2], "side": None}
    saved.save(7, host)
    assert build(run)[2].restore_last() == (7, host)
    saved.save(8)
    assert build(run)[2].restore_last() == (8, {})


def test_tools_of_tensorflow_find_the_last_one(run):
    saved = build(run)[2]
    for step in (1, 2, 3):
        saved.save(step)
    state = tf.train.get_checkpoint_state(str(run.path / "checkpoints"))
    assert state.model_checkpoint_path == str(run.path / "checkpoints" / "ckpt-3")
    assert len(state.all_model_checkpoint_paths) == 2


def save_as_before(run, model, optimizer, step):
    """Saves as version 0.1.0 did: no host, the state of a loss scale among the optimizer's variables."""
    number = tf.Variable(step, dtype=tf.int64)
    slots = {f"{index:04d}": variable.value for index, variable in enumerate(optimizer.variables)}
    whole = tf.train.Checkpoint(model=model_variables(model), optimizer=slots, step=number)
    tf.train.CheckpointManager(whole, str(run.path / "checkpoints"), 3, "ckpt").save(checkpoint_number=step)


@pytest.mark.parametrize("now", [{}, {"on_nan": "skip"}, {"ema_decay": 0.9}])
def test_a_checkpoint_of_the_first_version_is_gone_on_from(run, now):
    model, optimizer, _ = build(run)
    fill(model.trainable_variables, 0.5)
    for index, variable in enumerate(optimizer.variables):
        fill([variable], index + 1)
    save_as_before(run, model, optimizer, 4)
    model, optimizer, fresh = build(run, **now)
    assert fresh.restore_last() == (4, {})
    assert all_are(model.trainable_variables, 0.5)
    for index, variable in enumerate(optimizers.slots(optimizer)):
        assert all_are([variable], index + 1)
    fresh.save(5)
    assert build(run)[2].restore_last().step == 5


def scaling_loss(run, model):
    optimizer = optimizers.guarded(optimizers.from_hparams(run.hparams), mixed_float16=True)
    optimizer.build(model.trainable_variables)
    return optimizer


def test_the_loss_scale_comes_back_also_from_the_first_version(run):
    model, _, _ = build(run)
    optimizer = scaling_loss(run, model)
    for index, variable in enumerate(optimizer.variables):
        fill([variable], index + 1)
    scale = [variable.numpy() for variable in optimizers.loss_scale_state(optimizer)]
    slots = [variable.numpy() for variable in optimizers.slots(optimizer)]
    save_as_before(run, model, optimizer, 4)
    for step in (4, 5):
        fresh = scaling_loss(run, model)
        saved = checkpoints.Checkpoints(run, model, fresh)
        assert saved.restore_last().step == step
        assert [variable.numpy() for variable in optimizers.loss_scale_state(fresh)] == scale
        for old, variable in zip(slots, optimizers.slots(fresh), strict=True):
            np.testing.assert_array_equal(old, variable.numpy())
        saved.save(5)


def test_a_loss_scale_may_come_and_go(run):
    model, optimizer, saved = build(run)
    fill(optimizer.variables, 3)
    saved.save(1)
    scaled = scaling_loss(run, model)
    assert checkpoints.Checkpoints(run, model, scaled).restore_last().step == 1
    assert all_are(optimizers.slots(scaled), 3)
    assert float(scaled.dynamic_scale) == 2.0**15
    fill(optimizers.slots(scaled), 4)
    checkpoints.Checkpoints(run, model, scaled).save(2)
    assert saved.restore_last().step == 2
    assert all_are(optimizer.variables, 4)


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
        checkpoints.restore_model(run, model, str(directory / "ckpt-4"))
