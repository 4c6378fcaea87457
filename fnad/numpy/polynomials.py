"""Polynomials as vectors of coefficients, the highest power first.

NumPy drops leading zeros of products and remainders. Which coefficients of a traced vector are zero is not known: here
the results have the length they have where the leading coefficients are not zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.errors import ArgumentTypeError, DtypeError, OutOfRangeError, ShapeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64, I64, Aval
from fnad.numpy.joining import join
from fnad.numpy.linear_algebra import eigvals, inv, lstsq
from fnad.numpy.numerical import convolve
from fnad.numpy.operands import as_array, as_symbol, as_vector, common_dtype, contains_symbol, static_int, to_dtype
from fnad.numpy.products import dot, outer
from fnad.numpy.reductions import sum_
from fnad.numpy.registry import RULES, implements
from fnad.numpy.ufuncs import add, divide, multiply, negative, subtract
from fnad.ops.shape import (
    broadcast_to,
    concatenate,
    constant,
    ones_like,
    pad,
    reshape_to,
    slice_axis,
    transpose_to,
    zeros_like,
)


def coefficients(p: Any) -> Symbol:
    """The coefficients of a polynomial: of a vector, a list or a np.poly1d."""
    return as_vector(p.coeffs if isinstance(p, np.poly1d) else p)


def element(x: Symbol, i: int) -> Symbol:
    """An element of a vector."""
    return reshape_to(slice_axis(x, 0, i, i + 1), ())


# ---- arithmetic ------------------------------------------------------------------------------------------------------


@implements(np.polymul)
def polymul(a1: Any, a2: Any) -> Symbol:
    x, y = (coefficients(p if contains_symbol(p) else np.poly1d(p)) for p in (a1, a2))
    return convolve(*[p if p.shape[0] else zeros_like(Aval(p.dtype, (1,))) for p in (x, y)])


@implements(np.polydiv)
def polydiv(u: Any, v: Any) -> tuple[Symbol, Symbol]:
    x, y = (add(coefficients(p), 0.0) for p in (u, v))
    dtype = common_dtype(x, y)
    if 0 in (x.shape[0], y.shape[0]):
        raise OutOfRangeError("index 0 is out of bounds for axis 0 with size 0")
    scale = divide(1.0, element(y, 0))
    rest, quotient, n = to_dtype(x, dtype), [constant(0, dtype)], y.shape[0] - 1
    for k in range(x.shape[0] - n):
        digit = to_dtype(multiply(scale, element(rest, k)), dtype)
        part = pad(multiply(digit, y), low=(k,), high=(x.shape[0] - n - 1 - k,), interior=(0,))
        rest = subtract(rest, to_dtype(part, dtype))
        quotient = [*(quotient if k else []), digit]
    kept = min(max(n, 1), x.shape[0])
    return join([reshape_to(q, (1,)) for q in quotient], 0), slice_axis(rest, 0, x.shape[0] - kept, x.shape[0])


# ---- roots and powers ------------------------------------------------------------------------------------------------


@implements(np.poly)
def poly(seq_of_zeros: Any) -> Any:
    zeros = as_vector(seq_of_zeros)
    if zeros.ndim != 1:
        raise ShapeError("numpy.poly has a rule for a vector of roots; of a matrix, give it the eigenvalues")
    if zeros.shape[0] == 0:
        return 1.0
    if zeros.dtype.kind == "c":
        raise DtypeError(
            "numpy.poly of complex roots is real or complex by their values, which are not known while tracing",
            remedy="multiply the factors with np.convolve",
        )
    zeros = to_dtype(zeros, np.dtype(np.mintypecode(zeros.dtype.char)))
    product = one = ones_like(slice_axis(zeros, 0, 0, 1))
    for i in range(zeros.shape[0]):
        product = convolve(product, join([one, negative(slice_axis(zeros, 0, i, i + 1))], 0))
    return product


@implements(np.vander)
def vander(x: Any, N: Any, increasing: bool) -> Symbol:
    v = as_array(x)
    if v.ndim != 1:
        raise ShapeError("x must be a one-dimensional array or sequence.")
    count = v.shape[0] if N is None else static_int(N, "a number of columns")
    v = to_dtype(v, np.promote_types(v.dtype, I64))
    columns = [ones_like(v)]
    for _ in range(count - 1):
        columns.append(multiply(columns[-1], v) if len(columns) > 1 else v)
    ordered = columns[:count] if increasing else columns[:count][::-1]
    if not ordered:
        return constant(0, v.dtype, (v.shape[0], 0))
    return join([reshape_to(column, (v.shape[0], 1)) for column in ordered], 1)


# ---- fits and roots --------------------------------------------------------------------------------------------------
# Coefficients from points by least squares, roots by the eigenvalues of the companion matrix.


@implements(np.polyfit)
def polyfit(x: Any, y: Any, deg: Any, rcond: Any, full: Any, w: Any, cov: Any) -> Any:
    at, values = add(as_array(x), 0.0), add(as_array(y), 0.0)
    order = static_int(deg, "a degree") + 1
    _check(at, values, order)
    matrix = vander(at, order)
    if w is not None:
        weights = _weights(w, values)
        matrix = multiply(matrix, as_column(weights))
        values = multiply(values, weights if values.ndim == 1 else as_column(weights))
    scale = RULES[np.sqrt](sum_(multiply(matrix, matrix), 0))
    matrix = divide(matrix, scale)
    cut = at.shape[0] * np.finfo(at.dtype).eps if rcond is None else rcond
    c, residuals, rank, singular = lstsq(matrix, values, cut)
    c = divide(c, scale if c.ndim == 1 else as_column(scale))
    if full:
        return c, residuals, rank, singular, cut
    return (c, _covariance(matrix, scale, residuals, values, cov)) if cov else c


def _check(x: Symbol, y: Symbol, order: int) -> None:
    if order < 1:
        raise ShapeError("expected deg >= 0")
    if x.ndim != 1:
        raise ArgumentTypeError("expected 1D vector for x")
    if x.aval.size == 0:
        raise ArgumentTypeError("expected non-empty vector for x")
    if not 1 <= y.ndim <= 2:
        raise ArgumentTypeError("expected 1D or 2D array for y")
    if x.shape[0] != y.shape[0]:
        raise ArgumentTypeError("expected x and y to have same length")


def _weights(w: Any, y: Symbol) -> Symbol:
    weights = add(as_array(w), 0.0)
    if weights.ndim != 1:
        raise ArgumentTypeError("expected a 1-d array for weights")
    if weights.shape[0] != y.shape[0]:
        raise ArgumentTypeError("expected w and y to have the same length")
    return weights


def as_column(v: Symbol) -> Symbol:
    return reshape_to(v, (*v.shape, 1))


def _covariance(matrix: Symbol, scale: Symbol, residuals: Symbol, y: Symbol, kind: Any) -> Symbol:
    """The covariance of the coefficients, for each column of y where there are several."""
    base = divide(inv(dot(transpose_to(matrix, (1, 0)), matrix)), outer(scale, scale))
    factor: Any = 1
    if kind != "unscaled":
        count, order = matrix.shape
        if count <= order:
            raise ShapeError("the number of data points must exceed order to scale the covariance matrix")
        factor = divide(residuals, count - order)
    return multiply(base if y.ndim == 1 else as_column(base), factor)


@implements(np.roots)
def roots(p: Any) -> Symbol:
    """The eigenvalues of the companion matrix, as complex numbers."""
    c = coefficients(p)
    if c.ndim != 1:
        raise ShapeError("Input must be a rank-1 array.")
    c = to_dtype(c, F64) if c.dtype.kind in "biu" else c
    count = c.shape[0] - 1
    if count < 1:
        return constant(0, F64, (0,))
    top = divide(negative(slice_axis(c, 0, 1, count + 1)), broadcast_to(element(c, 0), (count,)))
    below = as_symbol(np.eye(count - 1, count, dtype=c.dtype))
    return eigvals(concatenate(reshape_to(top, (1, count)), below, axis=0))
