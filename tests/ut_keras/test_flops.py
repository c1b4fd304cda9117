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
