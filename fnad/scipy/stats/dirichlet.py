"""The Dirichlet distribution. As in SciPy points lie on the simplex; one off it, or alpha <= 0, is an error.

Whether they do is seen when the program runs. The derivative is that of the formula in all components of x.
"""

from __future__ import annotations

from typing import Any

from fnad.errors import ShapeError
from fnad.ir.symbol import Symbol
from fnad.ops.comparison import bitwise_and, bitwise_not, eq, ge, gt, isinf, le, lt, select
from fnad.ops.elementary import exp, sqrt
from fnad.ops.entropy import xlogy
from fnad.ops.gamma import gammaln, psi
from fnad.ops.piecewise import abs_
from fnad.ops.requirement import require
from fnad.ops.shape import broadcast_in_dim, concatenate, full_like, ones_like, reshape_to, sum_over, zeros_like
from fnad.scipy.stats.distribution import Distribution, real_symbol

ROUNDING = 1e-9
"""The largest distance of a sum of components from 1."""


def log_density(x: Any, alpha: Any) -> Symbol:
    """The logarithm of the density: log Γ(Σ α) - Σ log Γ(α) + Σ (α - 1) log x."""
    parameters, point = _operands(x, alpha)
    exponents = broadcast_in_dim(parameters, shape=point.shape, dims=(0,))
    powers = sum_over(xlogy(exponents - 1.0, point), (0,))
    normaliser = _log_beta(parameters)
    return powers - broadcast_in_dim(normaliser, shape=powers.shape, dims=())


def density(x: Any, alpha: Any) -> Symbol:
    """The density; its derivative is nan where it is 0, which its logarithm does not tell."""
    log = log_density(x, alpha)
    return select(isinf(log), sqrt(exp(log)), exp(log))


def entropy(alpha: Any) -> Symbol:
    """The differential entropy: log B(α) + (Σ α - K) ψ(Σ α) - Σ (α - 1) ψ(α)."""
    parameters = _parameters(alpha)
    count, total = parameters.shape[0], sum_over(parameters, (0,))
    terms = sum_over((parameters - 1.0) * psi(parameters), (0,))
    return _log_beta(parameters) + (total - float(count)) * psi(total) - terms


def _log_beta(alpha: Symbol) -> Symbol:
    return sum_over(gammaln(alpha), (0,)) - gammaln(sum_over(alpha, (0,)))


IN_RANGE = "keep it away from 0, with np.maximum or as the exponential of what is traced"
ON_SIMPLEX = "divide x by its sum, or take a softmax"

# ---- operands ----------------------------------------------------------------------------------------------------


def _parameters(alpha: Any) -> Symbol:
    parameters = real_symbol(alpha)
    if parameters.ndim != 1:
        raise ShapeError(f"Parameter vector 'a' must be one dimensional, but a.shape = {parameters.shape}.")
    return require(
        parameters,
        gt(parameters, zeros_like(parameters)),
        message="All parameters must be greater than 0",
        remedy=IN_RANGE,
    )


def _operands(x: Any, alpha: Any) -> tuple[Symbol, Symbol]:
    """Alpha and the points in columns, checked, with the last component where x lacks it."""
    parameters, point = _parameters(alpha), real_symbol(x)
    count = parameters.shape[0]
    if not 1 <= point.ndim <= 2 or point.shape[0] not in (count - 1, count):
        raise ShapeError(
            "Vector 'x' must have either the same number of entries as, or one entry fewer than, parameter vector 'a', "
            f"but alpha.shape = {parameters.shape} and x.shape = {point.shape}."
        )
    if point.shape[0] < count:
        last = 1.0 - sum_over(point, (0,))
        point = concatenate(point, reshape_to(last, (1, *last.shape)), axis=0)
    return parameters, _on_simplex(point, parameters)


def _on_simplex(point: Symbol, alpha: Symbol) -> Symbol:
    inside = bitwise_and(ge(point, zeros_like(point)), le(point, ones_like(point)))
    point = require(point, inside, message="Each entry in 'x' must be between zero and one.", remedy=ON_SIMPLEX)
    small = lt(broadcast_in_dim(alpha, shape=point.shape, dims=(0,)), ones_like(point))
    at_pole = bitwise_and(eq(point, zeros_like(point)), small)
    message = "Each entry in 'x' must be greater than zero if its alpha is less than one."
    point = require(point, bitwise_not(at_pole), message=message, remedy=IN_RANGE)
    excess = abs_(sum_over(point, (0,)) - 1.0)
    message = "The input vector 'x' must lie within the normal simplex."
    return require(point, le(excess, full_like(excess, ROUNDING)), message=message, remedy=ON_SIMPLEX)


# ---- the distribution --------------------------------------------------------------------------------------------

dirichlet = Distribution("dirichlet", pdf=density, logpdf=log_density, entropy=entropy)
