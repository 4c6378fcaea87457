"""Handles in the arguments of a NumPy call as symbols for its rule, and the result of the rule as handles.

What a rule returns decides what the user gets: a symbol is new memory, a view shares the memory of an operand. A
result without dimensions is a NumPy scalar, unless it is a view.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from types import EllipsisType, NoneType
from typing import Any, TypeAlias, cast

import numpy as np

from fnad.ir.builder import current_builder
from fnad.ir.known import known_value
from fnad.ir.size import is_size
from fnad.ir.symbol import Symbol
from fnad.numpy.operands import strong
from fnad.numpy.views import ArrayView
from fnad.trace.escape import nested_too_deeply
from fnad.trace.handle import TRACED, Elements, Handle
from fnad.upward import UPWARD

Owners: TypeAlias = dict[int, Handle]
"""The handles of a call by the identity of the symbol that stands for each."""

PLAIN = {*map(id, (bool, int, float, complex, str, bytes, NoneType, EllipsisType))}
"""The identities of classes of what calls no user code, and is no handle. A metaclass may have no hash."""

SEQUENCES = (list, tuple, deque)
"""The classes whose elements NumPy takes as those of an array."""

CONTAINERS = (*SEQUENCES, dict)


def unwrap(value: Any, owners: Owners) -> Any:
    """The operands of a rule: symbols in place of handles, in nested lists and slices too."""
    if isinstance(value, Handle):
        return _own(value, owners)
    if id(type(value)) in PLAIN:
        return value
    if type(value) is list or isinstance(value, deque):
        return [unwrap(v, owners) for v in value]
    if isinstance(value, Elements):
        return unwrap(value.elements(), owners)
    if isinstance(value, (list, tuple)) and contains_handle(value):
        return rebuilt(value, [unwrap(v, owners) for v in value])
    if isinstance(value, slice):
        return slice(*[unwrap(v, owners) for v in (value.start, value.stop, value.step)])
    return unwrap(value.tolist(), owners) if isinstance(value, np.ndarray) and value.dtype == object else value


def owners_of(args: Sequence[Any], symbols: Sequence[Symbol]) -> Owners | None:
    """The handles among arguments by their symbols, if these are all there are, and each has its own."""
    handles = [arg for arg in args if id(type(arg)) in TRACED]
    found = dict(zip(map(id, symbols), handles, strict=False))
    return found if len(found) == len(symbols) == len(handles) else None


def _own(handle: Handle, owners: Owners) -> Symbol:
    symbol = handle.symbol
    if owners.setdefault(id(symbol), handle) is not handle:
        symbol = type(symbol)(symbol.builder, symbol.atom, symbol.aval)
        owners[id(symbol)] = handle
    return symbol


def contains_handle(value: Any) -> bool:
    """True if there is a handle in a nested list, or a value that `unwrap` searches in any case."""
    if isinstance(value, (Handle, slice, Elements, deque)):
        return True
    return isinstance(value, (list, tuple)) and any(map(contains_handle, value))


def rebuilt(like: Any, values: list[Any]) -> Any:
    return type(like)(*values) if hasattr(like, "_fields") else type(like)(values)


def wrap(result: Any, owners: Owners) -> Any:
    """The result for the user."""
    if isinstance(result, Symbol):
        return _with_memory(result, is_scalar=not result.aval.shape)
    if isinstance(result, ArrayView):
        return _wrap_view(result, owners)
    if isinstance(result, (list, tuple)):
        return rebuilt(result, [wrap(r, owners) for r in result])
    return result


def _wrap_view(view: ArrayView, owners: Owners) -> Handle:
    owner = owners.get(id(view.base))
    if owner is None:
        handle = _with_memory(view.read())
        return handle.in_order() if view.in_order else handle
    if view.is_same and not owner.is_scalar:
        return owner
    if not (owner.is_scalar or view.is_copy):
        return owner.through(view.steps, view.read())
    symbol = view.read()
    is_number = owner.is_scalar and not (owner.is_weak or view.is_array or symbol.aval.shape)
    handle = UPWARD.handle_of(symbol, is_scalar=True) if is_number else _with_memory(symbol)
    return handle.in_order() if view.in_order else handle


def _with_memory(symbol: Symbol, *, is_scalar: bool = False) -> Handle:
    """A handle on memory of the trace under way, which may write into it: a copy of a value from around it too."""
    return UPWARD.fresh_handle_of(strong(current_builder().lift(symbol)), is_scalar)


def has_traced(value: Any) -> bool:
    """True if there is a traced value in nested lists, tuples, deques and dicts."""
    if isinstance(value, (Handle, Elements)):
        return True
    if isinstance(value, dict):
        value = dict.values(value)  # of the class, because a subclass may be under construction
    elif not isinstance(value, SEQUENCES):
        return is_size(value)
    try:
        for part in value:
            if has_traced(part):
                return True
    except RecursionError:
        if is_deep(value):
            raise nested_too_deeply("container") from None
        raise
    return False


def is_deep(values: Iterable[Any]) -> bool:
    """True for containers of hundreds of levels."""
    level = list(values)
    for _ in range(500):
        parts = (part.values() if isinstance(part, dict) else part for part in level if isinstance(part, CONTAINERS))
        level = list({id(each): each for part in parts for each in part}.values())
    return bool(level)


def is_known(value: Any) -> bool:
    """True if the traced values in nested lists, tuples and dicts depend on no input."""
    if isinstance(value, CONTAINERS):
        return all(map(is_known, dict.values(value) if isinstance(value, dict) else value))
    return known_value(value.symbol) is not None if isinstance(value, Handle) else not is_size(value)


def as_arrays(value: Any) -> Any:
    """Nested lists, tuples and dicts in which ordinary arrays replace traced values that are known."""
    if isinstance(value, dict):
        return {name: as_arrays(v) for name, v in value.items()}
    if isinstance(value, SEQUENCES):
        return rebuilt(value, list(map(as_arrays, value)))
    if not isinstance(value, Handle):
        return value
    array = np.asarray(value)
    return array.item() if value.is_weak else array[()]


def handles_in(values: Sequence[Any]) -> Iterator[Handle]:
    """The traced values in nested lists and tuples."""
    for value in values:
        part = value.elements() if isinstance(value, Elements) else value
        if isinstance(part, Handle):
            yield part
        elif isinstance(part, SEQUENCES):
            yield from handles_in(cast("Sequence[Any]", part))


UPWARD.has_traced = has_traced
