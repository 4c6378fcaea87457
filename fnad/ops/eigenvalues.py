"""Eigenvalues, singular values and their vectors, on stacks of matrices.

`eigh` and `eigvalsh` read one triangle of a matrix, so their gradients are 0 in the other one. Giles (2008), sections
3.1 and 3.2, derives the rules; for complex matrices Seeger et al., "Auto-differentiating linear algebra" (2017), and
Wan & Zhang, "Automatic differentiation for complex valued SVD" (2019).

Note [Vectors of equal values]
    The derivative of an eigenvector contains the reciprocals of the differences to the other eigenvalues. Where two
    agree to rounding it does not exist: the vectors are an arbitrary basis of their space, and the derivative of a
    function of them does not follow from theirs. There the difference counts as 0. A function that does not use these
    vectors still has its derivative, since what is 0 stays 0 (Note [Strong zero]). For one that uses them the result is
    inf or nan; for `eigh` always, since `distinct_vectors` is applied to the vectors before their use: a cotangent with
    the value 0, as in V log(w) Vᵀ at w = 1, does not mean that they are not used.

Note [Phases]
    Complex vectors have a phase. The derivatives of `eigh` and `svd` leave it as it is, vᴴ dv = 0, for `svd` that of
    each pair of vectors together: no other derivative is defined for what depends on the phase. `eig` makes the largest
    element of a vector real, and its derivative preserves that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from fnad.errors import ShapeError
from fnad.ir.primitive import Library, Linear, Pull, Push, Routine, Sample, Scalar, declare
from fnad.ir.program import Equation
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, I64, Aval, is_complex, real_dtype
from fnad.ops.arithmetic import add, mul, neg, strong_div, sub
from fnad.ops.comparison import eq, gt, le, select
from fnad.ops.constructors import INEXACT, by_name, check_dtype, matrix_primitive, stacked
from fnad.ops.conversion import complex_, complex_dtype, convert, convert_to, imag, real
from fnad.ops.linalg import (
    IF_NOT_CONVERGED,
    NO_EIGENVALUES,
    NO_SINGULAR_VALUES,
    NOT_FINITE,
    by_lapack,
    hermitian_samples,
    matrix_samples,
    solve,
)
from fnad.ops.matrix import (
    adjoint,
    along_columns,
    along_rows,
    beside,
    check_matrices,
    check_square,
    columns,
    conjugate,
    diagonal,
    hermitian,
    hermitian_of,
    identity_like,
    matmul,
    off_diagonal,
    real_part,
    row_and_column,
    rows,
    skew,
)
from fnad.ops.piecewise import abs_
from fnad.ops.power import hypot
from fnad.ops.reduction import argmax, reduce_max
from fnad.ops.shape import broadcast_in_dim, constant, full_like, ones_like, reduce_sum, sample, zeros_like

# ---- differences of values -----------------------------------------------------------------------------------------


def differences(w: Symbol) -> Symbol:
    """w_j - w_i in row i and column j, 0 where it is no more than rounding."""
    aval = w.aval.with_shape((*w.shape, w.shape[-1]))
    return beyond_rounding(sub(along_columns(w, aval), along_rows(w, aval)), w)


def beyond_rounding(x: Symbol, w: Symbol) -> Symbol:
    """x, 0 where it is no more than the rounding error of the largest of the n values w, which is n eps of it."""
    size, largest = magnitude(x), reduce_max(magnitude(w), axes=(w.ndim - 1,))
    error = mul(largest, constant(w.shape[-1] * np.finfo(largest.dtype).eps, largest.dtype, largest.shape))
    is_rounding = le(size, broadcast_in_dim(error, shape=size.shape, dims=tuple(range(error.ndim))))
    return select(is_rounding, zeros_like(x), x)


def magnitude(x: Symbol) -> Symbol:
    """|x|, of complex numbers too."""
    return hypot(real(x), imag(x)) if is_complex(x.dtype) else abs_(x)


def apart(x: Symbol, w: Symbol) -> Symbol:
    """x_ij / (w_j - w_i), 0 on the diagonal."""
    divisor = add(convert_to(differences(w), x.dtype), identity_like(x))
    return strong_div(off_diagonal(x), divisor)


# ---- vectors of equal values ---------------------------------------------------------------------------------------


def repeated(w: Symbol, v: Symbol) -> Symbol:
    """The columns of v whose eigenvalue is repeated, to rounding."""
    apart_ = differences(w)
    equal = convert(eq(apart_, zeros_like(apart_)), dtype=I64)
    count = reduce_sum(equal, axes=(w.ndim - 1,))
    return along_columns_of(gt(count, ones_like(count)), v)


def along_columns_of(values: Symbol, v: Symbol) -> Symbol:
    """One value a column, in their own dtype."""
    return broadcast_in_dim(values, shape=v.shape, dims=(*range(v.ndim - 2), v.ndim - 1))


def _infer_distinct(x: Aval, marks: Aval) -> Aval:
    check_dtype("distinct_vectors", x.dtype, INEXACT)
    if marks != Aval(BOOL, x.shape):
        raise ShapeError(f"distinct_vectors takes a mark for each element of {x}, got {marks}")
    return x


def _infer_without_derivative(x: Aval, marks: Aval) -> Aval:
    check_dtype("without_derivative", x.dtype, INEXACT)
    if marks != Aval(BOOL, x.shape):
        raise ShapeError(f"without_derivative takes a mark for each element of {x}, got {marks}")
    return x


def _marked_samples() -> Iterable[Sample]:
    for dtype in by_name(INEXACT):
        yield Sample((sample((2, 3), dtype), np.zeros((2, 3), bool)))
    yield Sample((sample((2, 3)), np.array([[False, True, False]] * 2)), smooth=False)


def _without_derivative(x: Any, marks: Any) -> Any:
    return np.where(marks, x.dtype.type(np.nan), x)


without_derivative = declare(
    "without_derivative",
    _infer_without_derivative,
    _without_derivative,
    Linear(lambda ct, x, marks: (without_derivative(ct, marks), None), (0,)),
    Scalar("select({1}, {dtype}(nan), {0})"),
    _marked_samples,
    "nan where marked, also in the place of 0: the derivative of `distinct_vectors`.",
)

distinct_vectors = declare(
    "distinct_vectors",
    _infer_distinct,
    lambda x, marks: x,
    Pull(lambda results, primals, cts: [without_derivative(cts[0], primals[1]), None]),
    Scalar("{0}", 0),
    _marked_samples,
    "The value itself, which has no derivative where marked.",
)

# ---- eigh ----------------------------------------------------------------------------------------------------------


def _infer_eigvalsh(a: Aval, *, uplo: str) -> Aval:
    check_square("eigvalsh", a)
    return Aval(real_dtype(a.dtype), a.shape[:-1])


def _infer_eigh(a: Aval, *, uplo: str) -> tuple[Aval, Aval]:
    check_square("eigh", a)
    return Aval(real_dtype(a.dtype), a.shape[:-1]), a


def _push_eigvalsh(results: Any, primals: Any, tangents: Any, *, uplo: str) -> list[Symbol]:
    """dwᵢ = vᵢᴴ dA vᵢ."""
    _, v = eigh(primals[0], uplo=uplo)
    moved = mul(conjugate(v), matmul(hermitian_of(tangents[0], is_lower=uplo == "L"), v))
    return [reduce_sum(real_part(moved), axes=(v.ndim - 2,))]


def _push_eigh(results: Any, primals: Any, tangents: Any, *, uplo: str) -> list[Symbol | None]:
    """The tangents dw = diag(E) and dV = V (E_ij / (w_j - w_i)), E = Vᴴ dA V."""
    w, v = results
    if v.aval.size == 0:
        return [None, None]
    e = matmul(adjoint(v), matmul(hermitian_of(tangents[0], is_lower=uplo == "L"), v))
    return [real_part(diagonal(e)), matmul(v, apart(e, w))]


def _hermitian_samples() -> Iterable[Sample]:
    for uplo in ("L", "U"):
        yield from hermitian_samples(uplo=uplo)


SUFFIX = {"L": "lo", "U": "up"}
"""The suffixes of NumPy's ufuncs for the triangle that they read."""

