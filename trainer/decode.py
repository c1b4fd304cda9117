"""Answers lines of text: as many lines out as in, in the same order. To a language model a line is a prompt.

Shapes: L input ids (S sentences of W words for some problems), N produced ids; both count the end token. A prompt
has none, and the produced ids are those behind it.
"""

import json
import sys
import typing

import numpy as np

from problems import textio
from trainer.progress import Progress
from ut_keras.errors import UserError


class Decoded(typing.NamedTuple):
    """The answer to one line.

    Attributes:
        text: the answer, without end token; "" for an empty line. A language model's continuation, without the prompt.
        score: natural logarithm of the answer's probability.
        ids: [N] int array, what was produced, end token included; a class is one id.
        inputs: the ids of the line, [L] or [S, W].
        ponder_times: {"encoder": [L]} float array, and "decoder": [N] where it was asked for and there is one; of a
            language model {"decoder": [N]} or {}.
    """

    text: str
    score: float
    ids: np.ndarray
    inputs: np.ndarray
    ponder_times: dict


def decode_lines(loaded, lines, batch_size=32, extra_length=None, with_ponder=False, source="line"):
    """Answers every line.

    Lines are decoded in batches of similar length; the answers come back in the order of the lines, and
    an answer does not depend on the lines beside it.

    Args:
        loaded: `trainer.load(...)`.
        lines: list of strings.
        batch_size: lines at once.
        extra_length: an answer may have this many ids (end token included) more than its input, a continuation
            this many in all; None: the problem's own limit.
        with_ponder: also return the decoder's ponder times; costs one more pass.
        source: how messages begin: "line" for "line 3: ...", or the name of a file.

    Returns:
        list of `Decoded`, one per line.

    Raises:
        UserError: a line cannot be encoded; the message names its number (from 1) and the token.
    """
    inputs = encode_lines(loaded.problem, lines, source)
    return answer_ids(loaded, inputs, batch_size, extra_length, with_ponder)


def encode_lines(problem, lines, source="line"):
    """Returns the ids of every line; raises as `decode_lines`. Needs no model and no TensorFlow."""
    return [encode_line(problem, line, number, source) for number, line in enumerate(lines, 1)]


def answer_ids(loaded, inputs, batch_size=32, extra_length=None, with_ponder=False, limits=None, doing=None):
    """As `decode_lines`, for a list of encoded inputs.

    Args:
        inputs: list of [L] or [S, W] int arrays.
        limits: most ids of each answer, in place of `extra_length` and the problem's own.
        doing: called with the number of inputs answered so far.
    """
    answers = loaded.answers(with_ponder)
    results = [None] * len(inputs)
    lengths = [int(np.count_nonzero(ids)) for ids in inputs]
    order = sorted(range(len(inputs)), key=lambda index: (lengths[index], index))
    for start in range(0, len(order), batch_size):
        indices = order[start : start + batch_size]
        most = [limits[i] if limits else _limit(loaded.problem, lengths[i], extra_length) for i in indices]
        found = answers(pad([inputs[index] for index in indices]), np.asarray(most, np.int32))
        ids, scores = found.ids.numpy(), found.scores.numpy()
        times = {side: values.numpy() for side, values in found.ponder_times.items()}
        for row, index in enumerate(indices):
            produced = ids[row][: int(np.count_nonzero(ids[row]))]
            sizes = {"encoder": len(inputs[index]), "decoder": len(produced)}
            results[index] = Decoded(
                text=loaded.problem.decode_target(produced) if len(produced) else "",
                score=float(scores[row]) + 0.0,  # no -0.0
                ids=produced,
                inputs=inputs[index],
                ponder_times={side: values[row, : sizes[side]] for side, values in times.items()},
            )
        if doing:
            doing(start + len(indices))
    return results


def pad(examples):
    """Returns a list of [L] or [S, W] int arrays as one [B, ...] int32 array, padded with 0 behind."""
    shape = np.max([np.shape(example) for example in examples], axis=0)
    batch = np.zeros([len(examples), *np.maximum(shape, 1)], np.int32)
    for row, example in zip(batch, examples, strict=True):
        row[tuple(slice(size) for size in np.shape(example))] = example
    return batch


def encode_line(problem, line, number, source):
    """Returns the ids of one line; raises as `decode_lines`, and says on standard error what is left out."""
    try:
        ids = np.asarray(problem.encode_input(line), np.int32)
    except UserError as error:
        raise UserError(f"{source} {number}: {error}") from None
    cut = problem.cut(line)
    if cut:
        print(f"warning: {source} {number}: {cut}", file=sys.stderr)
    return ids


def _limit(problem, length, extra_length):
    if extra_length is None:
        return problem.max_output_length(length)
    return extra_length + (length if problem.features.input_vocabulary_size else 0)


def decode(
    problem,
    load,
    from_file=None,
    to_file=None,
    batch_size=32,
    extra_length=None,
    with_scores=False,
    with_ponder=False,
):
    """The `decode` command: a file or standard input to a file or standard output.

    Writes one line for each line read: the answer, or, with scores or ponder times, one JSON object
    {"input", "output", "score", "ponder_times"}. A file is written to a temporary name and renamed.

    Args:
        problem: the run's problem, which reads all lines before a model is loaded.
        load: function () -> `Loaded`.
        from_file: None: standard input.
        to_file: None: standard output.
        batch_size, extra_length: as for `decode_lines`.
        with_scores, with_ponder: write JSON with these.
    """
    lines = list(textio.read_lines(from_file or sys.stdin.buffer))
    inputs = encode_lines(problem, lines, f"{from_file}, line" if from_file else "line")
    if to_file:
        textio.refuse_unwritable(to_file)
    loaded = load()
    with Progress() as log:
        log.doing(f"answering {len(lines):,} lines")
        answers = answer_ids(
            loaded,
            inputs,
            batch_size,
            extra_length,
            with_ponder,
            doing=lambda done: log.doing(f"answered {done:,} of {len(lines):,} lines"),
        )
    if with_scores or with_ponder:
        written = [
            _as_json(line, answer, with_scores, with_ponder) for line, answer in zip(lines, answers, strict=True)
        ]
    else:
        # One answer is one line, whatever a vocabulary of bytes or subwords has spelled.
        written = [answer.text.replace("\n", " ") for answer in answers]
        broken = sum("\n" in answer.text for answer in answers)
        if broken:
            print(f"{broken} answers hold a line feed, written as a blank; --with_scores keeps it", file=sys.stderr)
    empty = sum(not answer.text for answer in answers)
    print(f"answered {len(answers)} lines, {empty} of them with nothing", file=sys.stderr)
    if to_file:
        textio.write_lines(to_file, written)
        print(f"wrote {to_file}", file=sys.stderr)
    else:
        sys.stdout.write("".join(line + "\n" for line in written))


def _as_json(line, answer, with_scores, with_ponder):
    record = {"input": line, "output": answer.text}
    if with_scores:
        record["score"] = round(answer.score, 6)
    if with_ponder:
        record["ponder_times"] = {
            side: [round(float(time), 4) for time in times] for side, times in answer.ponder_times.items()
        }
    return json.dumps(record, ensure_ascii=False)
