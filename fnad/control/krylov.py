"""GMRES: the solution of a linear equation A u = b from products with A alone.

A cycle builds an orthonormal basis q₀ = r/|r|, q₁, … of the Krylov space of the residual r by Arnoldi's iteration, with
A Q = Q⁺ H. It takes the correction Q y of the smallest residual, |r| e₀ - H y. The method is that of Saad & Schultz,
"GMRES: a generalized minimal residual algorithm for solving nonsymmetric linear systems", 1986. Each vector is made
orthogonal twice, which is enough (Giraud et al., 2005). Cycles start again until the residual is small.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fnad.control.closures import demand, over, repeat
from fnad.control.rows import put_row, row
from fnad.control.vector import norm, scaled
from fnad.errors import FailureKind
from fnad.ir.symbol import Symbol
from fnad.ir.types import I64, Aval
from fnad.ops.arithmetic import add, sub
from fnad.ops.comparison import bitwise_and, gt, le, lt, select
from fnad.ops.contraction import dot_general
from fnad.ops.least_squares import pinv
from fnad.ops.matrix import transposed
from fnad.ops.shape import constant, iota, reshape_to, slice_axis, zeros_like

CYCLE = 32
"""The size of a basis."""

CYCLES = 100

FAILURE = FailureKind.CONVERGENCE.of(
    "the linear equations of an implicit derivative were not solved: GMRES did not converge",
    "they are near singular, or badly scaled: scale the unknowns, or check that the solution is isolated",
)


def tolerance(dtype: np.dtype[np.floating]) -> float:
    """The relative precision to which values of this dtype are found: eps to the power 3/4."""
    return float(np.finfo(dtype).eps ** 0.75)


def gmres(matrix: Callable[[Symbol], Symbol], right: Symbol, start: Symbol) -> Symbol:
    """The solution u of matrix(u) = right, to `tolerance` of |right|; ConvergenceError when it runs."""
    target = norm(right) * tolerance(right.dtype)
    steps = constant(0, I64)

    def goes_on(u: Symbol, residual: Symbol, steps: Symbol) -> Symbol:
        return bitwise_and(gt(norm(residual), target), lt(steps, constant(CYCLES, I64)))

    def cycle(u: Symbol, residual: Symbol, steps: Symbol) -> list[Symbol]:
        better = add(u, _correction(matrix, residual))
        return [better, sub(right, matrix(better)), steps + 1]

    u, residual, _ = repeat(goes_on, cycle, [start, sub(right, matrix(start)), steps])
    return demand(u, le(norm(residual), target), FAILURE)


def _correction(matrix: Callable[[Symbol], Symbol], residual: Symbol) -> Symbol:
    """The vector of the Krylov space that, added to u, leaves the smallest residual."""
    size, n = min(CYCLE, residual.shape[0]), residual.shape[0]
    length = norm(residual)
    basis = put_row(zeros_like(Aval(residual.dtype, (size + 1, n))), _unit(residual, length), constant(0, I64))

    def step(basis: Symbol, k: Symbol) -> list[Symbol]:
        image = matrix(row(basis, k))
        first, rest = _orthogonal(basis, image)
        second, rest = _orthogonal(basis, rest)
        length = norm(rest)
        found = gt(length, norm(image) * float(np.finfo(image.dtype).eps))
        length = select(found, length, zeros_like(length))
        column = put_row(add(first, second), length, k + 1)
        return [put_row(basis, _unit(rest, length), k + 1), column]

    basis, columns = over(step, [basis], [iota(dtype=I64, shape=(size,), axis=0)])
    inverse = pinv(transposed(columns), rcond=float(np.finfo(residual.dtype).eps), is_hermitian=False)
    weights = scaled(length, reshape_to(slice_axis(inverse, 1, 0, 1), (size,)))
    return _combination(slice_axis(basis, 0, 0, size), weights)


def _unit(x: Symbol, length: Symbol) -> Symbol:
    """The vector in the length 1; zeros where there is no length."""
    none = zeros_like(length)
    return scaled(select(gt(length, none), 1 / length, none), x)


def _orthogonal(basis: Symbol, x: Symbol) -> tuple[Symbol, Symbol]:
    """The products of x with the basis, and what of x is orthogonal to it."""
    products = dot_general(basis, x, contract=((1,), (0,)), batch=((), ()))
    return products, sub(x, _combination(basis, products))


def _combination(basis: Symbol, weights: Symbol) -> Symbol:
    return dot_general(weights, basis, contract=((0,), (0,)), batch=((), ()))
