"""The multivariate normal distribution, through the Cholesky factor of its covariance matrix.

With Σ = L Lᵀ, w = L⁻¹ (x - mean), the logarithm of the density is -(k log 2π + |w|² + 2 Σ log L_ii) / 2. Of the
matrix the lower triangle is read, by `cdf` the upper one, as in SciPy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.errors import ShapeError, UnsupportedFunctionError
from fnad.ir.symbol import Symbol
from fnad.numpy.operands import broadcast_all
from fnad.ops.autodiff import stop_gradient
from fnad.ops.bivariate_normal import bivariate_normal
from fnad.ops.comparison import ge, gt, lt, select
from fnad.ops.conversion import convert
from fnad.ops.eigenvalues import eigh
from fnad.ops.elementary import exp, log, sqrt
from fnad.ops.error_functions import ndtr
from fnad.ops.least_squares import pinv
from fnad.ops.linalg import cholesky, solve_triangular
from fnad.ops.matrix import adjoint, diagonal, diagonal_matrix, matmul
from fnad.ops.piecewise import abs_
from fnad.ops.power import hypot
from fnad.ops.reduction import reduce_max
from fnad.ops.requirement import require
from fnad.ops.shape import (
    broadcast_to,
    full_like,
    ones_like,
    reshape_to,
    slice_axis,
    sum_over,
    transpose_to,
    zeros_like,
)
from fnad.scipy.stats.distribution import Distribution, real_symbol

NEGLIGIBLE = {4: 1e3, 8: 1e6}
"""The factors on the precision of the largest eigenvalue below which SciPy takes one for 0, by the size of a float."""

INDEFINITE: dict[str, Any] = {
    "message": "The input matrix must be symmetric positive semidefinite.",
    "remedy": "give a covariance matrix whose eigenvalues are not negative",
}

LOG_2PI = math.log(2 * math.pi)


def log_density(x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Symbol:
    """The logarithm of the density at points along the last axis of x."""
    center, covariance = _parameters(mean, cov)
    k = covariance.shape[0]
    deviations = _deviations(real_symbol(x), center, k)
    *outer, _ = deviations.shape
    columns = transpose_to(reshape_to(deviations, (math.prod(outer), k)), (1, 0))
    found = (_singular if allow_singular else _regular)(covariance, columns)
    return reshape_to(found, tuple(n for n in outer if n != 1))


def _regular(covariance: Symbol, columns: Symbol) -> Symbol:
    """The logarithm of the density at deviations, which are columns."""
    factor = cholesky(covariance, upper=False)
    whitened = solve_triangular(factor, columns, lower=True, unit=False)
    squares = sum_over(whitened * whitened, (0,))
    return -0.5 * (squares + broadcast_to(_log_determinant(factor) + factor.shape[0] * LOG_2PI, squares.shape))


def _singular(covariance: Symbol, columns: Symbol) -> Symbol:
    """The log density where the matrix may be singular: on its range, by the pseudoinverse; elsewhere -inf."""
    values, vectors = eigh(covariance, uplo="L")
    rcond = NEGLIGIBLE[values.dtype.itemsize] * float(np.finfo(values.dtype).eps)
    limit = reduce_max(abs_(values), axes=(0,)) * rcond
    limits = broadcast_to(limit, values.shape)
    values = require(values, ge(values, -limits), **INDEFINITE)
    is_large = gt(values, limits)
    logarithms = select(is_large, log(select(is_large, values, ones_like(values))), zeros_like(values))
    constant = sum_over(logarithms + convert(is_large, dtype=values.dtype) * LOG_2PI, (0,))
    solved = matmul(pinv(covariance, rcond=rcond, is_hermitian=True), columns)
    squares = sum_over(columns * solved, (0,))
    density = -0.5 * (squares + broadcast_to(constant, squares.shape))
    along = stop_gradient(matmul(adjoint(vectors), columns))
    outside = select(broadcast_to(reshape_to(is_large, (*is_large.shape, 1)), along.shape), zeros_like(along), along)
    distance = sqrt(sum_over(outside * outside, (0,)))
    return select(lt(distance, broadcast_to(limit, distance.shape)), density, full_like(density, -math.inf))


def density(x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Symbol:
    """The density at points along the last axis of x."""
    return exp(log_density(x, mean, cov, allow_singular))


def entropy(mean: Any = None, cov: Any = 1) -> Symbol:
    """The differential entropy, (k log 2πe + log |Σ|) / 2."""
    _, covariance = _parameters(mean, cov)
    factor = cholesky(covariance, upper=False)
    return 0.5 * (_log_determinant(factor) + factor.shape[0] * (LOG_2PI + 1))


def distribution_function(
    x: Any,
    mean: Any = None,
    cov: Any = 1,
    allow_singular: bool = False,
    maxpts: Any = None,
    abseps: Any = 1e-5,
    releps: Any = 1e-5,
    **options: Any,
) -> Symbol:
    """The probability of what is not above x in any component, of one variable or two."""
    if allow_singular or any(value is not None for value in options.values()):
        raise UnsupportedFunctionError(
            "scipy.stats.multivariate_normal.cdf has no rule for allow_singular, lower_limit and rng",
            remedy="leave them out",
        )
    center, covariance = _parameters(mean, cov)
    factor = adjoint(cholesky(covariance, upper=True))
    k = factor.shape[0]
    if k > 2:
        raise UnsupportedFunctionError(
            f"scipy.stats.multivariate_normal.cdf of {k} variables is an integral over random points, to five digits; "
            "it has a rule for one variable and for two",
            remedy="integrate over all variables but two, whose distribution given the others is normal again",
        )
    deviations = _deviations(real_symbol(x), center, k)
    shape = tuple(n for n in deviations.shape[:-1] if n != 1)
    given = [reshape_to(_component(deviations, i), shape) for i in range(k)]
    return _below(factor, given)


def _below(factor: Symbol, limits: Sequence[Symbol]) -> Symbol:
    """The probability of one variable, or of two, from the Cholesky factor of their covariance."""
    like = limits[0].shape
    first = broadcast_to(_element(factor, 0, 0), like)
    if len(limits) == 1:
        return ndtr(limits[0] / first)
    across, down = _element(factor, 1, 0), _element(factor, 1, 1)
    scale = hypot(across, down)
    correlation = broadcast_to(across / scale, like)
    return bivariate_normal(correlation, limits[0] / first, limits[1] / broadcast_to(scale, like))


def _component(x: Symbol, i: int) -> Symbol:
    return slice_axis(x, x.ndim - 1, i, i + 1)


def _element(x: Symbol, i: int, j: int) -> Symbol:
    return reshape_to(slice_axis(slice_axis(x, 0, i, i + 1), 1, j, j + 1), ())


def log_distribution_function(*args: Any, **options: Any) -> Symbol:
    """Its logarithm."""
    return log(distribution_function(*args, **options))


def _log_determinant(factor: Symbol) -> Symbol:
    return 2.0 * sum_over(log(diagonal(factor)), (0,))


# ---- operands ----------------------------------------------------------------------------------------------------


def _parameters(mean: Any, cov: Any) -> tuple[Symbol | None, Symbol]:
    """The mean, None for zeros, and the covariance as a matrix: a number or a vector stands for its diagonal."""
    covariance = real_symbol(1.0 if cov is None else cov)
    center = None if mean is None else real_symbol(mean)
    k = center.aval.size if center is not None else covariance.shape[0] if covariance.ndim >= 2 else 1
    if k == 1 and covariance.aval.size == 1:
        covariance = reshape_to(covariance, (1, 1))
        center = None if center is None else reshape_to(center, (1,))
    if center is not None and center.ndim != 1:
        raise ShapeError(f"Array 'mean' must be a vector of length {k}.")
    if covariance.ndim == 0:
        covariance = broadcast_to(covariance, (k,))
    if covariance.ndim == 1:
        covariance = diagonal_matrix(covariance)
    if covariance.shape != (k, k):
        raise ShapeError(f"Array 'cov' must be a matrix of shape {(k, k)}, but cov.shape = {covariance.shape}.")
    return center, covariance


def _deviations(x: Symbol, center: Symbol | None, k: int) -> Symbol:
    """X - mean with the k components along the last axis; a vector of numbers is many points if k is 1."""
    if x.ndim < 2:
        x = reshape_to(x, (x.aval.size, 1) if k == 1 else (1, x.aval.size))
    if center is None:
        return broadcast_to(x, (*x.shape[:-1], k))
    point, middle = broadcast_all([x, center])
    return point - middle


multivariate_normal = Distribution(
    "multivariate_normal",
    pdf=density,
    logpdf=log_density,
    cdf=distribution_function,
    logcdf=log_distribution_function,
    entropy=entropy,
)
