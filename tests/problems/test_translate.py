"""Translation: the official files of Multi30k and WMT, and the user's own pairs."""

import gzip
import zipfile

import pytest
import sacrebleu

import problems
from tests.problems.conftest import shared_folder
from ut_keras.errors import UsageError, UserError

PAIRS = [(f"a {thing} in the {place} .", f"ein {thing} im {place} .") for thing in "abcdef" for place in "uvwxyz"]
MULTI30K = {"train": "train", "dev": "val", "test": "test_2016_flickr"}
SMALL = {"vocabulary_size": 300}


def _multi30k(folder, splits=("train", "dev", "test")):
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / "dataset-master.zip", "w") as archive:
        for split in splits:
            for side, language in enumerate(("en", "de")):
                text = "".join(pair[side] + "\n" for pair in PAIRS)
                name = f"dataset-master/data/task1/raw/{MULTI30K[split]}.{language}.gz"
                archive.writestr(name, gzip.compress(text.encode()))
    return folder


def _own(folder, names=("train", "dev"), pairs=PAIRS):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        for side, language in enumerate(("en", "de")):
            (folder / f"{name}.{language}").write_text("".join(pair[side] + "\n" for pair in pairs))
    return folder


def _first(problem, split="train"):
    example = problem.split(split).example(0)
    return problem.decode_input(example["inputs"]), problem.decode_target(example["targets"])


def test_multi30k_is_read_from_its_archive_in_both_directions(tmp_path):
    folder = _multi30k(tmp_path / "by_hand")
    forth = problems.get("translate_multi30k_ende", **SMALL).prepare(tmp_path / "data", folder)
    back = problems.get("translate_multi30k_ende_rev", **SMALL).prepare(tmp_path / "data")
    assert forth.available == back.available == ("train", "dev", "test")
    assert _first(forth) == PAIRS[0] and _first(back) == PAIRS[0][::-1]
    assert forth.features.same_vocabulary and forth.final_split == "test"


def test_test_split_that_is_not_there_is_named_when_it_is_asked_for(tmp_path):
    problem = problems.get("translate_multi30k_ende", **SMALL)
    problem.prepare(tmp_path / "data", _multi30k(tmp_path / "by_hand", ("train", "dev")))
    assert problem.available == ("train", "dev") and problem.final_split == "dev"
    with pytest.raises(UserError, match="2016_flickr.en and test_2016_flickr.de were not found; put .*--manual_dir"):
        problem.split("test")


@pytest.mark.slow  # prepares data twice
def test_parallel_text_makes_the_same_pairs_of_the_same_files(tmp_path):
    folder = shared_folder("translation/multi30k", "Multi30k is")
    own = problems.get("parallel_text", source="en", target="de", vocabulary_size=4000)
    published = problems.get("translate_multi30k_ende")
    for problem in (own, published):
        problem.prepare(tmp_path, folder)
    assert {split: len(own.split(split)) for split in own.available} == {"train": 29000, "dev": 1014}
    assert own.fingerprint == published.fingerprint


def test_parallel_text_of_files_of_different_length_gives_both_counts(tmp_path):
    folder = _own(tmp_path / "own")
    (folder / "train.de").write_text("one\ntwo\n")
    with pytest.raises(UserError, match=r"train.en has 36 and .*train.de has 2 lines"):
        problems.get("parallel_text", source="en", target="de").prepare(tmp_path / "data", folder)
    assert not (tmp_path / "data").exists()


def test_wmt_is_read_from_its_unpacked_files(tmp_path):
    folder = _own(tmp_path / "wmt", ("news-commentary-v13.de-en", "commoncrawl.de-en", "newstest2013"))
    problem = problems.get("translate_ende_wmt32k_rev", **SMALL).prepare(tmp_path / "data", folder)
    assert {split: len(problem.split(split)) for split in problem.available} == {"train": 72, "dev": 36}
    assert _first(problem, "dev") == PAIRS[0][::-1]


