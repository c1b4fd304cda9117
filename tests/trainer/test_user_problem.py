"""The README's problem of a user's own: it is complete, short, and runs from the command line and from Python."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
MARKER = "# my_problems/__init__.py\n"
SIZES = "train_size=300,longest=3"
FROM_PYTHON = """
import my_problems, problems, trainer

problem = problems.get("my_reverse_words", train_size=300, longest=3).prepare("data")
assert problem.available == ("train", "dev", "test")
source, target = (problem.split("test").example(0)[key] for key in ("inputs", "targets"))
assert problem.decode_input(source).split() == problem.decode_target(target).split()[::-1] != []
flags = ["--problem=my_reverse_words", "--output_dir=run", "--data_dir=data", "--train_steps=20"]
assert trainer.main([*flags, "--usr_dir=my_problems", "--problem_args=train_size=300,longest=3"]) == 0
assert trainer.main(["evaluate", "--output_dir=run", "--split=dev"]) == 0
answers = trainer.load("run").generate(["one two", "", "nine"])
assert len(answers) == 3 and answers[1] == "" and set(" ".join(answers).split()) <= {*my_problems.WORDS, "<unk>"}
"""


def block(readme):
    """Returns the README's block of code that begins with the marker."""
    blocks = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    return next(code for code in blocks if code.startswith(MARKER))


@pytest.fixture
def folder(tmp_path):
    """A folder with the package, as a user would have it."""
    (tmp_path / "my_problems").mkdir()
    code = block((ROOT / "README.md").read_text(encoding="utf-8"))
    (tmp_path / "my_problems" / "__init__.py").write_text(code, encoding="utf-8")
    return tmp_path


def run(folder, *arguments, text=None):
    """Returns the standard output of a Python process in the folder."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_example_is_about_25_lines():
    code = block((ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(code.splitlines()) <= 30


@pytest.mark.slow
def test_example_runs_from_the_command_line(folder):
    training = ["--usr_dir=my_problems", "--problem=my_reverse_words", f"--problem_args={SIZES}", "--train_steps=20"]
    run(folder, "-m", "trainer", *training, "--output_dir=run", "--data_dir=data")
    assert "my_reverse_words" in run(folder, "-m", "trainer", "ls", "problems", "--usr_dir=my_problems")
    scores = json.loads((folder / "run" / "eval.json").read_text())
    assert scores["test/count"] == 500
    assert 0 <= scores["test/free_running/sequence_accuracy"] <= 1
    # The run directory alone is enough from here on.
    answers = run(folder, "-m", "trainer", "decode", "--output_dir=run", text="one two three\n\nzero\n")
    assert answers.count("\n") == 3
    assert answers.split("\n")[1] == ""
    assert (folder / run(folder, "-m", "trainer", "export", "--output_dir=run").strip()).is_dir()


@pytest.mark.slow
def test_example_runs_from_python(folder):
    run(folder, "-c", FROM_PYTHON)
