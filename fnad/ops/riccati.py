"""Riccati's algebraic equations of real matrices, of which the symmetric parts of q and r are read.

    continuous    aᵀ x + x a - x b r⁻¹ bᵀ x + q = 0              k = r⁻¹ bᵀ x
    discrete      aᵀ x a - x - aᵀ x b k + q = 0                  k = (r + bᵀ x b)⁻¹ bᵀ x a

With the gain k and c = a - b k the tangents solve a linear equation (Kao & Hennequin, "Automatic differentiation of
Sylvester, Lyapunov, and algebraic Riccati equations", 2020), whose transpose gives w:

    continuous    cᵀ dx + dx c = -s,    s = daᵀ x + x da - x db k - kᵀ dbᵀ x + kᵀ dr k + dq,      c w + w cᵀ = -x̄
    discrete      dx - cᵀ dx c = s,     s = dᵀ x c + cᵀ x d + kᵀ dr k + dq with d = da - db k,    w - c w cᵀ = x̄
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from fnad.errors import MatrixError
from fnad.ir.primitive import Library, Primitive, Pull, Sample
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64, Aval
from fnad.ops.arithmetic import add, mul, neg, sub
from fnad.ops.constructors import REALS, by_name, check_one_dtype, stacked
from fnad.ops.linalg import by_lapack, each_matrix, positive, regular, solve
from fnad.ops.matrix import check_matrices, check_square, identity_like, matmul, transposed
from fnad.ops.matrix_function import solve_sylvester
from fnad.ops.shape import full_like, sample

IF_NO_SOLUTION = "see that (a, b) can be stabilized, that q is positive semidefinite and r positive definite"


def _infer(name: str, a: Aval, b: Aval, q: Aval, r: Aval) -> Aval:
    for square in (a, q, r):
        check_square(name, square, REALS)
    check_matrices(name, b, REALS)
    check_one_dtype(name, a, b, q, r)
    if q.shape != a.shape or b.shape[:-1] != a.shape[:-1] or r.shape != (*a.shape[:-2], b.shape[-1], b.shape[-1]):
        raise MatrixError(f"{name}: a, b, q and r do not fit: {a}, {b}, {q} and {r}")
    return a


def _by_scipy(name: str) -> Callable[..., Any]:
    @by_lapack(IF_NO_SOLUTION)
    def evaluate(a: Any, b: Any, q: Any, r: Any) -> Any:
        import scipy.linalg  # noqa: PLC0415 - kept out of `import fnad`

        def one(a: Any, b: Any, q: Any, r: Any) -> Any:
            return getattr(scipy.linalg, name)(a, b, (q + q.T) / 2, (r + r.T) / 2)

        return each_matrix(one, a, a, b, q, r)

    return evaluate


def _pull_continuous(results: Any, primals: Any, cts: Any) -> list[Symbol]:
    (x,), (a, b, _, r), (ct,) = results, primals, cts
    k = solve(_symmetric(r), matmul(transposed(b), x))
    c = sub(a, matmul(b, k))
    w = solve_sylvester(c, transposed(c), neg(_symmetric(ct)))
    return _cotangents(matmul(x, w), w, k)


def _pull_discrete(results: Any, primals: Any, cts: Any) -> list[Symbol]:
    (x,), (a, b, _, r), (ct,) = results, primals, cts
    xb = matmul(x, b)
    k = solve(add(_symmetric(r), matmul(transposed(b), xb)), matmul(transposed(xb), a))
    c = sub(a, matmul(b, k))
    w = _solve_stein(c, _symmetric(ct))
    return _cotangents(matmul(matmul(x, c), w), w, k)


def _cotangents(half: Symbol, w: Symbol, k: Symbol) -> list[Symbol]:
    a_ct = add(half, half)
    return [a_ct, neg(matmul(a_ct, transposed(k))), w, matmul(matmul(k, w), transposed(k))]


def _symmetric(x: Symbol) -> Symbol:
    return mul(full_like(x, 0.5), add(x, transposed(x)))


def _solve_stein(c: Symbol, q: Symbol) -> Symbol:
    """The w of w - c w cᵀ = q, by Cayley's transform of c, whose eigenvalues are in the unit circle."""
    above = add(c, identity_like(c))
    moved = solve(above, sub(c, identity_like(c)))
    right = transposed(solve(above, transposed(solve(above, q))))
    return solve_sylvester(moved, transposed(moved), neg(add(right, right)))


def _samples() -> Iterable[Sample]:
    for dtype in by_name(REALS):
        yield Sample(
            (regular((3, 3), dtype), sample((3, 2), dtype, 1), positive((3, 3), dtype), positive((2, 2), dtype))
        )
    for n in ((2, 2, 2), (1, 1)):
        yield Sample((regular(n, F64), regular(n, F64, 1), positive(n, F64), positive(n, F64)))


def _riccati(name: str, pull: Callable[..., list[Symbol]], doc: str) -> Primitive:
    return stacked(name, partial(_infer, name), _by_scipy(name), Pull(pull), Library(), _samples, doc)


solve_continuous_are = _riccati(
    "solve_continuous_are", _pull_continuous, "The stabilizing solution of Riccati's equation in continuous time."
)
solve_discrete_are = _riccati(
    "solve_discrete_are", _pull_discrete, "The stabilizing solution of Riccati's equation in discrete time."
)
