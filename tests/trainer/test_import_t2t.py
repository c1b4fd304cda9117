"""A checkpoint of tensor2tensor's becomes a run: the same numbers, and every command and training go on from it."""

import json
import pathlib
import shlex
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

import trainer
from tests import golden_files
from tests.trainer import c_loader, t2t_files
from trainer import checkpoints
from trainer.run_dir import RunDir
from trainer.step import make_optimizer
from ut_keras import losses
from ut_keras.models.build import build_model
from ut_keras.tensor2tensor import t2t_variables

CLOSE = {"rtol": 1e-4, "atol": 5e-5}
ACT = golden_files.load("models/ut_act_accumulated")
LM = golden_files.load("models/ut_act_lm_decoder_only")
SET = "--hparams_set=adaptive_universal_transformer_tiny"


def run_import(path, golden, problem, *flags, **written):
    """Writes a checkpoint of `golden` below `path`, imports it, and returns (exit code, the run's directory)."""
    t2t_files.write(path / "t2t", golden, **written)
    vocabulary = t2t_files.vocabulary(path / "vocab.subwords", "a")
    named = [f"--checkpoint={path / 't2t'}", f"--problem={problem}", f"--output_dir={path / 'run'}"]
    if problem in ("parallel_text", "text_lm"):
        named.append(f"--vocabulary={vocabulary}")
    return trainer.main(["import_t2t", *named, *flags]), path / "run"


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """The run directory of a model that translates, imported; in a directory whose name has brackets."""
    path = tmp_path_factory.mktemp("import[1]")
    languages = "--problem_args=source=en,target=de"
    code, run = run_import(path, ACT, "parallel_text", languages, "--hparams=train_steps=9,eval_every=9,batch_size=64")
    assert code == 0
    t2t_files.pairs(path / "files")
    return run


def data(run):
    return [f"--data_dir={run.parent / 'data'}", f"--manual_dir={run.parent / 'files'}"]


def features_of(golden):
    return {name: tf.constant(golden["in/" + name]) for name in ("inputs", "targets") if "in/" + name in golden}


def test_logits_are_those_of_tensor2tensor(imported):
    loaded = trainer.load(imported)
    assert loaded.step == 7
    np.testing.assert_allclose(loaded.model(features_of(ACT)), ACT["out/logits"], **CLOSE)


def test_hparams_are_those_of_the_checkpoint_with_its_formulas_and_its_dropout(imported):
    hparams = RunDir.open(imported).hparams
    assert (hparams.hidden_size, hparams.recurrence_type, hparams.act_type) == (16, "act", "accumulated")
    assert (hparams.act_count_padding, hparams.act_remainder_at_limit) == (True, False)
    assert (hparams.layer_prepostprocess_dropout, hparams.learning_rate_warmup_steps) == (0.2, 4)
    assert (hparams.train_steps, hparams.use_target_space_embedding) == (9, False)


@pytest.mark.slow
def test_it_decodes_without_any_data(imported, tmp_path, capsys):
    (tmp_path / "in").write_text("12 a\n\n_\n")
    assert trainer.main(["decode", f"--output_dir={imported}", f"--decode_from_file={tmp_path / 'in'}"]) == 0
    answers = capsys.readouterr().out.split("\n")
    assert len(answers) == 4 and answers[1] == ""


@pytest.mark.slow
def test_it_evaluates(imported, capsys):
    assert trainer.main(["evaluate", f"--output_dir={imported}", "--split=dev", *data(imported)]) == 0
    scores = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert scores["dev/count"] == "4"


