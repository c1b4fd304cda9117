"""What is there before the first training step: data, model, optimizer, run directory, and their description."""

import contextlib
import dataclasses
import io
import sys

import keras
import tensorflow as tf

import problems
import ut_keras
from trainer import agreement
from trainer.run_dir import RunDir
from trainer.step import make_optimizer
from ut_keras.errors import UsageError
from ut_keras.models.build import build_model
from ut_keras.models.flops import forward_flops


def refuse_unfit(config, devices):
    """UsageError where flags ask for what the devices cannot do."""
    if config.steps_per_execution > 1 and devices.workers > 1 and not tf.config.list_physical_devices("GPU"):
        raise UsageError(
            "--steps_per_execution with --strategy=multi_worker: TensorFlow's collectives on CPUs do not work in a "
            "loop; leave it out"
        )


def introduce(cluster):
    """Says, for a worker that says nothing else, who it is and who does."""
    line = f"{cluster.describe()}: {cluster.named(0)} writes the log and the run directory"
    print(line, file=sys.stderr, flush=True)


def prepare(config, devices, log):
    """Returns the prepared problem: the chief makes the data first, and where disks are shared the others find them."""
    problem = None
    for turn in (True, False):
        if devices.chief == turn:
            log.doing("preparing the data")
            with contextlib.nullcontext() if devices.chief else contextlib.redirect_stderr(io.StringIO()):
                problem = _prepare(config, devices)
        agreement.barrier(devices)
    return problem


def _prepare(config, devices):
    if devices.chief and RunDir.exists(config.output_dir):
        problem = RunDir.open(config.output_dir).problem  # its `prepare` refuses other data
    else:
        problem = problems.get(config.problem, **config.problem_args)
    problem.prepare(config.data_dir, config.manual_dir)
    for name in ("train", "dev") if config.evaluate else ("train",):
        problem.split(name)  # refuses, with the problem's reason, what is not there
    if config.export_best:
        problem.text_encoder(), problem.text_decoder()  # refuse what could not be exported later
    return problem


def agree(config, devices, problem):
    """Returns the configuration with the chief's seed; UserError where a worker has other flags, data or versions."""
    items = {"data": [problem.fingerprint, dataclasses.asdict(problem.features)], "versions": versions()}
    agreement.agree(devices, {**config.of_all_workers(), **items})
    return dataclasses.replace(config, seed=agreement.from_chief(devices, config.seed))


def build(config, devices, problem):
    """Returns (model, optimizer), made for the devices from the run's seed."""
    keras.utils.set_random_seed(config.seed)
    with devices.strategy.scope():
        model = build_model(config.hparams, problem.features)
        return model, make_optimizer(config.hparams, model, config.ema_decay, config.on_nan)


def open_run(config, devices, problem, model, log):
    """Opens or creates the run directory; says what of the recipe has changed since it was last written."""
    settings = {**config.settings(), "parameters": int(model.count_params()), "versions": versions()}
    settings["replicas"] = devices.replicas
    log.say(f"run directory: {config.output_dir}")
    if not RunDir.exists(config.output_dir):
        run = RunDir.create(config.output_dir, config.hparams, problem, settings)
        run.lock()
        return run
    run = RunDir.open(config.output_dir)
    run.lock()
    changes = run.hparams.differences(config.hparams)
    for name, default in (("ema_decay", 0.0), ("replicas", devices.replicas)):
        if run.settings.get(name, default) != settings[name]:
            changes[name] = (run.settings.get(name, default), settings[name])
    for name, (old, new) in changes.items():
        log.say(f"{name} was {old} and is {new} from here on")
    run.update(settings, config.hparams)
    return run


def versions():
    """Returns {package: version} of what computes."""
    return {"ut_keras": ut_keras.__version__, "tensorflow": tf.__version__, "keras": keras.__version__}


def global_batch_size(config, devices):
    """Returns the size of a batch of all replicas of all workers together, in the unit of batch_size."""
    hparams = config.hparams
    replicas = devices.replicas if hparams.batch_size_per_replica else 1
    return hparams.batch_size * replicas * (hparams.optimizer_multistep_accumulate_steps or 1)


def batch_plan(config, devices, split):
    """Returns the plan of the training batches, which are global."""
    hparams = config.hparams
    return problems.BatchPlan(
        split.lengths,
        global_batch_size(config, devices),
        hparams.use_fixed_batch_size,
        hparams.max_length,
        config.seed,
        hparams.long_examples,
    )


def switches(config):
    """Returns what is on of precision and speed, as words for the log."""
    words = {
        config.mixed_precision: config.mixed_precision != "none",
        "XLA": config.jit_compile,
        "remat": config.hparams.remat,
        "deterministic": config.deterministic,
        f"{config.steps_per_execution} updates in a call": config.steps_per_execution > 1,
        f"averages of decay {config.ema_decay:g}": config.ema_decay > 0,
    }
    return [word for word, on in words.items() if on]


def describe(log, config, devices, problem, plan, model):
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
    log.say(", ".join([f"devices: {devices.describe()}", *switches(config)]))
    unit = "examples" if hparams.use_fixed_batch_size else "tokens (source and target, padded)"
    everything = global_batch_size(config, devices)
    shares = (
        f", {everything / devices.replicas:g} on each of {devices.replicas} devices" if devices.replicas > 1 else ""
    )
    parts = f" in {config.gradient_accumulation} parts" if config.gradient_accumulation > 1 else ""
    rows, source, target = max(plan.shapes, key=lambda shape: shape[0] * (shape[1] + shape[2]))
    inputs = f"{rows} x {source} inputs and " if source else ""
    log.say(
        f"batches: {everything} {unit} in all{shares}{parts}; {plan.steps_per_epoch} in an epoch; "
        f"the largest is {inputs}{rows} x {target} targets"
    )
