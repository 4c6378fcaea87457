"""`type(x) is float` of a traced value, which no object can answer as what it stands for.

A class of traced values is equal to the class it stands for, and is not the same: `type(x) is float` and
`type(x) in {float, int}` would be false in silence. So functions that call `type` with one argument, and do more with
the result than load an attribute of it, are exchanged (`fnad.trace.callees`) before they run. They are looked for
wherever the names in the code lead: to functions and classes, their methods, modules of the user's, and what
decorators wrapped. That is done for the function that is traced, and for each that computes and was not reached so;
what was found is kept as long as the names stand for the same.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import CellType, CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any, TypeAlias

from fnad.codes import notes_of, original_of
from fnad.errors import TracerEscapeError
from fnad.trace.bytecode import asks_for_classes, globals_of, reads_of
from fnad.trace.callees import NOW, Namespace, alive, bound, entry_of, functions_of, module_of
from fnad.trace.contents import is_library_module, is_users
from fnad.trace.libraries import is_library
from fnad.trace.source import current_source

CALLABLES = (FunctionType, MethodType, type, functools.partial)
"""Classes of what a name may stand for that is looked into."""

Reference: TypeAlias = "weakref.ref[Any] | None"
Space: TypeAlias = "Callable[[], Namespace | None]"
"""A namespace, as long as it is there."""


class Reach:
    """The functions that names lead to, and those of them that ask for a class.

    `names` are those that were followed, each with a reference to what it stands for if that can be called, else None,
    by their namespace. No namespace is kept alive: the code that this is noted of may be in it.
    """

    def __init__(self) -> None:
        self.names: dict[int, tuple[Space, list[tuple[str, Reference]]]] = {}
        self.codes: dict[int, weakref.ref[CodeType]] = {}
        self.asking: list[weakref.ref[FunctionType]] = []

    def holds(self) -> bool:
        """Whether the names stand for what they did."""
        for space, names in self.names.values():
            namespace = space()
            if namespace is None or not all(refers(reference, namespace.get(name)) for name, reference in names):
                return False
        return True

    def has(self, code: CodeType) -> bool:
        """Whether the names led to this code."""
        reference = self.codes.get(id(code))
        return reference is not None and reference() is code

    def functions(self) -> Iterator[FunctionType]:
        """The functions that ask for a class."""
        return alive(self.asking)

    def follow(self, values: Iterable[Any]) -> Reach:
        """Follow names, beginning with those of some values."""
        seen: dict[int, Any] = {}
        waiting = list(values)
        while waiting:
            value = waiting.pop()
            if id(value) not in seen:
                seen[id(value)] = value
                waiting += self.parts(value)
        return self

    def parts(self, value: Any) -> Iterator[Any]:
        """What a value leads to."""
        if isinstance(value, FunctionType):
            yield from self._of_function(value)
        elif isinstance(value, type):
            yield from of_class(value)
        elif isinstance(value, MethodType):
            yield from (value.__func__, type(value.__self__))
        elif isinstance(value, functools.partial):
            yield from (value.func, *value.args, *value.keywords.values())
        elif not isinstance(value, ModuleType):
            yield type(value)
            yield getattr(value, "__wrapped__", None) if callable(value) else None

    def _of_function(self, function: FunctionType) -> Iterator[Any]:
        yield from contents(function)
        yield getattr(function, "__wrapped__", None)
        code, namespace = original_of(function.__code__), module_of(function.__globals__)
        if not is_library(code.co_filename):
            if asks(code, namespace):
                self.asking.append(weakref.ref(function))
            yield from self.of_code(code, namespace)

    def of_code(self, code: CodeType, namespace: Namespace) -> Iterator[Any]:
        """What the names in code, and in what is defined in it, lead to."""
        codes = list(with_inner(code))
        self.codes.update((id(inner), weakref.ref(inner)) for inner in codes)
        attributes = frozenset[str]().union(*[reads_of(inner).attributes for inner in codes])
        for name in globals_of(code):
            value = self._named(namespace, name)
            yield value
            if isinstance(value, ModuleType) and not is_library_module(value):
                yield from (self._named(vars(value), attribute) for attribute in attributes & vars(value).keys())

    def _named(self, namespace: Namespace, name: str) -> Any:
        value = namespace.get(name)
        if id(namespace) not in self.names:
            self.names[id(namespace)] = space_of(namespace), []
        self.names[id(namespace)][1].append((name, reference_to(value)))
        return value


def space_of(namespace: Namespace) -> Space:
    """What finds a namespace as long as its module is there, or the first function in it."""
    module = sys.modules.get(namespace.get("__name__", ""))
    if module is not None and vars(module) is namespace:
        return partial(_vars_of, weakref.ref(module))
    own = (
        value for value in tuple(namespace.values()) if type(value) is FunctionType and value.__globals__ is namespace
    )
    function = next(own, None)
    return _nothing if function is None else partial(_globals_of, weakref.ref(function))


def _vars_of(module: weakref.ref[ModuleType]) -> Namespace | None:
    found = module()
    return None if found is None else vars(found)


def _globals_of(function: weakref.ref[FunctionType]) -> Namespace | None:
    found = function()
    return None if found is None else found.__globals__


def _nothing() -> None:
    return None


def reference_to(value: Any) -> Reference:
    """A reference to what can be called; None for anything else."""
    return weakref.ref(value) if isinstance(value, CALLABLES) else None


def refers(reference: Reference, value: Any) -> bool:
    """Whether a reference is that of a value."""
    return not isinstance(value, CALLABLES) if reference is None else reference() is value


def asks(code: CodeType, namespace: Namespace) -> bool:
    """Whether code asks for classes, by Python's `type`."""
    return asks_for_classes(code) and bound(namespace, "type") is type


