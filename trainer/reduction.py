"""From numbers of each example to the scores of a split or of a part of it: sums and counts, divided at the end.

Legend: N examples. Nothing of TensorFlow: which batch an example was in is forgotten.
"""

import math

import numpy as np

from trainer import eval_metrics

LAST_WORD = "last_word/"  # how names of the last word's numbers begin
_LARGEST = 700.0  # e to this is the largest that a float holds


def teacher_forced(values, sequence):
    """Returns {metric: number} of what `Measure` gave, over all N examples.

    Args:
        values: {name: [N] array}.
        sequence: targets are sequences, whose token scores are named "teacher_forced".

    Perplexity is e to the mean negative log-likelihood of the real tokens, never smoothed. Names of tensor2tensor's
    are beside ours: accuracy_per_sequence is sequence_accuracy, neg_log_perplexity is log_perplexity below zero.
    """
    kind = "teacher_forced/" if sequence else ""
    tokens = _total(values["tokens"])
    nll = _mean(values["neg_log_likelihood"], tokens)
    result = {f"{kind}accuracy": _mean(values["right"], tokens)}
    if sequence:
        result[f"{kind}sequence_accuracy"] = _mean(values["sequence_right"], _total(values["sequences"]))
        result["tokens"] = int(tokens)
    result[f"{kind}log_perplexity"] = nll
    result[f"{kind}perplexity"] = perplexity(nll)
    result[f"{kind}accuracy_top5"] = _mean(values["right_top5"], tokens)
    if sequence:
        result[f"{kind}accuracy_per_sequence"] = result[f"{kind}sequence_accuracy"]
    result[f"{kind}neg_log_perplexity"] = 0.0 - nll
    result.update({kind + name: score for name, score in eval_metrics.scores(values).items()})
    result.update(_last_word(values))
    for name in values:
        if name.startswith("ponder_time/"):
            side = name.partition("/")[2]
            result[f"{name}/mean"] = _mean(values[name], _total(values[f"positions/{side}"]))
            result[f"{name}/max"] = float(np.max(values[f"ponder_max/{side}"], initial=0.0))
    return result


def free_running(values):
    """Returns {metric: number} of decoded sequences.

    Args:
        values: {"symbols", "right", "sequence_right"} of [N] arrays: ids of the right answer (end token included), how
            many of them stand in their place in the decoded one, and whether both are the same.
    """
    count = len(values["symbols"])
    return {
        "free_running/sequence_accuracy": _mean(values["sequence_right"], count),
        "free_running/accuracy": _mean(values["right"], _total(values["symbols"])),
        "free_running/count": count,
    }


def chosen(values, members):
    """Returns {name: [n] array}, the examples where `members` [N] is true."""
    return {name: array[members] for name, array in values.items()}


def _last_word(values):
    """Returns the scores of the last word, where it is measured."""
    if LAST_WORD + "words" not in values:
        return {}
    words = {name.removeprefix(LAST_WORD): array for name, array in values.items() if name.startswith(LAST_WORD)}
    count, pairs = _total(words["words"]), _total(words["pairs"])
    ranks = words["rank"][words["words"] > 0]
    result = {
        "last_word/accuracy": _mean(words["right"], count),
        "last_word/perplexity": perplexity(-_mean(words["log_probability"], count)),
        "last_word/median_rank": float(np.median(ranks)) if len(ranks) else 0.0,
        "last_word/count": int(count),
    }
    if pairs:
        result["preference/accuracy"] = _mean(words["preferred"], pairs)
        result["preference/count"] = int(pairs)
    return result


def _total(values):
    return float(np.sum(values, dtype=np.float64))


def _mean(values, count):
    return _total(values) / count if count else 0.0


def perplexity(log_perplexity):
    """Returns e to a mean negative log-likelihood, and a large number instead of infinity."""
    return math.exp(min(log_perplexity, _LARGEST))
