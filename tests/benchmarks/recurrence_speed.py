"""Measures what tf.while_loop costs: the recurrence against the same block unrolled in Python, T 6, D 128.

Encoder side (B 32, L 64, H 4, F 512, dropout 0.1 in training), forward pass and training step (forward,
backward, Adam), median of 15 interleaved pairs. The bar is 1.15. Prints one line of JSON.

    python tests/benchmarks/recurrence_speed.py
"""

import argparse
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

B, L, D, H, F, T = 32, 64, 128, 4, 512, 6


def main():
    """Parses the command line, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=15, metavar="N", help="measured pairs (default: 15)")
    arguments = parser.parse_args()

    import numpy as np
    import tensorflow as tf

    from tests.benchmarks import measure

    rng = np.random.default_rng(0)
    x, goal = (tf.constant(rng.normal(size=[B, L, D]), tf.float32) for _ in range(2))
    mask = tf.ones([B, L], tf.bool)
    result = {"B": B, "L": L, "D": D, "T": T, "pairs": arguments.pairs}
    for mode in ("forward", "train"):
        layer = _recurrence()
        layer.build((None, None, D))
        runs = {}
        for name, call in (("while_loop", layer), ("unrolled", _unrolled(layer))):
            runs[name] = _train(layer, call, x, mask, goal) if mode == "train" else _forward(call, x, mask)
        _check_equal(runs, mode)
        seconds = measure.interleaved(runs, arguments.pairs)
        result[mode] = {
            "ratio": round(measure.median_ratio(seconds, "while_loop", "unrolled"), 3),
            "while_loop_ms": measure.median_ms(seconds, "while_loop"),
            "unrolled_ms": measure.median_ms(seconds, "unrolled"),
        }
    print(json.dumps(result))


def _recurrence():
    from ut_keras.layers.recurrence import UniversalRecurrence

    return UniversalRecurrence(
        max_steps=T, num_heads=H, filter_size=F, residual_dropout=0.1, attention_dropout=0.1, relu_dropout=0.1
    )


def _unrolled(layer):
    """Returns a call that does what `UniversalRecurrence.call` does without halting, in a Python loop."""
    import tensorflow as tf

    from ut_keras.layers.depth_loop import Pass
    from ut_keras.layers.dropout import fold_seed

    def call(x, padding_mask, seed=None):
        lengths = tf.reduce_sum(tf.cast(padding_mask, tf.int32), axis=1)
        context = layer.prepare(padding_mask, tf.range(tf.shape(x)[1])[None], lengths, None, None, T)
        carry, context = layer.begin(x, Pass(padding_mask, context, T, seed))
        for step in range(T):
            _, carry = layer.transform(carry, step, fold_seed(seed, step), context)
        return layer.type.result(carry), None

    return call


def _forward(call, x, mask):
    import tensorflow as tf

    @tf.function
    def run(x, mask):
        return call(x, mask)[0]

    return lambda: run(x, mask).numpy()


def _train(layer, call, x, mask, goal):
    import keras
    import tensorflow as tf

    optimizer = keras.optimizers.Adam(1e-4)
    optimizer.build(layer.trainable_variables)

    @tf.function
    def step(x, mask, goal, seed):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(call(x, mask, seed=seed)[0] - goal))
        optimizer.apply(tape.gradient(loss, [variable.value for variable in layer.trainable_variables]))
        return loss

    return lambda: step(x, mask, goal, tf.constant([1, 2])).numpy()


def _check_equal(runs, mode):
    """A comparison of different arithmetic would be worth nothing."""
    import numpy as np

    if mode == "forward":
        np.testing.assert_allclose(runs["while_loop"](), runs["unrolled"](), rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    main()
