"""Strong products and quotients, and the operators on symbols."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fnad.ir.builder import trace
from fnad.ir.types import DTYPES, Aval
from fnad.ops.arithmetic import strong_div, strong_mul
from fnad.testing import Run
from tests.edge_cases.derivatives import hessian, value

NAN, INF = np.nan, np.inf


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
def test_strong_product_is_zero_where_the_cotangent_is(dtype: Any, run: Run):
    ct = np.array([0, 0, -0.0, 2, 2, NAN], dtype)
    partial = np.array([INF, NAN, INF, 3, NAN, 0], dtype)
    found = value(run, strong_mul, ct, partial)
    np.testing.assert_array_equal(found[:3], 0)
    np.testing.assert_array_equal(found[3], 6)
    assert np.isnan(found[4:]).all()


def test_strong_product_keeps_an_infinite_derivative(run: Run):
    np.testing.assert_array_equal(value(run, strong_mul, np.float64(2), np.float64(INF)), INF)


def test_strong_quotient_is_zero_where_the_dividend_is(run: Run):
    x, y = np.array([0.0, 0.0, 1.0, 6.0]), np.array([0.0, NAN, 0.0, 3.0])
    np.testing.assert_array_equal(value(run, strong_div, x, y), [0, 0, INF, 2])


def test_strong_product_has_the_derivative_of_the_product(run: Run):
    """A select in its place would lose the mixed derivative at 0 (row 71)."""
    np.testing.assert_array_equal(hessian(run, strong_mul, np.float64(0), np.float64(3)), [[0, 1], [1, 0]])


def test_a_python_number_takes_dtype_and_shape_of_the_symbol():
    program = trace(lambda x: [1 - 2 * x / 3 + (-x)], Aval(DTYPES["f32"], (2,)))
    assert str(program.out_avals[0]) == "f32[2]"
    assert {str(r.aval) for e in program.equations for r in e.results} == {"f32[2]"}
