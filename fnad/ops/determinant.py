"""Determinants. Their derivatives are exact to all orders, for singular matrices too.

The gradient of det is the matrix of cofactors, and the derivatives of that are `cofactor(a, e, …)`: the gradient in e₀
of the derivative of det along e₀ and all the directions e, …, in which it is linear and symmetric. So it is its own
derivative and its own transpose.

No number is divided by an element that may be 0. Up to size 4 the cofactors are sums of products of elements, by
Leibniz's formula; of larger matrices they come from a factorization A = X S Y with a diagonal S and well-conditioned X
and Y:

    det(A + E) = det(X) det(Y) det(S + X⁻¹ E Y⁻¹)
    Dᵏ det(S)[E₁, …, Eₖ] = Σ_{i₁,…,iₖ distinct} Π_{m∉{i}} sₘ Σ_σ sgn(σ) Π_r (E_r)_{i_r, i_σ(r)}

by expanding the determinant of a diagonal matrix plus another in the minors of the other. NumPy evaluates it by the
singular value decomposition. Native code takes an LU factorization whose pivots are not much smaller than the rest of
their rows: after the rows of U are divided by their pivots, no element is large. Giles (2008), section 2.2.4, has the
rule for regular matrices. The sign of det is its phase, d sign = i sign Im tr(A⁻¹ dA), and
d log|det| = Re tr(A⁻¹ dA).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial, reduce
from itertools import combinations, pairwise, permutations
from typing import Any

import numpy as np

from fnad.ir.primitive import Library, Pull, Push, Routine, Sample
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64, I64, Aval, is_complex, real_dtype
from fnad.ops import linalg
from fnad.ops.arithmetic import add, div, mul, neg, sub
from fnad.ops.comparison import eq, lt, select
from fnad.ops.constructors import INEXACT, by_name, matrix_primitive, same_avals, stacked
from fnad.ops.conversion import complex_, convert_to, imag, real
from fnad.ops.elementary import log
from fnad.ops.indexing import scatter
from fnad.ops.matrix import (
    beside,
    check_square,
    columns,
    diagonal,
    diagonal_matrix,
    identity_like,
    matmul,
    row_and_column,
    rows,
    total,
    transposed,
)
from fnad.ops.piecewise import abs_, remainder, sign
from fnad.ops.reduction import reduce_prod
from fnad.ops.shape import (
    broadcast_in_dim,
    concatenate,
    constant,
    full_like,
    iota,
    ones_like,
    reshape_to,
    sample,
    sum_over,
    zeros_like,
)

LARGEST_BY_FORMULA = 4
"""Size of matrices up to which a formula is as accurate and faster.

