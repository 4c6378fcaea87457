"""Shapes and dtypes: results are NumPy's, and a gradient has the shape and dtype of its argument."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fnad import config, errors, grad, jit, jvp, tree, value_and_grad, vjp
from fnad import map as fnad_map
from fnad.testing import assert_close, tolerance
from tests.edge_cases.ways import check

floats = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def as_numpy(f: Any, *xs: Any) -> Any:
    """Assert that a function gives what it gives without fnad, to the dtype; return that."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = np.asarray(f(*xs))
    for executor in ("interpreter", "compiled"):
        with config.override(executor=executor):
            found = np.asarray(jit(f)(*xs))
        assert found.dtype == expected.dtype, (executor, found.dtype, expected.dtype)
        assert_close(found, expected, tolerance(expected.dtype))
    return expected


# ---- row 41 ----------------------------------------------------------------------------------------------------------

SHAPES: dict[str, tuple[Any, list[tuple[int, ...]]]] = {
    "outer product": (lambda x, y: x * y, [(3, 1), (1, 3)]),
    "scalar and array": (lambda x, y: x * y, [(), (4,)]),
    "one and several": (lambda x, y: x * y, [(1,), (3,)]),
    "leading axes": (lambda x, y: x * y, [(2, 3, 1), (4,)]),
    "empty": (lambda x, y: x * y, [(0, 3), (3,)]),
    "keepdims": (lambda x: x / x.sum(axis=1, keepdims=True), [(2, 3)]),
    "several axes": (lambda x: x.sum(axis=(0, -1)) ** 2, [(2, 3, 4)]),
    "no axes": (lambda x: x.sum(axis=()) ** 2, [(2, 3)]),
    "where": (lambda x: np.sum(x**2, axis=0, where=[True, False, True]), [(2, 3)]),
    "initial": (lambda x: np.max(x, axis=0, initial=0.7), [(4, 3)]),
    "initial of a product": (lambda x: np.prod(x, axis=1, initial=2.0), [(2, 3)]),
    "ddof": (lambda x: np.var(x, axis=0, ddof=1), [(4, 2)]),
    "std keepdims": (lambda x: x / np.std(x, axis=-1, keepdims=True), [(2, 3)]),
    "mean of some": (lambda x: np.mean(x, where=np.array([True, False, True])), [(3,)]),
    "broadcast_to": (lambda x: np.broadcast_to(x, (4, 2, 3)) ** 2, [(2, 1)]),
    "squeeze": (lambda x: np.squeeze(x) ** 2, [(1, 3, 1)]),
    "expand": (lambda x, y: x[:, None] * y[None], [(2,), (3,)]),
    "matmul of a vector": (lambda x, y: x @ y, [(3,), (3, 2)]),
    "matmul with broadcasting": (lambda x, y: x @ y, [(4, 1, 2, 3), (5, 3, 2)]),
    "dot of scalars": (np.dot, [(), (3,)]),
    "diagonal": (lambda x: np.einsum("ii->i", x) ** 2, [(3, 3)]),
    "rows": (lambda x: x[[0, 0, 1]] ** 2, [(3, 2)]),
}


@floats
@pytest.mark.parametrize("name", SHAPES)
def test_row_41_cotangents_have_the_shape_of_the_primal(name: str, dtype: Any) -> None:
    f, shapes = SHAPES[name]
    rng = np.random.default_rng(0)
    xs = tuple(np.asarray(rng.uniform(0.5, 1, shape), dtype) for shape in shapes)
    dxs = tuple(np.asarray(rng.uniform(-1, 1, shape), dtype) for shape in shapes)
    output, pullback = vjp(f, *xs)
    ct = np.asarray(rng.uniform(-1, 1, np.shape(output)), dtype)
    tangent = jvp(f, xs, dxs)[1]
    assert (np.shape(tangent), tangent.dtype) == (np.shape(f(*xs)), dtype)
    for run in (lambda f: f, jit):
        cts = run(lambda *xs: vjp(f, *xs)[1](ct))(*xs)
        for x, back in zip(xs, cts, strict=True):
            assert (np.shape(back), back.dtype) == (x.shape, dtype)
        paired = sum(np.sum(back * dx) for back, dx in zip(cts, dxs, strict=True))
        assert_close(paired, np.sum(ct * tangent), tolerance(np.dtype(dtype), 1), scale=1.0)
    del pullback


# ---- rows 42 to 46 ---------------------------------------------------------------------------------------------------


def test_row_42_gradient_of_a_narrow_argument_beside_wide_ones() -> None:
    wide, x = np.array([1.0, 2.0]), np.array([3, 4], np.float32)
    f = lambda x: np.sum(x * wide)  # noqa: E731
    value, gradient = value_and_grad(f)(x)
    assert (value.dtype, gradient.dtype) == (np.float64, np.float32)
    check(f, x, value=11, gradient=[1, 2])
    check(lambda x, y: np.sum(x * y), x, wide, value=11, gradient=[1, 2, 3, 4])


