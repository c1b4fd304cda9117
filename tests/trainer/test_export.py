"""An exported run, loaded without any of our packages: by TensorFlow's C++ loader and by plain TensorFlow."""

import functools
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

import trainer
from tests.trainer import c_loader, served_text
from tests.trainer.saved_runs import STORIES, STRINGS, algorithmic_run, babi_run
from trainer import export as exporting
from trainer.export import export
from trainer.output_limit import OutputLimit
from ut_keras.decoding.options import DecodingOptions
from ut_keras.errors import UsageError, UserError

_WITHOUT_US = """
import json, sys
import tensorflow as tf
for directory, lines, text_operations in json.load(sys.stdin):
    if text_operations:
        import tensorflow_text
    found = tf.saved_model.load(directory).signatures["serving_default"](inputs=tf.constant(lines))
    print(json.dumps([[text.decode() for text in found["outputs"].numpy()], found["scores"].numpy().tolist()]))
assert not {"ut_keras", "problems", "trainer"} & set(sys.modules)
"""
BEAM = {"beam_size": 4, "n_best": 2}
LONGEST = 25

needs_compiler = pytest.mark.skipif(bool(c_loader.missing()), reason=str(c_loader.missing()))


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    """{problem: (Loaded, directory, lines, decode's options)} of exports that were moved, their runs deleted.

    Lines are of mixed lengths, some of them empty. Words and symbols are searched greedily, subwords by a beam.
    """
    path = tmp_path_factory.mktemp("served")
    babi_run(path / "runs" / "babi")
    algorithmic_run(path / "runs" / "reverse", recurrence_type="act", act_max_steps=3)
    loaded = {name: trainer.load(path / "runs" / name) for name in ("babi", "reverse")}
    loaded["subwords"] = served_text.untrained(path / "runs" / "subwords")
    lines = {"babi": list(STORIES), "reverse": list(STRINGS), "subwords": list(served_text.HARD_LINES)}
    options = {"babi": {}, "reverse": {}, "subwords": {**BEAM, "max_output_length": LONGEST}}
    for name, run in loaded.items():
        limit = OutputLimit(run.problem, max_output_length=options[name].get("max_output_length"))
        search = DecodingOptions(**BEAM) if name == "subwords" else None
        assert export(run, path / "exports" / name, search, limit) == path / "exports" / name / "1"
    (path / "exports").rename(path / "moved")
    shutil.rmtree(path / "runs")
    return {name: (loaded[name], path / "moved" / name / "1", lines[name], options[name]) for name in loaded}


@pytest.fixture(scope="module")
def expected(exports):
    """function (problem) -> what `decode` makes of its lines."""
    return functools.cache(lambda name: exports[name][0].decode(exports[name][2], **exports[name][3]))


@pytest.fixture(scope="module")
def serves(exports):
    """function (problem) -> the signature of its export, loaded by TensorFlow."""
    return functools.cache(lambda name: tf.saved_model.load(str(exports[name][1])).signatures["serving_default"])


@pytest.fixture(scope="module")
def cpp(exports):
    """function (problem) -> what the C++ loader makes of its lines."""
    return functools.cache(lambda name: c_loader.run(exports[name][1], exports[name][2], name == "subwords"))


def described(directory):
    return json.loads((directory / "export.json").read_text())