Products of three or four numbers of double precision may overflow or vanish where the determinant does not, so these
determinants are computed by elimination. Products of single precision are computed in double precision.
"""

# ---- det ---------------------------------------------------------------------------------------------------------


def _infer_det(a: Aval) -> Aval:
    check_square("det", a)
    return a.with_shape(a.shape[:-2])


def _push_det(results: Any, primals: Any, tangents: Any) -> list[Symbol]:
    return [total(mul(cofactor(primals[0]), tangents[0]))]


def _by_leibniz(elements: Sequence[Sequence[Symbol]]) -> Symbol:
    """The determinants of matrices of elements, expanded along their rows."""

    def of_rows(first: int, columns: Sequence[int]) -> Symbol:
        if len(columns) == 1:
            return elements[first][columns[0]]
        rest = [of_rows(first + 1, [other for other in columns if other != c]) for c in columns]
        terms = [mul(elements[first][c], minor) for c, minor in zip(columns, rest, strict=True)]
        return reduce(lambda total, n: (sub if n % 2 else add)(total, terms[n]), range(1, len(terms)), terms[0])

    return of_rows(0, range(len(elements)))


def _expanded_det(a: Symbol) -> Symbol | None:
    n = a.shape[-1]
    if n > LARGEST_BY_FORMULA:
        return None
    wide = convert_to(a, np.result_type(a.dtype, np.float64))
    overflows = n > 2 and wide.dtype == a.dtype
    elements = _elements(wide)
    return convert_to(_product(_pivots(elements)) if overflows else _by_leibniz(elements), a.dtype)


def _elements(a: Symbol) -> list[list[Symbol]]:
    """The elements of each matrix."""
    n = a.shape[-1]
    places = [[columns(rows(a, r, r + 1), c, c + 1) for c in range(n)] for r in range(n)]
    return [[reshape_to(x, a.shape[:-2]) for x in row] for row in places]


def _pivots(elements: list[list[Symbol]]) -> list[Symbol]:
    """The factors of determinants by Gaussian elimination with partial pivoting."""
    pivots: list[Symbol] = []
    while elements:
        first, *others = elements
        for n, other in enumerate(others):
            is_larger = lt(_size(first[0]), _size(other[0]))
            others[n] = [select(is_larger, x, y) for x, y in zip(first, other, strict=True)]
            first = [select(is_larger, neg(y), x) for x, y in zip(first, other, strict=True)]
        pivots.append(first[0])
        divisor = select(eq(first[0], zeros_like(first[0])), ones_like(first[0]), first[0])
        factors = [div(row[0], divisor) for row in others]
        elements = [
            [sub(y, mul(factor, x)) for x, y in zip(first[1:], row[1:], strict=True)]
            for factor, row in zip(factors, others, strict=True)
        ]
    return pivots


def _product(numbers: list[Symbol]) -> Symbol:
    """The product of some numbers, which overflows or vanishes only if their product does.

    The next factor is the smallest where the product so far is larger than 1, otherwise the largest.
    """
    for end in range(len(numbers) - 1, 0, -1):
        for n in range(end):
            numbers[n], numbers[n + 1] = _by_size(numbers[n], numbers[n + 1])
    total = numbers.pop()
    while numbers:
        is_large = lt(ones_like(_size(total)), _size(total))
        total = mul(total, select(is_large, numbers[0], numbers[-1]))
        numbers = [select(is_large, after, before) for before, after in pairwise(numbers)]
    return total


def _size(x: Symbol) -> Symbol:
    """The absolute value, or of a complex number the sum of those of its parts."""
    return add(abs_(real(x)), abs_(imag(x))) if is_complex(x.dtype) else abs_(x)


def _by_size(x: Symbol, y: Symbol) -> tuple[Symbol, Symbol]:
    """The smaller and the larger of two numbers by absolute value."""
    is_larger = lt(_size(y), _size(x))
    return select(is_larger, y, x), select(is_larger, x, y)


_square_samples = partial(linalg.matrix_samples, linalg.regular, (3, 3), (2, 3, 3), (1, 1), (0, 0))


def _of_rank(rank: int, size: int) -> Any:
    """A matrix of this rank, of which neither minors nor factorizations round."""
    return np.roll(np.diag(np.where(np.arange(size) < rank, np.arange(2.0, size + 2), 0.0)), 1, axis=0)


def _det_samples() -> Iterable[Sample]:
    yield from _square_samples()
    for size, ranks in ((4, range(4)), (5, (4,))):
        for rank in ranks:
            yield Sample((_of_rank(rank, size),))


det = stacked(
    "det",
    _infer_det,
    np.linalg.det,
    Push(_push_det),
    Library(
        "getrf",
        raises=False,
        native=lambda *_: Routine("linalg_det"),
        expansion=_expanded_det,
        dispatched=True,
    ),
    _det_samples,
    "Determinant.",
)

# ---- cofactor ----------------------------------------------------------------------------------------------------


def _infer_cofactor(a: Aval, *directions: Aval) -> Aval:
    check_square("cofactor", a)
    return same_avals("cofactor", [a, *directions])


def _leibniz_cofactor(a: Any, directions: tuple[Any, ...]) -> Any:
    """Σ ε_ij… ε_kl… a_jl … over the other indices: each pair of them once."""
    n, rest = a.shape[-1], a.shape[-1] - 1 - len(directions)
    if rest < 0:
        return np.zeros_like(a)
    rows, columns, signs = "abc"[:n], "xyz"[:n], _permutation_signs(n)
    terms = "".join(f",...{row}{column}" for row, column in zip(rows[1:], columns[1:], strict=True))
    total = np.einsum(f"{rows},{columns}{terms}->...{rows[0]}{columns[0]}", signs, signs, *directions, *[a] * rest)
    return np.broadcast_to(total / math.factorial(rest), a.shape)


def _permutation_signs(n: int) -> Any:
    signs = np.zeros((n,) * n)
    for order in permutations(range(n)):
        signs[order] = _sign(order)
    return signs


def _svd_cofactor(a: Any, directions: tuple[Any, ...]) -> Any:
    u, s, vh = np.linalg.svd(a)
    phase = np.linalg.det(u) * np.linalg.det(vh)
    left, right = np.conj(u) * phase[..., None, None], np.conj(vh)
    within = [np.conj(np.swapaxes(u, -1, -2)) @ e @ np.conj(np.swapaxes(vh, -1, -2)) for e in directions]
    return left @ _diagonal_cofactor(s, within) @ right


def _diagonal_cofactor(s: Any, directions: list[Any]) -> Any:
    """The cofactors, or their derivative along directions, of the diagonal matrix of s."""
    n, count = s.shape[-1], len(directions) + 1
    places = np.array(list(permutations(range(n), count)), np.int64).reshape(-1, count)
    kept = (places[:, :, None] != np.arange(n)).all(axis=1)
    products = np.prod(np.where(kept, s[..., None, :], 1), axis=-1)
    out = np.zeros((*s.shape, n), np.result_type(s, *directions))
    for order in permutations(range(count)):
        term = _sign(order) * products
        for e, row, column in zip(directions, places.T, places.T[list(order)], strict=False):
            term = term * e[..., row, column]
        elements: Any = (..., places[:, -1], places[:, order[-1]])
        np.add.at(out, elements, term)
    return out


def _sign(order: tuple[int, ...]) -> int:
    """The sign of a permutation."""
    inversions = sum(order[i] > order[j] for j in range(len(order)) for i in range(j))
    return -1 if inversions % 2 else 1


# ---- the same in native code -------------------------------------------------------------------------------------


def _expanded_cofactor(a: Symbol, *directions: Symbol) -> Symbol:
    wide = [convert_to(x, np.result_type(x.dtype, np.float64)) for x in (a, *directions)]
    by_formula = a.shape[-1] <= LARGEST_BY_FORMULA
    return convert_to((_cofactor_by_minors if by_formula else _cofactor_by_pivots)(*wide), a.dtype)


def _cofactor_by_minors(a: Symbol, *directions: Symbol) -> Symbol:
    """The minors of the other rows and columns in cyclic order, of each of the directions in a row of its own."""
    n, rest = a.shape[-1], a.shape[-1] - 1 - len(directions)
    if rest < 0:
        return zeros_like(a)
    if n == 1:
        return ones_like(a)
    row, column = row_and_column(a)
    total = zeros_like(a)
    for places in permutations(range(n - 1), len(directions)):
        factors = [a] * (n - 1)
        for place, direction in zip(places, directions, strict=True):
            factors[place] = direction
        total = add(total, _minor(factors))
    if n % 2:
        return total
    odd = remainder(add(row, column), full_like(row, 2))
    return select(eq(odd, zeros_like(odd)), total, neg(total))


def _minor(factors: Sequence[Symbol]) -> Symbol:
    """The minors of the rows and columns after each element, cyclically; row i + 1 is that of the first factor."""
    count = len(factors)
    return _by_leibniz([[_cyclic(x, r + 1, c + 1) for c in range(count)] for r, x in enumerate(factors)])


def _cyclic(x: Symbol, down: int, right: int) -> Symbol:
    """The elements i + down, j + right, counted cyclically."""
    n = x.shape[-1]
    moved = concatenate(rows(x, down, n), rows(x, 0, down), axis=x.ndim - 2)
    return beside(columns(moved, right, n), columns(moved, 0, right))


def _cofactor_by_pivots(a: Symbol, *directions: Symbol) -> Symbol:
    """With P A Q = L D U, where L and U have diagonals of ones: X = Pᵀ L, Y = U Qᵀ."""
    packed, *exchanges = linalg.revealing_lu(a)
    s, dims = diagonal(packed), tuple(range(a.ndim - 1))
    row_places, column_places = (linalg.row_order(pivots, size=a.shape[-1]) for pivots in exchanges)
    unit = div(packed, broadcast_in_dim(s, shape=a.shape, dims=dims))
    x = linalg.solve_triangular(packed, linalg.permute_rows(identity_like(a), row_places), lower=True, unit=True)
    if directions:
        moved = [linalg.permute_rows(transposed(matmul(x, e)), column_places) for e in directions]
        within = [transposed(linalg.solve_triangular(transposed(unit), e, lower=True, unit=True)) for e in moved]
        inner = matmul(transposed(_cofactor_of_diagonal(s, within, a)), x)
    else:
        inner = mul(broadcast_in_dim(_products_without_each(s, 1), shape=a.shape, dims=dims), x)
    found = linalg.solve_triangular(unit, mul(inner, _sign_of(exchanges, a)), lower=False, unit=True)
    outer = [iota(dtype=I64, shape=column_places.shape, axis=axis) for axis in range(a.ndim - 2)]
    return transposed(scatter(zeros_like(a), found, *outer, column_places))


def _sign_of(exchanges: Sequence[Symbol], like: Symbol) -> Symbol:
    """The sign of both permutations together."""
    signs = []
    for pivots in exchanges:
        here = eq(pivots, iota(dtype=pivots.dtype, shape=pivots.shape, axis=pivots.ndim - 1))
        one = constant(1.0, like.dtype, pivots.shape)
        signs.append(reduce_prod(select(here, one, neg(one)), axes=(pivots.ndim - 1,)))
    return broadcast_in_dim(mul(*signs), shape=like.shape, dims=tuple(range(like.ndim - 2)))


def _cofactor_of_diagonal(s: Symbol, directions: list[Symbol], like: Symbol) -> Symbol:
    """As `_diagonal_cofactor`, with one axis for each index."""
    count, batch = len(directions) + 1, s.ndim - 1
    products = convert_to(_products_without_each(s, count), like.dtype)
    total = zeros_like(like)
    for order in permutations(range(count)):
        product = products
        for r, (e, to) in enumerate(zip(directions, order, strict=False)):
            product = mul(product, _over_indices(e, batch, r, to, products))
        target = {order[-1], count - 1}
        term = sum_over(product, tuple(batch + i for i in range(count) if i not in target))
        term = transposed(term) if len(target) == 2 else diagonal_matrix(term)
        total = add(total, term) if _sign(order) > 0 else sub(total, term)
    return total


def _over_indices(e: Symbol, batch: int, row: int, column: int, like: Symbol) -> Symbol:
    """The elements of matrices, with these two of the axes after the batch as row and column."""
    dims = tuple(range(batch))
    if row == column:
        return broadcast_in_dim(diagonal(e), shape=like.shape, dims=(*dims, batch + row))
    e = e if row < column else transposed(e)
    return broadcast_in_dim(e, shape=like.shape, dims=(*dims, *sorted((batch + row, batch + column))))


def _products_without_each(s: Symbol, count: int) -> Symbol:
    """The products of all elements except those at `count` distinct indices; 0 where two indices are the same."""
    *outer, n = s.shape
    shape, batch = (*outer, *(n,) * count, n), len(outer)
    indices = [iota(dtype=I64, shape=shape, axis=batch + i) for i in range(count + 1)]
    factors = broadcast_in_dim(s, shape=shape, dims=(*range(batch), batch + count))
    for index in indices[:-1]:
        factors = select(eq(index, indices[-1]), ones_like(factors), factors)
    products = reduce_prod(factors, axes=(batch + count,))
    indices = [iota(dtype=I64, shape=products.shape, axis=batch + i) for i in range(count)]
    for one, other in combinations(indices, 2):
        products = select(eq(one, other), zeros_like(products), products)
    return products


def _pull_cofactor(results: Any, primals: Any, cts: Any) -> list[Symbol]:
    a, *directions = primals
    others = [directions[:i] + directions[i + 1 :] for i in range(len(directions))]
    return [cofactor(a, *directions, cts[0]), *[cofactor(a, *rest, cts[0]) for rest in others]]


def _cofactor_samples() -> Iterable[Sample]:
    yield from _det_samples()
    for n in (1, 2, 3, 4, 5):
        for dtype in by_name(INEXACT):
            # Up to n = 2 it is constant, and differences are nothing but rounding.
            yield Sample((linalg.regular((n, n), dtype), sample((n, n), dtype, 3)), smooth=n > 2)
    for size, rank in ((4, 0), (4, 2), (4, 3), (5, 3)):
        yield Sample((_of_rank(rank, size), sample((size, size), seed=3)))
    for size in (4, 5):
        square = (size, size)
        yield Sample((linalg.regular(square, F64), sample(square, seed=3), sample(square, seed=4)))


@matrix_primitive(
    _infer_cofactor, Pull(_pull_cofactor), Library("getc2", expansion=_expanded_cofactor), _cofactor_samples
)
@linalg.by_lapack(linalg.IF_NOT_CONVERGED)
def cofactor(a: Any, *directions: Any) -> Any:
    """Matrix of cofactors, the gradient of det; with more operands, its derivative along each of them."""
    wide = a.astype(np.result_type(a, np.float64))
    by_formula = 1 <= a.shape[-1] < LARGEST_BY_FORMULA  # einsum of 4 by 4 takes longer than LAPACK
    return (_leibniz_cofactor if by_formula else _svd_cofactor)(wide, directions).astype(a.dtype)


# ---- slogdet -----------------------------------------------------------------------------------------------------


def _infer_slogdet(a: Aval) -> tuple[Aval, Aval]:
    check_square("slogdet", a)
    outer = a.shape[:-2]
    return a.with_shape(outer), Aval(real_dtype(a.dtype), outer)


def _push_slogdet(results: Any, primals: Any, tangents: Any) -> list[Symbol | None]:
    phase, a = results[0], primals[0]
    growth = total(mul(transposed(linalg.inv(a)), tangents[0]))
    if not is_complex(a.dtype):
        return [None, growth]
    rotation = imag(growth)
    return [complex_(neg(mul(imag(phase), rotation)), mul(real(phase), rotation)), real(growth)]


def _expanded_slogdet(a: Symbol) -> tuple[Symbol, Symbol] | None:
    if a.shape[-1] > LARGEST_BY_FORMULA or is_complex(a.dtype):
        return None
    pivots = _pivots(_elements(a))
    return reduce(mul, map(sign, pivots)), reduce(add, [log(abs_(pivot)) for pivot in pivots])


@matrix_primitive(
    _infer_slogdet,
    Push(_push_slogdet),
    Library(
        "getrf",
        raises=False,
        native=lambda *_: Routine("linalg_slogdet"),
        expansion=_expanded_slogdet,
        dispatched=True,
    ),
    _square_samples,
)
def slogdet(a: Any) -> Any:
    """Sign (of complex matrices, phase) and logarithm of the size of the determinant."""
    return tuple(np.linalg.slogdet(a))
