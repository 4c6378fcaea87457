"""The functions of the user's own modules that ask for a class by identity, wherever an object may lead to them.

Names in the code of a function do not lead to a method of an object in a list, in an attribute or among the arguments
(`fnad.trace.identity`). So what the modules define is looked through: functions, also those in containers and those
that decorators wrapped, and the methods of classes. A module is looked at again when it has more or fewer names. Of a
class within a function, which no module has, the methods are looked for among all functions there are, if one that asks
is of a name that occurs in the code of the function that is traced.

Where a value is asked for its number, the functions that run and those that their modules define may have to be
exchanged (`fnad.trace.callees`). Others with the same globals are looked for when a value is asked again, since it
takes 10 ms, in a large process 100, to look through all objects.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import chain, islice
from types import CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

from fnad.codes import original_of
from fnad.trace.aliases import bound, called_by, calling_type, contents, each_once, is_known_as_another
from fnad.trace.bytecode import (
    asks_for_classes,
    attribute,
    attribute_called_at,
    calls_values,
    function_of,
)
from fnad.trace.callees import (
    ATTRIBUTES,
    CACHED,
    EXCHANGES,
    GLOBALS,
    NOW,
    STAND_INS,
    VALUES,
    Group,
    Namespace,
    alive,
    degree_of,
    functions_in,
    grouped,
    module_of,
    stand_ins_in,
    with_globals,
    with_stand_ins,
)
from fnad.trace.contents import CONTAINERS, is_library_module, is_users
from fnad.trace.libraries import is_library, package_of
from fnad.trace.source import user_frame

MANY = 1000
"""Elements of a container that are looked at: tables of functions have fewer."""

UNCALLED = frozenset({"__annotations__", "__builtins__"})
"""Names of what is not called from where it is found."""

# ---- what code, functions and classes lead to ------------------------------------------------------------------------


def asks(code: CodeType, namespace: Namespace) -> bool:
    """Whether code asks for classes, by Python's `type`."""
    return asks_for_classes(code) and bound(namespace, "type") is type


def with_inner(code: CodeType) -> Iterator[CodeType]:
    """Code, and what is defined in it."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from with_inner(inner)


def of_class(kind: type, names: AbstractSet[str]) -> Iterator[Any]:
    """What a class leads to: its methods and properties of these names, and its bases."""
    if is_users(kind):
        yield from (base for base in kind.__bases__ if base is not type)
        for name in (names & vars(kind).keys()) - UNCALLED:
            yield called_by(vars(kind)[name])


def owner_of(method: MethodType) -> type:
    """The class that a method is found in."""
    owner = method.__self__
    return owner if isinstance(owner, type) else type(owner)


def package_of_class(kind: type) -> str | None:
    """The installed package that a class is of."""
    return package_of(getattr(sys.modules.get(getattr(kind, "__module__", "")), "__file__", None) or "")


# ---- what modules define ---------------------------------------------------------------------------------------------


def asking_in(values: Iterable[Any]) -> Iterator[FunctionType]:
    """The user's functions in values that ask for a class."""
    for value in each_once(values, _parts):
        if is_own_function(value) and asks(original_of(value.__code__), module_of(value.__globals__)):
            yield value


def is_own_function(value: Any) -> bool:
    """Whether a value is a function of no library."""
    return type(value) is FunctionType and not is_library(value.__code__.co_filename)


def _parts(value: Any) -> Iterable[Any]:
    """What a value of a module leads to, without the names in code; no code of the user's is run to see it."""
    kind = type(value)
    if kind is FunctionType:
        file = value.__code__.co_filename
        is_own = package_of(file) is None and not is_library(file)
        return (*contents(value), vars(value).get("__wrapped__")) if is_own else ()
    if issubclass(kind, type):
        return of_class(value, vars(value).keys()) if package_of_class(value) is None else ()
    if kind is MethodType:
        return value.__func__, owner_of(value)
    if kind is functools.partial:
        return value.func, value.args, value.keywords
    if kind is dict:
        return islice(value.values(), MANY)
    if kind in CONTAINERS:
        return islice(value, MANY)
    return () if issubclass(kind, ModuleType) else (kind,)


def calling_in(values: Iterable[Any]) -> Iterator[FunctionType]:
    """The user's functions in values, if `type` is known there under another name."""
    every = list(each_once(values, _parts))
    if sum(map(is_known_as_another, every)):  # of each, since names are noted
        yield from filter(is_own_function, every)


class Module:
    """What asks in a module, as it was when it had so many names."""

    def __init__(self, module: ModuleType) -> None:
        self.count = len(vars(module))
        values = [value for name, value in tuple(vars(module).items()) if name not in UNCALLED]
        found = list(asking_in(values))
        self.asking = list(map(weakref.ref, found))
        self.calling = list(map(weakref.ref, calling_in(values)))
        inner = (code for function in found for code in with_inner(original_of(function.__code__)))
        self.methods = [weakref.ref(code) for code in inner if is_method_within(code) and asks_for_classes(code)]


