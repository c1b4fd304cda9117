"""Answers encoded inputs, in batches of similar length. An answer does not depend on the inputs beside it.

Shapes: B batch, L input ids (S sentences of W words for some problems), n hypotheses, N produced ids; all count the
end token. A prompt has none, and the produced ids are those behind it.
"""

import typing

import numpy as np

from trainer.output_limit import OutputLimit
from ut_keras.decoding.options import DecodingOptions
from ut_keras.errors import UserError

# Of a batch: squares of the lengths of its inputs and hypotheses, summed. Attention has H numbers for each.
SQUARES = 2**24
# Of the length of a batch: oneDNN makes code for each shape that it meets, and keeps it.
MULTIPLE = 8
NOT_FINITE = "the model's output is not finite: take another --checkpoint"


class Hypothesis(typing.NamedTuple):
    """One of the best answers.

    Attributes:
        text: the answer, without end token.
        score: natural logarithm of its probability.
        normalized_score: what a beam ranks by, `score` divided by the length penalty; None where there is none.
        ids: [N] int array, what was produced, end token included; a class is one id.
        ponder_times: [N] float array, or None of a class.
    """

    text: str
    score: float
    normalized_score: float | None
    ids: np.ndarray
    ponder_times: np.ndarray | None


class Decoded(typing.NamedTuple):
    """The answer to one input.

    Attributes:
        text: the answer, without end token; "" for an empty line. A language model's continuation, without the prompt.
        score: natural logarithm of the answer's probability.
        ids: [N] int array, what was produced, end token included; a class is one id.
        inputs: the ids of the input, [L] or [S, W].
        ponder_times: {"encoder": [L], "decoder": [N]} float arrays; of a class without "decoder", of a language model
            with "prompt" in place of "encoder".
        hypotheses: tuple of `Hypothesis`, best first, the first one being this answer.
    """

    text: str
    score: float
    ids: np.ndarray
    inputs: np.ndarray
    ponder_times: dict
    hypotheses: tuple = ()


def kind_of(problem):
    """Returns "sequence", "class" or "continuation", as `ut_keras.decoding.answer.kind_of`; without TensorFlow."""
    return problem.target if problem.features.input_vocabulary_size else "continuation"


def encode_text(encode, text):
    """Returns the ids of a text, an int32 array, as `encode` (a problem's `encode_input`, `encode_target`) gives them.

    Raises:
        UserError: the text cannot be encoded.
    """
    try:
        text.encode("utf-8")  # for all: what a vocabulary makes of half a character is its own
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        raise UserError(f"{half!r} is half of a surrogate pair, or a byte that is not UTF-8") from None
    return np.asarray(encode(text), np.int32)


def encode_line(problem, line, most=None):
    """Returns the ids of one line: [L] or [S, W] int32 array.

    Args:
        problem: the `Problem`.
        line: text.
        most: positions at most; None: any number.

    Raises:
        UserError: the line cannot be encoded, or is longer than that.
    """
    ids = encode_text(problem.encode_input, line)
    if most is not None and len(ids) > most:
        what = "sentences" if ids.ndim == 2 else "tokens"
        raise UserError(
            f"it has {len(ids):,} {what}, more than max_input_length={most}; raise that where memory allows"
        )
    return ids


