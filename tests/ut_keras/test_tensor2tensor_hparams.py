"""tensor2tensor's hyperparameters become ours: what is called otherwise, what is fixed, what is refused."""

import pytest

from ut_keras.errors import UserError
from ut_keras.hparams import HParams
from ut_keras.tensor2tensor_hparams import from_tensor2tensor

UT = HParams(model="universal_transformer")
PLAIN = HParams(model="transformer")


def ours(values, base=UT, changes=None):
    return from_tensor2tensor(values, base, changes)[0]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"recurrence_type": "act"}, {"act_remainder_at_limit": False, "act_count_padding": True}),
        ({"recurrence_type": "act", "act_type": "global"}, {"global_over": "all"}),
        ({"recurrence_type": "dwa"}, {"dwa_softmax": "channels"}),
        (
            {"recurrence_type": "gru", "num_inrecurrence_layers": 2},
            {"gru_mixes": "input", "num_inrecurrence_layers": 1},
        ),
        ({"recurrence_type": "basic", "use_memory_as_final_state": True}, {"use_memory_as_final_state": False}),
        ({"position_start_index": "step"}, {"position_step_length": "padded"}),
        ({"shared_embedding_and_softmax_weights": 0}, {"shared_embedding_and_softmax_weights": False}),
        ({"optimizer": "Adafactor"}, {"optimizer": "adafactor"}),
        ({"max_length": 0, "batch_size": 1024}, {"max_length": 1024}),
        (
            {"optimizer": "adam", "optimizer_multistep_accumulate_steps": 8},
            {"optimizer_multistep_accumulate_steps": 0},
        ),
        (
            {"optimizer": "MultistepAdam", "optimizer_multistep_accumulate_steps": 8},
            {"optimizer": "adam", "optimizer_multistep_accumulate_steps": 8},
        ),
        ({"max_length": 0}, {"max_length": UT.batch_size}),
        ({"gate_ffn_layer": "dense_dropconnect", "dropconnect_dropout": 0.5}, {"dropconnect_dropout": 0.0}),
        # hparams.json of the first releases: one schedule, without a name
        ({"learning_rate_decay_scheme": "noam", "learning_rate": 0.2}, {"learning_rate_schedule": "legacy"}),
        ({"layer_prepostprocess_dropout": 0.3}, {"layer_prepostprocess_dropout": 0.3}),
        ({}, {"timing_layout": "t2t", "act_count_padding": False, "gru_mixes": "state"}),
    ],
)
def test_values(values, expected):
    found = ours(values)
    assert {name: getattr(found, name) for name in expected} == expected


def test_signals_are_tensor2tensors_whatever_the_set_says():
    base = UT.override("timing_layout=paper,input_position_numbering=end")
    found = ours({}, base)
    assert (found.timing_layout, found.input_position_numbering) == ("t2t", "start")


def test_a_plain_transformer_has_positions_where_pos_says_so():
    assert ours({"pos": "timing"}, PLAIN).add_position_timing_signal
    assert not ours({"pos": None}, PLAIN).add_position_timing_signal
    assert ours({"pos": None}).add_position_timing_signal, "a recurrence adds its own"


def test_names_without_a_counterpart_come_back_and_those_of_other_models_do_not():
    values = {"moe_k": 2, "compress_steps": 0, "prepend_mode": "none", "num_hidden_layers": 6, "hidden_size": 64}
    hparams, unused = from_tensor2tensor(values, UT)
    assert (hparams.hidden_size, unused) == (64, ["compress_steps", "moe_k"])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"prepend_mode": "prepend_inputs_masked_attention"}, "prepend_mode='prepend_inputs_masked_attention' of"),
        ({"vocab_divisor": 128}, "vocab_divisor=128 of tensor2tensor is not supported; supported: 1"),
        ({"weight_dtype": "bfloat16"}, "weight_dtype='bfloat16'"),
        ({"pos": "timing", "add_position_timing_signal": False}, "pos='timing'"),
        ({"shared_embedding": True, "shared_embedding_and_softmax_weights": False}, "shared_embedding=True"),
        ({"learning_rate_decay_scheme": "exp"}, "learning_rate_decay_scheme='exp'"),
        ({"layer_preprocess_sequence": "d"}, "layer_preprocess_sequence='d' is not one of n, none; --hparams="),
        ({"filter_size": None}, "NAME=VALUE puts another value in its place"),
    ],
)
def test_what_is_not_computed_here_is_one_line(values, message):
    with pytest.raises(UserError, match="of tensor2tensor") as error:
        ours(values)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_a_change_wins_and_its_old_value_is_not_looked_at():
    changes = {"layer_preprocess_sequence": "n", "hidden_size": "32"}
    found = ours({"layer_preprocess_sequence": "d", "hidden_size": 64}, changes=changes)
    assert (found.layer_preprocess_sequence, found.hidden_size) == ("n", 32)
