"""Where bAbI's files may be, what is refused, and how stories are parsed and divided."""

import io
import tarfile

import pytest

from problems import babi_files
from problems.babi_files import Source
from ut_keras.errors import UserError

TRAIN, TEST = babi_files.file_names([1])
TEXT = b"1 Mary went to the garden.\n2 Where is Mary? \tgarden\t1\n1 John went.\n2 Where is John? \thall\t1\n"


def tar(path, files, mode="w:gz", folder="tasks_1-20_v1-2/en-10k"):
    with tarfile.open(path, mode) as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(f"{folder}/{name}")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def test_questions_see_the_statements_above_them_and_no_question():
    text = (
        b"1 Mary went to the garden.\n2 Where is Mary? \tgarden\t1\n3 John got the milk.\n"
        b"4 What does John hold? \tmilk,apple\t3\n1 John went to the hall.\n2 Where is John?\thall\t1\n"
    )
    assert babi_files.parse(text, "qa", 8) == [
        (
            ("Mary went to the garden.", "John got the milk."),
            [
                {"task": 8, "story": "Mary went to the garden.", "question": "Where is Mary?", "answer": "garden"},
                {
                    "task": 8,
                    "story": "Mary went to the garden.\nJohn got the milk.",
                    "question": "What does John hold?",
                    "answer": "milk,apple",
                },
            ],
        ),
        (
            ("John went to the hall.",),
            [{"task": 8, "story": "John went to the hall.", "question": "Where is John?", "answer": "hall"}],
        ),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            b"1 Mary went.\nMary stayed.\n",
            "qa: line 2 is neither a statement nor a question with answer: 'Mary stayed.'",
        ),
        (b"1 Where is Mary?\t \t1\n", "qa: line 1 is neither"),
        (b"1 \n", "qa: line 1 is neither"),
        (b"<html>\n", "qa: line 1 is neither"),
        (b"2 Mary went.\n", "qa: line 2: the first story|qa: line 1: the first story does not begin with line 1"),
        (b"1 Mary w\xe9nt.\n", "qa: line 1: byte 0xe9 at offset 8 is not UTF-8"),
    ],
)
def test_line_of_another_format_is_named(text, message):
    with pytest.raises(UserError, match=message):
        babi_files.parse(text, "qa", 1)


def test_shipped_archive_has_every_official_file():
    names = babi_files.file_names(range(1, 21))
    files = babi_files.read(babi_files.shipped(), "1k", names)
    assert len(files) == 40
    assert all(data.count(b"\t") == 2000 for data in files.values())


def test_licence_and_attribution_are_shipped():
    folder = babi_files.shipped().path.parent
    assert "Attribution 3.0 Unported" in (folder / "LICENSE.txt").read_text()
    assert "Facebook" in (folder / "README.md").read_text()


@pytest.mark.parametrize(
    ("suffix", "mode"), [(".tar.gz", "w:gz"), (".tar.xz", "w:xz"), (".tar.bz2", "w:bz2"), (".tar", "w")]
)
def test_any_tar_with_the_official_member_names_is_found(tmp_path, suffix, mode):
    path = tar(tmp_path / f"mine{suffix}", {TRAIN: TEXT, TEST: TEXT}, mode)
    tar(tmp_path / "another.tar.gz", {"x": b""})
    assert babi_files.find(tmp_path, "10k", [1]).path == path
    assert babi_files.read(babi_files.find(path, "10k", [1]), "10k", [TEST]) == {TEST: TEXT}


@pytest.mark.parametrize("place", ["tasks_1-20_v1-2/en-10k", "en-10k", "."])
def test_unpacked_folder_is_found(tmp_path, place):
    folder = tmp_path / place
    folder.mkdir(parents=True, exist_ok=True)
    for name in (TRAIN, TEST):
        (folder / name).write_bytes(TEXT)
    assert babi_files.read(babi_files.find(tmp_path, "10k", [1]), "10k", [TRAIN, TEST]) == {TRAIN: TEXT, TEST: TEXT}


def test_folder_of_another_size_is_not_taken(tmp_path):
    folder = tmp_path / "en"
    folder.mkdir()
    (folder / TRAIN).write_bytes(TEXT)
    with pytest.raises(UserError, match="has no bAbI files of en-10k"):
        babi_files.find(folder, "10k", [1])


