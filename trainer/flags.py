"""The flags of every command. Standard library only."""

import argparse
import dataclasses
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Command:
    """One command of the program.

    Attributes:
        summary: one line for the list of commands.
        description: what its `--help` says first.
        add_flags: adds its flags to a parser.
        run: "module:function", called with the parsed flags; its return value is the exit code.
        required: flags without which it cannot start.
    """

    summary: str
    description: str
    add_flags: Callable
    run: str
    required: tuple = ()


def positive(text):
    """Parses an integer above 0."""
    return _at_least(1, text, "a positive integer")


def natural(text):
    """Parses an integer of 0 or more."""
    return _at_least(0, text, "an integer of 0 or more")


def seed(text):
    """Parses an integer that numpy, Keras and TensorFlow all take as a seed."""
    value = natural(text)
    if value >= 2**32:
        raise argparse.ArgumentTypeError(f"{text!r} is not below 2^32")
    return value


def _at_least(limit, text, kind):
    try:
        value = int(text)
    except ValueError:
        value = limit - 1
    if value < limit:
        raise argparse.ArgumentTypeError(f"{text!r} is not {kind}")
    return value


def filled(text):
    """Parses a name or a path: `--output_dir=$UNSET` is a mistake and not a wish for the default."""
    if not text.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not a name; leave the flag out for its default")
    return text


def switch(text):
    """Parses true or false."""
    if text.lower() in ("true", "t", "yes", "y", "1"):
        return True
    if text.lower() in ("false", "f", "no", "n", "0"):
        return False
    raise argparse.ArgumentTypeError(f"{text!r} is not true or false")


def lengths(text):
    """Parses "40,80,400" into a tuple of positive integers."""
    return tuple(positive(part.strip()) for part in text.split(","))


def _add_switch(parser, flag, help_):
    parser.add_argument(flag, nargs="?", const=True, default=False, type=switch, metavar="BOOL", help=help_)


def _data_flags(parser):
    parser.add_argument(
        "--data_dir", type=filled, metavar="DIR", help="prepared data (default: the directory of tensorflow-datasets)"
    )
    parser.add_argument("--manual_dir", type=filled, metavar="DIR", help="where the official data file was put by hand")


def _usr_dir(parser):
    parser.add_argument(
        "--usr_dir",
        "--t2t_usr_dir",
        type=filled,
        metavar="DIR",
        help="package of your own problems and sets, imported first",
    )


def _problem_flags(parser):
    parser.add_argument("--problem", type=filled, metavar="NAME", help="what to learn; `ls problems` lists the names")
    parser.add_argument(
        "--problem_args",
        action="append",
        metavar="K=V,K=V",
        help="the problem's arguments; `ls problems NAME` lists them",
    )


def _run_flags(parser):
    parser.add_argument("--output_dir", type=filled, metavar="DIR", help="the run directory that training wrote")
    parser.add_argument(
        "--checkpoint",
        "--checkpoint_path",
        default="best",
        type=filled,
        metavar="best|last|PATH",
        help="which weights to use (default: best on the development split)",
    )


def _train_flags(parser):
    _problem_flags(parser)
    parser.add_argument(
        "--model", type=filled, metavar="NAME", help="the model, where the set names another of its family"
    )
    parser.add_argument(
        "--hparams_set", type=filled, metavar="NAME", help="named hyperparameters (default: the problem's)"
    )
    parser.add_argument(
        "--hparams",
        action="append",
        metavar="K=V,K=V",
        help="changes to that set; may be repeated. `ls hparams NAME` shows all and says what each length counts "
        "(max_length: tokens of one sequence with its end token; batch_size: tokens of source and target with "
        "padding, over all devices, or examples under use_fixed_batch_size)",
    )
    parser.add_argument(
        "--output_dir", type=filled, metavar="DIR", help="the run directory (default: runs/PROBLEM-HPARAMS_SET)"
    )
    _data_flags(parser)
    parser.add_argument("--train_steps", type=positive, metavar="N", help="updates in all (default: the set's)")
    parser.add_argument("--eval_every", type=positive, metavar="N", help="updates between evaluations and checkpoints")
    parser.add_argument(
        "--log_every", type=positive, default=100, metavar="N", help="updates per progress line (default: 100)"
    )
    parser.add_argument(
        "--keep_checkpoints",
        "--keep_checkpoint_max",
        type=positive,
        default=3,
        metavar="N",
        help="how many of the last checkpoints are kept, beside the best (default: 3)",
    )
    parser.add_argument(
        "--seed", "--random_seed", type=seed, metavar="N", help="of weights, data order, dropout (default: 0)"
    )
    parser.add_argument(
        "--strategy",
        choices=("auto", "one_device", "mirrored", "multi_worker", "tpu"),
        default="auto",
        help="devices (default auto: mirrored where there are several GPUs)",
    )
    parser.add_argument(
        "--mixed_precision",
        choices=("none", "mixed_float16", "mixed_bfloat16"),
        default="none",
        help="Keras dtype policy",
    )
    _add_switch(parser, "--jit_compile", "compile forward and backward pass with XLA (once per batch shape)")
    parser.add_argument(
        "--schedule",
        choices=("train_and_evaluate", "continuous_train_and_eval", "train", "evaluate"),
        default="train_and_evaluate",
        help="train: without any evaluation; evaluate: as the command of that name (default: train_and_evaluate)",
    )
    parser.add_argument(
        "--warm_start_from",
        type=filled,
        metavar="DIR",
        help="start from the weights of another run or checkpoint: those that fit by name and shape",
    )
    _usr_dir(parser)


