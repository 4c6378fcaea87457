"""Traced values that are stored where they outlive their trace: `self.w = t`, `TABLE["a"] = t`, a global variable.

Compiled code stores nothing there, so that whoever reads it later would find a value of a trace that is over. After the
trace, what the function was found to read is looked through for such values, as far as it is reached from the function
itself: what it made anew is not.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Container, Iterable, Iterator
from itertools import repeat
from types import CellType, FunctionType, MappingProxyType, ModuleType
from typing import Any

from fnad.codes import original_of, with_inner
from fnad.errors import TracerEscapeError
from fnad.ir.builder import Builder, made_at
from fnad.ir.program import Source
from fnad.records import NamedTuple
from fnad.trace.contents import is_users
from fnad.trace.handle import Handle
from fnad.trace.source import line_naming

PLAIN = {*map(id, (bool, int, float, complex, str, bytes, type(None)))}
LEADING = {*map(id, (CellType, tuple, MappingProxyType, dict))}
"""The identities of classes of containers of values that something else has; a dictionary may be one."""


class Holder(NamedTuple):
    """An object with traced values among its parts, and the owner if it only holds an owner's values."""

    value: Any
    parts: list[Any]
    owner: Any


def check_kept(roots: Iterable[Any], trace: Builder, read: Container[int]) -> None:
    """Raise where a value of a trace, or of one within it, is stored in something that is reached from the roots.

    `read` has the identities of what the function was found to read.
    """
    functions: list[FunctionType] = []
    holders = _holders(roots, read, functions)
    for holder in holders:
        for part in holder.parts:
            if issubclass(type(part), Handle) and part.is_within(trace):  # a weak proxy may have no class
                name = _name_in(holder.value, part)
                what = _name_of(holder) if name is None else f"{name!r} of {_name_of(holder)}"
                deque(holders, 0)  # to find the other functions
                raise TracerEscapeError(
                    f"a traced value of aval {part.aval} was stored in {what}, which is there after the trace",
                    source=(made_at(part.symbol) if name is None else None) or _place(name, functions),
                    remedy="return it and store the result of the call: what is stored under jit has no numbers",
                )


def _holders(roots: Iterable[Any], read: Container[int], functions: list[FunctionType]) -> Iterator[Holder]:
    """The objects with traced values, of all that is reached; functions that are reached are added to a list.

    A namespace may have thousands of names: of most it takes a look at the identity, and no call. Nothing is reached
    of what has numbers and texts alone, of which there may be many.
    """
    pending, seen = [(root, root) for root in roots], set[int]()
    while pending:
        value, owner = pending.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        own = type(value)
        if own is FunctionType:
            functions.append(value)
        parts = gc.get_referents(value)
        classes = [*map(type, parts)]
        kinds = dict(zip(map(id, classes), classes, strict=True))
        if kinds.keys() <= PLAIN:
            continue
        for part in parts:
            if id(type(part)) in LEADING and (type(part) is not dict or _is_namespace(part, value)):
                pending.append((part, owner))
            elif id(part) in read or (part is own and is_users(own)):
                pending.append((part, part))
        if any(map(issubclass, kinds.values(), repeat(Handle))):
            yield Holder(value, parts, owner)


def _is_namespace(part: dict[Any, Any], owner: Any) -> bool:
    """True if it is where an object has its attributes, or a function its globals."""
    if isinstance(owner, ModuleType):
        return False
    return isinstance(owner, type) or part is getattr(
        owner, "__globals__" if isinstance(owner, FunctionType) else "__dict__", None
    )


def _name_of(holder: Holder) -> str:
    value, owner = holder.value, holder.owner
    if type(value) is CellType:
        return "a variable of an enclosing function"
    if isinstance(owner, FunctionType):
        return "the module"
    if isinstance(owner, type):
        return owner.__qualname__
    kind = type(owner).__name__
    return f"a {kind}" if type(owner).__module__ == "builtins" else f"an object of class {kind}"


def _name_in(holder: Any, value: Handle) -> Any:
    """The name under which a value is stored, None if it has none."""
    names: Any = holder if isinstance(holder, dict) else getattr(holder, "__dict__", {})
    return next((name for name, found in names.items() if found is value), None)


def _place(name: Any, functions: Iterable[FunctionType]) -> Source | None:
    """The line of one of the functions where something is stored under a name; that of the first function else."""
    own = sorted(functions, key=lambda function: function.__name__.startswith("__"))  # `__annotate__` is the last one
    codes = [code for function in own for code in with_inner(original_of(function.__code__))]
    for code in codes:
        line = line_naming(code, name, is_stored=True)
        if line is not None:
            return Source(code.co_filename, line, code.co_name)
    return Source(codes[0].co_filename, codes[0].co_firstlineno, codes[0].co_name) if codes else None
