"""From flags to a configuration, and whether it may go on with a run that exists."""

import json

import pytest

from trainer import config
from trainer.cli import make_parser
from trainer.run_dir import RunDir
from ut_keras.errors import UsageError, UserError


@pytest.fixture
def resolve(tiny_dir, tmp_path):
    """A function of flags, after --problem=tiny_copy --output_dir=<temporary>/run."""

    def resolved(*argv):
        output_dir = f"--output_dir={tmp_path / 'run'}"
        return config.resolve(make_parser("train").parse_args(["--problem=tiny_copy", output_dir, *argv]))

    return resolved


@pytest.fixture
def started(resolve):
    """The configuration of a run that has been started with seed 3 and width 16."""
    import problems

    resolved = resolve("--seed=3")
    problem = problems.get("tiny_copy").prepare()
    RunDir.create(resolved.output_dir, resolved.hparams, problem, resolved.settings())
    return resolved


def test_the_problem_chooses_the_set_and_the_set_the_model(resolve):
    resolved = resolve()
    assert (resolved.hparams_set, resolved.hparams.model, resolved.seed) == ("tiny", "universal_transformer", 0)
    assert resolved.problem_args == {"train_size": 60}


def test_flags_win_over_the_set_and_a_later_hparam_over_an_earlier(resolve):
    resolved = resolve("--train_steps=7", "--hparams=hidden_size=32, eval_every=2", "--hparams=hidden_size=8")
    assert (resolved.hparams.train_steps, resolved.hparams.eval_every, resolved.hparams.hidden_size) == (7, 2, 8)


def test_the_default_output_dir_is_named_after_problem_and_set(tiny_dir):
    resolved = config.resolve(make_parser("train").parse_args(["--problem=tiny_copy"]))
    assert str(resolved.output_dir) == "runs/tiny_copy-tiny"


def test_a_model_of_another_family_names_a_set_that_fits(resolve):
    with pytest.raises(UsageError, match=r"--model=transformer: .* is for universal_transformer; add --hparams_set="):
        resolve("--model=transformer")
    with pytest.raises(UsageError, match="add --hparams_set=transformer_tiny$"):
        resolve("--model=transformer", "--hparams_set=universal_transformer_tiny")


def test_a_search_space_is_no_set_and_names_the_one_it_varies(resolve):
    with pytest.raises(
        UsageError, match="=transformer_tpu_range is a search space.*; the set it varies is transformer_tpu"
    ):
        resolve("--hparams_set=transformer_tpu_range")


def test_a_model_of_the_same_family_replaces_that_of_the_set():
    arguments = make_parser("train").parse_args(
        ["--problem=tiny_class", "--hparams_set=tiny", "--model=universal_transformer_encoder"]
    )
    assert config.resolve(arguments).hparams.model == "universal_transformer_encoder"


def test_the_same_command_goes_on_and_takes_the_seed_from_the_run(started, resolve):
    assert resolve("--seed=3") == started
    assert resolve() == started


@pytest.mark.parametrize("change", ["train_steps=99", "learning_rate_constant=0.5", "attention_dropout=0.3"])
def test_a_change_of_the_recipe_is_accepted(started, resolve, change):
    assert resolve(f"--hparams={change}").hparams != started.hparams


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--hparams=hidden_size=32", "with hidden_size=16, not hidden_size=32"),
        ("--hparams=act_type=frozen", "with act_type=accumulated, not act_type=frozen"),
        ("--seed=4", "with seed=3, not seed=4"),
        ("--problem_args=train_size=70", "with problem_args train_size=60, not problem_args train_size=70"),
        ("--mixed_precision=mixed_bfloat16", "with mixed_precision=none, not mixed_precision=mixed_bfloat16"),
    ],
)
def test_another_architecture_or_data_is_refused_with_both_values(started, resolve, flag, message):
    with pytest.raises(UserError, match=message) as error:
        resolve(flag)
    assert error.value.exit_code == 1
    assert str(started.output_dir) in str(error.value)


def test_another_problem_is_refused(started):
    argv = ["--problem=tiny_class", f"--output_dir={started.output_dir}"]
    with pytest.raises(UserError, match="with problem=tiny_copy, not problem=tiny_class"):
        config.resolve(make_parser("train").parse_args(argv))


