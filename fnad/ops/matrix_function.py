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

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

from fnad.errors import DomainError, MatrixError
from fnad.ir.primitive import Library, Pull, Push, Routine, Sample
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64, I64, Aval
from fnad.lapack_threads import UP_TO_MIDDLE
from fnad.ops.arithmetic import add, div, mul, neg, sub
from fnad.ops.comparison import gt, isfinite, select
from fnad.ops.constructors import INEXACT, by_name, check_one_dtype, matrix_primitive, same_avals
from fnad.ops.contraction import dot_general
from fnad.ops.conversion import convert_to
from fnad.ops.eigenvalues import magnitude
from fnad.ops.elementary import exp, exp2, log2
from fnad.ops.linalg import IF_NOT_CONVERGED, by_lapack, each_matrix, matrix_samples, regular, solve
from fnad.ops.matrix import (
    beside,
    block_upper,
    check_matrices,
    check_square,
    diagonal,
    identity_like,
    matmul,
    transposed,
    upper_right,
)
from fnad.ops.piecewise import ceil, maximum, minimum
from fnad.ops.power import pow_
from fnad.ops.reduction import reduce_max
from fnad.ops.shape import broadcast_in_dim, concatenate, constant, full_like, ones_like, reduce_sum, sample, zeros_like

SHAPES = ((2, 2, 2), (1, 1), (0, 0))

# ---- repeated squaring -------------------------------------------------------------------------------------------


def _infer_repeated_square(a: Aval, times: Aval) -> Aval:
    check_square("repeated_square", a)
    if times != Aval(I64, a.shape[:-2]):
        raise MatrixError(f"repeated_square takes a number of times, i64, for each matrix of {a}, got {times}")
    return a


NEAR = 0.5
"""The distance from 1 up to which an element of the diagonal is kept as a difference from 1, which may be tiny."""


def squared(a: Any, y: Any, times: Any) -> tuple[Any, Any]:
    """1 + a, squared so many times, and its derivative along y.

    The matrix is a diagonal of 0 and 1 and the rest: exp(A / 2ⁿ) is 1 + 2⁻¹⁰⁰ where one element of A is large and
    another is 1, and the sum would lose the latter.
    """
    unit = np.eye(a.shape[-1], dtype=a.real.dtype)
    ones = np.ones_like(a.real, shape=a.shape[:-1])
    for n in range(int(times.max()) if times.size else 0):
        goes_on = (times > n)[..., None, None]
        diagonal = np.diagonal(a, axis1=-2, axis2=-1)
        is_far = np.abs(diagonal.real) + np.abs(diagonal.imag) > NEAR
        rest, left = a + np.where(is_far, ones, 0)[..., None] * unit, np.where(is_far, 0, ones).astype(ones.dtype)
        weight = left[..., :, None] + left[..., None, :]
        y = np.where(goes_on, rest @ y + y @ rest + np.where(weight == 0, 0, weight * y), y)
        a = np.where(goes_on, rest @ rest + np.where(weight == 0, 0, weight * rest), a)
        ones = np.where(goes_on[..., 0], left, ones)
    return a + ones[..., None] * unit, y


def _infer_repeated_square_along(a: Aval, e: Aval, times: Aval) -> Aval:
    return same_avals("repeated_square_along", [_infer_repeated_square(a, times), e])


def _pull_repeated_square_along(results: Any, primals: Any, cts: Any) -> list[Symbol | None]:
    (a, e, times), c = primals, transposed(cts[0])
    second = upper_right(repeated_square_along(block_upper(a, e), _twice(c), times))
    return [transposed(second), repeated_square_along(transposed(a), cts[0], times), None]


def _twice(c: Symbol) -> Symbol:
    """The block matrix [[c, 0], [0, c]]."""
    nothing = zeros_like(c)
    return concatenate(beside(c, nothing), beside(nothing, c), axis=c.ndim - 2)


