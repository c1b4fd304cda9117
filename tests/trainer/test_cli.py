"""The command line: names, values, exit codes, one line of error, and no TensorFlow before it is needed."""

import os
import pathlib
import resource
import signal
import subprocess
import sys
import time

import pytest

import trainer
from problems import textio
from trainer import cli, flags
from ut_keras.errors import UserError

ROOT = pathlib.Path(__file__).parents[2]
BABI = "--problem=babi_qa_sentence_task1_1k"


@pytest.mark.parametrize(
    ("argv", "code", "parts"),
    [
        (["--problem=algoritmic_reverse_decimal40"], 2, ["'algoritmic_rev", "algorithmic_reverse_decimal40"]),
        (["--problem=algorithmic-reverse-decimal40"], 2, ["algorithmic_reverse_decimal40"]),
        ([BABI, "--trian_steps=3"], 2, ["no flag '--trian_steps'", "--train_steps"]),
        ([BABI, "--train_step=3"], 2, ["no flag '--train_step'", "--train_steps"]),
        ([BABI, "--output-dir", "x"], 2, ["no flag '--output-dir'", "--output_dir"]),
        ([BABI, "--train_steps=many"], 2, ["--train_steps", "'many' is not a positive integer"]),
        ([BABI, "--train_steps=0"], 2, ["--train_steps", "'0' is not a positive integer"]),
        ([BABI, "--train_steps"], 2, ["--train_steps", "expected one argument"]),
        ([BABI, "--seed=-1"], 2, ["--seed", "'-1' is not an integer of 0 or more"]),
        ([BABI, "--seed=99999999999999999999"], 2, ["--seed", "2^32"]),
        ([BABI, "--output_dir="], 2, ["--output_dir", "leave the flag out"]),
        ([BABI, "--hparams_set="], 2, ["--hparams_set", "leave the flag out"]),
        ([BABI, "--problem_args=name=x"], 2, ["'name'", "part of the problem's name"]),
        ([BABI, "--jit_compile=maybe"], 2, ["--jit_compile", "'maybe' is not true or false"]),
        ([BABI, "--strategy=two"], 2, ["--strategy", "'two'", "mirrored"]),
        ([BABI, "--strategy=multi_worker"], 2, ["--strategy=multi_worker", "TF_CONFIG", "host-a:2222"]),
        ([BABI, "--strategy=tpu", "--steps_per_execution=2"], 2, ["--steps_per_execution", "leave it out"]),
        ([BABI, "--worker_timeout=0"], 2, ["--worker_timeout", "seconds above 0"]),
        ([BABI, "--ema_decay=1"], 2, ["--ema_decay", "below 1"]),
        ([BABI, "--profile=10"], 2, ["--profile", "START,COUNT"]),
        ([BABI, "--on_nan=ignore"], 2, ["--on_nan", "'ignore'", "skip"]),
        ([BABI, "--schedule=train", "--early_stopping=2"], 2, ["--early_stopping", "--schedule=train"]),
        ([BABI, "--schedule=train", "--export_best"], 2, ["--export_best", "--schedule=train"]),
        ([BABI, "--hparams=hiden_size=3"], 2, ["'hiden_size'", "near names: hidden_size"]),
        ([BABI, "--hparams=hidden_size=wide"], 2, ["hidden_size='wide'", "integer"]),
        ([BABI, "--hparams=hidden_size"], 2, ["--hparams", "'hidden_size' is not name=value"]),
        ([BABI, "--hparams=num_hidden_layers=2"], 2, ["'num_hidden_layers'", "does not belong to model"]),
        ([BABI, "--hparams=model=transformer"], 2, ["--model=transformer"]),
        ([BABI, "--hparams_set=universal_transformer_bab"], 2, ["universal_transformer_babi"]),
        ([BABI, "--model=universal_transfomer"], 2, ["'universal_transfomer'", "universal_transformer"]),
        ([BABI, "--model=transformer_encoder"], 2, ["--model=transformer_encoder", "--hparams_set=transformer_babi"]),
        ([BABI, "--model=universal_transformer"], 2, ["one class per", "--model=universal_transformer_encoder"]),
        ([BABI, "--problem_args=size=3"], 2, ["'size'"]),
        ([BABI, "now"], 2, ["no argument 'now'"]),
        (["--train_steps=3"], 2, ["--problem", "ls problems"]),
        ([], 2, ["--problem", "--help"]),
        (["trian", BABI], 2, ["no command is called 'trian'", "train"]),
        (["evaluate"], 2, ["--output_dir"]),
        (["evaluate", "--output_dir=/nowhere/run"], 1, ["/nowhere/run"]),
        (["evaluate", "--output_dir=x", "--lengths=40,long"], 2, ["--lengths", "'long'"]),
        (["decode", "--output_dir=/nowhere/run"], 1, ["/nowhere/run"]),
        (["score", "--output_dir=/nowhere/run"], 2, ["--score_file"]),
        (["score", "--output_dir=/nowhere/run", "--score_file=x"], 1, ["/nowhere/run"]),
        (["decode", "--output_dir=x", "--decode_hparams=beam_siz=4"], 2, ["'beam_siz'", "near names: beam_size"]),
        (["decode", "--output_dir=x", "--decode_hparams=max_input_size=9"], 2, ["--max_input_length"]),
        (["decode", "--output_dir=x", "--beam_size=0"], 2, ["--beam_size", "'0' is not a positive integer"]),
        (["decode", "--output_dir=x", "--alpha=-1"], 2, ["alpha=-1.0", "at least 0"]),
        (["decode", "--output_dir=x", "--alpha=lots"], 2, ["--alpha", "'lots' is not a number"]),
        (["decode", "--output_dir=x", "--beam_size=2", "--n_best=3"], 2, ["n_best=3", "raise beam_size"]),
        (["decode", "--output_dir=x", "--top_k=3"], 2, ["top_k=3", "temperature"]),
        (["decode", "--output_dir=x", "--beam_size=2", "--temperature=1"], 2, ["leave one out"]),
        (["decode", "--output_dir=x", "--interactive", "--decode_from_file=y"], 2, ["--interactive reads standard"]),
        (["decode", "--output_dir=x", "--coupled_stop=most"], 2, ["--coupled_stop", "'most'", "best"]),
        (["evaluate", "--output_dir=x", "--temperature=nan"], 2, ["temperature=nan"]),
        (["evaluate", "--output_dir=x", "--n_best=2"], 2, ["no flag '--n_best'"]),
        (["export", "--output_dir=x", "--beam_size=x"], 2, ["--beam_size", "'x'"]),
        (["explain", "--output_dir=x"], 2, ["explain needs --text"]),
        (["explain", "--output_dir=/nowhere/run", "--text=a"], 1, ["/nowhere/run"]),
        (["export", "--output_dir=/nowhere/run"], 1, ["/nowhere/run"]),
        (["ls", "problem"], 2, ["'problem'", "problems"]),
        (["ls", "hparams", "universal_transformer_tini"], 2, ["universal_transformer_tiny"]),
        ([BABI, "--usr_dir=/nowhere/code"], 1, ["--usr_dir", "__init__.py"]),
    ],
)
def test_a_mistake_is_one_line_that_names_it(argv, code, parts, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert trainer.main(argv) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("trainer: error: ")
    assert err.count("\n") == 1
    assert [part for part in parts if part not in err] == []
    assert list(tmp_path.iterdir()) == []


def test_names_and_flags_are_checked_without_tensorflow():
    mistakes = [
        ["--help"],
        ["decode", "--help"],
        ["ls"],
        ["ls", "hparams", "universal_transformer_tiny"],
        ["--nope"],
        ["--problem=nope"],
        [BABI, "--hparams=nope=1"],
        [BABI, "--model=nope"],
        ["evaluate", "--output_dir=/nowhere"],
        ["decode", "--output_dir=/nowhere", "--beam_size=4", "--n_best=2", "--decode_hparams=alpha=1.0"],
        ["decode", "--output_dir=/nowhere", "--top_p=0"],
        ["export", "--output_dir=/nowhere", "--beam_size=4"],
        ["explain", "--output_dir=/nowhere", "--text=a"],
    ]
    code = (
        "import sys, trainer\n"
        f"print([trainer.main(argv) for argv in {mistakes!r}])\n"
        "heavy = {'tensorflow', 'keras', 'tensorflow_datasets'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == "[0, 0, 0, 0, 2, 2, 2, 2, 1, 1, 2, 1, 1]"


@pytest.mark.parametrize(("argument", "code"), [("--help", 0), ("ls", 0), ("--wrong", 2)])
def test_the_program_answers_within_a_second(argument, code):
    start = _seconds_of_children()
    command = [sys.executable, "-m", "trainer", argument]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert result.returncode == code, result.stderr
    assert _seconds_of_children() - start < 1.0


def _seconds_of_children():
    """Returns the processor time of all processes that have been waited for: the clock also counts a busy machine."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_version(capsys):
    assert trainer.main(["--version"]) == 0
    assert capsys.readouterr().out == "ut_keras 0.1.0\n"


@pytest.mark.parametrize("command", list(flags.COMMANDS))
def test_help_of_every_command(command, capsys):
    assert trainer.main([command, "--help"]) == 0
    out = capsys.readouterr().out
    assert "--usr_dir" in out
    assert "usage: python -m trainer" in out


@pytest.mark.parametrize(
    ("command", "option", "unit"),
    [
        ("train", "max_length", "tokens of one sequence with its end token"),
        ("train", "batch_size", "tokens of source and target with padding, over all devices"),
        ("evaluate", "--lengths", "symbols of the input, without the end token"),
        ("evaluate", "--limit", "examples"),
        ("decode", "--extra_length", "end tokens included"),
        ("decode", "--decode_batch_size", "lines"),
        ("decode", "--max_input_length", "tokens of a line at most, end token included"),
        ("decode", "--max_output_length", "tokens of an answer at most, end token included"),
        ("decode", "--alpha", "log-probability / ((5 + n) / 6)^A; 0 is neutral"),
        ("decode", "--temperature", "softmax(logits / T); 1 is neutral"),
        ("export", "--max_output_length", "end token included"),
        ("evaluate", "--extra_length", "end tokens included"),
    ],
)
def test_help_says_what_a_length_counts(command, option, unit, capsys):
    trainer.main([command, "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert option in text
    assert unit in text


def test_ls_shows_all_kinds_of_names(capsys):
    assert trainer.main(["ls"]) == 0
    lines = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert lines.index("problems:") < lines.index("babi_qa_sentence_task2_1k") < lines.index("models:")
    assert lines.index("babi_qa_sentence_task2_1k") < lines.index("babi_qa_sentence_task10_1k")
    assert lines.index("models:") < lines.index("universal_transformer") < lines.index("hparams:")
    assert "adaptive_universal_transformer_tiny" in lines[lines.index("hparams:") :]


def test_ls_hparams_shows_values_and_their_meaning(capsys):
    assert trainer.main(["ls", "hparams", "transformer_tiny"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "hidden_size=128" in [line.split()[0] for line in lines]
    assert next(line for line in lines if line.startswith("transformer_ffn_type=fc")).endswith("(fc, sepconv)")
    assert not any(line.startswith("act_type") for line in lines), "transformers do not halt"


def test_ls_hparams_shows_search_spaces_and_what_they_vary_in_vain(capsys):
    assert trainer.main(["ls", "hparams"]) == 0
    assert "universal_transformer_base_range" in [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert trainer.main(["ls", "hparams", "transformer_tpu_range"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "# transformer_tpu_range: what to vary around the hparams set transformer_tpu",
        "# no command searches it; ut_keras.models.search_spaces.sample draws from it",
        "learning_rate: 0.3 to 3 (logarithmic)",
        "learning_rate_warmup_steps: 1000, 2000, 4000, 8000, 16000",
        "optimizer_adam_beta1: 0.85 to 0.95",
        "optimizer_adam_beta2: 0.97 to 0.99",
        "weight_decay: 0 to 2",
        "# learning_rate has no effect under learning_rate_schedule=rsqrt_decay",
        "# optimizer_adam_beta1 has no effect under optimizer=adafactor",
        "# optimizer_adam_beta2 has no effect under optimizer=adafactor",
    ]


def test_ls_problems_shows_arguments(capsys):
    assert trainer.main(["ls", "problems", "algorithmic_reverse_decimal40"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "--problem_args=train_size=100000" in lines
    assert "splits: train, dev, test, long" in lines
    assert "default hparams set: universal_transformer_reverse" in lines


def test_user_code_is_imported_before_names_are_looked_up(tiny_dir, capsys):
    assert trainer.main(["ls", "problems", f"--t2t_usr_dir={tiny_dir}"]) == 0
    assert "tiny_copy" in capsys.readouterr().out


def test_a_user_package_of_a_name_that_is_taken_is_refused(tmp_path, capsys):
    (tmp_path / "json").mkdir()
    (tmp_path / "json" / "__init__.py").write_text("")
    assert trainer.main(["ls", f"--usr_dir={tmp_path / 'json'}"]) == 1
    assert "another package is called 'json'" in capsys.readouterr().err


def test_sigterm_removes_what_is_half_written_and_is_one_line_and_code_143(monkeypatch, capsys, tmp_path):
    def write(arguments):
        with textio.atomic_writer(tmp_path / "answers.txt") as out:
            out.write("half")
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(10)

    monkeypatch.setattr("trainer.listing.run", write)
    assert trainer.main(["ls"]) == 143
    assert capsys.readouterr().err == "trainer: terminated\n"
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_is_one_line_and_code_130(monkeypatch, capsys):
    def interrupted(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("trainer.listing.run", interrupted)
    assert trainer.main(["ls"]) == 130
    assert capsys.readouterr().err == "trainer: interrupted\n"


def test_an_error_of_the_system_is_one_line(monkeypatch, capsys):
    def full(arguments):
        raise OSError(28, "No space left on device", "/data/run")

    monkeypatch.setattr("trainer.listing.run", full)
    assert trainer.main(["ls"]) == 1
    assert capsys.readouterr().err == "trainer: error: [Errno 28] No space left on device: '/data/run'\n"


def test_another_backend_is_refused(monkeypatch, capsys):
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    assert trainer.main(["ls"]) == 2
    assert "KERAS_BACKEND=jax" in capsys.readouterr().err


def test_flags_take_their_value_with_or_without_an_equals_sign_and_hparams_merge():
    parser = trainer.cli.make_parser("train")
    arguments = parser.parse_args(
        ["--problem", "p", "--train_steps=7", "--hparams=a=1", "--hparams", "b=2", "--jit_compile", "--random_seed=3"]
    )
    assert (arguments.problem, arguments.train_steps, arguments.seed) == ("p", 7, 3)
    assert arguments.hparams == ["a=1", "b=2"]
    assert arguments.jit_compile is True
    assert parser.parse_args(["--jit_compile=false"]).jit_compile is False


@pytest.mark.parametrize(
    ("code", "message"),
    [("import nowhere_at_all", "No module named 'nowhere_at_all' ("), ("def f(:", "SyntaxError: invalid syntax (")],
)
def test_a_fault_in_user_code_is_one_line_that_names_the_place(code, message, tmp_path, capsys):
    folder = tmp_path / f"faulty_{len(code)}"
    folder.mkdir()
    (folder / "__init__.py").write_text(f"\n{code}\n")
    assert trainer.main(["ls", f"--usr_dir={folder}"]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert message in err
    assert "__init__.py, line 2)" in err


def test_blanks_in_a_name_stay_in_the_message(monkeypatch, capsys):
    def refuse(argv):
        raise UserError("no class 'has  man';\n  near names: has  men")

    monkeypatch.setattr(cli, "_run", refuse)
    assert cli.main([]) == 1
    assert capsys.readouterr().err == "trainer: error: no class 'has  man'; near names: has  men\n"
