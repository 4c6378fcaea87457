"""The first value and gradient of long programs that do not repeat: tracing, deriving, compiling, running once.

The operations are drawn at random, on numbers, on arrays of 50, and on such arrays with views, reductions and products
of matrices. The remark is the time for each operation, which should not depend on how many there are. JAX, of which
the time grows faster, is given the short programs only.
"""

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.calls import Once, Thunk
from benchmarks.case import Case

Function = Callable[..., Any]
Draw = random.Random
SIZE, LENGTHS, LONGEST_OF_JAX = 50, (100, 1000, 10_000), 100


def arithmetic(np: Any, draw: Draw, a: Any, b: Any, w: Any) -> Any:
    c = draw.random()
    ways: list[Callable[[], Any]] = [
        lambda: a + b * c,
        lambda: np.tanh(a) * b,
        lambda: np.sin(a) - b,
        lambda: a / (2.0 + b * b),
        lambda: np.sqrt(1.0 + a * a) - c * b,
    ]
    return draw.choice(ways)()


def array_operation(np: Any, draw: Draw, a: Any, b: Any, w: Any) -> Any:
    k = draw.randrange(1, SIZE)
    ways: list[Callable[[], Any]] = [
        lambda: np.tanh(w @ a) + b,
        lambda: np.concatenate([a[k:], b])[:SIZE],
        lambda: np.sum(a[:, None] * b[None, :], axis=k % 2) / SIZE,
        lambda: np.sin(a) + np.mean(b),
        lambda: np.where(a > k / SIZE, a, np.cos(b)),
    ]
    return draw.choice(ways)()


def program(np: Any, operation: Function, length: int) -> Function:
    """Return a function of this many steps, each of some two operations, which are the same for each `np`."""

    def f(x: Any, y: Any, w: Any) -> Any:
        draw, found = Draw(0), [x, y]
        for _ in range(length // 2):
            found.append(operation(np, draw, found[-1], draw.choice(found[-20:]), w))
        return np.sum(found[-1])

    return f


def cases() -> Iterator[Case]:
    vector, matrix = np.linspace(0.1, 1.0, SIZE), np.random.default_rng(0).random((SIZE, SIZE)) / SIZE
    kinds = {
        "numbers": (arithmetic, (0.3, 0.5, 0.0)),
        "arrays": (arithmetic, (vector, vector[::-1].copy(), 0.0)),
        "arrays of all kinds": (array_operation, (vector, vector[::-1].copy(), matrix)),
    }
    for length in LENGTHS:
        for title, (operation, arguments) in kinds.items():
            yield Case(
                f"{length:,} operations on {title}",
                contenders(operation, arguments, length),
                tolerance=1e-9,
                unit="s",
                rounds=3 if length < LENGTHS[-1] else 1,
                per=(length, "operation"),
            )


def contenders(operation: Function, arguments: tuple[Any, ...], length: int) -> list[Once]:
    def with_fnad(fnad: Any) -> Thunk:
        def run() -> Any:
            fnad.clear_cache()
            with fnad.config.override(executor="compiled", disk_cache=False):
                return fnad.jit(fnad.value_and_grad(program(np, operation, length)))(*arguments)

        return run

    def with_jax(jax: Any) -> Thunk:
        def run() -> Any:
            jax.clear_caches()
            f = program(jax.numpy, operation, length)
            return jax.block_until_ready(jax.jit(jax.value_and_grad(f))(*arguments))

        return run

    found = [Once("fnad jit", "fnad", with_fnad)]
    return [*found, Once("JAX jit", "jax", with_jax)] if length <= LONGEST_OF_JAX else found