@floats
def test_row_43_conversion_to_integer_and_back(dtype: Any) -> None:
    check(lambda x: x.astype(int) * x, dtype(2.5), value=5, gradient=[2], hessian=[[0]])
    check(lambda x: np.floor(x).astype(np.int32).astype(x.dtype) * x, dtype(2.5), value=5, gradient=[2])
    check(lambda x: x.astype(bool) * x, dtype(2.5), value=2.5, gradient=[1])


@pytest.mark.parametrize(
    "x", [3, True, np.int32(3), np.array([1, 2]), np.array([True]), np.uint8(1), {"a": True, "b": [2]}], ids=repr
)
def test_row_44_integers_and_bools_have_no_derivative(x: Any) -> None:
    for transform in (grad, value_and_grad, lambda f: jit(grad(f)), lambda f: lambda x: vjp(f, x)):
        with pytest.raises(errors.NonDifferentiableArgumentError, match="has no derivative"):
            transform(lambda x: 1.0)(x)
    with pytest.raises(errors.NonDifferentiableArgumentError, match="has no derivative"):
        jvp(lambda x: 1.0, (x,), (x,))


@pytest.mark.slow
@floats
def test_row_45_repeated_rows_add_up(dtype: Any) -> None:
    check(lambda x: x[[0, 0, 1]].sum(), np.ones(3, dtype), value=3, gradient=[2, 1, 0])
    check(lambda x: np.take(x, [0, 0, -2]).sum(), np.ones(3, dtype), value=3, gradient=[2, 1, 0])
    check(lambda x: x[np.array([True, False, True])].sum(), np.ones(3, dtype), value=2, gradient=[1, 0, 1])
    check(lambda x: np.einsum("ii->", x), np.ones((2, 2), dtype), value=2, gradient=[1, 0, 0, 1])


@pytest.mark.parametrize("index", [3, -4, [0, 3], np.array([[-4]]), (slice(None), 1)])
def test_row_46_index_out_of_range(index: Any) -> None:
    for run in (grad, jit, lambda f: jit(grad(f))):
        with pytest.raises(IndexError):
            run(lambda x: np.sum(x[index]))(np.ones(3))


@pytest.mark.parametrize("executor", ["interpreter", "compiled"])
@pytest.mark.parametrize("i", [3, -4])
def test_row_46_index_out_of_range_found_at_run_time(i: int, executor: Any) -> None:
    f = jit(lambda x, i: np.take(x, i))
    g = jit(lambda x, i: x[i])
    with config.override(executor=executor):
        assert f(np.arange(3.0), -1) == g(np.arange(3.0), np.int64(-1)) == 2
        for run in (f, g):
            with pytest.raises(IndexError):
                run(np.arange(3.0), i)


# ---- rows 55 to 61: NumPy against Numba ------------------------------------------------------------------------------


def test_row_55_a_python_number_takes_the_dtype_beside_it() -> None:
    x, c = np.array([1.5, -1], np.float32), np.array([True, False])
    for f in (
        lambda x: x * 2.0,
        lambda x: np.where(c, x, 0.0),
        lambda x: 1 / (1 + np.exp(-x)),
        lambda x: np.maximum(x, 0.0) ** 2,
        lambda x: np.full_like(x, 0.1) + x,
        lambda x: np.clip(x, 0.0, 0.1),
    ):
        assert as_numpy(f, x).dtype == np.float32
        assert grad(lambda x, f=f: np.sum(f(x)))(x).dtype == np.float32
    assert as_numpy(lambda x: x * np.float64(2), x).dtype == np.float64


def test_row_55_a_weak_argument() -> None:
    x = np.ones(2, np.float32)
    assert jit(lambda x, c: x * c)(x, 2.0).dtype == np.float32
    assert jit(lambda x, c: x * c)(x, np.float64(2)).dtype == np.float64
    assert jit(lambda x, c: x * (c + 1))(x, 2).dtype == np.float32


