"""Moving averages of the weights in checkpoints: saved, restored, begun and ended in mid-run, and taken by readers."""

import pytest

from tests.trainer.checkpointed import all_are, build, fill
from trainer import checkpoints
from trainer.named_tensors import Reader
from trainer.warm_start import warm_start
from ut_keras import optimizers


@pytest.fixture
def averaged(run):
    """A run with checkpoint 3: weights 1, averages 2, slots 3; its `build` under --ema_decay is returned."""
    model, optimizer, saved = build(run, ema_decay=0.5)
    fill(model.trainable_variables, 1.0)
    fill(optimizers.averages(optimizer), 2.0)
    fill(optimizers.slots(optimizer), 3.0)
    saved.save(3)
    return model, optimizer, saved


def test_they_come_back_beside_the_weights(run, averaged, capsys):
    model, optimizer, fresh = build(run, ema_decay=0.5)
    assert fresh.restore_last().step == 3
    assert all_are(model.trainable_variables, 1.0)
    assert all_are(optimizers.averages(optimizer), 2.0)
    assert all_are(optimizers.slots(optimizer), 3)
    assert capsys.readouterr().err == ""


def test_they_come_back_through_an_optimizer_that_skips(run, averaged):
    model, optimizer, fresh = build(run, ema_decay=0.5, on_nan="skip")
    assert fresh.restore_last().step == 3
    assert all_are(optimizers.averages(optimizer), 2.0)
    assert all_are(optimizers.slots(optimizer), 3)


def test_turned_on_in_mid_run_they_start_from_the_weights_and_it_is_said(run, capsys):
    model, _, saved = build(run)
    fill(model.trainable_variables, 1.0)
    saved.save(3)
    _, optimizer, fresh = build(run, ema_decay=0.5)
    assert fresh.restore_last().step == 3
    assert all_are(optimizers.averages(optimizer), 1.0)
    assert "holds no moving averages of the weights: those of --ema_decay start from its weights" in (
        capsys.readouterr().err
    )


def test_before_the_first_update_they_are_the_weights(run):
    model, optimizer, fresh = build(run, ema_decay=0.5)
    fill(model.trainable_variables, 1.0)
    fresh.start_averages()
    assert all_are(optimizers.averages(optimizer), 1.0)
    build(run)[2].start_averages()  # there are none


def test_turned_off_they_end_and_it_is_said(run, averaged, capsys):
    model, optimizer, fresh = build(run)
    assert fresh.restore_last().step == 3
    assert all_are(model.trainable_variables, 1.0)
    assert all_are(optimizer.variables, 3)
    assert "holds moving averages of the weights: without --ema_decay they end here" in capsys.readouterr().err
    fresh.save(4)
    assert not [name for name in Reader(run.path / "checkpoints" / "ckpt-4").shapes if name.startswith("averaged")]


@pytest.mark.parametrize("checkpoint", ["last", "path"])
def test_readers_take_them_where_there_are_some(run, averaged, checkpoint):
    model = build(run)[0]
    path = str(run.path / "checkpoints" / "ckpt-3") if checkpoint == "path" else checkpoint
    assert checkpoints.restore_model(run, model, path) == 3
    assert all_are(model.trainable_variables, 2.0)


def test_the_best_is_that_of_the_averages_under_the_name_of_the_model(run, averaged):
    model, _, saved = averaged
    saved.save_best(3, {"dev/accuracy": 0.5})
    shapes = Reader(run.path / "best" / "ckpt-3").shapes
    assert {name.partition("/")[0] for name in shapes} == {"model", "step"}
    fresh = build(run)[0]
    assert checkpoints.restore_model(run, fresh, "best") == 3
    assert all_are(fresh.trainable_variables, 2.0)
    assert all_are(model.trainable_variables, 1.0), "training goes on with its own weights"


def test_a_warm_start_from_a_checkpoint_takes_them(run, averaged):
    model = build(run)[0]
    warm_start(model, str(run.path / "checkpoints" / "ckpt-3"))
    assert all_are(model.trainable_variables, 2.0)
