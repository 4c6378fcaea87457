"""The functions, objects and arrays that a function may reach when it runs, each with a name for errors.

Names in code are followed, elements of containers, and those attributes of objects, classes and modules whose names
occur in the code. Code of an installed package is followed only for a function of that package. No user code runs.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections import deque
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import islice
from types import (
    BuiltinMethodType,
    CodeType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any

import numpy as np

from fnad.codes import names_of, original_of
from fnad.records import NamedTuple
from fnad.trace.contents import (
    CONSTANTS,
    CONTAINERS,
    file_of,
    function_in,
    is_library_module,
    is_own,
    is_users,
    namespace_of,
)
from fnad.trace.environment import content
from fnad.trace.handle import Handle
from fnad.trace.libraries import is_library, package_of

SPECIAL = {name for kind in (int, list, Iterator) for name in {*dir(kind)} - {*dir(object)} if name.startswith("__")}
UNNAMED = frozenset({"__call__", "__wrapped__", "__enter__", "__getattr__", "__array__", *SPECIAL})
"""Attributes that calls, operators and statements lead to without naming them."""
ELEMENTS = frozenset({*CONSTANTS, *np.sctypeDict.values()})
"""Classes of elements that lead to nothing: there may be thousands."""
ENDS = (np.ndarray, np.ufunc, Handle, *weakref.ProxyTypes, *CONSTANTS)
"""Classes of what is not looked into."""
MANY = 1000
"""Elements of a container that are looked at."""
MOST = 5000
"""So many values are looked at, the nearest first, which takes some milliseconds."""


class Reached(NamedTuple):
    """A value, the expression that leads to it, and the function that has its first name, if one has."""

    value: Any
    name: str
    function: Any = None


def asking_for_class(function: FunctionType) -> str | None:
    """The name of the function that may call `type`, of those a function leads to."""
    reached = Reach({function.__qualname__: function}).functions
    return next((each.__qualname__ for each in reached if "type" in names_of(each.__code__)), None)


class Reach:
    """The functions whose names are followed, and the arrays, traced ones among them, that some values lead to."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self.functions: list[FunctionType] = []
        self.arrays: list[Reached] = []
        self._packages: set[str | None] = {None}
        self._names: frozenset[str] = UNNAMED
        self._objects: list[Reached] = []
        self._follow(named)

    def _follow(self, named: Mapping[str, Any]) -> None:
        waiting, seen = deque(Reached(value, name) for name, value in named.items()), dict[int, Any]()
        while waiting and len(seen) < MOST:
            found = waiting.popleft()
            if id(found.value) not in seen:
                seen[id(found.value)] = found.value
                kind = type(found.value)
                if kind is np.ndarray or issubclass(kind, Handle):
                    self.arrays.append(found)
                    waiting += _elements_of_objects(found)
                elif not issubclass(kind, ENDS):
                    waiting += _parts(found) if kind is not FunctionType else self._of_function(found)
                    waiting += self._of_object(found)

    def _of_function(self, found: Reached) -> Iterator[Reached]:
        """The values that a function finds by name; in the code of libraries, only those that it was made of."""
        function: FunctionType = found.value
        code, file = original_of(function.__code__), function.__code__.co_filename
        if not is_library(file) and not self.functions:
            self._packages.add(package_of(file))
        is_followed = not is_library(file) and package_of(file) in self._packages
        owner = function if is_followed else found.function
        cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
        yield from (Reached(content(cell, "", None), name, owner) for name, cell in cells)
        if is_followed:
            self.functions.append(function)
            yield from (Reached(value, name, owner) for name, value in _named(function))
            yield from self._by_new_names(names_of(code) | _names_in_text(code))

    def _by_new_names(self, names: AbstractSet[str]) -> Iterator[Reached]:
        """The attributes of these names of the objects that were met before."""
        names = names - self._names
        self._names |= names
        for each in self._objects:
            yield from _attributes(each, names)

    def _of_object(self, found: Reached) -> Iterator[Reached]:
        if self._is_followed(found.value):
            self._objects.append(found)
            yield from _attributes(found, self._names)
        elif "__wrapped__" in (namespace_of(found.value) or {}):
            yield from _attributes(found, UNNAMED)

    def _is_followed(self, value: Any) -> bool:
        if issubclass(type(value), ModuleType):
            return not is_library_module(value) and package_of(vars(value).get("__file__") or "") in self._packages
        kind = value if issubclass(type(value), type) else type(value)
        return (
            kind is FunctionType
            or kind is SimpleNamespace
            or (is_users(kind) and package_of_class(kind) in self._packages)
        )


