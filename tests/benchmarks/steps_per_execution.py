"""Measures what --steps_per_execution saves: the time between the training steps of a very small model.

A Universal Transformer of width 16 with at most 2 steps on strings of up to 8 symbols, 4 in a batch; 20 updates by 20
calls of TensorFlow and by one, side by side, batches made by the input pipeline. Both make the same numbers, which is
checked. Prints one line of JSON.

    python tests/benchmarks/steps_per_execution.py
"""

import argparse
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

import numpy as np

SYMBOLS, LONGEST, EXAMPLES = 8, 8, 1000


def main():
    """Parses the command line, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20, metavar="N", help="updates in one call (default: 20)")
    parser.add_argument("--rounds", type=int, default=30, metavar="N", help="measured rounds (default: 30)")
    arguments = parser.parse_args()

    from tests.benchmarks.measure import interleaved, median_ms, median_ratio

    runs = {"calls": _Run(1), "one_call": _Run(arguments.steps)}
    seconds = interleaved(
        {name: lambda run=run: run.steps(arguments.steps) for name, run in runs.items()}, arguments.rounds
    )
    losses = [np.concatenate(run.losses) for run in runs.values()]
    np.testing.assert_array_equal(*losses)
    result = {
        "speedup": round(median_ratio(seconds, "calls", "one_call"), 2),
        **{f"ms_{name}": median_ms(seconds, name) for name in runs},
        "steps": arguments.steps,
        "last_loss": round(float(losses[0][-1]), 4),
    }
    print(json.dumps(result))


class _Run:
    """A model in training that makes `count` updates in a call."""

    def __init__(self, count):
        import keras

        from problems.packed import Packed, PackedSplit
        from problems.pipeline import BatchPlan, training_batches
        from trainer.step import TrainStep, make_optimizer
        from ut_keras.hparams import Features, HParams
        from ut_keras.models.build import build_model

        rng = np.random.default_rng(0)
        strings = [np.append(rng.integers(2, 2 + SYMBOLS, rng.integers(1, LONGEST)), 1) for _ in range(EXAMPLES)]
        tokens = Packed.from_tokens(np.concatenate(strings), [len(string) for string in strings])
        split = PackedSplit("train", tokens, tokens)
        sizes = "hidden_size=16,filter_size=32,num_heads=2,recurrence_type=act,act_max_steps=2"
        hparams = HParams().override(f"{sizes},learning_rate_schedule=constant,learning_rate_constant=0.003")
        keras.utils.set_random_seed(0)
        model = build_model(hparams, Features("sequence", SYMBOLS + 2, SYMBOLS + 2))
        batches = training_batches(split, BatchPlan(split.lengths, 4, fixed=True))
        self._step = TrainStep(model, make_optimizer(hparams, model), hparams, batches.element_spec, several=count > 1)
        self._batches, self._count, self._done = iter(batches), count, 0
        self.losses = []

    def steps(self, number):
        """Makes `number` updates."""
        for _ in range(number // self._count):
            measured = self._step.run(self._batches, self._done, self._count)
            self._done += self._count
            self.losses.append(measured["loss"].numpy())


if __name__ == "__main__":
    main()
