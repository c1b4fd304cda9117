"""The flags of every command. Standard library only."""

import dataclasses
from collections.abc import Callable

from trainer.flag_types import add_switch, filled, lengths, paths, positive
from trainer.search_flags import add_search_flags
from trainer.shared_flags import add_data_flags, add_problem_flags, add_run_flags, add_usr_dir
from trainer.train_flags import add_train_flags
from trainer.windows import MOST_INPUT


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


def _evaluate_flags(parser):
    add_run_flags(parser)
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
        help="score at most this many examples, evenly spaced over the split, or make this many strings of each length "
        "(default: the whole split; 1,000 strings)",
    )
    add_search_flags(parser, several=False)
    add_data_flags(parser)
    add_usr_dir(parser)


def _decode_flags(parser):
    add_run_flags(parser)
    parser.add_argument(
        "--decode_from_file",
        type=filled,
        metavar="FILE",
        help="one input per line, a prompt for a language model (default: standard input)",
    )
    parser.add_argument(
        "--decode_to_file", type=filled, metavar="FILE", help="one answer per line (default: standard output)"
    )
    add_switch(
        parser, "--interactive", "answer each line at once, with a prompt (default: where standard input is a terminal)"
    )
    parser.add_argument("--limit", type=positive, metavar="N", help="answer the first N lines (default: all)")
    parser.add_argument(
        "--decode_batch_size",
        type=positive,
        metavar="N",
        help="lines decoded at once (default: 32); fewer where they are long",
    )
    parser.add_argument(
        "--max_input_length",
        type=positive,
        metavar="N",
        help="tokens of a line at most, end token included; a longer one is answered with nothing, and said so "
        f"(default: {MOST_INPUT:,})",
    )
    add_switch(parser, "--with_scores", "write JSON with the log-probability of each answer")
    add_switch(
        parser, "--with_ponder", "write JSON with the ponder time of each token of input and answer, and the tokens"
    )
    add_search_flags(parser)
    parser.add_argument(
        "--decode_hparams",
        action="append",
        metavar="K=V,K=V",
        help="the same settings in tensor2tensor's spelling: beam_size=4,alpha=0.6,extra_length=50,batch_size=32",
    )
    add_usr_dir(parser)


def _score_flags(parser):
    add_run_flags(parser)
    parser.add_argument(
        "--score_file",
        type=filled,
        metavar="FILE",
        help="lines of a source, a tab and a target (for a class its label); for a language model the text alone",
    )
    add_usr_dir(parser)


def _export_flags(parser):
    add_run_flags(parser)
    parser.add_argument(
        "--export_dir", type=filled, metavar="DIR", help="versions are written here (default: OUTPUT_DIR/export)"
    )
    add_search_flags(parser)
    add_usr_dir(parser)


def _average_flags(parser):
    parser.add_argument("--output_dir", type=filled, metavar="DIR", help="the run directory that training wrote")
    parser.add_argument(
        "--last",
        type=positive,
        metavar="N",
        help="average the last N checkpoints (default: all that --keep_checkpoints kept)",
    )
    parser.add_argument(
        "--checkpoints",
        type=paths,
        metavar="PATH,PATH",
        help="average these: best, last, or paths such as DIR/checkpoints/ckpt-1000",
    )
    parser.add_argument(
        "--to", type=filled, metavar="DIR", help="the directory of the average (default: OUTPUT_DIR/average)"
    )
    add_usr_dir(parser)


def _import_flags(parser):
    parser.add_argument(
        "--checkpoint",
        "--checkpoint_path",
        type=filled,
        metavar="DIR|PATH",
        help="tensor2tensor's output directory, or one checkpoint of it: DIR/model.ckpt-1000",
    )
    add_problem_flags(parser)
    parser.add_argument(
        "--hparams_set",
        type=filled,
        metavar="NAME",
        help="the set it was trained with; hparams.json beside the checkpoint wins over it",
    )
    parser.add_argument("--hparams", action="append", metavar="K=V,K=V", help="changes that win over both")
    parser.add_argument(
        "--vocabulary", type=filled, metavar="FILE", help="tensor2tensor's vocabulary file, vocab.*.subwords or a list"
    )
    parser.add_argument("--output_dir", type=filled, metavar="DIR", help="the run directory to write")
    add_data_flags(parser)
    add_usr_dir(parser)


def _explain_flags(parser):
    add_run_flags(parser)
    parser.add_argument("--text", metavar="TEXT", help="one input; a prompt for a language model")
    parser.add_argument("--target", metavar="TEXT", help="look at this answer (default: the one that the model gives)")
    parser.add_argument("--to", type=filled, metavar="FILE.html", help="the page (default: in the run directory)")
    add_usr_dir(parser)


def _datagen_flags(parser):
    add_problem_flags(parser)
    add_data_flags(parser)
    add_usr_dir(parser)


def _ls_flags(parser):
    parser.add_argument("what", nargs="?", choices=("problems", "models", "hparams"), help="(default: all three)")
    parser.add_argument(
        "name", nargs="?", type=filled, metavar="NAME", help="show this one: a problem's arguments, a set's values"
    )
    add_usr_dir(parser)


COMMANDS = {
    "train": Command(
        "train a model on a problem (this is the default command)",
        "Trains a model on a problem, evaluates as it goes, and ends with the score on the test split (on dev where\n"
        "there is none).\n"
        "Starting the same command again goes on where it stopped.",
        add_train_flags,
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
        "Answers one input per line, in their order; with --with_* or --n_best one JSON object per line. A language\n"
        "model goes on where a line ends: the answer is the continuation. A line that cannot be answered (not UTF-8,\n"
        "an unknown symbol, too long) gets an empty answer and a warning, and the exit code is 1 at the end.\n"
        "Lines are read in windows of 256 to 4,096 and answered when one is full or the input ends; --interactive\n"
        "answers each at once.",
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
        "Writes a SavedModel, text in and text out. How it searches is fixed here.",
        _export_flags,
        "trainer.commands:export",
        ("output_dir",),
    ),
    "average": Command(
        "average the weights of several checkpoints",
        "Writes the mean of the weights of several checkpoints as a directory that evaluate, decode, score, export\n"
        "and explain take as --output_dir, and prints its path.",
        _average_flags,
        "trainer.commands:average",
        ("output_dir",),
    ),
    "import_t2t": Command(
        "make a run of a tensor2tensor checkpoint",
        "Writes weights, optimizer and step of a checkpoint of tensor2tensor (TensorFlow 1) as a\n"
        "run directory, which every other command takes and training goes on from, and prints its path.",
        _import_flags,
        "trainer.commands:import_t2t",
        ("checkpoint", "problem", "output_dir"),
    ),
    "explain": Command(
        "show what a model did with one input, as a web page",
        "Writes one self-contained web page: the tokens of an input and its answer, their ponder times, and for each\n"
        "step the halting probabilities and the attention of each head. Prints its path.",
        _explain_flags,
        "trainer.commands:explain",
        ("output_dir", "text"),
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
