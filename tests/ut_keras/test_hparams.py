"""Hyperparameters: what may be written, what is refused and how, and the JSON file."""

import dataclasses

import pytest

from ut_keras.assignments import as_value
from ut_keras.errors import UsageError
from ut_keras.hparams import HParams, describe, parse_assignments

UT = HParams(model="universal_transformer")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hidden_size=64,num_heads=4", {"hidden_size": 64, "num_heads": 4}),
        ("hidden_size=64, num_heads = 4 ,", {"hidden_size": 64, "num_heads": 4}),
        ("act_type='frozen'", {"act_type": "frozen"}),
        ('act_type="frozen"', {"act_type": "frozen"}),
        ("hidden_size=64,hidden_size=128", {"hidden_size": 128}),
        ("act_halting_bias_init=-3", {"act_halting_bias_init": -3.0}),
        ("learning_rate_constant=1e-3", {"learning_rate_constant": 0.001}),
        ("train_steps=2e3", {"train_steps": 2000}),
        ("position_start_index=none", {"position_start_index": None}),
        ("position_start_index=", {"position_start_index": None}),
        ("position_start_index=random", {"position_start_index": "random"}),
        ("act_epsilon=0", {"act_epsilon": 0.0}),
        ("optimizer=adafactor", {"optimizer": "adafactor"}),
        ("optimizer_adafactor_decay_type=adam", {"optimizer_adafactor_decay_type": "adam"}),
        ("optimizer_adafactor_clipping_threshold=0", {"optimizer_adafactor_clipping_threshold": 0.0}),
        ("batch_size_per_replica=true", {"batch_size_per_replica": True}),
        ("optimizer=Adafactor", {"optimizer": "adafactor"}),
        ("optimizer=Adam", {"optimizer": "adam"}),
        ("optimizer=true_adam", {"optimizer": "adam"}),
        ("optimizer=TrueAdam", {"optimizer": "adam"}),
        (
            "optimizer=multistep_adam,optimizer_multistep_accumulate_steps=8",
            {"optimizer": "adam", "optimizer_multistep_accumulate_steps": 8},
        ),
        ("optimizer=Momentum", {"optimizer": "momentum"}),
        ("optimizer=SGD", {"optimizer": "sgd"}),
        ("mix_with_transformer='before_ut,after_ut'", {"mix_with_transformer": "before_ut,after_ut"}),
        ("mix_with_transformer='after_ut, before_ut'", {"mix_with_transformer": "before_ut,after_ut"}),
        ("mix_with_transformer='before_ut, after_ut'", {"mix_with_transformer": "before_ut,after_ut"}),
        ("mix_with_transformer=before_ut,mix_with_transformer=none", {"mix_with_transformer": None}),
        ("gates_inputs=its", {"gates_inputs": "its"}),
        (
            "recurrence_type=lstm,use_memory_as_final_state=true",
            {"recurrence_type": "lstm", "use_memory_as_final_state": True},
        ),
        ("transform_bias_init=-3,lstm_forget_bias=-1", {"transform_bias_init": -3.0, "lstm_forget_bias": -1.0}),
        (
            "self_attention_type=dot_product_relative_v2,max_relative_position=4,hard_attention_k=2",
            {"self_attention_type": "dot_product_relative_v2", "max_relative_position": 4, "hard_attention_k": 2},
        ),
        ("activation_dtype=bfloat16", {"activation_dtype": "bfloat16"}),
        ("", {}),
    ],
)
def test_spellings_that_are_applied(text, expected):
    hparams = UT.override(text)
    assert {name: getattr(hparams, name) for name in expected} == expected
    assert set(hparams.differences(UT)) <= set(expected)


@pytest.mark.parametrize(("text", "value"), [(t, True) for t in "true True t yes Y 1".split()])
def test_spellings_of_true(text, value):
    assert UT.override(f"remat={text}").remat is value


