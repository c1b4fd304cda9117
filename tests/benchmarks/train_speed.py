"""Measures how many examples per second a model trains on, or passes forward; prints one line of JSON.

Configs (vocabulary 1000, dropout 0.1 in training, no padding, source and target of 64 tokens):
small: D 128, H 4, F 512, T 6, batch 32; large: D 512, H 8, F 2048, T 6, batch 8.

    python tests/benchmarks/train_speed.py --config=small --model=universal_transformer --halting=none --mode=train
"""

import argparse
import json
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))


def main():
    """Parses the command line, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", choices=("small", "large"), default="small", help="sizes (default: small)")
    parser.add_argument(
        "--model", choices=("universal_transformer", "transformer"), default="universal_transformer", help="what runs"
    )
    parser.add_argument("--halting", choices=("none", "basic"), default="none", help="adaptive computation time")
    parser.add_argument("--mode", choices=("train", "forward"), default="train", help="a training step, or logits only")
    parser.add_argument("--steps", type=int, default=20, metavar="N", help="measured steps (default: 20)")
    arguments = parser.parse_args()
    if arguments.model == "transformer" and arguments.halting != "none":
        parser.error("--halting=basic: the transformer has no recurrence that could halt")

    from tests.benchmarks import measure, workload

    config = workload.CONFIGS[arguments.config]
    hparams = workload.hparams(config, arguments.model, arguments.halting)
    model, batch = workload.make_model(hparams), workload.make_batch(config)
    step = workload.training_step(model, hparams) if arguments.mode == "train" else workload.forward(model)
    seconds = measure.interleaved({"run": lambda: step(batch)}, arguments.steps)
    median = statistics.median(seconds["run"])
    result = {
        **{name: getattr(arguments, name) for name in ("config", "model", "halting", "mode")},
        "examples_per_second": round(config["batch"] / median, 2),
        "ms_per_step": measure.median_ms(seconds, "run"),
        "parameters": model.count_params(),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
