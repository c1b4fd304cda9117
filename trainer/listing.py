"""`ls`: what can be named on the command line. Standard library only."""

import dataclasses
import inspect

from trainer.idle_hparams import idle_changes
from ut_keras import hparams, registry
from ut_keras.errors import UserError
from ut_keras.models.search_spaces import SEARCH_SPACES

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
        rows = [(name, _KINDS[kind].summary(name)) for name in _KINDS[kind].names()]
        if kind == "hparams":
            rows += [(name, f"Search space around {space.hparams_set}.") for name, space in SEARCH_SPACES.items()]
        width = max((len(name) for name, _ in rows), default=0)
        for name, summary in rows:
            print(f"{indent}{name:{width}}  {summary}".rstrip())
    return 0


def _show(what, name):
    if what == "hparams" and name in SEARCH_SPACES:
        _show_space(name, SEARCH_SPACES[name])
    elif what == "hparams":
        print_hparams(name, registry.hparams_sets.get(name)())
    elif what == "models":
        _show_model(name)
    else:
        _show_problem(name)


def _show_space(name, space):
    print(f"# {name}: what to vary around the hparams set {space.hparams_set}")
    print("# no command searches it; ut_keras.models.search_spaces.sample draws from it")
    for hparam, choices in space.ranges.items():
        print(f"{hparam}: {', '.join(map(str, choices)) if isinstance(choices, tuple) else choices}")
    for hparam, reason in idle_changes(registry.hparams_sets.get(space.hparams_set)(), space.ranges):
        print(f"# {hparam} has no effect under {reason}")


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
