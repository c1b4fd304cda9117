"""The count of floating-point operations: by hand on a tiny model, and by TensorFlow's own counting."""

import pytest
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from ut_keras.hparams import Features, HParams
from ut_keras.models.build import build_model
from ut_keras.models.flops import forward_flops

SEQUENCE = Features("sequence", target_vocabulary_size=11, input_vocabulary_size=11)
TINY = {"hidden_size": 8, "filter_size": 16, "num_heads": 2}


def test_one_step_by_hand():
    hparams = HParams(model="universal_transformer", num_rec_steps=1, **TINY)
    encoder = 5 * (8 * 64 + 4 * 8 * 5 + 4 * 8 * 16)  # five positions over five keys
    keys_and_values = 4 * 64 * 5
    decoder = 3 * (8 * 64 + 4 * 8 * 3 + 4 * 8 * 16 + 4 * 64 + 4 * 8 * 5)
    softmax = 2 * 8 * 11 * 3
    assert forward_flops(hparams, SEQUENCE, 5, 3) == encoder + keys_and_values + decoder + softmax


def test_halting_counts_to_its_limit():
    basic = HParams(model="universal_transformer", num_rec_steps=7, **TINY)
    act = HParams(model="universal_transformer", recurrence_type="act", act_max_steps=7, **TINY)
    assert forward_flops(act, SEQUENCE, 5, 3) == forward_flops(basic, SEQUENCE, 5, 3)


def test_mixed_in_blocks_count_like_those_of_a_stack():
    mixed = HParams(model="universal_transformer", num_rec_steps=1, mix_with_transformer="before_ut,after_ut", **TINY)
    plain = HParams(model="transformer", num_hidden_layers=5, **TINY)
    assert forward_flops(mixed, SEQUENCE, 5, 3) == forward_flops(plain, SEQUENCE, 5, 3)


@pytest.mark.parametrize(
    ("options", "each", "once"),
    [
        ({"recurrence_type": "highway"}, 0, 2 * 64),
        ({"recurrence_type": "skip", "gates_inputs": "st", "couple_carry_transform_gates": False}, 2 * 4 * 64, 0),
        ({"recurrence_type": "highway", "gates_inputs": "s", "gate_ffn_layer": "dense_relu_dense"}, 4 * 8 * 16, 0),
        ({"recurrence_type": "dwa"}, 2 * 64, 2 * 64),
        ({"recurrence_type": "dwa", "dwa_elements": False}, 2 * 8, 2 * 8),
        ({"recurrence_type": "rnn"}, 4 * 64 - 4 * 8 * 16, 0),
        ({"recurrence_type": "gru"}, 3 * 4 * 64 - 4 * 8 * 16, 0),
        ({"recurrence_type": "lstm", "add_ffn_unit_to_the_transition_function": True}, 4 * 4 * 64, 0),
        ({"add_sru": True}, 2 * 2 * 3 * 64, 0),
    ],
)
def test_a_recurrence_type_adds_its_dense_layers_and_a_cell_has_no_transition(options, each, once):
    """Eight positions, three steps; by hand."""
    basic = HParams(model="universal_transformer", num_rec_steps=3, **TINY)
    other = HParams(model="universal_transformer", num_rec_steps=3, **TINY, **options)
    more = forward_flops(other, SEQUENCE, 5, 3) - forward_flops(basic, SEQUENCE, 5, 3)
    assert more == 8 * (3 * each + once)


@pytest.mark.parametrize(
    ("hparams", "features"),
    [
        (HParams(model="transformer", num_hidden_layers=2, **TINY), SEQUENCE),
        (HParams(model="transformer_lm", num_hidden_layers=2, **TINY), Features("sequence", 11)),
        (HParams(model="transformer_encoder", num_hidden_layers=2, **TINY), Features("class", 11, 11)),
    ],
)
def test_products_are_what_tensorflow_counts(hparams, features):
    model = build_model(hparams, features)
    x = {"inputs": tf.fill([1, 5], 3), "targets": tf.fill([1, 3], 3)}
    if not features.input_vocabulary_size:
        del x["inputs"]
    function = tf.function(lambda: model(x)).get_concrete_function()
    frozen = convert_variables_to_constants_v2(function).graph
    options = tf.compat.v1.profiler.ProfileOptionBuilder(tf.compat.v1.profiler.ProfileOptionBuilder.float_operation())
    profile = tf.compat.v1.profiler.profile(frozen, options=options.with_empty_output().build())
    source = 5 if features.input_vocabulary_size else 0
    target = 1 if features.target == "class" else 3
    counted = forward_flops(hparams, features, source, target)
    # TensorFlow counts norms, softmax and additions too, which weigh much at these sizes.
    assert counted <= profile.total_float_ops <= 1.6 * counted
