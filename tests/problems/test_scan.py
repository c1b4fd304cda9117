"""SCAN: the release's files, splits, closed words, decoding limit."""

import numpy as np
import pytest

import problems
from problems import scan_files
from tests.problems import scan_samples
from ut_keras import registry
from ut_keras.errors import UsageError, UserError

LONGEST = "jump around left thrice and jump around right thrice"


@pytest.fixture(scope="module")
def simple(data_dir):
    return problems.get("scan_simple").prepare(data_dir)


@pytest.fixture
def length(tmp_path):
    """Function (texts) -> scan_length, prepared from an archive of these files."""

    def prepare(texts, **arguments):
        scan_samples.write_zip(tmp_path / "SCAN-master.zip", texts)
        return problems.get("scan_length", **arguments).prepare(tmp_path / "data", tmp_path)

    return prepare


def test_every_split_of_the_release_has_a_problem():
    names = (
        "simple length addprim_jump addprim_turn_left template_around_right template_jump_around_right "
        "template_opposite_right template_right filler_num0 filler_num1 filler_num2 filler_num3"
    )
    assert {name for name in registry.problems.names() if name.startswith("scan_")} == {
        f"scan_{split}" for split in names.split()
    }


def test_shipped_simple_split_is_the_published_one(simple):
    assert {name: len(simple.split(name)) for name in simple.splits} == {"train": 15892, "dev": 836, "test": 4182}
    commands = {name: {simple.decode_input(row) for row in _inputs(simple, name)} for name in simple.splits}
    # All 20,910 commands of the language, each on one side.
    assert len(set.union(*commands.values())) == 15892 + 836 + 4182
    assert max(int(simple.split(name).targets.lengths.max()) for name in simple.splits) == 49
    assert max(int(simple.split(name).inputs.lengths.max()) for name in simple.splits) == 10


def _inputs(problem, name):
    return [problem.split(name).example(index)["inputs"] for index in range(len(problem.split(name)))]


def test_example_is_the_line_of_the_file(simple):
    text = scan_files.shipped().lines("tasks_test_simple.txt")[0]
    example = simple.split("test").example(0)
    assert text == f"IN: {simple.decode_input(example['inputs'])} OUT: {simple.decode_target(example['targets'])}"
    assert example["inputs"][-1] == example["targets"][-1] == 1


def test_text_gives_the_ids_of_the_data_in_both_twins(simple):
    examples = [simple.split("test").example(index) for index in range(0, 4182, 41)]
    texts = [simple.decode_input(example["inputs"]) for example in examples]
    rows = simple.text_encoder()(texts).numpy()
    for text, row, example in zip(texts, rows, examples, strict=True):
        np.testing.assert_array_equal(simple.encode_input(text), example["inputs"])
        np.testing.assert_array_equal(row[row != 0], example["inputs"])
        np.testing.assert_array_equal(
            simple.encode_target(simple.decode_target(example["targets"])), example["targets"]
        )
    decode = simple.text_decoder()
    answers = [simple.decode_target(example["targets"]) for example in examples[:5]]
    assert [decode(example["targets"][None]).numpy()[0].decode() for example in examples[:5]] == answers


def test_word_outside_of_the_language_is_refused_and_a_row_of_padding_in_the_graph():
    problem = problems.get("scan_simple")
    with pytest.raises(UserError, match="scan_simple: the word 'jumps' is not in its vocabulary.*near names: jump"):
        problem.encode_input("jumps twice")
    rows = problem.text_encoder()(["walk\ttwice ", "jumps twice and walk and run", ""]).numpy()
    assert rows.tolist() == [[14, 13, 1], [0, 0, 0], [0, 0, 0]]
    assert problem.encode_input("walk\ttwice ").tolist() == [14, 13, 1]
    assert problem.encode_input(" ").shape == (0,)


def test_answer_may_have_48_actions_however_short_the_command_is():
    problem = problems.get("scan_length")
    assert problem.max_output_length(2) == 49
    assert problem.max_output_length(np.array([2, 10])).tolist() == [49, 49]
    assert len(problem.encode_input(LONGEST)) == 10


