"""Traced values that are stored where they outlive their trace: `self.w = t`, `TABLE["a"] = t`, a global variable.

Compiled code stores nothing there, so that whoever reads it later would find a value of a trace that is over. After the
trace, what the function was found to read is looked through for such values, as far as it is reached from the function
itself: what it made anew is not.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from types import CellType, CodeType, FunctionType, MappingProxyType, ModuleType
from typing import Any

from fnad.errors import TracerEscapeError
from fnad.ir.builder import Builder
from fnad.ir.program import Source
from fnad.records import NamedTuple
from fnad.trace.bytecode import steps_of
from fnad.trace.contents import is_users
from fnad.trace.handle import Handle

STORES = {"STORE_ATTR", "STORE_GLOBAL", "STORE_DEREF", "STORE_NAME"}
PLAIN = {bool, int, float, complex, str, bytes, type(None)}
PASSED = (CellType, tuple, MappingProxyType)
"""What only holds what something else has."""


class Reached(NamedTuple):
    """A value that is reached, what it refers to, and whose it is where it only holds what something else has."""

    value: Any
    parts: list[Any]
    owner: Any


def check_kept(roots: Iterable[Any], trace: Builder, is_read: Callable[[Any], bool]) -> None:
    """Raise where a value of a trace is stored in something that is reached from the roots.

    `is_read` says of a value whether the function was found to read it.
    """
    reached, functions = _reached([(root, root) for root in roots], is_read), list[FunctionType]()
    for holder in reached:
        functions += _functions([holder])
        for part in holder.parts:
            if issubclass(type(part), Handle) and part.is_of(trace):  # a weak proxy may have no class
                name = _name_in(holder.value, part)
                what = _name_of(holder) if name is None else f"{name!r} of {_name_of(holder)}"
                raise TracerEscapeError(
                    f"a traced value of aval {part.aval} was stored in {what}, which is there after the trace",
                    source=_place(name, [*functions, *_functions(reached)]),
                    remedy="return it and store the result of the call: what is stored under jit has no numbers",
                )


def _reached(pending: list[tuple[Any, Any]], is_read: Callable[[Any], bool]) -> Iterator[Reached]:
    seen = set[int]()
    while pending:
        value, owner = pending.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        parts = _parts(value)
        for part in parts:
            if type(part) in PASSED or _is_namespace(part, value):
                pending.append((part, owner))
            elif is_read(part) or (part is type(value) and is_users(part)):
                pending.append((part, part))
        yield Reached(value, parts, owner)


def _parts(value: Any) -> list[Any]:
    """What a value refers to; nothing where that is numbers and texts alone, of which there may be many."""
    parts = gc.get_referents(value)
    return [] if PLAIN.issuperset(map(type, parts)) else parts


def _is_namespace(part: Any, owner: Any) -> bool:
    """Whether it is where an object has its attributes, or a function its globals."""
    if type(part) is not dict or isinstance(owner, ModuleType):
        return False
    return isinstance(owner, type) or part is getattr(
        owner, "__globals__" if isinstance(owner, FunctionType) else "__dict__", None
    )


def _name_of(holder: Reached) -> str:
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


def _functions(reached: Iterable[Reached]) -> Iterator[FunctionType]:
    return (holder.value for holder in reached if isinstance(holder.value, FunctionType))


def _place(name: Any, functions: Iterable[FunctionType]) -> Source | None:
    """The line of one of the functions where something is stored under a name; that of the first function else."""
    codes = [code for function in functions for code in _codes(function.__code__)]
    for code in codes:
        steps = steps_of(code)
        for before, step in pairwise(steps):
            is_element = step.name == "STORE_SUBSCR" and before.name == "LOAD_CONST" and before.value == name
            if is_element or (step.name in STORES and step.value == name):
                return Source(code.co_filename, step.line, code.co_name)
    return Source(codes[0].co_filename, codes[0].co_firstlineno, codes[0].co_name) if codes else None


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)
