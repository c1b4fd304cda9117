"""The log-probability of given answers: what the model thinks of them, not what it would answer.

Shapes: N pairs of a source (a prompt has none) and a target, both with their end tokens.
"""

import sys

import numpy as np

from problems import textio
from trainer import reduction
from trainer.answers import encode_text, pad
from trainer.line_encoder import encode_or_raise
from trainer.progress import Progress
from ut_keras.errors import UserError


def score(problem, load, score_file):
    """The `score` command: prints the natural logarithm of the probability of each line's target.

    A line is a source, a tab and a target (for a class its label); for a language model it is the text alone. On
    standard error follow the numbers of lines and tokens (end tokens included), the total and the perplexity.

    Args:
        problem: the run's problem, which reads all lines before a model is loaded.
        load: function () -> `Loaded`.
        score_file: path of the lines.

    Raises:
        UserError: a line has not exactly one tab, an empty source, or cannot be encoded; with its number.
    """
    source = f"{score_file}, line"
    lines = textio.read_lines(score_file)
    if problem.features.input_vocabulary_size:
        pairs = [_split(line, number, source) for number, line in enumerate(lines, 1)]
    else:
        pairs = [(None, line) for line in lines]
    encoded = encode_pairs(problem, pairs, source)
    loaded = load()
    with Progress() as log:
        scores, tokens = score_ids(loaded, encoded, lambda done: log.doing(f"scored {done:,} of {len(pairs):,} lines"))
    sys.stdout.write("".join(f"{value:.6f}\n" for value in scores))
    sys.stdout.flush()
    total, count = float(np.sum(scores)), int(np.sum(tokens))
    perplexity = reduction.perplexity(-total / max(count, 1))
    print(f"lines {len(pairs)}  tokens {count}  total {total:.4f}  perplexity {perplexity:.4f}", file=sys.stderr)


def encode_pairs(problem, pairs, where):
    """Returns [(source ids or None, target ids)] of pairs of texts.

    Args:
        problem: the `Problem`.
        pairs: list of (source, target); the source None for a language model.
        where: how messages begin: "text" for "text 3: ...".

    Raises:
        UserError: a text cannot be encoded, or a source is empty; the message names the pair's number, from 1.
    """
    encoded = []
    for number, (source, target) in enumerate(pairs, 1):
        inputs = None
        if source is not None:
            inputs = encode_or_raise(problem, source, f"{where} {number}")
            if not len(inputs):
                raise UserError(f"{where} {number}: its source is empty")
        try:
            encoded.append((inputs, encode_text(problem.encode_target, target)))
        except UserError as error:
            raise UserError(f"{where} {number}: {error}") from None
    return encoded


def score_ids(loaded, pairs, doing=None):
    """Scores encoded pairs, in batches of similar length; a score does not depend on the other pairs.

    Args:
        loaded: `Loaded`.
        pairs: list of (source ids or None, target ids).
        doing: called with the number of pairs scored so far.

    Returns:
        ([N] natural logarithms of the targets' probabilities, [N] tokens of the targets), float64 arrays.
    """
    scores, tokens = np.zeros(len(pairs)), np.zeros(len(pairs))
    done = 0
    for rows in _batches(pairs, loaded.measure.positions):
        batch = {"targets": pad([pairs[row][1] for row in rows])}
        if pairs[rows[0]][0] is not None:
            batch["inputs"] = pad([pairs[row][0] for row in rows])
        numbers = loaded.measure(batch)
        scores[rows] = 0.0 - numbers["neg_log_likelihood"]  # no -0.0
        tokens[rows] = numbers["tokens"]
        done += len(rows)
        if doing:
            doing(done)
    return scores, tokens


def _batches(pairs, positions):
    """Yields lists of indices, the shortest pairs first; a batch has so many positions at most, or one pair."""
    sizes = [(len(target), 0 if source is None else len(source)) for source, target in pairs]
    batch, widest = [], (0, 0)
    for index in sorted(range(len(pairs)), key=lambda index: (sum(sizes[index]), index)):
        wider = tuple(max(pair) for pair in zip(widest, sizes[index], strict=True))
        if batch and (len(batch) + 1) * sum(wider) > positions:
            yield batch
            batch, wider = [], sizes[index]
        batch.append(index)
        widest = wider
    if batch:
        yield batch


def _split(line, number, source):
    parts = line.split("\t")
    if len(parts) != 2:
        tabs = f"{len(parts) - 1} tabs" if len(parts) > 2 else "no tab"
        raise UserError(f"{source} {number}: it has {tabs}; a line is a source, one tab and a target")
    return parts
