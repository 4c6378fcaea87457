"""Traced values that are stored where they outlive their trace: `self.w = t`, `TABLE["a"] = t`, a global variable.

Compiled code stores nothing there, and code that reads it later would find a value of a trace that is over. After the
trace the objects that the function read from outside are searched for such values. Objects that it made are not.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from types import CellType, FunctionType, ModuleType
from typing import Any

from fnad.codes import original_of, with_inner
from fnad.errors import TracerEscapeError
from fnad.ir.builder import Builder, made_at
from fnad.ir.program import Source
from fnad.trace.contents import namespace_of
from fnad.trace.conversion import converted_code
from fnad.trace.handle import Handle
from fnad.trace.recording import Recorder
from fnad.trace.source import line_naming


def check_kept(recorder: Recorder, trace: Builder) -> None:
    """Raise where a value of a trace, or of one within it, is stored in an object that the trace read from outside."""
    functions = [value for value in recorder.kept.values() if type(value) is FunctionType]
    owners = {id(function.__globals__): function for function in functions}
    owners |= {id(space): owner for owner, space in recorder.environment.holders.values() if space is not None}
    for holder, owner in _holders(recorder, functions):
        parts = gc.get_referents(holder)
        kinds = {id(kind): kind for kind in map(type, parts)}.values()  # a weak proxy may have no `__class__`
        if any(issubclass(kind, Handle) for kind in kinds):
            for part in parts:
                if issubclass(type(part), Handle) and part.is_within(trace):
                    raise _refused(holder, owners.get(id(holder), owner), part, functions)


def _holders(recorder: Recorder, functions: Iterable[FunctionType]) -> Iterator[tuple[Any, Any]]:
    """The objects that may have a traced value, each with its owner: namespaces and cells belong to others."""
    for value in recorder.kept.values():
        yield value, value
        namespace = None if isinstance(value, (FunctionType, ModuleType)) else namespace_of(value)
        if namespace is not None:
            yield dict(namespace), value
    for function in functions:
        if converted_code(original_of(function.__code__), function.__globals__) is not None:
            yield from ((cell, function) for cell in function.__closure__ or ())


def _refused(holder: Any, owner: Any, part: Handle, functions: Iterable[FunctionType]) -> TracerEscapeError:
    names: Any = holder if isinstance(holder, dict) else namespace_of(holder) or {}
    name = next((name for name, found in names.items() if found is part), None)
    what = _name_of(holder, owner) if name is None else f"{name!r} of {_name_of(holder, owner)}"
    return TracerEscapeError(
        f"a traced value of aval {part.aval} was stored in {what}, which is there after the trace",
        source=(made_at(part.symbol) if name is None else None) or _place(name, functions),
        remedy="return it and store the result of the call: what is stored under jit has no numbers",
    )


def _name_of(value: Any, owner: Any) -> str:
    if type(value) is CellType:
        return "a variable of an enclosing function"
    if isinstance(owner, (FunctionType, ModuleType)):
        return "the module"
    if isinstance(owner, type):
        return owner.__qualname__
    kind = type(owner).__name__
    return f"a {kind}" if type(owner).__module__ == "builtins" else f"an object of class {kind}"


def _place(name: Any, functions: Iterable[FunctionType]) -> Source | None:
    """The line of one of the functions where something is stored under a name; that of the first function else."""
    codes = [code for function in functions for code in with_inner(original_of(function.__code__))]
    for code in codes:
        line = line_naming(code, name, is_stored=True)
        if line is not None:
            return Source(code.co_filename, line, code.co_name)
    return Source(codes[0].co_filename, codes[0].co_firstlineno, codes[0].co_name) if codes else None
