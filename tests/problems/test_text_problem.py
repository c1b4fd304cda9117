"""A problem of a user's own: examples in, packed ids out, and what is refused."""

import pytest

from problems.text_problem import TextProblem
from problems.vocabulary import SymbolVocabulary
from ut_keras.errors import UserError


class Reversal(TextProblem):
    """Reverses lines of an instance's choice."""

    def __init__(self, lines, name="my_reversal", **arguments):
        super().__init__(name, **{"vocabulary": "words", **arguments})
        self.lines = lines

    def examples(self, split, manual_dir):
        for line in self.lines if split == "train" else self.lines[:1]:
            yield {"inputs": line, "targets": line[::-1]}


class Sides(TextProblem):
    """A class with a blank in it."""

    target = "class"

    def examples(self, split, manual_dir):
        yield {"inputs": "a b", "targets": "left side"}
        yield {"inputs": "b a", "targets": "right side" if split != self.args["odd"] else "no side"}

    arguments = {**TextProblem.arguments, "vocabulary": "bytes", "odd": ""}


class Yields(TextProblem):
    """Whatever it is told to."""

    def __init__(self, example):
        super().__init__("my_task")
        self.example = example

    def examples(self, split, manual_dir):
        if self.example is not None:
            yield self.example


def test_examples_become_ids_of_one_vocabulary(tmp_path):
    problem = Reversal(["ab cd", "cd", "  "]).prepare(tmp_path)
    assert problem.vocabularies["inputs"] == problem.vocabularies["targets"]
    assert problem.vocabularies["inputs"].entries == ("cd", "dc", "ab", "ba")
    train = problem.split("train")
    assert len(train) == 2
    assert train.counts == {"examples with a blank input were left out": 1}
    assert problem.decode_input(train.inputs[0]) == "ab cd"
    assert problem.decode_target(train.targets[0]) == "dc ba"
    assert train.inputs[1].tolist() == problem.encode_input("cd").tolist()


def test_target_may_be_empty(tmp_path):
    class Silent(Reversal):
        def examples(self, split, manual_dir):
            yield {"inputs": "ab", "targets": ""}

    assert Silent([]).prepare(tmp_path).split("train").targets[0].tolist() == [1]


def test_changed_code_or_data_never_find_the_old_ones(tmp_path):
    first, again, other = (Reversal(lines).prepare(tmp_path) for lines in (["ab"], ["ab"], ["ab cd"]))
    assert first.fingerprint == again.fingerprint
    assert other.decode_input(other.split("train").inputs[0]) == "ab cd"


def test_vocabulary_may_be_one_that_is_given(tmp_path):
    class Digits(Reversal):
        def given_vocabulary(self):
            return SymbolVocabulary("0123456789")

    problem = Digits(["314", "15"]).prepare(tmp_path)
    assert problem.split("train").inputs[0].tolist() == [5, 3, 6, 1]
    assert problem.text_encoder()(["314"]).numpy().tolist() == [[5, 3, 6, 1]]


def test_classes_are_whole_targets(tmp_path):
    problem = Sides("my_sides").prepare(tmp_path)
    assert [problem.decode_target(problem.split("dev").targets[index]) for index in (0, 1)] == [
        "left side",
        "right side",
    ]


def test_class_that_train_lacks_is_named_and_nothing_is_written(tmp_path):
    with pytest.raises(UserError, match="my_sides: dev example 2: the label 'no side' does not occur in train"):
        Sides("my_sides", odd="dev").prepare(tmp_path / "data")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("example", "message"),
    [
        (("a", "b"), r"train example 1 is not \{\"inputs\": text, \"targets\": text\}: \('a', 'b'\)"),
        ({"inputs": "a"}, "train example 1 is not .*: {'inputs': 'a'}"),
        ({"inputs": "a", "targets": "b", "more": "c"}, "train example 1 is not"),
        ({"inputs": "a", "targets": 3}, "train example 1: targets is not a text: 3"),
        ({"inputs": b"a", "targets": "b"}, "train example 1: inputs is not a text: b'a'"),
        ({"inputs": "a\ud800", "targets": "b"}, r"train example 1: inputs is not a text: 'a\\ud800'"),
        ({"inputs": " ", "targets": "b"}, "split train has no example that is not blank"),
        (None, "split train has no example that is not blank"),
    ],
)
def test_what_is_no_example_is_refused_before_anything_is_written(tmp_path, example, message):
    with pytest.raises(UserError, match=f"^my_task: {message}"):
        Yields(example).prepare(tmp_path / "data")
    assert not (tmp_path / "data").exists()
