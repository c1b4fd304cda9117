"""The problems of learning to execute: prepared splits, text form, groups, the authors' programs."""

import gzip

import numpy as np
import pytest

import problems
from problems.vocabulary import Vocabulary
from tests.problems.conftest import shared_folder
from tests.problems.test_learning_to_execute_language import python
from ut_keras import registry
from ut_keras.errors import UsageError, UserError

KINDS = ("program", "control", "addition", "copy", "double", "reverse")
SMALL = {"train_size": 200, "dev_size": 40, "test_size": 40, "hardest_size": 20}
HEADER = "length\tnesting\tprogram\ttarget"
ROWS = ["1\t1\tprint((8*2))\t16", "4\t2\tj=8643\\nfor x in range(5):j-=4401\\nprint((4*j))\t-53448"]


@pytest.fixture(scope="module")
def prepared(data_dir):
    """Function (kind) -> the prepared problem with a few hundred examples."""
    return lambda kind: problems.get(f"learning_to_execute_{kind}", **SMALL).prepare(data_dir)


def write(folder, lines, name="lte_author_generator_kind0.tsv"):
    text = "".join(line + "\n" for line in lines)
    (folder / name).write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_prepared_examples_read_back_as_their_text(kind, prepared):
    problem = prepared(kind)
    assert [len(problem.split(name)) for name in problem.available] == [200, 40, 40, 20]
    assert problem.features.same_vocabulary
    assert problem.features.input_vocabulary_size == (42 if kind in ("program", "control", "addition") else 12)
    for name in problem.available:
        split = problem.split(name)
        for index in range(len(split)):
            example = split.example(index)
            source, target = problem.decode_input(example["inputs"]), problem.decode_target(example["targets"])
            np.testing.assert_array_equal(problem.encode_input(source), example["inputs"])
            np.testing.assert_array_equal(problem.encode_target(target), example["targets"])
            assert len(example["targets"]) <= problem.max_output_length(len(example["inputs"]))
            if problem.vocabularies["inputs"].kind == "characters":
                assert python(source) == f"{target}\n"


@pytest.mark.parametrize("kind", ["program", "double"])
def test_twins_agree_with_python(kind, prepared):
    problem = prepared(kind)
    split = problem.split("test")
    count = len(split)
    texts = [problem.decode_input(split.inputs[index]) for index in range(count)]
    np.testing.assert_array_equal(
        problem.text_encoder()(texts), split.inputs.gather(np.arange(count), split.inputs.lengths.max())
    )
    answers = problem.text_decoder()(split.targets.gather(np.arange(count), split.targets.lengths.max())).numpy()
    assert [answer.decode() for answer in answers] == [problem.decode_target(split.targets[i]) for i in range(count)]


def test_every_blank_of_a_program_counts_and_digits_may_be_spaced():
    program = problems.get("learning_to_execute_program")
    assert program.decode_input(program.encode_input("print((5 if 1<2 else 7))")) == "print((5 if 1<2 else 7))"
    with pytest.raises(UserError, match=r"^learning_to_execute_program: '\\t' is not one of its characters: ' #\(\)"):
        program.encode_input("print(1)\t")
    copy = problems.get("learning_to_execute_copy")
    assert copy.encode_input("3 1 4").tolist() == copy.encode_input("314").tolist() == [5, 3, 6, 1]
    assert program.encode_input("").shape == copy.encode_input("").shape == (0,)


def test_vocabulary_is_known_without_data_and_survives_saving(tmp_path, prepared):
    problem = prepared("program")
    problem.save(tmp_path)
    loaded = problems.load(tmp_path)
    assert loaded.vocabularies == problem.vocabularies == problems.get("learning_to_execute_program").vocabularies
    assert Vocabulary.from_dict(loaded.vocabularies["inputs"].to_dict()) == problem.vocabularies["inputs"]
    assert loaded.encode_input("print(1)").tolist() == problem.encode_input("print(1)").tolist()


