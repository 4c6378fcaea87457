"""The items of a `for` loop, by the number of the step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from fnad.ir.symbol import Symbol
from fnad.numpy.operands import as_symbol, as_weak
from fnad.trace.handle import Aside, Handle
from fnad.trace.hooks import item
from fnad.trace.listed import Listed, ListIterator
from fnad.trace.ranges import Counted
from fnad.trace.tracer import Tracer

ITERATORS = {ListIterator, *(type(iter(each)) for each in ([], (), range(1), np.zeros(1)))}
"""The classes of iterators that say what they iterate over."""


class Items(NamedTuple):
    """The largest number of items, if it is known, and the function from the number of a step to its item.

    They are items of these `lists` and ranges, whose length depends on data.
    """

    most: int | None
    at: Callable[[Any], Any]
    lists: tuple[Listed | Counted, ...] = ()

    def have(self, number: Any) -> bool:
        """True if there is an item of this number."""
        return all(each.has(number) for each in self.lists)


TURNS = Items(None, lambda _: None)
"""Those of a `while` loop."""


def items_of(values: Any) -> Items | None:
    """The items of a range, an array, a list of traced numbers, or of `zip` and `enumerate` of these; else None."""
    if type(values) is Counted:
        return Items(None, values.element, (values,))
    if isinstance(values, range):
        return Items(len(values), lambda k: _of_range(k, values))
    if isinstance(values, np.ndarray) and not isinstance(values, Aside) and values.ndim:
        return Items(len(values), lambda k: item(values, k))
    if type(values) is Listed:
        return Items(values.room, values.element, (values,)) if values.is_spread else items_of(values.data)
    if type(values) in (list, tuple):
        values = cast("Sequence[Any]", values)
        rows = _stacked(values)
        return None if rows is None else Items(len(values), lambda k: as_number(rows[k].symbol, values[0].is_weak))
    if type(values) is zip:
        parts = [_of_iterator(each) for each in _reduced(values)]
        found = [part for part in parts if part is not None]
        return _together(found) if found and len(found) == len(parts) else None
    if type(values) is enumerate:
        iterator, start = _reduced(values)
        part = _of_iterator(iterator)
        return None if part is None else part._replace(at=lambda k: (k + start, part.at(k)))
    return None


def _reduced(iterator: Any) -> tuple[Any, ...]:
    """The arguments that make an iterator again."""
    found: Any = iterator.__reduce__()
    return found[1]


def _together(parts: Sequence[Items]) -> Items:
    lists = tuple(each for part in parts for each in part.lists)
    known = [part.most for part in parts if part.most is not None]
    fixed = [part.most for part in parts if part.most is not None and not part.lists]
    bounds = (Counted(0, min(fixed), 1),) if lists and fixed else ()
    return Items(min(known, default=None), lambda k: tuple(part.at(k) for part in parts), (*bounds, *lists))


def _of_iterator(iterator: Any) -> Items | None:
    if type(iterator) in (zip, enumerate):
        return items_of(iterator)
    if type(iterator) is map:  # as that of a traced array
        function, *rest = _reduced(iterator)
        owner = getattr(function, "__self__", None)
        is_new = len(rest) == 1 and _sequence_of(rest[0]) is not None
        return items_of(owner) if is_new and isinstance(owner, Handle) else None
    return items_of(_sequence_of(iterator))


def _sequence_of(iterator: Any) -> Any:
    """The sequence that a new iterator goes over, or None."""
    reduced: Any = iterator.__reduce__() if type(iterator) in ITERATORS else ()
    is_new = len(reduced) > 1 and reduced[0] is iter and not (len(reduced) > 2 and reduced[2])
    return reduced[1][0] if is_new else None


def _of_range(k: Any, values: range) -> Any:
    scaled = k if values.step == 1 else k * values.step
    return scaled if values.start == 0 else scaled + values.start


def _stacked(values: Sequence[Any]) -> Any:
    """Traced numbers of one type as an array."""
    kinds = {(value.aval, value.is_weak) for value in values if isinstance(value, Handle) and value.is_scalar}
    is_alike = len(kinds) == 1 and all(isinstance(value, Handle) and value.is_scalar for value in values)
    return Tracer(as_symbol([value.symbol for value in values])) if is_alike else None


def as_number(symbol: Symbol, weak: bool) -> Tracer:
    """A traced number; `weak` marks a Python number."""
    return Tracer(as_weak(symbol) if weak else symbol, is_scalar=True)
