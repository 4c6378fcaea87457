"""Plain Python loops under `jit`, beside the same written with `scan`: the first value and gradient, and later ones.

The heat equation in 1,000 steps, a recurrent cell over 2,000, a Kalman filter over 500 measurements, a recurrence over
10,000 elements, and sweeps of Gauss and Seidel over a row. "tracing" is what a trace of the loop alone takes under
`jit`. JAX runs the scans; it would compile the loops themselves for hours, so it is given 20 steps of the first one.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.calls import Call, Once, Thunk
from benchmarks.case import Case

Function = Callable[..., Any]
CELLS, STEPS, UNITS, INPUTS, MEASUREMENTS, ELEMENTS, POINTS, SWEEPS = 1000, 1000, 32, 2000, 500, 10_000, 200, 20
FEW = 20


def heat(u: Any, k: Any, steps: int = STEPS) -> Any:
    u = u.copy()
    for _ in range(steps):
        u[1:-1] += k * (u[2:] - 2 * u[1:-1] + u[:-2])
    return np.sum(u**2)


def heat_in_jax(u: Any, k: Any, steps: int) -> Any:
    for _ in range(steps):
        u = u.at[1:-1].add(k * (u[2:] - 2 * u[1:-1] + u[:-2]))
    return (u**2).sum()


def heat_by_scan(np: Any, scan: Any, u: Any, k: Any) -> Any:
    def step(u: Any, _: Any) -> tuple[Any, None]:
        inner = u[1:-1] + k * (u[2:] - 2 * u[1:-1] + u[:-2])
        return np.concatenate([u[:1], inner, u[-1:]]), None

    return np.sum(scan(step, u, None, length=STEPS)[0] ** 2)


def cell(w: Any, xs: Any) -> Any:
    h, loss = np.zeros(UNITS), 0.0
    for x in xs:
        h = np.tanh(w @ h + x)
        loss = loss + h @ h
    return loss


def cell_by_scan(np: Any, scan: Any, w: Any, xs: Any) -> Any:
    def step(state: Any, x: Any) -> tuple[Any, None]:
        h, loss = state
        h = np.tanh(w @ h + x)
        return (h, loss + h @ h), None

    return scan(step, (np.zeros(UNITS), 0.0), xs)[0][1]


def kalman_step(np: Any, transition: Any, q: Any, state: Any, z: Any) -> Any:
    seen = np.array([[1.0, 0.0]])
    mean, covariance, found = state
    mean, covariance = transition @ mean, transition @ covariance @ transition.T + q * np.eye(2)
    off, spread = z - seen @ mean, seen @ covariance @ seen.T + 0.1
    gain = covariance @ seen.T @ np.linalg.inv(spread)
    likelihood = off @ np.linalg.solve(spread, off) + np.log(np.linalg.det(spread))
    return mean + gain @ off, (np.eye(2) - gain @ seen) @ covariance, found + likelihood


def kalman(transition: Any, q: Any, measured: Any) -> Any:
    state = np.zeros(2), np.eye(2), 0.0
    for z in measured:
        state = kalman_step(np, transition, q, state, z)
    return state[2]


def kalman_by_scan(np: Any, scan: Any, transition: Any, q: Any, measured: Any) -> Any:
    start = np.zeros(2), np.eye(2), 0.0
    return scan(lambda state, z: (kalman_step(np, transition, q, state, z), None), start, measured)[0][2]


def recurrence(a: Any, x: Any) -> Any:
    y = np.zeros_like(x)
    for i in range(1, len(x)):
        y[i] = a * y[i - 1] + x[i]
    return np.sum(y**2)


def recurrence_by_scan(np: Any, scan: Any, a: Any, x: Any) -> Any:
    def step(y: Any, x: Any) -> tuple[Any, Any]:
        y = a * y + x
        return y, y

    return np.sum(scan(step, 0.0, x[1:])[1] ** 2)


def gauss_seidel(u: Any, f: Any) -> Any:
    u = u.copy()
    for _ in range(SWEEPS):
        for i in range(1, POINTS - 1):
            u[i] = 0.5 * (u[i - 1] + u[i + 1] - f[i])
    return np.sum(u**2)


def gauss_seidel_by_scan(np: Any, scan: Any, u: Any, f: Any) -> Any:
    def point(left: Any, xs: Any) -> tuple[Any, Any]:
        right, source = xs
        new = 0.5 * (left + right - source)
        return new, new

    def sweep(u: Any, _: Any) -> tuple[Any, None]:
        inner = scan(point, u[0], (u[2:], f[1:-1]))[1]
        return np.concatenate([u[:1], inner, u[-1:]]), None

    return np.sum(scan(sweep, u, None, length=SWEEPS)[0] ** 2)


def problems() -> Iterator[tuple[str, Function, Function, tuple[Any, ...]]]:
    rng = np.random.default_rng(0)
    yield "heat equation", heat, heat_by_scan, (rng.random(CELLS), 0.1)
    yield "recurrent cell", cell, cell_by_scan, (rng.random((UNITS, UNITS)) / 16, rng.random((INPUTS, UNITS)))
    yield "Kalman filter", kalman, kalman_by_scan, (0.9 * np.eye(2) + 0.02, 0.3, rng.random((MEASUREMENTS, 1)))
    yield "linear recurrence", recurrence, recurrence_by_scan, (0.5, rng.random(ELEMENTS))
    yield "Gauss-Seidel", gauss_seidel, gauss_seidel_by_scan, (rng.random(POINTS), rng.random(POINTS))


def cases() -> Iterator[Case]:
    for title, loop, by_scan, arguments in problems():
        yield Case(
            f"first value and gradient, {title}", first_calls(loop, by_scan, arguments), 1e-9, unit="s", rounds=3
        )
        yield Case(f"value and gradient, {title}", calls(loop, by_scan, arguments), 1e-9, rounds=11)

    yield Case(f"first value and gradient, heat equation, {FEW} steps", short_loops(), 1e-9, unit="s", rounds=2)


def short_loops() -> list[Once]:
    """A loop that is short enough for JAX to be unrolled."""
    rng = np.random.default_rng(0)
    u, k = rng.random(CELLS), 0.1

    def with_fnad(fnad: Any) -> Thunk:
        def run() -> Any:
            fnad.clear_cache()
            with fnad.config.override(disk_cache=False):
                return fnad.jit(fnad.value_and_grad(lambda u, k: heat(u, k, FEW)))(u, k)

        return run

    def with_jax(jax: Any) -> Thunk:
        def run() -> Any:
            jax.clear_caches()
            given = jax.numpy.asarray(u), k
            return jax.block_until_ready(jax.jit(jax.value_and_grad(lambda u, k: heat_in_jax(u, k, FEW)))(*given))

        return run

    return [Once("fnad jit, Python loop", "fnad", with_fnad), Once("JAX jit, Python loop", "jax", with_jax)]


def calls(loop: Function, by_scan: Function, arguments: tuple[Any, ...]) -> list[Call]:
    def with_fnad(fnad: Any) -> Thunk:
        value_and_grad = fnad.jit(fnad.value_and_grad(loop))
        return lambda: value_and_grad(*arguments)

    def with_scan(fnad: Any) -> Thunk:
        value_and_grad = fnad.jit(fnad.value_and_grad(lambda *args: by_scan(np, fnad.scan, *args)))
        return lambda: value_and_grad(*arguments)

    def with_jax(jax: Any) -> Thunk:
        value_and_grad = jax.jit(jax.value_and_grad(lambda *args: by_scan(jax.numpy, jax.lax.scan, *args)))
        given = jax.tree.map(jax.numpy.asarray, arguments)
        return lambda: jax.block_until_ready(value_and_grad(*given))

    return [
        Call("fnad jit, Python loop", "fnad", with_fnad),
        Call("fnad jit and scan", "fnad", with_scan),
        Call("JAX jit and scan", "jax", with_jax),
    ]


def first_calls(loop: Function, by_scan: Function, arguments: tuple[Any, ...]) -> list[Call]:
    """The same, compiled anew each time."""

    def anew(function: Callable[[Any], Function]) -> Callable[[Any], Thunk]:
        def prepare(fnad: Any) -> Thunk:
            def run() -> Any:
                fnad.clear_cache()
                with fnad.config.override(disk_cache=False):
                    return fnad.jit(fnad.value_and_grad(function(fnad)))(*arguments)

            return run

        return prepare

    def tracing(fnad: Any) -> Thunk:
        value_and_grad = fnad.value_and_grad(loop)

        def run() -> Any:
            fnad.jit(loop).lower(*arguments)
            return expected

        expected = value_and_grad(*arguments)
        return run

    return [
        Call("fnad jit, Python loop", "fnad", anew(lambda _: loop)),
        Call("fnad jit and scan", "fnad", anew(lambda fnad: lambda *args: by_scan(np, fnad.scan, *args))),
        Call("tracing the loop", "fnad", tracing),
    ]