def test_missing_folder_and_empty_folder_say_what_to_put_where(tmp_path):
    with pytest.raises(UserError, match=r"--manual_dir=.*none does not exist; put tasks_1-20_v1-2\.tar\.gz from http"):
        babi_files.find(tmp_path / "none", "10k", [1])
    with pytest.raises(UserError, match=r"has no bAbI files of en-10k; put tasks_1-20_v1-2\.tar\.gz from http"):
        babi_files.find(tmp_path, "10k", [1])


def test_missing_member_is_named(tmp_path):
    path = tar(tmp_path / "part.tar.gz", {TEST: TEXT})
    with pytest.raises(UserError, match="part.tar.gz has no en-10k/qa1_single-supporting-fact_train.txt; put"):
        babi_files.read(babi_files.find(path, "10k", [1]), "10k", [TRAIN, TEST])


@pytest.mark.parametrize("mode", ["w:gz", "w:xz", "w:bz2", "w"])
@pytest.mark.parametrize("share", [0.3, 0.9])
def test_cut_tar_is_refused_whatever_is_missing(tmp_path, mode, share):
    text = b"".join(b"1 Line %d of a long story.\n" % i for i in range(20000))
    path = tar(tmp_path / "cut.tar.gz", {TEST: TEXT, TRAIN: text}, mode)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(UserError, match="cut.tar.gz is not a whole archive"):
        babi_files.read(babi_files.find(path, "10k", [1]), "10k", [TEST])
    with pytest.raises(UserError, match="cut.tar.gz is not a whole archive"):
        babi_files.find(tmp_path, "10k", [1])


@pytest.mark.parametrize("data", [b"", b"<html>Not found</html>", b"\x1f\x8bgarbage"])
def test_file_that_is_no_tar_is_refused(tmp_path, data):
    path = tmp_path / "tasks_1-20_v1-2.tar.gz"
    path.write_bytes(data)
    with pytest.raises(UserError, match="is not a whole archive|has no en-10k"):
        babi_files.read(babi_files.find(tmp_path, "10k", [1]), "10k", [TRAIN])


def _stories(count, questions=3):
    lines = []
    for story in range(count):
        lines.append(f"1 Mary went to place {story}.")
        lines += [f"{n} Where is Mary? \tplace{story}\t1" for n in range(2, 2 + questions)]
    return ("\n".join(lines) + "\n").encode()


def test_dev_split_takes_whole_stories(tmp_path):
    path = tar(tmp_path / "a.tar", {TRAIN: _stories(40), TEST: _stories(3)}, "w")
    splits = babi_files.read_splits(Source(path), (1,), "10k", 10, 0)
    stories = {name: {example["story"] for example in examples} for name, examples in splits.items()}
    assert {name: len(examples) for name, examples in splits.items()} == {"train": 108, "dev": 12, "test": 9}
    assert not stories["train"] & stories["dev"]
    other = babi_files.read_splits(Source(path), (1,), "10k", 10, 1)
    assert other["dev"] != splits["dev"]
    assert babi_files.read_splits(Source(path), (1,), "10k", 10, 0) == splits


def test_stories_with_equal_statements_are_on_one_side(tmp_path):
    text = _stories(10) * 2
    path = tar(tmp_path / "a.tar", {TRAIN: text, TEST: TEXT}, "w")
    splits = babi_files.read_splits(Source(path), (1,), "10k", 30, 0)
    assert not {e["story"] for e in splits["train"]} & {e["story"] for e in splits["dev"]}
    assert len(splits["dev"]) == 18


def test_files_too_small_for_three_splits_are_refused(tmp_path):
    path = tar(tmp_path / "a.tar", {TRAIN: _stories(1), TEST: TEXT}, "w")
    with pytest.raises(UserError, match="a.tar: its files leave no question for the train split"):
        babi_files.read_splits(Source(path), (1,), "10k", 10, 0)
    path = tar(tmp_path / "a.tar", {TRAIN: TEXT, TEST: b""}, "w")
    with pytest.raises(UserError, match="a.tar: its files leave no question for the test split"):
        babi_files.read_splits(Source(path), (1,), "10k", 10, 0)
