"""Array functions beside NumPy's."""

from functools import partial
from itertools import product

import numpy as np
import pytest

from fnad import config, jit
from fnad.ir.types import DTYPES
from fnad.numpy.joining import runs_of
from fnad.numpy.products import WITHOUT_PLANES
from tests.numpy.against_numpy import NAMES, check, check_error, check_or_refused, sample, traced
from tests.numpy.calls import CASES, EINSUM, C, E, S, V, W, X
from tests.together import in_groups, some_of


@in_groups("name", CASES)
def test_traced_array_functions_compute_as_numpy(name):
    check(*CASES[name])


@in_groups("case", EINSUM, ids=lambda case: case[0])
def test_traced_einsum_computes_as_numpy(case):
    check(lambda *xs: np.einsum(case[0], *xs), *case[1:])


def test_traced_einsum_takes_lists_of_axes_and_options():
    check(lambda x, w: (np.einsum(x, [0, 1], w, [1, 2], [0, 2]), np.einsum(x, [0, 1], w, [1, 2])), X, W)
    check(lambda x, w: (np.einsum("ij,jk", x, w, optimize=True), np.einsum("ij->j", x, dtype=complex)), X, W)


# ---- reductions ------------------------------------------------------------------------------------------------------

REDUCTIONS = ("sum", "prod", "mean", "var", "std", "max", "min", "ptp", "any", "all")
POSITIONS = ("argmax", "argmin")
AXES = (None, 0, 1, -1, (0, -1))


@in_groups("dtype", NAMES)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_traced_reductions_compute_as_numpy_in_any_dtype(name, dtype):
    """Along some of the axes, which are drawn for each dtype."""
    for axis, keepdims in some_of([*product(AXES, (False, True))], f"{name} {dtype}", 3):
        check_or_refused(partial(getattr(np, name), axis=axis, keepdims=keepdims), sample((2, 3, 2), dtype))


@in_groups("dtype", NAMES)
@pytest.mark.parametrize("name", [*POSITIONS, "cumsum"])
def test_reduction_along_one_axis(name, dtype):
    for axis in (None, 0, 1, -1):
        check_or_refused(partial(getattr(np, name), axis=axis), sample((2, 3, 2), dtype))


@pytest.mark.parametrize("name", [*REDUCTIONS, *POSITIONS, "cumsum"])
def test_methods_of_traced_arrays_compute_as_numpys(name):
    if hasattr(np.ndarray, name):
        check(lambda x: (getattr(x, name)(), getattr(x, name)(axis=1)), X)


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "any", "all"])
def test_where_in_a_reduction(name):
    mask = np.array([True, False, True])
    check(lambda x: (getattr(np, name)(x, where=mask), getattr(np, name)(x, where=x > 0.3, axis=0)), X)


def test_options_of_reductions():
    check(lambda x: (np.sum(x, initial=5), np.prod(x, axis=0, initial=2), np.max(x, axis=1, initial=0.5)), X)
    check(lambda x: np.min(x, axis=1, initial=0.5, where=x > 0.2), X)
    check(lambda x: (np.var(x, ddof=1), np.std(x, axis=1, ddof=2), np.var(x, axis=0, ddof=5)), X)


ROWS = np.array([[True], [False], [True], [False]])
WITH_DTYPE = {
    name: partial(lambda name, x, **dtype: getattr(np, name)(x, axis=0, **dtype), name)
    for name in ("sum", "prod", "mean", "var", "std", "cumsum", "cumprod", "nansum", "nanprod", "nanmean", "nanvar")
} | {
    "of all": lambda x, **dtype: (np.std(x, **dtype), np.nanstd(x, **dtype), x.var(ddof=1, **dtype), x.mean(**dtype)),
    "where": lambda x, **dtype: (np.var(x, 0, where=ROWS, **dtype), np.mean(x, 0, where=ROWS, **dtype)),
    "mean": lambda x, **dtype: np.var(x, 0, mean=np.mean(x, 0, keepdims=True), **dtype),
    "trace": lambda x, **dtype: (np.trace(x, **dtype), x.trace(1, **dtype)),
    "running": lambda x, **dtype: (np.cumulative_sum(x, axis=1, **dtype), np.nancumprod(x, axis=0, **dtype)),
    "cov": lambda x, **dtype: np.cov(x, **dtype),
    "methods of ufuncs": lambda x, **dtype: (
        np.add.reduce(x, **dtype),
        np.multiply.accumulate(x, **dtype),
        np.add.reduceat(x, [0, 2, 1], **dtype),
    ),
}


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("name", WITH_DTYPE)
def test_dtype_of_a_reduction(name):
    """What NumPy computes of each dtype in two, which are drawn; integers wrap and imaginary parts count as there.

    The numbers are eighths, four in a row, so that means and squares are exact in each dtype.
    """
    rng = np.random.default_rng(0)
    for own in DTYPES.values():
        unit = {"b": 1 / 64, "f": 1 / 8, "c": (1 + 2j) / 8}.get(own.kind, 1)
        x = (rng.integers(0, 100, (4, 4)) * unit).astype(own)
        check(WITH_DTYPE[name], x)
        for dtype in some_of([*DTYPES.values()], f"{name} {own}", 2):
            check_or_refused(partial(WITH_DTYPE[name], dtype=dtype), x)


def test_sign_of_complex_numbers_at_infinity():
    parts = (0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan, 1.5e308)
    check(np.sign, np.array([complex(x, y) for x in parts for y in parts]))


def test_one_hypotenuse_keeps_its_sign():
    x = np.array([[-1.0, 2.0, -3.0], [3.0, -4.0, 5.0]])
    check(lambda x: (np.hypot.accumulate(x), np.hypot.accumulate(x, axis=1), np.hypot.accumulate(x[:0])), x)
    check(lambda x: (np.hypot.reduceat(x, [0, 1]), np.hypot.reduceat(x, [1, 0, 0], axis=1), np.hypot.reduce(x[:1])), x)


