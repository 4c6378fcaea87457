"""Tracing, and the gradient without jit, of a chain of NumPy calls: both have to grow as the number of calls does."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.calls import Call, Thunk
from benchmarks.case import Case, Reading

X = np.array([0.5, 1.0, 2.0])


def chain(length: int) -> Callable[[np.ndarray], Any]:
    """Return a function of `length` NumPy calls, each on the result of the one before."""

    def f(x: np.ndarray) -> Any:
        for _ in range(length // 2):
            x = np.multiply(np.sin(x), 1.5)
        return np.sum(x)

    return f


@dataclass
class TracingTime:
    """The time that a function takes to run when nothing but a trace runs it: told by the function itself."""

    system: str
    peer: str
    length: int
    seconds: float = 0.0
    run: Thunk = field(init=False)

    def start(self) -> "TracingTime":
        """Prepare the gradient of a chain with a watch around its body."""
        f = chain(self.length)

        def watched(x: np.ndarray) -> Any:
            begin = time.perf_counter()
            y = f(x)
            self.seconds = time.perf_counter() - begin
            return y

        self.run = Call(self.system, self.peer, lambda fnad: lambda: fnad.grad(watched)(X)).start().run
        return self

    def first(self) -> Reading:
        """Trace and differentiate once, and read the trace's share."""
        result = self.run()
        return Reading(self.seconds, result)

    def sample(self) -> float:
        """Do so again; without jit, every call traces anew."""
        return self.first().seconds


def cases() -> Iterator[Case]:
    for length in (100, 1000, 10_000):
        contenders = (TracingTime("fnad, trace alone", "fnad", length), gradient(length))
        yield Case(f"{length:,} calls", contenders, tolerance=1e-12, rounds=9, per=(length, "NumPy call"))


def gradient(length: int) -> Call:
    """Return the whole call of a chain's gradient: trace, differentiate, run."""
    f = chain(length)
    return Call("fnad, gradient", "fnad", lambda fnad: lambda: fnad.grad(f)(X))
