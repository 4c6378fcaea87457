"""Series of polynomials, `numpy.polynomial`: what maps coefficients to coefficients.

Derivatives, integrals and products with x are linear in the coefficients, products of two series are in each of them.
Their matrices are what NumPy's own functions make of single polynomials, so all bases are treated alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev, hermite, hermite_e, laguerre, legendre

from fnad.errors import ArgumentTypeError, ShapeError
from fnad.ir.symbol import Symbol
from fnad.numpy.joining import join
from fnad.numpy.operands import as_symbol, axis_of, common_dtype, static_array, static_int, to_dtype
from fnad.numpy.polynomials import as_column
from fnad.numpy.products import dot
from fnad.numpy.registry import RULES, Rule, implements
from fnad.numpy.series import BASES, Basis, coefficients, inexact, of_one_basis, part, vandermonde
from fnad.numpy.ufuncs import add, divide, multiply, subtract
from fnad.ops.shape import constant, pad, reshape_to, slice_axis, transpose_to, zeros_like

# ---- matrices of what NumPy does to single polynomials ---------------------------------------------------------------


def unit(n: int, k: int) -> Any:
    """The coefficients of the k-th polynomial, in a series of length n."""
    return np.eye(1, n, k)[0]


def filled(c: Any, size: int) -> Any:
    """Coefficients with zeros at their end."""
    return np.pad(c, (0, size - len(c)))


@lru_cache(maxsize=256)
def matrix_of(function: Callable[[Any], Any], n: int, size: int) -> Any:
    """The matrix of a function that is linear in n coefficients."""
    return np.stack([filled(function(unit(n, k)), size) for k in range(n)], axis=1)


@lru_cache(maxsize=256)
def products_of(multiply: Callable[[Any, Any], Any], m: int, n: int) -> Any:
    """The coefficients of all products of one of m polynomials with one of n, along the first axis."""
    rows = [[filled(multiply(unit(m, i), unit(n, j)), m + n - 1) for j in range(n)] for i in range(m)]
    return np.moveaxis(np.array(rows), 2, 0)


def applied(matrix: Any, c: Symbol) -> Symbol:
    """The matrix times coefficients."""
    return dot(as_symbol(np.asarray(matrix), c.dtype), c)


# ---- calculus --------------------------------------------------------------------------------------------------------


def _along(c: Symbol, axis: Any, function: Callable[[Symbol], Symbol]) -> Symbol:
    """A function of coefficients along an axis."""
    at = axis_of(static_int(axis, "an axis"), c.ndim)
    to_front = (at, *[i for i in range(c.ndim) if i != at])
    result = function(transpose_to(c, to_front))
    return transpose_to(result, tuple(np.argsort(to_front).tolist()))


def _derivative(basis: Basis) -> Rule:
    original = basis.function("der")

    def rule(c: Any, m: Any, scl: Any, axis: Any) -> Symbol:
        times, scale = static_int(m, "an order of derivation"), static_array(scl)
        series = coefficients(c)
        return _along(series, axis, lambda x: applied(original(np.eye(x.shape[0]), times, scale), x))

    return rule


def _integral(basis: Basis) -> Rule:
    original = basis.function("int")

    def rule(c: Any, m: Any, k: Any, lbnd: Any, scl: Any, axis: Any) -> Symbol:
        times, given = static_int(m, "an order of integration"), [static_array(v) for v in (lbnd, scl)]
        constants, series = static_array(k), coefficients(c)

        def along(x: Symbol) -> Symbol:
            n, some = x.shape[0], np.ones(x.shape[0])
            integral = applied(original(np.eye(n), times, (), *given), x)
            shift = original(some, times, constants, *given) - original(some, times, (), *given)
            return add(integral, as_symbol(shift.reshape(-1, *(1,) * (x.ndim - 1)), x.dtype))

        return _along(series, axis, along)

    return rule


# ---- sums and products -----------------------------------------------------------------------------------------------


def grown(c: Symbol, size: int) -> Symbol:
    """A vector with zeros at its end, of this length."""
    return pad(c, low=(0,), high=(max(size - c.shape[0], 0),), interior=(0,))


def _termwise(combine: Rule, c1: Any, c2: Any) -> Symbol:
    x, y = of_one_basis(c1, "c1"), of_one_basis(c2, "c2")
    return combine(grown(x, y.shape[0]), grown(y, x.shape[0]))


def product(basis: Basis, c1: Any, c2: Any) -> Symbol:
    """The coefficients of a product of two series."""
    x, y = of_one_basis(c1, "c1"), of_one_basis(c2, "c2")
    dtype = common_dtype(x, y)
    table = products_of(basis.function("mul"), x.shape[0], y.shape[0])
    pairs = multiply(reshape_to(to_dtype(x, dtype), (x.shape[0], 1)), to_dtype(y, dtype))
    return applied(table.reshape(len(table), -1), reshape_to(pairs, (pairs.aval.size,)))


def times_x(basis: Basis, c: Any) -> Symbol:
    """The coefficients of a series times x."""
    x = of_one_basis(c, "c")
    return applied(matrix_of(basis.function("mulx"), x.shape[0], x.shape[0] + 1), x)


def _power(basis: Basis, c: Any, pow: Any, maxpower: Any = None) -> Symbol:
    x, exponent = of_one_basis(c, "c"), static_int(pow, "a power")
    if exponent < 0:
        raise ShapeError("Power must be a non-negative integer.")
    if maxpower is not None and exponent > maxpower:
        raise ShapeError("Power is too large")
    if not exponent:
        return constant(1, x.dtype, (1,))
    result = x
    for _ in range(exponent - 1):
        result = product(basis, result, x)
    return result


def _quotient(basis: Basis, c1: Any, c2: Any) -> tuple[Symbol, Symbol]:
    x, y = of_one_basis(c1, "c1"), of_one_basis(c2, "c2")
    m, n = x.shape[0], y.shape[0]
    if m < n:
        return zeros_like(slice_axis(x, 0, 0, 1)), x
    table = products_of(basis.function("mul"), m - n + 1, n)
    rest, digits = x, list[Symbol]()
    for i in reversed(range(m - n + 1)):
        multiple = applied(table[: n + i, i], y)
        digit = divide(part(rest, n + i - 1), part(multiple, n + i - 1))
        rest = slice_axis(subtract(rest, multiply(digit, multiple)), 0, 0, n + i - 1)
        digits.append(reshape_to(digit, (1,)))
    return join(digits[::-1], 0), rest if n > 1 else zeros_like(slice_axis(x, 0, 0, 1))


def _from_roots(basis: Basis, roots: Any) -> Symbol:
    found = inexact(roots)
    if found.ndim != 1:
        raise ShapeError("Array must be 1-d")
    result = constant(1, found.dtype, (1,))
    for k in range(found.shape[0]):
        raised = times_x(basis, result)
        result = subtract(raised, multiply(part(found, k), grown(result, raised.shape[0])))
    return result


def _line(basis: Basis, off: Any, scl: Any) -> Symbol:
    given = RULES[np.stack]([inexact(off), inexact(scl)])
    columns = [filled(basis.function("line")(*at), 2) for at in ((1.0, 0.0), (0.0, 1.0))]
    return applied(np.stack(columns, axis=1), given)


# ---- roots -----------------------------------------------------------------------------------------------------------


def companion(basis: Basis, c: Any) -> Symbol:
    """The companion matrix: affine in the coefficients, divided by the last."""
    x, original = of_one_basis(c, "c"), basis.function("companion")
    n = x.shape[0]
    if n < 2:
        raise ShapeError("Series must have maximum degree of at least 1.")
    last = unit(n, n - 1)
    at_zero = original(last)
    columns = np.stack([original(last + unit(n, k)) - at_zero for k in range(n - 1)], axis=-1)
    others = divide(slice_axis(x, 0, 0, n - 1), part(x, n - 1))
    return add(as_symbol(at_zero, x.dtype), applied(columns, others))


def _roots(basis: Basis, c: Any) -> Symbol:
    """The eigenvalues of the companion matrix, in NumPy's order, as complex numbers."""
    matrix = companion(basis, c)
    return RULES[np.sort](RULES[np.linalg.eigvals](matrix))


