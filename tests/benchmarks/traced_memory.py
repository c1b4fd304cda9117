"""Measures what a process keeps of every further run that it trains, evaluates, decodes and exports.

A tiny model of tiny_algo, again and again, in one child process with our custom gradients and in one with TensorFlow's.
The first round is not counted: it loads what all share. Linux only (/proc). Prints one line of JSON.

    python tests/benchmarks/traced_memory.py
"""

import argparse
import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from tests.benchmarks import decode_memory  # noqa: E402

SMALL = "hidden_size=16,filter_size=32,num_heads=2,num_rec_steps=2,act_max_steps=2,train_steps=2,eval_every=2"
SIZES = "train_size=99,dev_size=9,test_size=9,long_size=2"


def main():
    """Parses the command line, measures both in processes of their own, and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=4, help="after the first (default: 4)")
    parser.add_argument("--row", choices=("ours", "tensorflow"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.row:
        print(json.dumps(_measure(arguments.row, arguments.rounds)))
        return
    found = {}
    for row in ("ours", "tensorflow"):
        command = [sys.executable, __file__, "--row", row, "--rounds", str(arguments.rounds)]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        found[row] = json.loads(output.stdout.splitlines()[-1])
    print(json.dumps(found))


def journey(folder, changes="", flags=()):
    """Trains, evaluates, decodes and exports a tiny model.

    Args:
        folder: an empty directory.
        changes: hparams after SMALL, ",name=value" each.
        flags: more flags of the training.
    """
    import trainer

    run, data = f"--output_dir={folder / 'run'}", f"--data_dir={folder / 'data'}"
    (folder / "in").write_text("0 1 1\n")
    for command in (
        ["--problem=tiny_algo", run, data, f"--problem_args={SIZES}", f"--hparams={SMALL}{changes}", *flags],
        ["evaluate", run, data, "--split=test", "--limit=8"],
        ["decode", run, f"--decode_from_file={folder / 'in'}", f"--decode_to_file={folder / 'out'}"],
        ["export", run],
    ):
        if trainer.main(command):
            raise SystemExit(f"trainer {' '.join(command)} failed")


def _measure(row, rounds):
    from tests import traced_graphs
    from ut_keras.layers import custom_gradient

    if row == "tensorflow":
        custom_gradient._table = dict  # nothing to take from: what is left is tf.custom_gradient
    _round()
    graphs, memory = len(traced_graphs.alive()), decode_memory.resident("self")
    for _ in range(rounds):
        _round()
    return {
        "graphs_per_round": (len(traced_graphs.alive()) - graphs) / rounds,
        "mb_per_round": round((decode_memory.resident("self") - memory) / rounds, 1),
    }


def _round():
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        journey(pathlib.Path(folder))


if __name__ == "__main__":
    main()
