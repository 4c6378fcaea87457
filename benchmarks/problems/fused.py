"""Value and gradient of sum(exp(sin(x)) * x), a million elements: one fused loop, bound by vector math and memory."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.calls import Call, Thunk
from benchmarks.case import Case

BLOCK = 4096  # sums of partial sums keep float32 accurate
TOLERANCE = {"float64": 1e-10, "float32": 1e-5}


def f(x: np.ndarray) -> Any:
    return np.sum(np.exp(np.sin(x)) * x)


def cases() -> Iterator[Case]:
    for dtype in ("float64", "float32"):
        x = np.random.default_rng(0).standard_normal(1_000_000).astype(dtype)
        yield Case(f"{x.size:,} {dtype}", contenders(x), TOLERANCE[dtype])


def contenders(x: np.ndarray) -> list[Call]:
    def with_fnad(fnad: Any) -> Thunk:
        value_and_grad = fnad.jit(fnad.value_and_grad(f))
        return lambda: value_and_grad(x)

    def with_jax(jax: Any) -> Thunk:
        jnp, x_jax = jax.numpy, jax.numpy.asarray(x)
        value_and_grad = jax.jit(jax.value_and_grad(lambda x: jnp.sum(jnp.exp(jnp.sin(x)) * x)))
        return lambda: jax.block_until_ready(value_and_grad(x_jax))

    def with_torch(torch: Any) -> Thunk:
        x_torch = torch.from_numpy(x).requires_grad_()

        def value_and_grad() -> Any:
            y = torch.sum(torch.exp(torch.sin(x_torch)) * x_torch)
            return y.detach(), torch.autograd.grad(y, x_torch)[0]

        return value_and_grad

    def with_autograd(autograd: Any) -> Thunk:
        anp = autograd.numpy
        value_and_grad = autograd.value_and_grad(lambda x: anp.sum(anp.exp(anp.sin(x)) * x))
        return lambda: value_and_grad(x)

    def by_hand(native: Any) -> Thunk:
        sin, cos, exp = native.sin, native.cos, native.exp

        @native.njit
        def value_and_grad(x):
            gradient, value = np.empty_like(x), x.dtype.type(0)
            for start in range(0, x.size, BLOCK):
                xs, gradients, part = x[start : start + BLOCK], gradient[start : start + BLOCK], x.dtype.type(0)
                for i in range(xs.size):
                    e = exp(sin(xs[i]))
                    part += e * xs[i]
                    gradients[i] = e + e * cos(xs[i]) * xs[i]
                value += part
            return value, gradient

        def boxed() -> Any:
            value, gradient = value_and_grad(x)
            return x.dtype.type(value), gradient  # Numba returns a float32 as Python's float

        return boxed

    return [
        Call("fnad jit", "fnad", with_fnad),
        Call("JAX jit", "jax", with_jax),
        Call("PyTorch eager", "torch", with_torch),
        Call("autograd", "autograd", with_autograd),
        Call("Numba by hand", "numba", by_hand),
    ]
