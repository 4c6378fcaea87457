"""The checks themselves: they find what is wrong, and their differences are accurate."""

from __future__ import annotations

import numpy as np
import pytest

from fnad.ir.builder import trace
from fnad.ir.primitive import Linear, Partials, Primitive, Scalar
from fnad.ir.types import DTYPES, Aval
from fnad.ops.constructors import elementwise_samples
from fnad.ops.elementary import cos, sin
from fnad.testing import (
    Run,
    assert_close,
    check_transposed,
    difference,
    mixed_difference,
    precision,
    pushforward,
    step,
    tolerance,
)

X = Aval(DTYPES["f64"], (3,))


def primitive(derivative: Linear | Partials) -> Primitive:
    """Return 2 sin(x), unregistered, with this derivative."""
    return Primitive(
        "twice_sin",
        lambda x: x,
        lambda x: 2 * np.sin(x),
        derivative,
        Scalar("{0}"),
        lambda: elementwise_samples(frozenset({X.dtype}), ((0.1, 0.9),), ()),
        "2 sin(x).",
    )


def test_a_wrong_transpose_is_found(run: Run):
    wrong = primitive(Linear(lambda ct, x: (ct,)))
    program = trace(lambda x: [wrong(x)], X)
    with pytest.raises(AssertionError, match="reverse mode is not the transpose of forward mode"):
        check_transposed(run, program, [np.array([0.1, 0.2, 0.3])])


def test_a_wrong_partial_differs_from_the_difference(run: Run):
    xs, dxs = [np.array([0.1, 0.2, 0.3])], [np.ones(3)]
    h, error = step(2.0**-52, 1)
    expected = difference(lambda x: 2 * np.sin(x), xs, dxs, h)
    right = primitive(Partials((lambda y, x: 2.0 * cos(x),)))
    assert_close(pushforward(run, trace(lambda x: [right(x)], X), xs, dxs)[0], expected, error)
    wrong = primitive(Partials((lambda y, x: 2.0 * sin(x),)))
    with pytest.raises(AssertionError):
        assert_close(pushforward(run, trace(lambda x: [wrong(x)], X), xs, dxs)[0], expected, error)


def test_differences_of_a_quartic_are_exact():
    x, u, v = [np.longdouble(2)], [np.longdouble(1)], [np.longdouble(1)]
    assert abs(difference(lambda x: x**4, x, u, 0.5) - 32) < 1e-12
    assert abs(mixed_difference(lambda x: x**4, x, u, v, 0.5) - 48) < 1e-12


def test_tolerances_grow_with_the_order_and_the_precision():
    f32, f64 = DTYPES["f32"], DTYPES["f64"]
    assert tolerance(f64, 0) < tolerance(f64, 1) < tolerance(f64, 2) < tolerance(f32, 1)
    assert precision(DTYPES["c128"]) == precision(f64)


def test_close_means_shape_nan_and_inf_too():
    assert_close(np.array([np.nan, np.inf, 1.0]), np.array([np.nan, np.inf, 1.0]), 1e-12)
    for wrong in (np.array([1.0, np.inf, 1.0]), np.array([np.nan, -np.inf, 1.0]), np.array([[np.nan, np.inf, 1.0]])):
        with pytest.raises(AssertionError):
            assert_close(wrong, np.array([np.nan, np.inf, 1.0]), 1e-12)