def test_a_directory_with_other_files_is_refused(resolve, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("precious")
    with pytest.raises(UserError, match="holds thesis.tex and is not a run directory"):
        resolve()


def test_every_recipe_hparam_exists():
    from ut_keras import hparams

    assert set(config.RECIPE) <= {row[0] for row in hparams.describe()}
    assert {row[0] for row in hparams.describe() if row[0].endswith("_dropout")} <= set(config.RECIPE)


def test_another_seed_is_refused_also_where_the_problem_has_an_argument_of_that_name(tmp_path):
    import problems

    def resolve(*argv):
        argv = ["--problem=algorithmic_reverse_binary40", f"--output_dir={tmp_path / 'run'}", *argv]
        return config.resolve(make_parser("train").parse_args(argv))

    resolved = resolve("--seed=3")
    RunDir.create(resolved.output_dir, resolved.hparams, problems.get(resolved.problem), resolved.settings())
    with pytest.raises(UserError, match="with seed=3, not seed=4"):
        resolve("--seed=4")
    with pytest.raises(UserError, match="with problem_args seed=0, not problem_args seed=1"):
        resolve("--problem_args=seed=1")


def test_a_run_without_its_settings_is_damaged(started, resolve):
    (started.output_dir / "run.json").write_text("{}")
    with pytest.raises(UserError, match="run.json is damaged: it has no 'problem'"):
        resolve()


def test_a_run_whose_settings_are_of_another_kind_is_damaged(started, resolve):
    settings = {"problem": "tiny_copy", "problem_args": 5, "seed": 3, "mixed_precision": "none"}
    (started.output_dir / "run.json").write_text(json.dumps(settings))
    with pytest.raises(UserError, match="run.json is damaged: problem_args is no JSON object"):
        resolve()


@pytest.mark.parametrize("inside", ["", "/data", "/../run/data/x"])
def test_data_inside_of_a_new_run_directory_are_refused_before_they_are_made(resolve, tmp_path, inside):
    with pytest.raises(UserError, match="--data_dir=.* is inside of --output_dir=.*: data are for many runs"):
        resolve(f"--data_dir={tmp_path / 'run'}{inside}")
    assert resolve(f"--data_dir={tmp_path / 'running'}").data_dir


@pytest.mark.parametrize("inside", ["x", "x/y"])
def test_a_directory_that_cannot_be_made_is_refused_before_the_work(tiny_dir, tmp_path, inside):
    (tmp_path / "file").write_text("")
    argv = ["--problem=tiny_copy", f"--output_dir={tmp_path / 'file' / inside}"]
    with pytest.raises(UserError, match="file is a file"):
        config.resolve(make_parser("train").parse_args(argv))


@pytest.mark.parametrize(
    ("change", "idle"),
    [
        ("recurrence_type=basic,act_type=frozen", "act_type has no effect under recurrence_type=basic"),
        (
            "optimizer=adafactor,optimizer_adam_beta2=0.9",
            "optimizer_adam_beta2 has no effect under optimizer=adafactor",
        ),
        ("recurrence_type=act,num_rec_steps=3", "num_rec_steps has no effect under recurrence_type=act"),
        ("recurrence_type=skip,gru_mixes=input", "gru_mixes has no effect under recurrence_type=skip"),
        ("recurrence_type=gru,gates_inputs=s", "gates_inputs has no effect under recurrence_type=gru"),
        ("recurrence_type=basic,dwa_elements=false", "dwa_elements has no effect under recurrence_type=basic"),
        (
            "recurrence_type=skip,dropconnect_dropout=0.5",
            "dropconnect_dropout has no effect under gate_ffn_layer=dense",
        ),
        (
            "gate_ffn_layer=dense_dropconnect,recurrence_type=highway,num_mixedin_layers=3",
            "num_mixedin_layers has no effect under mix_with_transformer=None",
        ),
        ("max_relative_position=4", "max_relative_position has no effect under self_attention_type=dot_product"),
        (
            "learning_rate=0.1",
            "learning_rate has no effect under learning_rate_schedule=constant",
        ),
        (
            "learning_rate_schedule=rsqrt_decay,learning_rate_constant=3",
            "learning_rate_constant has no effect under learning_rate_schedule=rsqrt_decay",
        ),
        (
            "learning_rate_decay_rate=0.5",
            "learning_rate_decay_rate has no effect under learning_rate_schedule=constant",
        ),
        ("recurrence_type=gru,filter_size=32", "filter_size has no effect under recurrence_type=gru"),
        (
            "position_start_index=step,add_position_timing_signal=false",
            "position_start_index has no effect under add_position_timing_signal=False",
        ),
        (
            "step_timing_signal_type=sinusoid,add_step_timing_signal=false",
            "step_timing_signal_type has no effect under add_step_timing_signal=False",
        ),
        ("recurrence_type=basic,global_over=all", "global_over has no effect under recurrence_type=basic"),
        ("act_type=basic,recurrence_type=act,global_over=all", "global_over has no effect under act_type=basic"),
        ("target_space_id=3", "target_space_id has no effect under use_target_space_embedding=False"),
    ],
)
def test_a_change_without_effect_is_said(resolve, change, idle, capsys):
    resolve(f"--hparams={change}")
    assert capsys.readouterr().err == f"warning: {idle}\n"


@pytest.mark.parametrize("other", ["add_ffn_unit_to_the_transition_function=true", "mix_with_transformer=after_ut"])
def test_a_cell_beside_a_transition_does_not_make_it_idle(resolve, other, capsys):
    resolve(f"--hparams=recurrence_type=gru,filter_size=32,{other}")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", ["nowhere", "run/checkpoints/ckpt-3", "."])
def test_a_warm_start_from_nothing_is_refused_at_once(resolve, tmp_path, name):
    with pytest.raises(UserError, match="--warm_start_from=.*: there is no run directory and no checkpoint"):
        resolve(f"--warm_start_from={tmp_path / name}")


def test_a_warm_start_is_from_a_run_or_checkpoints(resolve, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for place in ("run", "checkpoints"):
        (tmp_path / "old" / place).mkdir(parents=True)
    for file in ("run/run.json", "checkpoints/ckpt-2.index", "ckpt-3.index"):
        (tmp_path / "old" / file).write_text("")
    for name in (str(tmp_path / "old" / "run"), "~/old/run", "~/old/checkpoints", "~/old/ckpt-3", "~/old/ckpt-3.index"):
        assert resolve(f"--warm_start_from={name}").warm_start_from == name


def test_a_run_that_goes_on_does_not_need_what_it_was_started_from(resolve, started):
    assert resolve("--seed=3", "--warm_start_from=nowhere").seed == 3


def test_the_flags_of_devices_and_precision_reach_the_configuration(resolve):
    resolved = resolve(
        "--strategy=one_device", "--gradient_accumulation=4", "--steps_per_execution=8", "--ema_decay=0.999",
        "--on_nan=skip", "--deterministic", "--remat", "--worker_timeout=7.5", "--profile=10,5", "--early_stopping=3",
    )  # fmt: skip
    assert (resolved.strategy, resolved.cluster, resolved.worker_timeout) == ("one_device", None, 7.5)
    assert (resolved.gradient_accumulation, resolved.steps_per_execution) == (4, 8)
    assert (resolved.ema_decay, resolved.on_nan, resolved.deterministic) == (0.999, "skip", True)
    assert (resolved.profile, resolved.early_stopping, resolved.hparams.remat) == ((10, 5), 3, True)


def test_a_worker_that_is_not_the_chief_does_not_look_at_the_run_directory(resolve, started, monkeypatch):
    cluster = {"worker": ["127.0.0.1:2222", "127.0.0.1:2223"]}
    for index in (0, 1):
        task = {"type": "worker", "index": index}
        monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": task}))
        resolved = resolve()
        assert resolved.cluster.index == index
        assert resolved.seed == (3 if index == 0 else 0)  # the chief's goes for all, when they have met
    assert resolve("--strategy=one_device").cluster is None


def test_what_workers_have_to_agree_on_is_json_and_leaves_out_what_may_differ(resolve):
    ours, theirs = resolve("--seed=1"), resolve("--seed=2", "--data_dir=elsewhere", "--keep_checkpoints=9")
    assert json.dumps(ours.of_all_workers()) == json.dumps(theirs.of_all_workers())
    assert ours.of_all_workers() != resolve("--hparams=relu_dropout=0.3").of_all_workers()


@pytest.mark.parametrize(
    ("flags", "policy", "dtype"),
    [
        ([], "none", "float32"),
        (["--hparams=activation_dtype=float16"], "mixed_float16", "float16"),
        (["--hparams=activation_dtype=bfloat16"], "mixed_bfloat16", "bfloat16"),
        (["--mixed_precision=mixed_bfloat16"], "mixed_bfloat16", "bfloat16"),
        (["--hparams=activation_dtype=float16", "--mixed_precision=none"], "none", "float32"),
        (["--hparams_set=universal_transformer_base_fp16"], "mixed_float16", "float16"),
        (["--hparams_set=universal_transformer_base_fp16", "--mixed_precision=none"], "none", "float32"),
    ],
)
def test_the_precision_is_the_sets_where_the_flag_does_not_say(resolve, flags, policy, dtype):
    resolved = resolve(*flags)
    assert (resolved.mixed_precision, resolved.hparams.activation_dtype) == (policy, dtype)


def test_a_run_whose_precision_was_set_by_the_flag_alone_goes_on(started, resolve):
    """Runs from before there was activation_dtype say float32 in their hparams."""
    settings = {**started.settings(), "mixed_precision": "mixed_float16"}
    (started.output_dir / "run.json").write_text(json.dumps(settings))
    assert resolve("--mixed_precision=mixed_float16").mixed_precision == "mixed_float16"
    with pytest.raises(UserError, match="with mixed_precision=mixed_float16, not mixed_precision=none"):
        resolve()


def test_the_parts_of_a_batch_are_those_of_several_batches_where_the_flag_does_not_say(resolve):
    several = "--hparams=optimizer_multistep_accumulate_steps=8"
    assert resolve(several).gradient_accumulation == 8
    assert resolve(several, "--gradient_accumulation=2").gradient_accumulation == 2
    assert resolve().gradient_accumulation == 1
