"""What is shown of a run: tables of scores, decoded examples beside what was right, and ponder time in a picture."""

import pathlib
import sys

import numpy as np

from problems import textio
from trainer.answers import answer_ids
from trainer.eval_json import merge_eval, with_info
from trainer.evaluate import Evaluator, sample
from trainer.tables import table
from trainer.token_texts import source_tokens, tokens

EXAMPLES = 5
PICTURE = "ponder.png"
_LONGEST = 400  # characters of an example's text


def final_report(loaded, evaluator=None, split=None, out=None):
    """Scores the final split and shows a few of its answers; the end of a training run.

    Writes into the run directory: the scores to eval.json (beside those of other splits), the examples
    to decodes.txt, and, where positions halt by themselves, the ponder time of the example in which it differs
    most to ponder.png.

    Args:
        loaded: `Loaded`, its problem prepared, with an output_dir.
        evaluator: `Evaluator` of `loaded`, whose compiled functions are used again; None makes one.
        split: name of the split to report; None: "test", or "dev" where there is no test split.
        out: stream for the report; None: standard output.

    Returns:
        The dict of scores that eval.json holds.
    """
    out = out or sys.stdout
    run_dir = pathlib.Path(loaded.output_dir)
    problem = loaded.problem
    split = split or problem.final_split
    examples = problem.split(split)
    scores = publish(loaded, (evaluator or Evaluator(loaded)).evaluate(examples, split), out)

    chosen = [examples.example(int(index)) for index in sample(len(examples), EXAMPLES)]
    pondering = getattr(loaded.hparams, "recurrence_type", None) == "act"
    if problem.features.input_vocabulary_size:
        answers = answer_ids(loaded, [example["inputs"] for example in chosen])
    else:
        chosen = [parted(example["targets"], problem.scored) for example in chosen]
        chosen = [example for example in chosen if len(example["inputs"])]
        answers = answer_ids(
            loaded,
            [example["inputs"] for example in chosen],
            limits=[1 if problem.scored == "last" else len(example["targets"]) for example in chosen],
        )
    shown = "\n".join(_shown(problem, *pair) for pair in zip(chosen, answers, strict=True))
    textio.write_text(run_dir / "decodes.txt", shown)
    print(f"\nexamples of {split}:\n\n{shown}", file=out)
    if pondering and answers:
        sides = [answer.ponder_times for answer in answers]
        spreads = [float(np.ptp(times["encoder" if "encoder" in times else "decoder"])) for times in sides]
        widest = int(np.argmax(spreads))
        picture = ponder_picture(loaded, chosen[widest], answers[widest])
        picture.savefig(run_dir / PICTURE)
        print(f"ponder time of the example where it differs most ({widest + 1}): {run_dir / PICTURE}", file=out)
    return scores


def parted(ids, scored):
    """Returns {"inputs": prompt, "targets": what comes behind it} of a language model's example.

    The prompt is the first half, or all but the last word where that is what is scored; empty where there is no word.
    """
    ids = np.asarray(ids)
    words = len(ids) - (len(ids) > 0 and ids[-1] == 1)
    place = words - 1 if scored == "last" else words - words // 2
    return {"inputs": ids[: max(place, 0)], "targets": ids[max(place, 0) :]}


def ponder_picture(loaded, example, answer):
    """Returns the figure of one answered example ({"inputs", "targets"} and `Decoded` with ponder times)."""
    from ut_keras.plots import ponder_times

    problem = loaded.problem
    times = answer.ponder_times
    steps = getattr(loaded.hparams, "act_max_steps", None)
    if "encoder" not in times:
        title = f"{problem.name}: behind {_brief(problem.decode_input(example['inputs']), 60)!r}"
        produced = tokens(problem.vocabularies["targets"], answer.ids)
        return ponder_times(produced, times["decoder"], title=title, max_steps=steps)
    right = problem.decode_target(example["targets"])
    title = f"{problem.name}: answer {_brief(answer.text, 60)!r}, right is {_brief(right, 60)!r}"
    source = source_tokens(problem, example["inputs"])
    if "decoder" in times:
        target = tokens(problem.vocabularies["targets"], answer.ids)
        return ponder_times(source, times["encoder"], target, times["decoder"], title, steps)
    question = []
    if np.ndim(example["inputs"]) == 2:
        question = [len(source) - 1]
        source[-1] += "?"
    return ponder_times(source, times["encoder"], title=title, max_steps=steps, marked=question)


def _shown(problem, example, answer):
    """Returns the lines of one example. Another continuation or translation is not wrong, only other."""
    right = problem.decode_target(example["targets"])
    text = problem.decode_input(example["inputs"])
    continues = not problem.features.input_vocabulary_size
    judged = not problem.free_form and (not continues or problem.scored == "last")
    mark = "  (wrong)" if judged and answer.text != right else ""
    labels = ("prompt", "goes on", "true") if continues else ("input", "answer", "right")
    width = max(map(len, labels)) + 2
    rows = zip(labels, (_brief(text), _brief(answer.text) + mark, _brief(right)), strict=True)
    return "".join(f"  {label:{width}}{value}\n" for label, value in rows)


def _brief(text, longest=_LONGEST):
    """Returns `text` on one line, without its middle where it is longer than `longest` characters."""
    text = text.replace("\n", "\\n")
    half = longest // 2
    return text if len(text) <= longest else f"{text[:half]} ... {text[-half:]}"


def publish(loaded, scores, out=None):
    """Prints scores as a table (on standard output) and adds them to eval.json of the run, with what made them.

    Returns:
        The dict that was added: the scores, "<split>/step" and "<split>/info".
    """
    scores = with_info(loaded, scores)
    print(table(scores), file=out or sys.stdout, flush=True)
    merge_eval(loaded.output_dir, scores)
    return scores
