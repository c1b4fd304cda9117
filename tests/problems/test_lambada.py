"""LAMBADA: files, vocabulary, passages, what is dropped and counted."""

import gzip
import lzma

import numpy as np
import pytest

import problems
from problems.vocabulary import EOS, UNK
from tests.problems import lambada_samples
from ut_keras.errors import UsageError, UserError

SIZE = {"vocabulary_size": 28}


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    return lambada_samples.write_archive(tmp_path_factory.mktemp("archive"))


@pytest.fixture(scope="module")
def lm(data_dir, archive):
    return problems.get("lambada_lm", **SIZE).prepare(data_dir, archive)


@pytest.fixture(scope="module")
def rc(data_dir, archive):
    return problems.get("lambada_rc", **SIZE).prepare(data_dir, archive)


def test_archive_has_every_split(lm):
    assert lm.available == lm.splits == ("train", "dev", "test", "control")
    assert [len(lm.split(name)) for name in ("dev", "test", "control")] == [12, 8, 8]
    assert (lm.scored, lm.selection, lm.final_split) == ("last", "loss", "test")


def test_targets_are_the_words_of_the_passage_and_an_end_token(lm):
    example = lm.split("dev").example(0)
    assert set(example) == {"targets"}
    assert example["targets"][-1] == EOS
    assert lm.decode_target(example["targets"]) == lambada_samples.passages()[0]
    assert lm.encode_target(lambada_samples.passages()[0]).tolist() == example["targets"].tolist()


def test_no_word_has_a_reserved_id(lm):
    vocabulary = lm.vocabularies["targets"]
    assert vocabulary.entries[:3] == (".", ",", "``")
    assert [vocabulary.id_of(word) for word in vocabulary.entries] == list(range(3, 31))
    assert "<s>" not in vocabulary
    assert vocabulary.encode("the cat </s>") == [vocabulary.id_of("the"), UNK, UNK]


def test_vocabulary_is_the_most_frequent_words_whatever_their_order_in_the_file(tmp_path):
    folder = lambada_samples.write_unpacked(tmp_path / "files", novels=())
    lines = lambada_samples.vocabulary().splitlines(keepends=True)
    (folder / "lambada-vocab-2.txt").write_text("".join(sorted(lines)))
    problem = problems.get("lambada_lm", vocabulary_size=8).prepare(tmp_path / "data", folder)
    assert problem.vocabularies["targets"].entries == (".", ",", "``", "''", "?", "the", "lamp", "letter")


def test_passages_of_novels_train_the_language_model(lm):
    train = lm.split("train")
    # 60 sentences of 17 words, twice: four make a passage, without the period at its end.
    assert train.targets.lengths.tolist() == [4 * 17] * 30
    assert lm.decode_target(train.targets[0]).split()[-2:] == ["the", "lamp"]
    assert train.counts == {}


def test_last_words_outside_of_the_vocabulary_are_counted(lm):
    assert lm.split("dev").counts == {"passages whose last word is not in the vocabulary, never right": 3}
    assert sum(lm.split("dev").targets[n][-2] == UNK for n in range(12)) == 3


def test_prompt_has_no_end_token_and_the_answer_is_one_word(lm):
    ids = lm.encode_input("she did n't see the")
    assert (len(ids), EOS in ids) == (5, False)
    assert lm.max_output_length(5) == 1
    np.testing.assert_array_equal(lm.text_encoder()(["she did n't see the"]), [ids])
    assert lm.features.input_vocabulary_size is None


def test_reading_comprehension_chooses_a_word_of_the_passage(rc):
    example, passage = rc.split("dev").example(0), lambada_samples.passages()[0]
    assert rc.decode_input(example["inputs"]) == passage.rpartition(" ")[0]
    assert example["inputs"][-1] == EOS
    assert rc.decode_target(example["targets"]) == passage.split()[-1] == "lamp"
    assert rc.encode_target("lamp").tolist() == example["targets"].tolist()
    assert rc.features.pointer
    assert rc.features.target == "class"
    assert rc.features.target_vocabulary_size == rc.features.input_vocabulary_size == 31


