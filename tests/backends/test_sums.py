"""Compiled sums: the order of the additions is free, and nothing else."""

from __future__ import annotations

import re
from itertools import product
from math import fsum
from typing import Any

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtr

from fnad import config, fori_loop, jit, value_and_grad
from fnad.backends.cpu import vector_math
from fnad.backends.cpu.executor import compile_program
from fnad.ir.builder import trace
from fnad.ir.types import F64, Aval
from fnad.ops.arithmetic import mul
from fnad.ops.shape import reduce_sum
from tests.together import drawn


def sums(x: Any, y: Any, zero: Any, ten: Any) -> list[Any]:
    """Sums of terms with a common factor; x is large, large, 0, ... and y is large, -large, 0, ..."""
    n = x.shape[0]
    in_a_loop = fori_loop(0, n, lambda i, total: total + x[i] * zero, x[0] * zero)
    step_by_step = x[0] / 2 + x[1] / 2
    return [
        np.sum(x * zero),
        np.sum(x * zero + y * zero),
        np.sum(x / 2),
        np.mean(x / n),
        np.sum(y * ten),
        np.sum(x * ten - x * ten),
        np.trapezoid(np.where(x == 0, np.abs(ten), x)),
        np.dot(x * zero, y),
        np.einsum("i,i->", x, zero * y),
        np.sum(np.stack([x, y]) * zero, axis=0),
        np.sum(np.stack([x, y]) * ten, axis=1),
        np.add.reduce(x * zero),
        np.cumsum(x / 2)[-1],
        np.average(x, weights=np.ones_like(x) / 2) / 2,
        in_a_loop,
        step_by_step,
        np.sum(zero * -ten - x * zero),
    ]


FLOATS = ("f4", "f8", "c8", "c16")


SHORT = drawn(product(FLOATS, (2, 3)), lambda case: case[0])


