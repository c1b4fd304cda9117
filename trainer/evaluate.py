"""Scores a model on a split: numbers of each example first, then sums and counts, so that no result depends on batches.

Legend: N examples, B batch.
"""

import sys

import numpy as np

from problems.pipeline import evaluation_batches
from trainer import reduction
from trainer.decode import answer_ids
from trainer.progress import Progress

DECODED_EXAMPLES = 200  # of a split, where text is not scored
DECODED_BATCH = 128  # examples


class Evaluator:
    """Scores one model on the splits of its problem.

    Args:
        loaded: `Loaded`; holds the compiled functions, which are built once.
        log: `Progress`, told how far it is; None: nobody is.
    """

    def __init__(self, loaded, log=None):
        self.loaded = loaded
        self.problem = loaded.problem
        self._doing = log.doing if log else lambda what: None
        features = loaded.problem.features
        self._sequence = features.target == "sequence"
        self._decodes = self._sequence and bool(features.input_vocabulary_size)

    def evaluate(self, split, name, free_running=True, limit=None):
        """Scores one split.

        Args:
            split: a `PackedSplit`.
            name: how keys begin: "dev".
            free_running: also decode, where the answer is a sequence of its own: slow without a decoding cache.
            limit: decode at most this many examples (evenly spaced); None: 200, or all where the problem scores text.

        Returns:
            Flat dict of "<name>/<metric>" to number, counts among them. A sequence's metrics are under
            "teacher_forced" (over all examples: the model saw the right earlier tokens) and "free_running" (decoded).
            The problem's groups have the same metrics of their own, "<name>/<group>/<metric>". Where there is
            more to say than numbers it is in the dictionary "<name>/info": names of groups, signatures of scores.
        """
        values = self._measure(split, name)
        scores, info = {"count": len(split), **reduction.teacher_forced(values, self._sequence)}, {}
        decoded, indices = None, None
        if free_running and self._decodes:
            indices = sample(len(split), limit or (len(split) if self.problem.decodes_all else DECODED_EXAMPLES))
            decoded, texts = self._decode(split, name, indices)
            scores.update(reduction.free_running(decoded))
            for metric, value in self.problem.text_scores(*texts).items() if len(indices) else ():
                if isinstance(value, str):
                    info[metric] = value
                else:
                    scores[f"free_running/{metric}"] = value
        groups = {group: np.asarray(members, bool) for group, members in self.problem.groups(split).items()}
        for group, members in groups.items():
            part = {"count": int(members.sum())}
            if part["count"]:
                part.update(reduction.teacher_forced(reduction.chosen(values, members), self._sequence))
            if decoded and members[indices].any():
                part.update(reduction.free_running(reduction.chosen(decoded, members[indices])))
            scores.update({f"{group}/{metric}": value for metric, value in part.items()})
        result = {f"{name}/{metric}": value for metric, value in scores.items()}
        if groups:
            info["groups"] = list(groups)
        return {**result, f"{name}/info": info} if info else result

    def _measure(self, split, name):
        """Returns {name: [N] array} of what the model makes of each example, teacher-forced."""
        values, done = {}, 0
        wrong = split.extras.get("wrong")
        for batch in evaluation_batches(split, self.loaded.measure.positions):
            index = batch["index"].numpy()
            for key, numbers in self.loaded.measure(batch, wrong[index] if wrong is not None else None).items():
                values.setdefault(key, np.zeros(len(split), np.float32))[index] = numbers
            done += len(index)
            self._doing(f"scoring {name}: {done:,} of {len(split):,} examples")
        if not values:  # an empty split
            names = ("tokens", "right", "neg_log_likelihood", "sequences", "sequence_right")
            values = {key: np.zeros(0, np.float32) for key in names}
        return values

    def _decode(self, split, name, indices):
        """Returns ({what: [n] array} for `reduction.free_running`, (decoded texts, right texts)) of n examples.

        An unknown word in a decoded text is left out: it is no word of the right one.
        """
        of = f"{len(indices):,} of {len(split):,}" if len(indices) < len(split) else f"all {len(split):,}"
        print(f"{name}: decoding {of} examples", file=sys.stderr, flush=True)
        examples = [split.example(int(index)) for index in indices]
        decoded = answer_ids(
            self.loaded,
            [example["inputs"] for example in examples],
            DECODED_BATCH,
            doing=lambda done: self._doing(f"decoding {name}: {done:,} of {len(indices):,} examples"),
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


def sample(count, limit):
    """Returns the indices of at most `limit` of `count` examples, evenly spaced over the split."""
    return np.arange(count) if count <= limit else np.arange(limit) * count // limit


def evaluate(loaded, split=None, lengths=(), limit=None):
    """Scores a trained run, with a sign of life on standard error every half minute.

    Args:
        loaded: `trainer.load(...)`, its problem prepared.
        split: "train", "dev" or "test"; None: the problem's final one.
        lengths: lengths of the input, without end token; instead of the split, strings of exactly these
            lengths are made and scored (algorithmic problems only): 1,000 up to 40, 200 up to 100, 64 beyond.
        limit: decode at most this many examples of the split (None: 200, or all where the problem scores text), or
            make this many strings.

    Returns:
        Flat dict, keys "test/accuracy" or "length_40/free_running/sequence_accuracy"; see `Evaluator.evaluate`.
    """
    with Progress() as log:
        evaluator = Evaluator(loaded, log)
        if not lengths:
            split = split or loaded.problem.final_split
            return evaluator.evaluate(loaded.problem.split(split), split, limit=limit)
        result = {}
        for length in lengths:
            count = limit or (1000 if length <= 40 else DECODED_EXAMPLES if length <= 100 else 64)
            made = loaded.problem.exact_length_split(length, count, seed=length)
            result.update(evaluator.evaluate(made, f"length_{length}", limit=count))
        return result
