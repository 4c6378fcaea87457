"""Linear equations with a banded matrix, stored as LAPACK and SciPy do: one diagonal a row.

    ab[u + i - j, j] = a[i, j]        for -l <= j - i <= u: u diagonals above the main one, l below

A triangular matrix is solved by substitution alone, in which an infinite element changes none of those before it.
The transposed matrix has the same rows in reverse order, each shifted back into its own columns.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from fnad.errors import MatrixError
from fnad.ir.primitive import Library, Pull, Sample
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64, Aval, is_complex
from fnad.ops.arithmetic import mul, neg
from fnad.ops.constructors import INEXACT, by_name, check_dtype, check_one_dtype, matrix_primitive
from fnad.ops.conversion import convert, real
from fnad.ops.linalg import IF_NOT_POSITIVE, IF_SINGULAR, by_lapack, each_matrix
from fnad.ops.matrix import check_matrices, rows
from fnad.ops.shape import concatenate, pad, reduce_sum, reshape_to, sample


def _infer_solve_banded(ab: Aval, b: Aval, *, below: int, above: int) -> Aval:
    check_matrices("solve_banded", ab)
    check_matrices("solve_banded", b)
    check_one_dtype("solve_banded", ab, b)
    if ab.shape[-2] != below + above + 1:
        raise MatrixError(f"solve_banded of {below} + {above} + 1 diagonals takes as many rows, got {ab}")
    if (*ab.shape[:-2], ab.shape[-1]) != b.shape[:-1]:
        raise MatrixError(f"solve_banded takes as many equations as unknowns, got {ab} and {b}")
    return b


def _pull_solve_banded(results: Any, primals: Any, cts: Any, *, below: int, above: int) -> list[Symbol]:
    """b̄ = A⁻ᵀ x̄ and, of Ā = -b̄ xᵀ, the diagonals."""
    (x,), (ab, _), (ct,) = results, primals, cts
    b_ct = solve_banded(transposed_band(ab, below, above), ct, below=above, above=below)
    diagonals = [neg(_sum_of_products(shifted(b_ct, row - above), x)) for row in range(below + above + 1)]
    return [concatenate(*diagonals, axis=ab.ndim - 2), b_ct]


def transposed_band(ab: Symbol, below: int, above: int) -> Symbol:
    """The transposed matrix in its own banded form."""
    moved: list[Symbol] = []
    for row in reversed(range(below + above + 1)):
        column = rows(ab, row, row + 1)
        as_column = reshape_to(column, (*ab.shape[:-2], ab.shape[-1], 1))
        moved.append(reshape_to(shifted(as_column, above - row), column.shape))
    return concatenate(*moved, axis=ab.ndim - 2)


def shifted(x: Symbol, by: int) -> Symbol:
    """The operand with row i + by as row i, 0 where there is none."""
    n = x.shape[-2]
    count = min(abs(by), n)
    moved = rows(x, count, n) if by > 0 else rows(x, 0, n - count)
    none, outer = (0,) * x.ndim, (0,) * (x.ndim - 2)
    width = (*outer, count, 0)
    return pad(moved, low=none if by > 0 else width, high=width if by > 0 else none, interior=none)


def _sum_of_products(x: Symbol, y: Symbol) -> Symbol:
    """Σₖ x_ik y_ik as a row."""
    total = reduce_sum(mul(x, y), axes=(x.ndim - 1,))
    return reshape_to(total, (*x.shape[:-2], 1, x.shape[-2]))


def _solve_banded_samples() -> Iterable[Sample]:
    for dtype in by_name(INEXACT):
        yield Sample((_band((3, 4), 1, dtype), sample((4, 2), dtype, 1)), {"below": 1, "above": 1})
    for below, above, shape in ((2, 1, (2, 4, 5)), (0, 1, (2, 3)), (2, 0, (3, 2)), (0, 0, (1, 1)), (1, 1, (3, 0))):
        b = sample((*shape[:-2], shape[-1], 2), seed=1)
        yield Sample((_band(shape, above), b), {"below": below, "above": above})


def _band(shape: tuple[int, ...], above: int, dtype: Any = F64) -> Any:
    ab = sample(shape, dtype)
    ab[..., above, :] += 3
    return np.array(ab)


@matrix_primitive(_infer_solve_banded, Pull(_pull_solve_banded), Library("gbsv"), _solve_banded_samples)
@by_lapack(IF_SINGULAR)
def solve_banded(ab: Any, b: Any, *, below: int, above: int) -> Any:
    """The solution of linear equations whose matrix has `below` and `above` diagonals beside the main one."""
    from scipy.linalg import lapack, solve_banded  # noqa: PLC0415 - moved out of `import fnad`

    def one(ab: Any, b: Any) -> Any:
        return solve_banded((below, above), ab, b, check_finite=False)

    def triangular(ab: Any, b: Any) -> Any:
        x, fault = lapack.get_lapack_funcs("tbtrs", (ab, b))(ab, b, uplo="L" if below else "U")
        if fault:
            raise LinAlgError("singular matrix")
        return x

    return each_matrix(triangular if bool(below) != bool(above) else one, b, ab, b)


def _infer_definite_band(ab: Aval, *, lower: bool) -> Aval:
    check_dtype("definite_band", ab.dtype, INEXACT)
    return ab


def _definite_band_samples() -> Iterable[Sample]:
    for dtype in by_name(INEXACT):
        for above, shape in ((1, (2, 3)), (0, (2, 2, 3)), (0, (1, 0))):
            yield Sample((_band(shape, above, dtype).real.astype(dtype),), {"lower": above == 0})


@matrix_primitive(
    _infer_definite_band,
    Pull(lambda results, primals, cts, *, lower: [cts[0]]),
    Library("pbtrf"),
    _definite_band_samples,
)
@by_lapack(IF_NOT_POSITIVE)
def definite_band(ab: Any, *, lower: bool) -> Any:
    """The diagonals of one triangle of a Hermitian matrix, which is positive definite; else LinAlgError."""
    from scipy.linalg import cholesky_banded  # noqa: PLC0415 - moved out of `import fnad`

    return each_matrix(lambda band: (cholesky_banded(band, lower=lower, check_finite=False), band)[1], ab, ab)


def hermitian_band(ab: Symbol, *, lower: bool) -> Symbol:
    """The diagonals of `definite_band` with a real main one, of which LAPACK reads no imaginary part."""
    if is_complex(ab.dtype):
        at = 0 if lower else ab.shape[-2] - 1
        diagonal = convert(real(rows(ab, at, at + 1)), dtype=ab.dtype)
        ab = concatenate(rows(ab, 0, at), diagonal, rows(ab, at + 1, ab.shape[-2]), axis=ab.ndim - 2)
    return definite_band(ab, lower=lower)