def test_groups_are_the_lengths_and_nestings(prepared):
    problem = prepared("program")
    split = problem.split("test")
    groups = problem.groups(split)
    assert list(groups) == [*(f"length_{n}" for n in range(1, 6)), "nesting_1", "nesting_2"]
    assert (
        sum(groups[f"length_{n}"].sum() for n in range(1, 6)) == groups["nesting_1"].sum() + groups["nesting_2"].sum()
    )
    index = int(np.flatnonzero(groups["length_1"])[0])
    assert split.extras["length"][index] == 1
    assert list(problem.groups(problem.split("hardest"))) == ["length_5", "nesting_2"]
    assert list(prepared("addition").groups(prepared("addition").split("hardest"))) == ["length_5"]


def test_memory_is_grouped_by_ten_lengths(prepared):
    problem = prepared("copy")
    split = problem.split("train")
    groups = problem.groups(split)
    assert list(groups) == [f"length_{n + 1}_to_{n + 10}" for n in range(0, 60, 10)]
    assert sum(mask.sum() for mask in groups.values()) == 200
    lengths = split.inputs.lengths[groups["length_11_to_20"]] - 1
    assert lengths.min() >= 11 and lengths.max() <= 20


def test_lengths_and_sizes_are_arguments(data_dir):
    problem = problems.get("learning_to_execute_reverse", **SMALL, length="4", seed="7").prepare(data_dir)
    assert problem.split("train").inputs.lengths.max() == 5
    assert set(problem.split("hardest").inputs.lengths) == {5}
    other = problems.get("learning_to_execute_reverse", **SMALL, length=4, seed=8).prepare(data_dir)
    assert problem.fingerprint != other.fingerprint
    deep = problems.get("learning_to_execute_control", **SMALL, length=2, nesting=4).prepare(data_dir)
    assert list(deep.groups(deep.split("hardest"))) == ["length_2", "nesting_4"]


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        ("copy", {"nesting": 2}, "has no argument 'nesting'"),
        ("copy", {"length": 0}, "argument length=0 leaves no examples"),
        ("program", {"train_size": 0}, "argument train_size=0 leaves no examples"),
        ("program", {"nesting": 0}, "argument nesting=0 is not between 1 and 10"),
        ("control", {"nesting": 11}, "argument nesting=11 is not between 1 and 10"),
        ("addition", {"length": 16}, "argument length=16 is above 15 digits"),
        ("program", {"kind": "copy"}, "has no argument 'kind'"),
    ],
)
def test_bad_argument_is_refused(kind, arguments, message):
    with pytest.raises(UsageError, match=message):
        problems.get(f"learning_to_execute_{kind}", **arguments)


def test_split_of_no_examples_is_not_there(tmp_path):
    problem = problems.get("learning_to_execute_copy", **{**SMALL, "test_size": 0}).prepare(tmp_path)
    assert problem.available == ("train", "dev", "hardest") and problem.final_split == "dev"
    with pytest.raises(UserError, match="no split 'test': argument test_size=0 leaves no examples"):
        problem.split("test")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("5\t2\tprint(" + "(" * 49 + "9" * 100 + f"*{'9' * 100})" * 49 + ")\t1", "line 2: .* more than 100 digits"),
        ("5" * 5000 + "\t2\tprint(1)\t1", "line 2: not a length"),
        ("", "holds no program"),
    ],
)
def test_hostile_file_of_the_authors_is_refused_before_anything_is_made(tmp_path, row, message):
    text = f"length\tnesting\tprogram\ttarget\n{row}" + "\n" * bool(row)
    (tmp_path / "lte_author_generator_kind0.tsv").write_text(text)
    with pytest.raises(UserError, match=f"^learning_to_execute_program: .*{message}"):
        problems.get("learning_to_execute_program", **SMALL).prepare(tmp_path / "data", tmp_path)
    assert not (tmp_path / "data").exists()


def test_exact_lengths_belong_to_memory():
    split = problems.get("learning_to_execute_double").exact_length_split(60, 5, seed=1)
    assert split.inputs.lengths.tolist() == [61] * 5
    assert split.targets.lengths.tolist() == [121] * 5
    with pytest.raises(UsageError, match="no inputs of 0 digits"):
        problems.get("learning_to_execute_copy").exact_length_split(0, 5)
    with pytest.raises(UsageError, match="lengths belong to"):
        problems.get("learning_to_execute_program").exact_length_split(5, 5)


