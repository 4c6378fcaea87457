"""Linear algebra that kernels call, on stacks of matrices, by symbolic names.

    linalg_solve(a, b, x, count, m, n, status, fault):    a[m,m] x[m,n] = b[m,n], for each of `count`

The arrays come first, those of the operands before those of the results; then the number of matrices and the sizes, in
the order in which the signature names them, and other numbers, as the `rcond` of `lstsq`. A routine that can fail ends
in `status` and the number of a fault for each way in which it can: where a matrix has no result, its elements mean
nothing, and that number is stored in status[0]. Without faults nothing is reported.

Most are NumPy's generalized ufuncs (`numpy.linalg._umath_linalg`), those behind the functions of `np.linalg`, whose
values they are to the bit, or up to rounding where a backend has code of its own. One that a version of NumPy has not,
or has with another signature, is left out. Triangular systems are solved by substitution, as trsm of the BLAS does; LU
and QR factorizations are those of LAPACK's getrf, getc2 and geqrf.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any, TypeAlias

import numpy as np

from fnad.ops.linalg import (
    SMALLEST_PIVOT,  # noqa: F401 - backends read it here
    has_large_pivots,
)
from fnad.ops.matrix import are_short  # noqa: F401 - likewise
from fnad.ops.matrix_function import (
    NEAR,  # noqa: F401 - likewise
    squared,
)
from fnad.scalar.operation import Kind, OperandError, Operation, Pointer

Evaluate: TypeAlias = Callable[..., int]
"""Computes the last of these stacks from the first; 0, or which of the faults it is."""

PREFIX = "linalg_"

TRIANGULAR = {
    f"solve_{unit}{side}": (side == "lower", bool(unit)) for unit in ("", "unit_") for side in ("lower", "upper")
}
"""Triangular systems: whether the lower triangle is read, and whether its diagonal is taken for ones."""

UFUNCS = {
    "solve": "(m,m),(m,n)->(m,n)",
    "inv": "(m,m)->(m,m)",
    "det": "(m,m)->()",
    "slogdet": "(m,m)->(),()",
    **dict.fromkeys(("cholesky_lo", "cholesky_up"), "(m,m)->(m,m)"),
    **dict.fromkeys(("eigh_lo", "eigh_up"), "(m,m)->(m),(m,m)"),
    **dict.fromkeys(("eigvalsh_lo", "eigvalsh_up"), "(m,m)->(m)"),
    "eig": "(m,m)->(m),(m,m)",
    "eigvals": "(m,m)->(m)",
    "svd": "(m,n)->(p)",
    "svd_s": "(m,n)->(m,p),(p),(p,n)",
    "svd_f": "(m,n)->(m,m),(p),(n,n)",
    "lstsq": "(m,n),(m,nrhs),()->(n,nrhs),(nrhs),(),(p)",
}
"""The signatures of NumPy's ufuncs."""

SIGNATURES = {
    **dict.fromkeys(TRIANGULAR, "(m,m),(m,n)->(m,n)"),
    "repeated_square": "(m,m),()->(m,m)",
    "repeated_square_along": "(m,m),(m,m),()->(m,m)",
    "lu": "(m,n)->(m,n),(p)",
    "revealing_lu": "(m,m)->(m,m),(m),(m)",
    "row_order": "(p)->(m)",
    "lu_by_columns": "(m,m)->(m,m),(m,k)",
    **dict.fromkeys(("solve_by_lu", "solve_by_lu_transposed"), "(m,m),(m,k),(m,n)->(m,n)"),
    **dict.fromkeys(("searchsorted_left", "searchsorted_right"), "(n),(m)->(m)"),
    **dict.fromkeys(("cholesky_lo_fails", "cholesky_up_fails"), "(m,m)->()"),
    "argsort": "(n)->(n)",
    "require": "(n),(m)->(n)",
    "qr_reduced": "(m,n)->(m,p),(p,n)",
    "qr_complete": "(m,n)->(m,m),(m,n)",
    "qr_r": "(m,n)->(p,n)",
    **UFUNCS,
    "lstsq": "(m,n),(m,k)->(n,k)",
}


