"""Derivatives inside Numba code: a Hamiltonian Monte Carlo sampler, Newton's method in many cells, a stiff equation.

The functions with loops are Numba's, kept on disk with `cache=True`; they call derivatives that `fnad.export` compiled.
Each runs with derivatives written by hand as well, and prints the ratio of the times.

    python examples/inside_numba.py [--cells 1000000]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numba
import numpy as np

import fnad

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 5))
Y = (RNG.random(200) < 1 / (1 + np.exp(-X @ np.array([1.0, -2.0, 0.5, 0.0, 1.5])))) * 1.0
RATE = 3.0


# ---- the functions, and their derivatives by fnad --------------------------------------------------------------------


def energy(w: Any) -> Any:
    """The negative logarithm of the density of the weights of a logistic regression."""
    z = X @ w
    return np.sum(np.log(1 + np.exp(z)) - Y * z) + 0.5 * np.sum(w**2)


def balance(a: Any, b: Any, feed: Any) -> Any:
    """The residuals of two species that react in a cell."""
    speed = RATE * a * b * np.exp(-a)
    return a - feed + speed, b - 1.0 + speed


def robertson(u: Any) -> Any:
    """The rates of Robertson's reaction."""
    slow, fast, middle = 0.04 * u[0], 3e7 * u[1] ** 2, 1e4 * u[1] * u[2]
    return np.array([middle - slow, slow - middle - fast, fast])


def with_jacobian(a: Any, b: Any, feed: Any) -> Any:
    """The residuals, and each one's derivatives by both species."""
    return balance(a, b, feed), fnad.jacobian(balance, argnums=(0, 1))(a, b, feed)


energy_by_fnad = fnad.export(fnad.value_and_grad(energy), np.zeros(5)).njit_into()
balance_by_fnad = fnad.export(with_jacobian, 1.0, 1.0, 1.0).njit()
robertson_by_fnad = fnad.export(lambda u: (robertson(u), fnad.jacobian(robertson)(u)), np.ones(3)).njit_into()


# ---- the same by hand ------------------------------------------------------------------------------------------------


@numba.njit(cache=True)
def energy_by_hand(w, value, slope):
    total = 0.0
    for k in range(5):
        slope[k] = w[k]
        total += 0.5 * w[k] ** 2
    for i in range(200):
        z = 0.0
        for k in range(5):
            z += X[i, k] * w[k]
        e = np.exp(z)
        total += np.log(1 + e) - Y[i] * z
        rest = e / (1 + e) - Y[i]
        for k in range(5):
            slope[k] += rest * X[i, k]
    value[()] = total


@numba.njit(cache=True)
def balance_by_hand(a, b, feed):
    decay = RATE * np.exp(-a)
    speed = decay * a * b
    by_a, by_b = decay * b - speed, decay * a
    return (a - feed + speed, b - 1.0 + speed), ((1.0 + by_a, by_b), (by_a, 1.0 + by_b))


@numba.njit(cache=True)
def robertson_by_hand(u, rates, jacobian):
    slow, fast, middle = 0.04 * u[0], 3e7 * u[1] ** 2, 1e4 * u[1] * u[2]
    rates[0], rates[1], rates[2] = middle - slow, slow - middle - fast, fast
    jacobian[0, 0], jacobian[0, 1], jacobian[0, 2] = -0.04, 1e4 * u[2], 1e4 * u[1]
    jacobian[1, 0], jacobian[1, 1], jacobian[1, 2] = 0.04, -1e4 * u[2] - 6e7 * u[1], -1e4 * u[1]
    jacobian[2, 0], jacobian[2, 1], jacobian[2, 2] = 0.0, 6e7 * u[1], 0.0


# ---- the loops -------------------------------------------------------------------------------------------------------


@numba.njit(cache=True)
def sample(steps, leaps, size, rng):
    """The mean of the samples of Hamiltonian Monte Carlo, and the part of the moves that was accepted."""
    w, mean, accepted = np.zeros(5), np.zeros(5), 0
    before, after, slope = np.empty(()), np.empty(()), np.empty(5)
    energy_by_fnad(w, before, slope)
    for _ in range(steps):
        moved, momentum = w.copy(), rng.standard_normal(5)
        force = slope.copy()
        start = before[()] + 0.5 * np.sum(momentum**2)
        for _ in range(leaps):
            momentum -= 0.5 * size * force
            moved += size * momentum
            energy_by_fnad(moved, after, force)
            momentum -= 0.5 * size * force
        if np.log(rng.random()) < start - after[()] - 0.5 * np.sum(momentum**2):
            w, slope, before[()], accepted = moved, force, after[()], accepted + 1
        mean += w / steps
    return mean, accepted / steps


