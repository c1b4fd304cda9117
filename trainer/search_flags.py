"""The flags that say how answers are searched for, the same for every command that decodes. Standard library only."""

from trainer.flag_types import add_switch, natural, number, positive
from ut_keras.decoding.options import DecodingOptions
from ut_keras.errors import UsageError

OPTIONS = "beam_size alpha n_best temperature top_k top_p seed max_steps coupled_stop cached".split()
LIMITS = ("extra_length", "max_output_length")


def add_search_flags(parser, several=True):
    """Adds the flags of `OPTIONS` and `LIMITS` to a parser; without a default, so that one sees which were given.

    Args:
        parser: an argparse parser.
        several: with --n_best.
    """
    group = parser.add_argument_group("search")
    group.add_argument(
        "--beam_size", type=positive, metavar="N", help="hypotheses kept for each input (default 1: greedy)"
    )
    group.add_argument(
        "--alpha",
        type=number,
        metavar="A",
        help="of a beam: a hypothesis of n tokens (end token included) is ranked by its log-probability / "
        "((5 + n) / 6)^A; 0 is neutral, more favours long answers (default: 0.6)",
    )
    if several:
        group.add_argument(
            "--n_best",
            type=positive,
            metavar="N",
            help="the N best answers: of a beam at most its size, samples, or classes (default: 1)",
        )
    group.add_argument(
        "--temperature",
        type=number,
        metavar="T",
        help="above 0: tokens are drawn from softmax(logits / T); 1 is neutral (default 0: nothing is drawn)",
    )
    group.add_argument(
        "--top_k", type=natural, metavar="N", help="draw from the N most probable tokens only (default 0: from all)"
    )
    group.add_argument(
        "--top_p",
        type=number,
        metavar="P",
        help="draw from the smallest set of tokens whose probability reaches P (default 1: from all)",
    )
    group.add_argument(
        "--seed",
        type=natural,
        metavar="N",
        help="of the drawing (default 0); with an input's number it decides what is drawn, whatever the batch size",
    )
    group.add_argument(
        "--extra_length",
        type=natural,
        metavar="N",
        help="tokens that an answer may have above its input, end tokens included; of a language model tokens of the "
        "continuation (default: the problem's limit)",
    )
    group.add_argument(
        "--max_output_length",
        type=positive,
        metavar="N",
        help="tokens of an answer at most, end token included, whatever its input (default: no such cap)",
    )
    group.add_argument(
        "--max_steps", type=positive, metavar="N", help="recurrent steps at most (default: as the model was trained)"
    )
    group.add_argument(
        "--coupled_stop",
        choices=("best", "all"),
        help="tensor2tensor's rules, where all inputs of a batch stop together (default: each stops by itself)",
    )
    add_switch(group, "--cached", "false: compute the whole prefix again for each token, as tensor2tensor does", None)


def search_options(arguments):
    """Returns the `DecodingOptions` of parsed flags; UsageError where they do not fit each other."""
    return DecodingOptions(
        **{name: value for name, value in vars(arguments).items() if name in given(arguments, OPTIONS)}
    )


def refuse_depth(hparams, max_steps):
    """UsageError where a model of `hparams` cannot run `max_steps` steps (None: as many as it was trained with)."""
    if max_steps is None:
        return
    if not hparams.model.startswith("universal_transformer"):
        raise UsageError(f"max_steps={max_steps}: {hparams.model} has no recurrent steps; leave it out")
    own = hparams.act_max_steps if hparams.recurrence_type == "act" else hparams.num_rec_steps
    learned = hparams.add_step_timing_signal and hparams.step_timing_signal_type == "learned"
    if learned and max_steps > own:
        raise UsageError(
            f"max_steps={max_steps}: the model has learned a signal for each of {own} steps and has none for others; "
            "step_timing_signal_type=sinusoid goes deeper than it was trained"
        )
    if hparams.recurrence_type == "dwa" and hparams.depth_embedding and max_steps > own:
        raise UsageError(
            f"max_steps={max_steps}: the model has learned a depth embedding for each of {own} steps and has none for "
            "others; depth_embedding=false goes deeper than it was trained"
        )


def given(arguments, names=(*OPTIONS, *LIMITS)):
    """Returns those of `names` whose flags were given."""
    return [name for name in names if getattr(arguments, name, None) is not None]
