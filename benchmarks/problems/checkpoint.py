"""The gradient of a scan by what reverse mode keeps of it: time and peak of memory, as the number of steps grows.

`python -m benchmarks.problems.checkpoint POLICY STEPS` is one fresh process, which reads a call after the one that
compiles. The peak counts the arrays that the compiled program holds from call to call, and what a call has beyond
them: NumPy and the tapes of native code tell `tracemalloc` of all they allocate.
"""

import json
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.case import Case
from benchmarks.processes import Process

POLICIES = ("kept", "carry", "sqrt", "binomial")
STEPS = (10_000, 100_000, 1_000_000)
DT = 1e-3
STATE = np.array([[0.3, -0.2], [0.5, 0.1]])
STIFFNESS = np.array([1.0, 1.7])


def cases() -> Iterator[Case]:
    for steps in STEPS:
        contenders = [
            Process(policy, "fnad", ["-m", "benchmarks.problems.checkpoint", policy, str(steps)], reports=True)
            for policy in POLICIES
        ]
        yield Case(f"{steps:,} steps", contenders, tolerance=1e-12, rounds=3)


def gradient(fnad: Any, policy: str, steps: int) -> Callable[..., Any]:
    """Return the energy of two pendulums after many steps, with its gradient in their stiffnesses."""

    def energy(stiffness: np.ndarray, state: np.ndarray) -> Any:
        def step(state: np.ndarray, _: None) -> tuple[np.ndarray, None]:
            speed = state[1] - DT * stiffness * np.sin(state[0])
            return np.stack([state[0] + DT * speed, speed]), None

        angle, speed = fnad.scan(step, state, None, length=steps)[0]
        return np.sum(speed**2 / 2 - np.cos(angle))

    return fnad.jit(fnad.value_and_grad(energy if policy == "kept" else fnad.checkpoint(energy, policy=policy)))


def measured(policy: str, steps: int) -> dict[str, Any]:
    """Return the reading of a policy: the time of a call, and its peak of memory."""
    import fnad  # noqa: PLC0415  (the parent, which has other peers in mind, goes without)

    value_and_grad = gradient(fnad, policy, steps)
    peak = peak_memory(lambda: value_and_grad(STIFFNESS, STATE))
    start = time.perf_counter()
    value, slope = value_and_grad(STIFFNESS, STATE)
    seconds = time.perf_counter() - start
    result = [[float(value)], slope.tolist()]
    return {"seconds": seconds, "result": result, "note": f"peak {peak / 1e3:,.1f} kB"}


def peak_memory(run: Callable[[], Any]) -> int:
    """Return the most bytes that a second run has: of arrays that the first one left, and of whatever it allocates."""
    tracemalloc.start()
    first = run()
    arrays = tracemalloc.DomainFilter(inclusive=True, domain=np.lib.tracemalloc_domain)
    held = sum(trace.size for trace in tracemalloc.take_snapshot().filter_traces([arrays]).traces)
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    del first
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return held + peak - before


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1], int(sys.argv[2]))))
