"""Matrices on the last two axes of symbols: what the rules of linear algebra are written with.

The axes before are a batch, the same for all operands. Nothing here is a primitive.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fnad.errors import MatrixError
from fnad.ir.symbol import Symbol
from fnad.ir.types import I64, Aval, is_complex
from fnad.ops.arithmetic import add, mul, sub
from fnad.ops.comparison import eq, ge, gt, select
from fnad.ops.constructors import INEXACT, Domain, check_dtype
from fnad.ops.contraction import dot_general
from fnad.ops.conversion import conj, convert, convert_to, imag, real
from fnad.ops.shape import (
    broadcast_in_dim,
    concatenate,
    constant,
    iota,
    pad,
    reduce_sum,
    reshape_to,
    slice_axis,
    transpose_to,
    zeros_like,
)

# ---- avals -------------------------------------------------------------------------------------------------------


def check_matrices(name: str, a: Aval, domain: Domain = INEXACT) -> None:
    """Raise where an operand is no stack of matrices, with NumPy's message."""
    check_dtype(name, a.dtype, domain)
    if a.ndim < 2:
        raise MatrixError(f"{a.ndim}-dimensional array given to {name}. Array must be at least two-dimensional")


def check_square(name: str, a: Aval, domain: Domain = INEXACT) -> None:
    """Raise where an operand is no stack of square matrices, with NumPy's message."""
    check_matrices(name, a, domain)
    if a.shape[-1] != a.shape[-2]:
        raise MatrixError(f"Last 2 dimensions of the array must be square: {name} of {a}")


def are_short(count: int, n: int) -> bool:
    """True if so many matrices of n real rows are best eliminated by code of their own, without a call of LAPACK."""
    return n <= 4 or (n <= 6 and count >= 16)


# ---- products and transposes -------------------------------------------------------------------------------------


def matmul(x: Symbol, y: Symbol) -> Symbol:
    """The products of two stacks of matrices."""
    stack = tuple(range(x.ndim - 2))
    return dot_general(x, y, contract=((x.ndim - 1,), (y.ndim - 2,)), batch=(stack, stack))


