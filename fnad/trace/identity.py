"""`type(x) is float` of a traced value, which no object can answer as what it stands for.

A class of traced values is equal to the class it stands for, and is not the same: `type(x) is float` and
`type(x) in {float, int}` would be false in silence. So functions that call `type` with one argument, and do more with
the result than load an attribute of it, are exchanged (`fnad.trace.callees`) before they run. They are looked for
wherever the names in the code lead: to functions and classes, their methods, modules of the user's, and what
decorators wrapped; and in the user's own modules, where objects may lead to them (`fnad.trace.asking`). That is done
for the function that is traced, and for each that computes and was not reached so; what was found is kept as long as
the names stand for the same. Where a profiler watches a trace, as under `jit`, code that asks is seen when it runs.

Note [Installed packages]
    One name, such as pandas.DataFrame, may lead to thousands of functions. So classes are followed to all their methods
    only in the user's own modules and in the packages of the functions that are traced or compute. Those of other
    packages are followed to what makes objects and to methods whose names occur in the code of the former; and other
    packages are taken not to bind their names to something else after the first trace.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from operator import call, is_
from types import CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any, Self, TypeAlias

from fnad.codes import notes_of, original_of
from fnad.errors import TracerEscapeError
from fnad.trace.aliases import bound, calling_type, contents, each_once, is_known_as_another, leads_to_type
from fnad.trace.asking import (
    MODULES,
    asks,
    of_class,
    owner_of,
    package_of_class,
    with_inner,
)
from fnad.trace.bytecode import function_of, globals_of, names_of
from fnad.trace.callees import (
    ALIASES,
    EXCHANGES,
    NOW,
    Group,
    Namespace,
    Runs,
    alive,
    entry_of,
    functions_in,
    grouped,
    is_other,
    module_of,
)
from fnad.trace.contents import is_library_module
from fnad.trace.libraries import is_library, package_of
from fnad.trace.source import current_source

CALLABLES = (FunctionType, MethodType, type, functools.partial)
"""Classes of what a name may stand for that is looked into."""

MAKING = frozenset({"__init__", "__new__", "__post_init__", "__call__"})
"""Methods that are called without being named."""

Part: TypeAlias = "tuple[CodeType | FunctionType | ModuleType | type, int]"
"""A class, a module, or a function or its code beside the identity of its globals."""

Space: TypeAlias = "Callable[[], Namespace | None]"
"""A namespace, as long as it is there."""


class Names:
    """Names in a namespace, each with a reference to what it stands for if that can be called.

    The namespace is not kept alive: the code that this is noted of may be in it.
    """

    def __init__(self, namespace: Namespace, function: FunctionType) -> None:
        self._space = space_of(namespace, function)
        self._callables: dict[str, weakref.ref[Any]] = {}
        self._others: dict[str, None] = {}

    def note(self, name: str, value: Any) -> None:
        """Note what a name stands for."""
        if isinstance(value, CALLABLES):
            self._callables[name] = weakref.ref(value)
        else:
            self._others[name] = None

    def hold(self) -> bool:
        """Whether they stand for what they did. There are hundreds, at each trace: none takes a call of Python's."""
        namespace = self._space()
        if namespace is None:
            return False
        before, now = map(call, self._callables.values()), map(namespace.get, self._callables)
        others = map(isinstance, map(namespace.get, self._others), repeat(CALLABLES))
        return all(map(is_, before, now)) and not any(others)


