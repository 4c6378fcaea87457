"""Jacobians and Hessians of functions of 100 variables, and of maps between ten variables and a thousand."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.calls import Call, Thunk
from benchmarks.case import Case

FEW, MANY, EXAMPLES = 10, 1000, 500


def logistic(np: Any, rows: Any, labels: Any, w: Any) -> Any:
    """Return the mean loss of a logistic regression."""
    return np.mean(np.logaddexp(np.zeros_like(labels), -labels * (rows @ w))) + 0.01 * np.sum(w**2)


def rosenbrock(np: Any, x: Any) -> Any:
    """Return Rosenbrock's function."""
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def layer(np: Any, weights: Any, x: Any) -> Any:
    """Return a layer of a network and what it feeds back, elementwise."""
    y = np.tanh(weights @ x)
    return y * np.sin(y) + np.exp(-(y**2))


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(0)
    rows, labels = rng.standard_normal((EXAMPLES, 100)), np.sign(rng.standard_normal(EXAMPLES))
    point = 0.1 * rng.standard_normal(100)
    yield case("hessian of a logistic regression", "hessian", logistic, (rows, labels), point)
    yield case("hessian of Rosenbrock's function", "hessian", rosenbrock, (), point)
    for outputs, inputs in ((MANY, FEW), (FEW, MANY)):
        weights = rng.standard_normal((outputs, inputs)) / np.sqrt(inputs)
        x = rng.standard_normal(inputs)
        yield case(f"jacobian {outputs} x {inputs}", "jacobian", layer, (weights,), x)


def case(title: str, transform: str, function: Callable[..., Any], data: tuple[Any, ...], x: Any) -> Case:
    def with_fnad(fnad: Any) -> Thunk:
        run = fnad.jit(getattr(fnad, transform)(partial(function, np, *data)))
        return lambda: run(x)

    def with_jax(jax: Any) -> Thunk:
        of_jax = {"hessian": jax.hessian, "jacobian": jax.jacfwd if x.size == FEW else jax.jacrev}
        given = jax.tree.map(jax.numpy.asarray, (*data, x))
        run = jax.jit(of_jax[transform](partial(function, jax.numpy, *given[:-1])))
        return lambda: jax.block_until_ready(run(given[-1]))

    def with_torch(torch: Any) -> Thunk:
        of_torch = {
            "hessian": torch.func.hessian,
            "jacobian": torch.func.jacfwd if x.size == FEW else torch.func.jacrev,
        }
        run = of_torch[transform](partial(function, torch, *map(torch.from_numpy, data)))
        given = torch.from_numpy(x)
        return lambda: run(given)

    def with_autograd(autograd: Any) -> Thunk:
        run = getattr(autograd, transform)(partial(function, autograd.numpy, *data))
        return lambda: run(x)

    calls = [
        Call(f"fnad jit and {transform}", "fnad", with_fnad),
        Call(f"JAX jit and {transform}", "jax", with_jax),
        Call(f"PyTorch's {transform}", "torch", with_torch),
        Call(f"autograd's {transform}", "autograd", with_autograd),
    ]
    return Case(title, calls, tolerance=1e-9, unit="µs", rounds=21)