def _repeated_square_samples() -> Iterable[Sample]:
    for dtype in by_name(INEXACT):
        yield Sample((sample((3, 3), dtype), np.array(2)))
    for shape, times in (((2, 2, 2), [0, 3]), ((1, 1), 1), ((0, 0), 2)):
        yield Sample((sample(shape), np.array(times)))


def _repeated_square_along_samples() -> Iterable[Sample]:
    for a, times in (given.operands for given in _repeated_square_samples()):
        yield Sample((a, sample(a.shape, a.dtype, 1), times))


@matrix_primitive(
    _infer_repeated_square,
    Push(lambda results, primals, tangents: [repeated_square_along(primals[0], tangents[0], primals[1])]),
    Library("gemm", raises=False, native=lambda *_: Routine("linalg_repeated_square"), dispatched=True),
    _repeated_square_samples,
)
def repeated_square(a: Any, times: Any) -> Any:
    """The square of the square of … 1 + a, so many times."""
    return squared(a, np.zeros_like(a), times)[0]


@matrix_primitive(
    _infer_repeated_square_along,
    Pull(_pull_repeated_square_along),
    Library("gemm", raises=False, native=lambda *_: Routine("linalg_repeated_square_along"), dispatched=True),
    _repeated_square_along_samples,
)
def repeated_square_along(a: Any, e: Any, times: Any) -> Any:
    """Derivative of `repeated_square` at a along e."""
    return squared(a, e, times)[1]


# ---- expm ----------------------------------------------------------------------------------------------------------


def _square(name: str, a: Aval) -> Aval:
    """Infer the result of a function of a matrix."""
    check_square(name, a)
    return a


def _along(name: str) -> Callable[[Aval, Aval], Aval]:
    """The inference of the derivative of one."""
    return lambda a, e: same_avals(name, [_square(name, a), e])


NUMERATORS = (
    64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600,
    670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1,
)  # fmt: skip
PADE = tuple(numerator / NUMERATORS[0] for numerator in NUMERATORS)
"""The coefficients of Padé's approximant of degree 13: p(x) / p(-x)."""

LARGEST = 4.25
"""The size of matrices up to which it is exact to rounding."""


LARGEST_EXPANDED = 32
"""The size of matrices up to which native code has an approximant of one degree, for stacks of matrices."""


class _Accuracy(NamedTuple):
    """The size up to which Taylor's polynomial of degree 18 is exact to rounding, and the rounding error."""

    size: float
    error: float


DOUBLE, SINGLE = _Accuracy(1.090863719290036, 2.0**-53), _Accuracy(3.010066362817634, 2.0**-24)

CONSTANTS = -9.04316832390810593223e-2, -1.09676396052962061844e1
TAYLOR = np.array(
    [
        [-1.00365581030144618291e-1, -8.02924648241156932449e-3, -8.92138498045729985177e-4, 0.0],
        [3.97849749499645077844e-1, 1.36783778460411720168, 4.98289622525382669416e-1, -6.37898194594723280150e-4],
        [1.68015813878906206114, 5.71779846478865511061e-2, -6.98210122488052056106e-3, 3.34975017086070470649e-5],
        [-6.76404519071381882256e-2, 6.75961301770459654925e-2, 2.95552570429315521194e-2, -1.39180257516060693404e-5],
        [0.0, -9.23364619367118555360e-2, -1.69364939002081722752e-2, -1.40086798182036094347e-5],
    ]
)
TAYLOR[1] += CONSTANTS[0] * TAYLOR[2]
"""The weights of the powers 1, 2, 3 and 6, without those of the identity."""

DEGREE = 18

LARGEST_SINGLE = 1e3
"""The size of matrices whose powers, and the coefficients of these, are normal numbers in single precision."""

MOST_HALVINGS = 40
"""The most halvings that are part of the coefficients, which would underflow."""


