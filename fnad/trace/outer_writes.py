"""Writes of ordinary numbers into arrays outside of a function that is traced once, and runs never, once or many times.

Branches, bodies of loops, what solvers call and custom rules are such functions. What Python writes into an array that
the program does not have is written once, whatever runs: so it is undone, and is an error. Compared are the arrays that
user code read from outside (`fnad.trace.recording`).
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from types import ModuleType
from typing import Any
from weakref import ProxyTypes

from fnad.errors import MutationError
from fnad.trace.recording import Recorder


class OuterReads(Recorder):
    """A recorder of values from outside that leaves out attributes of classes which the block itself makes."""

    def attribute(self, owner: Any, name: str) -> None:
        kind = type(owner)
        place: Any = owner if issubclass(kind, (type, *ProxyTypes)) else kind
        if issubclass(kind, (ModuleType, *ProxyTypes)) or id(owner) in self.kept or id(place) in self.kept:
            super().attribute(owner, name)


@contextmanager
def without_outer_writes(*values: object) -> Generator[OuterReads]:
    """Undo what this block writes into arrays from outside, and raise for it.

    The values are functions, and what they are called with from outside.
    """
    recorder = OuterReads()
    with undone_writes(*values, recorder=recorder) as errors:
        yield recorder
    for error in errors:
        raise error


@contextmanager
def undone_writes(*values: object, recorder: OuterReads | None = None) -> Generator[list[MutationError]]:
    """Undo what this block writes into arrays from outside; the list has an error for each then."""
    recorder, errors = recorder or OuterReads(), list[MutationError]()
    for value in values:
        recorder.follow(value)
    try:
        with recorder.active():
            yield errors
    finally:
        for name, source in recorder.environment.restored_arrays():
            function = "a function" if source is None else source.function
            errors.append(
                MutationError(
                    f"{function} writes into {name}, an array outside of it: it is traced once, whether "
                    "it runs never, once or many times",
                    source=source,
                    remedy="make the array in the function, or part of its operands or of what a loop carries, "
                    "and return it",
                )
            )