class Reach:
    """The functions that names lead to, and those of them that ask for a class.

    `names` are those that were followed, by their namespace. Where Python's `type` has another name, or may get one, it
    `hands_on`, and any function of the code whose names are followed everywhere, which are `called`, may call it.
    `packages` and `attributes` are those of this code, see Note [Installed packages].
    """

    def __init__(self, *packages: str | None) -> None:
        self.names: dict[int, Names] = {}
        self.codes: dict[int, weakref.ref[CodeType]] = {}
        self.asking: list[weakref.ref[FunctionType]] = []
        self.called: list[weakref.ref[FunctionType]] = []
        self.hands_on = False
        self.packages: set[str | None] = {None, *packages}
        self.attributes: set[str] = set(MAKING)

    def holds(self) -> bool:
        """Whether the names stand for what they did."""
        return all(names.hold() for names in self.names.values())

    def has(self, code: CodeType) -> bool:
        """Whether the names led to this code."""
        reference = self.codes.get(id(code))
        return reference is not None and reference() is code

    def functions(self) -> Iterator[FunctionType]:
        """The functions that ask for a class."""
        return alive(self.asking)

    def calling(self) -> Iterator[FunctionType]:
        """The functions that may call `type` under another name."""
        return (function for function in alive(self.called) if self.hands_on and calling_type(function))

    def follow(self, values: Iterable[Any]) -> Self:
        """Follow names, beginning with those of some values."""
        waiting, others, seen = list(values), list[type](), dict[int, Any]()
        functions = (found for found in inside(waiting) if isinstance(found, FunctionType))
        self.packages.update(package_of(function.__code__.co_filename) for function in functions)
        while waiting:
            value = waiting.pop()
            if id(value) not in seen:
                seen[id(value)] = value
                self.hands_on |= is_known_as_another(value)
                if isinstance(value, type) and package_of_class(value) not in self.packages:
                    others.append(value)
                else:
                    waiting += self.parts(value)
            if not waiting:
                waiting += [part for kind in others for part in of_class(kind, self.attributes)]
                others.clear()
        return self

    def parts(self, value: Any) -> Iterator[Any]:
        """What a value leads to."""
        if isinstance(value, FunctionType):
            yield from self._of_function(value)
        elif isinstance(value, type):
            yield from of_class(value, vars(value).keys())
        elif isinstance(value, MethodType):
            yield from (value.__func__, owner_of(value))
        elif isinstance(value, functools.partial):
            yield from (value.func, *value.args, *value.keywords.values())
        elif not isinstance(value, ModuleType):
            yield type(value)
            yield getattr(value, "__wrapped__", None) if callable(value) else None

    def _of_function(self, function: FunctionType) -> Iterator[Any]:
        cells = contents(function)
        yield from cells
        yield getattr(function, "__wrapped__", None)
        code, namespace = original_of(function.__code__), module_of(function.__globals__)
        if not is_library(code.co_filename):
            if asks(code, namespace):
                self.asking.append(weakref.ref(function))
            yield from self.of_code(function, code, namespace, cells)

    def of_code(
        self, function: FunctionType, code: CodeType, namespace: Namespace, cells: Iterable[Any] = ()
    ) -> Iterator[Any]:
        """What the names in the code of a function, and in what is defined in it, lead to."""
        self.codes.update((id(inner), weakref.ref(inner)) for inner in with_inner(code))
        is_own = package_of(code.co_filename) in self.packages
        if is_own:
            self.called.append(weakref.ref(function))
            self.attributes |= names_of(code)
        for space, name in names_in(code, namespace, cells):
            value = space.get(name)
            if is_own:
                if id(space) not in self.names:
                    self.names[id(space)] = Names(space, function)
                self.names[id(space)].note(name, value)
            yield value


def names_in(code: CodeType, namespace: Namespace, cells: Iterable[Any]) -> Iterator[tuple[Namespace, str]]:
    """The globals in code, and the attributes of modules that may be in it, each with where it is looked up."""
    names, package = names_of(code), namespace.get("__package__")
    found = [*cells, *(sys.modules.get(name) or sys.modules.get(f"{package}.{name}") for name in names)]
    for name in globals_of(code):
        yield namespace, name
        found.append(namespace.get(name))
    for module in found:
        if isinstance(module, ModuleType) and not is_library_module(module):
            yield from ((vars(module), name) for name in names & vars(module).keys())


def space_of(namespace: Namespace, function: FunctionType) -> Space:
    """What finds a namespace as long as its module is there, or the first function in it, or one that has it."""
    module = sys.modules.get(namespace.get("__name__", ""))
    if module is not None and vars(module) is namespace:
        return partial(_vars_of, weakref.ref(module))
    own = (
        value for value in tuple(namespace.values()) if type(value) is FunctionType and value.__globals__ is namespace
    )
    known = function if function.__globals__ is namespace else None
    found = next(own, None) or known or next(iter(functions_in([namespace])), None)
    return _nothing if found is None else partial(_globals_of, weakref.ref(found))


def _vars_of(module: weakref.ref[ModuleType]) -> Namespace | None:
    found = module()
    return None if found is None else vars(found)


def _globals_of(function: weakref.ref[FunctionType]) -> Namespace | None:
    found = function()
    return None if found is None else found.__globals__


def _nothing() -> None:
    return None


def inside(values: Iterable[Any]) -> Iterator[Any]:
    """The functions and modules in values, in their cells and defaults and so on, and the classes of what else is."""
    for value in each_once(values, _parts):
        if not isinstance(value, (MethodType, functools.partial)):
            yield value if isinstance(value, (FunctionType, ModuleType, type)) else type(value)


