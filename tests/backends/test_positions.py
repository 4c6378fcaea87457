"""Compiled argmin and argmax: short rows and long ones, which are gone over twice, find what NumPy finds."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from fnad import jit
from fnad.backends.cpu import vector_math
from fnad.backends.cpu.executor import compile_program
from fnad.backends.cpu.target import COSTS
from fnad.ir.builder import trace
from fnad.ir.types import DTYPES, Aval
from fnad.ops.elementary import exp
from fnad.ops.reduction import argmin
from tests.together import some_of

ORDERED = [name for name, dtype in DTYPES.items() if dtype.kind != "c"]


def positions(x: Any) -> list[Any]:
    """Positions over a cube's axes, in short rows and long ones, of what is loaded and of what is computed.

    Of integers only some, which are drawn.
    """
    computed = ~x if x.dtype == bool else x + x
    along = list(product((np.argmin, np.argmax), (x, computed), range(x.ndim)))
    along = [f(y, axis=axis) for f, y, axis in some_of(along, str(x.dtype), 12 if x.dtype.kind == "f" else 4)]
    return [*along, np.argmin(x), np.argmax(x), np.argmax(x, axis=0, keepdims=True), np.argmin(x.T, axis=1)]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ORDERED)
def test_positions_are_numpys(name: str) -> None:
    """With ties everywhere, the first of which counts; in floats infinities, zeros of both signs, in some rows nan."""
    rng, dtype = np.random.default_rng(0), DTYPES[name]
    x = rng.integers(0, 5, (COSTS.long_row + 3, 5, COSTS.long_row)).astype(dtype)
    if dtype.kind == "f":
        x[rng.random(x.shape) < 0.3] *= -1
        x[:7] = rng.choice([0.0, -0.0], (7, *x.shape[1:]))
        x[7:9], x[9], x[10] = np.inf, -np.inf, np.nan
        x[rng.random(x.shape) < 0.002] = np.nan
        x[rng.random(x.shape) < 0.01] = np.inf
    if dtype.kind in "iu":
        x[:5], x[5:9] = np.iinfo(dtype).max, np.iinfo(dtype).min
    with np.errstate(all="ignore"):
        expected = positions(x)
    for found, wanted in zip(jit(positions)(x), expected, strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("n", [COSTS.long_row - 1, COSTS.long_row, COSTS.long_row + 1, 1003])
def test_a_position_is_that_of_the_values_beside_it(n: int) -> None:
    """They are computed once: a second time they might round apart, and no element would be the extremum."""

    def f(x: Any) -> Any:
        y = np.exp(np.sin(x)) * np.tanh(x) - x**1.5
        flat, turned = np.argmax(y, axis=1), np.argmin(y.T[::-1], axis=0)
        return y, flat, turned, np.argmax(np.exp(np.sin(x)), axis=1), np.argmin(np.log(x), axis=1)

    x = np.random.default_rng(1).uniform(0.1, 3, (50, n))
    y, flat, turned, inner, logs = jit(f)(x)
    np.testing.assert_array_equal(flat, np.argmax(y, axis=1))
    np.testing.assert_array_equal(turned, np.argmin(y.T[::-1], axis=0))
    np.testing.assert_array_equal(inner, np.argmax(np.exp(np.sin(x)), axis=1))
    np.testing.assert_array_equal(logs, np.argmin(x, axis=1))


@pytest.mark.slow
@pytest.mark.skipif(not vector_math.available(), reason="the CPU has no wide vectors")
@pytest.mark.parametrize("axis", [0, 1])
def test_positions_in_long_rows_vectorise(axis: int) -> None:
    llvm = compile_program(trace(lambda x: [argmin(x, axis=axis)], Aval(DTYPES["f64"], (300, 300)), name="f")).llvm()
    assert "fcmp oeq <" in llvm
    assert "@llvm.minimum.v" in llvm


def test_what_long_rows_hold_is_computed_once() -> None:
    run = compile_program(trace(lambda x: [argmin(exp(x), axis=1)], Aval(DTYPES["f64"], (9, COSTS.long_row)), name="f"))
    assert run.source.count("exp(") == 1
