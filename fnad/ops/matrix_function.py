"""Functions of square matrices, exponential and square root, and Sylvester's equation, on stacks of matrices.

The derivative of the exponential is an exponential too (Najfeld & Havel, "Derivatives of the matrix exponential and
their computation", 1995; Mathias, 1996): the upper right block of exp([[A, E], [0, A]]) is L(A, E), the derivative at A
along E. Its transpose in E is L(Aᵀ, ·). The second derivative D L(A, E)[F] is symmetric: with C = ctᵀ,

    tr(C D L(A, E)[F]) = tr(F D L(A, C)[E])

and D L(A, C)[E] is the upper right block of L([[A, E], [0, A]], [[C, 0], [0, C]]).

The square root X of A has X dX + dX X = dA; Sylvester's equation A X + X B = Q is linear in X and Q (Giles, 2008;
Higham, "Functions of matrices", 2008, chapter 3).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from fnad.errors import DomainError, MatrixError
from fnad.ir.axes import Stacked
from fnad.ir.primitive import Library, Primitive, Pull, Push, Sample, register
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64, Aval
from fnad.ops.arithmetic import neg
from fnad.ops.constructors import INEXACT, by_name, check_one_dtype, same_avals
from fnad.ops.lapack_threads import UP_TO_MIDDLE
from fnad.ops.linalg import IF_NOT_CONVERGED, by_lapack, each_matrix, regular
from fnad.ops.matrix import (
    beside,
    block_upper,
    check_matrices,
    check_square,
    matmul,
    transposed,
    upper_right,
)
from fnad.ops.shape import concatenate, sample, zeros_like

SHAPES = ((2, 2, 2), (1, 1), (0, 0))

# ---- expm ----------------------------------------------------------------------------------------------------------


def _infer_expm(a: Aval) -> Aval:
    check_square("expm", a)
    return a


@by_lapack(IF_NOT_CONVERGED, UP_TO_MIDDLE)
def _expm(a: Any) -> Any:
    from scipy.linalg import expm  # noqa: PLC0415 - kept out of `import fnad`

    return expm(a).astype(a.dtype) if a.size else a


def _expm_samples() -> Iterable[Sample]:
    for dtype in by_name(INEXACT):
        yield Sample((sample((3, 3), dtype),))
    for shape in SHAPES:
        yield Sample((sample(shape),))


expm = register(
    Primitive(
        "expm",
        _infer_expm,
        _expm,
        Push(lambda results, primals, tangents: [expm_frechet(primals[0], tangents[0])]),
        Library(),
        _expm_samples,
        "Exponential of a matrix.",
        axes=Stacked(),
    )
)

# ---- expm_frechet --------------------------------------------------------------------------------------------------


def _infer_expm_frechet(a: Aval, e: Aval) -> Aval:
    check_square("expm_frechet", a)
    return same_avals("expm_frechet", [a, e])


@by_lapack(IF_NOT_CONVERGED, UP_TO_MIDDLE)
def _expm_frechet(a: Any, e: Any) -> Any:
    from scipy.linalg import expm_frechet  # noqa: PLC0415 - kept out of `import fnad`

    def one(a: Any, e: Any) -> Any:
        return expm_frechet(a, e, compute_expm=False, check_finite=False)

    return each_matrix(one, a, a, e)


def _pull_expm_frechet(results: Any, primals: Any, cts: Any) -> list[Symbol]:
    (a, e), (ct,) = primals, cts
    c = transposed(ct)
    nothing = zeros_like(c)
    twice = concatenate(beside(c, nothing), beside(nothing, c), axis=c.ndim - 2)
    second = upper_right(expm_frechet(block_upper(a, e), twice))
    return [transposed(second), expm_frechet(transposed(a), ct)]


def _expm_frechet_samples() -> Iterable[Sample]:
    for given in _expm_samples():
        (a,) = given.operands
        yield Sample((a, sample(a.shape, a.dtype, 1)))


expm_frechet = register(
    Primitive(
        "expm_frechet",
        _infer_expm_frechet,
        _expm_frechet,
        Pull(_pull_expm_frechet),
        Library(),
        _expm_frechet_samples,
        "Derivative of the matrix exponential at a along e.",
        axes=Stacked(),
    )
)

# ---- solve_sylvester -----------------------------------------------------------------------------------------------


def _infer_solve_sylvester(a: Aval, b: Aval, q: Aval) -> Aval:
    check_square("solve_sylvester", a)
    check_square("solve_sylvester", b)
    check_matrices("solve_sylvester", q)
    check_one_dtype("solve_sylvester", a, b, q)
    if q.shape != (*a.shape[:-1], b.shape[-1]) or b.shape[:-2] != q.shape[:-2]:
        raise MatrixError(f"solve_sylvester: a x + x b = q does not fit for {a}, {b} and {q}")
    return q


@by_lapack(IF_NOT_CONVERGED)
def _solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    from scipy.linalg import solve_sylvester  # noqa: PLC0415 - kept out of `import fnad`

    return each_matrix(solve_sylvester, q, a, b, q)


def _pull_solve_sylvester(results: Any, primals: Any, cts: Any) -> list[Symbol]:
    """q̄ with Aᵀ q̄ + q̄ Bᵀ = x̄, Ā = -q̄ xᵀ and B̄ = -xᵀ q̄."""
    a, b, _ = primals
    q_ct, x = solve_sylvester(transposed(a), transposed(b), cts[0]), transposed(results[0])
    return [neg(matmul(q_ct, x)), neg(matmul(x, q_ct)), q_ct]


def _solve_sylvester_samples() -> Iterable[Sample]:
    for dtype in by_name(INEXACT):
        yield Sample((regular((3, 3), dtype), regular((2, 2), dtype, 1), sample((3, 2), dtype, 2)))
    for a, b, q in (((2, 2, 2), (2, 2, 2), (2, 2, 2)), ((1, 1), (1, 1), (1, 1)), ((2, 2), (0, 0), (2, 0))):
        yield Sample((regular(a, F64), regular(b, F64, 1), sample(q, seed=2)))


solve_sylvester = register(
    Primitive(
        "solve_sylvester",
        _infer_solve_sylvester,
        _solve_sylvester,
        Pull(_pull_solve_sylvester),
        Library("trsyl"),
        _solve_sylvester_samples,
        "The solution x of Sylvester's equation a x + x b = q.",
        axes=Stacked(),
    )
)

# ---- sqrtm ---------------------------------------------------------------------------------------------------------


def _infer_sqrtm(a: Aval) -> Aval:
    check_square("sqrtm", a)
    return a


@by_lapack(IF_NOT_CONVERGED)
def _sqrtm(a: Any) -> Any:
    from scipy.linalg import sqrtm  # noqa: PLC0415 - kept out of `import fnad`

    def one(a: Any) -> Any:
        root = sqrtm(a)
        if np.iscomplexobj(root) and not np.iscomplexobj(a):
            raise DomainError(
                "sqrtm of a real matrix that has no real square root",
                remedy="convert the matrix to complex with astype",
            )
        return root

    return each_matrix(one, a, a)


def _push_sqrtm(results: Any, primals: Any, tangents: Any) -> list[Symbol]:
    (root,) = results
    return [solve_sylvester(root, root, tangents[0])]


def _sqrtm_samples() -> Iterable[Sample]:
    for dtype in by_name(INEXACT):
        yield Sample((regular((3, 3), dtype),))
    for shape in SHAPES:
        yield Sample((regular(shape, F64),))


sqrtm = register(
    Primitive(
        "sqrtm",
        _infer_sqrtm,
        _sqrtm,
        Push(_push_sqrtm),
        Library(),
        _sqrtm_samples,
        "Principal square root of a matrix; of a real matrix it has to be real.",
        axes=Stacked(),
    )
)
