"""Compiled programs on one thread and on two, of `--two-cores`: loops, folds, rows, stencils, a `vmap`, products."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.calls import Call, Thunk
from benchmarks.case import Case
from benchmarks.problems.gmm import log_posterior
from benchmarks.problems.vmapped import root


def black_scholes(spot: Any, strike: Any, time: Any) -> Any:
    """Return the prices of calls, with the normal distribution by its logistic approximation."""
    spread = 0.3 * np.sqrt(time)
    d = (np.log(spot / strike) + 0.045 * time) / spread
    return spot * normal(d) - strike * np.exp(-0.02 * time) * normal(d - spread)


def normal(x: Any) -> Any:
    return 0.5 * (1.0 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def softmax(x: Any) -> Any:
    shifted = np.exp(x - np.max(x, axis=1, keepdims=True))
    return shifted / np.sum(shifted, axis=1, keepdims=True)


def heat(u: Any) -> Any:
    """Return ten explicit steps of the heat equation in a square with cold edges."""
    for _ in range(10):
        inside = u[1:-1, 1:-1]
        u = np.pad(inside + 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * inside), 1)
    return u


def layers(x: Any, w: Any) -> Any:
    return np.sum(np.tanh(np.tanh(x @ w) @ w))


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(0)
    options = [rng.uniform(0.5, 1.5, 1_000_000) for _ in range(3)]
    yield case("black-scholes, 1,000,000 prices", lambda fnad: fnad.jit(black_scholes), *options)
    yield case("their derivatives", of_sum(black_scholes), *options)
    yield case("black-scholes, 2,000 prices", lambda fnad: fnad.jit(black_scholes), *(x[:2000] for x in options))
    yield case("softmax, 2,000 x 1,000", lambda fnad: fnad.jit(softmax), rng.standard_normal((2000, 1000)))
    yield case("its derivative", of_sum(lambda x: softmax(x) ** 2), rng.standard_normal((2000, 1000)))
    yield case("heat, 1,000 x 1,000", lambda fnad: fnad.jit(heat), rng.standard_normal((1000, 1000)))
    yield case("its derivative", of_sum(lambda u: heat(u) ** 2), rng.standard_normal((1000, 1000)))
    numbers = np.exp(8 * rng.standard_normal(100_000))
    yield case(
        "a root for each of 100,000 rows", lambda fnad: fnad.jit(fnad.vmap(lambda a: root(fnad.while_loop, a))), numbers
    )
    yield case("derivatives of layers of 1,000", of_sum(layers), *rng.standard_normal((2, 1000, 1000)))
    for d, k in ((32, 25), (64, 100)):
        factors = 0.3 * rng.standard_normal((k, d * (d + 1) // 2)) / math.sqrt(d)
        given = rng.standard_normal(k), rng.standard_normal((k, d)), factors, rng.standard_normal((1000, d))
        gradient = lambda fnad: fnad.jit(  # noqa: E731
            fnad.value_and_grad(lambda *x: log_posterior(np, *x), argnums=(0, 1, 2))
        )
        yield case(f"gmm, d = {d}, k = {k}", gradient, *given)


def of_sum(function: Callable[..., Any]) -> Callable[[Any], Callable[..., Any]]:
    return lambda fnad: fnad.jit(fnad.grad(lambda *x: np.sum(function(*x))))


def case(title: str, made: Callable[[Any], Callable[..., Any]], *arguments: Any) -> Case:
    """Return a case with the program on one thread and on two, whose results are the same to the bit."""
    return Case(title, [Call(f"on {n}", "fnad", on(n, made, arguments)) for n in (1, 2)], rounds=21)


def on(number: int, made: Callable[[Any], Callable[..., Any]], arguments: tuple[Any, ...]) -> Callable[[Any], Thunk]:
    def prepare(fnad: Any) -> Thunk:
        run = made(fnad)

        def call() -> Any:
            with fnad.config.override(executor="compiled", threads=min(number, fnad.config.CORES)):
                return run(*arguments)

        return call

    return prepare
