"""Measures what each default that differs from tensor2tensor changes: T2T's form against ours, on tiny models; a table.

Weights are random (seed 0), so the sizes of the numbers mean little and their being 0 a lot. The last rows train on
the copy task of copy_task.py (some two minutes each).

    python tests/benchmarks/tensor2tensor_effects.py
    python tests/benchmarks/tensor2tensor_effects.py --no_training
"""

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

IDS = [[5, 6, 7, 1]]
PADDED = [[5, 6, 7, 1, 0, 0, 0, 0]]
OTHER_FUTURE = [[5, 6, 2, 8]]


def rows():
    """Yields (what was measured, with T2T's form, with ours)."""
    import numpy as np
    import tensorflow as tf

    from tests import tiny_models
    from ut_keras.layers.halting import AdaptiveComputationTime
    from ut_keras.layers.recurrence import UniversalRecurrence

    def halting(form, **options):
        return {"halting": AdaptiveComputationTime(form, **options)}

    def encoder_change(options, what):
        model = tiny_models.make("encoder", **options)
        short, long = (model(np.array(ids), return_ponder=True) for ids in (IDS, PADDED))
        if what == "cost":
            costs = []
            for _, ponder in (short, long):
                one = ponder["encoder"]
                taken = tf.reduce_sum((one.ponder_times + one.remainders) * one.weights)
                costs.append(float(taken / tf.reduce_sum(one.weights)))
            return abs(costs[1] - costs[0]) / costs[0]
        return float(np.abs(long[0][:, :4] - short[0]).max())

    name = "ponder cost of a sentence of 4 tokens when 4 of padding join it: relative change"
    yield name, *(encoder_change(halting("basic", count_padding=padding), "cost") for padding in (True, False))
    name = "`global` halting, the same: largest change of its outputs"
    yield name, *(encoder_change(halting("global", count_padding=padding), "") for padding in (True, False))
    signal = {"signal": {"layout": "t2t", "shift_by_step": True}, "norm": "pre"}
    name = "start index `step`, the same"
    yield name, *(encoder_change({**signal, "step_length": length}, "") for length in ("padded", "true"))

    def leak(over):
        model = tiny_models.make("seq2seq", **halting("global", global_over=over))
        logits = [model({"inputs": np.array(IDS), "targets": np.array(ids)}).numpy() for ids in (IDS, OTHER_FUTURE)]
        return float(np.abs(logits[0][:, :3] - logits[1][:, :3]).max())

    yield "`global` halting in a decoder: change of earlier logits by later targets", leak("all"), leak("prefix")

    def weights(pays):
        layer = UniversalRecurrence(3, AdaptiveComputationTime("accumulated", remainder_at_limit=pays), num_heads=1)
        layer.build((None, None, 4))
        layer.halting.probability = lambda *rest: tf.constant([[0.25]])
        layer.transform = lambda carry, *rest: (carry, tf.ones_like(carry))
        return float(layer(tf.zeros([1, 1, 4]), tf.constant([[True]]))[0][0, 0, 0])

    yield "`accumulated` cut off at its step limit (p 0.25, 3 steps): sum of the weights", weights(False), weights(True)

    def first_step(softmax):
        options = {"recurrence": {"type": "dwa", "dwa_softmax": softmax}, "max_steps": 1, "norm": "pre"}
        model = tiny_models.make("encoder", **options)
        return float(np.abs(model(np.array([[5, 6, 7]])) - model(np.array([[3, 2, 4]]))).max())

    yield "`dwa` with one step: change of its output by other inputs", first_step("channels"), first_step("depth")

    def change_of_mean(count):
        model = tiny_models.make("encoder", norm="pre", conditional=count == 4)
        short, long = (model(np.array(ids)).numpy() for ids in (IDS, PADDED))
        return float(np.abs(long[:, :count].mean(axis=1) - short.mean(axis=1)).max())

    yield "mean over a classified sentence of 4 tokens when 4 of padding join it", change_of_mean(8), change_of_mean(4)

    def change_by_dropping(share):
        recurrence = {"type": "highway", "gate_ffn_layer": "dense_dropconnect", "dropconnect_dropout": share}
        model = tiny_models.make("encoder", norm="pre", recurrence=recurrence)
        first, second = (model(np.array(IDS), training=True).numpy() for _ in range(2))
        return float(np.abs(first - second).max())

    name = "`dense_dropconnect` at 0.5 in training: difference between two draws"
    yield name, change_by_dropping(0.0), change_by_dropping(0.5)


def training_rows():
    """Yields the same of trainings: (what, (accuracy, steps), (accuracy, steps))."""
    from tests.benchmarks import copy_task

    for kind, name, theirs in (("gru", "gru_mixes", "input"), ("dwa", "dwa_softmax", "channels")):
        results = []
        for option in ({name: theirs}, {}):
            accuracy, steps, _ = copy_task.learn(kind, recurrence={"type": kind, **option})
            results.append(f"{accuracy:.3f} after {steps} steps")
        yield f"`{kind}` on the copy task: sequence accuracy", *results


def main():
    """Parses the command line, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no_training", action="store_true", help="leave out the rows that train")
    arguments = parser.parse_args()
    print("| measured | T2T's form | here |\n|---|---|---|", flush=True)
    for name, theirs, ours in rows():
        print(f"| {name} | {theirs:.2g} | {ours:.2g} |", flush=True)
    for name, theirs, ours in () if arguments.no_training else training_rows():
        print(f"| {name} | {theirs} | {ours} |", flush=True)


if __name__ == "__main__":
    main()
