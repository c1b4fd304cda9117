"""The batch plan, and the tf.data pipeline over it.

Legend: N examples, B examples of a batch, S and M padded positions of inputs and targets.

Which examples make up the batch of step k is a pure function of (lengths, settings, seed, k). No state
of an iterator exists: to resume at step k is to ask for step k, and any number of workers agree.
"""

import dataclasses

import numpy as np

from ut_keras.errors import UsageError, UserError

_SHORTEST_BUCKET = 8
_BUCKET_GROWTH = 1.25


@dataclasses.dataclass(frozen=True)
class Batch:
    """Examples of one batch, the positions that they are padded to, and the most examples in a batch of its bucket."""

    indices: np.ndarray
    input_length: int
    target_length: int
    rows: int


@dataclasses.dataclass(frozen=True)
class _Bucket:
    members: np.ndarray
    input_length: int
    target_length: int
    size: int


class BatchPlan:
    """Which examples make up the batch of each training step.

    Every epoch uses every kept example exactly once. Examples of similar length share a batch: a
    bucket's examples are shuffled and cut into batches, what is left over goes to the next longer
    bucket, and the last bucket is cut into batches of nearly equal size. All batches of a bucket
    have the same padded lengths, so that few shapes occur.

    Args:
        lengths: [N, 2] positions of inputs (0: none) and targets, end tokens included
            (`PackedSplit.lengths`). A sentence of a story counts as one position.
        batch_size: the most positions in a batch, inputs and targets with their padding together,
            over all replicas; with `fixed`, the number of examples.
        fixed: `batch_size` counts examples.
        max_length: longest inputs or targets (positions). None: no limit.
        seed: order of the examples and of the batches.
        long: what becomes of a longer example: "drop" leaves it out, "cut" keeps the first `max_length` positions
            of either side (a side that was cut has no end token). Both are counted.

    Attributes:
        dropped: number of examples longer than `max_length` that are left out.
        cut: number of examples longer than `max_length` that are cut.
        examples: number of examples in an epoch.
        steps_per_epoch: number of batches in an epoch; the same in every epoch.
        shapes: list of (examples, S, M), the shape of each bucket's batches, longest last.

    Raises:
        UserError: no example is left.
        UsageError: `batch_size` does not hold one example of the longest bucket.

    Example:

    >>> plan = BatchPlan(np.array([[3, 4], [2, 1], [9, 9]]), batch_size=1, fixed=True)
    >>> sorted(int(plan.batch(step)[0]) for step in range(plan.steps_per_epoch))
    [0, 1, 2]
    """

    def __init__(self, lengths, batch_size, fixed=False, max_length=None, seed=0, long="drop"):
        lengths = np.asarray(lengths, np.int64).reshape(-1, 2)
        longest = lengths.max(axis=1) if len(lengths) else np.zeros(0, np.int64)
        fits = longest <= max_length if max_length is not None else np.ones(len(lengths), bool)
        self.cut = int(np.sum(~fits)) if long == "cut" else 0
        if long == "cut" and max_length is not None:
            lengths, fits = np.minimum(lengths, max_length), np.ones(len(lengths), bool)
        kept = np.flatnonzero(fits)
        if not len(kept):
            limit = f" of at most max_length={max_length} positions" if len(lengths) else ""
            raise UserError(f"there is no training example{limit}; there are {len(lengths)} examples in all")
        self.dropped = len(lengths) - len(kept)
        self.examples = len(kept)
        self.seed = int(seed)
        self._buckets = _buckets(lengths, kept, batch_size, fixed)
        last = self._buckets[-1]
        if last.size < 1:
            raise UsageError(
                f"batch_size={batch_size} is too small for one example of {last.input_length} + "
                f"{last.target_length} positions; raise batch_size or lower max_length"
            )
        self.shapes = [(bucket.size, bucket.input_length, bucket.target_length) for bucket in self._buckets]
        self._epochs = {}
        self.steps_per_epoch = len(self._batches(0))

    def batch(self, step):
        """Returns the indices of the examples of training step `step` (from 0): [B] int64."""
        return self.padded_batch(step).indices

    def padded_batch(self, step):
        """Returns the `Batch` of training step `step` (from 0)."""
        epoch, index = divmod(int(step), self.steps_per_epoch)
        return self._batches(epoch)[index]

    def _batches(self, epoch):
        if epoch not in self._epochs:
            rng = np.random.default_rng([self.seed % 2**63, epoch])
            batches = _cut(self._buckets, rng.permutation)
            # Only the epoch at hand is remembered; any other is computed again when it is asked for.
            self._epochs = {epoch: [batches[i] for i in rng.permutation(len(batches))]}
        return self._epochs[epoch]


