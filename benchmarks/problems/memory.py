"""What a gradient takes of memory: by how much the process grows above what it was before the first call.

`python -m benchmarks.problems.memory PROBLEM CASE SYSTEM` is that process; the remark has the peak during calls after
the first one. So what is kept between calls counts, and what compiling takes for a while does not. Linux tells it.
"""

import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.calls import Call, wait_for_compilers
from benchmarks.case import PEERS, Case
from benchmarks.processes import Process

LARGEST = {"gmm": 2, "ba": 1, "mlp": 0}
"""The cases, by number."""

WARMED: dict[str, Callable[[Any], Any]] = {
    "fnad": lambda fnad: fnad.jit(np.sin).lower(1.0).compile(),
    "jax": lambda jax: jax.jit(jax.numpy.sin)(1.0),
}
"""A program that loads the compiler, which is not the gradient's."""

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def cases() -> Iterator[Case]:
    for problem in LARGEST:
        case = chosen(problem)
        calls = [call for call in case.contenders if isinstance(call, Call) and call.peer in ("fnad", "jax")]
        contenders = [
            Process(call.system, call.peer, ["-m", "benchmarks.problems.memory", problem, call.system], reports=True)
            for call in calls
        ]
        yield Case(f"{problem}: {case.title}", contenders, tolerance=case.tolerance, rounds=3)


def chosen(problem: str) -> Case:
    """Return the case of a problem."""
    return list(import_module(f"benchmarks.problems.{problem}").cases())[LARGEST[problem]]


def kilobytes(line: str) -> int:
    """Return what the system says of this process's memory now ("VmRSS"), or at its peak ("VmHWM")."""
    found = re.search(rf"{line}:\s+(\d+) kB", STATUS.read_text(encoding="utf-8"))
    assert found is not None
    return int(found[1])


def measured(problem: str, system: str) -> dict[str, Any]:
    """Return the reading of a system's call."""
    (call,) = (call for call in chosen(problem).contenders if isinstance(call, Call) and call.system == system)
    module = import_module(PEERS[call.peer])
    WARMED[call.peer](module)
    run = call.prepare(module)
    before = kilobytes("VmRSS")
    for _ in range(3):
        run()
    wait_for_compilers()
    run()
    CLEAR.write_text("5", encoding="utf-8")  # the peak begins anew
    start = time.perf_counter()
    result = run()
    seconds = time.perf_counter() - start
    grown = (kilobytes("VmHWM") - before) / 1024
    norms = [[float(np.linalg.norm(np.ravel(array)))] for array in arrays_of(result)]
    return {"seconds": seconds, "result": norms, "note": f"grows by {grown:,.0f} MiB"}


def arrays_of(tree: Any) -> Iterator[Any]:
    """Yield the arrays in nested dicts, tuples and lists."""
    if isinstance(tree, (dict, tuple, list)):
        for part in map(tree.get, sorted(tree)) if isinstance(tree, dict) else tree:
            yield from arrays_of(part)
    else:
        yield tree


if __name__ == "__main__":
    print(json.dumps(measured(*sys.argv[1:])))