def answer_ids(loaded, inputs, batch_size=32, options=None, output_limit=None, limits=None, keys=None, doing=None):
    """Answers every input.

    Args:
        loaded: `trainer.load(...)`.
        inputs: list of [L] or [S, W] int arrays.
        batch_size: inputs at once; fewer where they are long, so that memory is bounded.
        options: `DecodingOptions`; None: greedy search.
        output_limit: `OutputLimit`; None: the problem's own limit.
        limits: most ids of each answer, a list, in place of that.
        keys: list of int, one per input: with the seed it decides what is drawn for the input; None: 0, 1, 2, ...
        doing: called with the answers found so far, a count, and with the ids produced for them.

    Returns:
        list of `Decoded`, in the order of the inputs.
    """
    options = options or DecodingOptions()
    answers = loaded.answers(options)
    if limits is None:
        output_limit = output_limit or OutputLimit(loaded.problem)
        limits = [output_limit(int(np.count_nonzero(ids))) for ids in inputs]
    keys = range(len(inputs)) if keys is None else keys
    results, done, tokens = [None] * len(inputs), 0, 0
    for rows in _batches([len(ids) for ids in inputs], limits, batch_size, _beams(options), kind_of(loaded.problem)):
        found = answers(
            pad([inputs[row] for row in rows], MULTIPLE),
            np.asarray([limits[row] for row in rows], np.int32),
            np.asarray([keys[row] for row in rows], np.int32),
        )
        for row, decoded in zip(rows, _unbatch(loaded.problem, [inputs[row] for row in rows], found, options)):
            results[row] = decoded
            tokens += len(decoded.ids)
        done += len(rows)
        if doing:
            doing(done, tokens)
    return results


def pad(examples, multiple=1):
    """Returns a list of [L] or [S, W] int arrays as one int32 array [B, L] or [B, S, W], padded with 0 behind.

    Its L or S is a multiple of `multiple`.
    """
    length, *width = np.max([np.shape(example) for example in examples], axis=0)
    length = -(-max(length, 1) // multiple) * multiple
    batch = np.zeros([len(examples), length, *np.maximum(width, 1).astype(int)], np.int32)
    for row, example in zip(batch, examples, strict=True):
        row[tuple(slice(size) for size in np.shape(example))] = example
    return batch


def _beams(options):
    """Rows of the decoder for each input."""
    return options.n_best if options.temperature else options.beam_size


def _batches(lengths, limits, batch_size, beams, kind):
    """Yields lists of indices, the longest inputs first: what is too large fails at once, and memory is used again."""
    batch, longest, most = [], 0, 0
    for index in sorted(range(len(lengths)), key=lambda index: (-lengths[index], -limits[index], index)):
        produced = 0 if kind == "class" else limits[index] + (lengths[index] if kind == "continuation" else 0)
        wider, deeper = max(longest, lengths[index]), max(most, produced)
        full = len(batch) == batch_size or (len(batch) + 1) * (wider**2 + beams * deeper**2) > SQUARES
        if batch and full:
            yield batch
            batch, wider, deeper = [], lengths[index], produced
        batch.append(index)
        longest, most = wider, deeper
    if batch:
        yield batch


def _unbatch(problem, inputs, found, options):
    """Yields the `Decoded` of each row of an `ut_keras.decoding.answer.Answer`."""
    ids, scores, ranks = found.ids.numpy(), found.log_probability.numpy(), found.scores.numpy()
    times = {side: values.numpy() for side, values in found.ponder_times.items()}
    penalised = options.beam_size > 1 and options.alpha > 0
    for row, given in enumerate(inputs):
        hypotheses = []
        # A missing hypothesis has no ids; that of an empty input has none either, and is the only one.
        for k in [k for k in range(len(ids[row])) if k == 0 or ids[row, k].any()]:
            produced = ids[row, k, : _length(ids[row, k])]
            hypotheses.append(
                Hypothesis(
                    text=problem.decode_target(produced) if len(produced) else "",
                    score=float(scores[row, k]) + 0.0,  # no -0.0
                    normalized_score=float(ranks[row, k]) + 0.0 if penalised else None,
                    ids=produced,
                    ponder_times=times["decoder"][row, k, : len(produced)] if "decoder" in times else None,
                )
            )
        best = hypotheses[0]
        ponder_times = {side: values[row, : len(given)] for side, values in times.items() if side != "decoder"}
        if "decoder" in times:
            ponder_times["decoder"] = best.ponder_times
        yield Decoded(best.text, best.score, best.ids, given, ponder_times, tuple(hypotheses))


def _length(ids):
    """Returns how many of ids [N] there are before the padding behind them."""
    real = np.flatnonzero(ids)
    return int(real[-1]) + 1 if len(real) else 0
