"""The words for changes of values that a function read from outside: with the old and the new value."""

from __future__ import annotations

import reprlib
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from fnad.ir.program import Source
from fnad.records import NamedTuple
from fnad.trace.capture import Array
from fnad.trace.conditions import MISSING
from fnad.trace.contents import CONSTANTS, CONTAINERS, Remembered, elements_of, same, unequal_elements


class Change(NamedTuple):
    """A change of a value since it was read, with its place."""

    what: str
    source: Source | None


def was(old: Any, new: Any) -> str:
    """That a value was this, and is that; of two objects of a class, that it is another one."""
    if isinstance(old, Remembered) or (type(old) is type(new) and not isinstance(new, CONSTANTS)):
        or_content = ", or has another content" if isinstance(old, Remembered) and type(new) in CONTAINERS else ""
        return f"is another {type(new).__name__}{or_content}"
    return f"was {shown(old)}, and is {shown(new)}"


def shown(value: Any) -> str:
    """A value as it is told in a sentence: a constant itself, of anything else the class."""
    if value is MISSING:
        return "not there"
    return reprlib.repr(value) if isinstance(value, CONSTANTS) else f"of class {type(value).__name__}"


def container_changed(value: Any, before: tuple[Any, ...]) -> str:
    """The numbers of elements that a container had and has, or the first element that differs."""
    elements = elements_of(value)
    now = tuple(elements()) if elements and before else ()
    keys = len(now) // 2 if hasattr(type(value), "keys") else 0  # before as many values
    if len(before) != len(now):
        each = 2 if hasattr(type(value), "keys") else 1
        return f": it had {len(before) // each} elements, and has {len(now) // each}"
    i = next((i for i, (old, new) in enumerate(zip(before, now, strict=True)) if not same(new, old)), None)
    if i is None:
        return ""
    if isinstance(value, AbstractSet):
        place = "an element"
    elif keys:
        place = f"key {i}" if i < keys else f"the value of {shown(now[i - keys])}"
    else:
        place = f"element {i}"
    return f", where {place} {was(before[i], now[i])}"


def array_changed(now: Array, before: Array) -> str:
    """The difference of an array from its former value: in dtype or shape, or the first element that differs."""
    for what in ("dtype", "shape"):
        if (old := getattr(before, what)) != (new := getattr(now, what)):
            return f": its {what} was {old}, and is {new}"
    places = unequal_elements(now, before)
    if not len(places):  # another thread writes to it
        return ""
    index = tuple(int(i) for i in np.unravel_index(places[0], now.shape))
    place = {0: "its element", 1: f"element {', '.join(map(str, index))}"}.get(len(index), f"element {index}")
    several = f", the first of {len(places)} that differ" if len(places) > 1 else ""
    old, new = (str(x[index]) if x.dtype.kind in "biufc" else reprlib.repr(x[index].item()) for x in (before, now))
    return f", where {place} was {old}, and is {new}{several}"
