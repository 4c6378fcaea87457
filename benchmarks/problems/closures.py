"""A thousand gradients of functions of ten operations, each through a fresh closure: too many to compile."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.calls import Call, Thunk
from benchmarks.case import Case

COUNT = 1000
X = np.array([0.5, 1.0, 2.0])


def closure(np: Any, scale: float) -> Callable[[Any], Any]:
    """Return a new function of ten operations with a constant of its own."""
    return lambda x: np.sum(np.exp(np.sin(x * scale) + x) * np.tanh(x) - np.sqrt(x + 1.0) / scale)


def cases() -> Iterator[Case]:
    for name, scales in (("alike", np.full(COUNT, 1.5)), ("all different", np.linspace(1.0, 2.0, COUNT))):
        contenders = [
            Call("fnad, no jit", "fnad", lambda fnad, scales=scales: total(fnad.grad, np, scales)),
            Call("autograd", "autograd", lambda ag, scales=scales: total(ag.grad, ag.numpy, scales)),
            Call("PyTorch eager", "torch", lambda torch, scales=scales: with_torch(torch, scales)),
        ]
        yield Case(f"1,000, {name}", contenders, tolerance=1e-12, rounds=5, per=(COUNT, "gradient"))


def total(grad: Callable[..., Any], np: Any, scales: Any) -> Thunk:
    return lambda: sum(grad(closure(np, float(scale)))(X) for scale in scales)


def with_torch(torch: Any, scales: Any) -> Thunk:
    x = torch.from_numpy(X).requires_grad_()
    return lambda: sum(torch.autograd.grad(closure(torch, float(scale))(x), x)[0] for scale in scales)
