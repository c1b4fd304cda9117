"""Which evaluation of a run is the best, and where its weights are. Standard library only."""

import json
import math
import sys

from trainer import checkpoint_files
from trainer.run_dir import read_json
from ut_keras.errors import UserError


def merit(values, selection):
    """Returns what the best evaluation has most of: scores of all of dev, which say teacher-forced for a sequence.

    Least of all where it is no number: a model that has run into one is never better than another.

    Args:
        values: the dict of an evaluation.
        selection: "accuracy", or "loss": the lowest negative log-likelihood per token (`Problem.selection`).
    """
    metric, sign = ("log_perplexity", -1.0) if selection == "loss" else ("accuracy", 1.0)
    value = next(values[key] for key in (f"dev/teacher_forced/{metric}", f"dev/{metric}") if key in values)
    return -math.inf if math.isnan(value) else sign * value


def best_values(run):
    """Returns the best evaluation so far, best.json, where its weights are there too; else None."""
    path = run.path / "best.json"
    return read_json(path) if path.exists() and checkpoint_files.listed(run.path / "best") else None


def mend_best(run, selection):
    """Writes best.json from the records of the run where it is lost or damaged, and removes it where they lack it.

    Without it the next evaluation would take the place of a better one.
    """
    path, kept = run.path / "best.json", checkpoint_files.listed(run.path / "best")
    try:
        if path.exists():
            values = read_json(path)
            merit(values, selection), int(values["step"])
            return
        damage = f"{path} is missing"
    except (UserError, StopIteration, KeyError, TypeError, ValueError):
        damage = f"{path} is damaged"
    steps = {checkpoint_files.step_of(kept_path) for kept_path in kept}
    records = [line for line in run.evaluations() if line["step"] in steps]
    if records:
        run.write("best.json", json.dumps({**records[-1], "selection": selection}, indent=2) + "\n")
        print(f"warning: {damage}: written again from metrics.jsonl", file=sys.stderr, flush=True)
    elif path.exists():
        path.unlink()
        print(f"warning: {damage}: the next evaluation counts as the best", file=sys.stderr, flush=True)


def best_path(run):
    """Returns the best checkpoint of a run, or None.

    It is that of the step which best.json names. Where that is not there (an average has no best.json, and a save
    may have been cut short) it is the newest of the directory.
    """
    paths = checkpoint_files.listed(run.path / "best")
    values = best_values(run) if len(paths) > 1 else None
    named = [path for path in paths if values and checkpoint_files.step_of(path) == values.get("step")]
    return next(iter(named or paths[::-1]), None)
