"""How long an answer may become, by numbers, arrays and tensors."""

import numpy as np
import pytest
import tensorflow as tf

import problems
from tests.scripted import CopyDigits, LastSentence
from trainer.output_limit import OutputLimit
from ut_keras.errors import UsageError


@pytest.mark.parametrize(
    ("options", "limits"),
    [
        ({}, [2, 3, 12]),
        ({"extra_length": 0}, [0, 1, 10]),
        ({"extra_length": 5}, [5, 6, 15]),
        ({"max_output_length": 7}, [2, 3, 7]),
        ({"extra_length": 5, "max_output_length": 6}, [5, 6, 6]),
    ],
)
def test_limit_of_numbers_arrays_and_tensors(options, limits):
    limit, lengths = OutputLimit(CopyDigits(), **options), [0, 1, 10]
    assert [limit(length) for length in lengths] == limits
    assert all(type(limit(length)) is int for length in lengths)
    np.testing.assert_array_equal(limit(np.array(lengths)), limits)
    assert limit(np.int64(1)) == limits[1]
    compiled = tf.function(limit, input_signature=[tf.TensorSpec([None], tf.int32)])
    found = compiled(tf.constant(lengths))
    assert found.dtype == tf.int32
    np.testing.assert_array_equal(found, limits)


def test_extra_length_of_a_language_model_is_all_of_the_continuation(tiny_dir):
    limit = OutputLimit(problems.get("tiny_text"), extra_length=4)
    assert limit(100) == 4
    np.testing.assert_array_equal(limit(tf.constant([1, 9])), [4, 4])


def test_class_has_no_length():
    for name in ("extra_length", "max_output_length"):
        with pytest.raises(UsageError, match=f"last_sentence answers with a class.*leave {name} out"):
            OutputLimit(LastSentence(), **{name: 3})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"extra_length": -1}, "extra_length=-1 is not an integer from 0 to"),
        ({"extra_length": 2**31}, "extra_length=2147483648 is not"),
        ({"max_output_length": 0}, "max_output_length=0 is not an integer from 1 to"),
        ({"max_output_length": 2.5}, "max_output_length=2.5 is not"),
    ],
)
def test_numbers_out_of_range_are_refused(options, message):
    with pytest.raises(UsageError, match=message):
        OutputLimit(CopyDigits(), **options)
