"""Scores a model on a split: numbers of each example first, then sums and counts, so that no result depends on batches.

Legend: N examples, B batch.
"""

import functools
import sys

import numpy as np

from problems.pipeline import evaluation_batches
from trainer import eval_metrics, reduction
from trainer.answers import answer_ids
from trainer.output_limit import OutputLimit
from trainer.progress import Progress
from ut_keras.decoding.options import DecodingOptions

STRINGS = 1000  # of a chosen length
DECODED_BATCH = 128  # examples


class Evaluator:
    """Scores one model on the splits of its problem.

    Args:
        loaded: `Loaded`; holds the compiled functions, which are built once.
        log: `Progress`, told how far it is; None: nobody is.
        options: `DecodingOptions` of the free-running scores, its `max_steps` of all scores; None: greedy search.
        output_limit: `OutputLimit` of these; None: the problem's own limit.

    Raises:
        UsageError: the problem's `eval_metrics` has an unknown name.
    """

    def __init__(self, loaded, log=None, options=None, output_limit=None):
        self.loaded = loaded
        self.problem = loaded.problem
        self._options = options or DecodingOptions()
        self._output_limit = output_limit or OutputLimit(loaded.problem)
        self._doing = log.doing if log else lambda what: None
        features = loaded.problem.features
        self._sequence = features.target == "sequence"
        self._decodes = self._sequence and bool(features.input_vocabulary_size)
        self._metrics = eval_metrics.of_problem(loaded.problem)

    def evaluate(self, split, name, free_running=True, limit=None):
        """Scores one split.

        Args:
            split: a `PackedSplit`.
            name: how keys begin: "dev".
            free_running: also decode, where the answer is a sequence of its own.
            limit: score at most this many examples, evenly spaced over the split; None: all.

        Returns:
            Flat dict of "<name>/<metric>" to number, counts among them. A sequence's metrics are under
            "teacher_forced" (the model saw the right earlier tokens) and "free_running" (decoded).
            The problem's groups have the same metrics of their own, "<name>/<group>/<metric>". Where there is
            more to say than numbers it is in the dictionary "<name>/info": names of groups, signatures of scores, the
            options of the decoding.
        """
        indices = sample(len(split), limit)
        if len(indices) < len(split):
            print(f"{name}: {len(indices):,} of {len(split):,} examples", file=sys.stderr, flush=True)
        values = self._measure(split, name, indices, limit)
        scores, info = {"count": len(indices), **reduction.teacher_forced(values, self._sequence)}, {}
        decoded = None
        if free_running and self._decodes:
            decoded, texts = self._decode(split, name, indices)
            info["decoding"] = self._decoding()
            scores.update(reduction.free_running(decoded))
            for metric, value in self.problem.text_scores(*texts).items() if len(indices) else ():
                if isinstance(value, str):
                    info[metric] = value
                else:
                    scores[f"free_running/{metric}"] = value
        groups = {group: np.asarray(members, bool)[indices] for group, members in self.problem.groups(split).items()}
        for group, members in groups.items():
            part = {"count": int(members.sum())}
            if part["count"]:
                part.update(reduction.teacher_forced(reduction.chosen(values, members), self._sequence))
                if decoded:
                    part.update(reduction.free_running(reduction.chosen(decoded, members)))
            scores.update({f"{group}/{metric}": value for metric, value in part.items()})
        result = {f"{name}/{metric}": value for metric, value in scores.items()}
        if len(indices) < len(split):
            info["sample_of"] = len(split)
        if groups:
            info["groups"] = list(groups)
        if self._options.max_steps:
            info["max_steps"] = self._options.max_steps
        return {**result, f"{name}/info": info} if info else result

    @functools.cached_property
    def _measure_batch(self):
        """The `Measure` of the model at the depth that is asked for."""
        depth = self._options.max_steps
        if depth is None:
            return self.loaded.measure  # which others share
        from trainer.measure import Measure

        return Measure(self.loaded.model, self.problem, depth)

    def _decoding(self):
        """Returns what the free-running scores were made with, for the record."""
        limit = self._output_limit
        limits = {"extra_length": limit.extra_length, "max_output_length": limit.max_output_length}
        return {**self._options.to_dict(), **limits}

    def _measure(self, split, name, indices, limit):
        """Returns {what: [n] array} of what the model makes of the examples at `indices`, teacher-forced."""
        values, done = {}, 0
        wrong = split.extras.get("wrong")
        for batch in evaluation_batches(split, self._measure_batch.positions, limit=limit):
            index = batch["index"].numpy()
            alternatives = wrong[index] if wrong is not None else None
            for key, numbers in self._measure_batch(batch, alternatives, self._metrics).items():
                values.setdefault(key, np.zeros(len(split), np.float32))[index] = numbers
            done += len(index)
            self._doing(f"scoring {name}: {done:,} of {len(indices):,} examples")
        if not values:  # an empty split
            names = ("tokens", "right", "right_top5", "neg_log_likelihood", "sequences", "sequence_right")
            names += tuple(eval_metrics.columns(self._metrics))
            values = {key: np.zeros(0, np.float32) for key in names}
        return reduction.chosen(values, indices)

    def _decode(self, split, name, indices):
        """Returns ({what: [n] array} for `reduction.free_running`, (decoded texts, right texts)) of n examples.

        An unknown word in a decoded text is left out: it is no word of the right one.
        """
        print(f"{name}: decoding {len(indices):,} examples", file=sys.stderr, flush=True)
        examples = [split.example(int(index)) for index in indices]
        decoded = answer_ids(
            self.loaded,
            [example["inputs"] for example in examples],
            DECODED_BATCH,
            self._options,
            self._output_limit,
            keys=indices,
            doing=lambda done, tokens: self._doing(f"decoding {name}: {done:,} of {len(indices):,} examples"),
        )
        values = {what: np.zeros(len(indices), np.float32) for what in ("symbols", "right", "sequence_right")}
        for row, (example, answer) in enumerate(zip(examples, decoded, strict=True)):
            right = example["targets"][example["targets"] != 0]
            same = min(len(right), len(answer.ids))
            values["symbols"][row] = len(right)
            values["right"][row] = np.sum(right[:same] == answer.ids[:same])
            values["sequence_right"][row] = np.array_equal(right, answer.ids)
        # The references show their unknown words as well: those would be found in each other.
        unknown = self.problem.vocabularies["targets"].unknown
        outputs = [self.problem.decode_target(answer.ids[answer.ids != unknown]) for answer in decoded]
        return values, (outputs, [self.problem.decode_target(example["targets"]) for example in examples])


