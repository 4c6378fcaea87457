"""What an import costs: a whole process that imports one thing and ends."""

from collections.abc import Iterator

from benchmarks.case import Case
from benchmarks.processes import Process


def cases() -> Iterator[Case]:
    contenders = [
        Process(f"import {package}", package, ["-c", f"import {package}"])
        for package in ("fnad", "numpy", "jax", "torch", "autograd")
    ]
    yield Case("whole process", contenders, rounds=15, baseline="import numpy")