def _exponential(*given: Any) -> Any:
    """The exponential of a matrix, and its derivative along another one.

    Bader, Blanes & Casas, "Computing the matrix exponential with an optimized Taylor polynomial approximation" (2019):
    the polynomial of degree 18 takes five products and no factorization. It is computed less 1, so that the exponential
    of 0 is 1. Single precision needs fewer halvings.
    """
    a = np.stack(given)
    is_single = a.dtype.char in "fF" and _size(a) < LARGEST_SINGLE
    a = a if is_single else in_double(a)
    work = np.empty_like(a, shape=(9, *a.shape))  # one piece of memory, which the allocator keeps for the next call
    powers, sums = work[:4], work[4:]
    _set_powers(powers, a, sums[0])
    halvings = _halvings_of(a, powers, SINGLE if is_single else DOUBLE)
    inner = halvings if halvings <= MOST_HALVINGS else 0
    if halvings > inner:
        _set_powers(powers, a * 2.0**-halvings, sums[0])
    weights = (TAYLOR * 2.0 ** (-inner * np.array([1.0, 2.0, 3.0, 6.0]))).astype(a.dtype)
    np.matmul(weights, powers.reshape(4, -1), out=sums.reshape(5, -1))
    first, found, third, ninth, fifth = sums
    product, spare, *_ = powers
    ninth += _product(first, fifth, product, spare)
    third += ninth
    _add_to_diagonal(third, 2 * CONSTANTS[0] + CONSTANTS[1])
    found += _product(third, ninth, product, spare)
    _add_to_diagonal(found, 1.0)
    for _ in range(halvings):
        found, product = _product(found, found, product, spare), found
    return found.astype(given[0].dtype)


def _product(x: Any, y: Any, out: Any, spare: Any) -> Any:
    """The product of matrices, each with its slope if there is one."""
    np.matmul(x[0], y[0], out=out[0])
    if len(x) > 1:
        np.matmul(x[0], y[1], out=out[1])
        out[1] += np.matmul(x[1], y[0], out=spare[1])
    return out


def _set_powers(powers: Any, a: Any, spare: Any) -> None:
    """The powers 1, 2, 3 and 6."""
    first, second, third, sixth = powers
    first[:] = a
    _product(first, first, second, spare)
    _product(second, first, third, spare)
    _product(third, third, sixth, spare)


def _add_to_diagonal(x: Any, number: float) -> None:
    x[0][np.diag_indices(x.shape[-1])] += x.dtype.type(number)


def _size(x: Any) -> float:
    """The largest sum of sizes of a column, of the value and the slope above each other."""
    return float(np.abs(x).sum(axis=(0, 1)).max())


def _halvings_of(a: Any, powers: Any, accuracy: _Accuracy) -> int:
    """As of `_scaled` and `_more_halvings`: by the sizes of powers, and of the powers of sizes.

    The powers from 19 on are products of three or more sixth powers and one of the first five.
    """
    first, second, third, sixth = map(_size, powers)
    others = 1.0, first, second, third, second * second, second * third
    size = max(sixth ** (3 / (18 + n)) * other ** (1 / (18 + n)) for n, other in enumerate(others))
    halvings = _whole(size / accuracy.size)
    sizes = np.abs(a) * 2.0**-halvings
    size = float(sizes.sum(axis=(0, 1)).max())
    if size <= accuracy.size:
        return halvings
    row = np.ones_like(sizes[:, 0])
    for _ in range(DEGREE + 1):
        value = row[0] @ sizes[0]
        row = [value] if len(a) == 1 else [value, row[0] @ sizes[1] + row[1] @ sizes[0]]
    error = float(row[-1].max()) / (math.factorial(DEGREE + 1) * size * accuracy.error)
    return halvings + _whole(error ** (1 / DEGREE))


def _whole(ratio: float) -> int:
    """The least whole number of halvings after which a ratio is at most 1; 0 of one that is not finite."""
    return max(math.ceil(math.log2(ratio)), 0) if 0 < ratio < math.inf else 0


