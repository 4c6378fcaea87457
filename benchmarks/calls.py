"""Contenders in this process: a prepared call, timed in batches long enough for the clock."""

import importlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.case import PEERS, Reading

BATCH_SECONDS = 0.005
LEAST_COMPILATION = 0.005

Thunk = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Call:
    """`prepare(module)` binds inputs and returns the call to time; it waits for its result and returns it.

    A batch of calls takes at least `seconds` by this clock of the module `time`.
    """

    system: str
    peer: str
    prepare: Callable[[Any], Thunk]
    clock: str = "perf_counter"
    seconds: float = BATCH_SECONDS

    def start(self) -> "Stopwatch":
        """Import the peer and prepare its call, without calling it."""
        return Stopwatch(self.prepare(importlib.import_module(PEERS[self.peer])), self.clock, self.seconds)


class Stopwatch:
    """Times a call: once for the first reading, then as the mean of a batch of at least `seconds`."""

    def __init__(self, run: Thunk, clock: str = "perf_counter", seconds: float = BATCH_SECONDS) -> None:
        self.run, self.clock, self.seconds = run, clock, seconds
        self.calls = 1

    def first(self) -> Reading:
        """Read the first call, and the second where it compiles; find the size of a batch of those that follow."""
        start = time.perf_counter()
        result = self.run()
        seconds, second = time.perf_counter() - start, self.batch()
        wait_for_compilers()
        while (batch := min(self.batch(), self.batch())) < self.seconds:  # one may have compiled
            self.calls *= 2
        compiles = second > max(2 * batch / self.calls, LEAST_COMPILATION)
        return Reading(seconds, result, f"second call {second:.2f} s" if compiles else "")

    def sample(self) -> float:
        """Return the mean time of a call over a batch, after another one.

        After other work, or none, a processor takes some milliseconds to run the same code at its full speed.
        """
        self.batch()
        wait_for_compilers()
        return self.batch() / self.calls

    def batch(self) -> float:
        """Return the time of `calls` calls."""
        run, repeats, clock = self.run, range(self.calls), getattr(time, self.clock)
        start = clock()
        for _ in repeats:
            run()
        return clock() - start


def wait_for_compilers() -> None:
    """Wait until what fnad compiles in the background is compiled."""
    if background := sys.modules.get("fnad.backends.background"):
        background.BACKGROUND.wait()


@dataclass
class Once:
    """A call that takes too long for batches, as the first one of a long program."""

    system: str
    peer: str
    prepare: Callable[[Any], Thunk]

    def start(self) -> "Once":
        """Import the peer and prepare its call, without calling it."""
        self._run = self.prepare(importlib.import_module(PEERS[self.peer]))
        return self

    def first(self) -> Reading:
        """Call once."""
        start = time.perf_counter()
        result = self._run()
        return Reading(time.perf_counter() - start, result)

    def sample(self) -> float:
        """Call once more."""
        return self.first().seconds
