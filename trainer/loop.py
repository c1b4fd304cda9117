"""Training, from top to bottom."""

import contextlib
import signal
import threading
import time

import keras
import tensorflow as tf

import problems
import ut_keras
from trainer import devices, progress
from trainer.checkpoints import Checkpoints, find_checkpoint, restore_model
from trainer.evaluate import Evaluator
from trainer.loaded import Loaded, name_in
from trainer.report import final_report
from trainer.run_dir import RunDir
from trainer.step import make_optimizer, make_train_step
from trainer.tables import evaluation_line
from trainer.warm_start import warm_start
from ut_keras import optimizers
from ut_keras.errors import UserError
from ut_keras.models.build import build_model
from ut_keras.models.flops import forward_flops

TERMINATED = 128 + signal.SIGTERM
INTERRUPTED = 128 + signal.SIGINT
LOG_SECONDS = 60.0  # a progress line at least this often


def train(config):
    """Trains one run to its end and reports; goes on from the run directory's last checkpoint if it has one.

    Args:
        config: `trainer.config.TrainConfig`.

    Returns:
        The exit code: 0 at the end, 143 after SIGTERM and 130 after Ctrl-C, both with everything saved.

    Raises:
        UserError: data or run directory are not as they should be, or the loss is not finite.
    """
    optimizers.from_hparams(config.hparams)  # refuses an unknown schedule before data are made
    with progress.Progress() as log, devices.precision(config.mixed_precision):
        log.doing("preparing the data")
        if RunDir.exists(config.output_dir):
            problem = RunDir.open(config.output_dir).problem  # its `prepare` refuses other data
        else:
            problem = problems.get(config.problem, **config.problem_args)
        problem.prepare(config.data_dir, config.manual_dir)
        for name in ("train", "dev") if config.evaluate else ("train",):
            problem.split(name)  # refuses, with the problem's reason, what is not there
        log.doing("building the model")
        keras.utils.set_random_seed(config.seed)
        strategy = devices.choose_strategy(config.strategy)
        with strategy.scope():
            model = build_model(config.hparams, problem.features)
            optimizer = make_optimizer(config.hparams, model)
        run = open_run(config, problem, model, log)
        try:
            return _train(config, log, problem, strategy, model, optimizer, run)
        except BaseException:
            run.discard()
            raise


def _train(config, log, problem, strategy, model, optimizer, run):
    hparams = config.hparams
    checkpoints = Checkpoints(run, model, optimizer, config.keep_checkpoints, problem.selection)
    step = checkpoints.restore_last()
    if step:
        run.keep()
        if config.warm_start_from:
            log.say(f"{run.path} goes on from its own step {step}: --warm_start_from is for the start of a run")
    elif config.warm_start_from:
        warm_start(model, config.warm_start_from, problem)
    loaded = Loaded(model, problem, hparams, step, run.path)
    if step >= hparams.train_steps:
        log.say(f"{run.path} is finished: {step} steps; raise --train_steps to go on")
        return _report(config, log, run, Evaluator(loaded, log))

    split = problem.split("train")
    plan = problems.BatchPlan(
        split.lengths,
        hparams.batch_size,
        hparams.use_fixed_batch_size,
        hparams.max_length,
        config.seed,
        hparams.long_examples,
    )
    describe(log, config, problem, plan, model, strategy, step)
    run.rewind_metrics(step)
    batches = problems.training_batches(split, plan, step)
    train_step = make_train_step(
        model, optimizer, hparams, batches.element_spec, strategy, config.seed, config.jit_compile
    )
    evaluator = Evaluator(loaded, log)
    events = tf.summary.create_file_writer(str(run.path / "tb"))
    clock, interval = None, progress.Interval()
    log.doing("compiling the training step")
    with StopSignal() as stop:
        for batch in batches:
            interval.add(step + 1, train_step(batch, tf.constant(step, tf.int64)))
            step += 1
            log.bar(step, hparams.train_steps)

            first = clock is None  # includes compiling: a line of its own keeps it out of the rates
            last = step >= hparams.train_steps or stop.received
            evaluates = step % hparams.eval_every == 0 or last
            if first or evaluates or step % config.log_every == 0 or interval.seconds > LOG_SECONDS:
                refuse_bad_loss(interval, run)
                values = interval.metrics()
                values["train/learning_rate"] = float(optimizer.learning_rate)
                record(run, events, step, values)
                clock = clock or (time.monotonic(), step)
                rate = (time.monotonic() - clock[0]) / max(step - clock[1], 1)
                left = None if first else rate * (hparams.train_steps - step)
                log.say(progress.line(step, hparams.train_steps, values, left))
                interval = progress.Interval()
            if evaluates:
                checkpoints.save(step)
                run.keep()
                if config.evaluate and not stop.received:
                    log.doing(f"evaluating after step {step}")
                    values = numbers(evaluator.evaluate(problem.split("dev"), "dev", free_running=False))
                    record(run, events, step, values)
                    best = checkpoints.save_best(step, values)
                    log.say(evaluation_line(step, values) + ("  (kept as the best)" if best else ""))
                    interval = progress.Interval()
            if last:
                break
    events.close()
    if stop.received and step < hparams.train_steps:
        log.say(f"stopped by {stop.received.name} and saved at step {step}; the same command goes on from there")
        return 128 + stop.received
    return _report(config, log, run, evaluator)


