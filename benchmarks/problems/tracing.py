"""Tracing a dozen of NumPy's functions, one at a time: the time of one traced call, the user's line around it included.

Each is called on twenty arguments, so that no two calls make the same equation; the function that is traced tells the
time itself.
"""

# ruff: noqa: PLW0108  (what is measured is a line of the user's)

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.calls import Call, Thunk
from benchmarks.case import Case, Reading

COUNT = 20
XS = [np.linspace(0.1, 1.0, 4) + i for i in range(COUNT)]
MATRIX = np.arange(12.0).reshape(3, 4)

CALLS: dict[str, Callable[[Any], Any]] = {
    "np.exp(x)": lambda x: np.exp(x),
    "x * 2.0": lambda x: x * 2.0,
    "x + y": lambda x: x + XS[0],
    "x ** 2": lambda x: x**2,
    "np.maximum(x, 0)": lambda x: np.maximum(x, 0),
    "np.sum(x)": lambda x: np.sum(x),
    "x.sum(axis=0)": lambda x: x.sum(axis=0),
    "np.mean(x)": lambda x: np.mean(x),
    "matrix @ x": lambda x: MATRIX @ x,
    "np.dot(x, x)": lambda x: np.dot(x, x),
    "x[1:]": lambda x: x[1:],
    "x.reshape(2, 2)": lambda x: x.reshape(2, 2),
    "np.where(x > 0, x, 0.0)": lambda x: np.where(x > 0, x, 0.0),
    "np.stack([x, x])": lambda x: np.stack([x, x]),
    "np.concatenate([x, x])": lambda x: np.concatenate([x, x]),
    "np.vstack([x, x])": lambda x: np.vstack([x, x]),
    "np.diff(x)": lambda x: np.diff(x),
    "np.clip(x, 0, 1)": lambda x: np.clip(x, 0, 1),
    "np.trapezoid(x)": lambda x: np.trapezoid(x),
    "np.linalg.norm(x)": lambda x: np.linalg.norm(x),
}


@dataclass
class TracedCall:
    """The time of a call while a trace runs, told by the function that is traced."""

    system: str
    peer: str
    call: Callable[[Any], Any]
    jitted: bool = False
    seconds: float = 0.0
    run: Thunk = field(init=False)

    def start(self) -> "TracedCall":
        """Prepare the gradient of a sum, beside which the calls are made in vain."""
        call = self.call

        def watched(xs: list[np.ndarray]) -> Any:
            begin = time.perf_counter()
            for x in xs:
                call(x)
            self.seconds = (time.perf_counter() - begin) / COUNT
            return np.sum(xs[0])

        self.run = Call(self.system, self.peer, lambda fnad: self.runner(fnad, watched)).start().run
        return self

    def runner(self, fnad: Any, watched: Callable[..., Any]) -> Thunk:
        """Return what traces: under jit, a function that is compiled anew each time."""
        return (lambda: fnad.jit(fnad.grad(watched))(XS)) if self.jitted else (lambda: fnad.grad(watched)(XS))

    def first(self) -> Reading:
        """Trace once."""
        result = self.run()
        return Reading(self.seconds, result)

    def sample(self) -> float:
        """Trace once more."""
        return self.first().seconds


def cases() -> Iterator[Case]:
    for title, call in CALLS.items():
        contenders = (TracedCall("fnad", "fnad", call), TracedCall("fnad, under jit", "fnad", call, jitted=True))
        yield Case(title, contenders, tolerance=1e-12, unit="µs", rounds=15)
