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
from typing import Any, NamedTuple

from fnad.errors import TracerEscapeError
from fnad.ir.builder import Builder
from fnad.ir.program import Source
from fnad.trace.bytecode import steps_of
from fnad.trace.contents import is_users
from fnad.trace.handle import Handle

STORES = {"STORE_ATTR", "STORE_GLOBAL", "STORE_DEREF", "STORE_NAME"}
PASSED = (CellType, tuple, MappingProxyType)
"""What only holds what something else has."""


class Holder(NamedTuple):
    """A value, and what to call it in an error."""

    value: Any
    name: str


def check_kept(roots: Iterable[Any], trace: Builder, is_read: Callable[[Any], bool]) -> None:
    """Raise where a value of a trace is stored in something that is reached from the roots.

    `is_read` says of a value whether the function was found to read it.
    """
    reached = list(_reached([Holder(root, _name_of(root)) for root in roots], is_read))
    for holder in reached:
        for part in gc.get_referents(holder.value):
            if isinstance(part, Handle) and part.is_of(trace):
                name = _name_in(holder.value, part)
                what = holder.name if name is None else f"{name!r} of {holder.name}"
                raise TracerEscapeError(
                    f"a traced value of aval {part.aval} was stored in {what}, which is there after the trace",
                    source=_place(name, [holder.value for holder in reached]),
                    remedy="return it and store the result of the call: what is stored under jit has no numbers",
                )


def _reached(pending: list[Holder], is_read: Callable[[Any], bool]) -> Iterator[Holder]:
    seen = set[int]()
    while pending:
        holder = pending.pop()
        if id(holder.value) in seen:
            continue
        seen.add(id(holder.value))
        yield holder
        for part in gc.get_referents(holder.value):
            if type(part) in PASSED or _is_namespace(part, holder.value):
                pending.append(Holder(part, _name_within(holder, part)))
            elif is_read(part) or (part is type(holder.value) and is_users(part)):
                pending.append(Holder(part, _name_of(part)))


def _is_namespace(part: Any, owner: Any) -> bool:
    """Whether it is where an object has its attributes, or a function its globals."""
    if type(part) is not dict or isinstance(owner, ModuleType):
        return False
    return isinstance(owner, type) or part is getattr(
        owner, "__globals__" if isinstance(owner, FunctionType) else "__dict__", None
    )


def _name_within(holder: Holder, part: Any) -> str:
    if type(part) is CellType:
        return "a variable of an enclosing function"
    return "the module" if type(holder.value) is FunctionType else holder.name


def _name_of(value: Any) -> str:
    if isinstance(value, (FunctionType, type)):
        return value.__qualname__
    kind = type(value).__name__
    return f"a {kind}" if type(value).__module__ == "builtins" else f"an object of class {kind}"


def _name_in(holder: Any, value: Handle) -> Any:
    """The name under which a value is stored, None if it has none."""
    names: Any = holder if isinstance(holder, dict) else getattr(holder, "__dict__", {})
    return next((name for name, found in names.items() if found is value), None)


def _place(name: Any, reached: Iterable[Any]) -> Source | None:
    """The line of one of the functions where something is stored under a name; that of the first function else."""
    functions = [value for value in reached if isinstance(value, FunctionType)]
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
