"""Measures a training step of the Universal Transformer against keras-hub layers with the same arithmetic.

Universal Transformer without halting, against one keras-hub TransformerEncoder and one TransformerDecoder layer
called six times (keras_hub_model.py), interleaved in one run: forward, loss, backward, Adam. Attention and
residual dropout 0.1 on both sides, relu_dropout 0. That both give the same logits from the same weights is
checked first. The bar is 1.15 times keras-hub's time, the aim below 1. Prints one line of JSON per config.

Needs keras-hub: pip install -e '.[dev]'

    python tests/benchmarks/keras_hub_speed.py --config=small
"""

import argparse
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))


def main():
    """Parses the command line, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", choices=("small", "large", "both"), default="both", help="sizes (default: both)")
    parser.add_argument("--pairs", type=int, default=15, metavar="N", help="measured pairs (default: 15)")
    arguments = parser.parse_args()
    for name in ("small", "large") if arguments.config == "both" else (arguments.config,):
        print(json.dumps(compare(name, arguments.pairs)), flush=True)


def compare(name, pairs):
    """Returns the measurement of one config."""
    import numpy as np

    from tests.benchmarks import measure, workload
    from tests.benchmarks.keras_hub_model import KerasHubModel

    config = workload.CONFIGS[name]
    hparams = workload.hparams(config, relu_dropout=0.0)
    batch = workload.make_batch(config)
    ours, theirs = workload.make_model(hparams), KerasHubModel(hparams, workload.VOCABULARY)
    theirs.take_weights(ours)
    np.testing.assert_allclose(ours(batch), theirs(batch), rtol=1e-3, atol=1e-3)
    our_step = workload.training_step(ours, hparams)
    their_step = workload.training_step(theirs, hparams, ponder=False)
    seconds = measure.interleaved(
        {"universal_transformer": lambda: our_step(batch), "keras_hub": lambda: their_step(batch)}, pairs
    )
    return {
        "config": name,
        "pairs": pairs,
        "ratio": round(measure.median_ratio(seconds, "universal_transformer", "keras_hub"), 3),
        "universal_transformer_ms": measure.median_ms(seconds, "universal_transformer"),
        "keras_hub_ms": measure.median_ms(seconds, "keras_hub"),
    }


if __name__ == "__main__":
    main()
