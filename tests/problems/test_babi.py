"""The bAbI problems: encoding, vocabulary, splits, text form, manual folders."""

import dataclasses
import time

import numpy as np
import pytest

import problems
from problems import babi_files, builders
from tests.problems.test_babi_files import TEST, TEXT, TRAIN, tar
from ut_keras.errors import UsageError, UserError

STORY = "Mary moved to the bathroom. John went to the hallway. Where is Mary?"


def _texts(problem, split):
    """The text form of each example, and its answer, from the tensorflow-datasets data."""
    config = builders.BabiConfig(name=problem._data_name, tasks=(), size="1k", dev_percent=10, seed=0, examples=None)
    builder = builders.prepare(builders.UtBabi, config, builders.data_root(problem.data_dir))
    for batch in builders.read(builder, split):
        for story, question, answer in zip(batch["story"], batch["question"], batch["answer"], strict=True):
            yield f"{story.decode()} {question.decode()}".replace("\n", " "), answer.decode().lower()


def test_official_files_give_train_dev_and_test(task1):
    assert {name: len(task1.split(name)) for name in task1.splits} == {"train": 900, "dev": 100, "test": 1000}
    features = task1.features
    assert (features.target, features.words_per_sentence) == ("class", 6)
    # 19 words of the texts, all six places among them.
    assert features.input_vocabulary_size == features.target_vocabulary_size == 21
    assert features.same_vocabulary


def test_rows_are_sentences_and_the_question_is_the_last(task1):
    rows = task1.encode_input(STORY)
    assert rows.shape == (3, 6)
    assert (rows > 1).sum(axis=1).tolist() == [5, 5, 3]
    assert task1.decode_input(rows) == "mary moved to the bathroom. john went to the hallway. where is mary?"
    assert task1.encode_input(STORY.upper().replace("?", " ")).tolist() == rows.tolist()


@pytest.mark.parametrize("name", ["task1_1k", "task8_1k", "task19_1k"])
def test_text_form_gives_the_ids_of_the_data_in_both_twins(data_dir, name):
    problem = problems.get(f"babi_qa_sentence_{name}").prepare(data_dir)
    split = problem.split("test")
    texts, answers = zip(*_texts(problem, "test"), strict=True)
    assert len(texts) == len(split) == 1000
    encode, decode = problem.text_encoder(), problem.text_decoder()
    for start in range(0, 400, 100):
        indices = np.arange(start, start + 100)
        rows = encode(list(texts[start : start + 100])).numpy()
        np.testing.assert_array_equal(rows, split.inputs.gather(indices, rows.shape[1]))
        classes = split.targets.gather(indices, 1)
        assert [text.decode() for text in decode(classes).numpy()] == list(answers[start : start + 100])
        for index in indices[:30]:
            np.testing.assert_array_equal(problem.encode_input(texts[index]), split.example(index)["inputs"])
            assert problem.decode_target(split.example(index)["targets"]) == answers[index]


def test_answer_of_several_parts_is_one_class(data_dir):
    problem = problems.get("babi_qa_sentence_task8_1k").prepare(data_dir)
    assert "milk,football" in problem.vocabularies["targets"]
    assert problem.split("train").targets.lengths.max() == 1
    assert problem.split("train").targets.tokens.min() >= 2


def test_dev_questions_share_no_story_with_train(task1):
    def whole_stories(name):
        examples = [task1.split(name).example(i)["inputs"] for i in range(len(task1.split(name)))]
        # The fifth question of a story stands after all of its ten statements.
        return {rows[:10].tobytes() for rows in examples if len(rows) == 11}

    assert (len(whole_stories("train")), len(whole_stories("dev"))) == (180, 20)
    assert not whole_stories("train") & whole_stories("dev")


def test_long_stories_keep_their_last_statements_and_are_counted(data_dir):
    problem = problems.get("babi_qa_sentence_task2_1k").prepare(data_dir)
    assert problem.max_facts == 70
    assert problem.split("test").inputs.lengths.max() == 71
    assert problem.split("test").counts == {"stories cut to their last 70 statements": 5}
    rows = problem.encode_input("John went to the garden. " * 80 + "Where is John?")
    assert rows.shape[0] == 71
    assert problem.decode_input(rows).endswith("john went to the garden. where is john?")


@pytest.mark.parametrize(("name", "limit"), [("task1_10k", 70), ("task3_1k", 130), ("all_tasks_1k", 130)])
def test_task_3_keeps_130_statements(name, limit):
    assert problems.get(f"babi_qa_sentence_{name}").max_facts == limit


@pytest.mark.parametrize("text", ["", "  ", "...", "?"])
def test_line_without_words_has_no_positions(task1, text):
    assert task1.encode_input(text).shape == (0, 6)
    assert not task1.text_encoder()([text]).numpy().any()


def test_unknown_word_is_named(task1):
    with pytest.raises(UserError, match="^babi_qa_sentence_task1_1k: the word 'kitchn' is not .* near names: kitchen$"):
        task1.encode_input("Mary went to the kitchn. Where is Mary?")


def test_a_word_as_long_as_a_file_is_named_by_its_beginning(task1):
    with pytest.raises(UserError) as error:
        task1.encode_input("x" * 100_000)
    assert len(str(error.value)) < 300 and "xxx'... is not in" in str(error.value)