def _parts(value: Any) -> list[Any]:
    """What a value leads to: what is in a function, what a method or a partial calls, and what is wrapped."""
    parts: list[Any] = [getattr(value, "__wrapped__", None)] if callable(value) else []
    if isinstance(value, FunctionType):
        return [*contents(value), *parts]
    if isinstance(value, MethodType):
        return [value.__func__, owner_of(value), *parts]
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values(), *parts]
    return [type, *parts] if leads_to_type(value) else parts


# ---- who asks --------------------------------------------------------------------------------------------------------


ENTRIES = 8
"""How much of what is reached from functions of one code is kept: they differ in what is in their cells."""


class Entry(Reach):
    """What is reached from a function that is traced, which was followed to what is in its cells."""

    def __init__(self, parts: Iterable[Part]) -> None:
        super().__init__()
        self._parts = [(weakref.ref(part), space) for part, space in parts]
        self._groups: list[Group] | None = None

    def groups(self) -> Iterable[Group]:
        """The functions that ask for a class, those in the user's modules that no name leads to among them."""
        if self._groups is None:
            self._groups = grouped(self.functions())
        return *self._groups, *MODULES.groups()

    def calling(self) -> Iterator[FunctionType]:
        """The functions that may call `type` under another name."""
        yield from super().calling()
        yield from MODULES.calling()

    def others(self) -> Iterable[FunctionType]:
        """The methods that ask for a class, of classes that no module has."""
        return MODULES.methods(self.attributes)

    def is_of(self, parts: Sequence[Part]) -> bool:
        """Whether it is that of a function of these parts, and holds."""
        return [(reference(), space) for reference, space in self._parts] == parts and self.holds()


def reach_of(f: Any) -> Entry:
    """What is reached from a function that is traced."""
    function = entry_of(f)
    if function is None:
        return Entry(()).follow([f])
    known: list[Entry] = notes_of(original_of(function.__code__)).setdefault("reach", [])
    parts = list(map(part_of, inside((f, function))))
    found = next((entry for entry in known if entry.is_of(parts)), None)
    if found is None:
        found = Entry(parts)
        found.follow([f, function])
        known[:] = [found, *known[: ENTRIES - 1]]
    return found


def part_of(value: Any) -> Part:
    """What tells a class or a function from another one: its code, since functions are often made anew."""
    if isinstance(value, (type, ModuleType)):
        return value, 0
    code, namespace = original_of(value.__code__), module_of(value.__globals__)
    return value if asks(code, namespace) else code, id(namespace)  # one that asks is exchanged itself


def check_classes(frame: FrameType, runs: Runs) -> None:
    """Have the function run again where code that computes for the first time asks for a class, or leads to some.

    Raises `TracerEscapeError`, which is forgotten where the function runs again.
    """
    runs.seen[id(frame.f_code)] = frame.f_code
    code, namespace = original_of(frame.f_code), module_of(frame.f_globals)
    if not (runs.reach.has(code) or id(code) in runs.reached):
        found = _reach_from(code, namespace, function_of(frame))
        runs.reached.update((id(inner), inner) for inner in alive(found.codes.values()))
        runs.again |= runs.exchange(found.functions()) | runs.exchange(found.calling(), ALIASES)
    if runs.again or asks(frame.f_code, namespace):
        raise TracerEscapeError(
            "a traced value may be asked for its class by identity here, which is that of traced values",
            source=current_source(),
            remedy="write isinstance(x, float) or type(x) == float",
        )


def note_running(code: CodeType, namespace: Namespace) -> None:
    """Have the function run again where code is about to run that asks for a class, and that no name led to."""
    runs, original = NOW.runs, original_of(code)
    if runs is not None and not is_other(code) and asks(original, module_of(namespace)):
        runs.again |= runs.exchange(EXCHANGES.functions_of(original))


def _reach_from(code: CodeType, namespace: Namespace, function: FunctionType) -> Reach:
    """What is reached from code that a function runs, beginning with the function or class in which it was written."""
    notes = notes_of(code)
    found: Reach | None = notes.get("reach from")
    if found is None or not found.holds():
        found = notes["reach from"] = Reach(package_of(code.co_filename))
        names = found.of_code(function, code, namespace)
        found.follow([*names, bound(namespace, code.co_qualname.partition(".")[0])])
        if asks(code, namespace):
            own = (function for function in functions_in([namespace]) if original_of(function.__code__) is code)
            found.asking += map(weakref.ref, own)
    return found
