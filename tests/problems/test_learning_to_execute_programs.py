"""The generator of learning to execute: every answer is right, splits are disjoint, draws are pure."""

import collections
import re

import pytest

from problems import learning_to_execute_programs
from problems.learning_to_execute_language import CHARACTERS
from problems.learning_to_execute_programs import MEMORY_KINDS, PROGRAM_KINDS, Task
from tests.problems.test_learning_to_execute_language import python
from ut_keras.errors import UsageError

SIZES = (("train", 1500), ("dev", 150), ("test", 150), ("hardest", 150))


def task(kind, length=None, nesting=2, seed=0):
    return Task(
        kind=kind, length=length or (5 if kind in PROGRAM_KINDS else 55), nesting=nesting, sizes=SIZES, seed=seed
    )


@pytest.fixture(scope="module")
def examples():
    """{kind: {split: examples}}."""
    return {kind: {name: list(task(kind).split(name)) for name, _ in SIZES} for kind in PROGRAM_KINDS + MEMORY_KINDS}


@pytest.mark.parametrize("kind", PROGRAM_KINDS)
def test_python_prints_the_target_of_every_program(kind, examples):
    for split in examples[kind].values():
        for example in split:
            assert python(example.inputs) == f"{example.targets}\n"
            assert set(example.inputs + example.targets) <= set(CHARACTERS)


def test_memory_targets_are_right(examples):
    said = {"copy": lambda text: text, "double": lambda text: text + text, "reverse": lambda text: text[::-1]}
    for kind in MEMORY_KINDS:
        for split in examples[kind].values():
            for example in split:
                assert example.targets == said[kind](example.inputs)
                assert re.fullmatch("[0-9]+", example.inputs) and len(example.inputs) == example.length


@pytest.mark.parametrize("kind", PROGRAM_KINDS + MEMORY_KINDS)
def test_sizes_are_exact_and_held_out_inputs_are_not_in_train(kind, examples):
    splits = examples[kind]
    assert {name: len(split) for name, split in splits.items()} == dict(SIZES)
    inputs = {name: {example.inputs for example in split} for name, split in splits.items()}
    assert not inputs["train"] & (inputs["dev"] | inputs["test"] | inputs["hardest"])
    assert not inputs["dev"] & (inputs["test"] | inputs["hardest"])


def test_another_seed_does_not_train_on_what_is_tested(examples):
    test = {example.inputs for example in examples["addition"]["test"] if example.length <= 2}
    assert test
    other = {example.inputs for seed in (1, 2, 3) for example in task("addition", 2, seed=seed).split("train")}
    assert not test & other


@pytest.mark.parametrize("kind", PROGRAM_KINDS + MEMORY_KINDS)
def test_draws_are_a_function_of_the_settings(kind, examples):
    assert list(task(kind).split("test")) == examples[kind]["test"]
    assert list(task(kind, seed=1).split("test")) != examples[kind]["test"]


def test_first_draws_are_those_of_every_machine_and_version():
    drawn = {kind: next(iter(task(kind).split("train"))) for kind in ("program", "addition", "reverse")}
    assert drawn == {
        "program": ("c=3283;#print((c+7938))", "11221", 4, 2),
        "addition": ("print(71193+90340)", "161533", 5, 1),
        "reverse": (
            "100173572854321355127357268075676400154812266554",
            "455662218451004676570862753721553123458275371001",
            48,
            1,
        ),
    }


@pytest.mark.parametrize("kind", ["program", "control"])
def test_mix_draws_length_and_nesting_uniformly(kind, examples):
    counts = collections.Counter((example.length, example.nesting) for example in examples[kind]["train"])
    assert set(counts) == {(length, nesting) for length in range(1, 6) for nesting in (1, 2)}
    assert min(counts.values()) > 100  # of 150 on average
    assert {example[2:] for example in examples[kind]["hardest"]} == {(5, 2)}


def test_numbers_have_at_most_length_digits(examples):
    for example in examples["program"]["train"]:
        digits = [len(number) for number in re.findall("[0-9]+", example.inputs)]
        assert max(digits) <= max(example.length, 2)  # 2: a factor or a number of rounds, up to 4 * length
    lengths = {
        length: {
            len(number)
            for example in examples["addition"]["train"]
            if example.length == length
            for number in re.findall("[0-9]+", example.inputs)
        }
        for length in range(1, 6)
    }
    assert lengths == {length: {length} for length in range(1, 6)}


def test_kinds_use_their_operations(examples):
    def parts(kind):
        text = " ".join(example.inputs for example in examples[kind]["train"])
        patterns = {
            "loop": r"range\(",
            "if": " if ",
            "assign": "=[0-9]+;",
            "multiply": r"\*",
            "pass": r"print\([0-9]+\)",
        }
        return {name for name, pattern in patterns.items() if re.search(pattern, text)}

    assert parts("program") == {"loop", "if", "assign", "multiply", "pass"}
    assert parts("control") == {"loop", "if", "assign"}
    assert parts("addition") == set()
    signs = "".join(example.inputs for example in examples["control"]["train"])
    assert all(sign in signs for sign in ("+=", "-=", "+", "-", "<", ">"))
    rounds = [
        int(n) for example in examples["program"]["train"] for n in re.findall(r"range\(([0-9]+)", example.inputs)
    ]
    assert min(rounds) >= 1 and 15 < max(rounds) <= 20


def test_operations_feed_each_other(examples):
    for example in examples["control"]["train"]:
        names = re.findall("(?:^|#)([a-j])=", example.inputs)
        assert len(names) == len(set(names))
        for name in names:
            assert re.search(rf"[^a-z]{name}[^a-z]", example.inputs[example.inputs.index(f"{name}=") + 1 :])


def test_wrong_value_would_be_noticed(monkeypatch):
    monkeypatch.setattr(
        learning_to_execute_programs._Composer, "_sum", lambda self, x, y: ("+", x + y + (1 if x == y else 0))
    )
    with pytest.raises(AssertionError, match="does not print"):
        list(Task("program", 1, 2, (("train", 2000),), 0).split("train"))


def test_exact_lengths_are_not_in_train_or_dev(examples):
    known = {example.inputs for name in ("train", "dev") for example in examples["copy"][name]}
    for length in (2, 55, 80):
        exact = list(task("copy").exact(length, 20, seed=3))
        assert len(exact) == 20
        assert {len(example.inputs) for example in exact} == {length}
        assert not known & {example.inputs for example in exact}
        assert exact == list(task("copy").exact(length, 20, seed=3)) != list(task("copy").exact(length, 20, seed=4))


def test_too_few_inputs_for_a_split_is_an_error(monkeypatch):
    monkeypatch.setattr(learning_to_execute_programs, "_share", lambda inputs: "train" if len(inputs) < 3 else "test")
    assert len(list(task("copy", 3).split("test"))) == 150
    with pytest.raises(UsageError, match="copy of length 2 has no inputs for the split 'test'; raise length"):
        list(task("copy", 2).split("test"))
