"""log Σ exp x and its gradient, written as a maximum, a sum and a logarithm."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.case import Case
from benchmarks.gradients import contenders

CASES = ((10_000, "float64"), (640_000, "float64"), (640_000, "float32"))
LANES = 16


def logsumexp(np: Any, x: Any) -> Any:
    largest = np.max(x)
    return largest + np.log(np.sum(np.exp(x - largest)))


def by_torch(torch: Any, x: Any) -> Any:
    return torch.logsumexp(x, 0)


def by_hand(native: Any) -> Any:
    """Two loops over x, one over the gradient; the maximum is that of lanes, since LLVM keeps the order of a fold."""
    exp = native.exp

    @native.njit
    def value_and_gradient(x):
        lanes, gradient = x[:LANES].copy(), np.empty_like(x)
        for start in range(0, x.size - LANES + 1, LANES):
            for lane in range(LANES):
                lanes[lane] = max(lanes[lane], x[start + lane])
        largest, total = max(lanes.max(), x[-LANES:].max()), x.dtype.type(0)
        for i in range(x.size):
            gradient[i] = exp(x[i] - largest)
            total += gradient[i]
        inverse = x.dtype.type(1) / total
        for i in range(x.size):
            gradient[i] *= inverse
        return largest + np.log(total), gradient

    return value_and_gradient


def cases() -> Iterator[Case]:
    for size, dtype in CASES:
        x = np.random.default_rng(0).standard_normal(size).astype(dtype)
        calls = contenders(logsumexp, [x], by_torch, by_hand)
        yield Case(f"{size:,} {dtype}", calls, tolerance=1e-10 if dtype == "float64" else 2e-3)
