"""eval.json of a run directory: scores of its splits, and beside them what they were made with."""

import functools
import importlib.metadata
import json
import pathlib
import sys

from problems import textio
from trainer.run_dir import read_json
from ut_keras.errors import UserError

_PACKAGES = ("tensorflow", "keras", "sacrebleu")


def merge_eval(run_dir, scores):
    """Replaces the scores of these splits in eval.json of a run directory; other splits stay. Returns its path."""
    path = pathlib.Path(run_dir) / "eval.json"
    try:
        before = read_json(path) if path.exists() else {}
    except UserError as error:  # of a run that took days the new scores are not to fail at this
        aside = path.replace(path.with_name(f"{path.name}.damaged"))
        print(f"warning: {error}; it is now {aside.name}, and a new one is begun", file=sys.stderr, flush=True)
        before = {}
    new = {key.split("/")[0] for key in scores}
    kept = {key: value for key, value in before.items() if key.split("/")[0] not in new}
    textio.write_text(path, json.dumps({**kept, **scores}, indent=2, sort_keys=True) + "\n")
    return path


def with_info(loaded, scores):
    """Returns scores with "<split>/step" and "<split>/info" of each split: what one needs to make them again.

    Args:
        loaded: the `Loaded` that was scored.
        scores: flat dict of one or several splits; what its "<split>/info" holds (signatures) stays there.
    """
    run = pathlib.Path(loaded.output_dir) / "run.json"
    settings = read_json(run) if run.exists() else {}
    made_with = {
        "step": loaded.step,
        "checkpoint": loaded.checkpoint,
        "hparams_set": settings.get("hparams_set"),
        "hparams": loaded.hparams.relevant() if loaded.hparams else None,
        "problem": loaded.problem.name,
        "problem_args": loaded.problem.args,
        "fingerprint": loaded.problem.fingerprint,
        "versions": versions(),
    }
    result = dict(scores)
    for split in dict.fromkeys(key.split("/")[0] for key in scores):
        if loaded.step is not None:
            result[f"{split}/step"] = loaded.step
        result[f"{split}/info"] = {**scores.get(f"{split}/info", {}), **made_with}
    return result


@functools.cache
def versions():
    """Returns {package: version} of what has an influence on scores."""
    import ut_keras

    found = {"ut_keras": ut_keras.__version__}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:  # tensorflow-cpu has another name
            found[name] = None
    return found