# ---- least squares ---------------------------------------------------------------------------------------------------


def _fit(basis: Basis, x: Any, y: Any, deg: Any, rcond: Any = None, full: Any = False, w: Any = None) -> Any:
    at, values = inexact(x), inexact(y)
    if at.ndim != 1 or not at.aval.size or not 1 <= values.ndim <= 2 or at.shape[0] != values.shape[0]:
        raise ArgumentTypeError("expected a non-empty vector x and as many values y, in one column or several")
    degrees = static_array(deg)
    chosen = None if np.ndim(degrees) == 0 else sorted(int(d) for d in degrees)
    order = int(degrees) if chosen is None else chosen[-1]
    matrix = vandermonde(basis, at, order)
    if chosen is not None:
        matrix = RULES[np.take](matrix, chosen, 1)
    if w is not None:
        weights = inexact(w)
        if weights.shape != at.shape:
            raise ArgumentTypeError("expected x and w to have same length")
        matrix = multiply(matrix, as_column(weights))
        values = multiply(values, weights if values.ndim == 1 else as_column(weights))
    scale = RULES[np.sqrt](RULES[np.sum](multiply(matrix, matrix), 0))
    cut = at.shape[0] * np.finfo(at.dtype).eps if rcond is None else rcond
    c, residuals, rank, singular = RULES[np.linalg.lstsq](divide(matrix, scale), values, cut)
    c = divide(c, scale if c.ndim == 1 else as_column(scale))
    c = c if chosen is None else _spread(c, chosen, order)
    return (c, [residuals, rank, singular, cut]) if full else c


