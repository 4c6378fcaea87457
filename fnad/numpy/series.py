"""Series of polynomials, `numpy.polynomial`: the bodies of NumPy, run on traced coefficients and points.

Products with x, derivatives, integrals and changes of the basis are linear in the coefficients, products of two series
are in each of them. Their matrices come from NumPy's own functions, called with single polynomials.

Coefficients start with that of P₀. NumPy drops zeros at their end from most results. Which coefficients of a traced
vector are zero is not known: here results have the length they have where the last coefficient is not 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, reduce
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev, hermite, hermite_e, laguerre, legendre, polynomial, polyutils

from fnad.errors import ArgumentTypeError, ShapeError
from fnad.numpy.bodies import XP, Body, BodyOf, anew
from fnad.numpy.namespace import on_trace
from fnad.numpy.registry import RULES

Function = Callable[..., Any]

BASES: dict[str, Any] = {
    "poly": polynomial,
    "cheb": chebyshev,
    "leg": legendre,
    "lag": laguerre,
    "herm": hermite,
    "herme": hermite_e,
}
"""The modules of NumPy, by the prefix of their functions' names."""

COMPOSED = {
    *("add", "sub", "pow", "companion", "roots", "val", "val2d", "val3d", "valnd"),
    *("grid2d", "grid3d", "vander", "vander2d", "vander3d", "weight"),
}
"""The functions whose bodies are followed."""

array = on_trace(np.array)


def series(alist: Any, trim: bool = True) -> Any:
    """Vectors of one dtype, all of which are traced: bodies write into them."""
    return anew(polyutils.as_series)([array(c) for c in alist], trim)


# ---- matrices of NumPy's functions of single polynomials -------------------------------------------------------------


def _columns(found: Sequence[Any]) -> Any:
    """Vectors of coefficients in columns, with zeros at their end."""
    size = max(map(len, found))
    return np.stack([np.pad(c, (0, size - len(c))) for c in found], axis=1)


@lru_cache(maxsize=256)
def _matrix_of(function: Function, n: int) -> Any:
    """The matrix of a function that is linear in n coefficients."""
    return _columns([function(unit) for unit in np.eye(n)])


@lru_cache(maxsize=256)
def _products_of(multiply: Function, m: int, n: int) -> Any:
    """The coefficients of all products of one of m polynomials with one of n, along the first axis."""
    return _columns([multiply(p, q) for p in np.eye(m) for q in np.eye(n)]).reshape(-1, m, n)


def _linear(own: Function) -> Function:
    def rule(c: Any) -> Any:
        (x,) = series([c])
        return XP.matmul(_matrix_of(own, len(x)), x)

    return rule


def _product(own: Function) -> Function:
    def rule(c1: Any, c2: Any) -> Any:
        x, y = series([c1, c2])
        table = _products_of(own, len(x), len(y))
        return XP.matmul(table.reshape(len(table), -1), XP.ravel(XP.outer(x, y)))

    return rule


def _quotient(multiply: Function) -> Function:
    """The quotient and the rest; the body tests if the last coefficient is 0."""

    def rule(c1: Any, c2: Any) -> Any:
        rest, divisor = series([c1, c2])
        m, n = len(rest), len(divisor)
        if m < n:
            return 0 * rest[:1], rest
        table, digits = _products_of(multiply, m - n + 1, n), list[Any]()
        for i in reversed(range(m - n + 1)):
            multiple = XP.matmul(table[: n + i, i], divisor)
            digits.insert(0, rest[-1] / multiple[-1])
            rest = (rest - digits[0] * multiple)[:-1]
        return XP.stack(digits), rest if n > 1 else 0 * divisor

    return rule


# ---- calculus --------------------------------------------------------------------------------------------------------


def _along(c: Any, axis: Any, function: Function) -> Any:
    """A function of coefficients along an axis."""
    x = XP.array(c, ndmin=1) + 0.0
    return XP.moveaxis(function(XP.moveaxis(x, axis, 0)), 0, axis)


def _derivative(own: Function) -> Function:
    def rule(c: Any, m: Any = 1, scl: Any = 1, axis: Any = 0) -> Any:
        return _along(c, axis, lambda x: XP.tensordot(own(np.eye(len(x)), m, np.asarray(scl)), x, 1))

    return rule


