"""Recurrence type "dwa": each step works on a weighted mean of all states so far.

Legend: B batch, L length, D hidden size, T steps.
"""

import keras
import tensorflow as tf

from ut_keras.layers.choices import one_of
from ut_keras.layers.projection import project
from ut_keras.layers.recurrence_type import RecurrenceType


class DepthwiseAttention(RecurrenceType):
    """Attention over depth: a step refines sum_k softmax_k(dense(m_k)) m_k, m_k = state after k steps + e_k.

    State 0 is the input. No query takes part, so that a state's weight relative to the others never changes: running
    sums of exp(logit) m and exp(logit), against the largest logit so far, stand for the whole memory. One step costs
    one product and memory that does not grow with the steps.

    Args:
        depth_embedding: whether there are learned vectors e_k.
        dwa_elements: each channel has weights of its own; else a position has one for all of its channels.
        dwa_softmax: "depth"; or "channels", T2T's form: each earlier state is multiplied by a softmax over its own
            channels (by 1 without `dwa_elements`) and the newest state is left out, so that the first step reads zeros.

    Source: T2T universal_transformer_util.py (universal_transformer_depthwise_attention).
    """

    def __init__(self, depth_embedding=True, dwa_elements=True, dwa_softmax="depth", **shared):
        super().__init__(**shared)
        self.depth_embedding = depth_embedding
        self.dwa_elements = dwa_elements
        self.over_channels = one_of("dwa_softmax", dwa_softmax, ("depth", "channels")) == "channels"

    def build(self, shape):
        size = shape[-1]
        self._table = None
        if self.depth_embedding:
            normal = keras.initializers.RandomNormal(stddev=size**-0.5)
            rows = (self.max_steps + 1, size)
            self._table = self.add_weight(name="depth_embedding", shape=rows, initializer=normal)
        units = size if self.dwa_elements else 1
        self._kernel = self.add_weight(name="kernel", shape=(size, units), initializer="glorot_uniform")
        self._bias = self.add_weight(name="bias", shape=(units,), initializer="zeros")
        self.built = True

    def prepare(self, steps):
        if self._table is not None and steps > self.max_steps:
            raise ValueError(
                f"max_steps={steps}: the depth embedding has rows for {self.max_steps} steps; a model with "
                "depth_embedding=False can run deeper than it was trained"
            )
        weights = [self._kernel, self._bias, *([] if self._table is None else [self._table])]
        kernel, bias, *table = (tf.cast(tf.convert_to_tensor(weight), self.compute_dtype) for weight in weights)
        return kernel, bias, [rows * kernel.shape[0] ** 0.5 for rows in table]

    def begin(self, x, weights, real=None, seed=None):
        if self.over_channels:
            return {"state": x, "read": tf.zeros_like(x), "newest": self._over_channels(x, 0, weights)}, []
        value, logits = self._slot(x, 0, weights)
        largest = tf.stop_gradient(logits)
        share = tf.exp(logits - largest)
        sums = {"total": value * share, "weight": share, "largest": largest}
        return {"state": x, "read": tf.cast(value, x.dtype), **sums}, []

    def read(self, carry):
        return carry["read"]

    def step(self, carry, new, step, weights, constants, real=None, seed=None):
        if self.over_channels:
            newest = self._over_channels(new, step + 1, weights)
            return {"state": new, "read": carry["read"] + carry["newest"], "newest": newest}
        value, logits = self._slot(new, step + 1, weights)
        # The shift by it cancels in total / weight, and so does its gradient.
        largest = tf.stop_gradient(tf.maximum(carry["largest"], logits))
        before, share = tf.exp(carry["largest"] - largest), tf.exp(logits - largest)
        total, weight = carry["total"] * before + value * share, carry["weight"] * before + share
        read = tf.cast(total / weight, new.dtype)
        return {"state": new, "read": read, "total": total, "weight": weight, "largest": largest}

    def output(self, carry):
        return carry["state"]

    def _slot(self, state, index, weights):
        """Returns (m_k [B, L, D], its logits [B, L, D or 1]), both float32."""
        kernel, bias, table = weights
        value = state + table[0][index] if table else state
        return tf.cast(value, tf.float32), tf.cast(project(value, kernel) + bias, tf.float32)

    def _over_channels(self, state, index, weights):
        value, logits = self._slot(state, index, weights)
        return tf.cast(value * tf.nn.softmax(logits), state.dtype)
