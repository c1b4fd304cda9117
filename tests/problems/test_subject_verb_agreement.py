"""The agreement problems: splits, vocabulary, groups, the wrong form, and what happens without Linzen's file."""

import shutil

import numpy as np
import pytest

import problems
from problems import builders
from problems.agreement_words import TrainedWords
from problems.vocabulary import OpenWordVocabulary
from tests.problems import agreement_samples
from ut_keras.errors import UsageError, UserError

SHARES = {"train_percent": 40, "dev_percent": 10}
SUBSET = """n_attractors\tverb_index\tcorrect\twrong\tsentence
1\t5\tare\tis\tthe keys of the cabinet are here . <eos>
0\t2\tIs\tAre\tThe mansion is old . <eos>
2\t2\tcarry\tcarries\tthe signs carry weight . <eos>
0\t2\tlie\tlie\tthe keys lie there . <eos>
"""


@pytest.fixture(scope="module")
def manual(tmp_path_factory):
    folder = agreement_samples.write_tsv(tmp_path_factory.mktemp("manual"))
    (folder / "linzen_subset.tsv").write_text(SUBSET)
    return folder


@pytest.fixture(scope="module")
def number(data_dir, manual):
    return problems.get("sva_number_prediction", **SHARES).prepare(data_dir / "sva", manual)


@pytest.fixture(scope="module")
def model(data_dir, manual):
    return problems.get("sva_language_modeling", **SHARES).prepare(data_dir / "sva", manual)


@pytest.fixture
def offline(monkeypatch):
    def refuse(official):
        raise UserError(f"cannot download {official.url} (no network)")

    monkeypatch.setattr(builders, "require", refuse)


def _texts(problem, name):
    """[(words before the verb, answer)] of a split, from its ids."""
    split = problem.split(name)
    examples = [split.example(index) for index in range(len(split))]
    if split.inputs is None:
        return [tuple(problem.decode_target(e["targets"]).rsplit(" ", 1)) for e in examples]
    return [(problem.decode_input(e["inputs"]), problem.decode_target(e["targets"])) for e in examples]


def test_both_problems_have_the_same_sentences(number, model):
    sizes = {"train": 216, "dev": 54, "test": 137, "linzen_subset": 4, "blimp": 2000}
    assert {name: len(model.split(name)) for name in model.available} == sizes
    assert {name: len(number.split(name)) for name in number.available} == {**sizes, "linzen_subset": 3}
    for name in ("train", "dev", "test"):
        verbs = {"VBZ": ("is", "has", "seems", "carries", "VBZ"), "VBP": ("are", "have", "seem", "carry", "VBP")}
        for (context, answer), (same, verb) in zip(_texts(number, name), _texts(model, name), strict=True):
            assert context == same
            assert verb in verbs[answer]


def test_test_split_keeps_sentences_whose_intervening_nouns_are_all_attractors(number):
    between = {"keys": False, "cabinets": False, "ratios": False, "signs": False}
    for context, answer in _texts(number, "test"):
        singular = [between.get(word, True) for word in context.split()[4::3]]
        assert all(noun != (answer == "VBZ") for noun in singular)
    assert number.split("test").counts == {"left out, for a noun between subject and verb that is no attractor": 133}
    # Training sees the others too.
    assert len(number.split("train")) == 540 * 40 // 100


def test_inputs_end_before_the_verb_and_a_class_is_its_number(number):
    features = number.features
    assert (features.target, features.target_vocabulary_size, features.same_vocabulary) == ("class", 4, False)
    ids = number.encode_input("the keys of the mansion")
    assert ids[-2:].tolist() == [2, 1]  # an unknown word, and the end
    assert number.decode_input(ids) == "the keys of the <unk>"
    assert [number.encode_target(text).tolist() for text in ("VBZ", "VBP")] == [[2], [3]]
    assert "wrong" not in number.split("test").extras
    rows = number.text_encoder()(["the keys of the mansion", ""]).numpy()
    np.testing.assert_array_equal(rows, [ids, np.zeros_like(ids)])
    assert number.text_decoder()(np.array([[2], [3], [0]])).numpy().tolist() == [b"VBZ", b"VBP", b""]