class _Dual(NamedTuple):
    """The matrix [[value, slope], [0, value]], or the value alone where there is no slope."""

    value: Symbol
    slope: Symbol | None

    def times(self, other: _Dual, product: Callable[[Symbol, Symbol], Symbol] = matmul) -> _Dual:
        value = product(self.value, other.value)
        if self.slope is None or other.slope is None:
            return _Dual(value, None)
        return _Dual(value, add(product(self.value, other.slope), product(self.slope, other.value)))

    def each(self, function: Callable[..., Symbol], *others: _Dual) -> _Dual:
        """The results of a function of each of the blocks."""
        value = function(self.value, *(other.value for other in others))
        if self.slope is None:
            return _Dual(value, None)
        return _Dual(value, function(self.slope, *(other.slope for other in others)))

    @property
    def sizes(self) -> _Dual:
        return self.each(magnitude)

    @property
    def norm(self) -> Symbol:
        """The largest sum of sizes of a column."""
        sizes = self.sizes
        whole = sizes.value if sizes.slope is None else add(*sizes)
        return reduce_max(reduce_sum(whole, axes=(whole.ndim - 2,)), axes=(whole.ndim - 2,))


def _expm_by_squaring(a: Symbol) -> Symbol | None:
    if a.shape[-1] > LARGEST_EXPANDED:
        return None
    if a.shape[-1] == 1:
        return exp(a)
    wide = convert_to(a, np.result_type(a.dtype, np.float64))
    root, times = _root(_Dual(wide, None))
    return convert_to(repeated_square(root.value, times), a.dtype)


def _root(a: _Dual) -> tuple[_Dual, Symbol]:
    """The exponential of a halved matrix less 1, by an approximant of degree 13, and how often the matrix is halved.

    Al-Mohy & Higham, "A new scaling and squaring algorithm for the matrix exponential" (2009). A matrix with a slope is
    one of twice the size, whose products take three of the blocks' in place of eight.
    """
    times, scaled = _scaled(a)
    squares = [scaled.times(scaled)]
    squares += [squares[0].times(squares[0])]
    squares += [squares[1].times(squares[0])]

    def even(first: int) -> _Dual:
        low = _plus_identity(_weighted(squares, PADE[first + 2 : first + 8 : 2]), PADE[first])
        return low.each(add, squares[2].times(_weighted(squares, PADE[first + 8 :: 2])))

    odd, rest = scaled.times(even(1)), even(0)
    return _quotient(odd.each(add, odd), rest.each(sub, odd)), times


def _quotient(p: _Dual, q: _Dual) -> _Dual:
    """The solution x of q x = p."""
    value = solve(q.value, p.value)
    if p.slope is None or q.slope is None:
        return _Dual(value, None)
    return _Dual(value, solve(q.value, sub(p.slope, matmul(q.slope, value))))


def _weighted(matrices: Sequence[_Dual], weights: Sequence[float]) -> _Dual:
    def total(*blocks: Symbol) -> Symbol:
        return reduce(add, (mul(x, constant(w, x.dtype, x.shape)) for x, w in zip(blocks, weights, strict=True)))

    first, *others = matrices
    return first.each(total, *others)


def _plus_identity(a: _Dual, weight: float) -> _Dual:
    identity = identity_like(a.value)
    return a._replace(value=add(a.value, mul(identity, constant(weight, identity.dtype, identity.shape))))


def _scaled(a: _Dual) -> tuple[Symbol, _Dual]:
    """The number of halvings of a, and a halved so often."""
    square = a.times(a)
    fourth = square.times(square)
    size = maximum(_root_of_norm(fourth, 4), _root_of_norm(fourth.times(square), 6))
    halvings = _halvings(div(_where_finite(size, a.norm), constant(LARGEST, F64, size.shape)))
    scaled = _halved(a, halvings)
    more = _more_halvings(scaled)
    return convert_to(add(halvings, more), I64), _halved(scaled, more)