def _evaluate_flags(parser):
    _run_flags(parser)
    parser.add_argument(
        "--split",
        type=filled,
        metavar="NAME",
        help="train, dev, test, ... (default: test, or dev where there is no test split)",
    )
    parser.add_argument(
        "--lengths",
        type=lengths,
        metavar="N,N",
        help="score strings of exactly these lengths (symbols of the input, without the end token; algorithmic tasks)",
    )
    parser.add_argument(
        "--limit",
        type=positive,
        metavar="N",
        help="decode at most this many examples (default: 200, or all where the problem has BLEU)",
    )
    _data_flags(parser)
    _usr_dir(parser)


def _decode_flags(parser):
    _run_flags(parser)
    parser.add_argument(
        "--decode_from_file",
        type=filled,
        metavar="FILE",
        help="one input per line, a prompt for a language model (default: standard input)",
    )
    parser.add_argument(
        "--decode_to_file", type=filled, metavar="FILE", help="one answer per line (default: standard output)"
    )
    parser.add_argument(
        "--extra_length",
        type=natural,
        metavar="N",
        help="tokens that an answer may have above its input, end tokens included; of a language model tokens of the "
        "continuation (default: the problem's limit)",
    )
    parser.add_argument(
        "--decode_batch_size", type=positive, default=32, metavar="N", help="lines decoded at once (default: 32)"
    )
    parser.add_argument(
        "--decode_hparams", action="append", metavar="K=V,K=V", help="T2T's spelling of extra_length and batch_size"
    )
    _add_switch(parser, "--with_scores", "write JSON with the log probability of each answer")
    _add_switch(parser, "--with_ponder", "write JSON with the ponder times of each input")
    _usr_dir(parser)


def _score_flags(parser):
    _run_flags(parser)
    parser.add_argument(
        "--score_file",
        type=filled,
        metavar="FILE",
        help="lines of a source, a tab and a target (for a class its label); for a language model the text alone",
    )
    _usr_dir(parser)


def _export_flags(parser):
    _run_flags(parser)
    parser.add_argument(
        "--export_dir", type=filled, metavar="DIR", help="versions are written here (default: OUTPUT_DIR/export)"
    )
    _usr_dir(parser)


def _datagen_flags(parser):
    _problem_flags(parser)
    _data_flags(parser)
    _usr_dir(parser)


def _ls_flags(parser):
    parser.add_argument("what", nargs="?", choices=("problems", "models", "hparams"), help="(default: all three)")
    parser.add_argument(
        "name", nargs="?", type=filled, metavar="NAME", help="show this one: a problem's arguments, a set's values"
    )
    _usr_dir(parser)


COMMANDS = {
    "train": Command(
        "train a model on a problem (this is the default command)",
        "Trains a model on a problem, evaluates as it goes, and ends with the score on the test split (on dev where\n"
        "there is none).\n"
        "Starting the same command again goes on where it stopped.",
        _train_flags,
        "trainer.commands:train",
        ("problem",),
    ),
    "evaluate": Command(
        "score a trained run",
        "Scores a trained run on a split of its problem.",
        _evaluate_flags,
        "trainer.commands:evaluate",
        ("output_dir",),
    ),
    "decode": Command(
        "answer inputs, one per line",
        "Answers one input per line; with --with_* one JSON object per line. A language model goes on where a line\n"
        "ends: the answer is the continuation.",
        _decode_flags,
        "trainer.commands:decode",
        ("output_dir",),
    ),
    "score": Command(
        "log-probability of given answers, one per line",
        "Prints the natural logarithm of the probability of each line's target, one number per line, and on standard\n"
        "error the numbers of lines and tokens (end tokens included), the total and the perplexity.",
        _score_flags,
        "trainer.commands:score",
        ("output_dir", "score_file"),
    ),
    "export": Command(
        "write a SavedModel for serving",
        "Writes a SavedModel, text in and text out.",
        _export_flags,
        "trainer.commands:export",
        ("output_dir",),
    ),
    "datagen": Command(
        "prepare a problem's data",
        "Downloads or generates a problem's data and prepares it.",
        _datagen_flags,
        "trainer.commands:datagen",
        ("problem",),
    ),
    "ls": Command(
        "list problems, models and hparams sets",
        "Lists what --problem, --model and --hparams_set may be.",
        _ls_flags,
        "trainer.listing:run",
    ),
}
