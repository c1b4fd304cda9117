"""From flags to a checked configuration of one training run. Standard library only: no TensorFlow."""

import dataclasses
import pathlib
import sys

from trainer.cluster import Cluster, from_environment
from trainer.run_dir import RunDir, refuse_foreign
from ut_keras import registry
from ut_keras.errors import UsageError, UserError
from ut_keras.hparams import HParams, parse_assignments
from ut_keras.registry import near_names

# Hparams that a run may change when it goes on: they shape how it learns, not what it is.
RECIPE = (
    "layer_prepostprocess_dropout attention_dropout relu_dropout remat position_start_range act_loss_weight "
    "act_loss_warmup_steps optimizer_adam_beta1 optimizer_adam_beta2 optimizer_adam_epsilon "
    "optimizer_adafactor_beta2 optimizer_adafactor_memory_exponent optimizer_adafactor_clipping_threshold "
    "optimizer_adafactor_multiply_by_parameter_scale optimizer_momentum_momentum optimizer_momentum_nesterov "
    "learning_rate "
    "learning_rate_constant learning_rate_schedule learning_rate_warmup_steps learning_rate_decay_steps "
    "learning_rate_decay_rate learning_rate_decay_staircase clip_grad_norm weight_decay "
    "label_smoothing batch_size batch_size_per_replica use_fixed_batch_size long_examples train_steps eval_every"
).split()


# Flags that the configuration takes as they are.
_TAKEN = (
    "strategy worker_timeout gradient_accumulation steps_per_execution mixed_precision jit_compile deterministic "
    "ema_decay on_nan early_stopping export_best log_every profile keep_checkpoints"
).split()


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """What one training run does.

    Attributes:
        problem: registered name.
        problem_args: dict of the problem's arguments, all of them.
        hparams_set: name of the set that `hparams` started from.
        hparams: the effective HParams; train_steps and eval_every are in it.
        output_dir: pathlib.Path of the run directory.
        data_dir, manual_dir, usr_dir, warm_start_from: str or None.
        seed: seed of weights, data order and dropout.
        strategy: "auto", "one_device", "mirrored", "multi_worker" or "tpu".
        cluster: `Cluster` of the workers, where there are several.
        worker_timeout: seconds within which all of them have to come.
        gradient_accumulation: parts of a batch before one update.
        steps_per_execution: updates in one call of TensorFlow.
        mixed_precision: "none" or the name of a Keras dtype policy.
        jit_compile: compile forward and backward pass with XLA.
        deterministic: only operations that give the same bits each time.
        ema_decay: decay of the moving average of the weights; 0: none.
        on_nan: "stop" or "skip".
        evaluate: evaluate while and after training.
        early_stopping: evaluations without a better one after which training ends; None: never.
        export_best: export at each best evaluation.
        log_every: updates between progress lines.
        profile: (first update, number of updates) to profile, or None.
        keep_checkpoints: how many of the last checkpoints are kept.
    """

    problem: str
    problem_args: dict
    hparams_set: str
    hparams: HParams
    output_dir: pathlib.Path
    data_dir: str | None = None
    manual_dir: str | None = None
    usr_dir: str | None = None
    warm_start_from: str | None = None
    seed: int = 0
    strategy: str = "auto"
    cluster: Cluster | None = None
    worker_timeout: float = 120.0
    gradient_accumulation: int = 1
    steps_per_execution: int = 1
    mixed_precision: str = "none"
    jit_compile: bool = False
    deterministic: bool = False
    ema_decay: float = 0.0
    on_nan: str = "stop"
    evaluate: bool = True
    early_stopping: int | None = None
    export_best: bool = False
    log_every: int = 100
    profile: tuple | None = None
    keep_checkpoints: int = 3

    def settings(self):
        """Returns what run.json remembers of this configuration."""
        return {
            "problem": self.problem,
            "problem_args": self.problem_args,
            "hparams_set": self.hparams_set,
            "usr_dir": _absolute(self.usr_dir),
            "data_dir": _absolute(self.data_dir),
            "manual_dir": _absolute(self.manual_dir),
            "seed": self.seed,
            "mixed_precision": self.mixed_precision,
            "ema_decay": self.ema_decay,
        }

    def of_all_workers(self):
        """Returns what has to be the same for all workers, {name: JSON value}; the chief's seed goes for all."""
        names = (
            "problem problem_args hparams_set gradient_accumulation steps_per_execution mixed_precision jit_compile "
            "deterministic ema_decay on_nan evaluate early_stopping log_every"
        ).split()
        return {name: getattr(self, name) for name in names} | {"hparams": dataclasses.asdict(self.hparams)}


