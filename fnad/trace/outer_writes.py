"""Writes of ordinary numbers into arrays outside of a branch, or of the body of a loop.

Such a function is traced once, and its program runs never, once or many times. What Python writes into an array that
the program does not have is written once, whatever runs: so it is undone, and is an error. Looked at are the arrays
that names in a function lead to, those of the functions that it calls by name too, where its code may write at all.
"""

from __future__ import annotations

import dis
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from fnad.codes import original_of
from fnad.errors import MutationError
from fnad.ir.program import Source
from fnad.records import NamedTuple
from fnad.trace.asking import content, each_once, with_inner
from fnad.trace.bytecode import UNIT, VERSION, globals_of, line_naming, names_of
from fnad.trace.capture import Array, same_bits
from fnad.trace.libraries import is_library

STORES = {dis.opmap[name] for name in VERSION.stores}
BINARY = dis.opmap["BINARY_OP"]
IN_PLACE = 13
"""The operators in place are numbered from here on."""
WRITING = frozenset({"at", "copyto", "fill", "fill_diagonal", "partition", "put", "putmask", "resize", "sort"})
"""Functions and methods that write into an array."""


class _Array(NamedTuple):
    """An array by the name that a function has for it, and a copy."""

    array: Array
    before: Array
    name: str
    function: FunctionType

    def source(self) -> Source:
        code = original_of(self.function.__code__)
        lines = (line_naming(inner, self.name) for inner in with_inner(code))
        line = next((line for line in lines if line is not None), code.co_firstlineno)
        return Source(code.co_filename, line, code.co_name)


@contextmanager
def without_outer_writes(f: Any, what: str) -> Generator[None]:
    """Undo what this block writes into arrays outside of a function, which errors call `what`, and raise for it."""
    arrays = list(_arrays(f))
    written: list[_Array] = []
    try:
        yield
    finally:
        for found in arrays:
            if not same_bits(found.array, found.before):
                found.array[...] = found.before
                written.append(found)
    if written:
        raise MutationError(
            f"{what} writes into {written[0].name}, an array outside of it: it is traced once, whether it runs never, "
            f"once or many times",
            source=written[0].source(),
            remedy="make the array part of the operands, or of what a loop carries, write into that, and return it",
        )


def _arrays(f: Any) -> Iterator[_Array]:
    """The arrays that names in functions lead to whose code may write, each once."""
    found: set[int] = set()
    for value in each_once([f], _parts):
        if type(value) is FunctionType and not is_library(value.__code__.co_filename) and _may_write(value):
            for name, array in _named(value):
                if type(array) is np.ndarray and array.flags.writeable and id(array) not in found:
                    found.add(id(array))
                    yield _Array(array, array.copy(), name, value)


def _parts(value: Any) -> Iterable[Any]:
    """The functions that a function may call by name, or that a method or partial function is of."""
    if isinstance(value, partial):
        return value.func, *value.args
    if type(value) is MethodType:
        return (value.__func__,)
    if type(value) is not FunctionType or is_library(value.__code__.co_filename):
        return ()
    return [named for _, named in _named(value)]


def _named(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """What a function finds by name: globals, variables of enclosing functions, defaults."""
    code, namespace = original_of(function.__code__), function.__globals__
    yield from ((name, namespace[name]) for name in globals_of(code) if name in namespace)
    yield from zip(code.co_freevars, map(content, function.__closure__ or ()), strict=True)
    defaults = function.__defaults__ or ()
    yield from zip(code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount], defaults, strict=True)
    yield from (function.__kwdefaults__ or {}).items()


def _may_write(function: FunctionType) -> bool:
    """Whether code of a function stores elements, has operators in place, or names what writes, `out` among it."""
    code = original_of(function.__code__)
    if not WRITING.isdisjoint(names_of(code)):
        return True
    return any(_stores(inner.co_code) or _has_out(inner) for inner in with_inner(code))


def _stores(code: bytes) -> bool:
    instructions = zip(code[::UNIT], code[1::UNIT], strict=True)
    return any(name in STORES or (name == BINARY and argument >= IN_PLACE) for name, argument in instructions)


def _has_out(code: CodeType) -> bool:
    return any(type(constant) is tuple and "out" in constant for constant in code.co_consts)
