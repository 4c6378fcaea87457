"""What an import costs: a whole process that imports one thing and ends."""

from collections.abc import Iterator

from benchmarks.case import Case
from benchmarks.processes import Process

STATEMENTS = {
    "import fnad": "fnad",
    "import fnad; fnad.grad": "fnad",
    **{f"import {package}": package for package in ("numpy", "jax", "torch", "autograd")},
}
"""The transforms of fnad are loaded at first access."""


def cases() -> Iterator[Case]:
    contenders = [Process(statement, package, ["-c", statement]) for statement, package in STATEMENTS.items()]
    yield Case("whole process", contenders, rounds=15, baseline="import numpy")
