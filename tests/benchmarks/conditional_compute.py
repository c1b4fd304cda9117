"""Measures what a halted position saves: an encoder with halting "frozen" against the dense loop; prints lines of JSON.

Source length 128, D 256, H 4, F 1024, M = 8 steps at most, batch 16, no padding. The halting steps are given: they are
spread evenly around the mean m, and one position of every sequence runs to M. `ratio` is the time divided by that of
the dense loop of M steps, the median over rounds of one run; `bar` is 1.25 m/M + 0.25. The last line is the early
exit: every position halts at step 2.

    python tests/benchmarks/conditional_compute.py
"""

import argparse
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

LENGTH, SIZE, STEPS, BATCH = 128, 256, 8, 16


def main():
    """Parses the command line, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=11, metavar="N", help="measured calls of each (default: 11)")
    rounds = parser.parse_args().rounds

    import numpy as np
    import tensorflow as tf

    from tests.benchmarks import measure
    from tests.benchmarks.planned_halting import encoder

    x = tf.constant(np.random.default_rng(0).normal(size=[BATCH, LENGTH, SIZE]), tf.float32)
    mask = tf.ones([BATCH, LENGTH], tf.bool)
    plans = {f"{share:.2f}": spread(share * STEPS) for share in (0.25, 0.5, 0.75)}
    plans["early exit"] = np.full([BATCH, LENGTH], 2)
    functions = {"dense": encoder(plans["0.75"], STEPS, SIZE, conditional=False)}
    functions |= {name: encoder(plan, STEPS, SIZE, conditional=True) for name, plan in plans.items()}
    seconds = measure.interleaved(
        {name: lambda run=run: run(x, mask).numpy() for name, run in functions.items()}, rounds
    )
    for name, plan in plans.items():
        mean = float(plan.mean()) / STEPS
        line = {"what": name, "mean_steps_of_M": round(mean, 3), "max_steps": int(plan.max())}
        line["ratio"] = round(measure.median_ratio(seconds, name, "dense"), 3)
        if plan.max() == STEPS:
            line["bar"] = round(1.25 * mean + 0.25, 3)
        print(
            json.dumps(
                {**line, "ms": measure.median_ms(seconds, name), "dense_ms": measure.median_ms(seconds, "dense")}
            )
        )


def spread(mean):
    """Returns halting steps [B, L] of about this mean, from 1 to M, M in every row."""
    import numpy as np

    lowest, highest = max(1, 2 * mean - STEPS), min(STEPS, 2 * mean - 1)
    steps = np.rint(np.linspace(lowest - 0.49, highest + 0.49, LENGTH)).astype(int).clip(1, STEPS)
    steps[-1] = STEPS
    rng = np.random.default_rng(1)
    return np.stack([rng.permutation(steps) for _ in range(BATCH)])


if __name__ == "__main__":
    main()
