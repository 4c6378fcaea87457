"""Lotka-Volterra by adaptive steps: the value of a fit to 100 times and its gradient in the four parameters."""

from collections.abc import Iterator
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.calls import Call, Thunk
from benchmarks.case import Case

TIMES = np.linspace(0.0, 20.0, 100)
START = np.array([10.0, 5.0])
PARAMETERS = np.array([1.1, 0.4, 0.1, 0.4])
SOLVER = {"rtol": 1e-8, "atol": 1e-8}


def velocity(np: Any, y: Any, t: Any, parameters: Any) -> Any:
    hares, lynxes = y[0], y[1]
    a, b, c, d = parameters[0], parameters[1], parameters[2], parameters[3]
    return np.stack([a * hares - b * hares * lynxes, c * hares * lynxes - d * lynxes])


def misfit(np: Any, odeint: Any, parameters: Any, start: Any, times: Any) -> Any:
    """Return the mean of log² y: one text for NumPy with `fnad.odeint` and for JAX with its own."""
    return np.mean(np.log(odeint(partial(velocity, np), start, times, parameters, **SOLVER)) ** 2)


def cases() -> Iterator[Case]:
    yield Case("Lotka-Volterra, value and gradient", contenders(), tolerance=1e-5, rounds=11)


def contenders() -> list[Call]:
    def with_fnad(adjoint: str) -> Any:
        def prepare(fnad: Any) -> Thunk:
            function = partial(misfit, np, partial(fnad.odeint, adjoint=adjoint))
            value_and_grad = fnad.jit(fnad.value_and_grad(function))
            return lambda: value_and_grad(PARAMETERS, START, TIMES)

        return prepare

    def with_jax(jax: Any) -> Thunk:
        odeint = import_module("jax.experimental.ode").odeint
        value_and_grad = jax.jit(jax.value_and_grad(partial(misfit, jax.numpy, odeint)))
        arguments = jax.tree.map(jax.numpy.asarray, (PARAMETERS, START, TIMES))
        return lambda: jax.block_until_ready(value_and_grad(*arguments))

    return [
        Call("fnad jit, through the steps", "fnad", with_fnad("discrete")),
        Call("fnad jit, adjoint equations", "fnad", with_fnad("continuous")),
        Call("JAX jit, adjoint equations", "jax", with_jax),
    ]