def test_archive_and_its_unpacked_content_give_the_same_examples(length, tmp_path):
    texts = scan_samples.files("length_split", "length")
    packed = length(texts)
    folder = tmp_path / "unpacked" / "length_split"
    folder.mkdir(parents=True)
    for name, text in texts.items():
        (folder.parent / name).write_text(text)
    unpacked = problems.get("scan_length").prepare(tmp_path / "data2", folder.parent)
    assert {name: len(packed.split(name)) for name in packed.splits} == {"train": 114, "dev": 6, "test": 24}
    assert packed.fingerprint == unpacked.fingerprint
    again = problems.get("scan_length").prepare(tmp_path / "data")
    assert again.fingerprint == packed.fingerprint


def test_dev_share_and_seed_are_arguments_and_no_old_data_are_taken_for_others(length):
    texts = scan_samples.files("length_split", "length")
    first, other, same = (length(texts, dev_percent=10, seed=seed) for seed in (1, 2, 1))
    assert len(first.split("dev")) == 12
    assert first.fingerprint != other.fingerprint
    assert first.fingerprint == same.fingerprint
    with pytest.raises(UsageError, match="dev_percent=0 is not between 1 and 90"):
        problems.get("scan_length", dev_percent=0)


def test_changed_archive_is_read_again(length):
    before = length(scan_samples.files("length_split", "length"))
    after = length(scan_samples.files("length_split", "length", train=scan_samples.lines()[:60]))
    assert (len(before.split("train")), len(after.split("train"))) == (114, 57)


def test_command_that_is_repeated_stays_in_train(tmp_path):
    train = ["IN: jump OUT: I_JUMP"] * 40 + scan_samples.lines()[:60]
    scan_samples.write_zip(tmp_path / "x.zip", scan_samples.files("add_prim_split", "addprim_jump", train))
    problem = problems.get("scan_addprim_jump", dev_percent=50).prepare(tmp_path / "data", tmp_path)
    assert [len(problem.split(name)) for name in problem.splits] == [50, 50, 24]
    assert not any(problem.decode_input(row) == "jump" for row in _inputs(problem, "dev"))
    assert sum(problem.decode_input(row) == "jump" for row in _inputs(problem, "train")) == 40


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("jump OUT: I_JUMP", "line 2 is not 'IN: command OUT: actions'"),
        ("IN: jump", "line 2 is not 'IN: command OUT: actions'"),
        ("IN: jump OUT: ", "line 2 is not 'IN: command OUT: actions'"),
        ("IN: hop OUT: I_JUMP", "line 2: 'hop' is no word of SCAN"),
        ("IN: jump OUT: JUMP", "line 2: 'JUMP' is no word of SCAN"),
        (f"IN: jump OUT: {'I_JUMP ' * 49}", "line 2: 49 actions, and SCAN has at most 48"),
    ],
)
def test_line_that_is_not_of_the_format_is_named(length, tmp_path, line, message):
    good = scan_samples.lines()[:3]
    texts = scan_samples.files("length_split", "length", test=[good[0], line, good[1]])
    with pytest.raises(UserError, match=f"scan_length: tasks_test_length.txt: {message}"):
        length(texts)
    assert not (tmp_path / "data").exists()


def test_missing_files_say_what_to_put_where(length, tmp_path):
    with pytest.raises(UserError, match="tasks_train_length.txt.*put SCAN-master.zip from https://.*--manual_dir"):
        length(scan_samples.files("simple_split", "simple"))
    texts = scan_samples.files("length_split", "length")
    del texts["length_split/tasks_test_length.txt"]
    with pytest.raises(UserError, match="has no tasks_test_length.txt"):
        length(texts)


def test_run_keeps_to_the_data_it_was_trained_on(length, tmp_path):
    problem = length(scan_samples.files("length_split", "length"))
    problem.save(tmp_path)
    loaded = problems.load(tmp_path)
    assert loaded.encode_input("walk twice").tolist() == [14, 13, 1]
    assert loaded.prepare(tmp_path / "data").fingerprint == problem.fingerprint
    scan_samples.write_zip(
        tmp_path / "SCAN-master.zip", scan_samples.files("length_split", "length", scan_samples.lines()[:50])
    )
    with pytest.raises(UserError, match="are not those of the run"):
        problems.load(tmp_path).prepare(tmp_path / "data3", tmp_path)