@pytest.mark.parametrize("text", "false False f no N 0".split())
def test_spellings_of_false(text):
    assert HParams(remat=True).override(f"remat={text}").remat is False


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hiden_size=64", "no hparam is called 'hiden_size'; near names: hidden_size"),
        ("xyzzy=1", "no hparam is called 'xyzzy'"),
        ("hidden_size=big", "hparam hidden_size='big' is not an integer"),
        ("hidden_size=1.5", "hparam hidden_size='1.5' is not an integer"),
        ("hidden_size=", "hparam hidden_size='' is not an integer"),
        ("hidden_size=[64,128]", "hparam hidden_size='[64,128]' is not an integer"),
        ("hidden_size=inf", "hparam hidden_size='inf' is not an integer"),
        ("remat=maybe", "hparam remat='maybe' is not true or false"),
        ("act_epsilon=small", "hparam act_epsilon='small' is not a number"),
        ("act_epsilon=nan", "hparam act_epsilon=nan is not a number"),
        ("learning_rate_constant=inf", "hparam learning_rate_constant=inf is not a number"),
        ("act_type=gobal", "hparam act_type='gobal' is not one of basic, accumulated, global, random, frozen"),
        ("act_type='frozen, hidden_size=64", "is not one of basic, accumulated"),
        ("hidden_size", "--hparams: 'hidden_size' is not name=value"),
        ("=3", "--hparams: '=3' is not name=value"),
        ("hidden_size:64", "--hparams: 'hidden_size:64' is not name=value"),
        ("num_rec_steps=-2", "hparam num_rec_steps=-2 is less than 1"),
        ("num_heads=0", "hparam num_heads=0 is less than 1"),
        ("hidden_size=0", "hparam hidden_size=0 is less than 1"),
        ("act_max_steps=0", "hparam act_max_steps=0 is less than 1"),
        ("batch_size=0", "hparam batch_size=0 is less than 1"),
        ("max_length=0", "hparam max_length=0 is less than 1"),
        ("clip_grad_norm=-1", "hparam clip_grad_norm=-1.0 is less than 0"),
        ("relu_dropout=1", "hparam relu_dropout=1.0 is not below 1"),
        ("label_smoothing=1.0", "hparam label_smoothing=1.0 is not below 1"),
        ("act_epsilon=1", "hparam act_epsilon=1.0 is not below 1"),
        ("optimizer_adam_beta2=1", "hparam optimizer_adam_beta2=1.0 is not below 1"),
        ("optimizer=lion", "hparam optimizer='lion' is not one of adam, adafactor, momentum, sgd"),
        ("optimizer_adafactor_beta1=1", "hparam optimizer_adafactor_beta1=1.0 is not below 1"),
        ("optimizer_adafactor_beta2=1", "hparam optimizer_adafactor_beta2=1.0 is not below 1"),
        ("optimizer_adafactor_decay_type=exp", "hparam optimizer_adafactor_decay_type='exp' is not one of pow, adam"),
        ("optimizer_momentum_momentum=1", "hparam optimizer_momentum_momentum=1.0 is not below 1"),
        ("optimizer=momentum,optimizer_momentum_momentum=0", "without it is optimizer=sgd"),
        ("batch_size_per_replica=2", "hparam batch_size_per_replica='2' is not true or false"),
        ("target_space_id=32", "hparam target_space_id=32 is not below 32"),
        ("hidden_size=63", "hidden_size=63 is not a multiple of num_heads=8"),
        ("layer_preprocess_sequence=none", "pre-norm is n and da, post-norm none and dan"),
        ("self_attention_type=dot_product_relative", "needs max_relative_position > 0"),
        (
            "self_attention_type=dot_product_relative_v2",
            "self_attention_type=dot_product_relative_v2 needs max_relative_position > 0",
        ),
        (
            "recurrence_type=gruu",
            "recurrence_type='gruu' is not one of basic, act, highway, skip, dwa, rnn, gru, lstm",
        ),
        ("hard_attention_k=1", "hard_attention_k=1 leaves nothing"),
        ("hard_attention_k=-1", "hparam hard_attention_k=-1 is less than 0"),
        ("gates_inputs=", "gates_inputs='' is not one or more of the letters i, s and t, each once"),
        ("gates_inputs=x", "gates_inputs='x' is not one or more of the letters i, s and t, each once"),
        ("gates_inputs=ii", "gates_inputs='ii' is not one or more of the letters i, s and t, each once"),
        ("use_memory_as_final_state=true", "needs recurrence_type=lstm; basic has no memory"),
        ("recurrence_type=gru,use_memory_as_final_state=true", "needs recurrence_type=lstm; gru has no memory"),
        ("gate_ffn_layer=conv", "gate_ffn_layer='conv' is not one of dense, dense_relu_dense, dense_dropconnect"),
        ("dropconnect_dropout=1", "hparam dropconnect_dropout=1.0 is not below 1"),
        ("dwa_softmax=width", "hparam dwa_softmax='width' is not one of depth, channels"),
        ("gru_mixes=x", "hparam gru_mixes='x' is not one of state, input"),
        ("num_mixedin_layers=0", "hparam num_mixedin_layers=0 is less than 1"),
        ("mix_with_transformer=inside", "is not one of None, before_ut, after_ut, before_ut,after_ut"),
        (
            "mix_with_transformer=before_ut,after_ut",
            "--hparams: 'after_ut' is not name=value; a value with a comma is quoted: "
            "mix_with_transformer='...,after_ut'",
        ),
        ("activation_dtype=float64", "activation_dtype='float64' is not one of float32, float16, bfloat16"),
        ("optimizer=yellow_fin", "hparam optimizer='yellow_fin' is not one of adam, adafactor, momentum, sgd"),
        ("optimizer=AdamW", "is not one of adam, adafactor, momentum, sgd"),
        ("optimizer_multistep_accumulate_steps=-1", "optimizer_multistep_accumulate_steps=-1 is less than 0"),
        ("num_hidden_layers=3", "hparam 'num_hidden_layers' does not belong to model 'universal_transformer'; it bel"),
    ],
)
def test_what_is_refused_is_named_in_one_line(text, message):
    with pytest.raises(UsageError) as error:
        UT.override(text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert error.value.exit_code == 2


def test_a_mapping_may_hold_values_or_their_text():
    assert UT.override({"hidden_size": 64, "remat": "yes", "act_epsilon": 0}).hidden_size == 64
    with pytest.raises(UsageError, match="hparam hidden_size=64.0 is not an integer"):
        UT.override({"hidden_size": 64.0})
    with pytest.raises(UsageError, match="hparam remat=1 is not true or false"):
        UT.override({"remat": 1})
    with pytest.raises(UsageError, match="hparam hidden_size=True is not an integer"):
        UT.override({"hidden_size": True})


def test_a_hparam_belongs_to_the_model_that_the_change_chooses():
    assert UT.override("model=transformer,num_hidden_layers=3").num_hidden_layers == 3
    with pytest.raises(UsageError, match="hparam 'num_heads' does not belong to model 'lstm_seq2seq'"):
        UT.override("model=lstm_seq2seq,num_heads=3")


def test_the_flag_is_named_in_the_message():
    with pytest.raises(UsageError, match="^--decode_hparams: 'beam' is not name=value$"):
        parse_assignments("beam", "--decode_hparams")


def test_a_list_keeps_its_commas():
    assert parse_assignments("a=[1,2],b=(3,4), c='5,6'", "--x") == {"a": "[1,2]", "b": "(3,4)", "c": "5,6"}


@pytest.mark.parametrize("value", ["a", "a,b", "Anna's", 'in "quotes", two', "a (b", "x[1", "", "before_ut,after_ut"])
def test_a_value_that_was_written_is_read_back(value):
    assert parse_assignments(f"a={as_value(value)},b=2", "--x") == {"a": value, "b": "2"}


def test_a_set_cannot_be_changed_in_place():
    with pytest.raises(dataclasses.FrozenInstanceError):
        UT.hidden_size = 3


def test_json_round_trip_and_its_errors():
    hparams = UT.override("hidden_size=64,position_start_index=random,act_epsilon=0.5")
    assert HParams.from_json(hparams.to_json()) == hparams
    with pytest.raises(UsageError, match="no hparam is called 'hiden_size'; near names: hidden_size"):
        HParams.from_json('{"hiden_size": 3}')
    with pytest.raises(UsageError, match="hparam hidden_size='64' is not an integer"):
        HParams.from_json('{"hidden_size": "64"}')


def test_differences_and_relevant_fields():
    assert UT.differences(UT.override("hidden_size=64")) == {"hidden_size": (512, 64)}
    relevant = HParams(model="lstm_seq2seq").relevant()
    assert "num_hidden_layers" in relevant
    assert "num_heads" not in relevant
    assert "act_type" not in relevant


def test_every_field_is_described_and_its_default_is_of_its_type():
    for name, kind, default, models, doc in describe():
        assert doc, name
        assert default is None or type(default).__name__ == kind
        assert models is None or len(models) > 0
