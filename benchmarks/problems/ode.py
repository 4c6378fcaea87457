"""The last component of y' = x y₋₁, y(0) = 0, after Runge-Kutta steps to t = 2, and its gradient in x."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.case import Case
from benchmarks.gradients import contenders, scan

SIZES = ((4, 1000), (1000, 100), (100_000, 10))  # components, steps


def last(np: Any, x: Any, steps: Any) -> Any:
    """Return the last component; each component is driven by the one before, the first one by 1."""
    h, one = 2.0 / len(steps), np.ones_like(x[:1])

    def velocity(y: Any) -> Any:
        return x * np.concatenate([one, y[:-1]])

    def step(y: Any, _: Any) -> Any:
        k1 = velocity(y)
        k2 = velocity(y + h / 2 * k1)
        k3 = velocity(y + h / 2 * k2)
        k4 = velocity(y + h * k3)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

    return scan(np, step, np.zeros_like(x), steps)[0][-1]


def by_hand(native: Any) -> Any:
    """The states at each step are kept; the loop back computes the stages again."""

    @native.njit
    def velocity(x, y, k, out, factor):
        """Set `out` to the velocity at y + factor k."""
        out[0] = x[0]
        for i in range(1, x.size):
            out[i] = x[i] * (y[i - 1] + factor * k[i - 1])

    @native.njit
    def back(x, y, k, factor, of_velocity, of_x, of_stage):
        """Add to `of_x`, and set `of_stage` to the cotangent of y + factor k, from that of the velocity there."""
        of_x[0] += of_velocity[0]
        for i in range(1, x.size):
            of_x[i] += of_velocity[i] * (y[i - 1] + factor * k[i - 1])
            of_stage[i - 1] = of_velocity[i] * x[i]
        of_stage[x.size - 1] = 0.0

    @native.njit
    def value_and_gradient(x, steps):
        n, h = x.size, 2.0 / steps.size
        states, k = np.empty((steps.size + 1, n)), np.zeros((4, n))
        states[0] = 0.0
        for t in range(steps.size):
            stages(x, states[t], k, h)
            for i in range(n):
                states[t + 1, i] = states[t, i] + h / 6 * (k[0, i] + 2 * k[1, i] + 2 * k[2, i] + k[3, i])
        of_x, of_y, of_k, of_stage = np.zeros(n), np.zeros(n), np.empty(n), np.zeros(n)
        of_y[-1] = 1.0
        for t in range(steps.size - 1, -1, -1):
            y = states[t]
            stages(x, y, k, h)
            for i in range(n):
                of_k[i] = h / 6 * of_y[i]
            back(x, y, k[2], h, of_k, of_x, of_stage)
            for i in range(n):
                of_k[i] = h / 3 * of_y[i] + h * of_stage[i]
                k[3, i] = of_y[i] + of_stage[i]
            back(x, y, k[1], h / 2, of_k, of_x, of_stage)
            for i in range(n):
                of_k[i] = h / 3 * of_y[i] + h / 2 * of_stage[i]
                k[3, i] += of_stage[i]
            back(x, y, k[0], h / 2, of_k, of_x, of_stage)
            for i in range(n):
                of_k[i] = h / 6 * of_y[i] + h / 2 * of_stage[i]
                k[3, i] += of_stage[i]
            back(x, y, y, 0.0, of_k, of_x, of_stage)
            for i in range(n):
                of_y[i] = k[3, i] + of_stage[i]
        return states[-1, -1], of_x

    @native.njit
    def stages(x, y, k, h):
        velocity(x, y, y, k[0], 0.0)
        velocity(x, y, k[0], k[1], h / 2)
        velocity(x, y, k[1], k[2], h / 2)
        velocity(x, y, k[2], k[3], h)

    return value_and_gradient


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(0)
    for n, steps in SIZES:
        calls = contenders(last, (1 + 0.1 * rng.standard_normal(n), np.arange(steps)), last, by_hand)
        yield Case(f"{n} components, {steps} steps", calls, tolerance=1e-9, rounds=7)
