"""Values and derivatives of elementary functions against mpmath, in fifty digits, over their whole domain."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import pytest

from fnad.ir.builder import trace
from fnad.ir.primitive import PRIMITIVES
from fnad.ir.types import DTYPES, Aval
from fnad.testing import Run, assert_close, marks, tolerance
from fnad.transforms.jvp import jvp

LINE = (-30.0, -2.5, -0.75, -1e-3, 0.4, 1.5, 6.0, 40.0)
POSITIVE = (1e-6, 0.3, 1.0, 2.5, 1e5)
INSIDE = (-0.999, -0.5, -1e-3, 0.25, 0.999)
PLANE = (0.5 + 0.3j, -1.2 + 0.7j, 0.1 - 2.0j, -0.6 - 0.4j)


@pytest.fixture(autouse=True)
def fifty_digits() -> Generator[None, None, None]:
    with mpmath.workdps(50):
        yield


@dataclass(frozen=True)
class Unary:
    """A function of one variable, and where to compare it."""

    truth: Callable[[Any], Any]
    points: tuple[float, ...]
    plane: tuple[complex, ...] = PLANE


def logistic(x: Any) -> Any:
    return 1 / (1 + mpmath.exp(-x))


UNARY: dict[str, Unary] = {
    "exp": Unary(mpmath.exp, LINE),
    "exp2": Unary(lambda x: mpmath.power(2, x), LINE),
    "expm1": Unary(mpmath.expm1, LINE),
    "log": Unary(mpmath.log, POSITIVE),
    "log2": Unary(lambda x: mpmath.log(x) / mpmath.log(2), POSITIVE),
    "log10": Unary(mpmath.log10, POSITIVE),
    "log1p": Unary(mpmath.log1p, (-0.9, *POSITIVE)),
    "sqrt": Unary(mpmath.sqrt, POSITIVE),
    "cbrt": Unary(lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), (-8.0, -0.2, *POSITIVE), ()),
    "sin": Unary(mpmath.sin, LINE),
    "cos": Unary(mpmath.cos, LINE),
    "tan": Unary(mpmath.tan, (-1.5, -0.5, 0.1, 1.2, 4.0)),
    "arcsin": Unary(mpmath.asin, INSIDE),
    "arccos": Unary(mpmath.acos, INSIDE),
    "arctan": Unary(mpmath.atan, LINE),
    "sinh": Unary(mpmath.sinh, LINE),
    "cosh": Unary(mpmath.cosh, LINE),
    "tanh": Unary(mpmath.tanh, INSIDE),
    "arcsinh": Unary(mpmath.asinh, LINE),
    "arccosh": Unary(mpmath.acosh, (1.001, 1.5, 4.0, 1e5)),
    "arctanh": Unary(mpmath.atanh, INSIDE),
    "erf": Unary(mpmath.erf, (-2.0, -0.3, 1e-3, 0.7, 3.0), ()),
    "erfc": Unary(mpmath.erfc, (-2.0, -0.3, 1e-3, 0.7, 3.0, 10.0), ()),
    "logistic": Unary(logistic, (-30.0, -2.0, 0.0, 0.5, 3.0), ()),
}

BINARY: dict[str, tuple[Callable[[Any, Any], Any], tuple[tuple[float, float], ...]]] = {
    "pow": (mpmath.power, ((0.5, 2.5), (3.0, -1.5), (1e-3, 0.3), (7.0, 0.0), (1.0, 5.0))),
    "hypot": (mpmath.hypot, ((3.0, 4.0), (-1.0, 1e-3), (0.0, 2.0), (1e3, -5.0))),
    "arctan2": (mpmath.atan2, ((1.0, 2.0), (-1.0, -0.5), (0.3, -2.0), (2.0, 1e-3))),
    "logaddexp": (
        lambda x, y: mpmath.log(mpmath.exp(x) + mpmath.exp(y)),
        ((0.0, 0.0), (1.0, -2.0), (-3.0, 5.0), (300.0, 299.0)),
    ),
    "div": (lambda x, y: x / y, ((1.0, 3.0), (-2.0, 0.1), (1e5, -7.0))),
}


def derivative(run: Run, name: str, dtype: str, point: tuple[Any, ...], ways: tuple[int, ...]) -> Any:
    """Return the mixed derivative in the variables `ways`, by that many nestings of forward mode."""
    xs = [DTYPES[dtype].type(x) for x in point]
    program = trace(lambda *operands: [PRIMITIVES[name](*operands)], *[Aval(DTYPES[dtype])] * len(xs), name=name)
    inputs = xs
    for way in ways:
        tangents = [x.dtype.type(i == way) for i, x in enumerate(inputs)]
        program, inputs = jvp(program, marks(program)), [*inputs, *tangents]
    return run(program, inputs)[-1]


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["f64", "f32"])
@pytest.mark.parametrize("name", UNARY)
def test_real_function(name: str, dtype: str, order: int, run: Run):
    function = UNARY[name]
    for x in function.points:
        rounded = float(DTYPES[dtype].type(x))
        expected = float(mpmath.diff(function.truth, mpmath.mpf(rounded), order))
        if dtype == "f32" and abs(expected) > 1e30:
            continue
        found = derivative(run, name, dtype, (x,), (0,) * order)
        assert_close(found, np.asarray(expected, found.dtype), tolerance(found.dtype, order), 1e-30)


def of_sine(x: Any) -> tuple[Any, Any, Any]:
    rest = 1 - x * x
    return rest**-0.5, x * rest**-1.5, (1 + 2 * x * x) * rest**-2.5


def of_cosine(x: Any) -> tuple[Any, Any, Any]:
    first, second, third = of_sine(x)
    return -first, -second, -third


def of_tangent(x: Any) -> tuple[Any, Any, Any]:
    rest = 1 - x * x
    return 1 / rest, 2 * x / rest**2, (2 + 6 * x * x) / rest**3


INVERSES = {"arcsin": of_sine, "arccos": of_cosine, "arctanh": of_tangent}
"""The first three derivatives, from 1 - x² in fifty digits."""


@pytest.mark.parametrize("name", INVERSES)
def test_small_numbers_are_not_lost_beside_one(name: str, run: Run):
    for x in (0.0, 1e-20, -3e-9, 1e-4, 0.4999, 0.5001, -0.9, 1 - 1e-9):
        for order, expected in enumerate(INVERSES[name](mpmath.mpf(x)), 1):
            found = derivative(run, name, "f64", (x,), (0,) * order)
            assert_close(found, np.asarray(float(expected)), 1e-13, 0.0)
    for z in (1e-20j, 1e-9 + 1e-9j, -1e-12 + 0.3j):
        for order, expected in enumerate(INVERSES[name](mpmath.mpc(z)), 1):
            found = derivative(run, name, "c128", (z,), (0,) * order)
            assert_close(found, np.asarray(complex(expected)), 1e-13, 0.0)


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("name", [name for name, function in UNARY.items() if function.plane])
def test_complex_function(name: str, order: int, run: Run):
    function = UNARY[name]
    for z in function.plane:
        expected = complex(mpmath.diff(function.truth, mpmath.mpc(z), order))
        found = derivative(run, name, "c128", (z,), (0,) * order)
        assert_close(found, np.asarray(expected), tolerance(found.dtype, order))


@pytest.mark.parametrize("ways", [(), (0,), (1,), (0, 0), (0, 1), (1, 0), (1, 1)], ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_function_of_two_variables(name: str, ways: tuple[int, ...], run: Run):
    truth, points = BINARY[name]
    orders = (ways.count(0), ways.count(1))
    for point in points:
        exact = tuple(map(mpmath.mpf, point))
        expected = float(mpmath.diff(truth, exact, orders) if ways else truth(*exact))
        found = derivative(run, name, "f64", point, ways)
        assert_close(found, np.asarray(expected), tolerance(found.dtype, len(ways)), 1e-6)
