"""Trains one small adaptive Universal Transformer to copy under each precision and compares the losses.

Copies of 1 to 12 digits (`algorithmic_identity_decimal40`), D 32, H 2, F 64, at most 4 steps of ACT, 32 examples a
batch, no dropout; the same weights at the start and the same batches. Losses are means over a tenth of the steps:
the first tenth, and the last. The bar: each learns, and mixed_bfloat16 ends within 5 % of float32. One line of JSON
for each precision; `ratio` is the final loss over float32's, `finer` the share of accumulated halting probabilities
that bfloat16 could not hold: 0 if they were summed in it.

    python tests/benchmarks/precision.py --steps=300
"""

import argparse
import json
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

POLICIES = ("float32", "mixed_bfloat16", "mixed_float16")
RECIPE = {
    "hidden_size": 32,
    "filter_size": 64,
    "num_heads": 2,
    "act_max_steps": 4,
    "max_length": 13,
    "batch_size": 32,
    "position_start_index": None,
    "layer_prepostprocess_dropout": 0.0,
    "learning_rate_constant": 3e-3,
    "learning_rate_warmup_steps": 50,
}


def main():
    """Parses the command line, trains and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300, metavar="N", help="training steps (default: 300)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of weights and data order (default: 0)")
    parser.add_argument("--data_dir", metavar="DIR", help="where the data are kept (default: a temporary directory)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        for result in compare(arguments.data_dir or temporary, arguments.steps, arguments.seed):
            print(json.dumps(result), flush=True)


def compare(data_dir, steps=300, seed=0, policies=POLICIES):
    """Yields the result of `train` for each policy, float32 first, with its "ratio" to float32."""
    float32 = None
    for policy in policies:
        result = train(policy, data_dir, steps, seed)
        float32 = float32 or result
        yield {**result, "ratio": round(result["final_loss"] / float32["final_loss"], 4)}


def train(policy, data_dir, steps, seed):
    """Trains `steps` steps under a dtype policy and returns what the module's docstring tells of."""
    import keras
    import numpy as np

    import problems
    from trainer.devices import precision
    from trainer.step import TrainStep, make_optimizer
    from ut_keras.models.build import build_model
    from ut_keras.registry import hparams_sets

    sizes = {"train_size": 4000, "dev_size": 10, "test_size": 10, "long_size": 2}
    problem = problems.get("algorithmic_identity_decimal40", **sizes)
    problem.prepare(data_dir)
    split = problem.split("train")
    hparams = hparams_sets.get("adaptive_universal_transformer_algorithmic")().override(RECIPE)
    hparams = hparams.override({"train_steps": steps})
    keras.utils.set_random_seed(seed)
    with precision("none" if policy == "float32" else policy):
        model = build_model(hparams, problem.features)
        optimizer = make_optimizer(hparams, model)
    plan = problems.BatchPlan(split.lengths, hparams.batch_size, True, hparams.max_length, seed)
    batches = problems.training_batches(split, plan)
    step = TrainStep(model, optimizer, hparams, batches.element_spec, seed=seed)
    start, losses = time.perf_counter(), []
    for number, batch in zip(range(steps), batches, strict=False):
        losses.append(float(step(batch, number)["loss"]))
    tenth = max(steps // 10, 1)
    return {
        "policy": policy,
        "first_loss": round(float(np.mean(losses[:tenth])), 4),
        "final_loss": round(float(np.mean(losses[-tenth:])), 4),
        "finer": round(finer_than_bfloat16(model, batch), 3),
        "seconds": round(time.perf_counter() - start, 1),
    }


def finer_than_bfloat16(model, batch):
    """Returns the share of the accumulated halting probabilities of real positions that bfloat16 cannot hold.

    Raises:
        AssertionError: a sum of adaptive computation time is not float32.
    """
    import tensorflow as tf

    _, sides = model(batch, return_ponder=True)
    shares = []
    for ponder in sides.values():
        sums = ponder.ponder_times, ponder.remainders, ponder.halting_probability
        assert all(value.dtype == tf.float32 for value in sums)
        held = tf.cast(tf.cast(ponder.halting_probability, tf.bfloat16), tf.float32)
        finer = tf.cast(held != ponder.halting_probability, tf.float32) * ponder.weights
        shares.append(tf.reduce_sum(finer) / (tf.reduce_sum(ponder.weights) * len(ponder.halting_probability)))
    return float(tf.reduce_mean(shares))


if __name__ == "__main__":
    main()
