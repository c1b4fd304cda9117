"""What each command does with its flags. TensorFlow is imported only after names and directories were checked."""

import pathlib
import sys

from problems import textio
from trainer import config, decode_hparams, search_flags
from trainer.answers import kind_of
from trainer.line_encoder import warn_of_cut
from trainer.output_limit import OutputLimit
from trainer.quiet import import_tensorflow
from trainer.run_dir import RunDir, checkpoint_path
from trainer.search_flags import refuse_depth
from trainer.windows import MOST_INPUT
from ut_keras.errors import UsageError, UserError


def train(arguments):
    """Trains, and goes on where an earlier start of the same command stopped."""
    resolved = config.resolve(arguments)
    if arguments.schedule == "evaluate":
        if resolved.cluster and not resolved.cluster.chief:
            return 0  # the chief evaluates
        return _evaluate(RunDir.open(resolved.output_dir), None, arguments.data_dir, arguments.manual_dir)
    import_tensorflow()
    from trainer import loop

    return loop.train(resolved)


def evaluate(arguments):
    """Scores a run and prints one line per metric."""
    options = search_flags.search_options(arguments)
    if arguments.lengths and arguments.split:
        raise UsageError(f"--lengths makes strings of its own and reads no split: leave --split={arguments.split} out")
    run = _open(arguments)
    limit = _output_limit(arguments, run, options)
    searched = [name for name in search_flags.given(arguments) if name != "max_steps"]
    if searched and kind_of(run.problem) != "sequence":
        raise UsageError(f"{run.problem.name} is scored without decoding: leave --{searched[0]} out")
    return _evaluate(
        run,
        arguments.split,
        arguments.data_dir,
        arguments.manual_dir,
        arguments.checkpoint,
        lengths=arguments.lengths or (),
        limit=arguments.limit,
        options=options,
        output_limit=limit,
    )


def decode(arguments):
    """Answers lines; the exit code is 1 where some could not be answered."""
    decode_hparams.merge(arguments)
    options = search_flags.search_options(arguments)
    if arguments.interactive and arguments.decode_from_file:
        raise UsageError("--interactive reads standard input: leave --decode_from_file out")
    run = _open(arguments)
    output_limit = _output_limit(arguments, run, options)
    from trainer import decode

    typed = not arguments.decode_from_file and sys.stdin is not None and sys.stdin.isatty()
    faults = decode.decode(
        run.problem,
        _loader(arguments),
        arguments.decode_from_file,
        arguments.decode_to_file,
        batch_size=arguments.decode_batch_size or 32,
        options=options,
        output_limit=output_limit,
        max_input_length=arguments.max_input_length or MOST_INPUT,
        limit=arguments.limit,
        with_scores=arguments.with_scores,
        with_ponder=arguments.with_ponder,
        with_hypotheses=arguments.n_best is not None,
        interactive=arguments.interactive or typed,
    )
    return 1 if faults else 0


def score(arguments):
    """Prints the log-probability of given answers."""
    problem = _open(arguments).problem
    from trainer import score

    score.score(problem, _loader(arguments), arguments.score_file)
    return 0


def export(arguments):
    """Writes a SavedModel and prints where it is."""
    options = search_flags.search_options(arguments)
    limit = _output_limit(arguments, _open(arguments), options)
    import_tensorflow()
    from trainer import export, load

    print(export.export(load(arguments.output_dir, arguments.checkpoint), arguments.export_dir, options, limit))
    return 0


def average(arguments):
    """Writes the mean of several checkpoints as a run directory and prints where it is."""
    from trainer import average

    if arguments.last and arguments.checkpoints:
        raise UsageError("--last takes the run's last checkpoints, --checkpoints names them: leave one of them out")
    run = RunDir.open(arguments.output_dir)
    paths = average.sources(run, arguments.last, arguments.checkpoints or ())
    to = pathlib.Path(arguments.to or run.path / "average").expanduser()
    average.refuse_target(to)
    import_tensorflow()
    average.average(run, paths, to)
    print(to)
    return 0


def import_t2t(arguments):
    """Writes a checkpoint of tensor2tensor's as a run directory and prints where it is."""
    from trainer import import_t2t

    plan = import_t2t.resolve(arguments)
    import_tensorflow()
    import_t2t.write(plan)
    print(plan.output_dir)
    return 0


def explain(arguments):
    """Writes a page about one input and prints where it is."""
    problem = _open(arguments).problem
    from trainer import explain, load

    explain.encode(problem, arguments.text, arguments.target)
    warn_of_cut(problem, arguments.text, "--text")
    if arguments.to:
        textio.refuse_unwritable(arguments.to)
    import_tensorflow()

    loaded = load(arguments.output_dir, arguments.checkpoint)
    print(explain.explain(loaded, arguments.text, arguments.target, arguments.to))
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


def _open(arguments):
    """Returns the `RunDir` of the flags; UserError where there is none, or not the checkpoint that they name."""
    run = RunDir.open(arguments.output_dir)
    if arguments.checkpoint not in ("best", "last"):
        checkpoint_path(arguments.checkpoint)
    return run


def _loader(arguments):
    """Returns a function that loads the run, for a command that first reads its lines."""

    def load_run():
        import_tensorflow()
        from trainer import load

        return load(arguments.output_dir, arguments.checkpoint)

    return load_run


def _output_limit(arguments, run, options):
    """Returns the `OutputLimit` of the flags; UsageError where they or the search do not fit the problem or model."""
    options.check(kind_of(run.problem))
    refuse_depth(run.hparams, options.max_steps)
    return OutputLimit(run.problem, arguments.extra_length, arguments.max_output_length)


def _evaluate(run, split, data_dir, manual_dir, checkpoint="best", lengths=(), **how):
    if split is not None and split not in run.problem.splits:
        raise UsageError(f"{run.problem.name} has no split {split!r}; it has {', '.join(run.problem.splits)}")
    if manual_dir is not None and not pathlib.Path(manual_dir).expanduser().exists():
        raise UserError(f"--manual_dir={manual_dir} does not exist: name the folder of the official files")
    import_tensorflow()
    from trainer import evaluate, load, report

    loaded = load(run.path, checkpoint)
    if not lengths:  # strings of chosen lengths are made, not read
        manual_dir = manual_dir or run.settings.get("manual_dir")
        loaded.problem.prepare(data_dir or run.settings.get("data_dir"), manual_dir)
        if split is None and loaded.problem.final_split != "test":
            print(f"{run.problem.name} has no test split here: scoring dev", file=sys.stderr, flush=True)
    print(f"{run.path}: the weights of step {loaded.step}", file=sys.stderr, flush=True)
    report.publish(loaded, evaluate.evaluate(loaded, split, lengths, **how))
    return 0