def test_row_56_integers_promote_and_wrap() -> None:
    i64, f32 = np.array([1, 2]), np.array([0.5, 1], np.float32)
    assert as_numpy(lambda x, y: x * y, i64, f32).dtype == np.float64
    assert as_numpy(lambda x: x * 3, np.int8(100)) == 44
    assert as_numpy(lambda x, y: x - y, np.uint8(1), np.uint8(2)) == 255
    assert as_numpy(lambda x: x + 1, np.int32(2**31 - 1)) == -(2**31)
    assert as_numpy(lambda x: x**2, np.array([70000], np.int32)).dtype == np.int32
    assert as_numpy(lambda x: np.sum(x), np.full(3, 100, np.int8)) == 300
    assert as_numpy(lambda x: np.prod(x), np.full(3, 100, np.uint8)).dtype == np.uint64
    assert as_numpy(lambda x: -x, np.uint16(1)) == 65535
    assert as_numpy(lambda x: abs(x), np.int8(-128)) == -128
    assert as_numpy(lambda x, y: x // y, np.array([-7, 7, 5]), np.array([2, -2, 0])).tolist() == [-4, -4, 0]
    assert as_numpy(lambda x, y: x % y, np.array([-7, 7, 5]), np.array([2, -2, 0])).tolist() == [1, -1, 0]
    assert as_numpy(lambda x: x << 3, np.int8(100)) == 32
    assert as_numpy(lambda x: x / 2, np.int32(3)).dtype == np.float64
    assert as_numpy(lambda x: np.exp(x), np.array([1], np.int16)).dtype == np.float32
    assert as_numpy(lambda x, y: x == y, np.array([-1]), np.array([2**64 - 1], np.uint64)).tolist() == [False]


def test_row_56_bools() -> None:
    x, y = np.array([True, False, True]), np.array([True, True, False])
    for f in (lambda x, y: x + y, lambda x, y: x * y, lambda x, y: x & y, lambda x, y: x ^ y, lambda x, y: ~x | y):
        assert as_numpy(f, x, y).dtype == bool
    assert as_numpy(lambda x, y: np.sum(x) + np.mean(y), x, y).dtype == np.float64
    assert as_numpy(lambda x: x.cumsum(), x).tolist() == [1, 1, 2]


@pytest.mark.parametrize("f", [lambda x: x**-1, lambda x: np.power(x, -1), lambda x: x ** np.array([-1, -1])])
def test_row_56_negative_power_of_an_integer(f: Any) -> None:
    with pytest.raises(ValueError, match="Integers to negative integer powers are not allowed"):
        jit(f)(np.array([1, 2]))


def test_row_57_sum_of_many_narrow_floats() -> None:
    x = np.full(10**7, 0.1, np.float32)
    exact = 10**7 * float(np.float32(0.1))
    for executor in ("interpreter", "compiled"):
        with config.override(executor=executor):
            assert abs(jit(np.sum)(x) - exact) <= np.spacing(np.float32(exact))
            assert jit(np.mean)(x) == np.float32(0.1)


@floats
def test_row_57_deviation_of_a_constant(dtype: Any) -> None:
    for x in (np.full(1000, 0.1, np.float32), np.full(10**6, 0.5, dtype)):
        for executor in ("interpreter", "compiled"):
            with config.override(executor=executor):
                assert jit(np.std)(x) == jit(np.var)(x) == 0


@pytest.mark.slow
def test_row_58_cotangent_of_a_broadcast_number() -> None:
    ones = np.ones(2**24 + 2**20, np.float32)  # from 2**24 on a sum of ones in order is the same number
    for executor in ("interpreter", "compiled"):
        with config.override(executor=executor):
            gradient = grad(lambda x, ones: np.sum(x * ones))(np.float32(3), ones)
            assert (gradient, gradient.dtype) == (2**24 + 2**20, np.float32)


def test_row_59_division_by_zero_and_signs_of_zero() -> None:
    x, y = np.array([1.0, -1, 0, 1]), np.array([0, 0, 0, -0.0])
    as_numpy(lambda x, y: x / y, x, y)
    as_numpy(lambda x: 1.0 / x, np.float64(0.0))
    as_numpy(lambda x, y: np.floor_divide(x, y), x, y)
    for f in (
        np.sign,
        np.sqrt,
        np.abs,
        np.negative,
        np.rint,
        np.sin,
        lambda x: x * 1.0,
        lambda x: 0.0 + x,
        lambda x: -0.0 + x,
    ):
        zeros = np.array([-0.0, 0.0])
        assert_array_equal(np.signbit(jit(f)(zeros)), np.signbit(f(zeros)))


@pytest.mark.slow
@floats
def test_row_60_nan_and_infinity_in_a_fused_loop(dtype: Any) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0, -0.0, 1, -1], dtype)
    as_numpy(lambda x: np.where(np.isnan(x * 2), 7, np.where(np.isinf(x * 2), 8, x)), x)
    as_numpy(lambda x: np.stack([x < 1, x <= 1, x > 1, x >= 1, x == x, x != x]), x)
    for f in (np.maximum, np.minimum, np.fmax, np.fmin, np.copysign, np.hypot, np.arctan2, np.logaddexp, np.heaviside):
        as_numpy(lambda x, f=f: f(x[:, None], x), x)
    for f in (np.max, np.min, np.argmax, np.argmin, np.nansum, np.nanmean, np.any, np.all, np.nan_to_num, np.sum):
        as_numpy(f, x)
    as_numpy(lambda x: np.maximum(np.exp(x), 0).sum(), x[1:])


