"""Loops and branches that Python runs: on the CPU those with a library call in them, on a device all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from fnad.backends.base import Array

Run: TypeAlias = Callable[[list[Array]], None]
Read: TypeAlias = Callable[[list[Array]], Any]
Reserve: TypeAlias = Callable[[list[Array], int], None]


def in_order(runs: Sequence[Run]) -> Run:
    """The run of all of these."""

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