def test_passages_that_cannot_be_answered_are_dropped_from_training_and_wrong_elsewhere(rc, tmp_path):
    assert rc.split("dev").counts == {
        "passages whose last word is not in the vocabulary and the passage, never right": 3
    }
    assert rc.groups(rc.split("dev"))["answerable"].tolist() == [True, True, True, False] * 3
    train = rc.split("train")
    # Each of 2 x 60 sentences ends a passage, in which its last word stands before.
    assert (len(train), list(train.counts.values())) == (120, [0])
    assert rc.groups(train)["answerable"].all()
    own = tmp_path / "own.txt"
    own.write_text("The lamp was not the key. The lamp. A cat had the cat.")
    folder = lambada_samples.write_archive(tmp_path / "files", novels=())
    problem = problems.get("lambada_rc", train_text=str(own), **SIZE).prepare(tmp_path / "data", folder)
    train = problem.split("train")
    # "key" did not stand before, "cat" did and is not in the vocabulary.
    assert [problem.decode_input(train.inputs[0]), problem.decode_target(train.targets[0])] == [
        "the lamp was not the key . the",
        "lamp",
    ]
    assert train.counts == {"passages whose last word is not in the vocabulary and the passage, dropped": 2}


def test_unpacked_files_are_the_same_data(lm, tmp_path):
    folder = lambada_samples.write_unpacked(tmp_path / "files")
    other = problems.get("lambada_lm", **SIZE).prepare(tmp_path / "data", folder)
    assert other.fingerprint == lm.fingerprint
    (folder / "train-novels" / "Mystery" / "novel two.txt").write_text(lambada_samples.novel(40))
    changed = problems.get("lambada_lm", **SIZE).prepare(tmp_path / "data", folder)
    assert len(changed.split("train")) == 25


def test_own_novels_train_with_the_released_words(tmp_path):
    (tmp_path / "one.txt").write_text(lambada_samples.PLAIN)
    (tmp_path / "three.txt.xz").write_bytes(lzma.compress(lambada_samples.PLAIN.encode()))
    (tmp_path / "two.txt.gz").write_bytes(gzip.compress(lambada_samples.PLAIN.encode()))
    folder = lambada_samples.write_archive(tmp_path / "files")
    problem = problems.get("lambada_lm", train_text=str(tmp_path / "*.txt*"), **SIZE)
    problem.prepare(tmp_path / "data", folder)
    train = problem.split("train")
    each = len(train) // 3
    assert len(train) == 3 * each > 0
    assert all(np.array_equal(train.targets[0], train.targets[n * each]) for n in (1, 2))
    text = problem.decode_target(train.targets[0])
    assert "`` where is it ? '' anna asked ." in text
    assert "she did n't see the lamp , <unk> boris said" in text
    assert [len(problem.split(name)) for name in ("dev", "test", "control")] == [12, 8, 8]


def test_changed_own_text_is_never_taken_for_the_old_one_and_a_run_keeps_its_own(tmp_path):
    own = tmp_path / "own.txt"
    own.write_text(lambada_samples.PLAIN)
    folder = lambada_samples.write_archive(tmp_path / "files")
    arguments = {"train_text": str(own), **SIZE}
    first = problems.get("lambada_lm", **arguments).prepare(tmp_path / "data", folder)
    first.save(tmp_path)
    own.write_text(lambada_samples.PLAIN * 2)
    second = problems.get("lambada_lm", **arguments).prepare(tmp_path / "data", folder)
    assert len(second.split("train")) > len(first.split("train"))
    with pytest.raises(UserError, match="are not those of the run"):
        problems.load(tmp_path).prepare(tmp_path / "data")
    own.unlink()
    loaded = problems.load(tmp_path).prepare(tmp_path / "data")
    assert loaded.fingerprint == first.fingerprint
    with pytest.raises(UserError, match="names no file"):
        problems.get("lambada_lm", **arguments).prepare(tmp_path / "data", folder)


