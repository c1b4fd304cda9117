"""The length penalty."""

import numpy as np
import pytest

from tests.table_decoder import penalty
from ut_keras.decoding.penalty import length_penalty


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 2.0])
def test_penalty_is_the_formula(alpha):
    expected = [[penalty(length, alpha) for length in (1, 2, 7)], [penalty(length, alpha) for length in (40, 0, 1)]]
    found = length_penalty(np.array([[1, 2, 7], [40, 0, 1]]), alpha)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert found.dtype == "float32"


def test_one_id_has_no_penalty_and_alpha_0_has_none_at_all():
    np.testing.assert_array_equal(length_penalty(np.array([1]), 0.6), [1.0])
    np.testing.assert_array_equal(length_penalty(np.array([1, 50, 0]), 0.0), [1.0, 1.0, 1.0])
