"""`ls`: what can be named on the command line. Standard library only."""

import dataclasses
import inspect

from ut_keras import hparams, registry
from ut_keras.errors import UserError

_KINDS = {"problems": registry.problems, "models": registry.models, "hparams": registry.hparams_sets}


def run(arguments):
    """Prints the names of one kind or of all, or one name in full."""
    import problems  # noqa: F401  (registers the names)

    if arguments.name:
        _show(arguments.what, arguments.name)
        return 0
    for kind in [arguments.what] if arguments.what else _KINDS:
        if not arguments.what:
            print(f"{kind}:")
        indent = "" if arguments.what else "  "
        names = _KINDS[kind].names()
        width = max(map(len, names), default=0)
        for name in names:
            print(f"{indent}{name:{width}}  {_KINDS[kind].summary(name)}".rstrip())
    return 0


def _show(what, name):
    if what == "hparams":
        print_hparams(name, registry.hparams_sets.get(name)())
    elif what == "models":
        _show_model(name)
    else:
        _show_problem(name)


def _show_model(name):
    if name not in registry.models:
        registry.models.get(name)  # raises; of a known name it would import TensorFlow
    print(f"{name}: {registry.models.summary(name)}")
    sets = [other for other in registry.hparams_sets.names() if registry.hparams_sets.get(other)().model == name]
    print(f"hparams sets: {', '.join(sets) or 'none of its own'}")


def _show_problem(name):
    make = registry.problems.get(name)
    target = getattr(make, "func", make)
    print(f"{name}: {registry.problems.summary(name)}")
    try:
        problem = make(name=name)
    except UserError:  # it cannot be without an argument of the user's
        problem = target
    print(f"splits: {', '.join(problem.splits)}")
    print(f"default hparams set: {problem.default_hparams_set}")
    for argument, default in getattr(problem, "args", target.arguments).items():
        print(f"--problem_args={argument}={default}")
    print(f"\n{inspect.getdoc(target)}")


def print_hparams(name, values):
    """Prints the hparams of a set that its model has, one per line with documentation."""
    print(f"# {name}: {registry.hparams_sets.summary(name)}")
    relevant = values.relevant()
    rows = [(f"{n}={relevant[n]}", doc) for n, _, _, _, doc in hparams.describe() if n in relevant]
    choices = {f.name: f.metadata["choices"] for f in dataclasses.fields(values)}
    width = max(len(row[0]) for row in rows)
    for setting, doc in rows:
        allowed = choices[setting.split("=")[0]]
        print(f"{setting:{width}}  {doc}" + (f" ({', '.join(map(str, allowed))})" if allowed else ""))