def test_reductions_of_nothing():
    check(lambda e: (np.sum(e), np.prod(e, axis=0), np.any(e), np.all(e, axis=1), np.sum(e, axis=())), E)
    check(lambda e: (np.max(e, axis=1), np.max(e, axis=0, initial=1.0)), E)
    check_error(np.max, E)
    check_error(np.argmin, E)


def test_a_deviation_of_equal_numbers_is_zero():
    for dtype in ("f4", "f8"):
        for n in range(1, 20):
            x = np.full(n, 0.1, dtype)
            check(lambda x: np.std(x) * 0, x)
            assert np.all(traced(np.std, x)[0] == 0)


# ---- what NumPy refuses ----------------------------------------------------------------------------------------------

REFUSED = {
    "reshape": (lambda x: x.reshape(4), X),
    "reshape by -1": (lambda x: x.reshape(-1, 4), X),
    "reshape by two -1": (lambda x: x.reshape(-1, -1), X),
    "transpose": (lambda x: x.transpose(0), X),
    "transpose twice": (lambda x: x.transpose(0, 0), X),
    "axis": (lambda x: x.sum(2), X),
    "axis twice": (lambda x: x.sum((0, 0)), X),
    "squeeze": (lambda x: x.squeeze(0), X),
    "broadcast": (lambda x, v: x + v[:2], X, V),
    "broadcast_to": (lambda x: np.broadcast_to(x, (2,)), X),
    "concatenate": (lambda x, v: np.concatenate([x, v]), X, V),
    "concatenate of other sizes": (lambda x: np.concatenate([x, x.T], axis=1), X),
    "concatenate of numbers": (lambda s: np.concatenate([s, s]), S),
    "stack": (lambda x, v: np.stack([x, v]), X, V),
    "split": (lambda x: np.split(x, 2, axis=1), X),
    "hsplit": (lambda s: np.hsplit(s, 2), S),
    "pad": (lambda x: np.pad(x, -1), X),
    "repeat": (lambda x: np.repeat(x, [1, 2], axis=1), X),
    "take": (lambda x: np.take(x, 9), X),
    "take of floats": (lambda x: np.take(x, np.array([0.5])), X),
    "matmul": (lambda x: x @ x, X),
    "matmul of a number": (lambda x: x @ 2.0, X),
    "dot": (lambda x: np.dot(x, x), X),
    "tensordot": (lambda x: np.tensordot(x, x, 1), X),
    "einsum": (lambda x: np.einsum("ij,jk", x, x), X),
    "einsum of another rank": (lambda x: np.einsum("ijk", x), X),
    "einsum of an unknown label": (lambda x: np.einsum("ij->k", x), X),
    "diagonal": (np.diagonal, V),
    "diag": (np.diag, C),
    "len": (len, S),
    "iteration": (list, S),
    "negative of a bool": (lambda x: -(x > 0), X),
    "invert of a float": (lambda x: ~x, X),
    "select": (lambda x: np.select([x], [x]), X),
    "norm": (lambda c: np.linalg.norm(c, 1), C),
    "astype": (lambda x: x.astype(int, casting="safe"), X),
}


@in_groups("name", REFUSED)
def test_traced_array_functions_refuse_what_numpy_refuses(name):
    check_error(*REFUSED[name])


def test_cross_in_the_plane_is_that_of_the_numpy_at_hand():
    (check_error if WITHOUT_PLANES else check)(lambda v: np.cross(v[:2], v[1:]), V)


def test_a_warning_where_imaginary_parts_are_dropped():
    def assign(z):
        y = z.real * 1
        y[0] = z[0]
        return y

    for function in (lambda z: z.astype(float), assign, lambda z: np.sum(z, dtype=float)):
        for run in (lambda: function(sample((2, 3), "c128")), lambda: traced(function, sample((2, 3), "c128"))):  # noqa: B023
            with pytest.warns(np.exceptions.ComplexWarning, match="discards the imaginary part"):
                run()


def test_runs_of_positions_are_the_positions():
    assert [*runs_of(np.pad(np.arange(4), 2, mode="reflect"))] == [(2, -1, 3), (1, 1, 3), (2, -1, 2)]
    assert [*runs_of(np.array([0, 0, 0, 1, 5, 3]))] == [(0, 0, 3), (1, 1, 1), (5, 1, 1), (3, 1, 1)]
    rng = np.random.default_rng(0)
    for size in range(12):
        positions = rng.integers(3, size=size)
        runs = [first + step * np.arange(length) for first, step, length in runs_of(positions)]
        np.testing.assert_array_equal(np.concatenate([*runs, np.zeros(0, int)]), positions)


def test_interp_has_numpys_value_at_points_and_between_them_where_some_are_infinite_or_nan():
    rng = np.random.default_rng(0)
    at = np.array([-np.inf, 0, 0.5, 1, 2, 2.5, 3, 5, 5.5, 6, np.inf, np.nan])
    points = np.sort(rng.integers(0, 6, (100, 6)).astype(float), axis=1)
    points[::4, 0], points[1::4, -1], points[2::8, -1] = -np.inf, np.inf, np.nan
    values = rng.choice([0, 1, 2.5, np.nan, np.inf, -np.inf, 3], points.shape)
    with config.override(executor="interpreter"):
        run = jit(lambda points, values: np.interp(at, points, values))
        for xp, fp in zip(points, values, strict=True):
            np.testing.assert_allclose(run(xp, fp), np.interp(at, xp, fp), rtol=1e-13)