def with_inner(code: CodeType) -> Iterator[CodeType]:
    """Code, and what is defined in it."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from with_inner(inner)


def of_class(kind: type) -> Iterator[Any]:
    """What a class leads to: its methods, properties and bases."""
    if is_users(kind):
        yield from kind.__bases__
        for value in tuple(vars(kind).values()):
            yield getattr(value, "__func__", None) or getattr(value, "fget", None) or value


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


# ---- who asks --------------------------------------------------------------------------------------------------------


class Entry(Reach):
    """What is reached from a function that is traced, which was followed to what is in its cells."""

    def __init__(self, function: FunctionType | None) -> None:
        super().__init__()
        self._contents = [reference_to(value) for value in contents(function)] if function is not None else []

    def is_of(self, function: FunctionType) -> bool:
        """Whether it is that of a function, and holds."""
        found = contents(function)
        return len(found) == len(self._contents) and all(map(refers, self._contents, found)) and self.holds()


def reach_of(f: Any) -> Reach:
    """What is reached from a function that is traced."""
    function = entry_of(f)
    if function is None:
        return Entry(None).follow([f])
    notes = notes_of(original_of(function.__code__))
    found: Entry | None = notes.get("reach")
    if found is None or not found.is_of(function):
        found = notes["reach"] = Entry(function)
        found.follow([f, function])
    return found


def check_classes(frame: FrameType) -> None:
    """Have the function run again where code that computes asks for a class, or leads to some that does.

    Raises `TracerEscapeError`, which is forgotten where the function runs again.
    """
    runs = NOW.runs
    if runs is None or id(frame.f_code) in runs.seen:
        return
    runs.seen[id(frame.f_code)] = frame.f_code
    code, namespace = original_of(frame.f_code), module_of(frame.f_globals)
    if not (runs.reach.has(code) or id(code) in runs.reached):
        found = _reach_from(code, namespace)
        runs.reached.update((id(inner), inner) for inner in alive(found.codes.values()))
        runs.again |= runs.exchange(found.functions())
    if runs.again or asks(frame.f_code, namespace):
        raise TracerEscapeError(
            "a traced value may be asked for its class by identity here, which is that of traced values",
            source=current_source(),
            remedy="write isinstance(x, float) or type(x) == float",
        )


def _reach_from(code: CodeType, namespace: Namespace) -> Reach:
    """What is reached from code that runs, beginning with the function or class in which it was written."""
    notes = notes_of(code)
    found: Reach | None = notes.get("reach from")
    if found is None or not found.holds():
        found = notes["reach from"] = Reach()
        found.follow([*found.of_code(code, namespace), bound(namespace, code.co_qualname.partition(".")[0])])
        if asks(code, namespace):
            own = (function for function in functions_of([namespace]) if original_of(function.__code__) is code)
            found.asking += map(weakref.ref, own)
    return found
