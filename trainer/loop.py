"""Training, from top to bottom."""

import contextlib
import functools
import sys

import tensorflow as tf

from problems.pipeline import training_batches
from trainer import agreement, devices, progress, start
from trainer.checkpoints import Checkpoints, find_checkpoint, restore_model
from trainer.early_stopping import EarlyStopping
from trainer.evaluate import Evaluator
from trainer.evaluation_model import EvaluationModel
from trainer.interval import Interval
from trainer.loaded import Loaded, load, name_in
from trainer.pace import Pace
from trainer.peers import Watch
from trainer.profiling import Profile
from trainer.report import final_report
from trainer.step import TrainStep
from trainer.stopping import StopSignal
from trainer.summaries import Summaries
from trainer.tables import evaluation_line
from trainer.warm_start import warm_start
from ut_keras import schedules
from ut_keras.errors import UserError

ALL_SKIPPED = 50  # updates left out in a row, without one that was made, after which there is no hope


def train(config):
    """Trains one run to its end and reports; goes on from the run directory's last checkpoint if it has one.

    Args:
        config: `trainer.config.TrainConfig`.

    Returns:
        The exit code: 0 at the end, 143 after SIGTERM and 130 after Ctrl-C, both with everything saved.

    Raises:
        UserError: data or run directory are not as they should be, the loss is not finite, or a worker is gone.
    """
    schedules.from_hparams(config.hparams)  # refuses an unknown schedule before data are made
    if config.deterministic:
        tf.config.experimental.enable_op_determinism()
    used = devices.start(config.strategy, config.cluster, config.worker_timeout)
    start.refuse_unfit(config, used)
    watch = Watch(config.cluster, config.worker_timeout)
    if not used.chief:
        log_of = config.cluster.named(0)
        print(f"{config.cluster.describe()}: {log_of} writes the log and the run directory", file=sys.stderr, flush=True)
    with progress.Progress(quiet=not used.chief) as log, devices.precision(config.mixed_precision), watch:
        problem = start.prepare(config, used, log)
        config = start.agree(config, used, problem)
        log.doing("building the model")
        model, optimizer = start.build(config, used, problem)
        run = start.open_run(config, problem, model, log) if used.chief else None
        try:
            return Training(config, used, log, problem, model, optimizer, run).train()
        except BaseException:
            if run:
                run.discard()
            raise