eigvalsh = stacked(
    "eigvalsh",
    _infer_eigvalsh,
    by_lapack(IF_NOT_CONVERGED)(lambda a, *, uplo: np.linalg.eigvalsh(a, UPLO=uplo)),
    Push(_push_eigvalsh),
    Library(
        "heevd", native=lambda *_, uplo: Routine(f"linalg_eigvalsh_{SUFFIX[uplo]}", (NO_EIGENVALUES,)), dispatched=True
    ),
    _hermitian_samples,
    "Eigenvalues of a Hermitian matrix, ascending; one triangle of it is read.",
)

eigh = stacked(
    "eigh",
    _infer_eigh,
    by_lapack(IF_NOT_CONVERGED)(lambda a, *, uplo: tuple(np.linalg.eigh(a, UPLO=uplo))),
    Push(_push_eigh),
    Library(
        "heevd", native=lambda *_, uplo: Routine(f"linalg_eigh_{SUFFIX[uplo]}", (NO_EIGENVALUES,)), dispatched=True
    ),
    _hermitian_samples,
    "Eigenvalues, ascending, and orthonormal eigenvectors of a Hermitian matrix; one triangle of it is read.",
)

# ---- eig -----------------------------------------------------------------------------------------------------------


def _infer_eig(a: Aval) -> tuple[Aval, Aval]:
    check_square("eig", a)
    dtype = a.dtype if a.dtype.kind == "c" else complex_dtype(a.dtype)
    return Aval(dtype, a.shape[:-1]), a.with_dtype(dtype)


