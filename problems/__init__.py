"""The problems: data, vocabularies and batches. Knows nothing of models.

Importing this package registers the names of the problems in `ut_keras.registry.problems` and
nothing else; TensorFlow is imported when a problem is prepared or asked for a tf.Module.

>>> import problems
>>> problem = problems.get("algorithmic_reverse_decimal40")
>>> problem.decode_target(problem.encode_input("314"))
'314'
"""

import importlib

from ut_keras import registry
from ut_keras.errors import UsageError

_EXPORTS = {
    "BatchPlan": "problems.pipeline",
    "Problem": "problems.problem",
    "evaluation_batches": "problems.pipeline",
    "training_batches": "problems.pipeline",
}

__all__ = ["get", "load", *_EXPORTS]

_ALGORITHMIC = (
    ("identity", "copy a string of {} symbols"),
    ("reverse", "reverse a string of {} symbols"),
    ("addition", "add two numbers in base {}, least significant digit first"),
)


def get(name, /, **arguments):
    """Returns the problem called `name`.

    Args:
        name: a registered name; `python -m trainer ls problems` lists them.
        **arguments: the problem's own arguments, as values or as their text (--problem_args).

    Raises:
        UsageError: no problem has this name, it has no such argument, or a value does not fit.
    """
    make = registry.problems.get(name)
    for key in arguments:
        # What a name stands for (a task, a size) is not an argument of the problem.
        if key == "name" or key in getattr(make, "keywords", {}):
            raise UsageError(f"{name} has no argument {key!r}: it is part of the problem's name")
    return make(name=name, **arguments)


def load(run_dir):
    """Returns the problem that `Problem.save` wrote into `run_dir`; it needs nothing else to encode and decode."""
    return __getattr__("Problem").load(run_dir)


def __getattr__(name):
    if name in _EXPORTS:
        return getattr(importlib.import_module(_EXPORTS[name]), name)
    raise AttributeError(f"module 'problems' has no attribute {name!r}")


def __dir__():
    return sorted(__all__)


def _register_algorithmic():
    for task, what in _ALGORITHMIC:
        for numerals, base in (("binary", 2), ("decimal", 10)):
            registry.problems.register(
                f"algorithmic_{task}_{numerals}40",
                "problems.algorithmic:Algorithmic",
                summary=f"{what.format(base)}; trained on lengths 1 to 40",
                task=task,
                base=base,
                train_length=40,
            )


def _register_babi():
    for size, where in (("1k", "shipped"), ("10k", "download or --manual_dir")):
        for number in range(21):
            task = f"task{number}" if number else "all_tasks"
            what = f"bAbI task {number}" if number else "all 20 bAbI tasks jointly"
            registry.problems.register(
                f"babi_qa_sentence_{task}_{size}",
                "problems.babi:Babi",
                summary=f"answer questions about a story: {what}, {size} training questions each, {where}",
                tasks=(number,) if number else tuple(range(1, 21)),
                size=size,
            )


_register_algorithmic()
_register_babi()
