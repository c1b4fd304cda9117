"""Training, from top to bottom."""

import contextlib

import tensorflow as tf

from problems.pipeline import training_batches
from trainer import agreement, devices, progress, start
from trainer.chief import Chief
from trainer.finiteness import refuse_bad_steps, refuse_bad_weights
from trainer.interval import Interval
from trainer.pace import Pace
from trainer.peers import Watch
from trainer.profiling import Profile, missed
from trainer.step import TrainStep
from trainer.stopping import StopSignal
from ut_keras import schedules


def train(config):
    """Trains one run to its end and reports; goes on from the run directory's last checkpoint if it has one.

    Args:
        config: `trainer.train_config.TrainConfig`.

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
        start.introduce(config.cluster)
    with progress.Progress(quiet=not used.chief) as log, devices.precision(config.mixed_precision), watch:
        problem = start.prepare(config, used, log)
        config = start.agree(config, used, problem)
        log.doing("building the model")
        model, optimizer = start.build(config, used, problem)
        if not used.chief:
            return Training(config, used, log, problem, model, optimizer).train()
        run = start.open_run(config, used, problem, model, log)
        try:
            with Chief(config, used.strategy, log, problem, model, optimizer, run) as chief:
                return Training(config, used, log, problem, model, optimizer, chief).train()
        except BaseException:
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
        chief: `Chief`; None for a worker that is another.
    """

    def __init__(self, config, used, log, problem, model, optimizer, chief=None):
        self._config, self._devices, self._log, self._chief = config, used, log, chief
        self._problem, self._model, self._optimizer = problem, model, optimizer
        self._hparams = config.hparams
        self._step = 0
        self._interval = Interval()

    def train(self):
        """Trains to the end and returns the exit code."""
        self._restore()
        if not self._decided(self._finished):
            stopped = self._train()
            if stopped:
                return stopped
        if self._chief:
            if self._config.evaluate:
                self._chief.report()
            self._log.say(f"run directory: {self._chief.run.path}")
        agreement.barrier(self._devices)  # workers end together
        return 0

    def _restore(self):
        """Brings model, optimizer and step to where the run is; to the other workers too."""
        if self._chief:
            self._step, host = self._chief.restore()
            interval = host.get("interval", {})
        else:
            interval = None
        # All workers count alike: what a step has measured is the same for all, and so is what follows from it.
        self._step, interval = agreement.from_chief(self._devices, [self._step, interval])
        self._interval = Interval.from_state(interval)
        agreement.broadcast(self._devices, [*self._model.variables, *self._optimizer.variables])

    def _finished(self):
        """Returns whether there is nothing left to train; makes the evaluation that a killed process has not."""
        chief, config = self._chief, self._config
        if self._step and config.evaluate and self._evaluates() and not chief.evaluated(self._step):
            chief.evaluate(self._step)
        if chief.stops_early():
            return True
        if self._step >= self._hparams.train_steps:
            self._log.say(f"{chief.run.path} is finished: {self._step} steps; raise --train_steps to go on")
            return True
        return False

    def _train(self):
        """Makes the updates that are left; returns an exit code where a signal ends the process, else None."""
        batches = self._start()
        pace = Pace(self._step, self._hparams.train_steps)
        self._log.doing("compiling the training step")
        window = self._config.profile
        profile = None
        if self._chief and window:
            profile = Profile(self._chief.run.path / "tb", window, self._devices.names)
            if reason := missed(window, self._step, self._hparams.train_steps):
                self._log.warn(f"--profile={window[0]},{window[1]}: {reason}, nothing is profiled")
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
                    return self._stopped(stop.received)
                if self._evaluates() and self._evaluate():
                    break
            # A signal may have come while the last evaluation was made; the report can wait.
            received = stop.heard()
            return self._stopped(received) if received else None

    def _stopped(self, received):
        """Says what has ended training, and returns the exit code."""
        self._log.say(f"stopped by {received.name} and saved at step {self._step}; the same command goes on from there")
        return 128 + received

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
            several=config.steps_per_execution > 1,
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

    def _say(self, pace):
        """Writes a progress line; and to the run directory, after a step that has its place there."""
        self._refuse_bad_steps()
        values = self._interval.metrics()
        self._log.say(progress.line(self._step, self._hparams.train_steps, values, pace.seconds_left(self._step)))
        pace.said()
        if self._records():
            if self._chief:
                counted = "train/loss" in values  # no step was skipped, or not all of them
                self._chief.record(self._step, values, self._interval.vectors() if counted else None)
            self._interval = Interval(self._interval)

    def _save(self, step):
        """Saves a checkpoint of the step that training has reached; for all workers to call, written by the chief."""
        self._refuse_bad_steps()
        refuse_bad_weights(self._model.trainable_variables, step)
        if self._chief:
            self._chief.save(step, self._interval)

    def _evaluate(self):
        """Saves, evaluates, and returns whether training ends early."""
        self._save(self._step)
        if self._chief and self._config.evaluate:
            self._chief.evaluate(self._step)
        ends = self._decided(lambda: self._chief.stops_early())
        self._interval.restart_clock()  # nor is what evaluating took
        return ends

    def _decided(self, decide):
        """Returns what the chief decides, for all workers; the others wait here while it works."""
        return agreement.from_chief(self._devices, bool(self._chief and decide()))

    def _refuse_bad_steps(self):
        refuse_bad_steps(self._interval, self._step, self._config.on_nan == "skip")
