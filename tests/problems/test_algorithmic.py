"""The algorithmic problems: generation against tensor2tensor's examples, splits, text form."""

import numpy as np
import pytest

import problems
from problems.algorithmic_strings import Task
from tests import golden_files
from ut_keras.errors import UsageError, UserError

NAMES = [
    f"algorithmic_{task}_{base}40" for task in ("identity", "reverse", "addition") for base in ("binary", "decimal")
]
GOLDEN = golden_files.load_json("algorithmic_examples")


def _answer(kind, base, inputs):
    """A plain twin: lists of symbols, numbers as Python integers."""
    if kind == "identity":
        return inputs
    if kind == "reverse":
        return inputs[::-1]
    place = inputs.index(base)
    total = sum(
        sum(digit * base**power for power, digit in enumerate(number))
        for number in (inputs[:place], inputs[place + 1 :])
    )
    digits = []
    while total or not digits:
        total, digit = divmod(total, base)
        digits.append(digit)
    return digits


def _task(kind, base, train=200):
    sizes = (("train", train), ("dev", 50), ("test", 50), ("long", 50))
    return Task(kind=kind, base=base, train_length=40, long_length=400, sizes=sizes, seed=0)


def _symbols(text, base):
    return [base if letter == ord("+") else letter - ord("0") for letter in text]


@pytest.mark.parametrize("key", ["Identity", "Reverse", "Addition"])
@pytest.mark.parametrize(("numerals", "base"), [("Binary", 2), ("Decimal", 10)])
def test_plain_twin_agrees_with_tensor2tensor(key, numerals, base):
    golden = GOLDEN[f"Algorithmic{key}{numerals}40"]
    assert golden["num_symbols"] == base
    task = problems.get(f"algorithmic_{key.lower()}_{numerals.lower()}40")._task
    assert (task.train_length, task.long_length) == (golden["train_length"], golden["dev_length"])
    assert (dict(task.sizes)["train"], dict(task.sizes)["long"]) == (golden["train_size"], golden["dev_size"])
    for example in golden["raw_examples"]:
        assert _answer(key.lower(), base, example["inputs"]) == example["targets"]


@pytest.mark.parametrize("kind", ["identity", "reverse", "addition"])
@pytest.mark.parametrize("base", [2, 10])
@pytest.mark.parametrize("split", ["train", "long"])
def test_generated_answers_are_right(kind, base, split):
    examples = _task(kind, base).split(split)
    for source, target in examples:
        assert _symbols(target, base) == _answer(kind, base, _symbols(source, base))


@pytest.mark.parametrize(("kind", "shortest"), [("identity", 1), ("reverse", 1), ("addition", 3)])
def test_lengths_are_those_of_tensor2tensor(kind, shortest):
    lengths = {split: [len(source) for source, _ in _task(kind, 10, 5000).split(split)] for split in ("train", "long")}
    assert (min(lengths["train"]), max(lengths["train"])) == (shortest, 40)
    assert 300 < max(lengths["long"]) <= 400
    if kind != "addition":
        counts = np.bincount(lengths["train"])[1:]
        assert len(counts) == 40
        assert counts.min() > 80
        assert counts.max() < 180


def test_numbers_have_no_leading_zero_and_may_be_zero():
    numbers = [number for source, _ in _task("addition", 10, 5000).split("train") for number in source.split(b"+")]
    assert all(len(number) == 1 or not number.endswith(b"0") for number in numbers)
    assert b"0" in numbers
    assert {number[-1:] for number in numbers if len(number) > 1} == {b"%d" % digit for digit in range(1, 10)}
    assert {number[:1] for number in numbers} == {b"%d" % digit for digit in range(10)}


def test_carry_runs_through_all_digits():
    from problems.algorithmic_strings import Task

    class NinesAndOne(Task):
        def _numbers(self, rng, lengths, width):
            digits = np.where(np.arange(width) < lengths[:, None], 9 if lengths[0] > 1 else 1, 0)
            return digits.astype(np.int8)

    task = NinesAndOne(kind="addition", base=10, train_length=40, long_length=400, sizes=(), seed=0)
    assert task._strings(np.random.default_rng(0), np.array([[5, 1]])) == [(b"99999+1", b"000001")]


@pytest.mark.parametrize("kind", ["identity", "addition"])
def test_held_out_strings_do_not_occur_in_train(kind):
    task = _task(kind, 10, 2000)
    train = {source for source, _ in task.split("train")}
    for examples in (task.split("dev"), task.split("test"), task.split("long"), task.exact(5, 300, seed=0)):
        # Of the shortest strings, all may be in train.
        assert not [source for source, _ in examples if source in train and len(source) > 4]


