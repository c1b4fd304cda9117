"""Answers lines of text: as many lines out as in, in the same order. To a language model a line is a prompt."""

import contextlib
import itertools
import math
import sys
import time

from problems import textio
from trainer.answer_lines import AnswerLines
from trainer.answers import NOT_FINITE, answer_ids
from trainer.line_encoder import LineEncoder, encode_or_raise
from trainer.output_limit import OutputLimit
from trainer.progress import Progress
from trainer.search_flags import refuse_depth
from trainer.windows import FIRST, MOST, MOST_INPUT, windows
from ut_keras.decoding.options import DecodingOptions
from ut_keras.errors import UsageError, UserError

SECONDS = 10.0  # between lines that say how far it is


def decode_lines(
    loaded,
    lines,
    batch_size=32,
    extra_length=None,
    max_output_length=None,
    max_input_length=MOST_INPUT,
    source="line",
    **options,
):
    """Answers every line of a list, as the command does.

    Args:
        loaded: `trainer.load(...)`.
        lines: list of strings.
        batch_size: lines at once.
        extra_length, max_output_length: as of `OutputLimit`.
        max_input_length: most ids of a line, end token included (sentences, where inputs are sentences).
        source: how messages begin: "line" for "line 3: ...".
        **options: the fields of `DecodingOptions`.

    Returns:
        list of `Decoded`, one per line.

    Raises:
        UserError: a line cannot be encoded, or is too long, or the model's output is not finite; the message names
            the line's number (from 1).
        UsageError: options do not fit each other, the problem or the model.
    """
    limit = OutputLimit(loaded.problem, extra_length, max_output_length)
    settings = DecodingOptions.from_dict(options)
    if batch_size < 1:
        raise UsageError(f"batch_size={batch_size} is not a positive integer")
    if loaded.hparams:
        refuse_depth(loaded.hparams, settings.max_steps)
    inputs = [
        encode_or_raise(loaded.problem, line, f"{source} {number}", max_input_length)
        for number, line in enumerate(lines, 1)
    ]
    answers = answer_ids(loaded, inputs, batch_size, settings, limit)
    for number, decoded in enumerate(answers, 1):
        if not math.isfinite(decoded.score):
            raise UserError(f"{source} {number}: {NOT_FINITE}")
    return answers