def gufunc(name: str) -> Any:
    """The generalized ufunc of a name; None if this NumPy has none with the signature."""
    found = getattr(np.linalg, "_umath_linalg", None)
    ufunc = getattr(found, name, None)
    return ufunc if getattr(ufunc, "signature", "").replace(" ", "") == UFUNCS[name] else None


def core_dimensions(signature: str) -> list[list[str]]:
    """The names of the sizes of a matrix of each operand and result."""
    return [re.findall(r"\w+", part) for part in re.findall(r"\(([^)]*)\)", signature)]


def size_names(signature: str) -> list[str]:
    """The names of the sizes, in the order of the signature."""
    return list(dict.fromkeys(size for core in core_dimensions(signature) for size in core))


def signature_of(routine: str) -> str:
    return SIGNATURES[routine.removeprefix(PREFIX)]


def stack_sizes(routine: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, list[int]]:
    """The number of matrices and the sizes of a routine's operands and results of these shapes."""
    cores = core_dimensions(signature_of(routine))
    rank = len(shapes[0]) - len(cores[0])
    pairs = [pair for core, shape in zip(cores, shapes, strict=True) for pair in zip(core, shape[rank:], strict=True)]
    sizes = dict(pairs)
    return prod(shapes[0][:rank]), [sizes[size] for size in size_names(signature_of(routine))]


def arguments_of(name: str, values: Sequence[Any]) -> tuple[Any, ...]:
    """The arguments of a routine by kind: arrays, number of matrices, sizes, other numbers, status, faults."""
    cores, sizes = core_dimensions(SIGNATURES[name]), size_names(SIGNATURES[name])
    arrays, (count, *numbers) = values[: len(cores)], values[len(cores) :]
    extents, numbers = numbers[: len(sizes)], numbers[len(sizes) :]
    options, (status, *faults) = numbers[: OPTIONS.get(name, 0)], numbers[OPTIONS.get(name, 0) :] or (None,)
    return arrays, count, extents, options, status, faults


def _operation(name: str) -> Operation:
    signature = SIGNATURES[name]
    cores, sizes = core_dimensions(signature), size_names(signature)

    def result(*kinds: Kind) -> Kind:
        arrays = kinds[: len(cores)]
        least = len(cores) + 1 + len(sizes) + OPTIONS.get(name, 0)
        if len(kinds) < least or not all(isinstance(kind, Pointer) for kind in arrays):
            numbers = ", ".join(["the count", *sizes])
            raise OperandError(f"{PREFIX}{name} takes {len(cores)} arrays, {numbers}, then status and faults if any")
        return None

    def plain(*values: Any) -> None:
        arrays, count, extents, options, status, faults = arguments_of(name, values)
        size_of = dict(zip(sizes, extents, strict=True))
        shapes = [(count, *[size_of[size] for size in core]) for core in cores]
        stacks = [flat[: prod(shape)].reshape(shape) for flat, shape in zip(arrays, shapes, strict=True)]
        failure = EVALUATE[name](*stacks, *options)
        if 0 < failure <= len(faults):
            status[0] = faults[failure - 1]

    return Operation(PREFIX + name, result, plain)


# ---- their values, in NumPy ------------------------------------------------------------------------------------------


def by_ufunc(name: str) -> Evaluate:
    """The ufunc of this name; fault 1 is a matrix without result."""
    return lambda *stacks: call_ufunc(gufunc(name), stacks)


