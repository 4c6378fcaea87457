"""The Lorenz system by 100,000 steps of Runge and Kutta: the mean height of the path, and its gradient in σ, ρ and β.

The path is ten units of time long: longer ones are chaotic to a degree where no two systems could agree.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.calls import Call, Thunk
from benchmarks.case import Case

STEPS, DT = 100_000, 1e-4
START = np.array([1.0, 1.0, 25.0])
PARAMETERS = np.array([10.0, 28.0, 8 / 3])


def velocity(np: Any, state: Any, parameters: Any) -> Any:
    x, y, z = state[0], state[1], state[2]
    sigma, rho, beta = parameters[0], parameters[1], parameters[2]
    return np.stack([sigma * (y - x), x * (rho - z) - y, x * y - beta * z])


def height(np: Any, scan: Any, parameters: Any, start: Any, steps: int | None = None) -> Any:
    """Return the mean of z over the path: one text for NumPy with `fnad.scan` and for JAX with its own."""

    def step(state: Any, _: None) -> tuple[Any, Any]:
        k1 = velocity(np, state, parameters)
        k2 = velocity(np, state + DT / 2 * k1, parameters)
        k3 = velocity(np, state + DT / 2 * k2, parameters)
        k4 = velocity(np, state + DT * k3, parameters)
        state = state + DT / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return state, state[2]

    return np.mean(scan(step, start, None, length=steps or STEPS)[1])


def cases() -> Iterator[Case]:
    yield Case("value and gradient", contenders(), tolerance=1e-9, rounds=11, per=(STEPS, "step"))


def contenders() -> list[Call]:
    def with_fnad(fnad: Any) -> Thunk:
        value_and_grad = fnad.jit(fnad.value_and_grad(partial(height, np, fnad.scan)))
        return lambda: value_and_grad(PARAMETERS, START)

    def with_jax(jax: Any) -> Thunk:
        value_and_grad = jax.jit(jax.value_and_grad(partial(height, jax.numpy, jax.lax.scan)))
        arguments = jax.numpy.asarray(PARAMETERS), jax.numpy.asarray(START)
        return lambda: jax.block_until_ready(value_and_grad(*arguments))

    def by_hand(native: Any) -> Thunk:
        value_and_grad = hand_written(native)
        return lambda: value_and_grad(PARAMETERS, START)

    return [
        Call("fnad jit and scan", "fnad", with_fnad),
        Call("JAX jit and scan", "jax", with_jax),
        Call("Numba by hand", "numba", by_hand),
    ]


def hand_written(native: Any) -> Any:
    """Return value and gradient with the path as the tape; the stages of a step are computed again on the way back."""

    @native.njit
    def velocity_at(x, y, z, sigma, rho, beta):
        return sigma * (y - x), x * (rho - z) - y, x * y - beta * z

    @native.njit
    def pull(x, y, z, a, b, c, sigma, rho, beta):
        """Return the cotangents of the state and of the parameters, given those of the velocity."""
        return (
            -sigma * a + (rho - z) * b + y * c,
            sigma * a - b + x * c,
            -x * b - beta * c,
            (y - x) * a,
            x * b,
            -z * c,
        )

    @native.njit
    def value_and_grad(parameters, start):
        sigma, rho, beta = parameters
        path = np.empty((STEPS + 1, 3))
        path[0] = start
        total = 0.0
        for t in range(STEPS):
            x, y, z = path[t]
            a1, b1, c1 = velocity_at(x, y, z, sigma, rho, beta)
            a2, b2, c2 = velocity_at(x + DT / 2 * a1, y + DT / 2 * b1, z + DT / 2 * c1, sigma, rho, beta)
            a3, b3, c3 = velocity_at(x + DT / 2 * a2, y + DT / 2 * b2, z + DT / 2 * c2, sigma, rho, beta)
            a4, b4, c4 = velocity_at(x + DT * a3, y + DT * b3, z + DT * c3, sigma, rho, beta)
            path[t + 1, 0] = x + DT / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
            path[t + 1, 1] = y + DT / 6 * (b1 + 2 * b2 + 2 * b3 + b4)
            path[t + 1, 2] = z + DT / 6 * (c1 + 2 * c2 + 2 * c3 + c4)
            total += path[t + 1, 2]

        p = q = r = s = u = v = 0.0
        for t in range(STEPS - 1, -1, -1):
            r += 1 / STEPS
            x, y, z = path[t]
            a1, b1, c1 = velocity_at(x, y, z, sigma, rho, beta)
            x2, y2, z2 = x + DT / 2 * a1, y + DT / 2 * b1, z + DT / 2 * c1
            a2, b2, c2 = velocity_at(x2, y2, z2, sigma, rho, beta)
            x3, y3, z3 = x + DT / 2 * a2, y + DT / 2 * b2, z + DT / 2 * c2
            a3, b3, c3 = velocity_at(x3, y3, z3, sigma, rho, beta)
            x4, y4, z4 = x + DT * a3, y + DT * b3, z + DT * c3
            h = DT / 6
            p4, q4, r4, s4, u4, v4 = pull(x4, y4, z4, h * p, h * q, h * r, sigma, rho, beta)
            a, b, c = 2 * h * p + DT * p4, 2 * h * q + DT * q4, 2 * h * r + DT * r4
            p3, q3, r3, s3, u3, v3 = pull(x3, y3, z3, a, b, c, sigma, rho, beta)
            a, b, c = 2 * h * p + DT / 2 * p3, 2 * h * q + DT / 2 * q3, 2 * h * r + DT / 2 * r3
            p2, q2, r2, s2, u2, v2 = pull(x2, y2, z2, a, b, c, sigma, rho, beta)
            a, b, c = h * p + DT / 2 * p2, h * q + DT / 2 * q2, h * r + DT / 2 * r2
            p1, q1, r1, s1, u1, v1 = pull(x, y, z, a, b, c, sigma, rho, beta)
            p, q, r = p + p1 + p2 + p3 + p4, q + q1 + q2 + q3 + q4, r + r1 + r2 + r3 + r4
            s, u, v = s + s1 + s2 + s3 + s4, u + u1 + u2 + u3 + u4, v + v1 + v2 + v3 + v4
        return total / STEPS, np.array([s, u, v])

    return value_and_grad