def test_row_61_contractions_of_several_dtypes() -> None:
    x, y, n = np.array([[1.5, 2]], np.float32), np.array([[0.1], [0.2]]), np.array([[3], [4]])
    assert as_numpy(np.dot, x, y).dtype == np.float64
    assert as_numpy(lambda x, n: x @ n, x, n).dtype == np.float64
    assert as_numpy(np.matmul, n.T.astype(np.int8), n.astype(np.int8)).dtype == np.int8
    assert as_numpy(lambda n: np.dot(n.T > 3, n > 3), n).dtype == bool
    assert as_numpy(lambda x, n: np.einsum("ij,jk", x, n), x, n).dtype == np.float64
    assert as_numpy(lambda x, y: x @ (y + 1j), x, y).dtype == np.complex128
    check(lambda x: np.sum(x @ y), x, value=x @ y, gradient=y.ravel(), rtol=1e-6)


# ---- float16, which NumPy's functions of bools and bytes give --------------------------------------------------------


@pytest.mark.parametrize(
    "f",
    [
        np.sin,
        np.exp,
        lambda x: np.sqrt(x) * 2.5 + np.cos(x),
        lambda x: np.hypot(x, x) * np.ones(3, np.float32),
        lambda x: np.arctan2(x, True).astype(float),
        lambda x: (np.log1p(x), {"a": x * 2}),
    ],
)
@pytest.mark.parametrize("x", [np.array([True, False, True]), np.arange(3, dtype="u1"), np.int8(-1), np.True_], ids=str)
def test_halves_of_ufuncs(f: Any, x: Any) -> None:
    with np.errstate(all="ignore"):
        expected, run = f(x), jit(f)
        for _ in range(3):
            for found, value in zip(tree.leaves(run(x)), tree.leaves(expected), strict=True):
                assert_array_equal(found, value, strict=True)
                assert isinstance(found, np.generic) == isinstance(value, np.generic)


@floats
def test_results_are_rounded_to_halves_as_numpy_rounds(dtype: Any) -> None:
    with np.errstate(invalid="ignore"):  # of signaling nan
        halves = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(dtype)
    spread = np.random.default_rng(0).normal(size=999) * np.logspace(-12, 9, 999)
    run = jit(lambda x: x.astype(np.float16))
    with np.errstate(all="ignore"):
        between = halves[:-1] / 2 + halves[1:] / 2
        for x in (halves, between, spread.astype(dtype)):
            for _ in range(2):
                found, expected = run(x), x.astype(np.float16)
                assert_array_equal(found, expected, strict=True)
                assert_array_equal(np.signbit(found), np.signbit(expected))


def test_derivatives_through_halves() -> None:
    x = np.array([1.1, -2.3, 1e-9])
    value, gradient = value_and_grad(lambda x: (x[1] * x[1]).astype(np.float16))(x)
    assert_array_equal(value, (x[1] * x[1]).astype(np.float16), strict=True)
    assert_array_equal(gradient, [0, 2 * x[1], 0])
    output, tangent = jvp(lambda x: (3 * x).astype(np.float16), (x,), (np.ones(3),))
    assert_array_equal(output, (3 * x).astype(np.float16), strict=True)
    assert_array_equal(tangent, np.full(3, 3, np.float16), strict=True)
    for refused in (
        lambda x: x.astype(np.float16).sum(),
        lambda x: x.astype(np.float16)[0],
        lambda x: fnad_map(lambda t: t.astype(np.float16), x),
    ):
        with pytest.raises(errors.DtypeError, match=r"(?s)float16, which is not supported.*test_user_dtypes\.py"):
            jit(refused)(x)


def test_integers_of_c_that_have_a_class_of_their_own_compute_as_those_of_their_size() -> None:
    """NumPy has two classes for one size where C's `long` and `long long` are of one size."""
    y = np.array([1, 2], np.int16)
    kinds = (np.longlong, np.ulonglong, np.long, np.ulong, np.intc, np.uintc)
    for kind in kinds:
        x = np.array([5, 6], kind)
        for f in (
            lambda x, y: x[0] + y[1],
            lambda x, _: x @ x,
            lambda x, y: (x * y)[0],
            lambda _, y: np.longlong(y[1]),
        ):
            found = jit(f)(x, y)
            assert (found.dtype, found) == (f(x, y).dtype, f(x, y))
    assert type(jit(lambda t: t + 1)(np.uint64(5))) is np.uint64