def evaluation_plan(lengths, batch_size, fixed=False, limit=None):
    """Returns the list of `Batch`es that holds each example once.

    Args:
        lengths: [N, 2], as of `BatchPlan`.
        batch_size: as of `BatchPlan`, but an example longer than that makes a batch of its own.
        fixed: `batch_size` counts examples.
        limit: take this many examples, evenly spaced over the split. None: all.
    """
    lengths = np.asarray(lengths, np.int64).reshape(-1, 2)
    kept = np.arange(len(lengths))
    if limit is not None and limit < len(lengths):
        kept = np.arange(limit) * len(lengths) // limit if limit > 0 else kept[:0]
    if not len(kept):
        return []
    buckets = _buckets(lengths, kept, batch_size, fixed)
    return _cut([dataclasses.replace(bucket, size=max(1, bucket.size)) for bucket in buckets], lambda members: members)


def training_batches(split, plan, start_step=0, fill_rows=False):
    """Returns the endless tf.data.Dataset of training batches from `start_step` on.

    Args:
        split: PackedSplit.
        plan: BatchPlan over `split.lengths`.
        start_step: the first step (from 0).
        fill_rows: add rows of padding, so that all batches of a bucket have one shape: each is compiled by XLA.

    Returns:
        Dataset of {"inputs": [B, S] or [B, S, W], "targets": [B, M]} int32, padded with 0.

    Raises:
        UsageError: the plan cuts stories, whose last sentence is the question.
    """
    if plan.cut and split.inputs is not None and split.inputs.width:
        raise UsageError(
            "long_examples=cut would cut off the question, which is the end of a story; "
            "raise max_length or take long_examples=drop"
        )

    def batches():
        step = start_step
        while True:
            batch = plan.padded_batch(step)
            features = _padded(split, batch)
            if fill_rows:
                features = {name: _filled(ids, batch.rows) for name, ids in features.items()}
            yield features
            step += 1

    return _dataset(batches, split)


def evaluation_batches(split, batch_size, fixed=False, limit=None):
    """Returns the tf.data.Dataset of batches with each example of `split` once.

    Args:
        split: PackedSplit.
        batch_size, fixed, limit: as of `evaluation_plan`.

    Returns:
        Dataset of the dictionaries of `training_batches`, each with "index" [B] int64: the
        examples' places in the split.
    """
    plan = evaluation_plan(split.lengths, batch_size, fixed, limit)

    def batches():
        for batch in plan:
            yield {**_padded(split, batch), "index": batch.indices}

    return _dataset(batches, split, index=True)


def _buckets(lengths, kept, batch_size, fixed):
    longest = lengths[kept].max(axis=1)
    number = np.searchsorted(_boundaries(int(longest.max())), longest)
    buckets, widths = [], np.zeros(2, np.int64)
    for value in np.unique(number):
        members = kept[number == value]
        # A bucket is at least as wide as the one before it, whose left-over examples it takes.
        widths = np.maximum(widths, lengths[members].max(axis=0))
        size = batch_size if fixed else batch_size // max(1, int(widths.sum()))
        buckets.append(_Bucket(members, int(widths[0]), int(widths[1]), int(size)))
    return buckets


def _boundaries(longest):
    boundaries = [_SHORTEST_BUCKET]
    while boundaries[-1] < longest:
        boundaries.append(int(boundaries[-1] * _BUCKET_GROWTH))
    return np.array(boundaries)


def _cut(buckets, order):
    batches, carried = [], np.zeros(0, np.int64)
    for bucket in buckets:
        pool = np.concatenate([carried, order(bucket.members)])
        whole = len(pool) // bucket.size * bucket.size
        if bucket is buckets[-1]:
            parts = np.array_split(pool, -(-len(pool) // bucket.size))
        else:
            parts = pool[:whole].reshape(-1, bucket.size)
            carried = pool[whole:]
        rows = max((len(part) for part in parts), default=0)
        batches += [Batch(part, bucket.input_length, bucket.target_length, rows) for part in parts]
    return batches


def _padded(split, batch):
    features = {"targets": split.targets.gather(batch.indices, batch.target_length)}
    if split.inputs is not None:
        features["inputs"] = split.inputs.gather(batch.indices, batch.input_length)
    return features


def _filled(ids, rows):
    return np.pad(ids, [(0, rows - len(ids))] + [(0, 0)] * (ids.ndim - 1))


def _dataset(generator, split, index=False):
    import tensorflow as tf

    signature = {"targets": tf.TensorSpec([None, None], tf.int32)}
    if split.inputs is not None:
        width = [split.inputs.width] if split.inputs.width else []
        signature["inputs"] = tf.TensorSpec([None, None, *width], tf.int32)
    if index:
        signature["index"] = tf.TensorSpec([None], tf.int64)
    # No prefetching, which a gather of a fraction of a millisecond does not need: it would run Python in a
    # thread of TensorFlow, and a program that ends while such a thread waits for Python's lock hangs.
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.inject_prefetch = False
    return tf.data.Dataset.from_generator(generator, output_signature=signature).with_options(options)
