"""Greedy search: at each position the most probable id.

Legend: b rows, K = 1 hypothesis of a row, V vocabulary size.
"""

import tensorflow as tf

from ut_keras.decoding.hypotheses import NONE, go_on


class Greedy:
    """One step of greedy search; see `stages.run`.

    Args:
        ends: False: tensor2tensor's rule, a row goes on behind its end token until its limit, and padding is an id
            like others. True: it ends there, and padding (id 0) is never chosen.

    Source: T2T `T2TModel._greedy_infer`, here with an end of its own for each row of a batch.
    """

    beams = 1
    all_alive = True
    reorders = False

    def __init__(self, ends=True):
        self.ends = ends

    def __call__(self, logits, alive, finished, position, rows, running):
        """Returns (Alive, Finished, stopped [b] bool) after one id for each row; see `stages.run`."""
        log_probabilities = tf.nn.log_softmax(logits)
        first = 1 if self.ends else 0
        gained, ids = tf.math.top_k(log_probabilities[..., first:], 1)
        alive, finished = go_on(alive, finished, ids[..., 0] + first, gained[..., 0], position, self.ends)
        return alive, finished, tf.reduce_all(alive.log_probability == NONE, axis=1)
