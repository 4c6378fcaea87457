"""Points where a function is not smooth: the mean of the one-sided derivatives, ties shared, 0 at singular points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fnad.ops.comparison import gt
from fnad.ops.conversion import convert
from fnad.ops.elementary import arcsin, cbrt, log, sqrt
from fnad.ops.piecewise import abs_, ceil, floor, fmax, fmin, fmod, maximum, minimum, remainder, rint, sign, trunc
from fnad.ops.power import arctan2, hypot, integer_pow
from fnad.ops.reduction import argmax, reduce_max, reduce_min
from fnad.ops.shape import full_like, zeros_like
from fnad.testing import Run
from tests.edge_cases.derivatives import (
    basis,
    forward,
    forward_over_reverse,
    gradient,
    hessian,
    program_of,
    reverse,
    value,
)

floats = pytest.mark.parametrize("dtype", [np.float64, np.float32])


@floats
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_row_08_abs_at_zero(zero: float, dtype: Any, run: Run):
    np.testing.assert_array_equal(gradient(run, abs_, dtype(zero)), [0])
    np.testing.assert_array_equal(hessian(run, abs_, dtype(zero)), [[0]])


def relu(x: Any) -> Any:
    return maximum(x, zeros_like(x))


@floats
def test_row_09_maximum_in_a_tie(dtype: Any, run: Run):
    np.testing.assert_array_equal(gradient(run, relu, dtype(0)), [0.5])
    np.testing.assert_array_equal(gradient(run, lambda x: relu(x) - relu(-x), dtype(0)), [1])
    for extremum in (maximum, minimum, fmax, fmin):
        np.testing.assert_array_equal(gradient(run, extremum, dtype(2), dtype(2)), [0.5, 0.5])
    np.testing.assert_array_equal(gradient(run, maximum, dtype(np.inf), dtype(np.inf)), [0.5, 0.5])


@floats
def test_row_09_fmax_leaves_a_nan_out(dtype: Any, run: Run):
    for extremum in (fmax, fmin):
        np.testing.assert_array_equal(gradient(run, extremum, dtype(np.nan), dtype(2)), [0, 1])


@floats
def test_row_10_max_shares_a_tie(dtype: Any, run: Run):
    x = np.array([1, 1, 0], dtype)
    np.testing.assert_array_equal(gradient(run, lambda x: reduce_max(x, axes=(0,)), x), [0.5, 0.5, 0])
    np.testing.assert_array_equal(gradient(run, lambda x: reduce_min(x, axes=(0,)), -x), [0.5, 0.5, 0])
    x = np.array([[np.inf, np.inf], [-np.inf, 1]], dtype)
    np.testing.assert_array_equal(gradient(run, lambda x: reduce_max(x, axes=(1,)), x), [0.5, 0.5, 0, 1])
    np.testing.assert_array_equal(gradient(run, lambda x: reduce_max(x, axes=()), x), [1, 1, 1, 1])


@floats
def test_row_10_max_of_nan_belongs_to_the_nans(dtype: Any, run: Run):
    x = np.array([np.nan, 1, np.nan], dtype)
    np.testing.assert_array_equal(gradient(run, lambda x: reduce_max(x, axes=(0,)), x), [0.5, 0, 0.5])


@floats
def test_row_11_clip_at_a_bound(dtype: Any, run: Run):
    def clip(x: Any) -> Any:
        return minimum(maximum(x, zeros_like(x)), full_like(x, 1))

    np.testing.assert_array_equal(gradient(run, clip, np.array([-1, 0, 0.5, 1, 2], dtype)), [0, 0.5, 1, 0.5, 0])


@floats
def test_row_13_infinite_slopes(dtype: Any, run: Run):
    for f, x in ((sqrt, 0), (cbrt, 0), (arcsin, 1), (log, 0)):
        np.testing.assert_array_equal(gradient(run, f, dtype(x)), [np.inf])
    np.testing.assert_array_equal(gradient(run, lambda x: sqrt(x * x), dtype(0)), [np.nan])


@floats
def test_row_14_polar_coordinates_at_the_origin(dtype: Any, run: Run):
    zero = dtype(0)
    np.testing.assert_array_equal(gradient(run, hypot, zero, zero), [0, 0])
    np.testing.assert_array_equal(gradient(run, arctan2, zero, zero), [0, 0])
    np.testing.assert_array_equal(gradient(run, hypot, zero, dtype(2)), [0, 1])
    np.testing.assert_array_equal(gradient(run, arctan2, zero, dtype(2)), [0.5, 0])
    np.testing.assert_array_equal(gradient(run, lambda x, y: integer_pow(hypot(x, y), exponent=2), zero, zero), [0, 0])


@floats
def test_row_14_second_derivatives_beside_the_origin(dtype: Any, run: Run):
    zero, two = dtype(0), dtype(2)
    np.testing.assert_array_equal(hessian(run, hypot, zero, two), [[0.5, 0], [0, 0]])
    np.testing.assert_array_equal(hessian(run, arctan2, zero, two), [[0, -0.25], [-0.25, 0]])


@floats
def test_row_14_second_derivatives_at_the_origin_are_not_finite(dtype: Any, run: Run):
    """They are infinite: a finite number there would be wrong in silence."""
    zeros = [np.zeros((), dtype), np.zeros((), dtype)]
    program = program_of(hypot, *zeros)
    assert not np.isfinite(np.diag(forward_over_reverse(run, program, zeros, basis(zeros)))).any()


@floats
@pytest.mark.parametrize("f", [rint, floor, ceil, trunc, sign], ids=str)
def test_row_15_rounding_has_derivative_zero(f: Any, dtype: Any, run: Run):
    x = np.array([-1.5, -0.0, 0.5, 2.5, 3.0], dtype)
    np.testing.assert_array_equal(gradient(run, f, x), np.zeros(5))


@floats
def test_row_15_comparisons_and_positions_have_derivative_zero(dtype: Any, run: Run):
    x = np.array([1, 3, 2], dtype)
    np.testing.assert_array_equal(gradient(run, lambda x: convert(gt(x, zeros_like(x)), dtype=x.dtype), x), [0, 0, 0])
    np.testing.assert_array_equal(gradient(run, lambda x: convert(argmax(x, axis=0), dtype=x.dtype), x), [0, 0, 0])


@floats
def test_row_16_remainders(dtype: Any, run: Run):
    np.testing.assert_array_equal(gradient(run, remainder, dtype(5), dtype(3)), [1, -1])
    np.testing.assert_array_equal(gradient(run, remainder, dtype(-5), dtype(3)), [1, 2])
    np.testing.assert_array_equal(gradient(run, remainder, dtype(6), dtype(3)), [1, -2])
    np.testing.assert_array_equal(gradient(run, fmod, dtype(5), dtype(3)), [1, -1])
    np.testing.assert_array_equal(gradient(run, fmod, dtype(-5), dtype(3)), [1, 1])
    np.testing.assert_array_equal(value(run, remainder, dtype(-5), dtype(3)), 1)
    np.testing.assert_array_equal(value(run, fmod, dtype(-5), dtype(3)), -2)


def test_row_16_quotient_that_rounds_up_to_an_integer(run: Run):
    """The quotient rounds to 3 while x is below 3 y: what counts is what the remainder counted."""
    y = 0.1
    x = np.nextafter(np.float64(3 * y), 0)
    x = np.nextafter(x, 0)
    rest = np.fmod(x, y)
    np.testing.assert_array_equal(gradient(run, fmod, x, np.float64(y)), [1, -np.rint((x - rest) / y)])


@floats
def test_row_72_products_of_zero_and_infinity(dtype: Any, run: Run):
    """Never a wrong finite number: both derivatives are 0 in truth."""
    for f in (lambda x: x * sqrt(x), lambda x: sqrt(integer_pow(x, exponent=3))):
        for mode in (forward, reverse):
            (found,) = mode(run, f, dtype(0))
            assert np.isnan(found) or found == 0
