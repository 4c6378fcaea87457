"""Arrays of objects that traced values are among: `np.array([t, None], dtype=object)`, `np.full(3, t, object)`.

They are NumPy's own, with traced numbers as their elements, which NumPy computes with by Python's operators. NumPy
cannot make them of lists, since it asks every element for an array first, so that is done here.
"""

from __future__ import annotations

from itertools import takewhile
from typing import Any

import numpy as np

from fnad.ir.types import Shape
from fnad.trace.dispatch import call_function
from fnad.trace.handle import Handle
from fnad.trace.selection import call_traced
from fnad.upward import UPWARD

TAKING = (np.array, np.asarray, np.asanyarray)
"""Functions that make an array of elements."""

MAKING = {**dict.fromkeys((*TAKING, np.empty, np.zeros, np.ones), 1), np.full: 2}
"""Functions that make an array, and where their dtype stands."""


def call_or_make(function: Any, args: Any, kwargs: Any) -> Any:
    """The result of a NumPy function on traced values, also where that is an array of objects."""
    if function in MAKING and asks_for_objects(args, kwargs, MAKING[function]):
        return _made(function, *args, **kwargs)
    return call_traced(function, args, kwargs)


UPWARD.traced = call_or_make


def asks_for_objects(args: Any, kwargs: Any, place: int) -> bool:
    """True if the dtype, at this place among arguments or by name, is that of objects."""
    dtype = kwargs.get("dtype", args[place] if len(args) > place else None)
    if isinstance(dtype, str):
        return dtype in ("O", "|O", "object", "object_")
    return dtype is object or (isinstance(dtype, np.dtype) and dtype == np.dtype(object))


def _made(function: Any, given: Any, *args: Any, **options: Any) -> Any:
    if function in TAKING:
        return object_array(given)
    if function is not np.full:
        return function(given, *args, **options).view(Objects)
    array = np.empty(given, object)
    array.fill(options.get("fill_value", args[0] if args else None))
    return array.view(Objects)


class Objects(np.ndarray):
    """An array of objects that takes traced values in lists, and makes a traced array of them."""

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(index, object_array(value) if UPWARD.has_traced(value) else value)

    def astype(self, dtype: Any, *args: Any, **options: Any) -> Any:
        if np.dtype(dtype) == object or self.dtype != object:
            return super().astype(dtype, *args, **options)
        return call_function(np.array, (self,), {}).astype(dtype)


def in_place(ufunc: np.ufunc, inputs: Any, options: dict[str, Any]) -> Any:
    """The result of a ufunc written into an array of objects, by Python's operators on each element."""
    return ufunc(*[object_array(x) if isinstance(x, Handle) else x for x in inputs], **options)


def object_array(values: Any) -> Objects:
    """The array of objects that nested lists and arrays are, traced ones among them."""
    shape = _shape(values)
    array = np.empty(shape, object)
    for place in np.ndindex(shape):
        element = values
        for i in place:
            element = element[i]
        array[place] = element
    return array.view(Objects)


def _shape(value: Any) -> Shape:
    """The shape as far as nested lists agree on it."""
    if isinstance(value, Handle):
        return value.aval.shape
    if isinstance(value, np.ndarray):
        return value.shape
    if not isinstance(value, (list, tuple)):
        return ()
    agreed = takewhile(lambda sizes: len(set(sizes)) == 1, zip(*map(_shape, value), strict=False))
    return (len(value), *[sizes[0] for sizes in agreed])
