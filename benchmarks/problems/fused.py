"""Value and gradient of sum(exp(sin(x)) * x), a million elements: one fused loop, bound by vector math and memory."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.case import Case
from benchmarks.gradients import contenders

BLOCK = 4096  # sums of partial sums keep float32 accurate
TOLERANCE = {"float64": 1e-10, "float32": 1e-5}


def f(np: Any, x: Any) -> Any:
    return np.sum(np.exp(np.sin(x)) * x)


def by_torch(torch: Any, x: Any) -> Any:
    return torch.sum(torch.exp(torch.sin(x)) * x)


def by_hand(native: Any) -> Any:
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

    return value_and_grad


def cases() -> Iterator[Case]:
    for dtype in ("float64", "float32"):
        x = np.random.default_rng(0).standard_normal(1_000_000).astype(dtype)
        yield Case(f"{x.size:,} {dtype}", contenders(f, (x,), by_torch, by_hand), TOLERANCE[dtype])
