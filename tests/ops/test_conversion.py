"""Conversions of floats that an integer dtype cannot hold: NumPy's numbers, however a program runs."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np
import pytest

import fnad.numpy as fnp
from fnad import config, jit

INTEGERS = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
EDGES = [
    bound + step for n in (7, 8, 15, 16, 31, 32, 53, 63, 64) for bound in (2.0**n, -(2.0**n)) for step in (-1, 0, 1)
]
VALUES = np.array(
    [*EDGES, 0.5, -0.5, -1.5, 300.7, -300.7, 2.0**33 + 300, 1.5 * 2.0**63, 1e30, -1e30, np.inf, -np.inf, np.nan]
)
"""What lies around the bounds of each integer dtype, and far outside."""

on_x86_64 = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="a rule of x86-64")


def as_integers(x: Any) -> list[Any]:
    return [x.astype(dtype) for dtype in INTEGERS]


def one_by_one(x: Any) -> list[Any]:
    """NumPy's conversion of each number by itself: it has no lanes of vectors, in which u4 would go otherwise."""
    return [np.array([number.real.astype(dtype) for number in x]) for dtype in INTEGERS]


@on_x86_64
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("executor", ["interpreter", "compiled"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_a_float_out_of_range_is_numpys_integer(dtype: str, executor: Any) -> None:
    with np.errstate(all="ignore"):
        x = VALUES.astype(dtype)
        expected = one_by_one(x)
    with config.override(executor=executor):
        for times in (1, 11):
            for found, wanted in zip(jit(as_integers)(np.tile(x, times)), expected, strict=True):
                np.testing.assert_array_equal(found, np.tile(wanted, times))
        for found, wanted in zip(jit(as_integers)(x[-1]), expected, strict=True):
            assert found == wanted[-1]


@on_x86_64
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_numpys_arrays_go_as_its_numbers_but_for_u4(dtype: str) -> None:
    """NumPy adds and takes 2**31 in vectors of u4, and so differs from its own last elements, and from us."""
    with np.errstate(all="ignore"):
        x = np.tile(VALUES.astype(dtype), 3)
        different = [d for d, one in zip(INTEGERS, one_by_one(x), strict=True) if not np.array_equal(x.astype(d), one)]
    assert set(different) <= {"u4"}


@on_x86_64
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("executor", ["interpreter", "compiled"])
def test_however_a_float_becomes_an_integer(executor: Any) -> None:
    def filled(x: Any) -> Any:
        y = fnp.zeros(x.shape, "u1")
        y[:] = x
        return y

    ways = [filled, lambda x: fnp.array(x, "u1"), lambda x: (x + 0.0).astype("u1") + np.uint8(0)]
    with np.errstate(all="ignore"):
        expected = VALUES.astype("u1")
    with config.override(executor=executor):
        for found in jit(lambda x: [way(x) for way in ways])(VALUES):
            np.testing.assert_array_equal(found, expected)
