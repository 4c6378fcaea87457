"""The hooks of loops and comprehensions in converted user code, and of the lists that loops extend."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import repeat
from typing import Any

from fnad.ir.builder import is_tracing
from fnad.trace.loading import load
from fnad.trace.looping import LOOPING

Call = Callable[..., Any]


def each(values: Any, place: tuple[Any, ...] | None = None) -> Any:
    """The values that a loop iterates over."""
    if not is_tracing():
        return values
    loops = LOOPING.loops
    values = values if hasattr(type(values), "__next__") else load(values)
    if place is None or loops is None:
        return values
    return loops.each(values, place, sys._getframe(1))  # pyright: ignore[reportPrivateUsage]


def turns(place: tuple[Any, ...]) -> Any:
    """The steps of a `while` loop."""
    loops = LOOPING.loops
    if loops is None or not is_tracing():
        return repeat(None)
    return loops.turns(place, sys._getframe(1))  # pyright: ignore[reportPrivateUsage]


def listed(items: list[Any], line: int, column: int) -> Any:
    """A list that user code makes, and extends."""
    loops = LOOPING.loops
    if loops is None or not is_tracing():
        return items
    return loops.listed(items, (line, column), sys._getframe(1).f_code)  # pyright: ignore[reportPrivateUsage]


def comprehends(place: tuple[Any, ...], function: Any = sum) -> bool:
    """True if a comprehension is one loop; a generator is if a function takes all of its values at once."""
    loops = LOOPING.loops
    if loops is None or not is_tracing() or not any(function is each for each in TAKING):
        return False
    return loops.comprehends(place, sys._getframe(1).f_code)  # pyright: ignore[reportPrivateUsage]


def comprehended(given: list[Any], value: Call, test: Call, place: tuple[Any, ...]) -> Any:
    """The list of a comprehension over values `given` in a list, by functions for an element and the condition."""
    loops, line, column, frame = LOOPING.loops, *place[:2], sys._getframe()  # pyright: ignore[reportPrivateUsage]
    assert loops is not None
    code = sys._getframe(1).f_code  # pyright: ignore[reportPrivateUsage]
    found = loops.listed([], (line, column), code)
    for item in loops.each(given.pop(), place, frame, code):  # which no step may read
        parts = (item,) if place[-1] is None else tuple(item)
        if test(*parts):
            found.append(value(*parts))
    return found


TAKING = (sum, min, max, list, tuple, sorted)
"""Functions that take all values of a generator at once."""


def leaves(line: int, column: int) -> bool:
    """True if the loop at this place ends at a statement; else a step of it does, which notes that."""
    if not LOOPING.steps:
        return True
    return LOOPING.steps[-1].goes_on((line, column), sys._getframe(1))  # pyright: ignore[reportPrivateUsage]