def test_time_for_a_story_does_not_grow_with_the_square_of_its_sentences(task1):
    start = time.process_time()
    assert task1.encode_input("John went. " * 100_000 + "Where is John?").shape == (71, 6)
    assert time.process_time() - start < 10  # a tenth of that, or minutes


def test_sentence_longer_than_the_model_takes_is_an_error(task1):
    with pytest.raises(UserError, match="a sentence of 7 words is longer than 6, the longest of its data: 'mary "):
        task1.encode_input("Mary went to the the the garden. Where is Mary?")


@pytest.mark.parametrize("ids", [0, 1, [0], [1], 99, np.int64(0)])
def test_reserved_class_has_no_text(task1, ids):
    assert task1.decode_target(ids) == ""


def test_task_trains_on_itself_alone(task1):
    assert "football" not in task1.vocabularies["inputs"]


@pytest.mark.parametrize("percent", ["0", 91, "ten"])
def test_share_of_dev_outside_of_its_range_is_an_error(percent):
    with pytest.raises(UsageError, match="argument dev_percent="):
        problems.get("babi_qa_sentence_task1_1k", dev_percent=percent)


def test_other_share_of_dev_is_another_dataset(data_dir, task1):
    other = problems.get("babi_qa_sentence_task1_1k", dev_percent="20").prepare(data_dir)
    assert (len(other.split("train")), len(other.split("dev"))) == (800, 200)
    assert len(task1.split("dev")) == 100


def test_download_that_fails_says_what_to_do_and_leaves_nothing(tmp_path, monkeypatch):
    official = dataclasses.replace(babi_files.OFFICIAL, url="http://localhost:9/tasks_1-20_v1-2.tar.gz")
    monkeypatch.setattr(babi_files, "OFFICIAL", official)
    with pytest.raises(UserError) as error:
        problems.get("babi_qa_sentence_task1_10k").prepare(tmp_path / "data")
    assert "\n" not in str(error.value)
    for part in (
        "babi_qa_sentence_task1_10k: cannot download http://localhost:9/",
        "tasks_1-20_v1-2.tar.gz",
        "--manual_dir",
    ):
        assert part in str(error.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("fault", ["missing", "cut", "no tar"])
def test_bad_manual_file_leaves_nothing(tmp_path, fault):
    manual, data = tmp_path / "manual", tmp_path / "data"
    if fault != "missing":
        manual.mkdir()
        path = tar(manual / "tasks.tar.gz", {TRAIN: TEXT * 500, TEST: TEXT})
        path.write_bytes(path.read_bytes()[:100] if fault == "cut" else b"<html>")
    with pytest.raises(UserError, match="^babi_qa_sentence_task1_10k: .*(manual|tasks.tar.gz)") as error:
        problems.get("babi_qa_sentence_task1_10k").prepare(data, manual)
    assert "\n" not in str(error.value)
    assert not data.exists()


def test_data_prepared_by_hand_are_found_without_the_folder(tmp_path):
    manual = tmp_path / "manual"
    manual.mkdir()
    tar(manual / "tasks.tar.gz", {TRAIN: TEXT, TEST: TEXT})
    first = problems.get("babi_qa_sentence_task1_10k").prepare(tmp_path / "data", manual)
    again = problems.get("babi_qa_sentence_task1_10k").prepare(tmp_path / "data")
    assert again.fingerprint == first.fingerprint
    first.save(tmp_path)

    tar(manual / "tasks.tar.gz", {TRAIN: TEXT.replace(b"garden", b"office"), TEST: TEXT})
    other = problems.get("babi_qa_sentence_task1_10k").prepare(tmp_path / "data", manual)
    assert "office" in other.vocabularies["inputs"]
    with pytest.raises(UserError, match="has data from 2 manual folders; say which with --manual_dir"):
        problems.get("babi_qa_sentence_task1_10k").prepare(tmp_path / "data")
    # A run goes on with the data it was begun with, whatever has been put into the folder since.
    assert problems.load(tmp_path).prepare(tmp_path / "data", manual).fingerprint == first.fingerprint


def test_task_of_the_shared_10k_files(shared_babi, tmp_path):
    problem = problems.get("babi_qa_sentence_task4_10k").prepare(tmp_path, shared_babi)
    assert {name: len(problem.split(name)) for name in problem.splits} == {"train": 9000, "dev": 1000, "test": 1000}


@pytest.mark.parametrize("name", ["babi_qa_sentence_task3_10k", "babi_qa_sentence_all_tasks_10k"])
def test_task_whose_file_is_missing_is_refused_by_name(shared_babi, tmp_path, name):
    with pytest.raises(
        UserError, match=f"^{name}: .* has no en-10k/qa3_three-supporting-facts_train.txt; put tasks_1-20"
    ):
        problems.get(name).prepare(tmp_path / "data", shared_babi)
    assert not (tmp_path / "data").exists()


@pytest.mark.slow
def test_all_tasks_of_the_shipped_data(data_dir):
    problem = problems.get("babi_qa_sentence_all_tasks_1k").prepare(data_dir)
    assert [len(problem.split(name)) for name in ("train", "dev", "test")] == [18007, 1993, 20000]
    assert problem.features.words_per_sentence == 11


def test_a_story_that_is_cut_says_so(task1):
    sentence = "John went to the hallway. "
    assert task1.cut(sentence * 70 + "Where is John?") == ""
    assert task1.cut(sentence * 71 + "Where is John?") == "a story of 71 statements keeps its last 70"
