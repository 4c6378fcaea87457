"""Polynomials from points, and points from polynomials: polyfit, by least squares, and roots, by eigenvalues."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.errors import ArgumentTypeError, ShapeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64
from fnad.numpy.contractions import dot, outer
from fnad.numpy.factorizations import eigvals
from fnad.numpy.operands import as_array, as_symbol, static_int, to_dtype
from fnad.numpy.polynomials import coefficients, element, vander
from fnad.numpy.reductions import sum_
from fnad.numpy.registry import RULES, implements
from fnad.numpy.systems import inv, lstsq
from fnad.numpy.ufuncs import add, divide, multiply, negative
from fnad.ops.shape import broadcast_to, concatenate, constant, reshape_to, slice_axis, transpose_to


@implements(np.polyfit)
def polyfit(x: Any, y: Any, deg: Any, rcond: Any = None, full: Any = False, w: Any = None, cov: Any = False) -> Any:
    at, values = add(as_array(x), 0.0), add(as_array(y), 0.0)
    order = static_int(deg, "a degree") + 1
    _check(at, values, order)
    matrix = vander(at, order)
    if w is not None:
        weights = _weights(w, values)
        matrix = multiply(matrix, _column(weights))
        values = multiply(values, weights if values.ndim == 1 else _column(weights))
    scale = RULES[np.sqrt](sum_(multiply(matrix, matrix), 0))
    matrix = divide(matrix, scale)
    cut = at.shape[0] * np.finfo(at.dtype).eps if rcond is None else rcond
    c, residuals, rank, singular = lstsq(matrix, values, cut)
    c = divide(c, scale if c.ndim == 1 else _column(scale))
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


def _column(v: Symbol) -> Symbol:
    return reshape_to(v, (*v.shape, 1))


def _covariance(matrix: Symbol, scale: Symbol, residuals: Symbol, y: Symbol, kind: Any) -> Symbol:
    """Return the covariance of the coefficients, for each column of y where there are several."""
    base = divide(inv(dot(transpose_to(matrix, (1, 0)), matrix)), outer(scale, scale))
    factor: Any = 1
    if kind != "unscaled":
        count, order = matrix.shape
        if count <= order:
            raise ShapeError("the number of data points must exceed order to scale the covariance matrix")
        factor = divide(residuals, count - order)
    return multiply(base if y.ndim == 1 else _column(base), factor)


@implements(np.roots)
def roots(p: Any) -> Symbol:
    """Return the eigenvalues of the companion matrix, as complex numbers."""
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