def resolve(arguments):
    """Returns the TrainConfig of parsed `train` flags, checked against the run that --output_dir may hold.

    Raises:
        UsageError: a name or value is wrong, or belongs to another model.
        UserError: the run directory is of another problem, seed or architecture, or holds other files.
    """
    problem = find_problem(arguments)
    set_name = arguments.hparams_set or problem.default_hparams_set
    hparams = registry.hparams_sets.get(set_name)()
    hparams = choose_model(hparams, set_name, arguments.model, arguments.problem)
    refuse_misfit(hparams.model, problem)
    changes = parse_assignments(",".join(arguments.hparams or []), "--hparams")
    if "model" in changes:
        raise UsageError(f"--hparams: the model is chosen by its own flag, --model={changes['model']}")
    hparams = hparams.override(changes)
    for name in idle_changes(hparams, changes):
        print(f"warning: {name} has no effect under recurrence_type={hparams.recurrence_type}", file=sys.stderr)
    flags = {"train_steps": arguments.train_steps, "eval_every": arguments.eval_every, "remat": arguments.remat}
    hparams = hparams.override({name: value for name, value in flags.items() if value})
    refuse_misused_flags(arguments)
    config = TrainConfig(
        problem=arguments.problem,
        problem_args=problem.args,
        hparams_set=set_name,
        hparams=hparams,
        output_dir=pathlib.Path(arguments.output_dir or f"runs/{arguments.problem}-{set_name}").expanduser(),
        data_dir=arguments.data_dir,
        manual_dir=arguments.manual_dir,
        usr_dir=arguments.usr_dir,
        warm_start_from=arguments.warm_start_from,
        seed=arguments.seed or 0,
        cluster=from_environment(arguments.strategy, arguments.worker_timeout),
        evaluate=arguments.schedule != "train",
        **{name: getattr(arguments, name) for name in _TAKEN},
    )
    if config.cluster and not config.cluster.chief:
        return config  # the run directory is the chief's, perhaps on another machine
    if not RunDir.exists(config.output_dir):
        refuse_foreign(config.output_dir)
        refuse_no_start(config.warm_start_from)
        return config
    run = RunDir.open(config.output_dir)
    run.refuse_training()
    for key in ("problem", "problem_args", "seed", "mixed_precision"):
        if key not in run.settings:
            raise UserError(f"{run.path / 'run.json'} is damaged: it has no {key!r}")
    if arguments.seed is None:
        config = dataclasses.replace(config, seed=run.settings["seed"])
    refuse_other_run(config, run)
    return config


def refuse_misused_flags(arguments):
    """UsageError where flags of training do not go together."""
    if arguments.schedule == "train":
        for flag in ("early_stopping", "export_best"):
            if getattr(arguments, flag):
                raise UsageError(
                    f"--{flag} goes by evaluations, and --schedule=train makes none: leave one of them out"
                )
    if arguments.steps_per_execution > 1 and arguments.strategy == "tpu":
        raise UsageError(
            "--steps_per_execution with --strategy=tpu: a TPU's step is compiled for each batch shape, and batches "
            "that follow each other have different ones; leave it out"
        )