def test_without_novels_training_is_refused_and_evaluation_works(tmp_path):
    folder = lambada_samples.write_unpacked(tmp_path / "files", novels=(), evaluated=("development",))
    problem = problems.get("lambada_lm", **SIZE).prepare(tmp_path / "data", folder)
    assert (problem.available, problem.final_split) == (("dev",), "dev")
    with pytest.raises(UserError, match=r"no split 'train': no novels .*--problem_args=train_text=PATH"):
        problem.split("train")
    with pytest.raises(
        UserError, match=r"no split 'test': lambada_test_plain_text.txt was not found; put lambada-data"
    ):
        problem.split("test")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("lambada-vocab-2.txt", "the\n", "line 1 is not word, tab, frequency"),
        ("lambada-vocab-2.txt", "the\t5\n\t4\n", "line 2 is not word, tab, frequency"),
        ("lambada-vocab-2.txt", "<s>\t5\n", "holds no word"),
        ("lambada_development_plain_text.txt", "the lamp\nlamp \n", "line 2 is no passage of two words or more"),
        ("lambada_development_plain_text.txt", "", "lambada_development_plain_text.txt is empty"),
        ("train-novels.tar", "no tar file", "train-novels.tar is not a whole archive"),
    ],
)
def test_broken_file_is_named(tmp_path, name, content, message):
    folder = lambada_samples.write_unpacked(tmp_path / "files", novels=(), evaluated=("development",))
    (folder / name).write_text(content)
    with pytest.raises(UserError, match=f"lambada_lm: .*{message}"):
        problems.get("lambada_lm", **SIZE).prepare(tmp_path / "data", folder)


def test_a_word_that_stands_in_the_list_twice_is_refused(tmp_path):
    folder = lambada_samples.write_unpacked(tmp_path / "files", novels=(), evaluated=("development",))
    (folder / "lambada-vocab-2.txt").write_text(lambada_samples.vocabulary() + "the\t1\n")
    with pytest.raises(UserError, match="'the' stands in lines 8 and 36"):
        problems.get("lambada_lm", vocabulary_size=29).prepare(tmp_path / "data", folder)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"caf\xe9", "a.txt: line 1: byte 0xe9 at offset 3 is not UTF-8"),
        ("a.txt", b" \n", "a.txt holds no words"),
        ("a.txt.xz", b"text", "a.txt.xz: broken xz file"),
    ],
)
def test_broken_novel_of_ones_own_is_named_before_anything_else(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=f"lambada_lm: .*{message}"):
        problems.get("lambada_lm", train_text=str(tmp_path / name)).prepare(tmp_path / "data", tmp_path)


def test_arguments_that_leave_nothing_are_refused(tmp_path, archive):
    with pytest.raises(UsageError, match="vocabulary_size=0 leaves no word"):
        problems.get("lambada_lm", vocabulary_size=0)
    with pytest.raises(UserError, match="vocabulary_size=60000 is more than the 33 words of the list"):
        problems.get("lambada_lm").prepare(tmp_path, archive)


def test_published_development_set(shared_lambada, tmp_path):
    problem = problems.get("lambada_rc", vocabulary_size=112744).prepare(tmp_path, shared_lambada)
    dev = problem.split("dev")
    assert (len(dev), len(problem.split("control"))) == (4869, 2500)
    known = np.mean([dev.targets[n][0] != UNK for n in range(len(dev))])
    assert round(100 * known, 1) == 94.9
    # The literature's 19 % are those whose last word does not stand in the passage, in the vocabulary or not.
    assert 0.75 < problem.groups(dev)["answerable"].mean() < 0.85
    assert problem.vocabularies["inputs"].entries[:5] == (".", ",", "the", "to", "and")
