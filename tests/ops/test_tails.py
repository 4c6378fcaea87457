"""Sigmoids and softmax from -800 to 800: values and two derivatives within four units in the last place.

A unit of a subnormal number is the smallest subnormal. The truth is computed by mpmath in 800 digits, which hold
exp(-800) beside 1.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from itertools import product
from typing import Any, TypeAlias

import mpmath
import numpy as np
import pytest
import scipy.special

import fnad
from fnad.config import override

Function: TypeAlias = Callable[..., Any]

ULPS = 4
MAGNITUDES = (
    *(0.0, 1e-300, 1e-10, 1e-3, 0.3, 0.7, 1.5, 2.7, 5.0, 9.0, 17.0, 20.0, 30.0, 37.0, 40.0, 80.0, 87.5, 90.0, 100.0),
    *(103.0, 104.0, 200.0, 300.3, 354.0, 372.0, 400.0, 600.1, 700.3, 708.0, 715.0, 730.5, 744.0, 745.0, 746.0, 800.0),
)
POINTS = np.array([sign * x for x in MAGNITUDES for sign in (1.0, -1.0)])


@pytest.fixture(autouse=True)
def many_digits() -> Generator[None, None, None]:
    with mpmath.workdps(800):
        yield


def sigmoid(x: Any) -> Any:
    return 1 / (1 + mpmath.exp(-x))


def hump(x: Any) -> Any:
    """Return the slope of the sigmoid."""
    return sigmoid(x) * sigmoid(-x)


def softplus(x: Any) -> Any:
    return mpmath.log1p(mpmath.exp(x))


ELEMENTWISE: dict[str, tuple[Function, tuple[Function, Function, Function]]] = {
    "expit": (scipy.special.expit, (sigmoid, hump, lambda x: -mpmath.tanh(x / 2) * hump(x))),
    "log_expit": (scipy.special.log_expit, (lambda x: -softplus(-x), lambda x: sigmoid(-x), lambda x: -hump(x))),
    "softplus": (fnad.nn.softplus, (softplus, sigmoid, hump)),
    "logaddexp": (
        partial(np.logaddexp, 2.0),
        (lambda x: 2 + softplus(x - 2), lambda x: sigmoid(x - 2), lambda x: hump(x - 2)),
    ),
    "tanh": (np.tanh, (mpmath.tanh, lambda x: 4 * hump(2 * x), lambda x: -8 * mpmath.tanh(x) * hump(2 * x))),
}


def forward(f: Function) -> Function:
    return lambda x: fnad.jvp(f, (x,), (np.ones_like(x),))[1]


def reverse(f: Function) -> Function:
    return lambda x: fnad.vjp(f, x)[1](np.ones_like(x))[0]


WAYS = {"forward": forward, "reverse": reverse}


def units(found: Any, truth: Any) -> float:
    """Return the distance of a number from the truth in units in the last place of the rounded truth."""
    rounded = type(found)(truth)
    if not np.isfinite(rounded):
        return 0.0 if found == rounded else np.inf
    return float(abs(mpmath.mpf(float(found)) - truth) / mpmath.mpf(float(np.spacing(abs(rounded)))))


@pytest.mark.parametrize("executor", ["interpreter", "compiled"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(name: str, order: int, dtype: Any, executor: Any):
    function, truths = ELEMENTWISE[name]
    points = POINTS.astype(dtype)
    expected = [truths[order](mpmath.mpf(float(x))) for x in points]
    for ways in product(WAYS, repeat=order):
        derivative = function
        for way in ways:
            derivative = WAYS[way](derivative)
        with override(executor=executor):
            found = fnad.jit(derivative)(points)
        assert found.dtype == dtype
        far = [x for x, y, truth in zip(points, found, expected, strict=True) if not units(y, truth) <= ULPS]
        assert not far, f"{ways}: far off at {far}"
