"""From a NumPy call on handles to its rule on symbols, and back.

What a rule returns decides what the user gets: a symbol is new memory, a view shares the memory of an operand. A
result without dimensions is a NumPy scalar, unless it is a view.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from fnad.errors import FnadError, UnsupportedFunctionError, UsedAfterTraceError
from fnad.ir.builder import current_builder, is_tracing
from fnad.ir.symbol import Symbol
from fnad.numpy.operands import PYTHON_DTYPES, WeakSymbol
from fnad.numpy.registry import RULES
from fnad.numpy.views import View
from fnad.trace.handle import Handle
from fnad.trace.source import current_source

Owners: TypeAlias = dict[int, Handle]
"""The handles of a call by the identity of the symbol that stands for each."""

NUMBERS = (int, float, complex, np.generic, np.ndarray)


def call(rule: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Call a rule on what the user gave, with the user's line noted."""
    owners: Owners = {}
    builder = tracing_builder()
    builder.source = current_source()
    try:
        operands = [unwrap(arg, owners) for arg in args]
        options = {name: unwrap(arg, owners) for name, arg in kwargs.items()}
        return wrap(rule(*operands, **options), owners)
    except FnadError as error:
        raise located(error) from None


def tracing_builder() -> Any:
    """Return the builder of the trace under way; raise `UsedAfterTraceError` with the user's line where there is none."""
    if is_tracing():
        return current_builder()
    raise UsedAfterTraceError(
        "a traced value was used outside its trace",
        source=current_source(),
        remedy="return it from the traced function; do not keep it in a list, an attribute or a cache",
    )


def located(error: FnadError) -> FnadError:
    """Return the error with the user's line in it."""
    what, _, remedy = str(error).partition("\n")
    if "  at " in remedy:
        return error
    return type(error)(what, source=current_source(), remedy=remedy.strip() or None)


# ---- handles to symbols and back -------------------------------------------------------------------------------------


def unwrap(value: Any, owners: Owners) -> Any:
    """Return what a rule sees: symbols in place of handles, in nested lists and slices too."""
    if isinstance(value, Handle):
        return _own(value, owners)
    if isinstance(value, (list, tuple)):
        return _rebuilt(value, [unwrap(v, owners) for v in value]) if contains_handle(value) else value
    if isinstance(value, slice):
        return slice(*[unwrap(v, owners) for v in (value.start, value.stop, value.step)])
    return value


def _own(handle: Handle, owners: Owners) -> Symbol:
    symbol = handle.symbol
    if owners.setdefault(id(symbol), handle) is not handle:
        symbol = type(symbol)(symbol.builder, symbol.atom, symbol.aval)
        owners[id(symbol)] = handle
    return symbol


def contains_handle(value: Any) -> bool:
    """Say whether there is a handle in a nested list."""
    if isinstance(value, (list, tuple)):
        return any(map(contains_handle, value))
    return isinstance(value, (Handle, slice))


def _rebuilt(like: Any, values: list[Any]) -> Any:
    return type(like)(*values) if hasattr(like, "_fields") else type(like)(values)


def wrap(result: Any, owners: Owners) -> Any:
    """Return what the user gets."""
    if isinstance(result, Symbol):
        return _make(owners)(result, is_scalar=not result.aval.shape)
    if isinstance(result, View):
        owner = owners.get(id(result.base))
        return owner.view(result.steps) if owner is not None else _make(owners)(result.read())
    if isinstance(result, (list, tuple)):
        return _rebuilt(result, [wrap(r, owners) for r in result])
    return result


def _make(owners: Owners) -> type[Handle]:
    return type(next(iter(owners.values())))


# ---- operators and NumPy's two protocols -----------------------------------------------------------------------------


def operate(ufunc: np.ufunc, *operands: Any) -> Any:
    """Return what a Python operator makes of its operands; on Python numbers alone, a Python number."""
    for operand in operands:
        if not isinstance(operand, (Handle, *NUMBERS, list, tuple)):
            return NotImplemented
    result = call(RULES[ufunc], operands, {})
    return weakened(result) if all(map(is_python_like, operands)) else result


def is_python_like(value: Any) -> bool:
    """Say whether a value is a Python number, or stands for one."""
    if isinstance(value, Handle):
        return value.is_weak
    return isinstance(value, (int, float, complex)) and not isinstance(value, np.generic)


def weakened(handle: Handle) -> Handle:
    """Return the handle as standing for a Python number."""
    symbol = handle.symbol
    return type(handle)(WeakSymbol(symbol.builder, symbol.atom, symbol.aval), is_scalar=True)


def call_function(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Return what an array function makes of its arguments."""
    rule = RULES.get(function)
    if rule is None:
        raise no_rule(f"{function.__module__}.{function.__qualname__}")
    return call(rule, args, kwargs)


def no_rule(name: str) -> UnsupportedFunctionError:
    """Return the error for a function without a rule."""
    return UnsupportedFunctionError(
        f"{name} has no rule for traced values",
        source=current_source(),
        remedy=f"compose it from functions that have one, or add a rule: @fnad.numpy.implements({name})",
    )
