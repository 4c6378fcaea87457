"""What a guarded branch costs: the gradient of sum(sin(x) * x), written along one path, with a branch, along two paths.

A pair of calls is timed: with the first branch both take one path, with the second they take two paths in turn.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.calls import Call, Thunk
from benchmarks.case import Case

PAIR = np.array([0.5, 1.0, 2.0]), np.array([-0.5, 1.0, 2.0])


def straight(np: Any, x: Any) -> Any:
    return np.sum(np.sin(x) * x)


def one_path(np: Any, x: Any) -> Any:
    if x[1] > 0:
        return np.sum(np.sin(x) * x)
    return np.sum(x * x)


def two_paths(np: Any, x: Any) -> Any:
    if x[0] > 0:
        return np.sum(np.sin(x) * x)
    return np.sum(x * np.sin(x))


def cases() -> Iterator[Case]:
    contenders = [
        Call("straight", "fnad", lambda fnad: with_fnad(fnad, straight)),
        Call("one path, guarded", "fnad", lambda fnad: with_fnad(fnad, one_path)),
        Call("two paths in turn", "fnad", lambda fnad: with_fnad(fnad, two_paths)),
        Call("PyTorch eager, two paths", "torch", with_torch),
        Call("autograd, two paths", "autograd", with_autograd),
    ]
    yield Case("two calls", contenders, tolerance=1e-12, unit="µs", per=(2, "call"))


def pair(gradient: Callable[[Any], Any], xs: Any) -> Thunk:
    first, second = xs
    return lambda: (gradient(first), gradient(second))


def with_fnad(fnad: Any, f: Callable[[Any, Any], Any]) -> Thunk:
    return pair(fnad.jit(fnad.grad(lambda x: f(np, x))), PAIR)


def with_autograd(autograd: Any) -> Thunk:
    return pair(autograd.grad(lambda x: two_paths(autograd.numpy, x)), PAIR)


def with_torch(torch: Any) -> Thunk:
    xs = [torch.from_numpy(x).requires_grad_() for x in PAIR]
    return pair(lambda x: torch.autograd.grad(two_paths(torch, x), x)[0], xs)
