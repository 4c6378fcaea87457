"""The likelihood of 200 measurements under a linear model of four states, by a Kalman filter; and its gradient."""

from collections.abc import Iterator
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.calls import Call, Thunk
from benchmarks.case import Case

STEPS, STATES, MEASURED = 200, 4, 2


def log_likelihood(np: Any, scan: Any, transition: Any, noise: Any, measured: Any) -> Any:
    """Return the mean log likelihood a step: one text for NumPy with `fnad.scan` and for JAX with its own."""
    selected = np.eye(STATES)[:MEASURED]

    def step(state: Any, z: Any) -> tuple[Any, Any]:
        mean, covariance = state
        mean, covariance = transition @ mean, transition @ covariance @ transition.T + noise
        innovation = z - selected @ mean
        spread = selected @ covariance @ selected.T + 0.1 * np.eye(MEASURED)
        gain = np.linalg.solve(spread, selected @ covariance).T
        found = -0.5 * (innovation @ np.linalg.solve(spread, innovation) + np.linalg.slogdet(spread)[1])
        return (mean + gain @ innovation, covariance - gain @ selected @ covariance), found

    return np.mean(scan(step, (np.zeros(STATES), np.eye(STATES)), measured)[1])


def by_square_roots(np: Any, solve: Any, scan: Any, transition: Any, noise: Any, measured: Any) -> Any:
    """Return the same by triangular factors of the covariances, of which a QR factorization makes new ones."""
    selected = np.eye(STATES)[:MEASURED]
    root, spread_root = np.linalg.cholesky(noise).T, np.sqrt(0.1) * np.eye(MEASURED, MEASURED + STATES)

    def step(state: Any, z: Any) -> tuple[Any, Any]:
        mean, factor = state
        mean = transition @ mean
        factor = np.linalg.qr(np.concatenate([factor @ transition.T, root]), "r")
        joint = np.linalg.qr(np.concatenate([spread_root, np.concatenate([factor @ selected.T, factor], 1)]), "r")
        spread, gain = joint[:MEASURED, :MEASURED], joint[:MEASURED, MEASURED:]
        seen = solve(spread, z - selected @ mean, trans=1)
        found = -0.5 * seen @ seen - np.sum(np.log(np.abs(np.diagonal(spread))))
        return (mean + gain.T @ seen, joint[MEASURED:, MEASURED:]), found

    return np.mean(scan(step, (np.zeros(STATES), np.eye(STATES)), measured)[1])


def by_loop(transition: Any, noise: Any, measured: Any) -> Any:
    """Return the same by a Python loop over NumPy arrays."""

    def scan(step: Any, state: Any, rows: Any) -> Any:
        found = []
        for row in rows:
            state, value = step(state, row)
            found.append(value)
        return state, np.array(found)

    return log_likelihood(np, scan, transition, noise, measured)


def given() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    transition = 0.95 * np.eye(STATES) + 0.05 * rng.standard_normal((STATES, STATES))
    return transition, 0.05 * np.eye(STATES), rng.standard_normal((STEPS, MEASURED))


def cases() -> Iterator[Case]:
    yield Case("likelihood", list(contenders("value")), tolerance=1e-9, rounds=21, per=(STEPS, "step"))
    yield Case("likelihood and gradient", list(contenders("gradient")), tolerance=1e-9, rounds=21, per=(STEPS, "step"))
    for what in ("value", "gradient"):
        title = "by square roots" if what == "value" else "by square roots, and gradient"
        yield Case(title, list(contenders(what, by_qr=True)), tolerance=1e-9, rounds=21, per=(STEPS, "step"))


def contenders(what: str, *, by_qr: bool = False) -> Iterator[Call]:
    arguments = given()

    def with_fnad(fnad: Any) -> Thunk:
        function = partial(log_likelihood, np, fnad.scan)
        if by_qr:
            function = partial(by_square_roots, np, fnad.scipy.linalg.solve_triangular, fnad.scan)
        run = fnad.jit(function if what == "value" else fnad.value_and_grad(function))
        return lambda: run(*arguments)

    def with_jax(jax: Any) -> Thunk:
        function = partial(log_likelihood, jax.numpy, jax.lax.scan)
        if by_qr:
            solve = import_module("jax.scipy.linalg").solve_triangular
            function = partial(by_square_roots, jax.numpy, solve, jax.lax.scan)
        run = jax.jit(function if what == "value" else jax.value_and_grad(function))
        arrays = [jax.numpy.asarray(argument) for argument in arguments]
        return lambda: jax.block_until_ready(run(*arrays))

    def with_numpy(numpy: Any) -> Thunk:
        return lambda: by_loop(*arguments)

    yield Call("fnad jit and scan", "fnad", with_fnad)
    if what == "value" and not by_qr:
        yield Call("NumPy loop", "numpy", with_numpy)
    yield Call("JAX jit and scan", "jax", with_jax)