def _spread(c: Symbol, places: Sequence[int], order: int) -> Symbol:
    """The coefficients at their places among zeros."""
    return applied(np.eye(order + 1)[:, list(places)], c)


# ---- from basis to basis ---------------------------------------------------------------------------------------------

CONVERSIONS = (
    *(chebyshev.poly2cheb, chebyshev.cheb2poly, legendre.poly2leg, legendre.leg2poly, laguerre.poly2lag),
    *(laguerre.lag2poly, hermite.poly2herm, hermite.herm2poly, hermite_e.poly2herme, hermite_e.herme2poly),
)


def _converted(original: Callable[[Any], Any]) -> Rule:
    def rule(*args: Any) -> Symbol:  # NumPy names the one after its basis
        x = of_one_basis(args[0], "c")
        return applied(matrix_of(original, x.shape[0], x.shape[0]), x)

    return rule


# ---- the table -------------------------------------------------------------------------------------------------------

OF_A_BASIS: dict[str, Callable[..., Any]] = {
    "mul": product,
    "mulx": times_x,
    "pow": _power,
    "div": _quotient,
    "fromroots": _from_roots,
    "line": _line,
    "companion": companion,
    "roots": _roots,
    "fit": _fit,
}


def _of(basis: Basis, rule: Callable[..., Any]) -> Rule:
    return lambda *args, **kwargs: rule(basis, *args, **kwargs)


def _termwise_by(combine: Rule) -> Rule:
    return lambda c1, c2: _termwise(combine, c1, c2)


for _basis in BASES:
    implements(_basis.function("add"))(_termwise_by(add))
    implements(_basis.function("sub"))(_termwise_by(subtract))
    implements(_basis.function("der"))(_derivative(_basis))
    implements(_basis.function("int"))(_integral(_basis))
    for _name, _rule in OF_A_BASIS.items():
        implements(_basis.function(_name))(_of(_basis, _rule))
for _function in CONVERSIONS:
    implements(_function)(_converted(_function))
