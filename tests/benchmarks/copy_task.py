"""Trains every recurrence type and every halting form on copying until nothing is wrong; prints a table.

Strings of length 8 over 10 symbols (vocabulary 12), T 4, D 32, H 4, F 64, pre-norm, Adam 3e-3, 64 strings a step.
Every 50 steps the model decodes 256 strings that training never saw; sequence accuracy is the share that comes back
whole. 1.0 ends a run; `random`, which draws when to halt, ends at 0.95.

    python tests/benchmarks/copy_task.py
    python tests/benchmarks/copy_task.py --only=gru,frozen
"""

import argparse
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

LENGTH, SYMBOLS, EOS = 8, 10, 1
TYPES = ("basic", "highway", "skip", "dwa", "rnn", "gru", "lstm")
FORMS = ("basic", "accumulated", "global", "random", "frozen")
GOALS = {"act random": 0.95}
MOST_STEPS = 3000


def configurations():
    """Returns {name: arguments of `UniversalRecurrence`}: the types, and basic with each halting."""
    types = {name: {"recurrence": name} for name in TYPES}
    return types | {f"act {form}": {"halting": form} for form in FORMS}


def learn(name, seed=0, most_steps=MOST_STEPS, **options):
    """Returns (sequence accuracy, training steps, seconds of training and evaluation without the first compilation).

    `options` win over the configuration of that name.
    """
    import keras
    import numpy as np
    import tensorflow as tf

    from ut_keras.losses import token_cross_entropy_sums
    from ut_keras.models.universal_transformer import UniversalTransformer

    keras.utils.set_random_seed(seed)
    rng = np.random.default_rng(seed)
    sizes = {"hidden_size": 32, "num_heads": 4, "filter_size": 64, "max_steps": 4, "norm": "pre"}
    model = UniversalTransformer(SYMBOLS + 2, **sizes, **{**configurations()[name], **options})
    optimizer = keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(3e-3, most_steps, alpha=0.1))
    optimizer.build(model.trainable_variables)
    values = [variable.value for variable in model.trainable_variables]
    test = _strings(np.random.default_rng(seed + 1000), 256)
    seen = {tuple(row) for row in test}

    @tf.function
    def step(ids):
        with tf.GradientTape() as tape:
            logits = model({"inputs": ids, "targets": ids}, training=True)
            total, count = token_cross_entropy_sums(logits, ids, 0.0)
            loss = total / count + sum(model.losses)
        gradients = tape.gradient(loss, values, unconnected_gradients="zero")
        optimizer.apply(tf.clip_by_global_norm(gradients, 1.0)[0])
        return loss

    accuracy, start = 0.0, None
    for number in range(1, most_steps + 1):
        rows = [row for row in _strings(rng, 64) if tuple(row) not in seen]
        step(tf.constant(np.resize(rows, [64, LENGTH + 1])))
        start = start or time.perf_counter()
        if number % 50 == 0:
            accuracy = float(np.mean(np.all(model.generate(test, max_length=LENGTH + 1) == test, axis=1)))
            if accuracy >= GOALS.get(name, 1.0):
                break
    return accuracy, number, time.perf_counter() - start


def _strings(rng, count):
    import numpy as np

    symbols = rng.integers(2, SYMBOLS + 2, [count, LENGTH])
    return np.pad(symbols, [(0, 0), (0, 1)], constant_values=EOS).astype("int32")


def main():
    """Parses the command line, trains and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="NAMES", help="of these alone, by a part of the name, with commas")
    parser.add_argument("--seed", type=int, default=0, help="seed of weights and strings (default: 0)")
    arguments = parser.parse_args()
    parts = arguments.only.split(",") if arguments.only else [""]
    print("| recurrence | sequence accuracy | steps | seconds |\n|---|---|---|---|", flush=True)
    for name in configurations():
        if any(part in name for part in parts):
            accuracy, steps, seconds = learn(name, arguments.seed)
            print(f"| {name} | {accuracy:.3f} | {steps} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
