"""When a run has stopped getting better."""

import io
import types

import pytest

from trainer import progress
from trainer.early_stopping import EarlyStopping, Standing, standing_of
from trainer.run_dir import RunDir

NAN = float("nan")


def records(*values, metric="dev/teacher_forced/accuracy"):
    return [{"step": 10 * (index + 1), metric: value, "dev/count": 4} for index, value in enumerate(values)]


@pytest.mark.parametrize(
    ("values", "standing"),
    [
        ((0.5,), (10, 0)),
        ((0.5, 0.6), (20, 0)),
        ((0.5, 0.4, 0.4), (10, 2)),
        ((0.5, 0.4, 0.6, 0.5), (30, 1)),
        ((1.0, 1.0, 1.0), (10, 2)),
        ((NAN, NAN, 0.1, NAN), (30, 1)),
    ],
)
def test_evaluations_since_the_last_better_one_are_counted(values, standing):
    assert standing_of(records(*values), "accuracy") == Standing(*standing)


def test_the_lowest_loss_is_the_best_where_the_problem_says_so():
    values = records(3.0, 2.0, 2.5, metric="dev/teacher_forced/log_perplexity")
    assert standing_of(values, "loss") == Standing(20, 1)


def a_run(lines, best_record=None, monkeypatch=None):
    """Returns what stands for a RunDir with these lines of metrics.jsonl and this best.json."""
    if monkeypatch:
        monkeypatch.setattr("trainer.early_stopping.best_values", lambda run: best_record)
    problem = types.SimpleNamespace(selection="accuracy")
    run = types.SimpleNamespace(path="runs/x", metrics=lambda: lines, problem=problem)
    run.evaluations = lambda: RunDir.evaluations(run)
    return run


def check(patience, run):
    """Returns (whether training is over, what was said)."""
    file = io.StringIO()
    with progress.Progress(file) as log:
        return EarlyStopping(patience).check(run, log), file.getvalue()


def test_training_ends_with_the_last_of_so_many_evaluations(monkeypatch):
    lines = [{"step": 1, "train/loss": 2.0}, *records(0.5, 0.7, 0.6, 0.7)]
    run = a_run(lines, lines[2], monkeypatch)
    assert check(3, run) == (False, "")
    assert check(2, a_run(lines[:-1], lines[2], monkeypatch)) == (False, "")
    over, said = check(2, run)
    assert over
    assert said == (
        "runs/x is finished early, at step 40: since step 20 no evaluation was better, 2 in all (--early_stopping=2)\n"
    )


def test_a_run_without_an_evaluation_goes_on(monkeypatch):
    assert check(1, a_run([{"step": 1, "train/loss": 2.0}], None, monkeypatch)) == (False, "")


def test_the_best_evaluation_counts_where_its_line_was_lost(monkeypatch):
    lines = records(0.5, 0.9, 0.6, 0.7)
    assert check(2, a_run(lines[:1] + lines[2:], lines[1], monkeypatch))[0]


def test_a_best_evaluation_that_is_to_be_made_again_does_not_count(monkeypatch):
    """A process was killed at step 30 after it had kept the best; the checkpoint of that step is damaged."""
    lines = records(0.5, 0.4, 0.9)
    assert not check(2, a_run(lines[:2], lines[2], monkeypatch))[0]
    assert check(1, a_run(lines[:2], lines[2], monkeypatch))[0]
