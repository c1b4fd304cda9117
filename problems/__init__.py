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
    ("multiplication", "multiply two numbers in base {}, least significant digit first"),
)
_SMALL_ALGORITHMIC = {"train_size": 1_000, "dev_size": 100, "test_size": 100, "long_size": 100}
_MORE_ALGORITHMIC = {
    "algorithmic_shift_decimal40": (
        "add 10 to each of the numbers 0 to 9; trained on lengths 1 to 40",
        {"task": "shift", "base": 20, "train_length": 40, "long_length": 80},
    ),
    "algorithmic_identity_vocab95_train20_eval30": (
        "copy a string of 95 symbols; a million examples of lengths 1 to 20, evaluated up to 30",
        {"task": "identity", "base": 95, "train_length": 20, "long_length": 30, "sizes": {"train_size": 1_000_000}},
    ),
    "algorithmic_reverse_nlplike8k": (
        "reverse a string of 8,000 symbols that are as frequent as words; lengths around 35",
        {"task": "reverse_nlplike", "base": 8_000, "train_length": 70, "long_length": 70, "alpha": 1.3},
    ),
    "algorithmic_reverse_nlplike32k": (
        "reverse a string of 32,000 symbols that are as frequent as words; lengths around 35",
        {"task": "reverse_nlplike", "base": 32_000, "train_length": 70, "long_length": 70, "alpha": 1.05},
    ),
    "algorithmic_reverse_binary40_test": (
        "reverse a string of 2 symbols; a thousand examples of lengths 1 to 10, to test programs",
        {"task": "reverse", "base": 2, "train_length": 10, "long_length": 10, "sizes": _SMALL_ALGORITHMIC},
    ),
    "algorithmic_sort_problem": (
        "sort numbers below 20; trained on lengths 1 to 10",
        {"task": "sort", "base": 20, "train_length": 10, "long_length": 20},
    ),
    "tiny_algo": (
        "copy a string of 2 symbols; a hundred examples of lengths 1 to 40, to test programs",
        {"task": "identity", "base": 2, "train_length": 40, "sizes": {**_SMALL_ALGORITHMIC, "train_size": 100}},
    ),
}


_SCAN = {
    "simple": "a random fifth of all commands; shipped",
    "length": "longer action sequences than in training",
    "addprim_jump": "jump in combination, seen alone in training",
    "addprim_turn_left": "turn left in combination, seen alone in training",
    "template_around_right": "around right, never seen in training",
    "template_jump_around_right": "jump around right, never seen in training",
    "template_opposite_right": "opposite right, never seen in training",
    "template_right": "a primitive with right, never seen in training",
    "filler_num0": "jump around right, with no other primitive seen so in training",
    "filler_num1": "jump around right, with one other primitive seen so in training",
    "filler_num2": "jump around right, with two other primitives seen so in training",
    "filler_num3": "jump around right, with three other primitives seen so in training",
}


_LEARNING_TO_EXECUTE = (
    ("program", "run a program: arithmetic, assignment, loop, if"),
    ("control", "run a program: assignment, loop, if"),
    ("addition", "run a program that adds two numbers of up to 5 digits"),
    ("copy", "copy up to 55 digits"),
    ("double", "repeat up to 55 digits"),
    ("reverse", "reverse up to 55 digits"),
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
    for name, (what, settings) in _MORE_ALGORITHMIC.items():
        registry.problems.register(name, "problems.algorithmic:Algorithmic", summary=what, **settings)


def _register_learning_to_execute():
    for kind, what in _LEARNING_TO_EXECUTE:
        registry.problems.register(
            f"learning_to_execute_{kind}",
            "problems.learning_to_execute:LearningToExecute",
            summary=f"{what}; characters, after Zaremba and Sutskever",
            kind=kind,
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


def _register_texts():
    registry.problems.register(
        "parallel_text",
        "problems.parallel_text:ParallelText",
        summary="your own pairs of texts: --manual_dir=DIR --problem_args=source=en,target=de for train.en, train.de",
    )
    registry.problems.register(
        "text_lm",
        "problems.text_lm:TextLm",
        summary="a language model on your own lines: --manual_dir=DIR for train.txt, dev.txt, test.txt",
    )
    registry.problems.register(
        "text_class",
        "problems.text_class:TextClass",
        summary="classify your own lines (text, tab, label): --manual_dir=DIR for train.tsv, dev.tsv, test.tsv",
    )
    for suffix, languages in (("", ("en", "de")), ("_rev", ("de", "en"))):
        registry.problems.register(
            f"translate_multi30k_ende{suffix}",
            "problems.translate:TranslateMulti30k",
            summary=f"translate image captions, {' to '.join(languages)}: Multi30k, download or --manual_dir",
            languages=languages,
        )
        registry.problems.register(
            f"translate_ende_wmt32k{suffix}",
            "problems.translate:TranslateWmt",
            summary=f"translate news, {' to '.join(languages)}: tensor2tensor's WMT data, download or --manual_dir",
            languages=languages,
        )


def _register_agreement():
    for task, attribute, what in (
        ("number_prediction", "NumberPrediction", "the number of a verb from the words before it"),
        ("language_modeling", "LanguageModeling", "a language model that prefers the right form of a verb"),
    ):
        registry.problems.register(
            f"sva_{task}",
            f"problems.subject_verb_agreement:{attribute}",
            summary=f"{what}: subject-verb agreement, download or --manual_dir",
        )


def _register_scan():
    for split, what in _SCAN.items():
        registry.problems.register(
            f"scan_{split}",
            "problems.scan:Scan",
            summary=f"commands to actions, SCAN; tested on {what}",
            split=split,
        )


def _register_lambada():
    for task, what in (("lm", "a language model of novels"), ("rc", "choosing a word of the passage")):
        registry.problems.register(
            f"lambada_{task}",
            f"problems.lambada:Lambada{task.capitalize()}",
            summary=f"the last word of a passage, by {what}: LAMBADA, download or --manual_dir",
        )


_register_algorithmic()
_register_learning_to_execute()
_register_babi()
_register_scan()
_register_agreement()
_register_texts()
_register_lambada()
