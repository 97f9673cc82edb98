"""Norms that neither overflow nor vanish."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from healthwatch.monitors.norms import squared_sum

LARGEST = float(np.finfo(np.float32).max)


def expected(values: np.ndarray) -> float:
    return math.fsum(float(value) ** 2 for value in values.ravel())


@given(
    arrays.arrays(
        st.sampled_from([np.float32, np.float64, np.float16]),
        arrays.array_shapes(max_dims=3, max_side=12),
        elements=st.floats(-100, 100, width=16),
    )
)
def test_small_and_large_arrays_of_every_float_type(values: np.ndarray) -> None:
    assert squared_sum(values) == pytest.approx(expected(values), rel=1e-6, abs=1e-300)


@given(
    arrays.arrays(np.float32, st.integers(1, 50), elements=st.floats(-LARGEST, LARGEST, width=32)),
)
def test_any_finite_float32_has_a_finite_norm(values: np.ndarray) -> None:
    assert squared_sum(values) == pytest.approx(expected(values), rel=1e-5, abs=1e-300)


def test_float16_at_its_limit() -> None:
    assert math.sqrt(squared_sum(np.full(10_000, 65504, np.float16))) == pytest.approx(6_550_400, rel=1e-6)


def test_float32_near_its_limit() -> None:
    assert math.sqrt(squared_sum(np.full(4, 3e38, np.float32))) == pytest.approx(6e38, rel=1e-6)


def test_float32_whose_squares_underflow() -> None:
    assert math.sqrt(squared_sum(np.full(100, 1e-25, np.float32))) == pytest.approx(1e-24, rel=1e-6)


def test_longer_than_one_piece() -> None:
    values = np.full((1 << 20) + 7, 1e-25, np.float32)
    assert squared_sum(values) == pytest.approx(values.size * float(values[0]) ** 2, rel=1e-9)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_nan_and_infinity_pass_through(dtype: type) -> None:
    assert math.isnan(squared_sum(np.array([1, np.nan], dtype)))
    assert squared_sum(np.array([1, -np.inf], dtype)) == math.inf
    assert math.isnan(squared_sum(np.array([np.inf, np.nan], dtype)))


def test_nothing_and_zero() -> None:
    assert squared_sum(np.zeros(0, np.float32)) == 0
    assert squared_sum(np.zeros(5, np.float16)) == 0


def test_integers_and_strided_views() -> None:
    assert squared_sum(np.arange(4)) == 14
    assert squared_sum(np.arange(8, dtype=np.float32)[::2]) == 4 + 16 + 36