def _report(config, log, run, evaluator):
    """Scores the best weights on the final split and prints where everything is."""
    if config.evaluate:
        loaded, split = evaluator.loaded, evaluator.problem.final_split
        log.doing(f"scoring on the {split} split")
        path = find_checkpoint(run, "best")
        loaded.step, loaded.checkpoint = restore_model(run, loaded.model, path), name_in(run.path, path)
        none = "" if split == "test" else f" ({config.problem} has no test split here)"
        log.say(f"the weights of step {loaded.step} on the {split} split{none}:")
        final_report(loaded, evaluator, split)
    log.say(f"run directory: {run.path}")
    return 0


def open_run(config, problem, model, log):
    """Opens or creates the run directory; says what of the recipe has changed since it was last written."""
    settings = {
        **config.settings(),
        "parameters": int(model.count_params()),
        "versions": {"ut_keras": ut_keras.__version__, "tensorflow": tf.__version__, "keras": keras.__version__},
    }
    if not RunDir.exists(config.output_dir):
        log.say(f"run directory: {config.output_dir}")
        return RunDir.create(config.output_dir, config.hparams, problem, settings)
    run = RunDir.open(config.output_dir)
    for name, (old, new) in run.hparams.differences(config.hparams).items():
        log.say(f"{name} was {old} and is {new} from here on")
    run.update(settings, config.hparams)
    return run


def describe(log, config, problem, plan, model, strategy, step):
    """Says what is about to run: model, data, batches, devices."""
    hparams = config.hparams
    lengths = problem.split("train").lengths.mean(axis=0).round().astype(int).tolist()
    operations = forward_flops(hparams, problem.features, *lengths)
    log.say(f"{config.problem}, {hparams.model} ({config.hparams_set}): {model.count_params():,} parameters")
    inputs = f"{lengths[0]} positions of input, " if lengths[0] else ""
    log.say(
        f"floating-point operations: {operations:,} forward, all steps, for an example of mean length "
        f"({inputs}{lengths[1]} {'' if inputs else 'positions '}of target)"
    )
    long, fate = (plan.cut, "are cut") if hparams.long_examples == "cut" else (plan.dropped, "were dropped")
    log.say(f"training examples: {plan.examples:,}; {long:,} above max_length={hparams.max_length} {fate}")
    unit = "examples" if hparams.use_fixed_batch_size else "tokens (source and target, padded)"
    rows, source, target = max(plan.shapes, key=lambda shape: shape[0] * (shape[1] + shape[2]))
    inputs = f"{rows} x {source} inputs and " if source else ""
    log.say(
        f"batches: {hparams.batch_size} {unit} over {devices.describe(strategy)}; {plan.steps_per_epoch} in an epoch; "
        f"the largest is {inputs}{rows} x {target} targets"
    )
    if step:
        log.say(f"going on from step {step}")


def numbers(scores):
    """Returns those of the scores that are numbers."""
    return {name: value for name, value in scores.items() if isinstance(value, int | float)}


def record(run, events, step, values):
    """Writes values to metrics.jsonl and TensorBoard."""
    run.log_metrics(step, values)
    with events.as_default(step=step):
        for name, value in values.items():
            tf.summary.scalar(name, value)
    events.flush()


def refuse_bad_loss(interval, run):
    """UserError when a loss of the interval is not finite; nothing has been saved since."""
    bad = interval.first_bad_step()
    if bad:
        raise UserError(
            f"the loss is {bad[1]} at step {bad[0]}; nothing has been saved since it was finite: "
            "lower learning_rate_constant or set clip_grad_norm"
        )


class StopSignal(contextlib.AbstractContextManager):
    """Takes SIGTERM and the first Ctrl-C as a wish to save and stop; the second Ctrl-C stops at once.

    Attributes:
        received: the signal, or None.
    """

    def __init__(self):
        self.received = None
        self._before = {}

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._before[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *_):
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _receive(self, number, frame):
        if self.received:
            raise KeyboardInterrupt
        self.received = signal.Signals(number)