@numba.njit(parallel=True, cache=True)
def solve(feeds, found):
    """Newton's method for the balance in each cell."""
    for i in numba.prange(len(feeds)):
        a, b = 1.0, 1.0
        for _ in range(20):
            (first, second), ((p, q), (r, s)) = balance_by_fnad(a, b, feeds[i])
            step, other = (s * first - q * second) / (p * s - q * r), (p * second - r * first) / (p * s - q * r)
            a, b = a - step, b - other
            if abs(step) + abs(other) < 1e-12:
                break
        found[i, 0], found[i, 1] = a, b


@numba.njit(cache=True)
def eliminated(a, b):
    """The solution of a small system whose diagonal is large enough for no exchange of rows."""
    for i in range(len(b)):
        for j in range(i + 1, len(b)):
            part = a[j, i] / a[i, i]
            for k in range(i, len(b)):
                a[j, k] -= part * a[i, k]
            b[j] -= part * b[i]
    for i in range(len(b) - 1, -1, -1):
        for k in range(i + 1, len(b)):
            b[i] -= a[i, k] * b[k]
        b[i] /= a[i, i]
    return b


@numba.njit(cache=True)
def integrate(u, stop, steps):
    """Backward Euler steps of growing length, with two steps of Newton's method in each."""
    rates, jacobian, eye = np.empty(3), np.empty((3, 3)), np.eye(3)
    growth, t = (1 + stop * 1e4) ** (1 / steps), 1e-4
    for _ in range(steps):
        size = t * (growth - 1)
        t += size
        new = u.copy()
        for _ in range(2):
            robertson_by_fnad(new, rates, jacobian)
            new -= eliminated(eye - size * jacobian, new - u - size * rates)
        u = new
    return u


def with_derivative(function: Any, **derivative: Any) -> Any:
    """A Numba function that calls another derivative."""
    same = FunctionType(function.py_func.__code__, globals() | derivative)
    return numba.njit(same, parallel=function is solve)


def ratio(ours: Callable[[], Any], other: Callable[[], Any]) -> float:
    """The processor time of a call, divided by that of another: the least of five each, in turns."""
    times: tuple[list[float], list[float]] = [], []
    for call, taken in 5 * list(zip((ours, other), times, strict=True)):
        start = time.process_time()
        call()
        taken.append(time.process_time() - start)
    return min(times[0]) / min(times[1])


def main() -> None:
    """Print results, and how long each takes with derivatives by fnad, of the time with those by hand."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cells", type=int, default=1_000_000)
    feeds = np.linspace(0.5, 3.0, parser.parse_args().cells)
    found, by_hand = np.empty((len(feeds), 2)), np.empty((len(feeds), 2))
    sample_by_hand = with_derivative(sample, energy_by_fnad=energy_by_hand)
    solve_by_hand = with_derivative(solve, balance_by_fnad=balance_by_hand)
    integrate_by_hand = with_derivative(integrate, robertson_by_fnad=robertson_by_hand)
    mean, accepted = sample(500, 20, 0.1, np.random.default_rng(1))
    print("weights", np.round(mean, 2), f"{accepted:.0%} accepted")
    solve(feeds, found)
    print("cells", np.round(found[0], 4), np.round(found[-1], 4))
    print("species", integrate(np.array([1.0, 0.0, 0.0]), 1e4, 400))
    solve_by_hand(feeds, by_hand)
    assert np.allclose(sample_by_hand(500, 20, 0.1, np.random.default_rng(1))[0], mean)
    assert np.allclose(found, by_hand)
    pairs = {
        "sampler": (lambda: sample(200, 20, 0.1, RNG), lambda: sample_by_hand(200, 20, 0.1, RNG)),
        "cells": (lambda: solve(feeds, found), lambda: solve_by_hand(feeds, by_hand)),
        "equation": (
            lambda: integrate(np.array([1.0, 0.0, 0.0]), 1e4, 4000),
            lambda: integrate_by_hand(np.array([1.0, 0.0, 0.0]), 1e4, 4000),
        ),
    }
    for name, (ours, other) in pairs.items():
        print(f"time of the {name}, of that by hand: {ratio(ours, other):.2f}")


if __name__ == "__main__":
    main()
