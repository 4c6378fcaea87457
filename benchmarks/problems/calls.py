"""What a call costs when there is nothing to compute: the gradient of sum(sin(x) * x), and that of a dict of arrays."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.calls import Call, Thunk
from benchmarks.case import Case


def f(x: np.ndarray) -> Any:
    return np.sum(np.sin(x) * x)


def cases() -> Iterator[Case]:
    yield Case("3 elements", contenders(np.array([0.5, 1.0, 2.0])), tolerance=1e-12, unit="µs")
    leaves = {f"w{n}": np.linspace(n, n + 1.0, 3) for n in range(8)}
    yield Case("dict of 8 arrays", of_dict(leaves), tolerance=1e-12, unit="µs")


def squares(p: dict[str, np.ndarray]) -> Any:
    return sum((x * x).sum() for x in p.values())


def of_dict(leaves: dict[str, np.ndarray]) -> list[Call]:
    def with_fnad(fnad: Any) -> Thunk:
        gradient = fnad.jit(fnad.value_and_grad(squares))
        return lambda: gradient(leaves)

    def with_jax(jax: Any) -> Thunk:
        gradient, p = jax.jit(jax.value_and_grad(squares)), {k: jax.numpy.asarray(v) for k, v in leaves.items()}
        return lambda: jax.block_until_ready(gradient(p))

    def with_jax_and_numpy(jax: Any) -> Thunk:
        gradient = jax.jit(jax.value_and_grad(squares))
        return lambda: jax.device_get(gradient(leaves))

    return [
        Call("fnad jit", "fnad", with_fnad),
        Call("JAX jit", "jax", with_jax),
        Call("JAX jit, NumPy in and out", "jax", with_jax_and_numpy),
    ]


def contenders(x: np.ndarray) -> list[Call]:
    def with_fnad(fnad: Any) -> Thunk:
        gradient = fnad.jit(fnad.grad(f))
        return lambda: gradient(x)

    def jax_gradient(jax: Any) -> Any:
        return jax.jit(jax.grad(lambda x: jax.numpy.sum(jax.numpy.sin(x) * x)))

    def with_jax(jax: Any) -> Thunk:
        gradient, x_jax = jax_gradient(jax), jax.numpy.asarray(x)
        return lambda: jax.block_until_ready(gradient(x_jax))

    def with_jax_and_numpy(jax: Any) -> Thunk:
        gradient = jax_gradient(jax)
        return lambda: np.asarray(gradient(x))

    def with_torch(torch: Any) -> Thunk:
        x_torch = torch.from_numpy(x).requires_grad_()
        return lambda: torch.autograd.grad(torch.sum(torch.sin(x_torch) * x_torch), x_torch)[0]

    def with_autograd(autograd: Any) -> Thunk:
        gradient = autograd.grad(lambda x: autograd.numpy.sum(autograd.numpy.sin(x) * x))
        return lambda: gradient(x)

    def by_hand(native: Any) -> Thunk:
        sin, cos = native.sin, native.cos

        @native.njit
        def gradient(x):
            out = np.empty_like(x)
            for i in range(x.size):
                out[i] = sin(x[i]) + cos(x[i]) * x[i]
            return out

        return lambda: gradient(x)

    return [
        Call("fnad jit", "fnad", with_fnad),
        Call("JAX jit", "jax", with_jax),
        Call("JAX jit, NumPy in and out", "jax", with_jax_and_numpy),
        Call("PyTorch eager", "torch", with_torch),
        Call("autograd", "autograd", with_autograd),
        Call("Numba by hand", "numba", by_hand),
    ]
