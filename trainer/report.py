"""What is shown of a run: tables of scores, decoded examples beside what was right, and ponder time in a picture."""

import json
import pathlib
import sys

import numpy as np

from problems import textio
from trainer.decode import answer_ids
from trainer.evaluate import Evaluator, sample
from trainer.run_dir import read_json

EXAMPLES = 5
PICTURE = "ponder.png"


def final_report(loaded, evaluator=None, split="test", out=None):
    """Scores the test split and shows a few of its answers; the end of a training run.

    Writes into the run directory: the scores to eval.json (beside those of other splits), the examples
    to decodes.txt, and, where positions halt by themselves, the ponder time of the example in which it differs
    most to ponder.png.

    Args:
        loaded: `Loaded`, its problem prepared, with an output_dir.
        evaluator: `Evaluator` of `loaded`, whose compiled functions are used again; None makes one.
        split: name of the split to report.
        out: stream for the report; None: standard output.

    Returns:
        The flat dict of scores.
    """
    out = out or sys.stdout
    run_dir = pathlib.Path(loaded.output_dir)
    examples = loaded.problem.split(split)
    scores = (evaluator or Evaluator(loaded)).evaluate(examples, split)
    publish(loaded, scores, out)
    if loaded.problem.features.input_vocabulary_size is None:
        return scores

    chosen = [examples.example(int(index)) for index in sample(len(examples), EXAMPLES)]
    pondering = getattr(loaded.hparams, "recurrence_type", None) == "act"
    answers = answer_ids(loaded, [example["inputs"] for example in chosen], with_ponder=pondering)
    shown = "\n".join(_shown(loaded.problem, *pair) for pair in zip(chosen, answers, strict=True))
    textio.write_text(run_dir / "decodes.txt", shown)
    print(f"\nexamples of {split}:\n\n{shown}", file=out)
    if pondering and answers:
        spreads = [float(np.ptp(answer.ponder_times["encoder"])) for answer in answers]
        widest = int(np.argmax(spreads))
        picture = ponder_picture(loaded, chosen[widest], answers[widest])
        picture.savefig(run_dir / PICTURE)
        print(f"ponder time of the example where it differs most ({widest + 1}): {run_dir / PICTURE}", file=out)
    return scores


def table(scores):
    """Returns the scores as lines of "key  value", values aligned."""
    width = max(map(len, scores), default=0)
    return "\n".join(f"{key:{width}}  {_number(value)}" for key, value in scores.items())


def _number(value):
    if isinstance(value, int):
        return str(value)
    return f"{value:.4f}" if value == 0 or 1e-3 <= abs(value) < 1e5 else f"{value:.2e}"


def merge_eval(run_dir, scores):
    """Replaces the scores of these splits in eval.json of a run directory; other splits stay. Returns its path."""
    path = pathlib.Path(run_dir) / "eval.json"
    before = read_json(path) if path.exists() else {}
    new = {key.split("/")[0] for key in scores}
    kept = {key: value for key, value in before.items() if key.split("/")[0] not in new}
    textio.write_text(path, json.dumps({**kept, **scores}, indent=2, sort_keys=True) + "\n")
    return path


def ponder_picture(loaded, example, answer):
    """Returns the figure of one answered example ({"inputs", "targets"} and `Decoded` with ponder times)."""
    from ut_keras.plots import ponder_times

    problem = loaded.problem
    right = problem.decode_target(example["targets"])
    title = f"{problem.name}: answer {answer.text!r}, right is {right!r}"
    times = answer.ponder_times
    source = source_tokens(problem, example["inputs"])
    steps = getattr(loaded.hparams, "act_max_steps", None)
    if "decoder" in times:
        target = tokens(problem.vocabularies["targets"], answer.ids)
        return ponder_times(source, times["encoder"], target, times["decoder"], title, steps)
    question = []
    if np.ndim(example["inputs"]) == 2:
        question = [len(source) - 1]
        source[-1] += "?"
    return ponder_times(source, times["encoder"], title=title, max_steps=steps, marked=question)


def source_tokens(problem, ids):
    """Returns a name for each position of an input: its symbol, or its sentence where inputs are sentences."""
    vocabulary = problem.vocabularies["inputs"]
    if np.ndim(ids) == 2:
        return [vocabulary.decode(row) for row in ids if np.any(row)]
    return tokens(vocabulary, ids)


def tokens(vocabulary, ids):
    """Returns the text of each id; the end token, which has none, is called "end"."""
    return [vocabulary.decode([int(id_)]) if id_ != 1 else "end" for id_ in ids if id_]


def _shown(problem, example, answer):
    right = problem.decode_target(example["targets"])
    mark = "" if answer.text == right else "  (wrong)"
    text = problem.decode_input(example["inputs"])
    return f"  input   {text}\n  answer  {answer.text}{mark}\n  right   {right}\n"


def publish(loaded, scores, out=None):
    """Prints scores as a table (on standard output) and adds them to eval.json of the run, with the weights' step."""
    if loaded.step is not None:
        scores = {**scores, **{f"{key.split('/')[0]}/step": loaded.step for key in scores}}
    print(table(scores), file=out or sys.stdout, flush=True)
    return merge_eval(loaded.output_dir, scores)
