"""What a guarded branch costs: the gradient of sum(sin(x) * x), written along one path, with a branch, along two paths.

With the first branch all calls take one path, with the second two paths: in turn, where each can be foreseen, and in no
order.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.calls import Call, Thunk
from benchmarks.case import Case

PAIR = np.array([0.5, 1.0, 2.0]), np.array([-0.5, 1.0, 2.0])
ORDERS = {"in turn": (0, 1) * 8, "in no order": tuple(np.random.default_rng(0).permutation((0, 1) * 8).tolist())}


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
    for name, order in ORDERS.items():
        contenders = [
            Call("straight", "fnad", partial(with_fnad, straight, order)),
            Call("one path, guarded", "fnad", partial(with_fnad, one_path, order)),
            Call("two paths", "fnad", partial(with_fnad, two_paths, order)),
            Call("PyTorch eager, two paths", "torch", partial(with_torch, order)),
            Call("autograd, two paths", "autograd", partial(with_autograd, order)),
        ]
        yield Case(f"16 calls {name}", contenders, tolerance=1e-12, unit="µs", per=(16, "call"))


def calls(gradient: Callable[[Any], Any], pair: Sequence[Any], order: Sequence[int]) -> Thunk:
    xs = [pair[i] for i in order]
    return lambda: [gradient(x) for x in xs]


def with_fnad(f: Callable[[Any, Any], Any], order: Sequence[int], fnad: Any) -> Thunk:
    return calls(fnad.jit(fnad.grad(lambda x: f(np, x))), PAIR, order)


def with_autograd(order: Sequence[int], autograd: Any) -> Thunk:
    return calls(autograd.grad(lambda x: two_paths(autograd.numpy, x)), PAIR, order)


def with_torch(order: Sequence[int], torch: Any) -> Thunk:
    xs = [torch.from_numpy(x).requires_grad_() for x in PAIR]
    return calls(lambda x: torch.autograd.grad(two_paths(torch, x), x)[0], xs, order)
