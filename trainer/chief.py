"""What the chief alone does: it reads and writes the run directory, evaluates, exports and reports."""

import contextlib
import functools

from trainer import devices
from trainer.checkpoints import Checkpoints, find_checkpoint, restore_model
from trainer.early_stopping import EarlyStopping
from trainer.evaluate import Evaluator
from trainer.evaluation_model import EvaluationModel
from trainer.loaded import Loaded, load, name_in
from trainer.report import final_report
from trainer.summaries import Summaries
from trainer.tables import evaluation_line
from trainer.warm_start import warm_start


class Chief(contextlib.AbstractContextManager):
    """Keeps one run directory while its model is trained.

    Args:
        config: `TrainConfig`.
        strategy: the one that `model` was built under.
        log: `Progress`.
        problem: prepared.
        model, optimizer: built.
        run: `RunDir`.
    """

    def __init__(self, config, strategy, log, problem, model, optimizer, run):
        self.run = run
        self._config, self._log, self._problem, self._model = config, log, problem, model
        self._step = 0
        self._closing = contextlib.ExitStack()
        self._checkpoints = Checkpoints(run, model, optimizer, config.keep_checkpoints, problem.selection)
        self._copy = EvaluationModel(model, optimizer, config.hparams, problem.features, strategy)
        self._loaded = Loaded(self._copy.model, problem, config.hparams, 0, run.path)
        self._evaluator = Evaluator(self._loaded, log)

    def __exit__(self, *_):
        self._closing.close()
        self.run.unlock()

    def restore(self):
        """Restores the last checkpoint, or starts from other weights; returns what `Checkpoints.restore_last` does."""
        restored, source = self._checkpoints.restore_last(), self._config.warm_start_from
        self._step = restored.step
        if restored.step:
            self.run.keep()
            if source:
                self._log.say(
                    f"{self.run.path} goes on from its own step {restored.step}: --warm_start_from is for the start of "
                    "a run"
                )
        else:
            if source:
                warm_start(self._model, source, self._problem)
            self._checkpoints.start_averages()  # Keras begins at 0, and the first updates may be skipped
        self.run.rewind_metrics(restored.step)
        return restored

    def record(self, step, values, vectors=None):
        """Writes what is known after a step to metrics.jsonl and TensorBoard."""
        self._summaries.write(step, values, vectors)  # first: an evaluation without its line is made and shown again
        self.run.log_metrics(step, values)

    def save(self, step, interval):
        """Saves a checkpoint, with what has been added up since the last line."""
        self._checkpoints.save(step, {"interval": interval.state()})
        self.run.keep()

    def evaluated(self, step):
        """Returns whether the evaluation after a step is recorded."""
        return any(line["step"] == step for line in self.run.evaluations())

    def evaluate(self, step):
        """Scores the development split. The record comes last: where it is missing, all of this is done again."""
        self._log.doing(f"evaluating after step {step}")
        self._copy.update()
        scores = self._evaluator.evaluate(self._problem.split("dev"), "dev", free_running=False)
        values = {name: value for name, value in scores.items() if isinstance(value, int | float)}
        kept = self._checkpoints.save_best(step, values)
        if kept and self._config.export_best:
            self._export()
        self.record(step, values)
        self._log.say(evaluation_line(step, values) + (f"  ({kept})" if kept else ""))

    def stops_early(self):
        """Returns whether the evaluations so far end the run, and says so."""
        patience = self._config.early_stopping
        return bool(patience) and EarlyStopping(patience).check(self.run, self._log)

    def report(self):
        """Scores the best weights on the final split."""
        loaded, split = self._loaded, self._problem.final_split
        self._log.doing(f"scoring on the {split} split")
        path = find_checkpoint(self.run, "best")
        loaded.step, loaded.checkpoint = restore_model(self.run, loaded.model, path), name_in(self.run.path, path)
        none = "" if split == "test" else f" ({self._config.problem} has no test split here)"
        self._log.say(f"the weights of step {loaded.step} on the {split} split{none}:")
        final_report(loaded, self._evaluator, split)

    @functools.cached_property
    def _summaries(self):
        summaries = self._closing.enter_context(Summaries(self.run.path / "tb", self._step))
        summaries.hparams(self._config.hparams.relevant())
        return summaries

    def _export(self):
        from trainer.export import export

        self._log.doing("exporting the best weights")
        with devices.precision("none"):
            self._log.say(f"exported to {export(load(self.run.path))}")
