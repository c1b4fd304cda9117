"""What each command does with its flags. TensorFlow is imported only after names and directories were checked."""

import sys

from trainer import config
from trainer.quiet import import_tensorflow
from trainer.run_dir import RunDir
from ut_keras.errors import UsageError, UserError
from ut_keras.hparams import parse_assignments
from ut_keras.registry import near_names


def train(arguments):
    """Trains, and goes on where an earlier start of the same command stopped."""
    resolved = config.resolve(arguments)
    if arguments.schedule == "evaluate":
        return _evaluate(resolved.output_dir, "best", None, arguments.data_dir, arguments.manual_dir)
    import_tensorflow()
    from trainer import loop

    return loop.train(resolved)


def evaluate(arguments):
    """Scores a run and prints one line per metric."""
    return _evaluate(
        arguments.output_dir,
        arguments.checkpoint,
        arguments.split,
        arguments.data_dir,
        arguments.manual_dir,
        arguments.lengths or (),
        arguments.limit,
    )


def decode(arguments):
    """Answers lines."""
    extra_length, batch_size = arguments.extra_length, arguments.decode_batch_size
    for name, value in parse_assignments(",".join(arguments.decode_hparams or []), "--decode_hparams").items():
        known = ("extra_length", "batch_size")
        if name not in known:
            raise UsageError(f"--decode_hparams has no {name!r}{near_names(name, known)}")
        if not value.isdecimal() or (name == "batch_size" and int(value) == 0):
            raise UsageError(f"--decode_hparams: {name}={value!r} is not a positive integer")
        extra_length, batch_size = (int(value), batch_size) if name == "extra_length" else (extra_length, int(value))
    problem = RunDir.open(arguments.output_dir).problem
    from trainer import decode

    decode.decode(
        problem,
        _loader(arguments),
        arguments.decode_from_file,
        arguments.decode_to_file,
        batch_size,
        extra_length,
        arguments.with_scores,
        arguments.with_ponder,
    )
    return 0


def score(arguments):
    """Prints the log-probability of given answers."""
    problem = RunDir.open(arguments.output_dir).problem
    from trainer import score

    score.score(problem, _loader(arguments), arguments.score_file)
    return 0


def export(arguments):
    """Writes a SavedModel and prints where it is."""
    RunDir.open(arguments.output_dir)
    import_tensorflow()
    from trainer import export, load

    print(export.export(load(arguments.output_dir, arguments.checkpoint), arguments.export_dir))
    return 0


def datagen(arguments):
    """Prepares a problem's data."""
    problem = config.find_problem(arguments)
    import_tensorflow()
    problem.prepare(arguments.data_dir, arguments.manual_dir)
    for split in problem.splits:
        try:
            print(f"{split}  {len(problem.split(split))}")
        except UserError as error:  # the problem can do without it
            print(error, file=sys.stderr)
    return 0


def _loader(arguments):
    """Returns a function that loads the run, for a command that first reads its lines."""

    def load_run():
        import_tensorflow()
        from trainer import load

        return load(arguments.output_dir, arguments.checkpoint)

    return load_run


def _evaluate(output_dir, checkpoint, split, data_dir, manual_dir, lengths=(), limit=None):
    run = RunDir.open(output_dir)
    if split is not None and split not in run.problem.splits:
        raise UsageError(f"{run.problem.name} has no split {split!r}; it has {', '.join(run.problem.splits)}")
    import_tensorflow()
    from trainer import evaluate, load, report

    loaded = load(output_dir, checkpoint)
    if not lengths:  # strings of chosen lengths are made, not read
        manual_dir = manual_dir or run.settings.get("manual_dir")
        loaded.problem.prepare(data_dir or run.settings.get("data_dir"), manual_dir)
        if split is None and loaded.problem.final_split != "test":
            print(f"{run.problem.name} has no test split here: scoring dev", file=sys.stderr, flush=True)
    print(f"{run.path}: the weights of step {loaded.step}", file=sys.stderr, flush=True)
    report.publish(loaded, evaluate.evaluate(loaded, split, lengths, limit))
    return 0