def call_ufunc(ufunc: Any, stacks: Sequence[Any]) -> int:
    operands, results = stacks[: ufunc.nin], stacks[ufunc.nin :]
    letters = ["".join(array.dtype.char for array in arrays) for arrays in (operands, results)]
    failed: list[bool] = []
    with np.errstate(all="ignore", invalid="call", call=lambda *_: failed.append(True)):
        ufunc(*operands, out=tuple(results), signature="->".join(letters))
    return int(bool(failed))


def of_finite(name: str) -> Evaluate:
    """As `by_ufunc`; fault 2 is a matrix that is not finite, which the ufunc must not see."""
    return lambda a, *results: call_ufunc(gufunc(name), (a, *results)) if np.isfinite(a).all() else 2


def fails(name: str, a: Any, failed: Any) -> int:
    for n, matrix in enumerate(a):
        failed[n] = call_ufunc(gufunc(name), (matrix, np.empty_like(matrix)))
    return 0


def lstsq(a: Any, b: Any, x: Any, rcond: float) -> int:
    count, m, n = a.shape
    real = a.real.dtype
    rest = np.empty((count, b.shape[-1]), real), np.empty(count, np.intc), np.empty((count, min(m, n)), real)
    return call_ufunc(gufunc("lstsq"), (a, b, np.array(rcond, real), x, *rest))


def qr(mode: Any, a: Any, *factors: Any) -> int:
    found = np.linalg.qr(a, mode)
    for factor, value in zip(factors, found if len(factors) > 1 else (found,), strict=True):
        factor[...] = value
    return 0


def repeated_square(a: Any, times: Any, power: Any) -> int:
    for x, k, y in zip(a, times, power, strict=True):
        y[...] = squared(x, np.zeros_like(x), np.asarray(k))[0]
    return 0


def repeated_square_along(a: Any, e: Any, times: Any, slope: Any) -> int:
    for x, y, k, z in zip(a, e, times, slope, strict=True):
        z[...] = squared(x, y, np.asarray(k))[1]
    return 0


def lu(a: Any, packed: Any, pivots: Any) -> int:
    """Gaussian elimination with partial pivoting (Golub & Van Loan, "Matrix Computations", algorithm 3.4.1)."""
    packed[...] = a
    with np.errstate(all="ignore"):
        for matrix, rows in zip(packed, pivots, strict=True):
            for k in range(len(rows)):
                column = matrix[k:, k]
                rows[k] = other = k + np.argmax(abs(column.real) + abs(column.imag))
                matrix[[k, other]] = matrix[[other, k]]
                if matrix[k, k] != 0:
                    matrix[k + 1 :, k] /= matrix[k, k]
                matrix[k + 1 :, k + 1 :] -= np.outer(matrix[k + 1 :, k], matrix[k, k + 1 :])
    return 0


def lu_by_columns(a: Any, packed: Any, pivots: Any) -> int:
    factors = np.empty_like(a)
    lu(a, factors, pivots[..., 0])
    packed[...] = np.swapaxes(factors, -1, -2)
    return 0


def solve_by_lu(transposed: bool, packed: Any, pivots: Any, b: Any, x: Any) -> int:
    """By P A = L U; fault 1 is a pivot of 0."""
    if not np.diagonal(packed, axis1=-2, axis2=-1).all():
        return 1
    order = np.empty(b.shape[:-1], np.int64)
    row_order(pivots[..., 0], order)
    for lu, rows, values, found in zip(packed, order, b, x, strict=True):
        left, right = np.tril(lu.T, -1) + np.eye(len(lu), dtype=lu.dtype), np.triu(lu.T)
        if transposed:
            found[rows] = np.linalg.solve(left.T, np.linalg.solve(right.T, values))
        else:
            found[...] = np.linalg.solve(right, np.linalg.solve(left, values[rows]))
    return 0


def revealing_lu(a: Any, packed: Any, rows: Any, columns: Any) -> int:
    """As `lu`; of a matrix with small pivots, with the largest element left as the pivot (Golub & Van Loan, 3.4.8)."""
    lu(a, packed, rows)
    columns[...] = np.arange(a.shape[-1])
    for n, matrix in enumerate(packed):
        if not has_large_pivots(matrix):
            matrix[...] = a[n]
            complete_lu(matrix, rows[n], columns[n])
    return 0