def refuse_no_start(source):
    """UserError where `source`, as of --warm_start_from, is neither a run, nor a directory of checkpoints, nor one."""
    if source is None or RunDir.exists(source):
        return
    path = pathlib.Path(source).expanduser()
    index = pathlib.Path(f"{str(path).removesuffix('.index')}.index")
    if not (path / "checkpoint").is_file() and not index.is_file():
        raise UserError(
            f"--warm_start_from={source}: there is no run directory and no checkpoint of this name; "
            "a checkpoint is named DIR/checkpoints/ckpt-1000"
        )


def idle_changes(hparams, changes):
    """Returns those of the names `changes` that only the other recurrence type reads."""
    if hparams.recurrence_type == "act":
        return [name for name in changes if name == "num_rec_steps"]
    return [name for name in changes if name.startswith("act_")]


def find_problem(arguments):
    """Returns the problem that --problem and --problem_args name; not prepared."""
    import problems

    given = parse_assignments(",".join(arguments.problem_args or []), "--problem_args")
    return problems.get(arguments.problem, **given)


def family(model):
    """Returns the family of a model's name: its hparams sets serve all of the family."""
    families = ("universal_transformer", "transformer", "lstm_seq2seq")
    return next((name for name in families if model.startswith(name)), model)


def choose_model(hparams, set_name, model, problem):
    """Returns `hparams` for `model`; UsageError when the set belongs to another family of models.

    The message names a set of that family, for the task of the set or of the problem's name where there is one.
    """
    if model is None:
        return hparams
    if model not in registry.models:
        registry.models.get(model)
    if family(model) == family(hparams.model):
        return hparams.override({"model": model}, source="--model")
    sets = registry.hparams_sets
    fitting = [name for name in sets.names() if family(sets.get(name)().model) == family(model)]
    near = (
        _of_same_task(set_name, problem, fitting)
        or near_names(set_name, fitting).replace("; near names: ", "").split(", ")[0]
    )
    near = near or next(iter(fitting), None)
    way_out = f"; add --hparams_set={near}" if near else ""
    raise UsageError(f"--model={model}: hparams set {set_name!r} is for {hparams.model}{way_out}")


def _of_same_task(set_name, problem, fitting):
    """Returns the set of another family for the same task: "transformer_babi" for "universal_transformer_babi"."""
    task = set_name.removeprefix("adaptive_").removeprefix(family(set_name.removeprefix("adaptive_"))).strip("_")
    same = [name for name in fitting if task and name.endswith(f"_{task}")]
    similar = [name for name in fitting if name.split("_")[-1] in problem.split("_")]
    return next(iter(same + similar), None)


def refuse_misfit(model, problem):
    """UsageError when the kind of model cannot learn the kind of problem (the model itself checks the rest)."""
    encoder = model.endswith("_encoder")
    if encoder != (problem.target == "class"):
        kind = "one class per example" if problem.target == "class" else "sequences"
        fitting = f"{family(model)}{'' if encoder else '_encoder'}"
        way_out = f"; use --model={fitting}" if fitting in registry.models else ""
        raise UsageError(f"model {model!r} does not fit {problem.name}, which has {kind}{way_out}")


def refuse_other_run(config, run):
    """UserError when `config` cannot go on with `run`: each message names both values."""
    pairs = [(key, (run.settings[key], getattr(config, key))) for key in ("problem", "seed", "mixed_precision")]
    if run.settings["problem"] == config.problem:
        old, new = run.settings["problem_args"], config.problem_args
        # Not a dict: an argument of a problem may be called as a flag is, "seed" for one.
        pairs += [(f"problem_args {key}", (old.get(key), new.get(key))) for key in sorted(old.keys() | new.keys())]
    changed = run.hparams.differences(config.hparams)
    pairs += [(name, values) for name, values in changed.items() if name not in RECIPE]
    for key, (old, new) in pairs:
        if old != new:
            raise UserError(
                f"{run.path} holds a run with {key}={old}, not {key}={new}: repeat that or choose another --output_dir"
            )


def _absolute(path):
    return path and str(pathlib.Path(path).expanduser().resolve())