def assert_same(outputs, scores, expected):
    assert list(outputs) == [answer.text for answer in expected]
    np.testing.assert_allclose(scores, [answer.score for answer in expected], rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("name", ["babi", "reverse", "subwords"])
def test_cpp_loader_gives_the_answers_of_decode(cpp, expected, name):
    found = cpp(name)
    assert_same(found["outputs"], found["scores"], expected(name))
    assert any(found["outputs"]), "an untrained model that answers nothing tests nothing"
    for row, answer in zip(found["ponder_times"], expected(name), strict=True):
        times = answer.ponder_times["encoder"]
        np.testing.assert_allclose(row, np.pad(times, [0, len(row) - len(times)]))


@pytest.mark.slow
@needs_compiler
def test_cpp_loader_gives_the_n_best_answers_of_decode(cpp, expected):
    found = cpp("subwords")
    assert set(found) == {"outputs", "scores", "ponder_times", "n_best_outputs", "n_best_scores"}
    assert found["n_best_outputs"].shape == found["n_best_scores"].shape == (len(served_text.HARD_LINES), 2)
    for texts, scores, answer in zip(
        found["n_best_outputs"], found["n_best_scores"], expected("subwords"), strict=True
    ):
        count = len(answer.hypotheses)
        assert texts.tolist()[:count] == [hypothesis.text for hypothesis in answer.hypotheses]
        wanted = [hypothesis.score for hypothesis in answer.hypotheses]
        np.testing.assert_allclose(scores[:count], wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@needs_compiler
def test_cpp_loader_answers_a_line_alone_as_in_a_batch(exports, cpp):
    _, directory, lines, _ = exports["reverse"]
    assert c_loader.run(directory, lines[2:3])["outputs"].tolist() == cpp("reverse")["outputs"].tolist()[2:3]
    assert c_loader.run(directory, [])["outputs"].tolist() == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["babi", "reverse", "subwords"])
def test_batches_of_one_line_give_the_answers_of_decode(exports, serves, expected, name):
    found = [serves(name)(inputs=tf.constant([line])) for line in exports[name][2]]
    outputs = [one["outputs"].numpy()[0].decode() for one in found]
    assert_same(outputs, [one["scores"].numpy()[0] for one in found], expected(name))


@pytest.mark.slow
@needs_compiler
def test_subwords_alone_need_the_operations_of_tensorflow_text(exports):
    assert described(exports["reverse"][1])["custom_operations"] == []
    assert described(exports["babi"][1])["custom_operations"] == []
    _, directory, lines, _ = exports["subwords"]
    assert all(name.startswith("Sentencepiece") for name in described(directory)["custom_operations"])
    with pytest.raises(RuntimeError, match="Op type not registered 'Sentencepiece"):
        c_loader.run(directory, lines)


@pytest.mark.slow
def test_a_process_without_our_packages_gives_the_answers_of_decode(exports, expected, tmp_path):
    task = [[str(directory), lines, name == "subwords"] for name, (_, directory, lines, _) in exports.items()]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-I", "-c", _WITHOUT_US],
        input=json.dumps(task), cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    for name, found in zip(exports, done.stdout.splitlines(), strict=True):
        assert_same(*json.loads(found), expected(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["babi", "reverse"])
def test_line_that_decode_refuses_is_answered_with_nothing(exports, serves, expected, name):
    found = serves(name)(inputs=tf.constant(["Goodbye!", exports[name][2][0]]))["outputs"].numpy()
    assert [text.decode() for text in found] == ["", expected(name)[0].text]


@pytest.mark.slow
def test_limit_of_the_export_holds(expected):
    assert max(len(answer.ids) for answer in expected("subwords")) == LONGEST


@pytest.mark.slow
def test_description_says_what_the_graph_does_not(exports):
    loaded, directory, _, _ = exports["subwords"]
    found = described(directory)
    assert found["problem"] == "parallel_text"
    assert found["problem_args"]["vocabulary_size"] == 300
    assert found["data_fingerprint"] == loaded.problem.fingerprint
    assert found["model"] == "universal_transformer"
    assert (found["step"], found["checkpoint"]) == (0, None)
    assert found["limits"] == {"extra_length": None, "max_output_length": LONGEST}
    assert DecodingOptions.from_dict(found["decoding"]) == DecodingOptions(**BEAM)
    assert found["signature"]["inputs"] == {"inputs": {"dtype": "string", "shape": [None]}}
    assert found["signature"]["outputs"]["n_best_outputs"] == {"dtype": "string", "shape": [None, 2]}
    assert found["versions"]["tensorflow"] == tf.__version__
    assert found["versions"]["ut_keras"] == "0.1.0"
    of_run = described(exports["reverse"][1])
    assert (of_run["step"], of_run["checkpoint"]) == (40, "checkpoints/ckpt-40")
    assert of_run["decoding"] == DecodingOptions().to_dict()


@pytest.mark.slow  # a TensorFlow of its own
def test_saved_model_cli_shows_readable_names(exports):
    command = [os.path.join(os.path.dirname(sys.executable), "saved_model_cli"), "show", "--tag_set=serve"]
    where = [f"--dir={exports['subwords'][1]}", "--signature_def=serving_default"]
    done = subprocess.run([*command, *where], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    shown = " ".join(done.stdout.split())
    assert "inputs['inputs'] tensor_info: dtype: DT_STRING shape: (-1) name: serving_default_inputs:0" in shown
    for name, kind, shape in (
        ("outputs", "STRING", "(-1)"),
        ("scores", "FLOAT", "(-1)"),
        ("ponder_times", "FLOAT", "(-1, -1)"),
        ("n_best_outputs", "STRING", "(-1, 2)"),
        ("n_best_scores", "FLOAT", "(-1, 2)"),
    ):
        assert f"outputs['{name}'] tensor_info: dtype: DT_{kind} shape: {shape} name:" in shown


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "small"
    algorithmic_run(path, num_rec_steps=1)
    return trainer.load(path)


@pytest.mark.slow  # makes several exports
def test_every_export_takes_the_next_number(small, tmp_path):
    (tmp_path / "12").mkdir()
    (tmp_path / "notes").mkdir()
    assert export(small, tmp_path) == tmp_path / "13"
    assert (tmp_path / "13" / "saved_model.pb").is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["12", "13", "notes"]


@pytest.mark.slow
def test_export_can_be_read_by_other_users(exports):
    directory = exports["babi"][1]
    parts = [directory, *directory.rglob("*")]
    assert [part for part in parts if part.stat().st_mode & 0o044 != 0o044] == []
    assert [part for part in parts if part.is_dir() and part.stat().st_mode & 0o011 != 0o011] == []


@pytest.mark.slow
def test_nothing_in_an_export_names_the_place_where_it_was_made(exports):
    for _, directory, _, _ in exports.values():
        place = str(directory.parents[2]).encode()
        assert [path for path in directory.rglob("*") if path.is_file() and place in path.read_bytes()] == []


@pytest.mark.slow  # makes exports
@pytest.mark.parametrize(
    ("error", "raised", "message"),
    [
        (OSError(28, "No space left on device"), UserError, "export: No space left on device .*MB are free"),
        (
            tf.errors.ResourceExhaustedError(None, None, "/x/saved_model.pb; No space left on device"),
            UserError,
            "export: No space left on device .*MB are free",
        ),
        (ValueError("a fault of ours"), ValueError, "a fault of ours"),
    ],
)
def test_export_that_fails_leaves_nothing(small, tmp_path, monkeypatch, error, raised, message):
    from ut_keras.serving import TextModel

    def fail(self, directory):
        (tmp_path / "export" / os.path.basename(directory) / "half").write_text("written")
        raise error

    monkeypatch.setattr(TextModel, "save", fail)
    with pytest.raises(raised, match=message):
        export(small, tmp_path / "export")
    assert list((tmp_path / "export").iterdir()) == []


def test_what_a_killed_export_has_left_is_removed_and_what_another_writes_is_not(tmp_path):
    for name in ("left", "held", "young"):
        (tmp_path / f"unfinished-{name}" / "variables").mkdir(parents=True)
    for name in ("left", "held"):
        os.utime(tmp_path / f"unfinished-{name}", (1e9, 1e9))
    held = exporting._hold(tmp_path / "unfinished-held")
    exporting._remove_leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["unfinished-held", "unfinished-young"]
    os.close(held)
    exporting._remove_leftovers(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["unfinished-young"]


def test_file_in_the_place_of_the_folder_is_refused(small, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="--export_dir=.*file is not a directory"):
        export(small, tmp_path / "file")
    with pytest.raises(UserError, match="--export_dir=.*file/in/it cannot be written: Not a directory"):
        export(small, tmp_path / "file" / "in" / "it")


@pytest.mark.slow
def test_options_that_do_not_fit_leave_nothing(exports, tmp_path):
    with pytest.raises(UsageError, match="beam_size=4"):
        export(exports["babi"][0], tmp_path / "export", DecodingOptions(beam_size=4))
    assert not (tmp_path / "export").exists()
