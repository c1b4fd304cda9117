"""The user's own files: text_lm, text_class, and every fault that such files have."""

import gzip

import pytest

import problems
from ut_keras.errors import UsageError, UserError

LM = {"train.txt": "the cat sat\n\n  \nthe dog sat on the mat\n" * 3, "dev.txt": "a cat\n", "test.txt": "the mat"}
TSV = {"train.tsv": "the cat sat\tvery good\n\nthe dog, <unk>\tbad\n" * 3, "val.tsv": "a\u2028cat\tvery good\n"}
PAIRS = {
    "train.en": "the cat\nthe dog\n",
    "train.de": "die Katze\nder Hund\n",
    "dev.en": "a cat\n",
    "dev.de": "Katze\n",
}


def write(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        data = content if isinstance(content, bytes) else content.encode()
        (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return folder


def prepare(tmp_path, name="text_lm", files=LM, **arguments):
    files = write(tmp_path / "files", files)
    return problems.get(name, **{"vocabulary_size": 290, **arguments}).prepare(tmp_path / "data", files)


def texts(problem, split):
    packed = problem.split(split)
    return [problem.decode_target(packed.targets[index]) for index in range(len(packed))]


def test_lines_become_examples_and_blank_ones_are_counted(tmp_path, capfd):
    problem = prepare(tmp_path)
    assert problem.available == ("train", "dev", "test")
    assert texts(problem, "train") == ["the cat sat", "the dog sat on the mat"] * 3
    assert texts(problem, "test") == ["the mat"]
    assert problem.split("train").inputs is None
    assert problem.split("train").targets[0][-1] == 1
    assert "text_lm: train: blank lines were left out: 6\n" in capfd.readouterr().err


def test_prompt_is_the_beginning_of_a_line_without_its_end(tmp_path):
    problem = prepare(tmp_path, vocabulary="bytes")
    assert problem.encode_input("the").tolist() == [n + 2 for n in b"the"]
    assert problem.decode_input(problem.encode_input("the")) == "the"
    assert problem.text_encoder()(["the", ""]).numpy().tolist() == [[n + 2 for n in b"the"], [0, 0, 0]]


def test_words_are_the_most_frequent_ones_of_train(tmp_path):
    problem = prepare(tmp_path, vocabulary="words", vocabulary_size=6)
    assert problem.vocabularies["targets"].entries == ("the", "sat", "cat")
    assert texts(problem, "dev") == ["<unk> cat"]
    assert problem.features.target_vocabulary_size == 6


def test_vocabulary_does_not_read_dev_and_test(tmp_path):
    other = {**LM, "dev.txt": "zzzz zzzz\n" * 50, "test.txt": "qqqq\n" * 50}
    vocabularies = [prepare(tmp_path / str(n), files=files).vocabularies for n, files in enumerate((LM, other))]
    assert vocabularies[0] == vocabularies[1]


@pytest.mark.parametrize("name", ["dev.txt", "val.txt", "valid.txt.gz"])
def test_development_file_has_three_names_and_may_be_compressed(tmp_path, name):
    files = {"train.txt.gz": "one two\r\nthree\r\n", name: "one\n"}
    problem = prepare(tmp_path, files=files, vocabulary="bytes")
    assert texts(problem, "train") == ["one two", "three"]
    assert problem.available == ("train", "dev")
    assert problem.final_split == "dev"
    with pytest.raises(UserError, match="no split 'test': put test.txt beside the other files .* --manual_dir"):
        problem.split("test")


def test_labels_are_whole_texts_and_come_back(tmp_path, capfd):
    problem = prepare(tmp_path, "text_class", TSV)
    assert problem.vocabularies["targets"].entries == ("bad", "very good")
    assert texts(problem, "train") == ["very good", "bad"] * 3
    assert problem.decode_input(problem.split("train").inputs[1]) == "the dog, <unk>"
    assert problem.decode_input(problem.split("dev").inputs[0]) == "a\u2028cat"
    assert problem.encode_target("very good").tolist() == [3]
    assert problem.text_decoder()([3, 2]).numpy().tolist() == [b"very good", b"bad"]
    assert problem.features.target == "class"
    said = capfd.readouterr().err
    assert "train: examples with a blank input were left out: 3\n" in said
    assert "text_class: 2 classes: 'bad', 'very good'\n" in said


FAULTS = {
    "no tab": ("text_class", {"train.tsv": "a\tx\nb\n"}, r"train\.tsv: line 2 has 0 tabs; it needs one"),
    "two tabs": ("text_class", {"train.tsv": "\na\tx\nb\ty\tz\n"}, r"train\.tsv: line 3 has 2 tabs; it needs one"),
    "no text": ("text_class", {"train.tsv": "a\tx\n \ty\n"}, r"train\.tsv: line 2 has no text before the tab"),
    "no label": ("text_class", {"train.tsv": "a\tx\nb\t\n"}, r"train\.tsv: line 2 has no label after the tab"),
    "new label": ("text_class", {"val.tsv": "\na\tvery  good\n"}, r"val\.tsv: line 2: the label 'very  good' does not"),
    "one label": ("text_class", {"train.tsv": "a\tx\nb\tx\n"}, "all examples of train have the label 'x'"),
    "no train": ("text_lm", {"train.txt": None}, r"has no train\.txt; it needs train\.txt, dev\.txt \(and test\.txt"),
    "no dev": ("text_lm", {"dev.txt": None}, r"has no dev\.txt \(or val, valid\)"),
    "empty": ("text_lm", {"test.txt": ""}, r"test\.txt is empty"),
    "mark alone": ("text_lm", {"train.txt": "\ufeff"}, r"train\.txt is empty"),
    "blank": ("text_lm", {"train.txt": "\n \n\t\n"}, r"train\.txt has blank lines alone"),
    "zero byte": ("text_lm", {"dev.txt": "fine\nb\0ad\n"}, r"dev\.txt: line 2 holds a zero byte; this is not a text"),
    "UTF-16": ("text_lm", {"dev.txt": "text".encode("utf-16")}, r"dev\.txt: line 1: byte 0xff at offset 0 is not"),
    "Latin-1": ("text_lm", {"test.txt": b"ok\ncaf\xe9\n"}, r"test\.txt: line 2: byte 0xe9 at offset 6 is not UTF-8"),
    "two forms": ("text_lm", {"train.txt.gz": "other\n"}, r"has train\.txt and train\.txt\.gz; keep one of them"),
    "other count": ("parallel_text", {"train.de": "die Katze\n"}, r"train\.en has 2 and .*train\.de has 1 lines"),
    "half a test": ("parallel_text", {"test.en": "a cat\n"}, r"has no test\.de; it needs train\.en, train\.de, dev"),
    "other names": (
        "parallel_text",
        {"dev.de": None, "val.de.gz": "\n", "valid.de": "a"},
        r"has val\.de\.gz and valid",
    ),
    "no target": ("parallel_text", {"train.de": None}, r"has no train\.de; it needs"),
    "names of two kinds": (
        "parallel_text",
        {"dev.de": None, "val.de": "die Katze\n"},
        r"has dev\.en and val\.de; keep one of them",
    ),
    "two names": ("text_lm", {"valid.txt": "other\n"}, r"has dev\.txt and valid\.txt; keep one of them"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_one_clear_line_and_leaves_nothing(tmp_path, fault):
    name, change, message = FAULTS[fault]
    files = {**{"text_lm": LM, "text_class": TSV, "parallel_text": PAIRS}[name], **change}
    arguments = {"source": "en", "target": "de"} if name == "parallel_text" else {}
    files = {key: content for key, content in files.items() if content is not None}
    with pytest.raises(UserError, match=message) as error:
        prepare(tmp_path, name, files, **arguments)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "data").exists()


def test_false_gzip_file_is_named(tmp_path):
    files = write(tmp_path / "files", {"dev.txt": "a\n"})
    (files / "train.txt.gz").write_text("not compressed\n")
    with pytest.raises(UserError, match=r"train\.txt\.gz is not a gzip file"):
        problems.get("text_lm").prepare(tmp_path / "data", files)
    assert not (tmp_path / "data").exists()


def test_folder_has_to_be_named(tmp_path):
    with pytest.raises(UserError, match=r"text_class reads your own files: name their folder with --manual_dir: train"):
        problems.get("text_class").prepare(tmp_path)
    with pytest.raises(UserError, match="text_lm: --manual_dir=.*nowhere is not a folder"):
        problems.get("text_lm").prepare(tmp_path, tmp_path / "nowhere")


def test_arguments_are_checked():
    with pytest.raises(UsageError, match="text_lm: vocabulary='word' is not one of subwords, words, bytes"):
        problems.get("text_lm", vocabulary="word")


def test_too_small_vocabulary_is_an_error(tmp_path):
    with pytest.raises(UserError, match="text_lm: vocabulary_size=3 is too small: words take 4 or more"):
        prepare(tmp_path, vocabulary="words", vocabulary_size=3)
    with pytest.raises(UserError, match="text_lm: vocabulary_size=200 is too small"):
        prepare(tmp_path, vocabulary_size=200)


@pytest.mark.parametrize("name", ["text_lm", "text_class", "parallel_text"])
def test_words_of_a_file_are_the_vocabulary(tmp_path, name):
    pairs = {"train.source": "the cat\n", "train.target": "sat the\n", "dev.source": "a\n", "dev.target": "b\n"}
    folder = write(tmp_path / "files", {"text_lm": LM, "text_class": TSV, "parallel_text": pairs}[name])
    words = tmp_path / "words.txt"
    words.write_text("cat\nthe\n")

    def prepared():
        return problems.get(name, vocabulary_file=str(words)).prepare(tmp_path / "data", folder)

    def entries(problem):
        return problem.vocabularies["targets" if name == "text_lm" else "inputs"].entries

    first = prepared()
    assert entries(first) == ("cat", "the")
    first.save(tmp_path)
    words.write_text("the\ncat\nsat\n")
    assert entries(prepared()) == ("the", "cat", "sat")
    words.unlink()
    # A run has its vocabulary with it, and takes up no other one.
    loaded = problems.load(tmp_path).prepare(tmp_path / "data", folder)
    assert entries(loaded) == ("cat", "the")
    assert loaded.fingerprint == first.fingerprint


def test_subwords_of_a_file_are_the_vocabulary(tmp_path):
    from problems.subwords import SubwordVocabulary

    model = tmp_path / "own.model"
    model.write_bytes(SubwordVocabulary.train(["the cat sat on the mat"] * 9, 275).model)
    problem = prepare(tmp_path, vocabulary_file=str(model))
    assert problem.vocabularies["targets"] == SubwordVocabulary(model.read_bytes())
    model.write_bytes(b"not a model")
    with pytest.raises(UserError, match=r"own\.model: not a SentencePiece model"):
        prepare(tmp_path, vocabulary_file=str(model))
    with pytest.raises(UserError, match="cannot read .*none.model: No such file"):
        prepare(tmp_path, vocabulary_file=str(tmp_path / "none.model"))


WORD_FAULTS = {
    "cat\nthe\ndog\nthe\n": r"words\.txt: the word 'the' is on line 2 and again on line 4",
    "cat\n\nthe\n": r"words\.txt: line 2 is blank; a vocabulary has one word a line",
    "cat\n \t\n": r"words\.txt: line 2 is blank",
    "cat\t17\n": r"words\.txt: line 1: 'cat\\t17' is more than one word",
    "": r"words\.txt is empty",
}


@pytest.mark.parametrize("content", WORD_FAULTS)
def test_fault_of_a_word_list_names_the_line(tmp_path, content):
    words = tmp_path / "words.txt"
    words.write_text(content)
    with pytest.raises(UserError, match=WORD_FAULTS[content]) as error:
        prepare(tmp_path, vocabulary_file=str(words))
    assert "\n" not in str(error.value)
    assert not (tmp_path / "data").exists()


def test_changed_files_or_settings_never_find_the_old_data(tmp_path):
    first = prepare(tmp_path)
    assert prepare(tmp_path).fingerprint == first.fingerprint
    changes = [
        {"files": {**LM, "train.txt": LM["train.txt"].replace("dog", "cow")}},
        {"files": {**LM, "dev.txt": "another cat\n"}},
        {"files": {**LM, "dev.txt": LM["test.txt"], "test.txt": LM["dev.txt"]}},
        {"vocabulary": "bytes"},
        {"vocabulary": "words"},
        {"vocabulary": "words", "vocabulary_size": 5},
    ]
    prints = [prepare(tmp_path, **change).fingerprint for change in changes]
    assert len({first.fingerprint, *prints}) == len(changes) + 1
    assert prepare(tmp_path).fingerprint == first.fingerprint


def test_changed_pairs_never_find_the_old_data(tmp_path):
    def fingerprint(change=(), **arguments):
        sides = {"source": "en", "target": "de", **arguments}
        return prepare(tmp_path, "parallel_text", {**PAIRS, **dict(change)}, **sides).fingerprint

    prints = [
        fingerprint(),
        fingerprint({"train.de": "die Katze\nder Hund!\n"}),
        fingerprint({"dev.en": "the cat\n"}),
        fingerprint(source="de", target="en"),
        fingerprint(vocabulary_size=288),
    ]
    assert len(set(prints)) == len(prints)
    assert fingerprint() == prints[0]


def test_run_refuses_files_that_were_changed(tmp_path):
    prepare(tmp_path).save(tmp_path)
    write(tmp_path / "files", {"dev.txt": "another line\n"})
    with pytest.raises(UserError, match="the data in .* are not those of the run"):
        problems.load(tmp_path).prepare(tmp_path / "data", tmp_path / "files")


@pytest.mark.parametrize("name", ["text_lm", "parallel_text"])
def test_run_takes_a_test_file_that_is_added_later(tmp_path, name):
    files = write(tmp_path / "files", LM if name == "text_lm" else PAIRS)
    sides = {} if name == "text_lm" else {"source": "en", "target": "de"}
    (files / "test.txt").unlink(missing_ok=True)
    problem = problems.get(name, vocabulary_size=290, **sides).prepare(tmp_path / "data", files)
    problem.save(tmp_path)
    with pytest.raises(UserError, match=f"{name}: there is no split 'test': put test"):
        problem.split("test")
    write(files, {"test.txt": "a dog\n", "test.en": "a dog\n", "test.de": "ein Hund\n"})
    loaded = problems.load(tmp_path).prepare(tmp_path / "data", files)
    assert loaded.fingerprint == problem.fingerprint
    assert texts(loaded, "test") == ["a dog" if name == "text_lm" else "ein Hund"]
