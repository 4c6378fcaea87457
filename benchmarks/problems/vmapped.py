"""Functions of one row, applied to 10,000: gradients of a network and of a scalar function, and a root for each row.

The rows of the root finder need 6 to 26 steps, and in the last case one in a hundred 220. JAX takes, for all of them,
as many as the slowest needs.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.calls import Call, Thunk
from benchmarks.case import Case

ROWS, INPUTS, HIDDEN = 10_000, 8, 16
TOLERANCE = 1e-12


def network(np: Any, parameters: Any, x: Any) -> Any:
    """Return the output of a network with one hidden layer, for one example."""
    weights, bias, last = parameters
    return np.sum(np.tanh(weights @ x + bias) * last) ** 2


def scalar(np: Any, p: Any, x: Any) -> Any:
    """Return a function of five parameters at one point."""
    return p[0] * np.exp(-((x - p[1]) ** 2) / (1.0 + p[2] ** 2)) + np.sin(p[3] * x) * p[4]


def root(while_loop: Any, a: Any) -> Any:
    """Return the square root of a number by Newton's method."""
    return while_loop(lambda s: abs(s * s - a) > TOLERANCE * a, lambda s: (s + a / s) / 2, a)


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(0)
    parameters = (
        rng.standard_normal((HIDDEN, INPUTS)) / np.sqrt(INPUTS),
        np.zeros(HIDDEN),
        rng.standard_normal(HIDDEN) / np.sqrt(HIDDEN),
    )
    rows = rng.standard_normal((ROWS, INPUTS))
    yield Case("gradients of a network by example", gradients(network, parameters, rows), tolerance=1e-9, rounds=11)
    point, xs = np.array([1.0, 0.3, 0.5, 2.0, 0.1]), rng.standard_normal(ROWS)
    yield Case("gradients of a scalar function", gradients(scalar, point, xs), tolerance=1e-9, rounds=21)
    exponents = 8 * rng.standard_normal(ROWS)
    yield Case("a root for each row", roots(np.exp(exponents)), tolerance=1e-9, rounds=21)
    exponents[rng.random(ROWS) < 0.01] = 300.0
    yield Case("a root for each row, a few of them far", roots(np.exp(exponents)), tolerance=1e-9, rounds=21)


def gradients(function: Any, parameters: Any, rows: Any) -> list[Call]:
    def with_fnad(fnad: Any) -> Thunk:
        run = fnad.jit(fnad.vmap(fnad.grad(partial(function, np)), in_axes=(None, 0)))
        return lambda: run(parameters, rows)

    def with_jax(jax: Any) -> Thunk:
        run = jax.jit(jax.vmap(jax.grad(partial(function, jax.numpy)), in_axes=(None, 0)))
        arguments = jax.tree.map(jax.numpy.asarray, (parameters, rows))
        return lambda: jax.block_until_ready(run(*arguments))

    return [Call("fnad jit and vmap", "fnad", with_fnad), Call("JAX jit and vmap", "jax", with_jax)]


def roots(numbers: Any) -> list[Call]:
    def with_fnad(fnad: Any) -> Thunk:
        run = fnad.jit(fnad.vmap(partial(root, fnad.while_loop)))
        return lambda: run(numbers)

    def with_jax(jax: Any) -> Thunk:
        run = jax.jit(jax.vmap(partial(root, jax.lax.while_loop)))
        given = jax.numpy.asarray(numbers)
        return lambda: jax.block_until_ready(run(given))

    return [Call("fnad jit and vmap", "fnad", with_fnad), Call("JAX jit and vmap", "jax", with_jax)]