def _integral(own: Function) -> Function:
    def rule(c: Any, m: Any = 1, k: Any = (), lbnd: Any = 0, scl: Any = 1, axis: Any = 0) -> Any:
        given = np.asarray(lbnd), np.asarray(scl)

        def along(x: Any) -> Any:
            some = np.ones(len(x))
            shift = own(some, m, np.asarray(k), *given) - own(some, m, (), *given)
            found = XP.tensordot(own(np.eye(len(x)), m, (), *given), x, 1)
            return found + shift.reshape(-1, *[1] * (found.ndim - 1))

        return _along(c, axis, along)

    return rule


# ---- lines and fits --------------------------------------------------------------------------------------------------


def _line(own: Function) -> Function:
    """The series of a line; the body tests if the slope is 0."""
    return lambda off, scl: XP.multiply(off, [1, 0]) + XP.multiply(scl, own(0, 1))


def _from_roots(multiply: Function, line: Function) -> Function:
    """The series of given roots; the body sorts them."""
    product, factor = _product(multiply), _line(line)

    def rule(roots: Any) -> Any:
        zeros = XP.asarray(roots)
        if zeros.ndim != 1:
            raise ShapeError("Array must be 1-d")
        return reduce(product, [factor(-zero, 1) for zero in zeros], XP.ones(1))

    return rule


def _fit(vander: Function) -> Function:
    """The coefficients of least squares; the body warns of a rank that is too small."""

    def rule(x: Any, y: Any, deg: Any, rcond: Any = None, full: Any = False, w: Any = None) -> Any:
        x, y, degrees = XP.asarray(x) + 0.0, XP.asarray(y) + 0.0, np.sort(np.ravel(deg))
        if x.ndim != 1 or not x.size or not 1 <= y.ndim <= 2 or len(x) != len(y):
            raise ArgumentTypeError("expected a non-empty vector x and as many values y, in one column or several")
        if w is not None and np.shape(w) != x.shape:
            raise ArgumentTypeError("expected x and w to have same length")
        order = np.max(deg)
        matrix, right = anew(vander)(x, order), y.T
        matrix = matrix[:, degrees] if np.ndim(deg) else matrix
        if w is not None:
            matrix, right = (matrix.T * w).T, right * w
        scale = XP.linalg.norm(matrix, axis=0)
        cut = len(x) * np.finfo(x.dtype).eps if rcond is None else rcond
        c, *others = XP.linalg.lstsq(matrix / scale, right.T, cut)
        c = (c.T / scale).T
        c = XP.tensordot(np.eye(order + 1)[:, degrees], c, 1) if np.ndim(deg) else c
        return (c, [*others, cut]) if full else c

    return rule


# ---- the table -------------------------------------------------------------------------------------------------------

OF_NUMPY = {"mul": _product, "mulx": _linear, "der": _derivative, "int": _integral, "line": _line}
"""Rules that are made of NumPy's own functions of their names."""

CONVERSIONS = (
    *(chebyshev.poly2cheb, chebyshev.cheb2poly, legendre.poly2leg, legendre.leg2poly, laguerre.poly2lag),
    *(laguerre.lag2poly, hermite.poly2herm, hermite.herm2poly, hermite_e.poly2herme, hermite_e.herme2poly),
)

RULES[polyutils.as_series], RULES[polyutils.trimseq] = Body(series), Body(lambda seq: seq)
for _prefix, _module in BASES.items():
    _of: dict[str, Any] = {name.removeprefix(_prefix): function for name, function in vars(_module).items()}
    for _name in COMPOSED & _of.keys():  # a basis may have no weight
        RULES[_of[_name]] = BodyOf(_of[_name])
    for _name, _rule in OF_NUMPY.items():
        RULES[_of[_name]] = Body(_rule(_of[_name]))
    RULES[_of["div"]], RULES[_of["fit"]] = Body(_quotient(_of["mul"])), Body(_fit(_of["vander"]))
    RULES[_of["fromroots"]] = Body(_from_roots(_of["mul"], _of["line"]))
for _function in CONVERSIONS:
    RULES[_function] = Body(_linear(_function))
RULES[polynomial.polyvalfromroots] = BodyOf(polynomial.polyvalfromroots)
