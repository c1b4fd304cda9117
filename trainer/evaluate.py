"""Scores a model on a split: sums and counts over real tokens to the end, so that no result depends on batches.

Shapes: B batch, L source length, M target length (end token included).
"""

import collections
import math
import sys

import numpy as np
import tensorflow as tf

from problems.pipeline import evaluation_batches
from trainer.decode import answer_ids
from ut_keras import metrics

DECODED_EXAMPLES = 200  # of a split
DECODED_BATCH = 128  # examples
TOKENS = 8192  # positions of a batch, source and target with padding


class Evaluator:
    """Scores one model on the splits of its problem; holds the compiled functions, which are built once.

    Args:
        loaded: `Loaded`, or any object with `model`, `problem` and `answers`.
    """

    def __init__(self, loaded):
        self.loaded = loaded
        self.problem = loaded.problem
        features = loaded.problem.features
        self._sequence = features.target == "sequence"
        self._signature = {"targets": tf.TensorSpec([None, None], tf.int32)}
        if features.input_vocabulary_size:
            self._signature["inputs"] = tf.TensorSpec([None] * (3 if features.words_per_sentence else 2), tf.int32)

        @tf.function(input_signature=[self._signature])
        def sums(batch):
            logits, ponder = loaded.model(batch, training=False, return_ponder=True)
            return metrics.sums(logits, batch["targets"]), {side: _ponder(trace) for side, trace in ponder.items()}

        self._sums = sums

    def evaluate(self, split, name, free_running=True, limit=None):
        """Scores one split.

        Args:
            split: a `PackedSplit`.
            name: how keys begin: "dev".
            free_running: also decode, where the answer is a sequence: slow without a decoding cache.
            limit: decode at most this many examples (evenly spaced); None: 200.

        Returns:
            Flat dict of "<name>/<metric>" to number, counts among them. A sequence's metrics are under
            "teacher_forced" (over all examples: the model saw the right earlier tokens) and
            "free_running" (decoded).
        """
        result = {f"{name}/count": len(split)}
        result.update(self._teacher_forced(split, name))
        if free_running and self._sequence and "inputs" in self._signature:
            result.update(self._free_running(split, name, limit or DECODED_EXAMPLES))
        return result

    def _teacher_forced(self, split, name):
        totals, largest = collections.defaultdict(lambda: np.zeros(2)), {}
        for batch in evaluation_batches(split, TOKENS):
            scores, ponder = self._sums({key: batch[key] for key in self._signature})
            for metric, pair in scores.items():
                totals[metric] += np.asarray(pair, np.float64)
            for side, (total, count, most) in ponder.items():
                totals[side] += np.asarray([total, count], np.float64)
                largest[side] = max(largest.get(side, 0.0), float(most))
        mean = {metric: total / count if count else 0.0 for metric, (total, count) in totals.items()}
        prefix = f"{name}/teacher_forced" if self._sequence else name
        nll = float(mean["neg_log_likelihood"])
        result = {f"{prefix}/accuracy": float(mean["accuracy"])}
        if self._sequence:
            result[f"{prefix}/sequence_accuracy"] = float(mean["sequence_accuracy"])
            result[f"{name}/tokens"] = int(totals["accuracy"][1])
        result[f"{prefix}/log_perplexity"] = nll
        result[f"{prefix}/perplexity"] = math.exp(min(nll, 700.0))
        for side, most in largest.items():
            result[f"{name}/ponder_time/{side}/mean"] = float(mean[side])
            result[f"{name}/ponder_time/{side}/max"] = most
        return result

    def _free_running(self, split, name, limit):
        indices = sample(len(split), limit)
        examples = [split.example(int(index)) for index in indices]
        decoded = answer_ids(self.loaded, [example["inputs"] for example in examples], DECODED_BATCH)
        symbols = right_symbols = right_sequences = 0
        for example, answer in zip(examples, decoded, strict=True):
            right = np.asarray(example["targets"])
            right = right[right != 0]
            same = min(len(right), len(answer.ids))
            matches = int(np.sum(right[:same] == answer.ids[:same]))
            symbols += len(right)
            right_symbols += matches
            right_sequences += matches == len(right) == len(answer.ids)
        return {
            f"{name}/free_running/sequence_accuracy": right_sequences / max(len(indices), 1),
            f"{name}/free_running/accuracy": right_symbols / max(symbols, 1),
            f"{name}/free_running/count": len(indices),
        }


def _ponder(trace):
    times = trace.ponder_times * trace.weights
    return tf.reduce_sum(times), tf.reduce_sum(trace.weights), tf.reduce_max(times)


def sample(count, limit):
    """Returns the indices of at most `limit` of `count` examples, evenly spaced over the split."""
    return np.arange(count) if count <= limit else np.arange(limit) * count // limit


def evaluate(loaded, split="test", lengths=(), limit=None):
    """Scores a trained run.

    Args:
        loaded: `trainer.load(...)`, its problem prepared.
        split: "train", "dev" or "test".
        lengths: lengths of the input, without end token; instead of the split, strings of exactly these
            lengths are made and scored (algorithmic problems only): 1,000 up to 40, 200 up to 100, 64 beyond.
        limit: decode at most this many examples of the split (None: 200), or make this many strings.

    Returns:
        Flat dict, keys "test/accuracy" or "length_40/free_running/sequence_accuracy".
    """
    evaluator = Evaluator(loaded)
    if not lengths:
        return evaluator.evaluate(loaded.problem.split(split), split, limit=limit)
    result = {}
    for length in lengths:
        count = limit or (1000 if length <= 40 else DECODED_EXAMPLES if length <= 100 else 64)
        made = loaded.problem.exact_length_split(length, count, seed=length)
        print(f"length {length}: decoding {count} strings", file=sys.stderr, flush=True)
        result.update(evaluator.evaluate(made, f"length_{length}", limit=count))
    return result
