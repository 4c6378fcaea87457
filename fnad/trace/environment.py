"""What a Python function reads from outside itself, so that a program traced from it runs only while that is the same.

The code objects that run while a function is traced say which names they read. An `Environment` notes what each name
stands for just before the code runs, and follows functions to their cells and defaults, objects to the attributes of
these names, containers to their elements:

    names       a global, an attribute, a cell, a default: the same object, or an equal number or string
    contents    of an array, the same bits; of a list, dict or set, the same elements

`holds()` looks at all of it again. Three things are taken at their word: the standard library, NumPy and what else this
package stands on do not change; an array that cannot be written to, nor what it is a view of, keeps its content; a
function under `functools.lru_cache` would return the same again. What can neither be compared nor trusted, an iterator
for example, or a generator of random numbers that others share, holds never. What is not seen: an attribute of a module
asked for by a computed name; clocks, files and other sources outside the process.

A large array is compared as a whole at each look, so it is better passed as an argument.
"""

from __future__ import annotations

import functools
import gc
import io
import operator
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.util import resolve_name
from types import CellType, CodeType, FrameType, FunctionType, MemberDescriptorType, ModuleType
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from fnad.trace.contents import (
    CACHED,
    CONSTANTS,
    Check,
    Elements,
    check_of_array,
    check_of_array_like,
    check_of_elements,
    check_of_function,
    check_of_generator,
    draws_numbers,
    elements_of,
    in_library,
    is_library_module,
    is_own,
    names_of,
    parts,
    same,
    shared_states,
)
from fnad.trace.libraries import is_library
from fnad.trace.reads import Reads, reads_of

Get: TypeAlias = Callable[[str, object], Any]
"""Like dict.get: from a name and a default to what the name stands for now."""

Namespace: TypeAlias = Mapping[str, Any]
Profiler: TypeAlias = Callable[[FrameType, str, Any], object]

MISSING = object()
UNCHANGING = (*CONSTANTS, slice, CodeType, np.ufunc, io.IOBase)


class Holder(NamedTuple):
    """Something with attributes: its own namespace, if it has one, and the classes it finds others in."""

    value: Any
    namespace: Namespace | None
    classes: tuple[type, ...]


