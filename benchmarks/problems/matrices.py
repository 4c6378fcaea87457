"""Functions of small matrices in a loop: 200 matrices of 4 by 4 are factorized, and what follows is summed up."""

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.calls import Call, Thunk
from benchmarks.case import Case

STEPS, SIZE = 200, 4


def by_qr(np: Any, linalg: Any, a: Any) -> Any:
    """Return what is quadratic in Q and linear in R."""
    q, r = np.linalg.qr(a)
    return np.sum(np.abs(q)) + np.sum(np.abs(r))


def by_lu(np: Any, linalg: Any, a: Any) -> Any:
    """Return the sum of a solution."""
    return np.sum(linalg.lu_solve(linalg.lu_factor(a), np.ones(len(a))))


def by_eigenvalues(np: Any, linalg: Any, a: Any) -> Any:
    """Return the sum of squares of the eigenvalues, by their sizes."""
    return np.sum(np.abs(np.linalg.eigvals(a)) ** 2)


def by_pseudoinverse(np: Any, linalg: Any, a: Any) -> Any:
    """Return the sum of the elements of the pseudoinverse of two columns."""
    return np.sum(np.linalg.pinv(a[:, :2]))


def by_least_squares(np: Any, linalg: Any, a: Any) -> Any:
    """Return the sum of a solution of more equations than unknowns."""
    return np.sum(np.linalg.lstsq(a[:, :2], a[:, 2], rcond=1e-15)[0])


def by_triangles(np: Any, linalg: Any, a: Any) -> Any:
    """Return the sum of a solution by Cholesky's factor."""
    return np.sum(linalg.cho_solve(linalg.cho_factor(a @ a.T + np.eye(len(a))), np.ones(len(a))))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "QR": by_qr,
    "LU and a solution": by_lu,
    "eigenvalues": by_eigenvalues,
    "pseudoinverse": by_pseudoinverse,
    "least squares": by_least_squares,
    "Cholesky and a solution": by_triangles,
}


def summed(np: Any, linalg: Any, scan: Any, function: Any, matrices: Any) -> Any:
    """Return the sum over the matrices, by a loop."""
    return scan(lambda total, a: (total + function(np, linalg, a), None), np.zeros(()), matrices)[0]


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(0)
    matrices = 2 * np.eye(SIZE) + rng.standard_normal((STEPS, SIZE, SIZE))
    for name, function in FUNCTIONS.items():
        for title, derivative in ((name, False), (f"{name}, and gradient", True)):
            calls = list(contenders(function, matrices, derivative))
            yield Case(title, calls, tolerance=1e-9, rounds=21, per=(STEPS, "step"))


def contenders(function: Any, matrices: Any, derivative: bool) -> Iterator[Call]:
    def with_fnad(fnad: Any) -> Thunk:
        total = partial(summed, np, fnad.scipy.linalg, fnad.scan, function)
        run = fnad.jit(fnad.value_and_grad(total) if derivative else total)
        return lambda: run(matrices)

    def with_jax(jax: Any) -> Thunk:
        total = partial(summed, jax.numpy, import_module("jax.scipy.linalg"), jax.lax.scan, function)
        run = jax.jit(jax.value_and_grad(total) if derivative else total)
        given = jax.numpy.asarray(matrices)
        return lambda: jax.block_until_ready(run(given))

    yield Call("fnad jit and scan", "fnad", with_fnad)
    yield Call("JAX jit and scan", "jax", with_jax)