def _where_finite(x: Symbol, otherwise: Symbol) -> Symbol:
    """A bound by powers of a matrix, or another one where the powers overflow."""
    return select(isfinite(x), x, otherwise)


def _root_of_norm(x: _Dual, k: int) -> Symbol:
    return pow_(x.norm, constant(1 / k, F64, x.norm.shape))


def _halvings(ratio: Symbol) -> Symbol:
    """The least whole number of halvings after which a ratio is at most 1; 0 of one that is not finite."""
    halvings = ceil(log2(ratio))
    none = zeros_like(halvings)
    return select(gt(halvings, none), minimum(halvings, full_like(halvings, 1100.0)), none)


def _halved(a: _Dual, times: Symbol) -> _Dual:
    factor = exp2(neg(times))

    def scale(x: Symbol) -> Symbol:
        return mul(x, broadcast_in_dim(convert_to(factor, x.dtype), shape=x.shape, dims=tuple(range(x.ndim - 2))))

    return a.each(scale)


def _more_halvings(a: _Dual) -> Symbol:
    """The halvings that the error of the approximant, of degree 27 in |a|, requires beyond the powers of a."""
    powers = [a.sizes]
    for _ in range(2):
        powers.append(powers[-1].times(powers[-1]))
    ones = ones_like(diagonal(powers[0].value))
    row = _Dual(ones, None if a.slope is None else ones)
    for power, count in zip(powers, (1, 1, 6), strict=True):
        for _ in range(count):
            row = _row_times(row, power)
    sums = row.value if row.slope is None else row.slope  # of the columns at the right, which are larger
    bound, norm = reduce_max(sums, axes=(sums.ndim - 1,)), a.norm
    error = div(bound, mul(norm, constant(113250775606021113483283660800000000.0 * 2.0**-53, F64, norm.shape)))
    return _halvings(_where_finite(pow_(error, constant(1 / 26, F64, error.shape)), norm))


def _row_times(row: _Dual, matrix: _Dual) -> _Dual:
    """Rows of two parts, each times a matrix of blocks."""
    stack, last = tuple(range(matrix.value.ndim - 2)), matrix.value.ndim - 2

    def product(x: Symbol, y: Symbol) -> Symbol:
        return dot_general(x, y, contract=((last,), (last,)), batch=(stack, stack))

    return row.times(matrix, product)


_expm_samples = partial(matrix_samples, sample, (3, 3), *SHAPES)


@matrix_primitive(
    partial(_square, "expm"),
    Push(lambda results, primals, tangents: [expm_frechet(primals[0], tangents[0])]),
    Library(expansion=_expm_by_squaring, dispatched=True),
    _expm_samples,
)
@by_lapack(IF_NOT_CONVERGED, UP_TO_MIDDLE)
def expm(a: Any) -> Any:
    """Exponential of a matrix."""
    if a.shape[-1] > LARGEST_EXPANDED and a.size:
        return each_matrix(lambda a: _exponential(a)[0], a, a)
    from scipy.linalg import expm  # noqa: PLC0415 - kept out of `import fnad`

    if not a.size:
        return a
    wide = a.astype(np.result_type(a.dtype, np.float64))
    found = expm(wide)
    is_lost = np.isnan(found).any((-2, -1)) & np.isfinite(a).all((-2, -1))
    if is_lost.any():  # SciPy has overflowed in the powers of a matrix that it takes for its scale
        norm = np.where(is_lost, np.abs(wide).sum(-2).max(-1), 1.0)
        times = np.maximum(np.ceil(np.log2(norm)), 0.0)
        halved = np.where(is_lost[..., None, None], wide, 0.0) * np.exp2(-times)[..., None, None]
        again = repeated_square.evaluate(expm(halved) - np.eye(a.shape[-1]), times.astype(np.int64))
        found = np.where(is_lost[..., None, None], again, found)
    return found.astype(a.dtype)


