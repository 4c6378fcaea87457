"""Least squares: a polynomial of 128 coefficients fitted to the sign function, and the gradient in the coefficients."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.case import Case
from benchmarks.gradients import contenders, scan

COEFFICIENTS, SIZES = 128, (128, 4096)
BLOCK = 64


def by_horner(np: Any, x: Any, t: Any, s: Any) -> Any:
    falling = np.flip(x, (0,)) if np.__name__ == "torch" else x[::-1]
    fitted = scan(np, lambda y, c: (y * t + c, None), np.zeros_like(t), falling)[0]
    return 0.5 * np.sum((s - fitted) ** 2)


def by_powers(np: Any, x: Any, t: Any, s: Any) -> Any:
    return 0.5 * np.sum((s - np.vander(t, len(x), increasing=True) @ x) ** 2)


def by_hand(native: Any) -> Any:
    """Blocks of points, whose polynomials and powers stay in registers and the cache."""

    @native.njit
    def value_and_gradient(x, t, s):
        gradient, value, power = np.zeros_like(x), 0.0, np.empty(BLOCK)
        for start in range(0, t.size, BLOCK):
            ts, ss = t[start : start + BLOCK], s[start : start + BLOCK]
            for i in range(ts.size):
                power[i] = 0.0
            for j in range(x.size - 1, -1, -1):
                for i in range(ts.size):
                    power[i] = power[i] * ts[i] + x[j]
            for i in range(ts.size):
                power[i] -= ss[i]
                value += power[i] * power[i]
            for j in range(x.size):
                total = 0.0
                for i in range(ts.size):
                    total += power[i]
                    power[i] *= ts[i]
                gradient[j] += total
        return 0.5 * value, gradient

    return value_and_gradient


def cases() -> Iterator[Case]:
    x = np.random.default_rng(0).standard_normal(COEFFICIENTS)
    for n in SIZES:
        t = np.linspace(-1.0, 1.0, n)
        for title, function in (("by Horner's rule", by_horner), ("by powers", by_powers)):
            calls = contenders(function, (x, t, np.sign(t)), function, by_hand)
            yield Case(f"{n} points, {title}", calls, tolerance=1e-9)
