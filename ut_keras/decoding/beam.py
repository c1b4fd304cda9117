"""Beam search with a length penalty, finished hypotheses kept apart from alive ones.

Legend: b rows, K beam size, V vocabulary size, C candidates of each hypothesis.
"""

import tensorflow as tf

from ut_keras.decoding.decoder import EOS, PAD
from ut_keras.decoding.hypotheses import NONE, Alive, Finished
from ut_keras.decoding.penalty import length_penalty


class Beam:
    """One step of beam search; see `stages.run`.

    The 2K best continuations of the alive hypotheses are looked at: those with the end token compete for the K
    finished places by score = log-probability / length_penalty(produced ids), of the others the K best stay alive.
    Each hypothesis has one continuation with the end token, so that at least K others are among the 2K. Of equal
    ones the hypothesis that was better before, then the lower id, then the earlier end wins. Padding (id 0) is never
    produced.

    A row stops when no alive hypothesis can still enter its `n_best` finished ones: the best one that is alive, with
    certain ids up to the row's limit, would not beat the last of them. As log-probabilities fall and the penalty (alpha
    >= 0) grows, none can do better, and what is returned is what a search without stopping would return.

    Args:
        options: `DecodingOptions`. `coupled_stop` takes T2T's rules in place of the above: padding may be produced, and
            all rows stop when in each of them the best finished score ("best"), or the worst finished score of all rows
            ("all"), beats that bound.

    Source: Wu et al. 2016 (arXiv 1609.08144); T2T beam_search.py.
    """

    all_alive = False
    reorders = True

    def __init__(self, options):
        self.beams = options.beam_size
        self.alpha = options.alpha
        self.n_best = options.n_best
        self.coupled_stop = options.coupled_stop

    def __call__(self, logits, alive, finished, position, rows, running):
        """Returns (Alive, Finished, stopped [b] bool) after one id for each hypothesis; see `stages.run`."""
        log_probability, ids, parents = self._candidates(logits, alive)
        ends = ids == EOS
        penalty = length_penalty(position + 1 - rows.lengths, self.alpha)[:, tf.newaxis]
        finished = self._finish(finished, tf.where(ends, log_probability, NONE), penalty, parents, position + 1)
        kept, places = tf.math.top_k(tf.where(ends, NONE, log_probability), self.beams)
        alive = Alive(kept, tf.gather(ids, places, batch_dims=1), tf.gather(parents, places, batch_dims=1))
        bound = kept[:, 0] / length_penalty(rows.limits - rows.lengths, self.alpha)
        return alive, finished, self._stopped(bound, finished, running)

    def _candidates(self, logits, alive):
        """Returns the best continuations: log-probability, id, hypothesis, each [b, 2K], best first."""
        log_probabilities = tf.nn.log_softmax(logits)
        # Of one hypothesis no more than 2K can be among the best 2K of all; one more, as padding is no candidate.
        count = 2 * self.beams + 1
        if logits.shape[-1] is None or logits.shape[-1] < count:
            count = tf.minimum(count, tf.shape(logits)[-1])
        gained, ids = tf.math.top_k(log_probabilities, count)
        if not self.coupled_stop:
            gained = tf.where(ids == PAD, NONE, gained)
        size = [tf.shape(ids)[0], self.beams * count]
        total = tf.reshape(alive.log_probability[..., tf.newaxis] + gained, size)
        log_probability, places = tf.math.top_k(total, 2 * self.beams)
        ids = tf.gather(tf.reshape(ids, size), places, batch_dims=1)
        return log_probability, ids, places // count

    def _finish(self, finished, log_probability, penalty, parents, length):
        """Returns the K best of those that are finished and of candidates [b, 2K] of one length."""
        score = tf.concat([finished.score, log_probability / penalty], axis=1)
        lengths = tf.concat([finished.lengths, tf.fill(tf.shape(parents), length)], axis=1)
        score, places = tf.math.top_k(score, self.beams)
        return Finished(
            score,
            tf.gather(tf.concat([finished.log_probability, log_probability], axis=1), places, batch_dims=1),
            tf.gather(lengths, places, batch_dims=1),
            tf.gather(tf.concat([finished.parents, parents], axis=1), places, batch_dims=1),
        )

    def _stopped(self, bound, finished, running):
        if not self.coupled_stop:
            return bound <= finished.score[:, self.n_best - 1]
        reached = finished.score[:, 0] if self.coupled_stop == "best" else tf.reduce_min(finished.score)
        return tf.broadcast_to(tf.reduce_all((reached > bound) | ~running), tf.shape(bound))
