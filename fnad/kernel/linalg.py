"""Linear algebra that kernels call, on stacks of matrices, by symbolic names.

    linalg_solve(a, b, x, count, m, n, status, fault):    a[m,m] x[m,n] = b[m,n], for each of `count`

The arrays come first, those of the operands before those of the results; then the number of matrices and the sizes, in
the order in which the signature names them. Where a matrix has no result, its elements mean nothing and, unless
`fault` is 0, it is stored in status[0].

Most are NumPy's generalized ufuncs (`numpy.linalg._umath_linalg`), those behind the functions of `np.linalg`, whose
values they are to the bit. One that a version of NumPy has not, or has with another signature, is left out. Triangular
systems are solved by substitution, as trsm of the BLAS does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from fnad.scalar.operation import Kind, OperandError, Operation, Pointer

PREFIX = "linalg_"

TRIANGULAR = {
    f"solve_{unit}{side}": (side == "lower", bool(unit)) for unit in ("", "unit_") for side in ("lower", "upper")
}
"""Triangular systems: whether the lower triangle is read, and whether its diagonal is taken for ones."""

SIGNATURES = {
    **dict.fromkeys(TRIANGULAR, "(m,m),(m,n)->(m,n)"),
    "solve": "(m,m),(m,n)->(m,n)",
    "inv": "(m,m)->(m,m)",
    "det": "(m,m)->()",
    "slogdet": "(m,m)->(),()",
    **dict.fromkeys(("cholesky_lo", "cholesky_up"), "(m,m)->(m,m)"),
    **dict.fromkeys(("eigh_lo", "eigh_up"), "(m,m)->(m),(m,m)"),
    **dict.fromkeys(("eigvalsh_lo", "eigvalsh_up"), "(m,m)->(m)"),
    "svd": "(m,n)->(p)",
    "svd_s": "(m,n)->(m,p),(p),(p,n)",
    "svd_f": "(m,n)->(m,m),(p),(n,n)",
}


def gufunc(name: str) -> Any:
    """The generalized ufunc of a name; None if this NumPy has none with the signature."""
    found = getattr(np.linalg, "_umath_linalg", None)
    ufunc = getattr(found, name, None)
    return ufunc if getattr(ufunc, "signature", "").replace(" ", "") == SIGNATURES[name] else None


def core_dimensions(name: str) -> list[list[str]]:
    """The names of the sizes of a matrix of each operand and result."""
    return [re.findall(r"\w+", part) for part in re.findall(r"\(([^)]*)\)", SIGNATURES[name])]


def size_names(name: str) -> list[str]:
    """The names of the sizes, in the order of the signature."""
    return list(dict.fromkeys(size for core in core_dimensions(name) for size in core))


def stack_sizes(routine: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, list[int]]:
    """The number of matrices and the sizes of a routine's operands and results of these shapes."""
    name = routine.removeprefix(PREFIX)
    cores = core_dimensions(name)
    rank = len(shapes[0]) - len(cores[0])
    pairs = [pair for core, shape in zip(cores, shapes, strict=True) for pair in zip(core, shape[rank:], strict=True)]
    sizes = dict(pairs)
    return prod(shapes[0][:rank]), [sizes[size] for size in size_names(name)]


def _operation(name: str) -> Operation:
    cores, sizes = core_dimensions(name), size_names(name)

    def result(*kinds: Kind) -> Kind:
        expected = len(cores) + 1 + len(sizes) + 2
        arrays = kinds[: len(cores)]
        if len(kinds) != expected or not all(isinstance(kind, Pointer) for kind in arrays):
            numbers = ", ".join(["the count", *sizes])
            raise OperandError(f"{PREFIX}{name} takes {len(cores)} arrays, {numbers}, status and fault")
        return None

    def plain(*values: Any) -> None:
        arrays, (count, *extents), (status, fault) = values[: len(cores)], values[len(cores) : -2], values[-2:]
        size_of = dict(zip(sizes, extents, strict=True))
        shapes = [(count, *[size_of[size] for size in core]) for core in cores]
        stacks = [flat[: np.prod(shape)].reshape(shape) for flat, shape in zip(arrays, shapes, strict=True)]
        failed = substitute(stacks, *TRIANGULAR[name]) if name in TRIANGULAR else by_ufunc(gufunc(name), stacks)
        if failed and fault:
            status[0] = fault

    return Operation(PREFIX + name, result, plain)


def by_ufunc(ufunc: Any, stacks: Sequence[Any]) -> bool:
    """Compute the last of these arrays from the first; whether one of the matrices has no result."""
    operands, results = stacks[: ufunc.nin], stacks[ufunc.nin :]
    letters = ["".join(array.dtype.char for array in arrays) for arrays in (operands, results)]
    failed: list[bool] = []
    with np.errstate(all="ignore", invalid="call", call=lambda *_: failed.append(True)):
        ufunc(*operands, out=tuple(results), signature="->".join(letters))
    return bool(failed)


def substitute(stacks: Sequence[Any], is_lower: bool, unit: bool) -> bool:
    """Solve a x = b row by row; whether a divisor is 0."""
    a, b, x = stacks
    n = a.shape[-1]
    pivots = np.ones(a.shape[:-1]) if unit else np.diagonal(a, axis1=-2, axis2=-1)
    with np.errstate(all="ignore"):
        for i in range(n) if is_lower else reversed(range(n)):
            known = slice(i) if is_lower else slice(i + 1, n)
            rest = b[:, i, :] - (a[:, i : i + 1, known] @ x[:, known, :])[:, 0, :]
            x[:, i, :] = rest / pivots[:, i, None]
    return not pivots.all()


LINALG = {PREFIX + name: _operation(name) for name in SIGNATURES if name in TRIANGULAR or gufunc(name)}
"""The routines by name."""
