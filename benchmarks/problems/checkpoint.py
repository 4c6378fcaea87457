"""The gradient of a scan by what reverse mode keeps of it: time and peak of memory, as the number of steps grows.

`python -m benchmarks.problems.checkpoint POLICY STEPS` is one fresh process, which makes the call twice and reads the
second. The peak is what the process's resident set grows by in that call, as Linux counts it.
"""

import ctypes
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.case import Case
from benchmarks.processes import Process

POLICIES = ("kept", "carry", "sqrt", "binomial")
STEPS = (10_000, 100_000, 1_000_000)
DT = 1e-3
STATE = np.array([[0.3, -0.2], [0.5, 0.1]])
STIFFNESS = np.array([1.0, 1.7])
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


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
    """Return the reading of a policy: the time of its second call, and how much memory that took."""
    import fnad  # noqa: PLC0415  (the parent, which has other peers in mind, goes without)

    call = gradient(fnad, policy, steps)
    call(STIFFNESS, STATE)
    before = resident_after_reset()
    start = time.perf_counter()
    value, slope = call(STIFFNESS, STATE)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "result": [[float(value)], slope.tolist()], "note": told(before)}


def resident_after_reset() -> int | None:
    """Give freed memory back, have Linux forget the peak so far, and return the resident bytes; None elsewhere."""
    if not CLEAR.exists():
        return None
    ctypes.CDLL(None).malloc_trim(0)
    CLEAR.write_text("5", encoding="ascii")
    return status("VmRSS")


def status(name: str) -> int:
    """Return a line of the process's status, in bytes."""
    (line,) = (line for line in STATUS.read_text(encoding="ascii").splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024


def told(before: int | None) -> str:
    """Return the remark on the peak since `before` was read."""
    return "peak unknown here" if before is None else f"peak {(status('VmHWM') - before) / 1e6:.2f} MB"


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1], int(sys.argv[2]))))