def test_default_hparams_sets_exist():
    for kind in KINDS:
        problem = problems.get(f"learning_to_execute_{kind}")
        assert problem.default_hparams_set in registry.hparams_sets.names()
        assert problem.description.endswith("characters, after Zaremba and Sutskever")


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_authors_programs_are_a_split_where_their_file_is(suffix, tmp_path, data_dir, prepared):
    without = prepared("program")
    assert "authors" not in without.available
    with pytest.raises(UserError, match="no split 'authors': put lte_author_generator_kind0.tsv.gz into a folder"):
        without.split("authors")
    write(tmp_path, [HEADER, *ROWS], f"lte_author_generator_kind0.tsv{suffix}")
    problem = problems.get("learning_to_execute_program", **SMALL).prepare(data_dir, manual_dir=tmp_path)
    assert problem.fingerprint == without.fingerprint
    split = problem.split("authors")
    assert problem.decode_input(split.inputs[1]) == "j=8643#for x in range(5):j-=4401#print((4*j))"
    assert [problem.decode_target(split.targets[i]) for i in range(2)] == ["16", "-53448"]
    groups = problem.groups(split)
    assert set(groups) == {"length_1", "length_4", "nesting_1", "nesting_2", "not_in_train"}
    assert groups["length_4"].tolist() == [False, True]


def test_authors_programs_that_are_in_train_are_known(tmp_path, data_dir, prepared):
    train = prepared("program").split("train")
    program, target = (
        prepared("program").decode_input(train.inputs[0]),
        prepared("program").decode_target(train.targets[0]),
    )
    write(tmp_path, [HEADER, f"4\t2\t{program.replace('#', chr(92) + 'n')}\t{target}", ROWS[1]])
    problem = problems.get("learning_to_execute_program", **SMALL).prepare(data_dir, manual_dir=tmp_path)
    assert problem.groups(problem.split("authors"))["not_in_train"].tolist() == [False, True]


def test_folder_without_the_authors_file_is_not_an_error(tmp_path, data_dir):
    problem = problems.get("learning_to_execute_program", **SMALL).prepare(data_dir, manual_dir=tmp_path)
    assert problem.available == ("train", "dev", "test", "hardest")
    with pytest.raises(UserError, match="--manual_dir=.*nowhere does not exist"):
        problem.prepare(data_dir, manual_dir=tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["program\ttarget", *ROWS], "does not begin with the line 'length"),
        ([HEADER, ROWS[0], "1\t1\tprint(1)"], "kind0.tsv, line 3: not a length, a nesting, a program and a target"),
        ([HEADER, "one\t1\tprint(1)\t1"], "line 2: not a length"),
        ([HEADER, "1\t1\tprint((8*2))\t17"], "line 2: the program prints 16, not 17"),
        ([HEADER, "1\t1\timport os\t17"], "line 2: not a program of the language, at character 2 "),
    ],
)
def test_broken_authors_file_is_an_error_with_its_line(lines, message, tmp_path, data_dir):
    write(tmp_path, lines)
    with pytest.raises(UserError, match=message):
        problems.get("learning_to_execute_program", **SMALL).prepare(data_dir, manual_dir=tmp_path)


def test_all_programs_of_the_authors_run_right(data_dir):
    folder = shared_folder("learning_to_execute", "the programs of the authors' generator are")
    problem = problems.get("learning_to_execute_program", **SMALL).prepare(data_dir, manual_dir=folder)
    split = problem.split("authors")
    assert len(split) == 1500
    groups = problem.groups(split)
    assert {name: int(mask.sum()) for name, mask in groups.items() if name != "not_in_train"} == {
        **{f"length_{n}": 500 for n in (1, 4, 6)},
        **{f"nesting_{n}": 500 for n in (1, 2, 3)},
    }
    for index in range(1500):
        text = problem.decode_input(split.inputs[index])
        assert python(text) == problem.decode_target(split.targets[index]) + "\n"
