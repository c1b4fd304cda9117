"""A checkpoint of tensor2tensor's as a run directory, which evaluates, decodes, exports and trains on.

What is at hand without TensorFlow is checked first. Beside the checkpoint T2T has written hparams.json, all of its
hyperparameters; they win over those of the set.
"""

import dataclasses
import pathlib
import shlex
import sys

from trainer import config
from trainer.run_dir import RunDir, read_json, refuse_foreign
from trainer.t2t_fit import as_in, refuse_misfit, refuse_other_kind
from trainer.train_config import TrainConfig
from ut_keras import registry
from ut_keras.assignments import as_value, parse_assignments
from ut_keras.errors import UsageError, UserError
from ut_keras.tensor2tensor_checkpoint import find_checkpoint
from ut_keras.tensor2tensor_hparams import from_tensor2tensor

_HPARAMS = "hparams.json"
_DIGIT_1 = 11  # T2T's space of the targets of its algorithmic problems; that of all others is 0
_PRECISION = {"float32": "none", "float16": "mixed_float16", "bfloat16": "mixed_bfloat16"}
_SHOWN = 20  # classes that are named


@dataclasses.dataclass(frozen=True)
class Import:
    """What is imported into what.

    Attributes:
        checkpoint: pathlib.Path, as of `find_checkpoint`.
        problem: the `Problem`, not prepared.
        set_name: the hparams set.
        values: T2T's hyperparameters, of hparams.json; {} where there is none.
        changes: {name: text} of --hparams.
        output_dir: pathlib.Path of the run directory to be.
        data_dir, manual_dir, usr_dir: str or None.
    """

    checkpoint: pathlib.Path
    problem: object
    set_name: str
    values: dict
    changes: dict
    output_dir: pathlib.Path
    data_dir: str | None
    manual_dir: str | None
    usr_dir: str | None


def resolve(arguments):
    """Returns the `Import` of parsed flags.

    Raises:
        UsageError: a name or value is wrong.
        UserError: there is no checkpoint, its hparams.json is damaged, or --output_dir is not empty.
    """
    if arguments.vocabulary:
        vocabulary = f"vocabulary_file={as_value(arguments.vocabulary)}"
        arguments.problem_args = [*(arguments.problem_args or []), vocabulary]
    try:
        problem = config.find_problem(arguments)
    except UsageError as error:
        if arguments.vocabulary and "no argument 'vocabulary_file'" in str(error):
            raise UsageError(f"{arguments.problem} has a vocabulary of its own: leave --vocabulary out") from None
        raise
    checkpoint = find_checkpoint(arguments.checkpoint)
    path = checkpoint.with_name(_HPARAMS)
    if not path.is_file() and not arguments.hparams_set:
        raise UsageError(f"{path} is not there: name the hyperparameters of the checkpoint with --hparams_set")
    set_name = arguments.hparams_set or problem.default_hparams_set
    hparams = registry.hparams_sets.get(set_name)()
    changes = parse_assignments(",".join(arguments.hparams or []), "--hparams")
    if "model" in changes:
        raise UsageError(f"--hparams: the checkpoint says which model it is of, leave model={changes['model']} out")
    hparams.override(changes)
    output_dir = pathlib.Path(arguments.output_dir).expanduser()
    refuse_target(output_dir)
    return Import(
        checkpoint,
        problem,
        set_name,
        read_json(path) if path.is_file() else {},
        changes,
        output_dir,
        arguments.data_dir,
        arguments.manual_dir,
        arguments.usr_dir,
    )


def refuse_target(path):
    """UserError where `path` is anything but a new or an empty directory."""
    if RunDir.exists(path):
        raise UserError(f"--output_dir={path} holds a run already: remove it or choose another directory")
    refuse_foreign(path)
    if path.is_dir() and any(path.iterdir()):
        raise UserError(f"--output_dir={path} holds {min(entry.name for entry in path.iterdir())}; choose an empty one")