@pytest.mark.slow
@pytest.mark.skipif(bool(c_loader.missing()), reason=str(c_loader.missing()))
def test_its_export_serves_tensor2tensors_subwords(imported, tmp_path, capsys):
    lines = ["12 a", "", "a_b \\ \u00e9"]
    assert (
        trainer.main(["export", f"--output_dir={imported}", f"--export_dir={tmp_path}", "--max_output_length=6"]) == 0
    )
    directory = pathlib.Path(capsys.readouterr().out.strip())
    expected = trainer.load(imported).decode(lines, max_output_length=6)
    found = c_loader.run(directory, lines, True)
    assert list(found["outputs"]) == [answer.text for answer in expected]
    np.testing.assert_allclose(found["scores"], [answer.score for answer in expected], rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_the_command_that_it_names_trains_on(tmp_path, capsys):
    languages = "--problem_args=source=en,target=de"
    changes = "--hparams=train_steps=9,eval_every=9,batch_size=64"
    code, run = run_import(tmp_path, ACT, "parallel_text", languages, changes)
    assert code == 0
    t2t_files.pairs(tmp_path / "files")
    said = capsys.readouterr().err.splitlines()
    command = next(line for line in said if line.startswith("to train on: python -m trainer "))
    argv = shlex.split(command.removeprefix("to train on: python -m trainer "))
    assert trainer.main([*argv, *data(run), "--log_every=1"]) == 0
    err = capsys.readouterr().err
    assert "going on from step 7" in err and "was " not in err.split("going on")[0].split("run directory")[-1]
    assert [line["step"] for line in RunDir.open(run).metrics() if "train/loss" in line] == [8, 9]
    assert trainer.main(["average", f"--output_dir={run}", "--last=2"]) == 0


def updates(run, golden, count):
    """Makes updates from a run's last checkpoint on a golden file's batch; returns (losses before each, state).

    The state is {"w", "m", "v"}: {T2T variable name: array of the shape that T2T has}.
    """
    model, optimizer, _ = restored(run)
    hparams, found = RunDir.open(run).hparams, []
    variables = model.trainable_variables
    for _ in range(count):
        with tf.GradientTape() as tape:
            logits, ponder = model(features_of(golden), return_ponder=True)
            cross_entropy, tokens = losses.token_cross_entropy_sums(
                logits, tf.constant(golden["in/targets"]), hparams.label_smoothing
            )
            costs = sum(cost / positions for cost, positions in losses.ponder_sums(ponder).values())
            loss = cross_entropy / tokens + hparams.act_loss_weight * costs
        gradients = tape.gradient(loss, [v.value for v in variables], unconnected_gradients="zero")
        optimizer.apply([tf.convert_to_tensor(gradient) for gradient in gradients], variables)
        found.append(float(loss))
    state = {"w": {}, "m": {}, "v": {}}
    for name, variable in t2t_variables(model, hparams).items():
        name = f"{name}_0" if name.endswith("/weights") else name
        index = optimizer._get_variable_index(variable)
        for part, one in zip("wmv", (variable, optimizer._momentums[index], optimizer._velocities[index])):
            state[part][name] = one.numpy().reshape(golden["w/" + name].shape)
    return found, state


@pytest.mark.slow
def test_training_goes_on_with_tensor2tensors_moments_and_rate(tmp_path):
    """Four of the golden file's ten updates, the others after an import: the losses are T2T's throughout."""
    code, first = run_import(tmp_path / "start", ACT, "parallel_text", step=0)
    assert code == 0
    before, state = updates(first, ACT, 4)
    moments = {"Adam": [state["m"], state["v"]]}
    code, later = run_import(tmp_path / "later", ACT, "parallel_text", step=4, moments=moments, weights=state["w"])
    assert code == 0 and restored(later)[2] == 4
    after, _ = updates(later, ACT, 7)
    np.testing.assert_allclose(before + after, ACT["train/loss_total"], atol=2e-3, rtol=0)


def restored(run):
    """Returns (model, optimizer, step) of a run as training has them."""
    run = RunDir.open(run)
    model = build_model(run.hparams, run.problem.features)
    optimizer = make_optimizer(run.hparams, model)
    return model, optimizer, checkpoints.Checkpoints(run, model, optimizer).restore_last().step


def test_a_language_model(tmp_path, capsys):
    code, run = run_import(tmp_path, LM, "text_lm", SET)
    assert code == 0
    np.testing.assert_allclose(trainer.load(run).model(features_of(LM)), LM["out/logits"], **CLOSE)
    assert "without a counterpart here: eval_drop_long_sequences, " in capsys.readouterr().err


ENCODER = golden_files.load("models/utenc_act")


def class_weights(classes, apart):
    """Returns T2T's variables of a classifier: a golden encoder's, and a head of random numbers."""
    rng = np.random.default_rng(2)
    scope = f"universal_transformer_encoder/class_label_modality_{classes}_16/dense"
    head = {"kernel": rng.normal(size=(16, classes)), "bias": rng.normal(size=classes)}
    table = "input_emb" if apart else "shared"
    found = {name.replace("/shared/", f"/{table}/"): value for name, value in ENCODER.under("w").items()}
    return {**found, **{f"{scope}/{name}": value.astype(np.float32) for name, value in head.items()}}


@pytest.mark.parametrize("apart", [False, True])
def test_a_class_model_answers_as_tensor2tensor_does(tmp_path, apart, capsys):
    """On lines of one length, whose mean T2T takes over no padding; ids 0 and 1 are no class of T2T's."""
    weights = class_weights(3, apart)
    (tmp_path / "files").mkdir()
    for split in ("train", "dev"):
        (tmp_path / "files" / f"{split}.tsv").write_text("1\tbad\n2\tgood\n3\tso so\n")
    data = [f"--data_dir={tmp_path / 'data'}", f"--manual_dir={tmp_path / 'files'}"]
    vocabulary = t2t_files.vocabulary(tmp_path / "vocab.subwords", "a")
    code, run = run_import(
        tmp_path / "one", ENCODER, "text_class", f"--vocabulary={vocabulary}", *data, weights=weights
    )
    assert code == 0
    assert "classes, in the order of the checkpoint's: 'bad', 'good', 'so so'" in capsys.readouterr().err
    inputs = ENCODER["in/inputs"][:1]
    states = ENCODER["out/encoder/output"][:1]
    assert np.all(inputs), "no padding in this row"
    kernel, bias = (value for name, value in weights.items() if "/dense/" in name and "modality" in name)
    logits = trainer.load(run).model({"inputs": tf.constant(inputs)}).numpy()
    np.testing.assert_allclose(logits[:, 2:], states.mean(axis=1) @ kernel + bias, **CLOSE)
    assert logits[:, :2].max() < logits[:, 2:].min() - 10


def one_line(capsys):
    """Returns the one line of an error."""
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("trainer: error: "), lines
    return lines[-1]


@pytest.mark.parametrize(
    ("problem", "flags", "hparams", "message"),
    [
        ("text_lm", [], {}, "reads inputs, and text_lm has none"),
        ("parallel_text", [], {"norm_type": "batch"}, "norm_type='batch' of tensor2tensor is not supported"),
        ("parallel_text", [], {"optimizer": "yellow_fin"}, "--hparams=NAME=VALUE puts another value in its place"),
        ("parallel_text", [], {"learning_rate_schedule": "legacy", "learning_rate_decay_scheme": "exp"}, "'noam'"),
        ("parallel_text", [], {"act_max_steps": 5}, "layer_embedding has shape"),
        ("parallel_text", ["--hparams_set=transformer_tiny"], {}, "for transformer; take universal_transformer_base"),
        ("algorithmic_reverse_decimal40", [], {}, "was trained with 17 ids"),
        ("babi_qa_sentence_task1_1k", [], {}, "one class per example"),
        ("sva_number_prediction", ["--vocabulary=x"], {}, "leave --vocabulary out"),
    ],
)
def test_what_does_not_fit_is_one_line_and_nothing_is_written(tmp_path, problem, flags, hparams, message, capsys):
    code, run = run_import(tmp_path, ACT, problem, *flags, hparams=hparams)
    assert code in (1, 2)
    assert message in one_line(capsys)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["t2t", "vocab.subwords"]


def test_a_value_that_we_do_not_have_can_be_replaced(tmp_path):
    flags = ["--hparams=optimizer=adam"]
    code, run = run_import(tmp_path, ACT, "parallel_text", *flags, hparams={"optimizer": "yellow_fin"})
    assert code == 0
    assert RunDir.open(run).hparams.optimizer == "adam"


def test_flags_are_checked_without_tensorflow(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("trainer.commands.import_tensorflow", pytest.fail)
    (tmp_path / "empty").mkdir()
    (tmp_path / "model.ckpt-3.index").write_text("")
    named = ["import_t2t", "--problem=parallel_text", f"--output_dir={tmp_path / 'run'}"]
    for checkpoint, flags, code, message in [
        ("empty", [], 1, "holds no checkpoint of tensor2tensor's"),
        ("none", [], 1, "there is no none.index"),
        ("model.ckpt-3", [], 2, "name the hyperparameters of the checkpoint with --hparams_set"),
        ("model.ckpt-3", ["--hparams_set=universal_transformer_tini"], 2, "universal_transformer_tiny"),
        ("model.ckpt-3", ["--hparams_set=universal_transformer_tiny", "--hparams=hiden_size=3"], 2, "hidden_size"),
        ("model.ckpt-3", [SET, f"--output_dir={tmp_path}"], 1, "is not a run directory"),
    ]:
        assert trainer.main([*named, f"--checkpoint={tmp_path / checkpoint}", *flags]) == code
        assert message in one_line(capsys)


def test_without_hparams_json_the_set_says_it_all(tmp_path):
    t2t_files.write(tmp_path / "t2t", ACT)
    (tmp_path / "t2t" / "hparams.json").unlink()
    vocabulary = t2t_files.vocabulary(tmp_path / "vocab.subwords", "a")
    sizes = "hidden_size=16,filter_size=32,num_heads=2,act_max_steps=6,act_type=accumulated"
    argv = [f"--checkpoint={tmp_path / 't2t' / 'model.ckpt-7.index'}", "--problem=parallel_text", SET]
    argv += [f"--vocabulary={vocabulary}", f"--hparams={sizes}", f"--output_dir={tmp_path / 'run'}"]
    assert trainer.main(["import_t2t", *argv]) == 0
    loaded = trainer.load(tmp_path / "run")
    np.testing.assert_allclose(loaded.model(features_of(ACT)), ACT["out/logits"], **CLOSE)


@pytest.mark.parametrize(
    ("moments", "words"),
    [
        ({}, "a fresh Adam: the checkpoint holds no moments"),
        ({"Momentum": 1}, "a fresh Adam: the checkpoint holds moments of Momentum"),
        ({"Adam": 1}, "a fresh Adam: the checkpoint holds 1 moments of each variable, not 2"),
    ],
)
def test_moments_that_are_not_there_are_said(tmp_path, moments, words, capsys):
    zeros = {name: np.zeros_like(value) for name, value in ACT.under("w").items()}
    written = {name: [zeros] * count for name, count in moments.items()}
    code, run = run_import(tmp_path, ACT, "parallel_text", moments=written)
    assert code == 0
    assert f"optimizer: {words}" in capsys.readouterr().err
    assert restored(run)[2] == 7


def test_a_multi_step_optimizer_counts_batches(tmp_path):
    hparams = {"optimizer": "MultistepAdam", "optimizer_multistep_accumulate_steps": 3}
    code, run = run_import(tmp_path, ACT, "parallel_text", step=7, hparams=hparams)
    assert code == 0
    assert trainer.load(run).step == 2


def test_a_multi_step_set_counts_batches_without_hparams_json(tmp_path):
    t2t_files.write(tmp_path / "t2t", ACT)
    (tmp_path / "t2t" / "hparams.json").unlink()
    vocabulary = t2t_files.vocabulary(tmp_path / "vocab.subwords", "a")
    sizes = "hidden_size=16,filter_size=32,num_heads=2,act_max_steps=6,optimizer_multistep_accumulate_steps=3"
    argv = [f"--checkpoint={tmp_path / 't2t'}", "--problem=parallel_text", SET, f"--hparams={sizes}"]
    assert trainer.main(["import_t2t", *argv, f"--vocabulary={vocabulary}", f"--output_dir={tmp_path / 'run'}"]) == 0
    assert RunDir.open(tmp_path / "run").settings["imported_from"].endswith("model.ckpt-7")
    assert trainer.load(tmp_path / "run").step == 2


def test_the_command_that_it_names_has_the_directories_that_were_given(tmp_path, capsys):
    given = [f"--data_dir={tmp_path / 'my data'}", f"--manual_dir={tmp_path / 'files'}"]
    code, run = run_import(tmp_path, ACT, "parallel_text", *given)
    assert code == 0
    command = next(line for line in capsys.readouterr().err.splitlines() if line.startswith("to train on: "))
    assert set(given) | {f"--output_dir={run}"} <= set(shlex.split(command))


def test_run_json_names_the_checkpoint(imported):
    settings = json.loads((imported / "run.json").read_text())
    assert settings["imported_from"] == str((imported.parent / "t2t" / "model.ckpt-7").resolve())
    assert settings["problem_args"]["vocabulary_file"].endswith("vocab.subwords")


ALL = [name for name in golden_files.model_names("ut_", "transformer_") if "random" not in name]


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_every_kind_of_model(tmp_path, name):
    golden = golden_files.load(name)
    space = golden.meta.get("target_space_id", 0)
    plain = golden.meta["model"] == "transformer"
    flags = [f"--hparams_set={'transformer_tiny' if plain else 'universal_transformer_tiny'}"]
    flags.append(f"--hparams=target_space_id={space}")
    problem = "parallel_text" if golden.meta.get("has_input", True) else "text_lm"
    code, run = run_import(tmp_path, golden, problem, *flags)
    assert code == 0
    real = golden["in/targets"] != 0  # what is no target is not computed here
    logits = trainer.load(run).model(features_of(golden)).numpy()
    np.testing.assert_allclose(logits[real], golden["out/logits"][real], **CLOSE)


def test_help_and_mistakes_do_not_import_tensorflow():
    mistakes = [
        ["import_t2t", "--help"],
        ["import_t2t", "--problem=parallel_text"],
        ["import_t2t", "--problem=parallel_text", "--checkpoint=/nowhere/t2t", "--output_dir=/tmp/none", SET],
    ]
    code = (
        "import sys, trainer\n"
        f"assert [trainer.main(argv) for argv in {mistakes!r}] == [0, 2, 1]\n"
        "heavy = {'tensorflow', 'keras', 'tensorflow_datasets'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, capture_output=True)