class Training:
    """One run of the training loop in one process.

    What is written to the run directory is a function of the step alone, rates apart: lines at the first update, every
    `log_every` and at each evaluation. All that has been added up since the last line is saved with a checkpoint.

    Args:
        config: `TrainConfig`, the same for all workers.
        used: `Devices`.
        log: `Progress`.
        problem: prepared.
        model, optimizer: built for the devices.
        run: `RunDir`; None for a worker that is not the chief.
    """

    def __init__(self, config, used, log, problem, model, optimizer, run):
        self._config, self._devices, self._log = config, used, log
        self._problem, self._model, self._optimizer, self._run = problem, model, optimizer, run
        self._hparams = config.hparams
        self._step = 0
        self._interval = Interval()

    def train(self):
        """Trains to the end and returns the exit code."""
        with contextlib.ExitStack() as self._closing:
            self._restore()
            if not self._chief(self._finished):
                stopped = self._train()
                if stopped:
                    return stopped
            return self._end()

    def _train(self):
        """Makes the updates that are left; returns an exit code where a signal ends the process, else None."""
        batches = self._start()
        pace = Pace(self._step, self._hparams.train_steps)
        self._log.doing("compiling the training step")
        profile = self._run and self._config.profile and Profile(self._run.path / "tb", self._config.profile)
        with StopSignal(self._devices, self._save) as stop, profile or contextlib.nullcontext():
            while self._step < self._hparams.train_steps:
                count = self._steps_to_take()
                if profile:
                    profile.update(self._step)
                self._interval.add(self._step + 1, self._train_step.run(batches, self._step, count))
                self._step += count
                self._log.bar(self._step, self._hparams.train_steps)
                first = pace.reached(self._step)
                if first or pace.line_is_due or self._records():
                    self._say(pace)
                if first:
                    self._interval.restart_clock()  # what compiling took is no rate
                if stop.check(self._step):
                    name = stop.received.name
                    self._log.say(
                        f"stopped by {name} and saved at step {self._step}; the same command goes on from there"
                    )
                    return 128 + stop.received
                if self._evaluates() and self._evaluate():
                    break
        return None

    def _restore(self):
        """Brings model, optimizer and step to where the run is; to the other workers too."""
        config = self._config
        if self._run:
            self._checkpoints = Checkpoints(
                self._run, self._model, self._optimizer, config.keep_checkpoints, self._problem.selection
            )
            self._step, host = self._checkpoints.restore_last()
            self._interval = Interval.from_state(host.get("interval", {}))
            if self._step:
                self._run.keep()
                if config.warm_start_from:
                    self._log.say(
                        f"{self._run.path} goes on from its own step {self._step}: --warm_start_from is for the "
                        "start of a run"
                    )
            elif config.warm_start_from:
                warm_start(self._model, config.warm_start_from, self._problem)
            features, strategy = self._problem.features, self._devices.strategy
            self._copy = EvaluationModel(self._model, self._optimizer, self._hparams, features, strategy)
            self._loaded = Loaded(self._copy.model, self._problem, self._hparams, self._step, self._run.path)
            self._evaluator = Evaluator(self._loaded, self._log)
            self._run.rewind_metrics(self._step)
            self._resumed = self._step  # what TensorBoard has of later steps is superseded
        if self._devices.workers > 1:
            self._step = agreement.from_chief(self._devices, self._step)
            agreement.broadcast(self._devices, [*self._model.variables, *self._optimizer.variables])

    def _finished(self):
        """Returns whether there is nothing left to train; makes the evaluation that a killed process has not."""
        if self._step and self._evaluates() and not self._evaluated():
            self._score()
        if self._stops_early():
            return True
        if self._step >= self._hparams.train_steps:
            self._log.say(f"{self._run.path} is finished: {self._step} steps; raise --train_steps to go on")
            return True
        return False

    def _start(self):
        """Returns the iterator of the batches that are left, everything else made ready."""
        config = self._config
        split = self._problem.split("train")
        plan = start.batch_plan(config, self._devices, split)
        start.describe(self._log, config, self._devices, self._problem, plan, self._model)
        if self._step:
            self._log.say(f"going on from step {self._step}")
        static = config.jit_compile or config.strategy == "tpu"
        batches = training_batches(split, plan, self._step, fill_rows=static)
        self._train_step = TrainStep(
            self._model,
            self._optimizer,
            self._hparams,
            None if config.strategy == "tpu" else batches.element_spec,
            self._devices.strategy,
            config.seed,
            config.jit_compile,
            config.gradient_accumulation,
        )
        return iter(batches)

    def _steps_to_take(self):
        """Returns how many updates the next call makes: up to the next one after which something is to be done."""
        config, hparams, step = self._config, self._hparams, self._step
        ends = [step + config.steps_per_execution, hparams.train_steps]
        ends += [step - step % every + every for every in (config.log_every, hparams.eval_every)]
        if step == 0:
            ends.append(1)
        if config.profile:
            first, count = config.profile
            ends += [end for end in (first - 1, first - 1 + count) if end > step]
        return min(ends) - step

    def _records(self):
        step, last = self._step, self._hparams.train_steps
        return step in (1, last) or step % self._config.log_every == 0 or self._evaluates()

    def _evaluates(self):
        return self._step % self._hparams.eval_every == 0 or self._step >= self._hparams.train_steps

    @functools.cached_property
    def _summaries(self):
        summaries = self._closing.enter_context(Summaries(self._run.path / "tb", self._resumed))
        summaries.hparams(self._hparams.relevant())
        return summaries

    def _say(self, pace):
        """Writes a progress line; and to the run directory, after a step that has its place there."""
        self._refuse_bad_steps()
        values = self._interval.metrics()
        self._log.say(progress.line(self._step, self._hparams.train_steps, values, pace.seconds_left(self._step)))
        pace.said()
        if not self._records():
            return
        self._record(values, self._interval.vectors())
        self._interval = Interval()

    def _record(self, values, vectors=None):
        if self._run:
            self._run.log_metrics(self._step, values)
            self._summaries.write(self._step, values, vectors)

    def _refuse_bad_steps(self):
        """UserError when something that was measured is not finite; nothing has been saved since it was."""
        skips = self._config.on_nan == "skip"
        bad = self._interval.first_bad_step(skipping=skips)
        if bad:
            raise UserError(
                f"the {bad.name} is {bad.value} at step {bad.step}; nothing has been saved since it was finite: "
                "lower learning_rate_constant, set clip_grad_norm, or leave such updates out by --on_nan=skip"
            )
        if self._interval.skipped == len(self._interval) >= ALL_SKIPPED:
            raise UserError(
                f"no update of the last {len(self._interval)} had a finite gradient, up to step {self._step}; the "
                "weights are those before: lower learning_rate_constant or set clip_grad_norm"
            )

    def _save(self, step):
        """Saves a checkpoint of the step that training has reached; for all workers to call, written by the chief."""
        self._refuse_bad_steps()
        if self._run:
            self._checkpoints.save(step, {"interval": self._interval.state()})
            self._run.keep()

    def _evaluate(self):
        """Saves, evaluates, and returns whether training ends early."""
        self._save(self._step)
        if self._run and self._config.evaluate:
            self._score()
        self._interval.restart_clock()  # the time that this took is no rate
        return self._chief(self._stops_early)

    def _score(self):
        """Scores the development split. The record comes last: where it is missing, all of this is done again."""
        if not self._config.evaluate:
            return
        self._log.doing(f"evaluating after step {self._step}")
        self._copy.update()
        scores = self._evaluator.evaluate(self._problem.split("dev"), "dev", free_running=False)
        values = {name: value for name, value in scores.items() if isinstance(value, int | float)}
        best = self._checkpoints.save_best(self._step, values)
        if best and self._config.export_best:
            self._export()
        self._record(values)
        self._log.say(evaluation_line(self._step, values) + ("  (kept as the best)" if best else ""))

    def _evaluated(self):
        return not self._config.evaluate or any(
            line["step"] == self._step and "dev/count" in line for line in self._run.metrics()
        )

    def _stops_early(self):
        return bool(self._config.early_stopping) and EarlyStopping(self._config.early_stopping).check(
            self._run, self._log
        )

    def _export(self):
        from trainer.export import export

        self._log.doing("exporting the best weights")
        with devices.precision("none"):
            self._log.say(f"exported to {export(load(self._run.path))}")

    def _chief(self, decide):
        """Returns what the chief decides, for all workers; others wait here while it works."""
        decision = int(decide()) if self._run else 0
        return bool(agreement.from_chief(self._devices, decision))

    def _end(self):
        """Scores the best weights on the final split and prints where everything is; workers end together."""
        if self._run:
            if self._config.evaluate:
                self._report()
            self._log.say(f"run directory: {self._run.path}")
        agreement.barrier(self._devices)
        return 0

    def _report(self):
        loaded, split = self._loaded, self._problem.final_split
        self._log.doing(f"scoring on the {split} split")
        path = find_checkpoint(self._run, "best")
        loaded.step = restore_model(self._run, loaded.model, path)
        loaded.checkpoint = name_in(self._run.path, path)
        none = "" if split == "test" else f" ({self._config.problem} has no test split here)"
        self._log.say(f"the weights of step {loaded.step} on the {split} split{none}:")
        final_report(loaded, self._evaluator, split)
