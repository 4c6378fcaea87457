"""Factorizations of matrices: Cholesky, QR, singular values, eigenvalues and their vectors.

Where NumPy's dtype depends on the values, as for the eigenvalues of a real matrix, the result is complex.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.errors import ShapeError, UnsupportedFunctionError
from fnad.ir.symbol import Symbol
from fnad.numpy.choosing import take_along_axis
from fnad.numpy.matrices import floating, named, square
from fnad.numpy.registry import implements
from fnad.numpy.sorting import argsort
from fnad.ops import least_squares, linalg, spectrum
from fnad.ops.arithmetic import mul
from fnad.ops.matrix import adjoint, along_columns, check_matrices, check_square
from fnad.ops.piecewise import abs_, copysign
from fnad.ops.shape import ones_like, reshape_to, reverse


@implements(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: Any = False) -> Symbol:
    return linalg.cholesky(square("cholesky", a), upper=bool(upper))


@implements(np.linalg.qr)
def qr(a: Any, mode: Any = "reduced") -> Any:
    if mode not in ("reduced", "complete", "r", "raw", "economic", "e", "full", "f"):
        raise ShapeError(f"Unrecognized mode '{mode}'")
    if mode not in ("reduced", "complete", "r"):
        raise UnsupportedFunctionError(
            f"numpy.linalg.qr has no rule for mode={mode!r}", remedy="use reduced, complete or r"
        )
    (x,) = floating(a)
    check_matrices("qr", x.aval)
    q, r = least_squares.qr(x, complete=mode == "complete")
    return r if mode == "r" else named(np.linalg.qr, q, r)


# ---- singular values -------------------------------------------------------------------------------------------------


@implements(np.linalg.svd)
def svd(a: Any, full_matrices: Any = True, compute_uv: Any = True, hermitian: Any = False) -> Any:
    (x,) = floating(a)
    check_matrices("svd", x.aval)
    if hermitian:
        return _hermitian_svd(x, bool(compute_uv))
    if not compute_uv:
        return spectrum.svdvals(x)
    return named(np.linalg.svd, *spectrum.svd(x, full=bool(full_matrices)))


def _hermitian_svd(x: Symbol, with_vectors: bool) -> Any:
    """Order the eigenvalues by their sizes; their signs go into V."""
    check_square("svd", x.aval)
    values, vectors = spectrum.eigh(x, uplo="L")
    sizes = abs_(values if with_vectors else spectrum.eigvalsh(x, uplo="L"))
    order = reverse(argsort(sizes), axes=(sizes.ndim - 1,))
    descending = take_along_axis(sizes, order)
    if not with_vectors:
        return descending
    signs = take_along_axis(copysign(ones_like(values), values), order)
    u = take_along_axis(vectors, reshape_to(order, (*order.shape[:-1], 1, order.shape[-1])))
    return named(np.linalg.svd, u, descending, adjoint(mul(u, along_columns(signs, u))))


@implements(np.linalg.svdvals)
def svdvals(x: Any, /) -> Symbol:
    return svd(x, compute_uv=False)


# ---- eigenvalues -----------------------------------------------------------------------------------------------------


@implements(np.linalg.eigh)
def eigh(a: Any, UPLO: Any = "L") -> Any:  # noqa: N803
    return named(np.linalg.eigh, *spectrum.eigh(square("eigh", a), uplo=triangle(UPLO)))


@implements(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: Any = "L") -> Symbol:  # noqa: N803
    return spectrum.eigvalsh(square("eigvalsh", a), uplo=triangle(UPLO))


def triangle(uplo: str) -> str:
    """Return L or U; raise where it is neither."""
    if uplo.upper() not in ("L", "U"):
        raise ShapeError("UPLO argument must be 'L' or 'U'")
    return uplo.upper()


@implements(np.linalg.eig)
def eig(a: Any) -> Any:
    return named(np.linalg.eig, *spectrum.eig(square("eig", a)))


@implements(np.linalg.eigvals)
def eigvals(a: Any) -> Symbol:
    return spectrum.eig(square("eigvals", a))[0]