def test_language_model_has_no_inputs_and_ends_with_the_verb(model):
    features = model.features
    assert (features.target, features.input_vocabulary_size) == ("sequence", None)
    assert (model.scored, model.selection) == ("last", "loss")
    split = model.split("train")
    assert split.inputs is None
    assert all(split.example(index)["targets"][-1] == 1 for index in range(len(split)))
    assert model.max_output_length(1) == model.max_output_length(9) == 50
    # A prompt has no end token.
    assert model.encode_input("the keys")[-1] != 1


def test_wrong_form_is_the_other_form_in_the_vocabulary(model):
    pairs = {"is": "are", "has": "have", "seems": "seem", "carries": "carry", "VBZ": "VBP"}
    pairs |= {plural: singular for singular, plural in pairs.items()}
    words = model.vocabularies["targets"]
    for name in ("train", "dev", "test"):
        wrong = model.split(name).extras["wrong"]
        assert [words.decode([number]) for number in wrong] == [pairs[verb] for _, verb in _texts(model, name)]


def test_example_without_a_pair_of_forms_is_counted_and_kept(model):
    subset = model.split("linzen_subset")
    words = model.vocabularies["targets"]
    assert [words.decode([number]) for number in subset.extras["wrong"]] == ["is", "are", "carries", ""]
    assert subset.extras["wrong"][3] == 0
    assert subset.counts == {"without a pair of verb forms in the vocabulary": 1}
    assert model.split("blimp").counts["without a pair of verb forms in the vocabulary"] > 1000


def test_groups_are_the_numbers_of_attractors_and_the_paradigms(number, model):
    groups = {name: members.tolist() for name, members in model.groups(model.split("linzen_subset")).items()}
    assert groups == {
        "attractors_0": [False, True, False, True],
        "attractors_1": [True, False, False, False],
        "attractors_2": [False, False, True, False],
    }
    sizes = {name: int(members.sum()) for name, members in number.groups(number.split("blimp")).items()}
    assert sizes == {"distractor_agreement_relational_noun": 1000, "regular_plural_subject_verb_agreement_1": 1000}
    assert sum(members.sum() for members in number.groups(number.split("test")).values()) == 137


def test_more_than_five_attractors_are_a_group_of_their_own(tmp_path):
    head = SUBSET.splitlines()[0]
    (tmp_path / "linzen_subset.tsv").write_text(f"{head}\n7\t1\tare\tis\tkeys are\n5\t1\tare\tis\tkeys are\n")
    agreement_samples.write_tsv(tmp_path)
    problem = problems.get("sva_number_prediction").prepare(tmp_path / "data", tmp_path)
    groups = problem.groups(problem.split("linzen_subset"))
    assert {name: members.tolist() for name, members in groups.items()} == {
        "attractors_5": [False, True],
        "attractors_above_5": [True, False],
    }


def test_vocabulary_is_of_the_training_share_alone(tmp_path):
    table = agreement_samples.rows()
    for index, row in enumerate(table):
        row[0] = f"word{index} {row[0]}"
        row[agreement_samples.HEADER.index("verb_index")] += 1
    agreement_samples.write_tsv(tmp_path, table)
    every = problems.get("sva_number_prediction", **SHARES, min_count=1).prepare(tmp_path / "data", tmp_path)
    assert sum(entry.startswith("word") for entry in every.vocabularies["inputs"].entries) == 216
    assert all(context.startswith("<unk> the") for context, _ in _texts(every, "test"))
    # A word that occurs once is unknown by default: so the unknown word is trained.
    twice = problems.get("sva_number_prediction", **SHARES).prepare(tmp_path / "data")
    assert all(context.startswith("<unk> the") for context, _ in _texts(twice, "train"))