def decode(
    problem,
    load,
    from_file=None,
    to_file=None,
    *,
    batch_size=32,
    options=None,
    output_limit=None,
    max_input_length=MOST_INPUT,
    limit=None,
    with_scores=False,
    with_ponder=False,
    with_hypotheses=False,
    interactive=False,
):
    """The `decode` command: a file, standard input or a person to a file or standard output.

    Writes one line for each line read, in their order: the answer, or one JSON object (`AnswerLines`). A line that
    cannot be answered (it is not UTF-8, cannot be encoded, is too long, or the model's output for it is not finite)
    gets an empty answer and a warning with its number. Lines are read, answered and written by the window
    (trainer/windows.py), so that memory does not grow with their number; standard output is flushed after each. A
    file is written to a temporary name and renamed.

    Args:
        problem: the run's problem.
        load: function () -> `Loaded`, called when input and output are known to be there.
        from_file: None: standard input.
        to_file: None: standard output.
        batch_size, options, output_limit, max_input_length: as for `answer_ids` and `decode_lines`.
        limit: answer this many lines, the first; None: all.
        with_scores, with_ponder, with_hypotheses: write JSON with these.
        interactive: show a prompt on standard error and answer each line at once.

    Returns:
        How many lines could not be answered.

    Raises:
        UserError: a file cannot be read or written.
    """
    if to_file:
        textio.refuse_unwritable(to_file)
    elif sys.stdout is None:
        raise UserError("standard output is closed: name a file with --decode_to_file")
    lines = textio.read_any_lines(from_file or _standard_input())
    if from_file:  # a file that cannot be read is known before a model is loaded
        lines = itertools.chain(list(itertools.islice(lines, 1)), lines)
    lines = itertools.islice(_prompted(lines) if interactive else lines, limit)
    encoder = LineEncoder(problem, f"{from_file}, line" if from_file else "line", max_input_length)
    form = AnswerLines(problem, with_scores, with_ponder, with_hypotheses)
    loaded = load()
    sizes = (1, 1) if interactive else (max(FIRST, batch_size), max(MOST, 16 * batch_size))
    tally = _Tally()
    with contextlib.ExitStack() as stack:
        write = stack.enter_context(_output(to_file))
        log = None if interactive else stack.enter_context(Progress())
        if interactive:
            print("one line, one answer; Ctrl-D ends", file=sys.stderr, flush=True)
        else:
            log.doing("reading lines")
        for window in windows(lines, *sizes):
            entries = [encoder(line) for line in window]
            good = [entry for entry in entries if entry.inputs is not None]
            answers = iter(_answer_window(loaded, good, batch_size, options, output_limit, tally, log))
            for entry in entries:
                decoded, fault = None if entry.inputs is None else next(answers), entry.fault
                if decoded and not math.isfinite(decoded.score):
                    decoded, fault = None, NOT_FINITE
                    encoder.refuse(entry.number, fault)
                line = form.answered(entry.text, decoded) if decoded else form.refused(entry.text, fault)
                tally.empty += not (decoded and decoded.text)
                write(line + "\n")
            tally.lines += len(entries) - len(good)
            write(None)
    if form.broken:
        print(f"{form.broken} answers hold a line feed, written as a blank; --with_scores keeps it", file=sys.stderr)
    print(f"answered {tally.summary()}", file=sys.stderr)
    if encoder.cuts:
        print(f"{encoder.cuts:,} of {tally.lines:,} lines were cut", file=sys.stderr)
    if encoder.faults:
        print(f"{encoder.faults:,} of {tally.lines:,} lines could not be answered", file=sys.stderr)
    if to_file:
        print(f"wrote {to_file}", file=sys.stderr)
    return encoder.faults


class _Tally:
    """Counts lines and the tokens of their answers, and says how many there were in a second."""

    def __init__(self):
        self.lines = self.tokens = self.empty = 0
        self.start = self.said = time.monotonic()

    def rates(self, lines, tokens):
        seconds = max(time.monotonic() - self.start, 1e-9)
        return f"{lines / seconds:.1f} lines/s, {tokens / seconds:.1f} tokens/s"

    def summary(self):
        return f"{self.lines:,} lines, {self.empty:,} of them with nothing ({self.rates(self.lines, self.tokens)})"


def _answer_window(loaded, entries, batch_size, options, output_limit, tally, log):
    """Returns the `Decoded` of entries in order; samples depend on a line's number and on no other line."""

    def doing(done, tokens):
        done, tokens = tally.lines + done, tally.tokens + tokens
        text = f"{done:,} lines, {tally.rates(done, tokens)}"
        if log and time.monotonic() - tally.said >= SECONDS:
            log.say(f"answered {text}")
            tally.said = time.monotonic()
        if log:
            log.doing(f"answering: {text}")

    numbers = [entry.number for entry in entries]
    answers = answer_ids(
        loaded, [entry.inputs for entry in entries], batch_size, options, output_limit, keys=numbers, doing=doing
    )
    tally.lines += len(answers)
    tally.tokens += sum(len(answer.ids) for answer in answers)
    return answers


def _standard_input():
    if sys.stdin is None:
        raise UserError("standard input is closed: name a file with --decode_from_file")
    return sys.stdin.buffer


def _prompted(lines):
    """Yields lines, each after a prompt on standard error."""
    while True:
        print("> ", end="", file=sys.stderr, flush=True)
        line = next(lines, None)
        if line is None:
            print(file=sys.stderr)
            return
        yield line


@contextlib.contextmanager
def _output(to_file):
    """Gives a function that writes text; None flushes it."""
    if to_file:
        with textio.atomic_writer(to_file) as file:
            yield lambda text: file.flush() if text is None else file.write(text)
        return
    # What a terminal's locale is has no influence on what is written.
    if (sys.stdout.encoding or "").lower().replace("-", "") != "utf8" and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8")
    yield lambda text: sys.stdout.flush() if text is None else sys.stdout.write(text)