def transposed(x: Symbol) -> Symbol:
    """The transposes, without conjugation."""
    return transpose_to(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def conjugate(x: Symbol) -> Symbol:
    """The complex conjugate; of real numbers, themselves."""
    return conj(x) if is_complex(x.dtype) else x


def adjoint(x: Symbol) -> Symbol:
    """The conjugate transposes."""
    return conjugate(transposed(x))


def real_part(x: Symbol) -> Symbol:
    """The real part; of real numbers, themselves."""
    return real(x) if is_complex(x.dtype) else x


def imaginary_part(x: Symbol) -> Symbol:
    """The imaginary part; of real numbers, zeros."""
    return imag(x) if is_complex(x.dtype) else zeros_like(x)


def hermitian(x: Symbol) -> Symbol:
    """The Hermitian part, (x + xᴴ) / 2."""
    return mul(add(x, adjoint(x)), constant(0.5, x.dtype, x.shape))


def skew(x: Symbol) -> Symbol:
    """The skew-Hermitian part, (x - xᴴ) / 2."""
    return mul(sub(x, adjoint(x)), constant(0.5, x.dtype, x.shape))


def total(x: Symbol) -> Symbol:
    """The sum of all elements of each matrix."""
    return reduce_sum(x, axes=(x.ndim - 2, x.ndim - 1))


def trace(x: Symbol) -> Symbol:
    """The sum of each diagonal."""
    return reduce_sum(diagonal(x), axes=(x.ndim - 2,))


# ---- diagonals and triangles -------------------------------------------------------------------------------------


def row_and_column(x: Symbol | Aval) -> tuple[Symbol, Symbol]:
    """The indices of the elements along the last two axes."""
    return iota(dtype=I64, shape=x.shape, axis=x.ndim - 2), iota(dtype=I64, shape=x.shape, axis=x.ndim - 1)


def diagonal(x: Symbol) -> Symbol:
    """The diagonals: every (n + 1)-th element of m·n."""
    *outer, m, n = x.shape
    end = (min(m, n) - 1) * (n + 1) + 1 if m and n else 0
    return slice_axis(reshape_to(x, (*outer, m * n)), x.ndim - 2, 0, end, n + 1)


def diagonal_matrix(d: Symbol) -> Symbol:
    """The square matrices with these diagonals."""
    *outer, n = d.shape
    widths = [0] * (d.ndim - 1)
    flat = pad(d, low=(*widths, 0), high=(*widths, 0), interior=(*widths, n))
    return reshape_to(flat, (*outer, n, n))


def identity_like(x: Symbol | Aval) -> Symbol:
    """A stack of identities of the aval of x."""
    row, column = row_and_column(x)
    return convert(eq(row, column), dtype=x.dtype)


def _kept(is_kept: Callable[[Symbol, Symbol], Symbol], x: Symbol) -> Symbol:
    """The matrix with the elements 0 for whose row and column a condition does not hold."""
    return select(is_kept(*row_and_column(x)), x, zeros_like(x))


lower = partial(_kept, ge)
strictly_lower = partial(_kept, gt)
upper = partial(_kept, lambda row, column: ge(column, row))
strictly_upper = partial(_kept, lambda row, column: gt(column, row))
"""The triangles of a matrix, of which only `lower` and `upper` have the diagonal; all other elements are 0."""


def mirrored(x: Symbol, image: Symbol, *, is_lower: bool) -> Symbol:
    """One triangle of x, with the diagonal, and the other one of its image."""
    row, column = row_and_column(x)
    return select(ge(row, column) if is_lower else ge(column, row), x, image)


def hermitian_of(x: Symbol, *, is_lower: bool) -> Symbol:
    """The Hermitian matrix that LAPACK reads in one triangle of x, without the diagonal's imaginary part."""
    whole = mirrored(x, adjoint(x), is_lower=is_lower)
    if not is_complex(x.dtype):
        return whole
    row, column = row_and_column(x)
    return select(eq(row, column), convert_to(real(x), x.dtype), whole)


def off_diagonal(x: Symbol) -> Symbol:
    """The matrix with the diagonal 0."""
    row, column = row_and_column(x)
    return select(eq(row, column), zeros_like(x), x)


# ---- rows, columns and blocks ------------------------------------------------------------------------------------


def along_columns(v: Symbol, x: Symbol | Aval) -> Symbol:
    """A stack of vectors as matrices of the shape of x: v_j in column j, in x's dtype."""
    dims = (*range(x.ndim - 2), x.ndim - 1)
    return broadcast_in_dim(convert_to(v, x.dtype), shape=x.shape, dims=dims)


def along_rows(v: Symbol, x: Symbol | Aval) -> Symbol:
    """A stack of vectors as matrices of the shape of x: v_i in row i, in x's dtype."""
    return broadcast_in_dim(convert_to(v, x.dtype), shape=x.shape, dims=tuple(range(x.ndim - 1)))


def columns(x: Symbol, start: int, limit: int) -> Symbol:
    """Some of the columns."""
    return slice_axis(x, x.ndim - 1, start, limit)


def rows(x: Symbol, start: int, limit: int) -> Symbol:
    """Some of the rows."""
    return slice_axis(x, x.ndim - 2, start, limit)


def beside(*blocks: Symbol) -> Symbol:
    """Matrices side by side."""
    return concatenate(*blocks, axis=blocks[0].ndim - 1)


def block_upper(a: Symbol, b: Symbol) -> Symbol:
    """The block matrices [[a, b], [0, a]]."""
    return concatenate(beside(a, b), beside(zeros_like(a), a), axis=a.ndim - 2)


def upper_right(x: Symbol) -> Symbol:
    """The upper right quarter of matrices of even size."""
    n = x.shape[-1] // 2
    return columns(rows(x, 0, n), n, 2 * n)
