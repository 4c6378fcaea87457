"""The errors for a list of traced values, or None, that is used as if it were an array.

A list of numbers is a container of numbers, so a function that is given one receives it. In NumPy's functions it acts
as an array, with Python's operators it does not.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterable, Iterator
from typing import Any, cast

from fnad.errors import ArgumentTypeError, FnadError, MissingAttributeError
from fnad.trace.libraries import is_library
from fnad.trace.source import places_passed, source_of_error
from fnad.trace.tracer import Tracer

WORDS = re.compile(r"'list'|'tuple'|(list|tuple) indices|concatenate (list|tuple)|multiply sequence|scalar index")
"""The words of Python's messages for a list or tuple in place of an array."""


def misused(error: Exception) -> FnadError | None:
    """The error for a list of traced values, or None, that the user's line took for an array."""
    if isinstance(error, FnadError) or not isinstance(error, (TypeError, AttributeError)):
        return None
    kind = MissingAttributeError if isinstance(error, AttributeError) else ArgumentTypeError
    source = source_of_error(error)
    for name, value in _read_at(error):
        if value is None and "NoneType" in str(error):
            what, remedy = f"{name} is None", "give an array or a number in its place, or ask for None first"
        elif WORDS.search(str(error)) and _is_of_tracers(value):
            like = type(value).__name__
            what = f"{name} is a {like}, which is a tree of numbers and not an array"
            remedy = f"make it an array: np.array({name}), in the function or where it is called"
        else:
            continue
        return kind(f"{error}: {what}", source=source, remedy=remedy)
    return None


def _read_at(error: Exception) -> Iterator[tuple[str, Any]]:
    """The names in the user's line that the exception came from, with their values."""
    places = (place for place in places_passed(error) if not is_library(place.tb_frame.f_code.co_filename))
    for place in [*places][-1:]:
        text = linecache.getline(place.tb_frame.f_code.co_filename, place.tb_lineno)
        yield from ((name, x) for name, x in place.tb_frame.f_locals.items() if re.search(rf"\b{name}\b", text))


def _is_of_tracers(value: Any) -> bool:
    """True if a list or tuple, or those in it, have traced values alone."""
    if not isinstance(value, (list, tuple)):
        return False
    items = cast("Iterable[Any]", value)
    return bool(value) and all(isinstance(item, Tracer) or _is_of_tracers(item) for item in items)
