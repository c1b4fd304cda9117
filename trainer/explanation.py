"""What a model did with one text, as plain numbers: steps, halting and attention of every position.

Legend: L positions of a side, T steps that were run, R blocks of a step, H heads, Q queries, K keys.
"""

import typing

import numpy as np

from trainer.token_names import START
from ut_keras.errors import UserError

MOST_POSITIONS = 512  # of a side: what one pass may be asked to remember
MOST_WEIGHTS = 2_000_000  # of one map of attention: some five megabytes of a page


class Side(typing.NamedTuple):
    """An encoder or a decoder.

    Attributes:
        title: what its tokens are, for a heading.
        tokens: list of L `Token`.
        read: list of L `Token`, what goes in at each position; a decoder predicts a token from the one before it.
        steps: T; of a plain Transformer its layers.
        limit: the most steps there may be.
        ponder_times: [L] float, steps that each position took; None without recurrence.
        probability: [T, L] float, the halting probability of each step; None without halting.
        halting_probability: [T, L] float, its sum, 1 where a position has halted; None without halting.
        remainders: [L] float, what was left to 1 in the step in which a position halted; None without halting.
        likelihood: [L] float, the probability that the model gives each token; None where it predicts none.
        given: so many of the first tokens are the prompt of a language model.
    """

    title: str
    tokens: list
    read: list
    steps: int
    limit: int
    ponder_times: np.ndarray | None = None
    probability: np.ndarray | None = None
    halting_probability: np.ndarray | None = None
    remainders: np.ndarray | None = None
    likelihood: np.ndarray | None = None
    given: int = 0


class Attention(typing.NamedTuple):
    """Who looks at whom.

    Attributes:
        title: for a list to choose from.
        queries, keys: names of the sides.
        weights: [T, R, H, Q, K] float; None where they are more than `MOST_WEIGHTS`.
    """

    title: str
    queries: str
    keys: str
    weights: np.ndarray | None


class Explanation(typing.NamedTuple):
    """All that is shown of one text.

    Attributes:
        text: the text, "" for none.
        answer: the text of the answer, or of the target that was given.
        chosen: whether the model chose that answer; else it was given.
        score: natural logarithm of the answer's probability.
        classes: [(label, probability)] of the most probable classes; [] where the answer is a text.
        sides: {"encoder": Side, "decoder": Side}, those that there are.
        attention: list of `Attention`.
        about: [(what, value)] of the run, pairs of text.
        notes: list of lines the reader should know.
        threshold: a position halts where its sum of probabilities reaches this.
        recurrent: False: the steps are different layers.
    """

    text: str
    answer: str
    chosen: bool
    score: float
    classes: list
    sides: dict
    attention: list
    about: list
    notes: list
    threshold: float
    recurrent: bool


def refuse_long(tokens, what):
    """UserError where a side of so many tokens is more than a page can show."""
    if tokens > MOST_POSITIONS:
        raise UserError(f"{what} has {tokens} tokens; explain shows up to {MOST_POSITIONS}: give it a shorter one")


def traced(model, features):
    """Returns (logits, {side: Ponder or ()}, {side: traces}) of a batch, from one pass of the model's inference.

    Of a classifier the traces are its encoder's, and the logits [B, V] are its classes'.
    """
    if hasattr(model, "run"):
        return model.run(features, trace=True)
    _, ponder, traces = model.encoder.run(features, trace=True)
    return model(features), ponder, traces


def make_side(name, title, tokens, ponder, traces, likelihood=None, given=0):
    """Returns the `Side` of a batch of one example.

    Args:
        name: "encoder" or "decoder".
        title: see `Side`.
        tokens: list of L `Token`; the batch has no padding.
        ponder, traces: what `traced` gave for this side.
        likelihood, given: see `Side`.
    """
    read = [START, *tokens[:-1]] if name == "decoder" else tokens
    limit = len(traces["self_attention"])
    steps = _steps(traces)
    side = Side(title, tokens, read, steps, limit, likelihood=likelihood, given=given)
    if not ponder:
        return side
    side = side._replace(ponder_times=_numbers(ponder.ponder_times[0]))
    if "probability" not in traces:
        return side
    return side._replace(
        probability=_numbers(traces["probability"][:steps, 0]),
        halting_probability=_numbers(traces["halting_probability"][:steps, 0]),
        remainders=_numbers(ponder.remainders[0]),
    )


def attention_maps(traces):
    """Returns the list of `Attention` of {side: traces} of a batch of one example."""
    titles = {
        ("encoder", "encoder"): "input looks at input",
        ("decoder", "encoder"): "answer looks at input",
        ("decoder", "decoder"): "answer looks at answer" if "encoder" in traces else "text looks at text",
    }
    entries = {"self_attention": lambda queries: queries, "encdec_attention": lambda queries: "encoder"}
    maps = []
    for queries, trace in traces.items():
        for entry, keys_of in entries.items():
            if entry in trace:
                weights = _numbers(trace[entry][: _steps(trace), :, 0])
                keys = keys_of(queries)
                weights = weights if weights.size <= MOST_WEIGHTS else None
                maps.append(Attention(titles[queries, keys], queries, keys, weights))
    return maps


def _steps(traces):
    return int(traces["steps"]) if "steps" in traces else len(traces["self_attention"])


def _numbers(tensor):
    import tensorflow as tf

    return tf.cast(tensor, tf.float32).numpy()
