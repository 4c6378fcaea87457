"""Code objects: syntax trees of their text, their names and functions, and notes on each for as long as it lives.

Code objects are equal where their instructions are, in files of other names too, and to compare them takes longer than
most of what is asked. They are not kept alive: a program that makes functions all the time makes code objects as well.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial, wraps
from types import CellType, CodeType, FunctionType
from typing import Any, TypeVar, TypeVarTuple
from weakref import ref

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Notes(dict[Any, Any]):
    """The notes on one code object."""

    __slots__ = ("code",)
    code: ref[CodeType]


_NOTES: dict[int, Notes] = {}
ATTEMPTS = 20
"""The most times that a text is parsed again."""


def notes_of(code: CodeType) -> Notes:
    """The notes on a code object, to which the caller may add."""
    return _NOTES.get(id(code)) or _new(code)


def _new(code: CodeType) -> Notes:
    address, made = id(code), Notes()
    made.code = ref(code, partial(_NOTES.pop, address))  # C code, which an interrupt does not stop halfway
    return _NOTES.setdefault(address, made)  # another thread may have been faster


def remembered(function: Callable[[CodeType, *Ts], T]) -> Callable[[CodeType, *Ts], T]:
    """Make a function of a code object, and of more arguments, that is asked once for each of them."""

    @wraps(function)
    def ask(code: CodeType, *args: *Ts) -> T:
        key = function, args
        try:
            return _NOTES[id(code)][key]
        except KeyError:
            return notes_of(code).setdefault(key, function(code, *args))

    return ask


def parsed(text: str, file: str = "<unknown>", mode: str = "exec") -> Any:
    """The syntax tree of a text, while other threads may parse texts too.

    Python 3.11 counts the depth of all trees together. Where a thread is interrupted while it makes one, and another
    thread makes one as well, either raises `SystemError` (python/cpython#106905). A lock would be held while the
    garbage collector runs, which may wait for other locks.
    """
    for _ in range(ATTEMPTS):
        with suppress(SystemError):
            return ast.parse(text, file, mode)
    return ast.parse(text, file, mode)


def inner_codes(code: CodeType) -> Iterator[CodeType]:
    """The code objects of the functions and classes that code defines."""
    return (constant for constant in code.co_consts if isinstance(constant, CodeType))


def with_inner(code: CodeType) -> Iterator[CodeType]:
    """A code object, and the code objects in it at any depth."""
    yield code
    for inner in inner_codes(code):
        yield from with_inner(inner)


def names_of(code: CodeType) -> frozenset[str]:
    """The names of globals and attributes in code, and in the functions and classes that it defines."""
    return frozenset().union(*(each.co_names for each in with_inner(code)))


def with_code(function: FunctionType, code: CodeType, cells: tuple[CellType, ...] | None = None) -> FunctionType:
    """A function with other code, or other variables of enclosing functions, that shares all else with a function."""
    closure = function.__closure__ if cells is None else cells
    made = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__, made.__dict__ = function.__kwdefaults__, function.__dict__
    made.__qualname__, made.__module__ = function.__qualname__, function.__module__
    return made


def forget_codes() -> None:
    """Forget all of it; it is found out again where somebody asks."""
    originals = {address: notes for address, notes in [*_NOTES.items()] if "original" in notes}
    _NOTES.clear()  # which frees converted code that runs nowhere
    _NOTES.update((address, notes) for address, notes in originals.items() if notes.code() is not None)


def original_of(code: CodeType) -> CodeType:
    """The user's code that a function has outside of a trace, of what it may have instead (`fnad.trace.conversion`)."""
    notes = _NOTES.get(id(code))
    original: ref[CodeType] | None = None if notes is None else notes.get("original")
    return (original and original()) or code