def test_alternative_needs_both_forms():
    words = TrainedWords(OpenWordVocabulary(["walks", "walk", "runs"]), {"VBZ": {"walks", "runs"}, "VBP": {"walk"}})
    assert words.alternative("walks", "VBZ", "") == 4
    assert words.alternative("walk", "VBP", "") == 3
    assert words.alternative("runs", "VBZ", "") == 0
    assert words.alternative("runs", "VBZ", "run") == 0
    assert words.alternative("run", "VBP", "runs") == 0
    assert words.alternative("walk", "", "") == 0


def test_without_the_file_training_is_refused_and_blimp_is_there(tmp_path, offline):
    problem = problems.get("sva_language_modeling").prepare(tmp_path / "data")
    assert problem.available == ("blimp",)
    with pytest.raises(UserError, match=r"no split 'train': cannot download http://tallinzen.net.*no network"):
        problem.split("train")
    with pytest.raises(UserError, match=r"'linzen_subset': its file linzen_subset.tsv .*--manual_dir"):
        problem.split("linzen_subset")
    (tmp_path / "empty").mkdir()
    problem.prepare(tmp_path / "data", tmp_path / "empty")
    with pytest.raises(UserError, match=r"has no agr_50_mostcommon_10K.tsv or .gz; put agr.* from http.*--manual_dir"):
        problem.split("test")
    with pytest.raises(UserError, match="--manual_dir=.*nowhere does not exist"):
        problem.prepare(tmp_path / "data", tmp_path / "nowhere")


def test_run_evaluates_with_its_own_vocabulary_where_the_file_is_not(model, manual, tmp_path, offline):
    model.save(tmp_path)
    other = tmp_path / "manual"
    other.mkdir()
    shutil.copy(manual / "linzen_subset.tsv", other)
    loaded = problems.load(tmp_path).prepare(tmp_path / "data", other)
    assert loaded.available == ("linzen_subset", "blimp")
    assert loaded.vocabularies["targets"].entries == model.vocabularies["targets"].entries
    for name in loaded.available:
        assert loaded.split(name).fingerprint == model.split(name).fingerprint
    # A problem that was not trained has no words to know.
    assert problems.get("sva_language_modeling").prepare(tmp_path / "data").vocabularies["targets"].size == 3


def test_run_may_get_more_evaluation_data_but_no_other_training_data(model, manual, tmp_path):
    folder = tmp_path / "manual"
    folder.mkdir()
    shutil.copy(manual / "agr_50_mostcommon_10K.tsv.gz", folder)
    first = problems.get("sva_language_modeling", **SHARES).prepare(tmp_path / "data", folder)
    assert first.available == ("train", "dev", "test", "blimp")
    first.save(tmp_path)
    shutil.copy(manual / "linzen_subset.tsv", folder)
    more = problems.load(tmp_path).prepare(tmp_path / "data", folder)
    assert more.available == more.splits
    assert more.split("linzen_subset").fingerprint == model.split("linzen_subset").fingerprint
    # Both stay without --manual_dir.
    assert problems.load(tmp_path).prepare(tmp_path / "data").available == more.splits
    agreement_samples.write_tsv(folder, agreement_samples.rows()[:100])
    with pytest.raises(UserError, match="is another than the one of the run"):
        problems.load(tmp_path).prepare(tmp_path / "data2", folder)


def test_broken_file_is_an_error_and_not_a_missing_one(tmp_path, manual):
    data = (manual / "agr_50_mostcommon_10K.tsv.gz").read_bytes()
    (tmp_path / "agr_50_mostcommon_10K.tsv.gz").write_bytes(data[: len(data) // 2])
    with pytest.raises(UserError, match="^sva_number_prediction: .*broken"):
        problems.get("sva_number_prediction").prepare(tmp_path / "data", tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"train_percent": 0}, "train_percent=0 is not between 1 and 98"),
        ({"train_percent": 60, "dev_percent": 40}, "leave nothing for the test split"),
    ],
)
def test_shares_that_leave_nothing_are_refused(arguments, message):
    with pytest.raises(UsageError, match=message):
        problems.get("sva_number_prediction", **arguments)