class Environment:
    """What was read from outside, and what it was."""

    def __init__(self) -> None:
        self._names: dict[tuple[int, str], tuple[Get, str, Any]] = {}
        self._contents: list[tuple[Check, Any]] = []
        self._changing = ""
        self._unread: dict[tuple[int, str], tuple[Get, str, Any]] = {}
        self._before: dict[int, tuple[Any, ...]] = {}
        self._sought: set[str] = set()
        self._optional: set[str] = set()
        self._reflects = False
        self._holders: list[Holder] = []
        self._kept: dict[int, Any] = {id(MISSING): MISSING}
        self._visited: dict[tuple[int, int], CodeType] = {}
        self._explained: dict[int, CodeType] = {}

    def holds(self) -> bool:
        """Say whether everything is as it was."""
        for get, name, value in self._names.values():
            now = get(name, MISSING)
            if now is not value and not same(now, value):
                return False
        for unchanged, _ in self._contents:
            if not unchanged():
                return False
        return not self._changing

    def covers(self, other: Environment) -> bool:
        """Say whether this holds, and has all in it that another one has, which holds too."""
        contents = {id(value) for _, value in self._contents}
        has_all = other._names.keys() <= self._names.keys() and contents.issuperset(id(v) for _, v in other._contents)
        return has_all and not other._changing and self.holds()

    def difference(self) -> str:
        """Return what is no longer as it was, in words."""
        for get, name, value in self._names.values():
            if not same(get(name, MISSING), value):
                return f"{name!r} has changed"
        for unchanged, value in self._contents:
            if not unchanged():
                return f"the content of a {type(value).__name__} has changed"
        return self._changing or "nothing has changed"

    @contextmanager
    def watching(self) -> Generator[None]:
        """Note what the functions read that this thread calls; a profiler that is set goes on."""
        previous: object = sys.getprofile()
        chained = cast("Profiler | None", previous if callable(previous) else None)
        visited = self._visited
        collecting = {callback.__code__ for callback in gc.callbacks if isinstance(callback, FunctionType)}

        def on_event(frame: FrameType, event: str, arg: Any) -> None:
            code = frame.f_code
            if event == "call" and (id(code), id(frame.f_globals)) not in visited and code not in collecting:
                self._visit(code, frame.f_globals)
            if chained is not None:
                chained(frame, event, arg)

        states = shared_states()
        sys.setprofile(on_event)
        try:
            yield
        finally:
            sys.setprofile(chained)
            if shared_states() != states:
                self._changing = "random numbers are drawn"
            if previous is not None and chained is None:
                cast("Any", previous).enable()  # cProfile's, which cannot be called

    # ---- code ------------------------------------------------------------------------------------------------------

    def _visit(self, code: CodeType, namespace: dict[str, Any]) -> None:
        """Note what a code object reads that is about to run with these globals."""
        self._visited[id(code), id(namespace)] = code
        if is_library(code.co_filename) or in_library(str(namespace.get("__name__"))):
            return
        self._kept[id(namespace)] = namespace
        self._explain(code)
        reads = reads_of(code)
        for name in reads.names | reads.constants:
            self._note_use(namespace.get, namespace, name, reads)
        for level, name in reads.modules:
            self.follow(sys.modules.get(resolve_name("." * level + name, namespace.get("__package__") or "")))
        self._reflects |= reads.reflects
        self._seek({*reads.attributes, code.co_name} - self._sought, reads.constants - self._optional)

    def _explain(self, code: CodeType) -> None:
        """Follow the functions that a code object with free variables belongs to, for the sake of their cells.

        They are followed already, or made by code that runs in this trace; or else looked for among all there are.
        """
        self._explained.update((id(inner), inner) for inner in code.co_consts if isinstance(inner, CodeType))
        if set(code.co_freevars) - {"__class__"} and id(code) not in self._explained:
            for found in gc.get_referrers(code):
                if isinstance(found, FunctionType):
                    self.follow(found)

    def _seek(self, names: set[str], optional: frozenset[str]) -> None:
        """Look for more names in all that has attributes."""
        self._sought |= names
        self._optional |= optional
        for holder in list(self._holders):
            self._look(holder, names, optional)

    # ---- names -----------------------------------------------------------------------------------------------------

    def _note(self, get: Get, where: object, name: str) -> None:
        """Note what a name stands for, the first time; `where` tells it apart from the same name elsewhere."""
        key = id(where), name
        if key not in self._names:
            self._names[key] = self._unread.pop(key, None) or (get, name, get(name, MISSING))
        self.follow(self._names[key][2])

    def _note_use(self, get: Get, where: object, name: str, reads: Reads) -> None:
        """Note what a name stands for, unless its value has no say here; then it is kept for whoever asks later."""
        value = get(name, MISSING)
        if name in reads.counted and isinstance(value, int):
            self._unread.setdefault((id(where), name), (get, name, value))
        elif name in reads.extended and type(value) in (list, set, deque):
            self._names.setdefault((id(where), name), (get, name, value))
            self._before.setdefault(id(value), tuple(value))
        else:
            self._note(get, where, name)

    def _look(self, holder: Holder, names: Iterable[str], optional: Iterable[str]) -> None:
        """Note the attributes of these names; where names may be asked for by strings, all that an object has."""
        for name in tuple(names):  # what is found may lead to more names, which are looked for in all holders then
            self._look_up(holder, name)
        if self._reflects:
            namespace = holder.namespace or {}
            for name in (*optional, *(tuple(namespace) if holder.classes else ())):
                if not self._look_up(holder, name) and holder.namespace is not None:
                    self._note(namespace.get, namespace, name)

    def _look_up(self, holder: Holder, name: str) -> bool:
        """Note an attribute, if the object or a class of it has it, and say so."""
        is_own_attribute = holder.namespace is not None and name in holder.namespace
        if holder.namespace is not None and is_own_attribute:
            self._note(holder.namespace.get, holder.namespace, name)
        if isinstance(holder.value, threading.local):  # each thread has values of its own
            self._note(functools.partial(getattr, holder.value), holder.value, name)
        for kind in holder.classes:
            if name in vars(kind):
                self._note_inherited(holder, kind, name)
                return True
        return is_own_attribute

    def _note_inherited(self, holder: Holder, kind: type, name: str) -> None:
        if isinstance(vars(kind)[name], MemberDescriptorType):  # a slot: the value is the object's own
            self._note(functools.partial(getattr, holder.value), holder.value, name)
        elif not in_library(kind.__module__):
            for nearer in holder.classes[: holder.classes.index(kind) + 1]:  # those before it may get the name
                self._note(vars(nearer).get, nearer, name)
            if holder.namespace is not None:
                self._note(holder.namespace.get, holder.namespace, name)

    # ---- values ----------------------------------------------------------------------------------------------------

    def follow(self, value: Any) -> None:
        """Note what a value is made of, so that a change inside it is seen."""
        if isinstance(value, UNCHANGING) or id(value) in self._kept:
            return
        self._kept[id(value)] = value
        if isinstance(value, FunctionType):
            self._follow_function(value)
        elif isinstance(value, ModuleType):
            if not is_library_module(value):
                self._hold(value, vars(value), ())
        elif isinstance(value, type):
            if not in_library(value.__module__):
                self._hold(value, None, (*value.__mro__, *cast("type", type(value)).__mro__))
        elif not is_own(type(value).__module__):
            self._follow_object(value)

    def _follow_function(self, function: FunctionType) -> None:
        self._explained[id(function.__code__)] = function.__code__
        if is_library(function.__code__.co_filename):  # a transform, for example: nobody else has its cells
            for cell in function.__closure__ or ():
                self.follow(cell.cell_contents)
            return
        self._contents.append((check_of_function(function), function))
        self.follow(function.__defaults__)
        self.follow(function.__kwdefaults__)
        reads = reads_of(function.__code__)
        cells = function.__closure__ or ()  # none for the frame that Numba shows a profiler: what it compiled is fixed
        for name, cell in zip(function.__code__.co_freevars, cells, strict=False):
            self._note_use(functools.partial(_content, cell), cell, name, reads)
        self._hold(function, vars(function), ())

    def _follow_object(self, value: Any) -> None:
        for part in parts(value):
            self.follow(part)
        if isinstance(value, operator.attrgetter):
            self._seek(names_of(value) - self._sought, frozenset())
        if isinstance(value, ContextVar):
            self._note(lambda _, default: value.get(default), value, "value")
        if isinstance(value, CACHED):  # what it returned before, it returns without running
            self._visit(value.__wrapped__.__code__, value.__wrapped__.__globals__)
        elements, namespace = elements_of(value), _namespace(value)
        if elements is not None:
            self._follow_elements(value, elements)
        elif isinstance(value, np.ndarray):
            check = check_of_array(value)
            self._contents.extend([(check, value)] if check else [])
        elif draws_numbers(value):
            self._contents.append((check_of_generator(value), value))
        elif hasattr(type(value), "__array__"):
            self._contents.append((check_of_array_like(value), value))
        elif namespace is None and hasattr(type(value), "__next__"):
            self._changing = "an iterator is read"
        self._hold(value, namespace, type(value).__mro__)

    def _follow_elements(self, value: Any, elements: Elements) -> None:
        if not isinstance(value, (tuple, frozenset)):
            self._contents.append((check_of_elements(elements, self._before.get(id(value))), value))
        for element in elements():
            self.follow(element)

    def _hold(self, value: Any, namespace: Namespace | None, classes: tuple[type, ...]) -> None:
        holder = Holder(value, namespace, classes)
        self._holders.append(holder)
        self._look(holder, self._sought, self._optional)


def _content(cell: CellType, _: str, default: object) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # the variable has no value yet
        return default


def _namespace(value: Any) -> Namespace | None:
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