def _push_eig(results: Any, primals: Any, tangents: Any) -> list[Symbol | None]:
    """The tangents diag(E) and V (E_ij / (w_j - w_i)) + V diag(c), E = V⁻¹ dA V; c keeps lengths and phases."""
    w, v = results
    if v.aval.size == 0:
        return [None, None]
    e = solve(v, matmul(convert_to(tangents[0], v.dtype), v))
    moved = matmul(v, apart(e, w))
    return [diagonal(e), add(moved, mul(v, along_columns(_back_to_form(v, moved), v)))]


def _back_to_form(v: Symbol, moved: Symbol) -> Symbol:
    """c, one a column, so that v + moved + c v is of length 1 and its largest element real."""
    axis = v.ndim - 2
    along = real(reduce_sum(mul(conjugate(v), moved), axes=(axis,)))
    size = mul(real(v), real(v))
    is_real = eq(imag(v), zeros_like(size))
    position = argmax(select(is_real, size, full_like(size, -1)), axis=axis)
    row, _ = row_and_column(v)
    chosen = eq(row, along_columns(position, row))
    rotation = _pick(imag(moved), chosen) / _pick(real(v), chosen)
    return neg(complex_(along, rotation))


def _pick(x: Symbol, chosen: Symbol) -> Symbol:
    return reduce_sum(select(chosen, x, zeros_like(x)), axes=(x.ndim - 2,))


def _infer_eigvals(a: Aval) -> Aval:
    check_square("eigvals", a)
    return _infer_eig(a)[0]


def _push_eigvals(results: Any, primals: Any, tangents: Any) -> list[Symbol | None]:
    _, v = eig(primals[0])
    return _push_eig((results[0], v), primals, tangents)[:1]


def _without_vectors(equation: Equation, live: Sequence[bool]) -> Equation:
    return equation if live[1] else replace(equation, primitive=eigvals, results=equation.results[:1])


def _routine(name: str, a: Aval) -> Routine:
    """The routine for matrices of a dtype; NumPy has no loop for complex single precision."""
    return Routine(name, (NO_EIGENVALUES, NOT_FINITE), in_double=a.dtype.kind == "c")


_eig_samples = partial(matrix_samples, sample, (3, 3), (2, 2, 2), (1, 1), (0, 0))


@matrix_primitive(
    _infer_eig,
    Push(_push_eig),
    Library("geev", native=partial(_routine, "linalg_eig"), dispatched=True),
    _eig_samples,
    prune=_without_vectors,
)
@by_lapack(IF_NOT_CONVERGED)
def eig(a: Any) -> tuple[Any, Any]:
    """Eigenvalues and eigenvectors of length 1 of any square matrix, as complex numbers."""
    dtype, (w, v) = np.result_type(a.dtype, np.complex64), np.linalg.eig(a)
    return w.astype(dtype), v.astype(dtype)


@matrix_primitive(
    _infer_eigvals,
    Push(_push_eigvals),
    Library("geev", native=partial(_routine, "linalg_eigvals"), dispatched=True),
    _eig_samples,
)
@by_lapack(IF_NOT_CONVERGED)
def eigvals(a: Any) -> Any:
    """Eigenvalues of any square matrix, as complex numbers."""
    return np.linalg.eigvals(a).astype(np.result_type(a.dtype, np.complex64))


# ---- svd -----------------------------------------------------------------------------------------------------------


def _infer_svdvals(a: Aval) -> Aval:
    check_matrices("svdvals", a)
    return Aval(real_dtype(a.dtype), (*a.shape[:-2], min(a.shape[-2:])))


def _infer_svd(a: Aval, *, full: bool) -> tuple[Aval, Aval, Aval]:
    check_matrices("svd", a)
    *outer, m, n = a.shape
    k = min(m, n)
    u, vh = ((m, m), (n, n)) if full else ((m, k), (k, n))
    return a.with_shape((*outer, *u)), Aval(real_dtype(a.dtype), (*outer, k)), a.with_shape((*outer, *vh))


