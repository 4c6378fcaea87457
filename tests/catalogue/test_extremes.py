"""Elementwise primitives at extreme operands of every dtype: compiled code computes the numbers of the interpreter.

Operands are limits of the dtype, subnormal numbers, infinities and nan, and numbers around which formulas change.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from fnad.backends.cpu.executor import compile_program
from fnad.ir.axes import Elementwise
from fnad.ir.builder import trace
from fnad.ir.primitive import Scalar
from fnad.ir.types import Aval
from tests.catalogue.cases import CASES, Case, over

Array = np.ndarray[Any, Any]

MOST = 400
"""The most operands of a case, drawn from all combinations."""

ULPS = 8
"""The distance of two functions, each with an error of its own."""

FURTHER = {"weighted_exp": 800.0}
"""The distance of functions that round an exponent, whose error is multiplied by its size."""

OF_SCIPY = ("erf", "erfc")
"""The elementary functions that the interpreter takes from SciPy, which is less accurate than compiled code."""

MAGNITUDES = (
    *(0.0, 1e-30, 1e-3, 0.3, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 7.9, 20.0),
    *(88.5, 103.0, 170.5, 709.0, 745.0, 1e3, 2.0**31, 1e19),
)
IN_SHORT = frozenset(
    (
        *("add", "sub", "mul", "div", "neg", "abs", "sqrt", "exp", "log", "sin", "tanh", "pow", "maximum", "fmin"),
        *("fmod", "floor_divide", "remainder", "logistic", "logaddexp", "select", "convert", "left_shift", "lt"),
        "ldexp",
    )
)
"""The primitives of the quick part."""


def limits(dtype: np.dtype[Any]) -> Array:
    """Return the extreme numbers of a dtype."""
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        found = [0, 1, 2, 3, 7, 31, 32, 63, 64, most, most - 1, most // 2, most // 2 + 1]
        found += [-1, -2, -3, -64, least, least + 1]
        return np.array([x for x in dict.fromkeys(found) if least <= x <= most], dtype)
    part = np.zeros(0, dtype).real.dtype
    info = np.finfo(part)
    ends = (info.smallest_subnormal, info.tiny, info.eps / 3, 1 - info.eps, 1 + info.eps, info.max / 2, info.max)
    found = np.array([*MAGNITUDES, *map(float, ends), float(info.max) ** 0.5], part)
    if dtype.kind == "c":  # products of the largest numbers overflow in one part, or not, by their rounding
        found = np.concatenate([found[:-8:3], found[-8:-3], found[-1:]])
        return np.array([complex(x, y) for x, y in product([*found, *-found], repeat=2)], dtype)
    return np.concatenate([found, -found, np.array([np.inf, -np.inf, np.nan], part)])


def drawn(case: Case) -> list[Array]:
    """Return operands of a case: all combinations of extreme numbers, or some of them."""
    columns = [limits(aval.dtype) for aval in case.avals]
    count = int(np.prod([column.size for column in columns]))
    rng = np.random.default_rng(case.number)
    chosen = np.arange(count) if count <= MOST else rng.integers(0, count, MOST)
    places = np.unravel_index(chosen, [column.size for column in columns])
    return [column[place] for column, place in zip(columns, places, strict=True)]


def distances(found: Array, expected: Array) -> Array:
    """Return the distances in units in the last place, of complex numbers in that of the magnitude."""
    if expected.dtype.kind in "biu":
        return np.where(found == expected, 0.0, np.inf)
    with np.errstate(all="ignore"):
        size = np.abs(expected)
        info = np.finfo(size.dtype)
        unit = np.spacing(np.clip(size, info.tiny, info.max / 2))
        units = np.abs(found - expected) / unit
        same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    if expected.dtype.kind == "c":
        either = np.isfinite(found) & np.isfinite(expected)
        return np.where(either, units, np.where(np.isfinite(found) == np.isfinite(expected), 0.0, np.inf))
    return np.where(same, 0.0, np.where(np.isfinite(units), units, np.inf))


def is_swept(case: Case) -> bool:
    """True for elementwise primitives by NumPy's functions; others are SciPy's, or formulas that test_formulas has."""
    lower = case.primitive.lower
    if not (isinstance(case.primitive.axes, Elementwise) and isinstance(lower, Scalar) and case.operands):
        return False
    return case.primitive.name not in OF_SCIPY and "scipy_" not in str(lower.template)


def distinct() -> list[Case]:
    """Return elementwise cases, one for each primitive, dtypes and parameters."""
    found: dict[Any, Case] = {}
    for case in filter(is_swept, CASES):
        found.setdefault((case.primitive.name, tuple(a.dtype for a in case.avals), repr(case.sample.params)), case)
    return list(found.values())


def check_extremes(case: Case) -> None:
    operands = drawn(case)
    avals = [Aval(x.dtype, x.shape) for x in operands]
    results = compile_program(trace(lambda *inputs: case.applied(inputs), *avals, name=case.primitive.name))(operands)
    expected = case.evaluate(*operands)
    for found, right in zip(results, expected if isinstance(expected, tuple) else (expected,), strict=True):
        assert found.dtype == right.dtype
        units = distances(found, right)
        worst = int(np.argmax(units))
        assert units[worst] <= FURTHER.get(case.primitive.name, ULPS), (
            [x[worst] for x in operands],
            found[worst],
            right[worst],
        )


QUICK = [case for case in distinct() if case.primitive.name in IN_SHORT]


@over(QUICK)
def test_extreme_operands(case: Case) -> None:
    check_extremes(case)


@pytest.mark.slow
@over([case for case in distinct() if case not in QUICK])
def test_extreme_operands_of_all(case: Case) -> None:
    check_extremes(case)
