"""Systems of linear equations with positive definite matrices, which a Cholesky factor solves.

The rule is that of `solve`: a derivative of the factor would take three products of matrices.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from fnad.ir.primitive import Library, Pull, Sample
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64, Aval
from fnad.ops import linalg
from fnad.ops.arithmetic import add, mul, neg
from fnad.ops.constructors import INEXACT, by_name, stacked
from fnad.ops.matrix import adjoint, conjugate, matmul, transposed
from fnad.ops.shape import sample


def _infer(a: Aval, b: Aval, *, upper: bool) -> Aval:
    linalg.check_system("solve_positive", a, b)
    return b


def _evaluate(a: Any, b: Any, *, upper: bool) -> Any:
    factor = linalg.cholesky.evaluate(a, upper=upper)
    other = np.conj(np.swapaxes(factor, -1, -2))
    left, right = (other, factor) if upper else (factor, other)
    half = linalg.solve_triangular.evaluate(left, b, lower=True, unit=False)
    return linalg.solve_triangular.evaluate(right, half, lower=False, unit=False)


def by_cholesky(a: Symbol, b: Symbol, *, upper: bool) -> Symbol:
    """The solution by the factor, which systems with one matrix share."""
    factor = linalg.cholesky(a, upper=upper)
    left, right = (adjoint(factor), factor) if upper else (factor, adjoint(factor))
    half = linalg.solve_triangular(left, b, lower=True, unit=False)
    return linalg.solve_triangular(right, half, lower=False, unit=False)


def _pull(results: Any, primals: Any, cts: Any, *, upper: bool) -> list[Symbol]:
    """The rule of `solve`, within the triangle that is read; the transpose of a Hermitian matrix is its conjugate."""
    b_ct = solve_positive(conjugate(primals[0]), cts[0], upper=upper)
    whole = neg(matmul(b_ct, transposed(results[0])))
    both = add(whole, adjoint(whole))
    half = linalg.half_diagonal(both)
    return [mul(both, transposed(half) if upper else half), b_ct]


def _samples() -> Iterable[Sample]:
    for is_upper in (False, True):
        for dtype in by_name(INEXACT):
            yield Sample((linalg.positive((3, 3), dtype), sample((3, 2), dtype, 1)), {"upper": is_upper})
    for a, b in (((2, 2, 2), (2, 2, 1)), ((1, 1), (1, 3)), ((0, 0), (0, 2)), ((3, 3), (3, 0))):
        yield Sample((linalg.positive(a, F64), sample(b, seed=1)), {"upper": False})


solve_positive = stacked(
    "solve_positive",
    _infer,
    _evaluate,
    Pull(_pull),
    Library("posv", expansion=by_cholesky),
    _samples,
    "The solution x of the linear equations a x = b, where a is Hermitian and positive definite; one triangle of a is "
    "read.",
)
