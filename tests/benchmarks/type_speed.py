"""Measures a training step of every recurrence type against `basic`, and what its multiplications explain; a table.

Encoder and decoder, B 16, L = M = 32, T 6, D 128, H 4, F 512, pre-norm, forward, backward and Adam; medians over
rounds that run all of them in turn. `operations` is the ratio of the counted matrix products
(ut_keras/models/flops.py): a type whose `time` is above it loses time elsewhere.

    python tests/benchmarks/type_speed.py
"""

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

B, L, V = 16, 32, 64
SIZES = {"hidden_size": 128, "num_heads": 4, "filter_size": 512, "num_rec_steps": 6, "act_max_steps": 6}
PLAIN = {"layer_prepostprocess_dropout": 0.0, "attention_dropout": 0.0, "relu_dropout": 0.0}
VARIANTS = {
    "basic": {},
    "highway": {"recurrence_type": "highway"},
    "highway, gates of everything": {
        "recurrence_type": "highway",
        "gates_inputs": "ist",
        "couple_carry_transform_gates": False,
    },
    "skip": {"recurrence_type": "skip"},
    "dwa": {"recurrence_type": "dwa"},
    "rnn": {"recurrence_type": "rnn"},
    "gru": {"recurrence_type": "gru"},
    "lstm": {"recurrence_type": "lstm"},
    "lstm behind a transition": {"recurrence_type": "lstm", "add_ffn_unit_to_the_transition_function": True},
    # A bias that lets nobody halt before the limit: all six steps, as the others.
    "act basic": {"recurrence_type": "act", "act_halting_bias_init": -9.0},
    "act frozen": {"recurrence_type": "act", "act_type": "frozen", "act_halting_bias_init": -9.0},
    "add_sru": {"add_sru": True},
    "mixed with 2 and 2 blocks": {"mix_with_transformer": "before_ut,after_ut"},
}


def main():
    """Parses the command line, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, metavar="N", help="measured rounds (default: 15)")
    arguments = parser.parse_args()

    from tests.benchmarks import measure
    from ut_keras.hparams import Features, HParams
    from ut_keras.models.flops import forward_flops

    features = Features("sequence", V, V)
    sets = {name: HParams(**SIZES, **PLAIN, **options) for name, options in VARIANTS.items()}
    seconds = measure.interleaved({name: _step(hparams, features) for name, hparams in sets.items()}, arguments.rounds)
    basic = forward_flops(sets["basic"], features, L, L)
    print("| recurrence | ms a step | time | operations |\n|---|---|---|---|")
    for name, hparams in sets.items():
        time = measure.median_ratio(seconds, name, "basic")
        operations = forward_flops(hparams, features, L, L) / basic
        print(f"| {name} | {measure.median_ms(seconds, name):.0f} | {time:.2f} | {operations:.2f} |")


def _step(hparams, features):
    import keras
    import numpy as np
    import tensorflow as tf

    from ut_keras.losses import token_cross_entropy_sums
    from ut_keras.models.build import build_model

    model = build_model(hparams, features)
    optimizer = keras.optimizers.Adam(1e-4)
    optimizer.build(model.trainable_variables)
    values = [variable.value for variable in model.trainable_variables]
    ids = tf.constant(np.random.default_rng(0).integers(2, V, [B, L]), tf.int32)

    @tf.function
    def step(ids):
        with tf.GradientTape() as tape:
            total, count = token_cross_entropy_sums(model({"inputs": ids, "targets": ids}, training=True), ids, 0.1)
            loss = total / count + sum(model.losses)
        optimizer.apply(tape.gradient(loss, values, unconnected_gradients="zero"))
        return loss

    return lambda: step(ids).numpy()


if __name__ == "__main__":
    main()