def write(plan):
    """Writes the run directory of an `Import`, and says on standard error what was taken.

    Raises:
        UserError: checkpoint, hyperparameters and problem do not fit each other; nothing is written then.
    """
    from trainer.checkpoints import Checkpoints
    from trainer.start import versions
    from trainer.step import make_optimizer
    from ut_keras.models.build import build_model
    from ut_keras.tensor2tensor import load_weights
    from ut_keras.tensor2tensor_checkpoint import T2tCheckpoint
    from ut_keras.tensor2tensor_moments import restore_moments

    checkpoint = T2tCheckpoint(plan.checkpoint)
    refuse_other_kind(checkpoint, plan.problem)
    hparams, unused = _hparams(plan, checkpoint.model)
    weights = checkpoint.weights()
    problem = _with_vocabularies(plan)
    refuse_misfit(checkpoint, weights, problem)
    hparams = as_in(weights, hparams)
    model = build_model(hparams, problem.features)
    variables = load_weights(model, hparams, weights)
    step = _updates(checkpoint.global_step, hparams)
    optimizer = make_optimizer(hparams, model)
    getattr(optimizer, "inner_optimizer", optimizer).iterations.assign(step)
    moments = restore_moments(optimizer, hparams, checkpoint, variables)

    made = TrainConfig(
        problem=problem.name,
        problem_args=problem.args,
        hparams_set=plan.set_name,
        hparams=hparams,
        output_dir=plan.output_dir,
        data_dir=plan.data_dir,
        manual_dir=plan.manual_dir,
        usr_dir=plan.usr_dir,
        mixed_precision=_PRECISION[hparams.activation_dtype],
    )
    settings = {**made.settings(), "parameters": int(model.count_params()), "versions": versions()}
    settings["imported_from"] = str(plan.checkpoint.resolve())
    with RunDir.create_whole(plan.output_dir, hparams, problem, settings) as run:
        Checkpoints(run, model, optimizer).save(step)
    said = f"{len(variables)} variables, {model.count_params():,} parameters, step {step:,}"
    _say(f"took {checkpoint.model} from {plan.checkpoint}: {said}")
    _say(f"optimizer: {moments}")
    if unused:
        _say(f"{_HPARAMS}: without a counterpart here: {', '.join(unused)}")
    if problem.target == "class":
        _say(f"classes, in the order of the checkpoint's: {_classes(problem)}")
    if hparams.use_target_space_embedding:
        _say(f"target space: row {hparams.target_space_id} of the table; --hparams=target_space_id=N takes another")
    _say("in training, batch_size counts tokens of source and target over all devices, weight_decay is decoupled")
    _say(f"to train on: {_command(made, step)}")


def _hparams(plan, model):
    """Returns (`HParams`, T2T's names without a counterpart)."""
    base = registry.hparams_sets.get(plan.set_name)()
    if config.family(base.model) != config.family(model):
        raise UserError(
            f"{plan.checkpoint} is of {model}, and --hparams_set={plan.set_name} is for {base.model}; "
            f"take {config.family(model)}_base or another of its own"
        )
    kept = {"model": model, "target_space_id": _space(plan.problem.name)}
    return from_tensor2tensor(plan.values, dataclasses.replace(base, **kept), plan.changes)


def _space(problem):
    return _DIGIT_1 if problem.startswith("algorithmic_") or problem == "tiny_algo" else 0


def _with_vocabularies(plan):
    """Returns the problem with its vocabularies: from the start, from --vocabulary, or made from its data."""
    problem = plan.problem
    if problem.vocabularies is None and problem.target == "sequence" and hasattr(problem, "given_vocabulary"):
        vocabulary = problem.given_vocabulary()
        if vocabulary is not None:
            problem.vocabularies = {
                "inputs": vocabulary if "inputs" in problem.columns else None,
                "targets": vocabulary,
            }
    return problem if problem.vocabularies is not None else problem.prepare(plan.data_dir, plan.manual_dir)


def _updates(global_step, hparams):
    """Returns the updates made: T2T counts each of the batches of which a multi-step optimizer makes one update."""
    return (global_step or 0) // max(1, hparams.optimizer_multistep_accumulate_steps)


def _classes(problem):
    entries = problem.vocabularies["targets"].entries
    return ", ".join(map(repr, entries[:_SHOWN])) + (", ..." if entries[_SHOWN:] else "")


def _command(made, step):
    """Returns the command that trains an imported run on."""
    base = registry.hparams_sets.get(made.hparams_set)()
    changes = {name: new for name, (_, new) in base.differences(made.hparams).items()}
    words = ["python -m trainer", f"--problem={made.problem}", f"--hparams_set={made.hparams_set}"]
    if "model" in changes:
        words.append(f"--model={changes.pop('model')}")
    given = {name: value for name, value in made.problem_args.items() if value != _defaults(made.problem).get(name)}
    for flag, values in (("problem_args", given), ("hparams", changes)):
        if values:
            words.append(shlex.quote(f"--{flag}=" + ",".join(f"{name}={_value(one)}" for name, one in values.items())))
    for flag in ("output_dir", "data_dir", "manual_dir", "usr_dir"):
        if getattr(made, flag):
            words.append(shlex.quote(f"--{flag}={getattr(made, flag)}"))
    steps = f" --train_steps=N  (above {step:,})" if step >= made.hparams.train_steps else ""
    return " ".join(words) + steps


def _defaults(problem):
    import problems

    return problems.get(problem).args


def _value(value):
    return as_value(str(value).lower() if isinstance(value, bool) or value is None else str(value))


def _say(text):
    print(text, file=sys.stderr, flush=True)
