"""Every problem from its data to an export: prepared, trained 20 steps, evaluated, decoded, exported."""

import json
import re

import pytest
import tensorflow as tf

import problems
import trainer
from tests.problems import agreement_samples, lambada_samples, scan_samples
from ut_keras import registry

SMALL = "hidden_size=16,filter_size=32,num_heads=2,num_rec_steps=2,train_steps=20,eval_every=20"
LINES = {"en": "a b c", "de": "x y z"}


def _texts(folder, *names):
    """Writes files of three-word lines, each word of a line another letter."""
    folder.mkdir()
    for name in names:
        letters = LINES.get(name.split(".")[-1], "a b c").split()
        rows = [" ".join(letters[(i + j) % 3] for j in range(3)) for i in range(24)]
        ends = ["\tgood label" if i % 2 else "\tbad" for i in range(24)] if name.endswith(".tsv") else [""] * 24
        (folder / name).write_text("".join(f"{row}{end}\n" for row, end in zip(rows, ends, strict=True)))
    return folder


def _pairs(*names):
    return lambda folder, name: _texts(folder, *(f"{one}.{language}" for one in names for language in LINES))


def _scan(folder, name):
    folder.mkdir()
    scan_samples.write_zip(folder / "SCAN-master.zip", scan_samples.files("some_split", name.removeprefix("scan_")))
    return folder


def _agreement(folder, name):
    folder.mkdir()
    agreement_samples.write_tsv(folder)
    return folder


# The beginning of a name to (line to decode, problem arguments, function (folder, name) that writes the data by hand).
JOURNEYS = {
    "algorithmic_addition": ("11+01", "train_size=99,dev_size=9,test_size=9,long_size=2", None),
    "algorithmic_multiplication": ("11*01", "train_size=99,dev_size=9,test_size=9,long_size=2", None),
    "algorithmic_(shift|sort|reverse_nlplike|identity_vocab95)": (
        "3 1 4",
        "train_size=99,dev_size=9,test_size=9,long_size=2",
        None,
    ),
    "algorithmic_|tiny_algo": ("0 1 1", "train_size=99,dev_size=9,test_size=9,long_size=2", None),
    "babi_qa_sentence_task1_1k": ("Mary went to the kitchen. Where is Mary?", "", None),
    "lambada": (
        "anna had lost the lamp . she asked where the",
        "vocabulary_size=28",
        lambda folder, name: lambada_samples.write_archive(folder),
    ),
    "learning_to_execute_(program|control)": (
        "print((3+4))",
        "train_size=200,dev_size=16,test_size=16",
        None,
    ),
    "learning_to_execute_addition": ("print(12+34)", "train_size=200,dev_size=16,test_size=16", None),
    "learning_to_execute": ("314", "train_size=200,dev_size=16,test_size=16", None),
    "parallel_text": ("a b c", "source=en,target=de,vocabulary_size=300", _pairs("train", "dev")),
    "scan": ("walk twice and jump", "", _scan),
    "sva": ("the keys of the cabinet", "train_percent=40,dev_percent=10", _agreement),
    "text_class": ("a b c", "vocabulary_size=300", lambda folder, name: _texts(folder, "train.tsv", "dev.tsv")),
    "text_lm": ("a b", "vocabulary=words", lambda folder, name: _texts(folder, "train.txt", "dev.txt")),
    "translate_ende_wmt32k": (
        "a b c",
        "vocabulary_size=300",
        _pairs("news-commentary-v13.de-en", "newstest2013", "newstest2014"),
    ),
    "translate_multi30k_ende": ("a b c", "vocabulary_size=300", _pairs("train", "val", "test_2016_flickr")),
}


# As they are on import: other tests register problems of a user's own.
NAMES = [name for name in registry.problems.names() if not name.startswith("babi")] + ["babi_qa_sentence_task1_1k"]


def test_every_problem_has_its_journey():
    assert [name for name in NAMES if not _journey(name)] == []


@pytest.mark.slow  # a training, a decoding and an export of each problem
@pytest.mark.parametrize("name", NAMES)
def test_problem_goes_from_data_to_export(tmp_path, capsys, name):
    line, arguments, write = _journey(name)
    run, data = f"--output_dir={tmp_path / 'run'}", f"--data_dir={tmp_path / 'data'}"
    where = [f"--manual_dir={write(tmp_path / 'manual', name)}"] if write else []
    given = [f"--problem_args={arguments}"] * bool(arguments)
    assert trainer.main([f"--problem={name}", run, f"--hparams={SMALL}", *given, data, *where]) == 0

    # The run directory is enough for all that follows; own files are found where they were.
    problem = problems.load(tmp_path / "run")
    split = problem.prepare(tmp_path / "data", tmp_path / "manual" if write else None).final_split
    assert trainer.main(["evaluate", run, data, f"--split={split}", "--limit=8"]) == 0
    scores = json.loads((tmp_path / "run" / "eval.json").read_text())
    assert scores[f"{split}/count"] == min(8, len(problem.split(split)))
    accuracy = f"{split}/accuracy" if problem.target == "class" else f"{split}/teacher_forced/accuracy"
    assert 0.0 <= scores[accuracy] <= 1.0
    sequence = problem.target == "sequence"
    reported = [metric for metric in problem.eval_metrics if f"{split}/teacher_forced/{metric}" in scores]
    assert reported == list(problem.eval_metrics if sequence else ())
    decodes = sequence and problem.features.input_vocabulary_size
    assert (f"{split}/free_running/sequence_accuracy" in scores) == bool(decodes)
    assert ("translate" in name or name == "parallel_text") == (f"{split}/free_running/bleu" in scores)

    (tmp_path / "in").write_text(f"{line}\n\n{line}\n")
    files = [f"--decode_from_file={tmp_path / 'in'}", f"--decode_to_file={tmp_path / 'out'}"]
    assert trainer.main(["decode", run, *files]) == 0
    answers = (tmp_path / "out").read_text().split("\n")
    assert (len(answers), answers[1], answers[0]) == (4, "", answers[2])
    capsys.readouterr()
    assert trainer.main(["export", run]) == 0
    model = tf.saved_model.load(capsys.readouterr().out.strip())
    outputs = model.signatures["serving_default"](inputs=tf.constant([line, "", line]))["outputs"].numpy()
    assert [text.decode() for text in outputs] == answers[:3]


def _journey(name):
    return next((journey for begin, journey in JOURNEYS.items() if re.match(begin, name)), None)