def sample(count, limit=None):
    """Returns the indices of at most `limit` of `count` examples (None: all), evenly spaced over the split."""
    return np.arange(count) if limit is None or count <= limit else np.arange(limit) * count // limit


def evaluate(loaded, split=None, lengths=(), limit=None, **how):
    """Scores a trained run, with a sign of life on standard error every half minute.

    Args:
        loaded: `trainer.load(...)`, its problem prepared.
        split: "train", "dev" or "test"; None: the problem's final one.
        lengths: lengths of the input, without end token; instead of the split, strings of exactly these
            lengths are made and scored (algorithmic problems only).
        limit: score at most this many examples of the split (None: all), or make this many strings of each length
            (None: 1,000).
        **how: `options` and `output_limit` of the `Evaluator`.

    Returns:
        Flat dict, keys "test/accuracy" or "length_40/free_running/sequence_accuracy"; see `Evaluator.evaluate`.
    """
    with Progress() as log:
        evaluator = Evaluator(loaded, log, **how)
        if not lengths:
            split = split or loaded.problem.final_split
            return evaluator.evaluate(loaded.problem.split(split), split, limit=limit)
        result = {}
        for length in lengths:
            made = loaded.problem.exact_length_split(length, limit or STRINGS, seed=length)
            result.update(evaluator.evaluate(made, f"length_{length}"))
        return result
