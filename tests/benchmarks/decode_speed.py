"""Measures how many tokens per second a model decodes; prints one line of JSON.

Settings as in train_speed.py, with random weights: small: D 128, H 4, F 512, T 6; large: D 512, H 8, F 2048, T 6.
64 source tokens, 64 target tokens; the end token is never produced. Tokens are those of the answers: of a beam one
hypothesis for each row.

    python tests/benchmarks/decode_speed.py --config=small --halting=none --search=greedy --batch=32

With --against it also times another way, in turns in the same run, and prints `ratio`, the median over rounds of the
other's time divided by this one's: `uncached` runs encoder and decoder again over everything for each token, as
tensor2tensor's Universal Transformer does; `uncached_decoder` keeps the encoder's output and runs the decoder again
over the prefix (`DecodingOptions(cached=False)`); `greedy` is greedy search over as many rows as the beam has
hypotheses (--batch=32 --search=beam4 against 128 rows).

    python tests/benchmarks/decode_speed.py --search=greedy --batch=32 --against=uncached
    python tests/benchmarks/decode_speed.py --search=beam4 --batch=32 --against=greedy
"""

import argparse
import json
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

BEAM = 4


def main():
    """Parses the command line, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", choices=("small", "large"), default="small", help="sizes (default: small)")
    parser.add_argument(
        "--halting", choices=("none", "basic", "frozen"), default="none", help="adaptive computation time"
    )
    parser.add_argument("--search", choices=("greedy", f"beam{BEAM}"), default="greedy", help="(default: greedy)")
    parser.add_argument("--batch", type=int, default=32, metavar="N", help="rows decoded at once (default: 32)")
    parser.add_argument(
        "--against", choices=("uncached", "uncached_decoder", "greedy"), help="what is timed in turns with it"
    )
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="measured calls (default: 5)")
    arguments = parser.parse_args()

    import dataclasses

    from tests.benchmarks import measure, workload
    from ut_keras.decoding.options import DecodingOptions

    config = {**workload.CONFIGS[arguments.config], "batch": arguments.batch}
    model = workload.make_model(workload.hparams(config, halting=arguments.halting, dropout=0.0))
    options = DecodingOptions(beam_size=BEAM if arguments.search != "greedy" else 1)
    runs = {"run": workload.decoding(model, options, config)}
    if (arguments.against or "").startswith("uncached"):
        uncached, again = dataclasses.replace(options, cached=False), arguments.against == "uncached"
        runs["other"] = workload.decoding(model, uncached, config, encode_again=again)
    elif arguments.against == "greedy":
        wide = {**config, "batch": arguments.batch * options.beam_size}
        runs["other"] = workload.decoding(model, DecodingOptions(), wide)
    seconds = measure.interleaved(runs, arguments.rounds, warmup=1)
    median = statistics.median(seconds["run"])
    result = {
        **{name: getattr(arguments, name) for name in ("config", "halting", "search", "batch")},
        "tokens_per_second": round(arguments.batch * config["length"] / median, 1),
        "ms_per_batch": measure.median_ms(seconds, "run"),
    }
    if arguments.against:
        result |= {"against": arguments.against, "other_ms_per_batch": measure.median_ms(seconds, "other")}
        result["ratio"] = round(measure.median_ratio(seconds, "other", "run"), 3)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
