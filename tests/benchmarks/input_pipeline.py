"""Measures how much faster the input pipeline makes batches than a model trains on them.

For each problem its own default set of hyperparameters, which are small enough for a CPU: the batch plan, the gathering
of packed tokens and tf.data on the one side, the training step on the other, side by side in one run. The bar: the
pipeline alone gives at least 3 times the examples per second. Prints one line of JSON.

    python tests/benchmarks/input_pipeline.py
"""

import argparse
import json
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

PROBLEMS = ("babi_qa_sentence_task1_1k", "algorithmic_identity_decimal40")


def main():
    """Parses the command line, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="+", default=PROBLEMS, metavar="NAME", help="what is learned")
    parser.add_argument("--rounds", type=int, default=20, metavar="N", help="training steps measured (default: 20)")
    parser.add_argument("--data_dir", metavar="DIR", help="prepared data")
    arguments = parser.parse_args()
    print(json.dumps({name: _measure(name, arguments) for name in arguments.problems}))


def _measure(name, arguments):
    import problems
    from problems.pipeline import BatchPlan, training_batches
    from tests.benchmarks.measure import interleaved
    from trainer.step import TrainStep, make_optimizer
    from ut_keras.models.build import build_model
    from ut_keras.registry import hparams_sets

    problem = problems.get(name).prepare(arguments.data_dir)
    hparams = hparams_sets.get(problem.default_hparams_set)()
    split = problem.split("train")
    plan = BatchPlan(split.lengths, hparams.batch_size, hparams.use_fixed_batch_size, hparams.max_length)
    batches = training_batches(split, plan)
    model = build_model(hparams, problem.features)
    step = TrainStep(model, make_optimizer(hparams, model), hparams, batches.element_spec)
    to_train, alone = iter(batches), iter(batches)
    trained, made = [], []

    def train():
        batch = next(to_train)
        trained.append(len(batch["targets"]))
        step(batch, len(trained) - 1)["loss"].numpy()

    def make():
        made.append(len(next(alone)["targets"]))

    seconds = interleaved({"train": train, "make": make}, arguments.rounds)
    rounds = slice(-arguments.rounds, None)
    rates = {
        "examples_per_second_alone": sum(made[rounds]) / sum(seconds["make"]),
        "examples_per_second_in_training": sum(trained[rounds]) / sum(seconds["train"]),
    }
    ratio = rates["examples_per_second_alone"] / rates["examples_per_second_in_training"]
    milliseconds = {f"ms_{what}": round(1000 * statistics.median(times), 3) for what, times in seconds.items()}
    return {"ratio": round(ratio, 1), **{what: round(rate, 1) for what, rate in rates.items()}, **milliseconds}


if __name__ == "__main__":
    main()
