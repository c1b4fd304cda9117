"""An encoder whose positions halt when they are told to, for timing and for comparing loops.

Shapes: B batch, L length, D hidden size.
"""

import tensorflow as tf

from ut_keras.layers.halting import AdaptiveComputationTime
from ut_keras.layers.recurrence import UniversalRecurrence


class PlannedHalting(AdaptiveComputationTime):
    """Halting "frozen" in which position (b, l) halts in step plan[b, l] ([B, L] int), from 1."""

    def __init__(self, plan):
        super().__init__("frozen")
        # n equal probabilities reach the threshold of 0.99 in the n-th step, and not before.
        self.each = tf.constant(0.995 / plan, tf.float32)

    def probability(self, state, context, padding_mask, causal, seed, step, view=None, packed=None):
        return self.each if packed is None else packed.pack(self.each[..., None])[..., 0]


def encoder(plan, max_steps, hidden_size, conditional, num_heads=4, **options):
    """Returns a compiled function (x [B, L, D], mask [B, L]) -> [B, L, D] of an encoder with these halting steps."""
    sizes = {"num_heads": num_heads, "filter_size": 4 * hidden_size}
    layer = UniversalRecurrence(max_steps, "frozen", conditional=conditional, **sizes, **options)
    layer.halting = PlannedHalting(plan)
    layer.build((None, None, hidden_size))

    @tf.function(input_signature=[tf.TensorSpec([None, None, hidden_size]), tf.TensorSpec([None, None], tf.bool)])
    def run(x, mask):
        return layer(x, mask)[0]

    return run
