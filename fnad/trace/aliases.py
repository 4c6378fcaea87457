"""Where Python's `type` has another name: `def f(x, kind=type)`, `self.kind = type`, `{"kind": type}`, `partial(type)`.

No call of `type` can be noticed, and what it returns for a traced value is a class that is the same as no other. So the
calls by which code may call it under another name get a hook (`fnad.trace.callees`), and no others, since what is
called by a hook has another frame before it.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from types import CellType, CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

from fnad.codes import original_of
from fnad.trace.bytecode import attributes_stored, globals_of, hands_on, names_of, stores_type, strings_of
from fnad.trace.contents import CONTAINERS, is_users
from fnad.trace.libraries import is_library

FEW = 32
"""Of so many values it is seen at each trace whether `type` is among them."""

FINDING = builtins, vars(builtins), eval
"""What finds `type` by its name."""

ELEMENTS = "[]"
"""What stands among names for calls of elements, of what else has no name, and of variables, which may be elements."""

HANDING = frozenset({".call", ".groupby", ".reduce", ".starmap"})
"""Functions of C that call what they are given."""

NAMES: set[str] = set()
"""The attributes of the user's classes and objects that lead to `type`, with a dot before.

Where a function hands on a variable that does, what it calls may have it under any name.
"""

MISSING = object()
BUILTINS = vars(builtins)


def bound(namespace: dict[str, Any], name: str) -> Any:
    """What a global stands for."""
    value = namespace.get(name, MISSING)
    return BUILTINS.get(name) if value is MISSING else value


def each_once(values: Iterable[Any], parts: Callable[[Any], Iterable[Any]]) -> Iterator[Any]:
    """Values, and what they lead to by their parts, each object once."""
    waiting, seen = list(values), dict[int, Any]()
    while waiting:
        value = waiting.pop()
        if id(value) not in seen:
            seen[id(value)] = value
            waiting += parts(value)
            yield value


def contents(function: FunctionType) -> list[Any]:
    """What is in the cells and defaults of a function."""
    cells = [content(cell) for cell in function.__closure__ or ()]
    return [*cells, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]


def content(cell: CellType) -> Any:
    """What a variable of an enclosing function stands for; None where it has no value."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def leads_to_type(value: Any) -> bool:
    """Whether a value is `type`, or a small container, an object of the user's or a partial call that has it."""
    return any(found is type for found in islice(each_once([value], held), FEW))


def held(value: Any) -> Iterable[Any]:
    """The elements of a container, the attributes of an object of the user's, and what a partial call calls."""
    kind = type(value)
    if kind is functools.partial:
        return value.func, *value.args, *value.keywords.values()
    for container in CONTAINERS:
        if issubclass(kind, container):
            return islice(dict.values(value) if container is dict else container.__iter__(value), FEW)
    if issubclass(kind, (type, FunctionType, ModuleType)) or not (is_users(kind) or kind is SimpleNamespace):
        return ()
    return islice(attributes_of(value).values(), FEW)


def is_known_as_another(value: Any) -> bool:
    """Whether a value leads to `type`; notes the attributes under which it, or what it makes, does."""
    if type(value) is FunctionType:
        return not is_library(value.__code__.co_filename) and _is_function_leading(value)
    found = [f".{name}" for name, part in _named_parts(value) if leads_to_type(part)]
    NAMES.update(found)
    return bool(found) or leads_to_type(value)


def _named_parts(value: Any) -> Iterable[tuple[str, Any]]:
    """The members of a class of the user's, the attributes of an object, the fields of a named tuple."""
    kind = type(value)
    if issubclass(kind, type):
        return [(name, called_by(part)) for name, part in vars(value).items()] if is_users(value) else ()
    if issubclass(kind, tuple):
        return zip(getattr(kind, "_fields", ()), tuple.__iter__(value), strict=False)
    return attributes_of(value).items() if is_users(kind) or kind is SimpleNamespace else ()


def called_by(member: Any) -> Any:
    """The function that a member of a class calls, or the member itself: no code of the user's is run to see it."""
    kind = type(member)
    if kind is staticmethod or kind is classmethod:
        return member.__func__
    if kind is property:
        return member.fget
    return member.func if kind is functools.cached_property else member


def attributes_of(value: Any) -> dict[str, Any]:
    """The attributes of an object; none of one of a class with slots."""
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}


def _is_function_leading(function: FunctionType) -> bool:
    code = original_of(function.__code__)
    variables = frozenset(name for name, value in _variables(function, code) if leads_to_type(value))
    if variables and hands_on(code, variables):
        NAMES.add(ELEMENTS)
    if variables or (stores_type(code) and bound(function.__globals__, "type") is type):
        NAMES.update(f".{name}" for name in attributes_stored(code))
        return True
    return finds_type(code, function.__globals__)


def finds_type(code: CodeType, namespace: dict[str, Any]) -> bool:
    """Whether code may find `type` by its name in a string."""
    names = globals_of(code) if "type" in strings_of(code) else ()
    return any(value is found for value in FINDING for found in (bound(namespace, name) for name in names))


def calling_type(function: FunctionType) -> frozenset[str]:
    """The names under which a function may call `type`, those of attributes with a dot before."""
    code, namespace = original_of(function.__code__), getattr(function.__globals__, "module", function.__globals__)
    values = {**dict(_variables(function, code)), **{name: bound(namespace, name) for name in globals_of(code)}}
    leading = {name for name, value in values.items() if leads_to_type(value) and name != "type"}
    names = {*leading, *({f".{name}" for name in names_of(code)} & NAMES)}
    if names or ELEMENTS in NAMES or finds_type(code, namespace):
        return frozenset({*names, *HANDING, ELEMENTS})
    return frozenset()


def _variables(function: FunctionType, code: CodeType) -> Iterator[tuple[str, Any]]:
    """The variables of a function with a value before it runs."""
    defaults = function.__defaults__ or ()
    yield from zip(code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount], defaults, strict=True)
    yield from (function.__kwdefaults__ or {}).items()
    yield from zip(code.co_freevars, map(content, function.__closure__ or ()), strict=False)
