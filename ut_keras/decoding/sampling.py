"""Sampling: at each position an id drawn at random, the same one whatever stands beside the row.

Legend: b rows, K samples of a row, V vocabulary size, C ids that may be drawn.
"""

import tensorflow as tf

from ut_keras.decoding.hypotheses import NONE, go_on
from ut_keras.layers.noise import uniform


class Sampling:
    """One step of sampling; see `stages.run`. Padding (id 0) is never drawn.

    The samples of a row are independent of each other and may be equal. Their log-probabilities are the model's own,
    before temperature and restrictions.

    Args:
        options: `DecodingOptions` with a temperature; `n_best` is the number of samples.
        seed: scalar int32; None: that of the options.
    """

    all_alive = True
    reorders = False

    def __init__(self, options, seed=None):
        self.beams = options.n_best
        self.options = options
        self.seed = options.seed if seed is None else seed

    def __call__(self, logits, alive, finished, position, rows, running):
        """Returns (Alive, Finished, stopped [b] bool) after one id for each sample; see `stages.run`."""
        noise = uniform(self.seed, rows.keys[:, tf.newaxis], tf.range(self.beams), position)
        options = self.options
        ids = draw(logits[..., 1:], noise, options.temperature, options.top_k, options.top_p) + 1
        gained = tf.gather(tf.nn.log_softmax(logits), ids, batch_dims=2)
        alive, finished = go_on(alive, finished, ids, gained, position)
        return alive, finished, tf.reduce_all(alive.log_probability == NONE, axis=1)


def draw(logits, noise, temperature, top_k=0, top_p=1.0):
    """Returns ids [b, K] int32, drawn by inversion: the first one at which the summed probability exceeds the noise.

    Args:
        logits: [b, K, V] float32.
        noise: [b, K] float32 in [0, 1).
        temperature: > 0; the probabilities are softmax(logits / temperature).
        top_k: only this many most probable ids; 0: all.
        top_p: only the smallest set of most probable ids, of those, whose probability reaches this. Of equally
            probable ids the lower one is in first.

    Source: Fan et al. 2018 (arXiv 1805.04833) for top_k, Holtzman et al. 2020 (arXiv 1904.09751) for top_p.
    """
    ids = None
    if top_k or top_p < 1:
        size = tf.shape(logits)[-1]
        logits, ids = tf.math.top_k(logits, tf.minimum(top_k, size) if top_k else size)
    # The best first, so that a small temperature gives -inf and not inf - inf.
    best = tf.reduce_max(logits, axis=-1, keepdims=True)
    probabilities = tf.nn.softmax((logits - best) / temperature)
    if top_p < 1:
        before = tf.cumsum(probabilities, axis=-1, exclusive=True)
        probabilities = tf.where(before < top_p, probabilities, 0.0)
    summed = tf.cumsum(probabilities, axis=-1)
    # Noise below 1 leaves the product below the sum, in float32 as well: an id without probability is never found.
    passed = summed <= noise[..., tf.newaxis] * summed[..., -1:]
    index = tf.reduce_sum(tf.cast(passed, tf.int32), axis=-1)
    return index if ids is None else tf.gather(ids, index, batch_dims=2)
