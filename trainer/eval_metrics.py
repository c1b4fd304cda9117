"""tensor2tensor's metrics of whole sequences, under its names: numbers of each example, then the score of a split.

All are teacher-forced: a prediction is the most probable id at each real position of the target, the end token's among
them, given the right earlier ones. It is as long as the target, so that BLEU has no brevity penalty.

tensor2tensor scores each batch with its padding as tokens (and what is predicted there) and averages over batches. Here
padding is left out, ROUGE is a mean over examples, BLEU is that of the whole split, edit distance is all edits over
all real tokens: no score depends on how examples were batched.
"""

import dataclasses
from collections.abc import Callable

import numpy as np

from problems.edit_distance import edit_distance
from ut_keras import overlap
from ut_keras.errors import UsageError
from ut_keras.registry import near_names

# What every problem reports, where its targets are such.
ALWAYS = ("accuracy", "accuracy_top5", "accuracy_per_sequence", "neg_log_perplexity")


@dataclasses.dataclass(frozen=True)
class Metric:
    """A metric of two id lists.

    Attributes:
        columns: names of what is kept of an example.
        measure: (reference, prediction) -> their values, float numbers that are added up over examples.
        score: the sums, in the same order -> the score.
    """

    columns: tuple
    measure: Callable
    score: Callable


def _counts(reference, prediction):
    matches, possible = overlap.ngram_matches(reference, prediction)
    return *matches, *possible


def _mean_of(score):
    return Metric(("sum", "count"), lambda *pair: (score(*pair), 1), _ratio)


def _ratio(total, count):
    return total / count if count else 0.0


METRICS = {
    "approx_bleu_score": Metric(
        tuple(f"{what}_{order + 1}" for what in ("matches", "possible") for order in range(overlap.ORDERS)),
        _counts,
        lambda *sums: overlap.bleu(sums[: overlap.ORDERS], sums[overlap.ORDERS :]),
    ),
    "rouge_2_fscore": _mean_of(overlap.rouge_2),
    "rouge_L_fscore": _mean_of(overlap.rouge_l),
    # To predict padding where there is a token is to leave the token out.
    "edit_distance": Metric(
        ("edits", "tokens"),
        lambda reference, prediction: (edit_distance(reference, [i for i in prediction if i]), len(reference)),
        _ratio,
    ),
}


def of_problem(problem):
    """Returns those of a problem's `eval_metrics` that are of whole sequences, names of `METRICS`; () for a class.

    Raises:
        UsageError: one of them is unknown.
    """
    for name in problem.eval_metrics:
        if name not in METRICS and name not in ALWAYS:
            known = (*ALWAYS, *METRICS)
            raise UsageError(
                f"{problem.name}: eval_metrics has {name!r}, which is no metric{near_names(name, known)}; "
                f"all names: {', '.join(known)}"
            )
    if problem.features.target != "sequence":
        return ()
    return tuple(name for name in METRICS if name in problem.eval_metrics)


def columns(names):
    """Returns the names of the arrays of these metrics: ["edit_distance/edits", "edit_distance/tokens"]."""
    return [f"{name}/{column}" for name in names for column in METRICS[name].columns]


def by_example(names, targets, predictions):
    """Returns {column: [B] float32 array}, the names of `columns`; 0 for a row without a real token.

    Args:
        names: names of `METRICS`.
        targets: [B, M] int array; id 0 is padding.
        predictions: [B, M] int array, the ids that were predicted at the same positions.

    >>> by_example(["edit_distance"], np.array([[3, 4, 1, 0]]), np.array([[3, 1, 1, 5]]))["edit_distance/edits"]
    array([1.], dtype=float32)
    """
    numbers = np.zeros([len(columns(names)), len(targets)], np.float32)
    for row, (ids, predicted) in enumerate(zip(targets, predictions, strict=True)):
        reference, prediction = ids[ids != 0].tolist(), predicted[ids != 0].tolist()
        if reference:
            numbers[:, row] = [value for name in names for value in METRICS[name].measure(reference, prediction)]
    return dict(zip(columns(names), numbers, strict=True))


def scores(values):
    """Returns {metric: score} of those metrics whose columns are in {column: [N] array}."""
    result = {}
    for name, metric in METRICS.items():
        names = columns([name])
        if names[0] in values:
            result[name] = metric.score(*(float(np.sum(values[column], dtype=np.float64)) for column in names))
    return result
