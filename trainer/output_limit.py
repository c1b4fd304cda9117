"""How long an answer may become: the problem's own limit, or the input's length and something more, below a cap.

Shapes: B batch. Lengths count ids, end tokens included.
"""

import numpy as np

from ut_keras.errors import UsageError

MOST = 2**30  # an input's length on top of it is still an int32


class OutputLimit:
    """The most ids of an answer, as a function of its input's length.

    Args:
        problem: the `Problem`, whose `max_output_length` holds where `extra_length` is None.
        extra_length: an answer may have this many ids more than its input, a language model's continuation this many
            in all (its prompt is no input); None: the problem's own limit.
        max_output_length: no answer has more ids than this, whatever its input; None: no such cap.

    Attributes:
        extra_length, max_output_length: as given.

    Call arguments:
        lengths: real ids of the input: an int, an int array of any shape or an int32 tensor of any shape.

    Returns:
        The same kind of thing.

    Raises:
        UsageError: a number is out of range, or is given for a problem whose answers are classes, which have no
            length.

    Example:

    >>> OutputLimit(problem, extra_length=10, max_output_length=15)(4)      # doctest: +SKIP
    14
    """

    def __init__(self, problem, extra_length=None, max_output_length=None):
        for name, value, least in (("extra_length", extra_length, 0), ("max_output_length", max_output_length, 1)):
            if value is None:
                continue
            if not isinstance(value, int | np.integer) or not least <= value <= MOST:
                raise UsageError(f"{name}={value!r} is not an integer from {least} to {MOST}")
            if problem.target == "class":
                raise UsageError(f"{problem.name} answers with a class, which has no length: leave {name} out")
        self._problem = problem
        self._has_inputs = bool(problem.features.input_vocabulary_size)
        self.extra_length = extra_length
        self.max_output_length = max_output_length

    def __call__(self, lengths):
        if self.extra_length is None:
            limits = self._problem.max_output_length(lengths)
        else:
            limits = (lengths if self._has_inputs else lengths * 0) + self.extra_length
        if self.max_output_length is None:
            return limits
        if isinstance(limits, int):
            return min(limits, self.max_output_length)
        if isinstance(limits, np.ndarray | np.integer):
            return np.minimum(limits, self.max_output_length)
        import tensorflow as tf

        return tf.minimum(limits, self.max_output_length)
