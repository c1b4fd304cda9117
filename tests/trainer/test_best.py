"""The best checkpoint: which evaluation it is of, and that no kill and no restart loses or mixes it up."""

import json

import numpy as np
import pytest

from tests.trainer.checkpointed import build, fill, steps, weights
from trainer import checkpoints
from trainer.checkpoints import Checkpoints
from trainer.run_dir import RunDir
from ut_keras.errors import UserError


def best_of(run):
    """Returns (step, weights) of the best checkpoint."""
    model = build(run)[0]
    return checkpoints.restore_model(run, model, "best"), float(model.trainable_variables[0].numpy().flat[0])


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
    assert not saved.save_best(1, evaluation(float("nan")))
    assert not list((run.path / "best").glob("*"))
    assert saved.save_best(2, evaluation(0.5))
    assert not saved.save_best(3, evaluation(float("nan")))
    assert json.loads((run.path / "best.json").read_text())["step"] == 2


@pytest.mark.parametrize("killed_in", ["write", "record", "tidy"])
def test_a_kill_between_weights_and_record_leaves_the_one_or_the_other(run, monkeypatch, killed_in):
    model, _, saved = build(run)
    fill(model.trainable_variables, 1.0)
    saved.save_best(5, {"dev/accuracy": 0.5})
    fill(model.trainable_variables, 2.0)

    class Killed(BaseException):
        pass

    def kill(*_):
        raise Killed

    place = {
        "write": (checkpoints.checkpoint_files, "publish"),
        "record": (RunDir, "write"),
        "tidy": (Checkpoints, "_tidy"),
    }[killed_in]
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(*place, kill)
        saved.save_best(6, {"dev/accuracy": 0.6})
    assert best_of(run) == ((6, 2.0) if killed_in == "tidy" else (5, 1.0))
    assert json.loads((run.path / "best.json").read_text())["step"] == (6 if killed_in == "tidy" else 5)
    model, _, saved = build(run)
    saved.restore_last()
    fill(model.trainable_variables, 2.0)
    assert saved.save_best(6, {"dev/accuracy": 0.6}), "the same evaluation, made again after a restart"
    assert saved.save_best(6, {"dev/accuracy": 0.6})
    assert best_of(run) == (6, 2.0)
    assert steps(run.path / "best") == [6]
    assert sorted(entry.name for entry in (run.path / "best").iterdir()) == [
        "checkpoint",
        "ckpt-6.data-00000-of-00001",
        "ckpt-6.index",
    ]


def test_a_record_without_its_weights_is_no_best(run, capsys):
    model, _, saved = build(run)
    saved.save(3)
    saved.save_best(3, {"dev/accuracy": 0.9})
    for file in (run.path / "best").iterdir():
        file.unlink()
    assert best_of(run)[0] == 3
    assert "taking its last checkpoint as the best" in capsys.readouterr().err
    assert build(run)[2].save_best(4, {"dev/accuracy": 0.1})


def test_a_damaged_best_is_named_and_not_replaced_by_another(run):
    model, _, saved = build(run)
    saved.save(3)
    saved.save_best(3, {"dev/accuracy": 0.9})
    next((run.path / "best").glob("*.data*")).write_bytes(b"")
    with pytest.raises(UserError, match=r"best/ckpt-3 is damaged: "):
        best_of(run)


@pytest.mark.parametrize(
    "content", [None, "", '{"step": 5', "{}", '{"step": 5}', '{"step": null, "dev/accuracy": 0.5}']
)
def test_a_lost_or_damaged_record_of_the_best_is_written_again(run, capsys, content):
    _, _, saved = build(run)
    values = {"dev/count": 9, "dev/accuracy": 0.8, "dev/log_perplexity": 0.5}
    assert saved.save_best(5, values)
    run.log_metrics(5, values)
    before = json.loads((run.path / "best.json").read_text())
    (run.path / "best.json").unlink()
    if content is not None:
        (run.path / "best.json").write_text(content)
    _, _, saved = build(run)
    saved.restore_last()
    assert json.loads((run.path / "best.json").read_text()) == before
    assert "best.json is" in capsys.readouterr().err
    assert not saved.save_best(6, {**values, "dev/accuracy": 0.7})


def test_a_damaged_record_of_the_best_that_no_line_replaces_is_removed(run, capsys):
    _, _, saved = build(run)
    assert saved.save_best(5, {"dev/count": 9, "dev/accuracy": 0.8, "dev/log_perplexity": 0.5})
    (run.path / "best.json").write_text("{")
    saved.restore_last()
    assert "the next evaluation counts as the best" in capsys.readouterr().err
    assert saved.save_best(6, {"dev/count": 9, "dev/accuracy": 0.1, "dev/log_perplexity": 0.5})
