"""np.vectorize on traced values: its function is called on one element after the other, as NumPy does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fnad.errors import DomainError
from fnad.trace.dispatch import call_function
from fnad.trace.handle import Handle
from fnad.trace.operators import python_number
from fnad.trace.wrapping import has_traced
from fnad.upward import UPWARD


def vectorized(self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The results of a function for one element, or the cores of a signature, after the other."""
    given: dict[Any, Any] = dict(enumerate(args)) | kwargs
    places = [place for place in given if place not in self.excluded]
    if not places:
        return UPWARD.callee(self.pyfunc)(*args, **kwargs)
    cores = [()] * len(places) if self.signature is None else self._in_and_out_core_dims[0]
    arrays = [_array(given[place]) for place in places]
    ranks = [array.ndim - len(core) for array, core in zip(arrays, cores, strict=True)]
    shape = np.broadcast_shapes(*[array.shape[:rank] for array, rank in zip(arrays, ranks, strict=True)])
    spread = [np.broadcast_to(a, shape + a.shape[rank:]) for a, rank in zip(arrays, ranks, strict=True)]

    def one(at: tuple[int, ...], element: Callable[..., Any]) -> Any:
        here = given | {p: element(given[p], array[at]) for p, array in zip(places, spread, strict=True)}
        return UPWARD.callee(self.pyfunc)(*[here[i] for i in range(len(args))], **{name: here[name] for name in kwargs})

    kinds = [np.dtype(kind) for kind in self.otypes or ()]  # a string of characters until NumPy 2.3
    if 0 in shape:
        return nothing(shape, kinds)
    results = [one(at, as_it_is if self.signature else as_python_number) for at in np.ndindex(shape)]
    example = results[0] if self.signature or self.otypes else one((0,) * len(shape), as_it_is)
    if not isinstance(example, tuple):
        return gathered(results, shape, kinds[0] if kinds else _array(example).dtype)
    columns, kinds = list(zip(*results, strict=True)), kinds or [_array(part).dtype for part in example]
    return tuple(gathered(column, shape, kind) for column, kind in zip(columns, kinds, strict=True))


def nothing(shape: tuple[int, ...], kinds: Sequence[np.dtype[Any]]) -> Any:
    """The results of no calls."""
    if not kinds:
        raise DomainError("cannot call `vectorize` on size 0 inputs unless `otypes` is set")
    first, *others = [np.zeros(shape, kind) for kind in kinds]
    return (first, *others) if others else first


def gathered(results: Sequence[Any], shape: tuple[int, ...], dtype: Any) -> Any:
    """The results as an array of a dtype."""
    whole = call_function(np.stack, (list(results),), {}) if has_traced(results) else np.array(results)
    return whole.astype(dtype).reshape((*shape, *whole.shape[1:]))


def as_it_is(given: Any, element: Any) -> Any:
    """The arguments that NumPy first calls a function with, to see the dtype of its results."""
    return element


def as_python_number(given: Any, element: Any) -> Any:
    """The arguments that NumPy calls a function with: for an array of numbers a Python number, whatever the dtype."""
    if isinstance(given, np.generic) or (isinstance(given, Handle) and given.is_scalar):
        return element
    if isinstance(element, Handle):
        return python_number(element)
    return element.item() if isinstance(element, np.generic) else element  # which is of an array of objects


def _array(value: Any) -> Any:
    return call_function(np.asarray, (value,), {}) if has_traced(value) else np.asarray(value)
