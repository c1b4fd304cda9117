"""The algorithmic problems beside copying, reversing and adding digits: tensor2tensor's examples, splits, text."""

import gzip
import math

import numpy as np
import pytest

import problems
from problems.algorithmic_numbers import NumberTask, pack_numbers
from problems.algorithmic_strings import Task
from tests import golden_files
from tests.problems.conftest import SMALL, shared_folder
from ut_keras import registry
from ut_keras.errors import UserError

GOLDEN = golden_files.load_json("algorithmic_examples")
SIZES = (("train", 1000), ("dev", 50), ("test", 50), ("long", 300))
NUMBERS = {
    "algorithmic_shift_decimal40": ("shift", 20),
    "algorithmic_identity_vocab95_train20_eval30": ("identity", 95),
    "algorithmic_reverse_nlplike8k": ("reverse_nlplike", 8_000),
    "algorithmic_reverse_nlplike32k": ("reverse_nlplike", 32_000),
    "algorithmic_sort_problem": ("sort", 20),
}
# tensor2tensor's name: ours, and its sizes, which are those of train and long
T2T = {
    "AlgorithmicShiftDecimal40": "algorithmic_shift_decimal40",
    "AlgorithmicMultiplicationBinary40": "algorithmic_multiplication_binary40",
    "AlgorithmicMultiplicationDecimal40": "algorithmic_multiplication_decimal40",
    "AlgorithmicSortProblem": "algorithmic_sort_problem",
    "AlgorithmicReverseNlplike8k": "algorithmic_reverse_nlplike8k",
}


def answer(kind, inputs):
    """A plain twin on a list of symbols."""
    return {
        "identity": lambda: inputs,
        "shift": lambda: [symbol + 10 for symbol in inputs],
        "sort": lambda: sorted(inputs),
        "reverse_nlplike": lambda: inputs[::-1],
    }[kind]()


def product(inputs, base):
    """A plain twin: digits least significant first, `base` as the separator."""
    place = inputs.index(base)
    value = math.prod(_number(part, base) for part in (inputs[:place], inputs[place + 1 :]))
    digits = []
    while value or not digits:
        value, digit = divmod(value, base)
        digits.append(digit)
    return digits


def _number(digits, base):
    return sum(digit * base**power for power, digit in enumerate(digits))


@pytest.mark.parametrize("name", T2T)
def test_examples_and_sizes_of_tensor2tensor(name):
    golden = GOLDEN[name]
    problem = problems.get(T2T[name])
    task = problem._task
    assert (task.base, task.train_length, task.long_length, dict(task.sizes)["train"], dict(task.sizes)["long"]) == (
        *(golden[key] for key in ("num_symbols", "train_length", "dev_length", "train_size", "dev_size")),
    )
    for example in golden["raw_examples"]:
        if "Multiplication" in name:
            text = "".join("*" if symbol == task.base else str(symbol) for symbol in example["inputs"])
            assert example["targets"] == product(example["inputs"], task.base)
            assert task._product(*text.encode().split(b"*")) == "".join(map(str, example["targets"])).encode()
        else:
            assert example["targets"] == answer(task.kind, example["inputs"])


@pytest.mark.parametrize("base", [2, 10])
@pytest.mark.parametrize("split", ["train", "long"])
def test_products_are_right(base, split):
    task = Task(kind="multiplication", base=base, train_length=40, long_length=400, sizes=SIZES, seed=0)
    examples = task.split(split)
    for source, target in examples:
        symbols = [base if letter == ord("*") else letter - ord("0") for letter in source]
        assert [letter - ord("0") for letter in target] == product(symbols, base)
    lengths = [len(source) for source, _ in examples]
    assert min(lengths) >= 3
    assert max(lengths) == 40 if split == "train" else 300 < max(lengths) <= 400
    assert all(len(target) < len(source) for source, target in examples)


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("split", ["train", "long"])
def test_generated_answers_are_right(name, split):
    kind, base = NUMBERS[name]
    task = NumberTask(kind=kind, base=base, train_length=40, long_length=80, sizes=SIZES, seed=0, alpha=1.3)
    for source, target in task.split(split):
        inputs, targets = ([int(word) for word in text.split()] for text in (source, target))
        assert targets == answer(kind, inputs)
        assert all(0 <= symbol < base for symbol in inputs + targets)


def test_shift_takes_the_lower_half_and_gives_the_upper():
    task = problems.get("algorithmic_shift_decimal40", train_size=500)._task
    inputs = {int(word) for source, _ in task.split("train") for word in source.split()}
    assert inputs == set(range(10))


def test_sort_may_repeat_a_number():
    task = problems.get("algorithmic_sort_problem", train_size=500)._task
    rows = [source.split() for source, _ in task.split("train")]
    assert any(len(set(row)) < len(row) for row in rows)
    assert {len(row) for row in rows} == set(range(1, 11))


def test_product_of_numbers_that_are_longer_than_pythons_own_limit():
    task = Task(kind="multiplication", base=10, train_length=40, long_length=400, sizes=SIZES, seed=0)
    ((source, target),) = task.exact(10_001, 1, seed=0)
    first, second = (np.frombuffer(number, np.uint8).astype(int) - 48 for number in source.split(b"*"))
    answer = np.frombuffer(target, np.uint8).astype(int) - 48
    # The remainder by 9 of a number is that of the sum of its digits; by 11, with alternating signs.
    assert (first.sum() * second.sum() - answer.sum()) % 9 == 0
    signed = [(digits * (-1) ** np.arange(len(digits))).sum() for digits in (first, second, answer)]
    assert (signed[0] * signed[1] - signed[2]) % 11 == 0