@pytest.mark.parametrize(("dtype", "n"), [*SHORT, *product(FLOATS, [2003])])
def test_no_factor_leaves_a_sum(dtype: str, n: int) -> None:
    """Where a factor left the sum, it would be of terms that overflow: nan for 0, inf for what is finite."""
    real = np.dtype(dtype[0].replace("c", "f") + str(np.dtype(dtype).itemsize // (2 if dtype[0] == "c" else 1)))
    large = np.finfo(real).max / 2 * 1.25
    x, y = np.zeros((2, n), dtype)
    x[:2], y[:2] = large, (large, -large)
    given = x, y, x.dtype.type(0), x.dtype.type(10)
    with np.errstate(all="ignore"):
        expected = sums(*given)
    for position, (found, wanted) in enumerate(zip(jit(sums)(*given), expected, strict=True)):
        np.testing.assert_allclose(found, wanted, rtol=1e-5 if dtype in ("f4", "c8") else 1e-14, err_msg=str(position))


def largest_error(found: Any, x: Any, axis: int) -> float:
    """The largest error of sums of single precision, in units of the last place of the sums of the absolute values."""
    exact, scale = ([fsum(row) for row in np.moveaxis(part, axis, -1).astype("f8")] for part in (x, np.abs(x)))
    return max(abs(np.subtract(found, exact, dtype="f8")) / scale) * 2**24


@pytest.mark.parametrize("n", [10, 100, 511, 513, 1000, 5000, 100_000])
def test_sums_of_single_precision_are_as_accurate_as_numpys(n: int) -> None:
    """Also where terms cancel."""
    rng = np.random.default_rng(0)
    x = rng.random((max(2, 20_000 // n), n), np.float32)
    cancelling = x.copy()
    cancelling[:, n // 2 : n // 2 * 2] = -x[:, : n // 2]
    rng.shuffle(cancelling, axis=1)
    both = jit(lambda x, y: (np.sum(x, axis=1), np.sum(y, axis=0)))
    with config.override(executor="compiled"):
        for numbers in (x, cancelling):
            rows, columns = both(numbers, np.copy(numbers.T))
            assert largest_error(rows, numbers, 1) <= 4
            assert largest_error(columns, numbers, 1) <= (1 if n > 512 else 0.1 * n + 4)


@pytest.mark.parametrize("threads", [1, 2])
def test_columns_summed_by_tasks_keep_their_digits(threads: int) -> None:
    x = np.random.default_rng(0).random((4096, 256), np.float32)
    both = jit(lambda x: (np.sum(x, axis=0), np.sum(x)))
    with config.override(executor="compiled", threads=threads):
        columns, total = both(x)
        assert largest_error(columns, x, 0) <= 8
        assert abs(float(total) - fsum(x.ravel().astype("f8"))) <= 2**-23 * float(total)


def assert_same_with_signs(found: Any, wanted: Any) -> None:
    """Assert equal numbers, the signs of zeros included."""
    for part in (np.real, np.imag):
        a, b = part(found), part(wanted)
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(np.signbit(a) & ~np.isnan(a), np.signbit(b) & ~np.isnan(b))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [1, 2, 9, 600])
def test_a_sum_of_zeros_has_numpys_sign(dtype: str, n: int) -> None:
    f = lambda x: [np.sum(x * -1), np.sum(-x), np.sum(x), np.sum(np.stack([x, -x]), axis=1)]  # noqa: E731
    x = np.zeros(n, dtype)
    for found, wanted in zip(jit(f)(x), f(x), strict=True):
        assert_same_with_signs(found, wanted)


@pytest.mark.skipif(not vector_math.available(), reason="the CPU has no wide vectors")
@pytest.mark.parametrize("f", [lambda x: reduce_sum(x, axes=(0,)), lambda x: reduce_sum(mul(x, x), axes=(0,))])
def test_sums_are_added_in_the_lanes_of_vectors(f: Any) -> None:
    llvm = compile_program(trace(lambda x: [f(x)], Aval(F64, (4096,)), name="f")).llvm()
    assert re.search(r"fadd reassoc <\d+ x double>", llvm)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16", "i1", "u4"])
def test_a_running_reduction_begins_with_an_element(dtype: str) -> None:
    """0.0 + -0.0 is 0.0, and (1 + 0j) * (inf + 1j) is inf + nan j."""
    f = lambda x: [g(x, axis=axis) for g in (np.cumsum, np.cumprod) for axis in (0, 1)]  # noqa: E731
    x = np.ones((3, 4), dtype)
    if x.dtype.kind in "fc":
        x[:, 0], x[0], x[1, 1] = -0.0, -0.0, np.inf
    if x.dtype.kind == "c":
        x[2].imag, x[2, 0], x[0, 1] = -0.0, complex(np.inf, 1), complex(1, -np.inf)
    with np.errstate(all="ignore"):
        expected = f(x)
    for found, wanted in zip(jit(f)(x), expected, strict=True):
        assert_same_with_signs(found, wanted)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_fold_of_one_element_begins_as_any_other() -> None:
    x = np.array([[complex(np.inf, 1), complex(-0.0, -0.0), 1.0]])
    f = lambda x: [np.prod(x, axis=0), np.sum(x, axis=0)]  # noqa: E731
    with np.errstate(all="ignore"):
        expected = f(x)
    for found, wanted in zip(jit(f)(x), expected, strict=True):
        assert_same_with_signs(found, wanted)


def test_sums_of_what_is_computed_of_rows_end_where_a_task_does() -> None:
    """A task of rows is no whole number of the blocks in which a sum goes: what is behind it is the next one's."""

    def of_rows(q: Any, a: Any) -> list[Any]:
        return [
            np.sum(np.log(np.sum(a * q, axis=1))),
            np.sum(np.exp(-np.max(a * q, axis=1))),
            np.sum(np.sum(np.exp(a * q), axis=1) * np.prod(a * q, axis=1)),
        ]

    compiled = jit(of_rows)
    for n in (20_000, 50_001):
        a, q = np.random.default_rng(n).uniform(0.5, 1.5, (n, 3)), np.array([0.3, 0.5, 0.9])
        for threads in (1, 2):
            with config.override(executor="compiled", threads=threads):
                np.testing.assert_allclose(compiled(q, a), of_rows(q, a), rtol=1e-12)
                assert "prange" in compiled.lower(q, a).as_text("source")


def test_llvm_is_asked_for_vectors_only_where_it_can_make_them(capfd: pytest.CaptureFixture[str]) -> None:
    x = np.linspace(-2.0, 2.0, 156)
    with config.override(executor="compiled", disk_cache=False):
        value, slope = jit(value_and_grad(lambda a: np.sum(log_ndtr((x - a) / 2.0) * x)))(0.5)
    z = (x - 0.5) / 2.0
    assert value == pytest.approx(np.sum(log_ndtr(z) * x), rel=1e-12)
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    assert slope == pytest.approx(-np.sum(x * density / ndtr(z)) / 2.0, rel=1e-12)
    assert capfd.readouterr() == ("", ""), "where it cannot, it says so"
