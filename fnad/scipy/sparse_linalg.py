"""scipy.sparse.linalg: the solution of equations with a sparse matrix, which is a constant, and traced right sides.

SciPy's solver is called when the program runs, with the transposed matrix for gradients.

>>> import fnad
>>> import numpy as np
>>> from scipy.sparse import csc_array
>>> from scipy.sparse.linalg import spsolve
>>> fnad.grad(lambda b: np.sum(spsolve(csc_array([[2.0, 1.0], [0.0, 4.0]]), b)))(np.ones(2))
array([0.5  , 0.125])
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from pkgutil import resolve_name
from typing import Any, NoReturn

import numpy as np

from fnad.errors import UnsupportedFunctionError
from fnad.ir.builder import is_tracing
from fnad.numpy.bodies import XP
from fnad.numpy.namespace import follows
from fnad.numpy.operands import as_symbol
from fnad.numpy.registry import Bound
from fnad.ops.sparse import DIRECT, solve_sparse
from fnad.scipy.rule import others_of
from fnad.scipy.sparse import coo_array_of, either, is_traced, on_traced, triplets


def of_scipy(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Enter a function as the rule of the one of its name, where the matrix is traced too."""
    path = f"scipy.sparse.linalg.{rule.__name__}"
    bound = cache(lambda: Bound(rule, resolve_name(path), path))

    @wraps(rule)
    def called_as_scipys(*args: Any, **kwargs: Any) -> Any:
        return bound()(*args, **kwargs)

    return either(path)(called_as_scipys)


def _solve(data: Any, rows: Any, columns: Any, b: Any, how: dict[str, Any]) -> Any:
    return solve_sparse(*map(as_symbol, (data, rows, columns, b)), **how)


_solved = follows(_solve)(_solve)


def _solution(A: Any, b: Any, method: str, **options: Any) -> Any:
    if not (hasattr(A, "tocoo") or isinstance(A, (np.ndarray, list)) or is_traced(A)):
        raise UnsupportedFunctionError(
            f"scipy.sparse.linalg.{method} has no rule for a {type(A).__name__} as the matrix",
            remedy="give an array, or a sparse one, or use scipy.linalg.solve",
        )
    stored, b = coo_array_of(A), XP.asarray(b)
    if stored.shape[0] != stored.shape[1]:
        raise ValueError(f"matrix must be square (has shape {stored.shape})")
    if b.ndim not in (1, 2) or stored.shape[0] != b.shape[0]:
        raise ValueError(f"matrix - rhs dimension mismatch ({stored.shape} - {b.shape[0]})")
    kind = np.result_type(stored.dtype, b.dtype)
    kind = kind if kind.kind in "fc" else np.dtype(np.float64)
    columns = XP.reshape(b.astype(kind), (b.shape[0], -1))
    values, rows, places = triplets(stored)
    how = {"rtol": None, "atol": None, "maxiter": None, **options}
    x = _solved(values.astype(kind), rows, places, columns, {"method": method, **how})
    return x[:, 0] if x.shape[1] == 1 else x


@of_scipy
def spsolve(A: Any, b: Any, permc_spec: Any = None, use_umfpack: bool = True) -> Any:
    """The solution x of A x = b, for one right side or several.

    >>> from scipy.sparse import coo_array
    >>> spsolve(coo_array([[2.0, 1.0], [0.0, 4.0]]).tocsc(), np.array([4.0, 8.0]))
    array([1., 2.])
    """
    return _solution(A, b, DIRECT)


class Factors:
    """The result of `splu` in a trace: it solves with traced elements and right sides, and has no factors."""

    def __init__(self, A: Any) -> None:
        self._matrix, self.shape = A, A.shape

    def solve(self, rhs: Any, trans: str = "N") -> Any:
        """The solution x of A x = rhs, or with `trans` "T" or "H" of the transposed matrix."""
        matrix = {"N": lambda: self._matrix, "T": lambda: self._matrix.T, "H": lambda: self._matrix.conj().T}[trans]()
        return spsolve(matrix, rhs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _factor(name)


@on_traced
def _factor(name: str) -> NoReturn:
    raise UnsupportedFunctionError(f"the result of splu has no {name} while tracing", remedy="use solve(rhs)")


def splu(A: Any, *args: Any, **options: Any) -> Any:
    """The factorization of a sparse matrix, in a trace as what solves with it."""
    if is_tracing():
        return Factors(coo_array_of(A).tocsc())
    return resolve_name("scipy.sparse.linalg.splu")(A, *args, **options)


def _iterative(method: str) -> Any:
    def solve(
        A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, maxiter: int | None = None
    ) -> Any:
        if x0 is not None:
            raise UnsupportedFunctionError(
                f"scipy.sparse.linalg.{method} has no rule for the option x0= where b is traced", remedy="leave it out"
            )
        return _solution(A, b, method, rtol=float(rtol), atol=float(atol), maxiter=maxiter), 0

    solve.__name__ = solve.__qualname__ = method
    solve.__doc__ = f"SciPy's `scipy.sparse.linalg.{method}`: the solution x of A x = b for one right side, and 0."
    return of_scipy(solve)


bicg = _iterative("bicg")
bicgstab = _iterative("bicgstab")
cg = _iterative("cg")
cgs = _iterative("cgs")
gmres = _iterative("gmres")

__getattr__ = others_of("scipy.sparse.linalg")