def test_shortest_strings_are_allowed_though_train_has_them_all():
    examples = _task("identity", 2, 2000).exact(1, 20, seed=0)
    assert {source for source, _ in examples} == {b"0", b"1"}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("length", [3, 40, 400])
def test_exact_length_counts_symbols_without_the_end(name, length):
    split = problems.get(name, train_size=50).exact_length_split(length, 7, seed=3)
    assert len(split) == 7
    assert split.inputs.lengths.tolist() == [length + 1] * 7
    assert all(split.example(i)["inputs"][-1] == 1 and split.example(i)["targets"][-1] == 1 for i in range(7))
    assert split.inputs.tokens.max() < problems.get(name).features.input_vocabulary_size


def test_exact_split_is_a_function_of_its_arguments():
    problem = problems.get("algorithmic_reverse_decimal40", train_size=50)
    first = problem.exact_length_split(40, 20, seed=1).fingerprint
    assert problem.exact_length_split(40, 20, seed=1).fingerprint == first
    assert problem.exact_length_split(40, 20, seed=2).fingerprint != first


def test_length_that_no_input_has_is_an_error():
    with pytest.raises(UsageError, match="addition has no inputs of 2 symbols; the shortest has 3"):
        problems.get("algorithmic_addition_binary40").exact_length_split(2, 5)
    with pytest.raises(UsageError, match="identity has no inputs of 0 symbols"):
        problems.get("algorithmic_identity_binary40").exact_length_split(0, 5)


@pytest.mark.parametrize("name", NAMES)
def test_prepared_splits_have_the_sizes_of_the_arguments(name, small):
    problem = small(name)
    assert [len(problem.split(split)) for split in problem.splits] == [300, 40, 30, 20]
    assert problem.split("train").lengths.max() <= 42
    assert problem.split("long").lengths.max() > 100
    size = problem.features.input_vocabulary_size
    assert size == (2 if "binary" in name else 10) + (3 if "addition" in name else 2)
    for split in problem.splits:
        tokens = problem.split(split).inputs.tokens
        assert tokens.min() >= 1 and tokens.max() < size
        example = problem.split(split).example(0)
        source, target = problem.decode_input(example["inputs"]), problem.decode_target(example["targets"])
        np.testing.assert_array_equal(problem.encode_input(source), example["inputs"])
        base = 2 if "binary" in name else 10
        answer = _answer(name.split("_")[1], base, _symbols(source.encode(), base))
        assert target == "".join(str(digit) for digit in answer)


def test_addition_takes_its_separator_and_reads_least_significant_digits_first(small):
    problem = small("algorithmic_addition_decimal40")
    ids = problem.encode_input("12+34")
    assert ids.tolist() == [3, 4, 12, 5, 6, 1]
    assert ids.max() < problem.features.input_vocabulary_size
    assert problem.decode_target([6, 8, 1]) == "46"


def test_other_seed_gives_other_strings(data_dir, small):
    from tests.problems.conftest import SMALL

    ours = small("algorithmic_reverse_decimal40")
    other = problems.get("algorithmic_reverse_decimal40", **SMALL, seed="1").prepare(data_dir)
    assert ours.fingerprint != other.fingerprint
    assert small("algorithmic_reverse_decimal40").fingerprint == ours.fingerprint


def test_text_that_is_no_string_of_symbols_is_an_error():
    with pytest.raises(UserError, match="^algorithmic_reverse_binary40: 'G' is not one of its symbols: 0 1$"):
        problems.get("algorithmic_reverse_binary40").encode_input("Goodbye")


def test_empty_line_has_no_positions():
    assert problems.get("algorithmic_reverse_binary40").encode_input(" \t").shape == (0,)


def test_graph_twin_gives_the_ids_of_encode_input():
    problem = problems.get("algorithmic_addition_decimal40", train_size=50)
    split = problem.exact_length_split(20, 100)
    texts = [problem.decode_input(split.example(i)["inputs"]) for i in range(100)]
    np.testing.assert_array_equal(problem.text_encoder()(texts), split.inputs.gather(np.arange(100), 21))
    answers = problem.text_decoder()(split.targets.gather(np.arange(100), 21)).numpy()
    assert [answer.decode() for answer in answers] == [
        problem.decode_target(split.example(i)["targets"]) for i in range(100)
    ]