def complete_lu(matrix: Any, rows: Any, columns: Any) -> None:
    numbers = np.finfo(matrix.dtype)
    least = max(numbers.eps * np.max(abs(matrix)), numbers.tiny / numbers.eps)
    for k in range(len(rows)):
        rest = abs(matrix[k:, k:])
        i, j = (k + place for place in np.unravel_index(np.argmax(rest), rest.shape))
        rows[k], columns[k] = i, j
        matrix[[k, i]] = matrix[[i, k]]
        matrix[:, [k, j]] = matrix[:, [j, k]]
        if abs(matrix[k, k]) < least:
            matrix[k, k] = least
        matrix[k + 1 :, k] /= matrix[k, k]
        matrix[k + 1 :, k + 1 :] -= np.outer(matrix[k + 1 :, k], matrix[k, k + 1 :])


def row_order(pivots: Any, order: Any) -> int:
    """Fault 1 is a pivot that is the number of no row."""
    order[...] = np.arange(order.shape[-1])
    if not ((pivots >= 0) & (pivots < order.shape[-1])).all():
        return 1
    for exchanges, rows in zip(pivots, order, strict=True):
        for row, other in enumerate(exchanges.tolist()):
            rows[[row, other]] = rows[[other, row]]
    return 0


def searchsorted(side: Any, a: Any, v: Any, places: Any) -> int:
    for row, values, found in zip(a, v, places, strict=True):
        found[...] = np.searchsorted(row, values, side)
    return 0


def argsort(x: Any, order: Any) -> int:
    order[...] = np.argsort(x, axis=-1, kind="stable")
    return 0


def require(x: Any, holds: Any, result: Any) -> int:
    """Fault 1 is a condition that does not hold."""
    result[...] = x
    return int(not holds.all())


def substitute(is_lower: bool, unit: bool, a: Any, b: Any, x: Any) -> int:
    """Row by row; fault 1 is a divisor of 0."""
    n = a.shape[-1]
    pivots = np.ones(a.shape[:-1]) if unit else np.diagonal(a, axis1=-2, axis2=-1)
    with np.errstate(all="ignore"):
        for i in range(n) if is_lower else reversed(range(n)):
            known = slice(i) if is_lower else slice(i + 1, n)
            rest = b[:, i, :] - (a[:, i : i + 1, known] @ x[:, known, :])[:, 0, :]
            x[:, i, :] = rest / pivots[:, i, None]
    return int(not pivots.all())


# ---- the table -------------------------------------------------------------------------------------------------------

OPTIONS = {"lstsq": 1}
"""The number of further numbers that a routine takes."""

EVALUATE: dict[str, Evaluate] = {
    **{name: by_ufunc(name) for name in UFUNCS},
    **{name: partial(substitute, *how) for name, how in TRIANGULAR.items()},
    **{name: of_finite(name) for name in ("eig", "eigvals")},
    **{f.__name__: f for f in (lstsq, repeated_square, repeated_square_along)},
    **{f.__name__: f for f in (lu, revealing_lu, row_order, lu_by_columns, argsort, require)},
    **{f"{name}_fails": partial(fails, name) for name in ("cholesky_lo", "cholesky_up")},
    **{f"qr_{mode}": partial(qr, mode) for mode in ("reduced", "complete", "r")},
    "solve_by_lu": partial(solve_by_lu, False),
    "solve_by_lu_transposed": partial(solve_by_lu, True),
    **{f"searchsorted_{side}": partial(searchsorted, side) for side in ("left", "right")},
}

LINALG = {PREFIX + name: _operation(name) for name in EVALUATE if name not in UFUNCS or gufunc(name)}
"""The routines by name."""