def is_method_within(code: CodeType) -> bool:
    """Whether code is that of a method of a class within a function."""
    *outer, owner, _ = ["", "", *code.co_qualname.split(".")]
    return "<locals>" in outer and owner != "<locals>"


class _Modules:
    """The user's modules by name, of which only those with another number of names are looked at again."""

    def __init__(self) -> None:
        self._known: dict[str, Module] = {}
        self._counts = 0, 0
        self._groups: list[Group] = []
        self._calling: list[weakref.ref[FunctionType]] = []
        self._methods: list[weakref.ref[CodeType]] = []

    def groups(self) -> list[Group]:
        """The functions that ask for a class."""
        if self._count() != self._counts:
            self._look()
        return self._groups

    def calling(self) -> Iterator[FunctionType]:
        """The functions of modules in which `type` has another name."""
        return (function for function in alive(self._calling) if calling_type(function))

    def methods(self, names: AbstractSet[str]) -> list[FunctionType]:
        """The methods of these names that ask for a class, of classes that no module has."""
        within = (code for code in alive(self._methods) if code.co_name in names)
        return [function for code in within for function in EXCHANGES.functions_of(code)]

    def _count(self) -> tuple[int, int]:
        """How many modules there are, and names in the user's."""
        modules = filter(None, map(sys.modules.get, self._known))
        return len(sys.modules), sum(map(len, map(vars, modules)))

    def _look(self) -> None:
        own = [name for name, module in tuple(sys.modules.items()) if is_own_module(module)]
        known, self._known = self._known, {}
        for name in own:
            module = sys.modules[name]
            is_same = name in known and known[name].count == len(vars(module))
            self._known[name] = known[name] if is_same else Module(module)
        self._groups = grouped(alive(function for module in self._known.values() for function in module.asking))
        self._calling = [function for module in self._known.values() for function in module.calling]
        self._methods = [code for module in self._known.values() for code in module.methods]
        self._counts = self._count()


def is_own_module(module: Any) -> bool:
    """Whether a module is the user's, and of no installed package; one of another class may run code when looked at."""
    if type(module) is not ModuleType or is_library_module(module):
        return False
    return package_of(vars(module).get("__file__") or "") is None


MODULES = _Modules()


# ---- where a value is asked for its number ---------------------------------------------------------------------------


def ask_for_stand_ins(frame: FrameType | None = None) -> None:
    """A traced value was asked for its number: have the function run again if stand-ins may be missing.

    `frame` is that of the code which asked, if that does not run any more.
    """
    runs, frame = NOW.runs, frame or user_frame()
    if runs is None or frame is None:
        return
    frames = list(users_frames(frame))
    spaces = spaces_of(frames)
    callers = partial(functions_in, spaces) if runs.has_asked else partial(functions_near, frames, spaces)
    code, namespace = frame.f_code, module_of(frame.f_globals)
    own, degree = original_of(code), degree_of(code)
    if degree < GLOBALS and stand_ins_in(code, namespace):
        runs.again |= runs.exchange(callers())
    elif degree < VALUES and calls_values(own):
        calling = (f for f in callers() if calls_values(original_of(f.__code__)))
        runs.again |= runs.exchange(calling, VALUES)
    elif degree < ATTRIBUTES and may_stand_for_callee(frame):
        calling = (f for f in callers() if any(inner is own for inner in with_inner(original_of(f.__code__))))
        runs.again |= runs.exchange(calling, ATTRIBUTES)
    runs.has_asked = True


def may_stand_for_callee(frame: FrameType) -> bool:
    """Whether a frame is at the call of an attribute, or an element, that something may stand for."""
    found = attribute_called_at(frame.f_code, frame.f_lasti)
    if found is None:
        return False
    path, name = found
    owner = None if path is None else path.value(frame)
    if isinstance(owner, ModuleType) and is_library_module(owner):
        return False
    value = None if owner is None else attribute(owner, name)
    if value is None:
        return name == "__class__" or not name.startswith("__")
    return id(value) in STAND_INS or isinstance(value, (CACHED, partial, staticmethod, classmethod))


def users_frames(frame: FrameType | None) -> Iterator[FrameType]:
    """The frames of the user's code that runs in the trace, the innermost first."""
    while frame is not None and frame.f_code is not with_stand_ins.__code__:
        if not is_library(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def spaces_of(frames: Iterable[FrameType]) -> list[Namespace]:
    """The globals of the modules that the code of frames is of."""
    return list({id(space): space for space in (module_of(frame.f_globals) for frame in frames)}.values())


def functions_near(frames: list[FrameType], spaces: list[Namespace]) -> list[FunctionType]:
    """The functions that frames run, what is in these, and what modules with these globals define."""
    defined = chain.from_iterable(tuple(space.values()) for space in spaces)
    return with_globals(each_once((*map(function_of, frames), *defined), _parts), spaces)
