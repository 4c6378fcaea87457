"""Series of polynomials, `numpy.polynomial`: their values, by the recurrence of three terms of each basis.

    P₀ = 1,   Pₖ₊₁ = (aₖ x + bₖ) Pₖ - cₖ Pₖ₋₁

A series is summed from its end, as Clenshaw (1955) does: sₖ = γₖ + (aₖ x + bₖ) sₖ₊₁ - cₖ₊₁ sₖ₊₂, and s₀ is the sum.

Coefficients start with that of P₀. NumPy drops zeros at their end from most results. Which coefficients of a traced
vector are zero is not known: here results have the length they have where the last coefficient is not 0.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev, hermite, hermite_e, laguerre, legendre, polynomial

from fnad.errors import ShapeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64
from fnad.numpy.bodies import BodyOf
from fnad.numpy.operands import as_array, static_int, static_ints, to_dtype
from fnad.numpy.registry import RULES, Rule, implements
from fnad.numpy.ufuncs import add, multiply, subtract
from fnad.ops.shape import ones_like, reshape_to, slice_axis
from fnad.records import NamedTuple

Recurrence = tuple[float, float, float]
"""aₖ, bₖ and cₖ."""


class Basis(NamedTuple):
    """Polynomials by their recurrence, and the NumPy functions that are named after them."""

    module: Any
    prefix: str
    step: Callable[[int], Recurrence]

    def function(self, name: str) -> Any:
        """NumPy's function for this basis."""
        return getattr(self.module, self.prefix + name)


BASES = (
    Basis(polynomial, "poly", lambda k: (1, 0, 0)),
    Basis(chebyshev, "cheb", lambda k: (2 if k else 1, 0, 1)),
    Basis(legendre, "leg", lambda k: ((2 * k + 1) / (k + 1), 0, k / (k + 1))),
    Basis(laguerre, "lag", lambda k: (-1 / (k + 1), (2 * k + 1) / (k + 1), k / (k + 1))),
    Basis(hermite, "herm", lambda k: (2, 0, 2 * k)),
    Basis(hermite_e, "herme", lambda k: (1, 0, k)),
)


def inexact(value: Any) -> Symbol:
    """An operand as an array of floats, if it is one of integers."""
    x = as_array(value)
    return to_dtype(x, F64) if x.dtype.kind in "biu" else x


def coefficients(c: Any) -> Symbol:
    """Coefficients, of several series along the axes behind the first."""
    x = inexact(c)
    return x if x.ndim else reshape_to(x, (1,))


def part(c: Symbol, k: int) -> Symbol:
    """The coefficients of one of the polynomials."""
    return reshape_to(slice_axis(c, 0, k, k + 1), c.shape[1:])


def times_x(step: Recurrence, x: Symbol, y: Symbol) -> Symbol:
    """(a x + b) y."""
    a, b, _ = step
    scaled = multiply(multiply(a, x) if a != 1 else x, y)
    return add(scaled, multiply(b, y)) if b else scaled


# ---- sums ------------------------------------------------------------------------------------------------------------


def value(basis: Basis, x: Any, c: Any, tensor: bool = True) -> Symbol:
    """The sum of a series at x: of each one at each x, or where not `tensor`, of one at one."""
    at, series = as_array(x), coefficients(c)
    if tensor:
        series = reshape_to(series, (*series.shape, *(1,) * at.ndim))
    count = series.shape[0]
    total, before = add(part(series, count - 1), multiply(0.0, at)), None
    for k in reversed(range(count - 1)):
        new = add(part(series, k), times_x(basis.step(k), at, total))
        factor = basis.step(k + 1)[2]
        if before is not None and factor:
            new = subtract(new, multiply(factor, before))
        total, before = new, total
    return total


# ---- matrices of values ----------------------------------------------------------------------------------------------


def vandermonde(basis: Basis, x: Any, degree: Any) -> Symbol:
    """The polynomials up to a degree at each x, along a new last axis."""
    count = static_int(degree, "a degree")
    if count < 0:
        raise ShapeError("deg must be non-negative")
    at = inexact(x)
    at = at if at.ndim else reshape_to(at, (1,))
    found = [ones_like(at)]
    for k in range(count):
        step = basis.step(k)
        new = times_x(step, at, found[k])
        found.append(subtract(new, multiply(step[2], found[k - 1])) if k and step[2] else new)
    return RULES[np.stack](found, -1)


def _products(basis: Basis) -> Rule:
    """The rule for products of polynomials of several variables, one a column."""

    def rule(*args: Any) -> Symbol:
        *points, degrees = args
        orders = static_ints(degrees, "a degree")
        if len(orders) != len(points):
            raise ShapeError(f"Expected {len(points)} dimensions of degrees, got {len(orders)}")
        total: Any = None
        for point, degree in zip(points, orders, strict=True):
            matrix = vandermonde(basis, point, degree)
            total = matrix if total is None else _pairs(total, matrix)
        return total

    return rule


def _pairs(x: Symbol, y: Symbol) -> Symbol:
    """The products of each element along the last axis of x with each one along that of y."""
    all_ = multiply(reshape_to(x, (*x.shape, 1)), reshape_to(y, (*y.shape[:-1], 1, y.shape[-1])))
    return reshape_to(all_, (*all_.shape[:-2], x.shape[-1] * y.shape[-1]))


COMPOSED = ("val2d", "val3d", "valnd", "grid2d", "grid3d", "weight")
"""The functions that NumPy's bodies compose of the others."""


def _enter(basis: Basis) -> None:
    implements(basis.function("val"))(lambda x, c, tensor=True: value(basis, x, c, tensor))
    implements(basis.function("vander"))(lambda x, deg: vandermonde(basis, x, deg))
    implements(basis.function("vander2d"))(_products(basis))
    implements(basis.function("vander3d"))(_products(basis))
    for name in COMPOSED:
        function = getattr(basis.module, basis.prefix + name, None)  # a basis may have no weight
        if function is not None:
            RULES[function] = BodyOf(inspect.unwrap(function))


for _basis in BASES:
    _enter(_basis)
RULES[polynomial.polyvalfromroots] = BodyOf(inspect.unwrap(polynomial.polyvalfromroots))


def of_one_basis(c: Any, name: str) -> Symbol:
    """The coefficients of one series."""
    series = coefficients(c)
    if series.ndim != 1:
        raise ShapeError(f"{name}: Coefficient array is not 1-d")
    if not series.shape[0]:
        raise ShapeError("Coefficient array is empty")
    return series
