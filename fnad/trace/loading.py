"""Values that user code loads from outside, from an object or a container: arrays, in a second run, as traced ones."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from fnad.codes import original_of
from fnad.ir.builder import current_builder
from fnad.ir.types import NAMES
from fnad.numpy.namespace import MAKING, made_traced
from fnad.numpy.operands import as_symbol
from fnad.numpy.views import Broadcast
from fnad.trace import escape, guards
from fnad.trace.capture import READ
from fnad.trace.conversion import own_function
from fnad.trace.handle import Handle
from fnad.trace.libraries import is_users
from fnad.trace.parts import CONTAINERS, PARTS
from fnad.trace.user_methods import METHODS
from fnad.trace.wrapping import handles_in, has_traced, is_known
from fnad.trace.writes import kept, replayed
from fnad.upward import UPWARD

OTHERS = {"__getitem__", "__len__", "__enter__"}
"""Methods of classes that do more than iterate, such as those of files and `x.flat`."""

PLAIN = {*map(id, (bool, int, float, complex, str, bytes, type(None), np.float64, ModuleType, type, np.ufunc))}

LEADING = (np.ndarray, Handle, memoryview, *CONTAINERS, *PARTS)
"""Classes of what does not lead to arrays, and of what may."""


def load(value: Any) -> Any:
    """A value that user code reads from outside, or from an object or a container."""
    kind = type(value)
    if id(kind) in PLAIN:
        return value
    if issubclass(kind, LEADING):
        for loaded in READ.values:
            loaded[id(value)] = value
    return read(value)


def read(value: Any) -> Any:
    """A value that user code reads: in a second run a traced value for an ordinary array (Note [A second run])."""
    kind = type(value)
    if kind is FunctionType:
        return own_function(value)
    if id(kind) not in METHODS.kinds and not issubclass(kind, Handle):
        if kind is CodeType:
            return original_of(value)
        if hasattr(kind, "__next__") and not is_users(kind):
            return replayed(value) if OTHERS.isdisjoint(dir(kind)) else kept(value)
        METHODS.enter_class(kind)
    return traced(value) if kind is np.ndarray and MAKING.innermost is not None and is_native(value) else value


def traced(array: Any) -> Any:
    """The traced value for an array from outside, which cannot be written to."""
    attempt, builder = MAKING.innermost, current_builder()
    key = id(array), id(builder)
    if attempt is not None and key in attempt.given:
        return attempt.given[key][1]
    symbol = as_symbol(array)
    made = UPWARD.handle_of(symbol).through((Broadcast(symbol.shape),), symbol)
    if attempt is not None:
        attempt.given[key] = array, made, array.copy()
    return made


def ordinary(value: Any) -> Any:
    """The array that was read as a traced value; any other value itself."""
    attempt = MAKING.innermost
    if attempt is None or not isinstance(value, Handle):
        return value
    return next((array for array, made, _ in attempt.given.values() if made is value), value)


def decided(index: Any) -> Any:
    """An index whose traced values are replaced by the values at hand, which guard the path."""
    if isinstance(index, tuple):
        return tuple(map(decided, index))
    if not isinstance(index, Handle):
        return index
    value = guards.needed(index.symbol)
    if value is None:
        raise escape.index_asked(index.aval)
    return value


def is_native(array: Any) -> bool:
    """True if an array has a dtype of fnad."""
    return array.dtype.newbyteorder("=") in NAMES


def filling(fill: Any) -> Callable[..., Any]:
    """`x.fill` of an ordinary array, which would convert a traced value to a number."""

    def call(value: Any) -> None:
        if has_traced(value):
            raise escape.stored(next(handles_in([value])).aval)
        fill(ordinary(value))

    return call


def drawing(draw: Any) -> Callable[..., Any]:
    """A method of a generator of NumPy, which draws with ordinary numbers; `shuffle` moves traced rows by indices.

    NumPy shuffles what is not its own array by exchanging elements, which are views if they are rows.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        first: Any = args[0] if args and draw.__name__ == "shuffle" else None
        if issubclass(type(first), Handle) and np.ndim(first):
            axis = kwargs.get("axis", (*args, 0)[1]) % first.ndim
            order = np.expand_dims(np.arange(first.shape[axis]), [i for i in range(first.ndim) if i != axis])
            draw(order, *args[1:], **kwargs)
            first[...] = np.take(first, order.ravel(), axis)
            return None
        if draw.__name__ != "shuffle" and has_traced((args, kwargs)) and not is_known((args, kwargs)):
            number = next(handles_in([*args, *kwargs.values()]))
            guards.part_rows(number.symbol)
            raise escape.drawn(number.aval)
        return made_traced(draw(*args, **kwargs), (*args, *kwargs.values()))

    return call if MAKING.innermost is None else of_ordinary(call)


def of_ordinary(function: Any) -> Callable[..., Any]:
    """A function in C in a second run: it is given ordinary arrays in the place of what is read for them."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*map(ordinary, args), **{name: ordinary(value) for name, value in kwargs.items()})

    return call
