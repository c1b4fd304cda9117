"""From flags to a checked configuration of one training run. Standard library only: no TensorFlow."""

import dataclasses
import pathlib
import sys

from trainer import checkpoint_files
from trainer.cluster import from_environment
from trainer.idle_hparams import idle_changes
from trainer.run_dir import RunDir, refuse_foreign
from trainer.train_config import TrainConfig
from trainer.writable import refuse_unwritable
from ut_keras import registry
from ut_keras.errors import UsageError, UserError
from ut_keras.hparams import parse_assignments
from ut_keras.models.search_spaces import SEARCH_SPACES
from ut_keras.registry import near_names

# Hparams that a run may change when it goes on: they shape how it learns, not what it is.
RECIPE = (
    "layer_prepostprocess_dropout attention_dropout relu_dropout dropconnect_dropout remat position_start_range "
    "act_loss_weight act_loss_warmup_steps optimizer_adam_beta1 optimizer_adam_beta2 optimizer_adam_epsilon "
    "optimizer_adafactor_beta2 optimizer_adafactor_decay_type optimizer_adafactor_memory_exponent "
    "optimizer_adafactor_clipping_threshold optimizer_adafactor_multiply_by_parameter_scale "
    "optimizer_momentum_momentum optimizer_momentum_nesterov learning_rate learning_rate_constant "
    "learning_rate_schedule learning_rate_warmup_steps learning_rate_decay_steps learning_rate_decay_rate "
    "learning_rate_decay_staircase clip_grad_norm weight_decay label_smoothing batch_size batch_size_per_replica "
    "use_fixed_batch_size optimizer_multistep_accumulate_steps long_examples train_steps eval_every "
    "activation_dtype"  # mixed_precision says it, which is compared by itself: older runs have that alone
).split()


# Flags that the configuration takes as they are.
_TAKEN = (
    "strategy worker_timeout steps_per_execution jit_compile deterministic "
    "ema_decay on_nan early_stopping export_best log_every profile keep_checkpoints"
).split()

# Values of --mixed_precision and the activation_dtype of each.
_DTYPES = {"none": "float32", "mixed_float16": "float16", "mixed_bfloat16": "bfloat16"}


def resolve(arguments):
    """Returns the TrainConfig of parsed `train` flags, checked against the run that --output_dir may hold.

    Raises:
        UsageError: a name or value is wrong, or belongs to another model.
        UserError: the run directory is of another problem, seed or architecture, or holds other files.
    """
    problem = find_problem(arguments)
    set_name = arguments.hparams_set or problem.default_hparams_set
    if set_name in SEARCH_SPACES:
        base = SEARCH_SPACES[set_name].hparams_set
        raise UsageError(f"--hparams_set={set_name} is a search space, for a tuner; the set it varies is {base}")
    hparams = registry.hparams_sets.get(set_name)()
    hparams = choose_model(hparams, set_name, arguments.model, arguments.problem)
    refuse_misfit(hparams.model, problem)
    changes = parse_assignments(",".join(arguments.hparams or []), "--hparams")
    if "model" in changes:
        raise UsageError(f"--hparams: the model is chosen by its own flag, --model={changes['model']}")
    hparams = hparams.override(changes)
    for name, reason in idle_changes(hparams, changes):
        print(f"warning: {name} has no effect under {reason}", file=sys.stderr)
    flags = {
        "train_steps": arguments.train_steps,
        "eval_every": arguments.eval_every,
        "remat": arguments.remat,
        "activation_dtype": _DTYPES.get(arguments.mixed_precision),
    }
    hparams = hparams.override({name: value for name, value in flags.items() if value is not None})
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
        gradient_accumulation=arguments.gradient_accumulation or hparams.optimizer_multistep_accumulate_steps or 1,
        mixed_precision=next(policy for policy, dtype in _DTYPES.items() if dtype == hparams.activation_dtype),
        **{name: getattr(arguments, name) for name in _TAKEN},
    )
    if config.cluster and not config.cluster.chief:
        return config  # the run directory is the chief's, perhaps on another machine
    if not RunDir.exists(config.output_dir):
        refuse_foreign(config.output_dir)
        refuse_data_inside(config)
        refuse_no_start(config.warm_start_from)
        return config
    run = RunDir.open(config.output_dir)
    run.refuse_training()
    if arguments.schedule != "evaluate":
        refuse_unwritable(run.path, config.export_best)
    for key in ("problem", "problem_args", "seed", "mixed_precision"):
        if key not in run.settings:
            raise UserError(f"{run.path / 'run.json'} is damaged: it has no {key!r}")
    if not isinstance(run.settings["problem_args"], dict):
        raise UserError(f"{run.path / 'run.json'} is damaged: problem_args is no JSON object")
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


def refuse_data_inside(config):
    """UserError where data would be prepared in a run directory to be, which is then no empty one."""
    data, run = (path and pathlib.Path(path).expanduser().resolve() for path in (config.data_dir, config.output_dir))
    if data and data.is_relative_to(run):
        raise UserError(
            f"--data_dir={config.data_dir} is inside of --output_dir={config.output_dir}: data are for many runs, "
            "choose another directory for them"
        )


def refuse_no_start(source):
    """UserError where `source`, as of --warm_start_from, is neither a run, nor a directory of checkpoints, nor one."""
    if source is None or RunDir.exists(source):
        return
    path = pathlib.Path(source).expanduser()
    index = pathlib.Path(f"{str(path).removesuffix('.index')}.index")
    if not checkpoint_files.listed(path) and not index.is_file():
        raise UserError(
            f"--warm_start_from={source}: there is no run directory and no checkpoint of this name; "
            "a checkpoint is named DIR/checkpoints/ckpt-1000"
        )


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
    same = sorted((name for name in fitting if task and name.endswith(f"_{task}")), key=len)
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
