"""The time to the n-th call in a fresh process, nothing cached: the first case of each problem, beside JAX.

`python -m benchmarks.problems.early PROBLEM PEER N` is that process. The time begins before the import of the system,
after those of NumPy and of the problem, and ends with the n-th call.
"""

import gc
import importlib
import json
import pkgutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks import problems
from benchmarks.calls import Call, wait_for_compilers
from benchmarks.case import PEERS, Case
from benchmarks.measure import leaves
from benchmarks.processes import Process

COUNTS = (1, 10, 100, 1000)
PEERS_HERE = ("fnad", "jax")
APART = ("early", "operations")  # this file, and single operations, which are a list of their own
LONGEST = 3.0
"""The seconds of calls after which a process stops: the time of the calls left out is that of a later call each."""


def cases() -> Iterator[Case]:
    for name in sorted(module.name for module in pkgutil.iter_modules(problems.__path__)):
        if name in APART or (case := first_case(name)) is None:
            continue
        for count in COUNTS:
            contenders = [
                Process(of(case, peer).system, peer, ["-m", "benchmarks.problems.early", name, peer, str(count)], True)
                for peer in PEERS_HERE
            ]
            title = f"{name}, {case.title}: call {count:,}"
            yield Case(title, contenders, tolerance=max(case.tolerance, 1e-6), rounds=3)


def first_case(name: str) -> Case | None:
    """Return the first case of a problem that both systems call again and again."""
    cases = importlib.import_module(f"benchmarks.problems.{name}").cases()
    return next((case for case in cases if all(of(case, peer) for peer in PEERS_HERE)), None)


def of(case: Case, peer: str) -> Any:
    """Return the first contender of a peer that is called in the process, or None."""
    return next((each for each in case.contenders if isinstance(each, Call) and each.peer == peer), None)


def calls(name: str, peer: str, count: int) -> dict[str, Any]:
    """Return the reading of `count` calls: the norm of each result, and the longest call beside a normal one."""
    case = first_case(name)
    assert case is not None
    gc.collect()
    begin = time.perf_counter()
    run = of(case, peer).prepare(importlib.import_module(PEERS[peer]))
    ready = time.perf_counter()
    times: list[float] = []
    result: Any = None
    while len(times) < count and time.perf_counter() - ready < LONGEST:
        start = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - start)
    seconds = time.perf_counter() - begin
    if len(times) < count:
        start = time.perf_counter()
        wait_for_compilers()
        seconds += time.perf_counter() - start
        seconds += (count - len(times)) * statistics.median(timed(run) for _ in range(5))
    longest = max(range(len(times)), key=times.__getitem__)
    note = f"{ready - begin:.2f} s before the first call; call {longest + 1} took the longest, {times[longest]:.3f} s"
    return {"seconds": seconds, "result": [[float(np.linalg.norm(leaf))] for leaf in leaves(result)], "note": note}


def timed(run: Callable[[], Any]) -> float:
    """Return the time of a call."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


if __name__ == "__main__":
    print(json.dumps(calls(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
