"""A trained run in Python, from its run directory alone."""

import functools

from trainer.decode import decode_lines
from ut_keras.errors import UserError


class Loaded:
    """A trained model with its problem.

    Args:
        model: the built model, with its weights.
        problem: the `Problem` it was trained on.
        hparams: its `HParams`.
        step: training step of the weights; None if unknown.
        output_dir: the run directory; None if there is none.

    Example:

    >>> run = trainer.load("runs/babi")                                     # doctest: +SKIP
    >>> run.generate(["Mary went to the kitchen. Where is Mary?"])          # doctest: +SKIP
    ['kitchen']
    """

    def __init__(self, model, problem, hparams=None, step=None, output_dir=None):
        self.model = model
        self.problem = problem
        self.hparams = hparams
        self.step = step
        self.output_dir = output_dir
        self.answers = functools.cache(self._compile_answers)

    def generate(self, texts, batch_size=32):
        """Returns the answer to each of `texts`, a list of strings, as `python -m trainer decode` would."""
        if isinstance(texts, str):
            raise UserError(f"generate takes a list of texts, not one: generate([{texts[:40]!r}])")
        return [decoded.text for decoded in decode_lines(self, list(texts), batch_size, source="text")]

    def _compile_answers(self, decoder_ponder=False):
        """Returns the compiled `answer` function; built once, it serves every batch shape."""
        from ut_keras.decoding.answer import compile_answer

        return compile_answer(self.model, self.problem.features, decoder_ponder)


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
    step = checkpoints.restore_model(run_dir, model, checkpoint)
    return Loaded(model, problem, run_dir.hparams, step, run_dir.path)