@pytest.mark.parametrize(("base", "alpha", "first"), [(8_000, 1.3, 0.2698), (32_000, 1.05, 0.1153)])
def test_nlplike_symbols_follow_zipf_and_lengths_a_normal_distribution(base, alpha, first):
    sizes = (("train", 3000), ("dev", 1), ("test", 1), ("long", 1))
    task = NumberTask("reverse_nlplike", base, 70, 70, sizes, 0, alpha)
    rows = [source.split() for source, _ in task.split("train")]
    lengths = np.array([len(row) for row in rows])
    # 35.5: tensor2tensor rounds a normal of mean 35 down after adding 1.
    assert abs(lengths.mean() - 35.5) < 0.5 and abs(lengths.std() - 7) < 0.4
    symbols = np.array([int(word) for row in rows for word in row])
    counts = np.bincount(symbols, minlength=base) / len(symbols)
    # `first`: 1 / (1 + 2^-alpha + 3^-alpha + ... + base^-alpha)
    assert abs(counts[0] - first) < 0.005
    assert abs(counts[1] / counts[0] - 2**-alpha) < 0.02
    assert symbols.max() < base


@pytest.mark.parametrize("name", ["algorithmic_sort_problem", "algorithmic_multiplication_decimal40"])
def test_held_out_strings_do_not_occur_in_train(name):
    task = problems.get(name, train_size=2000, long_size=200)._task
    train = {source for source, _ in task.split("train")}
    for examples in (task.split("dev"), task.split("long"), task.exact(9, 100, seed=0)):
        assert not [source for source, _ in examples if source in train and len(source) > 9]


@pytest.mark.parametrize("name", [*NUMBERS, "algorithmic_multiplication_binary40", "tiny_algo"])
def test_prepared_examples_read_back_as_their_text(name, small):
    problem = small(name)
    assert [len(problem.split(split)) for split in problem.available] == list(SMALL.values())
    size = problem.features.input_vocabulary_size
    for split in map(problem.split, problem.available):
        assert split.inputs.tokens.min() >= 1 and split.inputs.tokens.max() < size and split.targets.tokens.max() < size
        example = split.example(len(split) - 1)
        assert example["inputs"][-1] == example["targets"][-1] == 1
        np.testing.assert_array_equal(problem.encode_input(problem.decode_input(example["inputs"])), example["inputs"])
        np.testing.assert_array_equal(
            problem.encode_target(problem.decode_target(example["targets"])), example["targets"]
        )
        assert len(example["targets"]) <= problem.max_output_length(len(example["inputs"]))


def test_twins_of_a_problem_of_numbers_agree_with_python():
    problem = problems.get("algorithmic_reverse_nlplike8k", train_size=20)
    split = problem.exact_length_split(9, 5)
    assert split.inputs.lengths.tolist() == [10] * 5
    texts = [problem.decode_input(split.inputs[index]) for index in range(5)]
    np.testing.assert_array_equal(problem.text_encoder()(texts), split.inputs.gather(np.arange(5), 10))
    answers = problem.text_decoder()(split.targets.gather(np.arange(5), 10)).numpy()
    assert [text.decode() for text in answers] == [" ".join(text.split()[::-1]) for text in texts]
    with pytest.raises(UserError, match="nlplike8k: '8000' is not one of its symbols: the numbers 0 to 7999"):
        problem.encode_input("1 8000")


def test_small_problems_are_small():
    test = problems.get("algorithmic_reverse_binary40_test")
    assert test.args == {"train_size": 1000, "dev_size": 100, "test_size": 100, "long_size": 100, "seed": 0}
    assert max(len(source) for split in ("train", "long") for source, _ in test._task.split(split)) == 10
    assert problems.get("tiny_algo").args["train_size"] == 100
    assert problems.get("algorithmic_identity_vocab95_train20_eval30").args["train_size"] == 1_000_000
    assert problems.get("algorithmic_reverse_binary40").args["train_size"] == 100_000


def test_default_hparams_sets():
    sets = {name: problems.get(name).default_hparams_set for name in [*NUMBERS, "algorithmic_reverse_binary40_test"]}
    assert {name for name, chosen in sets.items() if chosen == "universal_transformer_reverse"} == {
        name for name in sets if "reverse" in name
    }
    assert set(sets.values()) <= set(registry.hparams_sets.names())


def test_packed_numbers():
    packed = pack_numbers([b"3 14 0", b"7"])
    assert [packed[index].tolist() for index in range(2)] == [[5, 16, 2, 1], [9, 1]]
    assert len(pack_numbers([])) == 0


def test_sorting_alone_reports_the_edit_distance():
    sort, shift = (problems.get(f"algorithmic_{name}") for name in ("sort_problem", "shift_decimal40"))
    assert sort.text_scores(["1 2"], ["1 2"]) == {"edit_distance": 0}
    assert sort.eval_metrics == ("edit_distance",)
    assert shift.text_scores(["1 2"], ["1 2"]) == {} and shift.eval_metrics == ()


def test_published_sums_are_our_sums():
    folder = shared_folder("addition", "the sums of Lee et al. are")
    task = problems.get("algorithmic_addition_decimal40")._task
    text = gzip.decompress((folder / "6digit_10000.txt.gz").read_bytes()).decode()
    rows = [line.replace("=", "+").split("+") for line in text.split("\n") if line][:2000]
    numbers = [np.zeros((len(rows), 8), np.int8) for _ in range(2)]
    for i, (first, second, _) in enumerate(rows):
        for row, number in zip(numbers, (first, second), strict=True):
            row[i, : len(number)] = [int(digit) for digit in reversed(number)]
    sums = task._spell(*task._sums(*numbers))
    assert [total[::-1].decode() for total in sums] == [row[2] for row in rows]
