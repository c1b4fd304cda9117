"""Dealing the rows of a batch to replicas and to the micro-batches of gradient accumulation.

Shapes: B rows, P parts.
"""

import tensorflow as tf


def deal(ids, part, parts):
    """Returns the rows of one part: every `parts`-th, from the `part`-th on.

    All parts get the same number of rows; what is missing is padding. Shapes stay static where they are, and `part`
    may be a tensor: so it is under XLA and on a TPU.

    Args:
        ids: [B, ...] int.
        part: which part, from 0: int or int32 scalar.
        parts: how many there are, an int.

    Returns:
        [ceil(B / parts), ...] int.
    """
    if parts == 1:
        return ids
    rows = ids.shape[0] if ids.shape[0] is not None else tf.shape(ids)[0]
    padded = tf.pad(ids, [[0, -rows % parts]] + [[0, 0]] * (ids.shape.rank - 1))
    rest = [size if size is not None else tf.shape(ids)[axis] for axis, size in enumerate(ids.shape)][1:]
    return tf.gather(tf.reshape(padded, [-1, parts, *rest]), part, axis=1)


def accumulate(function, batch, parts):
    """Returns the sum of `function` over the parts of a batch, one after the other: one part is in memory at a time.

    Args:
        function: (the part of `batch`, its number) -> (structure of tensors to be added up, structure of tensors of
            which the largest counts). Their shapes and types do not depend on the part.
        batch: {name: [B, ...]} ids.
        parts: how many, an int.
    """

    def part_of(index):
        return function({name: deal(ids, index, parts) for name, ids in batch.items()}, index)

    if parts == 1:
        return part_of(0)
    part_of = tf.function(part_of)  # traced once, for the first part and for the others

    def body(index, sums, largest):
        more_sums, more_largest = part_of(index)
        sums = tf.nest.map_structure(tf.add, sums, more_sums)
        return index + 1, sums, tf.nest.map_structure(tf.maximum, largest, more_largest)

    first_sums, first_largest = part_of(tf.constant(0))
    _, sums, largest = tf.while_loop(
        lambda index, *_: index < parts,
        body,
        (tf.constant(1), first_sums, first_largest),
        maximum_iterations=parts - 1,
    )
    return sums, largest
