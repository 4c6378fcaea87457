"""The steps of Python around kernels: errors, and the loops and branches that it runs.

On the CPU these are loops and branches with a library call in them; on a device they are branches that kernels cannot
choose themselves. Loops on a device are in `cuda/`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeAlias

from fnad.backends.base import Array
from fnad.errors import GuardFailed
from fnad.kernel.residual_stack import NO_MEMORY
from fnad.lower.loop_ir import LoopProgram

Run: TypeAlias = Callable[[Any], None]
"""A step on the memory of a run: a list of arrays, or what a device has."""

Read: TypeAlias = Callable[[Any], Any]
Reserve: TypeAlias = Callable[[list[Array], int], None]


def fail(loops: LoopProgram, number: int, value: int) -> NoReturn:
    """Raise the error of a run's status: a fault's number, or a negative one of a guard, which found the value."""
    if number < 0:
        raise GuardFailed(-1 - number, value)
    if number == NO_MEMORY:
        raise MemoryError(f"{loops.name}: no memory for the steps that a loop has to keep")
    raise loops.faults[number - 1].error


def in_order(runs: Sequence[Run]) -> Run:
    """The run of all of these."""
    if len(runs) == 1:
        return runs[0]

    def run(arrays: list[Array]) -> None:
        for step in runs:
            step(arrays)

    return run


def choose(index: Read, branches: Sequence[Run]) -> Run:
    """The run of one branch."""
    last = len(branches) - 1

    def run(arrays: list[Array]) -> None:
        branches[min(max(int(index(arrays)), 0), last)](arrays)

    return run


def repeat(extent: Read, counter: Callable[[list[Array], int], None], reverse: bool, body: Run) -> Run:
    """The run of a counted loop."""

    def run(arrays: list[Array]) -> None:
        iterations = range(int(extent(arrays)))
        for iteration in reversed(iterations) if reverse else iterations:
            counter(arrays, iteration)
            body(arrays)

    return run


def repeat_while(
    test: Run, predicate: Read, counter: Callable[[list[Array], int], None], start: Reserve, body: Run, end: Run
) -> Run:
    """The run of a loop that ends when its test says so; `start` is called before each iteration of the body."""

    def run(arrays: list[Array]) -> None:
        iteration = 0
        counter(arrays, iteration)
        test(arrays)
        while predicate(arrays):
            start(arrays, iteration)
            body(arrays)
            iteration += 1
            counter(arrays, iteration)
            test(arrays)
        end(arrays)

    return run
