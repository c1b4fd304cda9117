"""One forward pass of a batch, teacher-forced, as numbers of each example: what evaluation and `score` add up.

Shapes: B batch, L source length (S sentences of W words where inputs are [B, S, W]), M target length (end token
included).
"""

import numpy as np
import tensorflow as tf

from trainer import eval_metrics
from trainer.reduction import LAST_WORD
from ut_keras import metrics

POSITIONS = 8192  # of a batch at most, source and target with padding
LOGITS = 2**27  # of a batch at most, in 0.5 GB


class Measure:
    """The compiled forward pass of one model; it serves every batch shape with one trace.

    Args:
        model: the model.
        problem: its `Problem`.
        max_steps: recurrent steps at most; None: the model's own.

    Attributes:
        positions: most positions of a batch to be measured (source and target, with padding), which bounds its memory:
            fewer where the vocabulary is large. One example may have more.

    Call arguments:
        batch: {"targets": [B, M]} and, where the problem has them, "inputs" [B, L] or [B, S, W], int; other keys
            are not read.
        alternatives: [B] int, ids to compare the last word with, 0: none; read where `problem.scored` is "last".
        names: metrics of whole sequences (`eval_metrics.METRICS`) that are measured too.

    Returns:
        {name: [B] float32 array}: the names of `metrics.by_example`, and "right_top5" (tokens whose id is among the
        five most probable ones); those of `eval_metrics.columns`; where the last word counts those of
        `metrics.last_word`, as "last_word/rank"; for each side that ponders "ponder_time/<side>" (sum over real
        positions), "positions/<side>" and "ponder_max/<side>".
    """

    def __init__(self, model, problem, max_steps=None):
        features = problem.features
        signature = {"targets": tf.TensorSpec([None, None], tf.int32)}
        if features.input_vocabulary_size:
            signature["inputs"] = tf.TensorSpec([None] * (3 if features.words_per_sentence else 2), tf.int32)
        unknown = problem.vocabularies["targets"].unknown  # to predict that is to know no word
        last = features.target == "sequence" and problem.scored == "last"
        depth = {} if max_steps is None else {"max_steps": max_steps}

        @tf.function(input_signature=[signature, tf.TensorSpec([None], tf.int32)])
        def measure(batch, alternatives):
            logits, ponder = model(batch, training=False, return_ponder=True, **depth)
            numbers = metrics.by_example(logits, batch["targets"])
            numbers["right_top5"] = metrics.right_in_top(logits, batch["targets"])
            if last:
                words = metrics.last_word(logits, batch["targets"], alternatives, unknown)
                numbers.update({LAST_WORD + name: values for name, values in words.items()})
            for side, trace in ponder.items():
                times = trace.ponder_times * trace.weights
                numbers[f"ponder_time/{side}"] = tf.reduce_sum(times, axis=1)
                numbers[f"positions/{side}"] = tf.reduce_sum(trace.weights, axis=1)
                numbers[f"ponder_max/{side}"] = tf.reduce_max(times, axis=1)
            return numbers, tf.argmax(logits, axis=-1, output_type=tf.int32)

        self._names = tuple(signature)
        self._classes = features.target_vocabulary_size
        self.compiled = measure

    @property
    def positions(self):
        return max(1, min(POSITIONS, LOGITS // self._classes))

    def __call__(self, batch, alternatives=None, names=()):
        if alternatives is None:
            alternatives = np.zeros(len(batch["targets"]))
        batch = {name: batch[name] for name in self._names}
        numbers, predictions = self.compiled(batch, np.asarray(alternatives, np.int32))
        numbers = {name: values.numpy() for name, values in numbers.items()}
        if names:
            numbers.update(eval_metrics.by_example(names, np.asarray(batch["targets"]), predictions.numpy()))
        return numbers