def _push_svdvals(results: Any, primals: Any, tangents: Any) -> list[Symbol]:
    """dsᵢ = Re uᵢᴴ dA vᵢ, 0 where s is 0."""
    u, _, vh = svd(primals[0], full=False)
    moved = mul(conjugate(u), matmul(tangents[0], adjoint(vh)))
    return [_where_positive(results[0], reduce_sum(real_part(moved), axes=(u.ndim - 2,)))]


def _where_positive(s: Symbol, x: Symbol) -> Symbol:
    return select(eq(s, zeros_like(s)), zeros_like(x), x)


def _push_svd(results: Any, primals: Any, tangents: Any, *, full: bool) -> list[Symbol | None]:
    """The tangents ds = Re diag(P), and within their spaces dU = U (H / d + K / t), dV = V (H / d - K / t).

    P = Uᴴ dA V has the Hermitian part H and the skew part K; d = s_j - s_i, t = s_j + s_i. What leaves the space of U
    is (I - U Uᴴ) dA V / s, what leaves that of V is (I - V Vᴴ) dAᴴ U / s. An s of rounding error counts as 0.
    """
    if results[1].aval.size == 0:
        return [None, None, None]
    (u_all, values, vh_all), da = results, tangents[0]
    k, s = values.shape[-1], beyond_rounding(values, values)
    u, v = columns(u_all, 0, k), adjoint(rows(vh_all, 0, k))
    to_v, to_u = matmul(da, v), matmul(adjoint(da), u)
    p = matmul(adjoint(u), to_v)
    alike, opposed = apart(hermitian(p), s), _together(skew(p), s)
    du = add(matmul(u, add(alike, opposed)), _outside(u, to_v, p, s))
    dv = add(matmul(v, sub(alike, opposed)), _outside(v, to_u, adjoint(p), s))
    du, dv = _completed(du, u_all, k), _completed(dv, adjoint(vh_all), k)
    return [du, _where_positive(values, real_part(diagonal(p))), adjoint(dv)]


def _together(x: Symbol, s: Symbol) -> Symbol:
    """x_ij / (s_i + s_j); the diagonal of real numbers, which is 0, is not divided by 0."""
    total = add(along_columns(s, x), along_rows(s, x))
    if x.dtype.kind == "f":
        total = add(total, mul(identity_like(x), along_columns(convert(eq(s, zeros_like(s)), dtype=s.dtype), x)))
    return strong_div(x, total)


def _outside(u: Symbol, moved: Symbol, inside: Symbol, s: Symbol) -> Symbol:
    """(moved - u inside) / s, column by column: nothing where u spans the whole space."""
    if u.shape[-1] == u.shape[-2]:
        return zeros_like(u)
    return strong_div(sub(moved, matmul(u, inside)), along_columns(s, moved))


def _completed(du: Symbol, u: Symbol, k: int) -> Symbol:
    """Append the tangents of the columns that complete u: they rotate against the first k, and not among themselves."""
    size = u.shape[-1]
    if size == k:
        return du
    first, rest = columns(u, 0, k), columns(u, k, size)
    return beside(du, neg(matmul(first, adjoint(matmul(adjoint(rest), du)))))


_svd_samples = partial(matrix_samples, sample, (3, 2), (2, 3), (2, 2, 2), (1, 1), (0, 0), (0, 2))


svdvals = stacked(
    "svdvals",
    _infer_svdvals,
    by_lapack(IF_NOT_CONVERGED)(lambda a: np.linalg.svd(a, compute_uv=False)),
    Push(_push_svdvals),
    Library("gesdd", native=lambda *_: Routine("linalg_svd", (NO_SINGULAR_VALUES,)), dispatched=True),
    _svd_samples,
    "Singular values, descending.",
)

svd = stacked(
    "svd",
    _infer_svd,
    by_lapack(IF_NOT_CONVERGED)(lambda a, *, full: tuple(np.linalg.svd(a, full_matrices=full))),
    Push(_push_svd),
    Library(
        "gesdd",
        native=lambda *_, full: Routine("linalg_svd_f" if full else "linalg_svd_s", (NO_SINGULAR_VALUES,)),
        dispatched=True,
    ),
    lambda: (Sample(given.operands, {"full": full}) for full in (True, False) for given in _svd_samples()),
    "Singular value decomposition U, s, Vᴴ; with square U and V if `full`.",
)
