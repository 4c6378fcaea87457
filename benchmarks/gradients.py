"""The contenders of most problems: the value of a function of arrays and its gradient in the first of them."""

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.calls import Call, Thunk

Function = Callable[..., Any]


def beside(np: Any, **modules: str) -> Any:
    """Return the module that goes with a system's NumPy, by the name of the system's package."""
    return import_module(modules[np.__name__.partition(".")[0]])


def scan(np: Any, step: Function, state: Any, rows: Sequence[Any]) -> tuple[Any, Any]:
    """Return the last state and all results of `step(state, row)`: by the system's own loop, or by Python's."""
    systems = {"numpy": "fnad", "jax": "jax.lax"}
    if np.__name__.partition(".")[0] in systems:
        return beside(np, **systems).scan(step, state, rows)
    results: list[Any] = []
    for row in zip(*rows, strict=True) if isinstance(rows, tuple) else rows:
        state, result = step(state, row)
        results.append(result)
    return state, None if results[0] is None else np.stack(results)


def contenders(
    function: Function,
    arguments: Sequence[np.ndarray],
    by_torch: Function,
    by_hand: Callable[[Any], Function],
    wanted: int = 1,
) -> list[Call]:
    """Return five contenders: `function(np, *arguments)` is one text for NumPy, JAX and autograd.

    `by_torch(torch, *arguments)` is PyTorch's text; `by_hand(native)` returns the value and each gradient.
    """
    argnums = tuple(range(wanted))

    def with_fnad(fnad: Any) -> Thunk:
        run = fnad.jit(fnad.value_and_grad(partial(function, np), argnums))
        return lambda: run(*arguments)

    def with_jax(jax: Any) -> Thunk:
        run = jax.jit(jax.value_and_grad(partial(function, jax.numpy), argnums))
        arrays = [jax.numpy.asarray(argument) for argument in arguments]
        return lambda: jax.block_until_ready(run(*arrays))

    def with_torch(torch: Any) -> Thunk:
        tensors = [torch.from_numpy(argument) for argument in arguments]
        variables = [tensor.requires_grad_() for tensor in tensors[:wanted]]

        def run() -> Any:
            value = by_torch(torch, *tensors)
            return value.detach(), torch.autograd.grad(value, variables)

        return run

    def with_autograd(autograd: Any) -> Thunk:
        run = autograd.value_and_grad(partial(function, autograd.numpy), argnums)
        return lambda: run(*arguments)

    def with_numba(native: Any) -> Thunk:
        run = by_hand(native)

        def boxed() -> Any:
            value, *gradient = run(*arguments)
            return arguments[0].dtype.type(value), gradient  # Numba returns a float32 as Python's float

        return boxed

    return [
        Call("fnad jit", "fnad", with_fnad),
        Call("JAX jit", "jax", with_jax),
        Call("PyTorch eager", "torch", with_torch),
        Call("autograd", "autograd", with_autograd),
        Call("Numba by hand", "numba", with_numba),
    ]