# ---- expm_frechet --------------------------------------------------------------------------------------------------


def _pull_expm_frechet(results: Any, primals: Any, cts: Any) -> list[Symbol]:
    (a, e), (ct,) = primals, cts
    second = upper_right(expm_frechet(block_upper(a, e), _twice(transposed(ct))))
    return [transposed(second), expm_frechet(transposed(a), ct)]


def _expm_frechet_by_squaring(a: Symbol, e: Symbol) -> Symbol | None:
    """The upper right block; the direction is of size 1, or it would be halved too often."""
    if a.shape[-1] > LARGEST_EXPANDED:
        return None
    if a.shape[-1] == 1:
        return mul(exp(a), e)
    wide, along = (convert_to(x, np.result_type(x.dtype, np.float64)) for x in (a, e))
    size = _Dual(along, None).norm
    unit = select(gt(size, zeros_like(size)), size, ones_like(size))
    length = broadcast_in_dim(convert_to(unit, wide.dtype), shape=e.shape, dims=tuple(range(e.ndim - 2)))
    root, times = _root(_Dual(wide, div(along, length)))
    return convert_to(mul(repeated_square_along(root.value, root.slope, times), length), a.dtype)


def _with_directions(samples: Callable[[], Iterable[Sample]]) -> Iterable[Sample]:
    for given in samples():
        (a,) = given.operands
        yield Sample((a, sample(a.shape, a.dtype, 1)))


@matrix_primitive(
    _along("expm_frechet"),
    Pull(_pull_expm_frechet),
    Library(expansion=_expm_frechet_by_squaring, dispatched=True),
    partial(_with_directions, _expm_samples),
)
def expm_frechet(a: Any, e: Any) -> Any:
    """Derivative of the matrix exponential at a along e."""
    # The upper right block, as compiled: SciPy's own function loses matrices that are badly scaled.
    n, wide = a.shape[-1], np.result_type(a.dtype, np.float64)
    size = np.max(np.sum(np.abs(e), axis=-2, keepdims=True), axis=-1, keepdims=True, initial=0.0)
    unit = np.where(size > 0, size, size.dtype.type(1))
    if n > LARGEST_EXPANDED and a.size:
        return each_matrix(lambda a, e: _exponential(a, e)[1], a, a, e / unit) * unit
    whole = expm.evaluate(np.block([[a.astype(wide), e / unit], [np.zeros_like(a), a]]))
    return (whole[..., :n, n:] * unit).astype(a.dtype)


# ---- solve_sylvester -----------------------------------------------------------------------------------------------


def _infer_solve_sylvester(a: Aval, b: Aval, q: Aval) -> Aval:
    check_square("solve_sylvester", a)
    check_square("solve_sylvester", b)
    check_matrices("solve_sylvester", q)
    check_one_dtype("solve_sylvester", a, b, q)
    if q.shape != (*a.shape[:-1], b.shape[-1]) or b.shape[:-2] != q.shape[:-2]:
        raise MatrixError(f"solve_sylvester: a x + x b = q does not fit for {a}, {b} and {q}")
    return q


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


@matrix_primitive(_infer_solve_sylvester, Pull(_pull_solve_sylvester), Library("trsyl"), _solve_sylvester_samples)
@by_lapack(IF_NOT_CONVERGED)
def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    """The solution x of Sylvester's equation a x + x b = q."""
    from scipy.linalg import solve_sylvester  # noqa: PLC0415 - kept out of `import fnad`

    return each_matrix(solve_sylvester, q, a, b, q)


# ---- sqrtm ---------------------------------------------------------------------------------------------------------