def _parts(found: Reached) -> Iterator[Reached]:
    """The parts of a value that is not a function, without its attributes."""
    value, name, function = found
    if issubclass(type(value), CONTAINERS) and not is_own(value):
        yield from _elements(found)
    elif type(value) is MethodType:
        yield Reached(value.__func__, name, function)
        yield Reached(value.__self__, "self", value.__func__ if type(value.__func__) is FunctionType else function)
    elif type(value) is BuiltinMethodType:
        yield Reached(value.__self__, name, function)
    elif type(value) is memoryview:
        yield Reached(value.obj, name, function)
    elif type(value) is functools.partial:
        yield from (Reached(part, name, function) for part in (value.func, *value.args, *value.keywords.values()))
    elif (inside := function_in(value)) is not None:
        yield Reached(inside, name, function)


def _elements(found: Reached) -> Iterator[Reached]:
    value, name, function = found
    pairs = value.items() if issubclass(type(value), dict) else enumerate(value)
    for key, element in islice(pairs, MANY):
        if type(element) not in ELEMENTS:
            yield Reached(element, f"{name}[{key!r}]" if type(key) in (int, str) else f"{name}[…]", function)


def _names_in_text(code: CodeType) -> AbstractSet[str]:
    """The attributes that `getattr` is asked for by texts in the code."""
    return {c for c in code.co_consts if type(c) is str} if "getattr" in code.co_names else set()


def _elements_of_objects(found: Reached) -> Iterator[Reached]:
    if type(found.value) is np.ndarray and found.value.dtype.hasobject:
        yield from (Reached(each, f"{found.name}[…]", found.function) for each in islice(found.value.flat, MANY))


def _named(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Globals, modules that are imported within a function, and defaults."""
    code, space, defaults = original_of(function.__code__), function.__globals__, function.__defaults__ or ()
    yield from ((name, space.get(name, sys.modules.get(name))) for name in names_of(code))
    yield from zip(code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount], defaults, strict=True)
    yield from (function.__kwdefaults__ or {}).items()


def _attributes(found: Reached, names: AbstractSet[str]) -> Iterator[Reached]:
    value, name, function = found
    for space in _spaces(value):
        for attribute in names & space.keys():
            yield Reached(_member(value, space[attribute]), f"{name}.{attribute}", function)


def _spaces(value: Any) -> Iterator[Mapping[str, Any]]:
    """The namespaces of an object's attributes."""
    kind: type[Any] = value if issubclass(type(value), type) else type(value)
    if kind is not value:
        yield namespace_of(value) or {}
    yield from (vars(base) for base in kind.__mro__ if is_users(base))


def _member(value: Any, member: Any) -> Any:
    """The value of a class member for an object: the value of its slot, or the function that it calls."""
    if type(member) is not MemberDescriptorType or not issubclass(type(value), member.__objclass__):
        return called_by(member)
    try:
        return member.__get__(value)
    except AttributeError:
        return None


def called_by(member: Any) -> Any:
    """The function that a member of a class calls, or the member itself: no user code runs."""
    kind = type(member)
    if kind is staticmethod or kind is classmethod:
        return member.__func__
    if kind is property:
        return member.fget
    return member.func if kind is functools.cached_property else member


def package_of_class(kind: type) -> str | None:
    """The installed package that a class is of."""
    return package_of(file_of(sys.modules.get(getattr(kind, "__module__", ""))) or "")
