"""Measures what SRU, hard and relative attention cost, and the scan inside SRU against tf.scan; prints lines of JSON.

First lines: the linear recurrence c_t = f_t c_(t-1) + b_t alone, forward and with gradients; `ratio` is the time
divided by that of tf.scan. Last line: a training step (forward, backward; T 6, D 128, H 4, F 512, B 16, L 128) of the
recurrence with each option, divided by that of the same without. Medians over rounds of one run.

    python tests/benchmarks/sru_speed.py
"""

import argparse
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

SHAPES = ([16, 40, 128], [16, 128, 128], [4, 400, 128], [32, 64, 512])
OPTIONS = {
    "plain": {},
    "SRU": {"sru": True},
    "hard, k 8": {"hard_attention_k": 8},
    "relative, 16": {"max_relative_position": 16},
}


def main():
    """Parses the command line, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=11, metavar="N", help="measured calls of each (default: 11)")
    rounds = parser.parse_args().rounds

    import numpy as np
    import tensorflow as tf

    from tests.benchmarks import measure
    from ut_keras.layers.linear_recurrence import linear_recurrence

    rng = np.random.default_rng(0)
    for shape in SHAPES:
        arguments = tf.constant(rng.uniform(size=shape), tf.float32), tf.constant(rng.normal(size=shape), tf.float32)
        line = {"what": "scan", "B, L, D": shape}
        for mode, wrap in (("forward", tf.function), ("train", _with_gradients)):
            functions = {"ours": wrap(linear_recurrence), "tf.scan": wrap(_scan)}
            runs = {name: _caller(function, arguments) for name, function in functions.items()}
            seconds = measure.interleaved(runs, rounds)
            line[mode] = {"ratio": round(measure.median_ratio(seconds, "ours", "tf.scan"), 3)}
            line[mode] |= {f"{name}_ms": measure.median_ms(seconds, name) for name in runs}
        print(json.dumps(line), flush=True)
    x, mask = tf.constant(rng.normal(size=[16, 128, 128]), tf.float32), tf.ones([16, 128], tf.bool)
    runs = {name: _caller(_training_step(options), (x, mask)) for name, options in OPTIONS.items()}
    seconds = measure.interleaved(runs, rounds)
    ratios = {name: round(measure.median_ratio(seconds, name, "plain"), 3) for name in runs}
    print(json.dumps({"what": "training step", "plain_ms": measure.median_ms(seconds, "plain"), "ratio": ratios}))


def _caller(function, arguments):
    import tensorflow as tf

    return lambda: tf.nest.flatten(function(*arguments))[-1].numpy()


def _scan(factors, terms):
    import tensorflow as tf

    factors, terms = (tf.transpose(x, [1, 0, 2]) for x in (factors, terms))
    states = tf.scan(lambda state, now: now[0] * state + now[1], (factors, terms), tf.zeros_like(terms[0]))
    return tf.transpose(states, [1, 0, 2])


def _with_gradients(function):
    import tensorflow as tf

    @tf.function
    def run(factors, terms):
        with tf.GradientTape() as tape:
            tape.watch([factors, terms])
            loss = tf.reduce_sum(function(factors, terms) ** 2)
        return tape.gradient(loss, [factors, terms])

    return run


def _training_step(options):
    import tensorflow as tf

    from ut_keras.layers.recurrence import UniversalRecurrence

    layer = UniversalRecurrence(max_steps=6, num_heads=4, filter_size=512, residual_dropout=0.1, **options)
    layer.build((None, None, 128))

    @tf.function
    def run(x, mask):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(x, mask, seed=tf.constant([1, 2]))[0] ** 2)
        return tape.gradient(loss, [variable.value for variable in layer.trainable_variables])

    return run


if __name__ == "__main__":
    main()