def _real_of_real(name: str, value: str, found: Any, a: Any) -> Any:
    """A function of a matrix; raises where it is complex and the matrix is real."""
    if np.iscomplexobj(found) and not np.iscomplexobj(a):
        raise DomainError(
            f"{name} of a real matrix that has no real {value}", remedy="convert the matrix to complex with astype"
        )
    return found


def _push_sqrtm(results: Any, primals: Any, tangents: Any) -> list[Symbol]:
    (root,) = results
    return [solve_sylvester(root, root, tangents[0])]


_sqrtm_samples = partial(matrix_samples, regular, (3, 3), *SHAPES)


@matrix_primitive(partial(_square, "sqrtm"), Push(_push_sqrtm), Library(), _sqrtm_samples)
@by_lapack(IF_NOT_CONVERGED)
def sqrtm(a: Any) -> Any:
    """Principal square root of a matrix; of a real matrix it has to be real."""
    from scipy.linalg import sqrtm  # noqa: PLC0415 - kept out of `import fnad`

    return each_matrix(lambda a: _real_of_real("sqrtm", "square root", sqrtm(a), a), a, a)


# ---- logm ----------------------------------------------------------------------------------------------------------


def in_double(a: Any) -> Any:
    """A matrix in double precision; of others SciPy warns that the result may be inaccurate."""
    return a.astype(np.result_type(a.dtype, np.float64))


def _pull_logm_frechet(results: Any, primals: Any, cts: Any) -> list[Symbol]:
    (a, e), (ct,) = primals, cts
    second = upper_right(logm_frechet(block_upper(a, e), _twice(transposed(ct))))
    return [transposed(second), logm_frechet(transposed(a), ct)]


@matrix_primitive(
    _along("logm_frechet"), Pull(_pull_logm_frechet), Library(), partial(_with_directions, _sqrtm_samples)
)
def logm_frechet(a: Any, e: Any) -> Any:
    """Derivative of the matrix logarithm at a along e."""
    n = a.shape[-1]
    size = np.abs(e).max(axis=(-2, -1), keepdims=True, initial=0)
    size = np.where(size > 0, size, 1)
    return logm.evaluate(np.block([[a, e / size], [np.zeros_like(a), a]]))[..., :n, n:] * size


@matrix_primitive(
    partial(_square, "logm"),
    Push(lambda results, primals, tangents: [logm_frechet(primals[0], tangents[0])]),
    Library(),
    _sqrtm_samples,
)
@by_lapack(IF_NOT_CONVERGED)
def logm(a: Any) -> Any:
    """Principal logarithm of a matrix; of a real matrix it has to be real."""
    from scipy.linalg import logm  # noqa: PLC0415 - kept out of `import fnad`

    return each_matrix(lambda a: _real_of_real("logm", "logarithm", logm(in_double(a)), a), a, a)


# ---- signm ---------------------------------------------------------------------------------------------------------


def _signm_samples() -> Iterable[Sample]:
    for given in _sqrtm_samples():
        (a,) = given.operands
        a[..., :1, :] *= -1
        yield given


def _push_signm(results: Any, primals: Any, tangents: Any) -> list[Symbol]:
    """DS with N dS + dS N = dA - S dA S, where N = A S is a square root of A² (Higham, 2008, theorem 5.3)."""
    (sign,), (a,), (tangent,) = results, primals, tangents
    size = matmul(a, sign)
    return [solve_sylvester(size, size, sub(tangent, matmul(sign, matmul(tangent, sign))))]


@matrix_primitive(partial(_square, "signm"), Push(_push_signm), Library(), _signm_samples)
@by_lapack(IF_NOT_CONVERGED)
def signm(a: Any) -> Any:
    """Sign of a matrix: its eigenvalues go to 1 and -1, by the signs of their real parts."""
    from scipy.linalg import signm  # noqa: PLC0415 - kept out of `import fnad`

    return each_matrix(lambda a: _real_of_real("signm", "sign", signm(in_double(a)), a), a, a)