def test_wmt_is_read_from_the_catalogue_of_tensorflow_datasets(tmp_path, monkeypatch):
    import tensorflow_datasets as tfds

    builder_class = tfds.core.load.builder_cls("wmt_t2t_translate")
    rows = {"train": PAIRS * 2, "validation": PAIRS[:5], "test": PAIRS[:3]}
    monkeypatch.setattr(
        builder_class,
        "_split_generators",
        lambda self, dl_manager: {
            split: iter((i, {"en": e, "de": d}) for i, (e, d) in enumerate(pairs)) for split, pairs in rows.items()
        },
    )
    monkeypatch.setattr("problems.builders.require", lambda official: None)
    problem = problems.get("translate_ende_wmt32k", **SMALL).prepare(tmp_path)
    assert {split: len(problem.split(split)) for split in problem.available} == {"train": 72, "dev": 5, "test": 3}
    assert _first(problem, "test") in PAIRS[:3]


def test_wmt_that_cannot_be_downloaded_says_what_to_do(tmp_path, monkeypatch):
    def refuse(official):
        raise UserError("cannot download it; name its folder with --manual_dir")

    monkeypatch.setattr("problems.builders.require", refuse)
    with pytest.raises(UserError, match="--manual_dir"):
        problems.get("translate_ende_wmt32k").prepare(tmp_path)
    assert not any(tmp_path.glob("wmt*/*/*"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"train.en": b""}, "train.en is empty"),
        ({"train.de": b"\n \n"}, "train.de has blank lines alone"),
        ({"val.de": None}, "has no val.de"),
        ({"test_2016_flickr.de": b"eins\n"}, "has no test_2016_flickr.en"),
    ],
)
def test_half_of_the_files_is_refused_and_leaves_nothing(tmp_path, change, message):
    files = {f"{name}.{language}": b"one\n" for name in ("train", "val") for language in ("en", "de")} | change
    (tmp_path / "by_hand").mkdir()
    for name, content in files.items():
        if content is not None:
            (tmp_path / "by_hand" / name).write_bytes(content)
    with pytest.raises(UserError, match=message):
        problems.get("translate_multi30k_ende").prepare(tmp_path / "data", tmp_path / "by_hand")
    assert not (tmp_path / "data").exists()


def test_run_refuses_other_training_files_and_takes_test_files_that_come_later(tmp_path):
    folder = _own(tmp_path / "by_hand", ("train", "val"))
    problem = problems.get("translate_multi30k_ende", **SMALL).prepare(tmp_path / "data", folder)
    problem.save(tmp_path)
    _own(folder, ("test_2016_flickr",))
    later = problems.load(tmp_path).prepare(tmp_path / "data", folder)
    assert later.available == ("train", "dev", "test") and later.fingerprint == problem.fingerprint
    _own(folder, ("train",), PAIRS[::-1])
    with pytest.raises(UserError, match="of the run"):
        problems.load(tmp_path).prepare(tmp_path / "data", folder)
    # Where the folder is gone the run goes on with its own data.
    gone = problems.load(tmp_path).prepare(tmp_path / "data", tmp_path / "nowhere")
    assert gone.fingerprint == problem.fingerprint


def test_one_file_is_no_pair():
    with pytest.raises(UsageError, match="source and target are both 'en'"):
        problems.get("parallel_text", source="en", target="en")


def test_scores_are_sacrebleus_on_the_texts_as_they_are(tmp_path):
    right = ["Ein Hund rennt.", "", "Zwei Maenner spielen Schach im Park."]
    answers = ["Ein Hund rennt.", "", "Zwei Maenner spielen im Park."]
    scores = problems.get("parallel_text").text_scores(answers, right)
    assert scores["bleu"] == sacrebleu.corpus_bleu(answers, [right]).score
    assert scores["chrf"] == sacrebleu.corpus_chrf(answers, [right]).score
    assert "tok:13a" in scores["bleu_signature"] and "nc:6" in scores["chrf_signature"]
