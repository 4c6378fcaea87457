"""Static and donated arguments of `jit`: which they are, and when two static ones are the same."""

from __future__ import annotations

import dataclasses
import inspect
import operator
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from fnad.api.staging.leaves import Function, function_name, type_name
from fnad.errors import StaticArgumentError
from fnad.ir.content import static_key as constant_key
from fnad.trace.escape import nested_too_deeply

Places: TypeAlias = "int | str | Sequence[int | str]"

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Statics(NamedTuple):
    """The positions of static arguments, and their names when given by keyword."""

    positions: frozenset[int] = frozenset()
    names: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.positions or self.names)


def statics_of(f: Function, argnums: Any, argnames: Any) -> Statics:
    """The static arguments of a function; one that can be given either way is static both ways.

    Raises `StaticArgumentError` where there is no such argument.
    """
    numbers = _several(argnums, "static_argnums", "__index__")
    names = _several(argnames, "static_argnames", "isidentifier")
    if not numbers and not names:
        return Statics()
    parameters = _parameters(f)
    if parameters is None:
        return Statics(frozenset(map(operator.index, numbers)), frozenset(names))
    positional = [p.name for p in parameters if p.kind in POSITIONAL]
    named = [p.name for p in parameters if p.kind in NAMED]
    kinds = {p.kind for p in parameters}
    open_ended = inspect.Parameter.VAR_POSITIONAL in kinds
    positions = [_position(f, number, len(positional), "static_argnums", open_ended=open_ended) for number in numbers]
    for name in names:
        if name not in named and inspect.Parameter.VAR_KEYWORD not in kinds:
            raise StaticArgumentError.here(
                f"static_argnames names {name!r}, which is no parameter of {function_name(f)}",
                remedy=f"it has {', '.join(named) or 'none'}",
            )
    return Statics(
        frozenset([*positions, *[positional.index(name) for name in names if name in positional]]),
        frozenset([*names, *[positional[p] for p in positions if p < len(positional) and positional[p] in named]]),
    )


def donated_of(f: Function, argnums: Any) -> frozenset[int]:
    """The positions of the donated arguments; raise `StaticArgumentError` where there is no such argument."""
    numbers = _several(argnums, "donate_argnums", "__index__")
    parameters = _parameters(f) if numbers else None
    if parameters is None:
        return frozenset(map(operator.index, numbers))
    count = sum(p.kind in POSITIONAL for p in parameters)
    open_ended = any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters)
    return frozenset(_position(f, number, count, "donate_argnums", open_ended=open_ended) for number in numbers)


def _several(given: Any, option: str, method: str) -> tuple[Any, ...]:
    if type(given) is tuple and not given:
        return ()
    several = cast("tuple[Any, ...]", tuple(given) if isinstance(given, (tuple, list)) else (given,))
    if not all(hasattr(item, method) for item in several) or any(isinstance(item, np.ndarray) for item in several):
        kind = "an int or a tuple of ints" if option.endswith("argnums") else "a string or a tuple of strings"
        if any(isinstance(item, (np.ndarray, dict, float)) for item in several):
            kind += "; jit returns a function, which takes the arguments of f: fnad.jit(f)(x)"
        raise StaticArgumentError.here(f"{option} is {given!r}", remedy=f"give {kind}")
    return several


def _parameters(f: Function) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        return None


def _position(f: Function, number: Any, count: int, option: str, *, open_ended: bool) -> int:
    position = operator.index(number)
    if -count <= position < count or (open_ended and position >= 0):
        return position % count if position < 0 else position
    raise StaticArgumentError.here(
        f"{option} names argument {position} of {function_name(f)}, which takes {count}",
        remedy=f"correct {option}; the first argument is 0",
    )


# ---- when two are the same -------------------------------------------------------------------------------------------


def static_key(value: Any, name: str) -> Hashable:
    """The key of a static argument: equal for equal values of the same type, and for floats of the same bits.

    Raises `StaticArgumentError` for what is not hashable.
    """
    try:
        hash(value)
        found = tuple(_key(value))
        hash(found)  # a class may have no hash, where its objects have one
    except TypeError:
        raise StaticArgumentError.here(
            f"the static argument {name} is of type {type_name(value)}, which is not hashable",
            remedy="give a tuple for a list, or an object that is hashable; arrays cannot be static",
        ) from None
    except RecursionError as error:
        raise nested_too_deeply("static argument") from error
    return found


def _key(value: Any) -> Iterator[Hashable]:
    """The types and values in a value from the outside to the inside, with the sizes of containers."""
    pending = [value]
    while pending:
        found: Any = pending.pop()
        kind = type(found)
        parts: Sequence[Any] = ()
        if isinstance(found, tuple):
            parts = cast("tuple[Any, ...]", found)
        elif dataclasses.is_dataclass(found) and not isinstance(found, type):
            parts = [getattr(found, field.name) for field in dataclasses.fields(found)]
        else:
            yield kind, _key_of_one(found)
            continue
        yield kind, len(parts)
        pending.extend(reversed(parts))


def _key_of_one(value: Any) -> Hashable:
    if isinstance(value, frozenset):
        return frozenset(tuple(_key(element)) for element in cast("frozenset[Any]", value))
    if isinstance(value, np.generic):
        return value.dtype, value.tobytes()
    return constant_key(value) if isinstance(value, (float, complex)) else value
