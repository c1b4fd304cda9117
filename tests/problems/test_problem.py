"""What every problem has: names, arguments, saving and loading, splits."""

import json
import subprocess
import sys

import pytest

import problems
from problems.problem import Problem
from tests.problems.conftest import SMALL
from ut_keras import registry
from ut_keras.errors import UsageError, UserError


def test_names_and_summaries_need_neither_tensorflow_nor_numpy():
    code = (
        "import sys, problems; from ut_keras import registry; "
        "[registry.problems.summary(name) for name in registry.problems.names()]; "
        "sys.exit(bool({'tensorflow', 'numpy', 'tensorflow_datasets'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_wrong_name_or_argument_is_refused_without_tensorflow():
    code = (
        "import sys, problems\n"
        "from ut_keras.errors import UsageError\n"
        "for name, args in (('algorithmic_revers_decimal40', {}), ('algorithmic_reverse_decimal40', {'sed': 1}), "
        "('babi_qa_sentence_task1_1k', {'dev_percent': 'x'})):\n"
        "    try:\n"
        "        problems.get(name, **args)\n"
        "        sys.exit(2)\n"
        "    except UsageError:\n"
        "        pass\n"
        "sys.exit('tensorflow' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_name_of_the_design_is_registered():
    names = {f"algorithmic_{t}_{b}40" for t in ("identity", "reverse", "addition") for b in ("binary", "decimal")}
    tasks = ["all_tasks", *(f"task{number}" for number in range(1, 21))]
    names |= {f"babi_qa_sentence_{task}_{size}" for task in tasks for size in ("1k", "10k")}
    assert names <= set(registry.problems.names())
    for name in names:
        problem = problems.get(name)
        assert problem.name == name
        assert problem.description == registry.problems.summary(name) != ""


def test_unknown_name_gives_near_ones():
    with pytest.raises(
        UsageError, match="no problem is called 'algorithmic_revers_decimal40'; near names: algorithmic_r"
    ):
        problems.get("algorithmic_revers_decimal40")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"train_sise": 3},
            "has no argument 'train_sise'; near names: train_size, .*; it has dev_size, long_size, seed, ",
        ),
        ({"train_size": "many"}, "argument train_size='many' is not an integer from 0"),
        ({"train_size": "1.5"}, "argument train_size='1.5' is not an integer from 0"),
        ({"train_size": 2.0}, "argument train_size=2.0 is not an integer"),
        ({"train_size": True}, "argument train_size=True is not an integer"),
        ({"seed": -1}, "argument seed=-1 is not an integer from 0"),
        ({"dev_size": "9" * 30}, "argument dev_size=9+ is not an integer from 0 to 2147483647"),
        ({"train_size": 0}, "argument train_size=0 leaves no examples"),
    ],
)
def test_bad_argument_is_refused(arguments, message):
    with pytest.raises(UsageError, match=f"algorithmic_reverse_decimal40:? .*{message}|{message}"):
        problems.get("algorithmic_reverse_decimal40", **arguments)


class Typed(Problem):
    """One argument of each type."""

    arguments = {"count": 1, "share": 0.5, "fast": False, "file": "a", "other": None}


def test_text_of_an_argument_becomes_its_type():
    given = {"count": "3", "share": "1", "fast": "yes", "file": "b", "other": "c"}
    assert Typed("typed", **given).args == {"count": 3, "share": 1.0, "fast": True, "file": "b", "other": "c"}
    assert Typed("typed").args == Typed.arguments
    assert Typed("typed", share=1).args["share"] == 1.0
    for name, value in {"share": "x", "fast": "maybe", "file": 3, "share ": 1, "other": 2}.items():
        with pytest.raises(UsageError):
            Typed("typed", **{name: value})


def test_problem_is_usable_from_what_was_saved_alone(task1, tmp_path):
    task1.save(tmp_path)
    loaded = problems.load(tmp_path)
    assert loaded.name == task1.name
    assert loaded.args == task1.args
    assert loaded.features == task1.features
    assert loaded.fingerprint == task1.fingerprint
    text = "Mary went to the office. Where is Mary?"
    assert loaded.encode_input(text).tolist() == task1.encode_input(text).tolist()
    assert loaded.text_encoder()([text]).numpy().tolist() == [task1.encode_input(text).tolist()]
    answer = task1.split("test").example(0)["targets"]
    assert loaded.decode_target(answer) == task1.decode_target(answer) != ""
    with pytest.raises(UserError, match="its data are not prepared yet"):
        loaded.split("test")
    with pytest.raises(UsageError, match="has no split 'validation'; it has train, dev, test"):
        loaded.split("validation")


def test_loaded_problem_prepares_the_same_data(small, data_dir, tmp_path):
    problem = small("algorithmic_reverse_decimal40")
    problem.save(tmp_path)
    loaded = problems.load(tmp_path)
    assert loaded.args == {**SMALL, "seed": 0}
    assert loaded.prepare(data_dir).split("train").fingerprint == problem.split("train").fingerprint


@pytest.mark.parametrize("what", ["vocabulary", "data"])
def test_loaded_problem_refuses_other_data(task1, data_dir, tmp_path, what):
    task1.save(tmp_path)
    path = tmp_path / "problem.json"
    values = json.loads(path.read_text())
    if what == "vocabulary":
        values["state"]["vocabularies"]["inputs"]["entries"].append("zebra")
    else:
        values["fingerprint"] = "other"
    path.write_text(json.dumps(values))
    message = "inputs in .* has 21 ids .* with 22 ids" if what == "vocabulary" else "are not those of the run"
    with pytest.raises(UserError, match=message):
        problems.load(tmp_path).prepare(data_dir)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"name": "x"}'])
def test_broken_file_is_no_problem(tmp_path, text):
    (tmp_path / "problem.json").write_text(text)
    with pytest.raises(UserError, match="problem.json is not a problem that was saved"):
        problems.load(tmp_path)


def test_run_directory_without_a_problem_is_an_error(tmp_path):
    with pytest.raises(UserError, match="cannot read .*problem.json"):
        problems.load(tmp_path)


def test_what_is_not_known_before_prepare_is_an_error():
    with pytest.raises(UserError, match="its vocabulary is not known before its data are prepared"):
        _ = problems.get("babi_qa_sentence_task1_1k").features


def test_lengths_belong_to_the_algorithmic_problems():
    with pytest.raises(UsageError, match="babi_qa_sentence_task1_1k has no inputs of a chosen length"):
        problems.get("babi_qa_sentence_task1_1k").exact_length_split(40, 10)


def test_counts_go_to_standard_error_and_nothing_to_standard_output(tmp_path, capfd):
    problem = problems.get("algorithmic_identity_binary40", **SMALL)
    problem.prepare(tmp_path)
    out, err = capfd.readouterr()
    assert out == ""
    assert "examples: train 300, dev 40, test 30, long 20" in err
    assert "\r" not in err
    problem.prepare(tmp_path)
    out, err = capfd.readouterr()
    assert out == ""
    assert "preparing" not in err
