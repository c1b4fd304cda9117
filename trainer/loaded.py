"""A trained run in Python, from its run directory alone."""

import functools
import pathlib

from trainer.decode import decode_lines
from ut_keras.errors import UserError

_COMPILED = 8  # functions that are kept, one for each `DecodingOptions`


class Loaded:
    """A trained model with its problem.

    Args:
        model: the built model, with its weights.
        problem: the `Problem` it was trained on.
        hparams: its `HParams`.
        step: training step of the weights; None if unknown.
        output_dir: the run directory; None if there is none.
        checkpoint: which weights these are, for the record: a path in the run directory.

    Attributes:
        answers: function (`DecodingOptions`) -> the compiled `answer` function, which serves every batch shape.
        measure: the `Measure` of the model.

    Example:

    >>> run = trainer.load("runs/babi")                                     # doctest: +SKIP
    >>> run.generate(["Mary went to the kitchen. Where is Mary?"])          # doctest: +SKIP
    ['kitchen']
    """

    def __init__(self, model, problem, hparams=None, step=None, output_dir=None, checkpoint=None):
        self.model = model
        self.problem = problem
        self.hparams = hparams
        self.step = step
        self.output_dir = output_dir
        self.checkpoint = checkpoint
        self.answers = functools.lru_cache(_COMPILED)(self._compile_answers)

    def generate(self, texts, batch_size=32, **options):
        """Returns the answer to each of `texts`, a list of strings, as `python -m trainer decode` would.

        A language model goes on where each text ends, and gives what comes behind it.

        Args:
            texts: list of strings.
            batch_size: texts at once.
            **options: what the command has flags for: `extra_length`, `max_output_length`, `max_input_length`, and
                the fields of `ut_keras.decoding.options.DecodingOptions` (`beam_size`, `alpha`, `temperature`, ...).

        Returns:
            list of strings; with `n_best` above 1 a list of lists of strings, best first (fewer where there are not
            so many answers).

        Raises:
            UserError: a text cannot be encoded or is too long; the message names its number, and nothing is decoded.
            UsageError: options do not fit each other or the problem.
        """
        answers = self.decode(texts, batch_size, **options)
        if options.get("n_best", 1) == 1:
            return [decoded.text for decoded in answers]
        return [[hypothesis.text for hypothesis in decoded.hypotheses] for decoded in answers]

    def decode(self, texts, batch_size=32, **options):
        """Returns the `trainer.answers.Decoded` of each of `texts`: scores, ponder times and all hypotheses.

        Arguments and errors are those of `generate`.
        """
        return decode_lines(self, _list(texts, "generate"), batch_size, source="text", **options)

    def score(self, sources, targets=None):
        """Returns the natural logarithm of the probability of each target, a list, as `python -m trainer score` would.

        Args:
            sources: list of strings; for a language model the texts that are scored.
            targets: list of strings, the answers to score; a language model has none.

        Raises:
            UserError: a text cannot be encoded, or the lists do not fit each other.
        """
        from trainer.score import encode_pairs, score_ids

        sources = _list(sources, "score")
        if not self.problem.features.input_vocabulary_size:
            if targets is not None:
                raise UserError(f"{self.problem.name} is a language model: score takes the texts alone")
            pairs = [(None, text) for text in sources]
        else:
            targets = _list([] if targets is None else targets, "score")
            if len(sources) != len(targets):
                raise UserError(f"score takes a target for each source; it got {len(sources)} and {len(targets)}")
            pairs = list(zip(sources, targets, strict=True))
        return score_ids(self, encode_pairs(self.problem, pairs, "text"))[0].tolist()

    @functools.cached_property
    def measure(self):
        from trainer.measure import Measure

        return Measure(self.model, self.problem)

    def _compile_answers(self, options):
        from ut_keras.decoding.answer import compile_answer

        return compile_answer(self.model, self.problem.features, options)


def _list(texts, function):
    if isinstance(texts, str):
        raise UserError(f"{function} takes a list of texts, not one: {function}([{texts[:40]!r}])")
    texts = list(texts)
    for number, text in enumerate(texts, 1):
        if not isinstance(text, str):
            raise UserError(f"{function} takes texts, and text {number} is no string: {text!r:.40}")
    return texts


def load(output_dir, checkpoint="best"):
    """Loads a trained run from its run directory.

    Args:
        output_dir: the directory that training wrote.
        checkpoint: "best" (on the development split), "last", or the path of a checkpoint.

    Returns:
        `Loaded`.

    Raises:
        UserError: not a run directory, or the checkpoint is missing or of another architecture.
    """
    from trainer import checkpoints
    from trainer.run_dir import RunDir
    from ut_keras.models.build import build_model

    run_dir = RunDir.open(output_dir)
    problem = run_dir.problem
    model = build_model(run_dir.hparams, problem.features)
    path = checkpoints.find_checkpoint(run_dir, checkpoint)
    step = checkpoints.restore_model(run_dir, model, path)
    return Loaded(model, problem, run_dir.hparams, step, run_dir.path, name_in(run_dir.path, path))


def name_in(run_path, path):
    """Returns the path of a checkpoint, relative where it is inside of the run directory."""
    path, run_path = pathlib.Path(path).absolute(), pathlib.Path(run_path).absolute()
    return str(path.relative_to(run_path) if path.is_relative_to(run_path) else path)
