"""Dtypes and numerics: NumPy's values, whatever Numba's would be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fnad.ir.builder import trace
from fnad.ir.types import DTYPES, I64, aval_of
from fnad.ops.arithmetic import add, div, mul, sub
from fnad.ops.comparison import eq, ge, gt, isfinite, isinf, isnan, le, lt, ne, select
from fnad.ops.contraction import dot_general
from fnad.ops.conversion import convert
from fnad.ops.elementary import sqrt
from fnad.ops.piecewise import abs_, sign
from fnad.ops.power import integer_pow
from fnad.ops.shape import broadcast_to, reduce_sum, zeros_like
from fnad.testing import EXECUTORS, Run
from tests.edge_cases.derivatives import gradient, hessian, reverse, value
from tests.together import together


def test_row_43_conversion_to_integer_and_back(run: Run):
    def f(x: Any) -> Any:
        return convert(convert(x, dtype=I64), dtype=x.dtype) * x

    np.testing.assert_array_equal(value(run, f, np.float64(2.5)), 5.0)
    np.testing.assert_array_equal(gradient(run, f, np.float64(2.5)), [2.0])


@pytest.mark.parametrize("source", DTYPES)
def test_row_43_conversions_are_those_of_numpy(source: str, run: Run):
    x: Any = np.array([0, 1, 2, 100]).astype(DTYPES[source])
    converted = lambda x: tuple(convert(x, dtype=target) for target in DTYPES.values())  # noqa: E731
    program = trace(converted, aval_of(x), name="conversions")
    with together() as check:
        for found, target in zip(run(program, [x]), DTYPES.values(), strict=True):
            with check(target):
                expected = (x.real if x.dtype.kind == "c" and target.kind not in "cb" else x).astype(target)
                assert found.dtype == target
                np.testing.assert_array_equal(found, expected)


def test_row_43_conversions_drop_fractions_wrap_and_keep_signs_of_zero(run: Run):
    def to(name: str, x: Any) -> Any:
        return value(run, lambda x: convert(x, dtype=DTYPES[name]), x)

    np.testing.assert_array_equal(to("i64", np.array([-2.7, -0.5, 2.7])), [-2, 0, 2])
    np.testing.assert_array_equal(to("u8", np.array([-1, 256, 300])), [255, 0, 44])
    np.testing.assert_array_equal(to("bool", np.array([0.0, -0.0, np.nan, 1e-300])), [False, False, True, True])
    assert np.signbit(to("f32", np.float64(-0.0)))


def test_row_55_constants_take_the_dtype_beside_them(run: Run):
    x = np.float32(1.5)
    assert value(run, lambda x: x * 2.0, x).dtype == np.float32
    assert value(run, lambda x: select(gt(x, zeros_like(x)), x, zeros_like(x)), x).dtype == np.float32
    assert reverse(run, lambda x: 0.1 * x * x / 3.0, x).dtype == np.float32


def test_row_56_integers_wrap(run: Run):
    def result(f: Any, *xs: Any) -> Any:
        found = value(run, f, *xs)
        assert found.dtype == xs[0].dtype
        return found

    assert result(mul, np.int8(100), np.int8(3)) == 44
    assert result(sub, np.uint8(1), np.uint8(2)) == 255
    assert result(add, np.int32(2**31 - 1), np.int32(1)) == -(2**31)
    assert result(lambda x: integer_pow(x, exponent=2), np.int32(65536 + 1)) == 131073
    assert result(lambda x: reduce_sum(x, axes=(0,)), np.full(3, 100, np.int8)) == 44


def test_row_57_sum_of_many_f32(run: Run):
    x = np.full(10**7, 0.1, np.float32)
    exact = np.float32(10**7 * np.float64(np.float32(0.1)))
    np.testing.assert_allclose(value(run, lambda x: reduce_sum(x, axes=(0,)), x), exact, rtol=2e-7)


def test_row_57_deviation_of_a_constant(run: Run):
    """The mean of equal numbers is that number, so that their deviation is 0; a device rounds the parts of threads."""
    x = np.full(1000, 0.1, np.float32)
    mean = value(run, lambda x: reduce_sum(x, axes=(0,)) / 1000.0, x)
    np.testing.assert_allclose(mean, x[0], rtol=0 if run in EXECUTORS.values() else 8 * 2**-24)


def test_row_58_cotangent_of_a_broadcast_scalar(run: Run):
    count = 2**25
    found = reverse(run, lambda x: broadcast_to(x, (count,)), np.float32(1))
    np.testing.assert_array_equal(found, np.array([33554432], np.float32))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_row_59_division_by_zero(dtype: Any, run: Run):
    x = np.array([1, -1, 0, 1], dtype)
    y = np.array([0, 0, 0, -0.0], dtype)
    np.testing.assert_array_equal(value(run, div, x, y), [np.inf, -np.inf, np.nan, -np.inf])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("f", "numpy"), [(sign, np.sign), (sqrt, np.sqrt), (abs_, np.abs)], ids=str)
def test_row_59_signs_of_zero(f: Any, numpy: Any, dtype: Any, run: Run):
    x = np.array([-0.0, 0.0], dtype)
    np.testing.assert_array_equal(np.signbit(value(run, f, x)), np.signbit(numpy(x)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_row_60_tests_for_nan_and_infinity(dtype: Any, run: Run):
    x = np.array([np.nan, np.inf, -np.inf, 0, 1], dtype)
    for f, numpy in ((isnan, np.isnan), (isinf, np.isinf), (isfinite, np.isfinite)):
        np.testing.assert_array_equal(value(run, f, x), numpy(x))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_row_60_comparisons_with_nan(dtype: Any, run: Run):
    values = np.array([np.nan, np.inf, -np.inf, 0, -0.0, 1], dtype)
    x, y = (a.ravel() for a in np.meshgrid(values, values))
    for f, numpy in ((eq, np.equal), (ne, np.not_equal), (lt, np.less), (le, np.less_equal), (gt, np.greater)):
        np.testing.assert_array_equal(value(run, f, x, y), numpy(x, y))
    np.testing.assert_array_equal(value(run, ge, x, y), np.greater_equal(x, y))


def test_row_61_contraction_of_converted_operands(run: Run):
    x, y = np.array([1.5, 2.0], np.float32), np.array([0.1, 0.2])

    def f(x: Any, y: Any) -> Any:
        return dot_general(convert(x, dtype=y.dtype), y, contract=((0,), (0,)), batch=((), ()))

    assert value(run, f, x, y).dtype == np.float64
    np.testing.assert_allclose(value(run, f, x, y), np.dot(x, y))
    np.testing.assert_allclose(gradient(run, f, x, y)[:2], y, rtol=1e-6)


def test_row_61_contraction_of_integers_wraps(run: Run):
    x, y = np.array([[100, 2]], np.int8), np.array([[3], [1]], np.int8)
    found = value(run, lambda x, y: dot_general(x, y, contract=((1,), (0,)), batch=((), ())), x, y)
    assert (found.dtype, found.tolist()) == (np.int8, [[46]])


def test_row_61_hessian_of_a_contraction(run: Run):
    x = np.array([1.0, 2.0])
    f = lambda x: dot_general(x, x, contract=((0,), (0,)), batch=((), ()))  # noqa: E731
    np.testing.assert_array_equal(hessian(run, f, x), 2 * np.eye(2))
