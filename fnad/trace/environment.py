"""What a Python function reads from outside itself, so that a program traced from it runs only while that is the same.

The code objects that run while a function is traced say which names they read. An `Environment` notes what each name
stands for just before the code runs, and follows functions to their cells and defaults, objects to the attributes of
these names, containers to their elements:

    names       a global, an attribute, a cell, a default, a module: the same object, or an equal number or string
    absence     of an attribute whose class has one, or which a program may do without: nothing of that name
    contents    of an array, the same bits; of a list, dict or set, the same elements; of a class, the same names and
                bases; of an object, the same class, and for one of NumPy's or SciPy's the same attributes

`holds()` looks at all of it again. What code only counts up is no part of it, until other code reads it: then it is
what it was before it was counted. Three things are taken at their word: what functions and classes of the standard
library, NumPy, what else this package stands on, and pandas do, though not that a name of their modules stands for
them, nor that a table has the content it had; an array that cannot be written to, nor what it is a view of, keeps its
content; a function under `functools.lru_cache` would return the same again. What can neither be compared nor trusted
holds never: an iterator, a file that is opened, a generator of random numbers that others share. What is not seen
stands in docs/edge_cases.md; `met` has what of it was noticed.

A large array is compared as a whole at each look, so it is better passed as an argument.
"""

from __future__ import annotations

import builtins
import dataclasses
import datetime
import functools
import gc
import importlib
import inspect
import io
import operator
import os
import sys
import threading
import time
from abc import ABCMeta, get_cache_token
from collections import deque
from collections.abc import Callable, Generator, Iterator, KeysView, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from importlib.machinery import ModuleSpec
from importlib.util import resolve_name
from itertools import chain, compress, repeat
from operator import is_
from types import (
    CellType,
    CodeType,
    FrameType,
    FunctionType,
    MemberDescriptorType,
    ModuleType,
)
from typing import Any, TypeAlias, cast
from weakref import ProxyTypes

import numpy as np

from fnad.codes import original_of
from fnad.ir.builder import is_tracing
from fnad.ir.program import Source
from fnad.placement import is_on_device
from fnad.records import NamedTuple
from fnad.store import uncollected
from fnad.trace.bytecode import Reads, address_of_function, function_of, line_naming, reads_of, sets_alone
from fnad.trace.capture import Array
from fnad.trace.changes import Change, array_changed, container_changed, was
from fnad.trace.conditions import MISSING, Attribute, Cell, Conditions, Name
from fnad.trace.contents import (
    CACHED,
    CONSTANTS,
    CONTAINERS,
    Check,
    Elements,
    FunctionCheck,
    Memory,
    NamesCheck,
    array_before,
    behind,
    check_of_array,
    check_of_array_like,
    check_of_class,
    check_of_elements,
    check_of_generator,
    check_of_names,
    check_of_remembered_function,
    check_of_table,
    compiled_from,
    draws_numbers,
    elements_of,
    implicit_methods,
    in_library,
    is_library_module,
    is_shared,
    is_table,
    is_users,
    memory_of_array,
    names_of,
    parts,
    reference_to,
    same,
    shared_states,
)
from fnad.trace.effects import effect_of_code, effect_of_function, effect_of_object
from fnad.trace.handle import Handle
from fnad.trace.identity import note_running
from fnad.trace.known_classes import (
    DESCRIBING,
    Classes,
    Get,
    LibraryClass,
    has_slots,
    known_of,
    library_class,
)
from fnad.trace.libraries import is_trusted
from fnad.trace.source import user_caller
from fnad.watch import profiled

Namespace: TypeAlias = Mapping[str, Any]

FILE_OF_C = cast("type", io.IOBase.__base__)  # of which all files are; to ask the abstract class takes longer
UNCHANGING = (*CONSTANTS, slice, CodeType, np.ufunc, FILE_OF_C)
SIMPLE = frozenset({bool, int, float, complex, str, bytes, type(None), range, slice, CodeType, np.ufunc, np.float64})
"""The commonest of their classes, of which there need be no further question."""

NUMBERS = frozenset({bool, int, float})
"""Classes of what may be counted up."""

NAMESPACE = operator.attrgetter("__dict__")

# ---- what reads attributes by strings, and what leads to something outside the process -------------------------------

ASKING = {id(asking) for asking in (getattr, hasattr, vars, dir, operator.attrgetter, operator.methodcaller)}
LISTING = (dataclasses.asdict, dataclasses.astuple, dataclasses.replace, inspect.getmembers, inspect.getattr_static)
REFLECTING = {id(cast("FunctionType", function).__code__) for function in LISTING}
IMPORT_MODULE = importlib.import_module.__code__

ENVIRON = type(os.environ).__getitem__.__code__
TELLING = {
    *[cast("FunctionType", function).__code__.co_filename for function in LISTING],
    *(code.co_filename for code in (ENVIRON, IMPORT_MODULE)),
}
"""Files of libraries with code of which it is noted that it runs."""

PASSED: set[str] = set()
"""Files of libraries without, as far as code of them ran."""

BUILTINS = vars(builtins).get
NOTHING: AbstractSet[str] = frozenset()
FILE, DRAW, CLOCK, COMPUTED = "a file is read", "random numbers are drawn", "the clock is read", "names are computed"
DATE = datetime.datetime
OUTSIDE = {
    **dict.fromkeys((open, os.open, os.stat, os.lstat, os.access, os.listdir, os.scandir, np.fromfile), FILE),
    **dict.fromkeys((time.time, time.time_ns, time.monotonic, time.monotonic_ns, time.process_time), CLOCK),
    **dict.fromkeys((time.perf_counter, time.perf_counter_ns, time.localtime, time.gmtime, time.ctime), CLOCK),
    **dict.fromkeys((DATE.now, DATE.today, datetime.date.today), CLOCK),
    os.urandom: DRAW,
    input: "input is read",
}
"""Functions of C that do so, each with what it reads."""


class Holder(NamedTuple):
    """Something with attributes: its own namespace, if it has one, and the classes it finds others in.

    A library's module `is_trusted`: what can be called in it is not followed.
    """

    value: Any
    namespace: Namespace | None
    known: Classes | None
    is_trusted: bool


class Met(NamedTuple):
    """Something outside that cannot be compared: `anew` if it is read at each call, for which that is traced again."""

    what: str
    source: Source | None
    anew: bool

    def __str__(self) -> str:
        place = f" at {self.source}" if self.source is not None else ""
        return f"{self.what}{place}  -> {'traced again at each call' if self.anew else 'as it was when traced'}"


class Environment:
    """What was read from outside, and what it was; `effect`, if asked for, what was perhaps done there."""

    def __init__(self, *, seeks_effects: bool = False) -> None:
        self.met: list[Met] = []
        self.effect = None if seeks_effects else "not looked for"
        self._seeks_effects = seeks_effects
        self._names: dict[tuple[int, str], tuple[Get, str, Any]] = {}
        self._absent: dict[int, tuple[KeysView[str], AbstractSet[str]]] = {}
        self._kinds: tuple[list[Any], list[type]] = [], []
        self._namespaces: tuple[list[Any], list[Namespace]] = [], []
        self._contents: list[tuple[Check, Any]] = []
        self._changing = ""
        self._failed: Check | None = None
        self._unread: dict[tuple[int, str], tuple[Get, str, Any]] = {}  # as they were, of what is counted up
        self._before: dict[int, tuple[Any, ...]] = {}
        self._sought: set[str] = set()
        self._counters: set[str] = set()
        self._optional: set[str] = set()
        self._strings: set[str] = set()
        self._reflects = False
        self._handles = False
        self._holders: list[Holder] = []
        self._of_classes: dict[int, tuple[Classes, list[Holder]]] = {}
        self._spacious: tuple[list[Holder], list[Callable[[AbstractSet[str]], bool]]] = [], []  # with a namespace
        self._plain: tuple[list[Holder], list[Namespace]] = [], []  # functions and modules, most of which are empty
        self._present: dict[int, set[str]] = {}  # by namespace, the names that were there when they were looked for
        self._needless: dict[int, tuple[Namespace, set[str]]] = {}  # by namespace, the names that a class has instead
        self._imports: set[str] = set()
        self._kept: dict[int, Any] = {id(value): value for value in (MISSING, sys.modules)}
        self._classes: set[int] = set()
        self._known: dict[int, Classes] = {}
        self._listed: set[int] = set()
        self._visited: dict[tuple[int, int], CodeType] = {}
        self._made: dict[int, CodeType] = {}  # by code, that which defines it
        self._closures: dict[int, CodeType] = {}  # made before
        self._is_inside = False  # another trace
        self._imported: ModuleSpec | None = None  # the last module of which the import began, within no other one

    def holds(self) -> bool:
        """Whether everything is as it was: first what was not the last time, which may change at each call."""
        failed, self._failed = self._failed, None
        if failed is not None and not failed():
            self._failed = failed
            return False
        for get, name, value in self._names.values():
            now = get(name, MISSING)
            if now is not value and not same(now, value):
                self._failed = functools.partial(_is_found, get, name, value)
                return False
        for unchanged, _ in self._contents:
            if not unchanged():
                self._failed = unchanged
                return False
        for get, name, value in self._unread.values():
            if not _is_counted(get, name, value):
                return False
        for keys, names in self._absent.values():
            if not keys.isdisjoint(names):
                return False
        return not self._changing and (not self._kinds[0] or self._are_of_kind())

    def conditions(self) -> Conditions | None:
        """What has to hold, for native code; None where something cannot be compared."""
        if self._changing:
            return None
        names, cells, attributes, others = self._kinds_of_names()
        others += [functools.partial(_is_counted, *counter) for counter in self._unread.values()]
        attributes += [(holder, "__dict__", namespace) for holder, namespace in zip(*self._namespaces, strict=True)]
        functions: list[FunctionCheck] = []
        empty: list[dict[str, Any]] = []
        for check, _ in self._contents:
            if isinstance(check, FunctionCheck):
                functions.append(check)
            elif isinstance(check, NamesCheck) and type(check.namespace) is dict and not check.names:
                empty.append(check.namespace)
            else:
                others.append(check)
        return Conditions(names, cells, attributes, [*zip(*self._kinds, strict=True)], functions, empty, others)

    def _kinds_of_names(self) -> tuple[list[Name], list[Cell], list[Attribute], list[Check]]:
        """The names in dictionaries, the cells, the attributes, and a check for each other name.

        Native code compares objects, so what is only equal to what it was, such as a number that is made when it is
        asked for, has a check of its own.
        """
        names, others = self._kinds_of_absent_names()
        cells: list[Cell] = []
        attributes: list[Attribute] = []
        for get, name, value in self._names.values():
            if get(name, MISSING) is not value:
                others.append(functools.partial(_is_found, get, name, value))
            elif type(space := getattr(get, "__self__", None)) is dict:
                names.append((space, name, value))
            elif isinstance(get, functools.partial) and get.func is _content:
                cells.append((get.args[0], value))
            elif isinstance(get, functools.partial) and get.func is getattr:
                attributes.append((get.args[0], name, value))
            else:
                others.append(functools.partial(_is_found, get, name, value))
        return names, cells, attributes, others

    def _kinds_of_absent_names(self) -> tuple[list[Name], list[Check]]:
        """The names that are not there, of dictionaries that are known, and a check for each other namespace."""
        spaces = {id(holder.namespace): holder.namespace for holder in self._holders}
        names: list[Name] = []
        others: list[Check] = []
        for where, (keys, missing) in self._absent.items():
            space = spaces.get(where)
            if type(space) is dict:
                names += [(cast("dict[str, Any]", space), name, MISSING) for name in missing]
            else:
                others.append(functools.partial(keys.isdisjoint, missing))
        return names, others

    def _are_of_kind(self) -> bool:
        """Whether objects have the classes and namespaces they had; in C, since there may be many."""
        objects, kinds = self._kinds
        holders, namespaces = self._namespaces
        return all(map(is_, map(type, objects), kinds)) and all(map(is_, map(NAMESPACE, holders), namespaces))

    @property
    def reads_anew(self) -> bool:
        """Whether something was met that cannot be compared, for which the function is traced at each call."""
        return bool(self._changing)

    def covers(self, other: Environment) -> bool:
        """Whether this holds, and has all in it that another one has, which holds too."""
        contents = {id(value) for _, value in self._contents}
        has_all = (
            other._names.keys() <= self._names.keys()
            and other._unread.keys() <= self._names.keys() | self._unread.keys()
            and contents.issuperset(id(value) for _, value in other._contents)
            and all(key in self._absent and names <= self._absent[key][1] for key, (_, names) in other._absent.items())
            and set(map(id, other._kinds[0])) <= set(map(id, self._kinds[0]))
        )
        return has_all and not other._changing and self.holds()

    def difference(self) -> Change:
        """What has changed."""
        unknown = Change(self._changing or "nothing has changed", next((m.source for m in self.met if m.anew), None))
        changed = chain(self._changed_names(), self._changed_contents(), self._changed_kinds())
        return next(changed, unknown)

    def _changed_names(self) -> Iterator[Change]:
        for get, name, value in self._names.values():
            if not same(now := get(name, MISSING), value):
                yield Change(f"{name} {was(value, now)}", self._place_of(name))
        for get, name, value in self._unread.values():
            if not _is_counted(get, name, value):
                now = get(name, MISSING)
                what = f"{name} {was(value, now)}" if now is not value else f"{name} has more than numbers in it"
                yield Change(what, self._place_of(name))
        for keys, names in self._absent.values():
            for name in names & keys:
                yield Change(f"{name} was not there, and is now", self._place_of(name))

    def _changed_contents(self) -> Iterator[Change]:
        for unchanged, value in self._contents:
            if not unchanged():
                yield self._changed_content(unchanged, value)

    def _changed_content(self, check: Check, value: Any) -> Change:
        if value is None:  # it is not kept alive
            return Change("an object it reads has changed", None)
        name, before = self._name_of(value), array_before(check)
        where = (
            container_changed(value, self._before.get(id(value), ()))
            if before is None
            else array_changed(memory_of_array(value), before)
        )
        what = f"the {type(value).__name__} {name or 'it reads'} has another content"
        return Change(what + where, self._place_of(name))

    def _changed_kinds(self) -> Iterator[Change]:
        for value, kind in zip(*self._kinds, strict=True):
            if type(value) is not kind:
                name = self._name_of(value)
                kinds = f"was of class {kind.__name__}, and is of class {type(value).__name__}"
                yield Change(f"{name or 'an object it reads'} {kinds}", self._place_of(name))
        for value, namespace in zip(*self._namespaces, strict=True):
            if NAMESPACE(value) is not namespace:
                name = self._name_of(value)
                yield Change(f"{name or 'an object it reads'} has another __dict__", self._place_of(name))

    def _name_of(self, value: Any) -> str | None:
        return next((name for _, name, held in self._names.values() if same(value, held)), None)

    def _place_of(self, name: str | None) -> Source | None:
        """A line that reads a name, or writes it, in the functions that were followed."""
        functions = [value for _, value in self._contents if isinstance(value, FunctionType)]
        lines = ((f.__code__, line_naming(f.__code__, name)) for f in functions if name is not None)
        found = next(((code, line) for code, line in lines if line is not None), None)
        return None if found is None else Source(found[0].co_filename, found[1], found[0].co_name)

    def released(self) -> Environment:
        """The same without references to objects, functions and what these hold, which may go when they like.

        What is found in them is looked for in them again, not in the namespaces they had.
        """
        before = {address: found for address, found in self._before.items() if address in self._kept}
        new, memory, owners = Environment(), Memory(before), self._owners()
        new.met, new._changing = self.met, self._changing
        for (where, _), (get, name, value) in self._names.items():
            found = found_in(*owners[where]) if where in owners else get
            new._names[id(found), name] = found, name, memory.of(value)
        for (where, _), (get, name, value) in self._unread.items():
            found = found_in(*owners[where]) if where in owners else get
            new._unread[id(found), name] = found, name, value
        for where, (keys, names) in self._absent.items():
            if where in owners:
                check = functools.partial(are_absent, found_in(*owners[where]), frozenset(names))
                new._contents.append((check, None))
            else:
                new._absent[where] = keys, names
        for value, kind in zip(*self._kinds, strict=True):
            reference = reference_to(value) or functools.partial(_itself, value)
            new._contents.append((functools.partial(is_of_kind, reference, kind), None))
        for check, value in self._contents:
            if isinstance(value, FunctionType):
                new._contents.append((check_of_remembered_function(value, memory), None))
            elif type(value) is dict and id(value) in owners:
                names = self._before[id(value)]
                new._contents.append((functools.partial(has_names, owners[id(value)][0], names), None))
            elif id(value) not in memory.seen:
                new._contents.append((check, value))
        return new

    def _owners(self) -> dict[int, tuple[Callable[[], Any], Callable[[Any], Get]]]:
        """By namespace or cell what it belongs to, without keeping that alive, and how it is found there."""
        owners: dict[int, tuple[Callable[[], Any], Callable[[Any], Get]]] = {}
        for value, namespace, *_ in self._holders:
            reference = reference_to(value)
            if reference is None or isinstance(value, (ModuleType, type)):
                continue
            owners[id(value)] = reference, lambda o: functools.partial(getattr, o)
            if namespace is not None:
                owners[id(namespace)] = reference, lambda o: NAMESPACE(o).get
            if isinstance(value, FunctionType):
                for i, cell in enumerate(value.__closure__ or ()):
                    owners[id(cell)] = reference, functools.partial(_cell_of, i)
        return owners

    @contextmanager
    def watching(self) -> Generator[None]:
        """Note what the functions read that this thread calls; a profiler that is set goes on.

        Garbage is not collected meanwhile: its finalizers, which may run anywhere, are no part of the functions.
        """
        collecting = {id(callback.__code__) for callback in gc.callbacks if isinstance(callback, FunctionType)}
        visited, closures = self._visited, self._closures
        self._is_inside = is_tracing()

        def note(frame: FrameType, event: str, arg: Any) -> None:
            code = frame.f_code
            if event == "c_call":
                self._call_outside(arg, frame)
                return
            is_known = (id(code), id(frame.f_globals)) in visited and id(code) not in closures
            if id(code) not in collecting and (not is_known or code is IMPORT_MODULE):
                self._begin(code, frame)

        def note_effects(frame: FrameType, event: str, arg: Any) -> None:
            if self.effect is None:
                if event == "call" or arg in OUTSIDE:
                    note(frame, event, arg)
                if event == "c_call":
                    self.effect = self.effect or effect_of_function(arg, frame.f_code)

        watch = profiled(note_effects) if self._seeks_effects else profiled(note, passed=PASSED, asked=OUTSIDE)
        states, others = shared_states(), _HERE.watching
        _HERE.watching = (*others, self)
        try:
            with uncollected(), watch:
                yield
        finally:
            _HERE.watching = others
            self._end(states)

    def _end(self, states: object) -> None:
        """Note what is known after the trace only: modules that were not there before, and random numbers."""
        for name in self._imports:
            self._note_module(name)
        if shared_states() != states:
            self._meet(DRAW)
        self._note_missing()
        self._visited.clear()  # of some hundred functions, which would take more than all that is compared
        self._made.clear()
        self._closures.clear()
        self._known.clear()

    # ---- code ------------------------------------------------------------------------------------------------------

    def _begin(self, code: CodeType, frame: FrameType) -> None:
        """Note what code reads and may do that a frame begins to run."""
        key = id(code), id(frame.f_globals)
        if key not in self._visited:
            if code.co_name == "<module>" and not self._is_importing() and _is_of_import(frame):
                self._imported = frame.f_globals.get("__spec__")
            self._visit(code, frame.f_globals)
            if self._note_effect(frame) or self._is_importing():
                del self._visited[key]
        if id(code) in self._closures and address_of_function(frame) not in self._kept:
            function = function_of(frame)
            if not self._is_made_here(function):
                self.follow(function)  # for the sake of its cells
        if code is IMPORT_MODULE and user_caller(frame):
            self._import_by_name(**frame.f_locals)

    def _visit(self, code: CodeType, namespace: dict[str, Any]) -> None:
        """Note what a code object reads that is about to run with these globals."""
        self._visited[id(code), id(namespace)] = code
        running, code = code, original_of(code)
        if is_trusted(code.co_filename):
            PASSED.update({running.co_filename} - TELLING)
            if not self._is_importing():
                self._visit_library(code)
            return
        if self._is_importing() or (id(namespace) not in self._kept and in_library(str(namespace.get("__name__")))):
            return
        if code.co_name == "<module>" and getattr(namespace.get("__spec__"), "_initializing", False):
            return  # likewise, by a loader of another library's
        self._kept[id(namespace)] = namespace
        note_running(running, namespace)
        reads = reads_of(code)
        for made in reads.made:
            self._made[id(made)] = code
        if code.co_freevars and id(code) not in self._made:
            self._closures[id(running)] = running
        self._note_globals(namespace, reads)
        for level, name in reads.modules:
            self._import(resolve_name("." * level + name, namespace.get("__package__") or ""))
        for line in reads.evaluated:
            self._meet(COMPUTED, Source(code.co_filename, line, code.co_name), anew=False)
        self._handles |= reads.handles
        self._strings |= reads.strings
        self._count(reads.counters)
        self._seek(reads.sought, self._strings if self._reflects else NOTHING)
        if reads.reflects:
            self._reflect()

    def _is_importing(self) -> bool:
        """Whether a module is being imported, which happens once: another run reads nothing of what that reads."""
        return getattr(self._imported, "_initializing", False)

    def _is_made_here(self, function: FunctionType) -> bool:
        """Whether it is sure that a function was made in this trace.

        It is where a variable has a value of the trace that only the function around it sets, which began after that.
        """
        code = original_of(function.__code__)
        maker = self._made.get(id(code))
        if maker is None or self._is_inside:
            return False
        cells = zip(code.co_freevars, function.__closure__ or (), strict=False)
        return any(is_of_trace(_content(cell, name, None)) and sets_alone(maker, name) for name, cell in cells)

    def _note_effect(self, frame: FrameType) -> bool:
        """Note what code may do beside computing; whether this was for a library, and may yet be for the user's."""
        if self.effect is not None:
            return False
        code, caller = frame.f_code, frame.f_back
        effect = effect_of_code(code, str(frame.f_globals.get("__name__")))
        if effect is None:
            return False
        is_inner = is_trusted(code.co_filename) and caller is not None and is_trusted(caller.f_code.co_filename)
        self.effect = None if is_inner else effect
        return is_inner

    def _visit_library(self, code: CodeType) -> None:
        if id(code) in REFLECTING:  # a code object is hashed with all its instructions
            self._reflect()
        elif code is ENVIRON:
            self.follow(os.environ)

    def _import(self, name: str) -> None:
        """Note a module that is imported; one that is not there yet, after the trace."""
        if name in sys.modules:
            self._note_module(name)
        else:
            self._imports.add(name)

    def _import_by_name(self, name: object, package: str | None) -> None:
        """Note the module that a call asks for; one that is no name, or of no package, is an error of the call."""
        if isinstance(name, str) and (package or not name.startswith(".")):
            with suppress(ImportError):
                self._import(resolve_name(name, package))

    def _note_module(self, name: str) -> None:
        for end in (*[i for i, letter in enumerate(name) if letter == "."], len(name)):
            self._note(sys.modules.get, sys.modules, name[:end])

    def _call_outside(self, function: Any, frame: FrameType) -> None:
        """Note that a function of C reads something outside the process, if it does so for the user's code."""
        caller, what = user_caller(frame), OUTSIDE[function]
        if caller is None or (what == CLOCK and caller is not frame):  # what a library asks it for is mostly a log
            return
        place = Source(caller.f_code.co_filename, caller.f_lineno, caller.f_code.co_name)
        self._meet(what, place, anew=what != CLOCK)

    def _meet(self, what: str, source: Source | None = None, *, anew: bool = True) -> None:
        self.effect = self.effect or what
        self.met.append(Met(what, source, anew))
        if anew:
            self._changing = what

    def _seek(self, names: AbstractSet[str], optional: AbstractSet[str] = NOTHING) -> None:
        """Look for more names in all that has attributes; the program may do without those that are `optional`."""
        handles = self._handles
        if not optional and self._sought >= names and not (handles and len(self._optional) < len(self._sought)):
            return
        new = (names | optional if optional else names) - self._sought
        self._sought = sought = self._sought | new
        missed = (sought if handles else optional) - self._optional
        self._optional |= missed
        if new := new | missed:
            self._look(new)

    # ---- names -----------------------------------------------------------------------------------------------------

    def _note(self, get: Get, where: object, name: str) -> None:
        """Note what a name stands for, the first time; `where` tells it apart from the same name elsewhere."""
        self.follow(self._enter(get, where, name))

    def _enter(self, get: Get, where: object, name: str) -> Any:
        """Note what a name stands for, not what that is made of, and return it."""
        key = id(where), name
        noted = self._names.get(key)
        if noted is None:
            noted = self._names[key] = self._unread.pop(key, None) or (get, name, get(name, MISSING))
        return noted[2]

    def _note_globals(self, namespace: dict[str, Any], reads: Reads) -> None:
        """Note what the globals and builtins stand for that code reads."""
        names, unused = reads.names | reads.strings if reads.reflects else reads.names, reads.unused
        if unused:
            for name in names & unused:
                self._note_use(namespace.get, namespace, name, reads)
        get, where, noted, unread = namespace.get, id(namespace), self._names, self._unread
        for name in names - unused if unused else names:  # as `_note`, with less to call: there are many
            key = where, name
            found = noted.get(key)
            if found is None:
                found = noted[key] = unread.pop(key, None) or (get, name, get(name, MISSING))
            value = found[2]
            if type(value) not in SIMPLE and id(value) not in self._kept:
                self.follow(value)
        for name in reads.names:
            if name not in namespace:
                self._enter(BUILTINS, builtins, name)

    def _note_use(self, get: Get, where: object, name: str, reads: Reads) -> None:
        """Note what a name stands for, unless its value has no say here; then it is kept for whoever asks later."""
        if name not in reads.unused:
            self._note(get, where, name)
            return
        self.effect = self.effect or f"{name} is written to"
        value = get(name, MISSING)
        if (name in reads.counted and type(value) in NUMBERS) or (name in reads.tallied and _has_numbers(value)):
            self._keep({(id(where), name): (get, name, value)})
        elif name in reads.extended and type(value) in (list, set, deque):
            self._names.setdefault((id(where), name), (get, name, value))
            self._before.setdefault(id(value), tuple(value))
        else:
            self._note(get, where, name)

    def _count(self, names: AbstractSet[str]) -> None:
        """Keep what attributes of these names are, that code only counts up, for whoever reads them later."""
        if new := names - self._counters:
            self._counters |= new
            for holder in list(self._holders):
                self._keep_counters(holder, new)

    def _keep(self, counters: dict[tuple[int, str], tuple[Get, str, Any]]) -> None:
        """Keep what counters are, and the elements of those that are lists or dicts."""
        self._unread = counters | self._unread
        for _, _, value in counters.values():
            if type(value) in (list, dict):
                self._before.setdefault(id(value), tuple(cast("Elements", elements_of(value))()))

    def _keep_counters(self, holder: Holder, names: AbstractSet[str]) -> None:
        """Keep the numbers that something has under these names.

        What else is found there runs code, or is changed in its place: then such attributes are as any others.
        """
        for name in names - self._sought:
            places = _places_of(holder, name)
            found = {(id(where), name): (get, name, get(name, MISSING)) for get, where in places}
            if not found:
                continue
            values = [value for _, _, value in found.values()]
            if keeps_plainly(holder) and all(v is MISSING or type(v) in NUMBERS or _has_numbers(v) for v in values):
                self.effect = self.effect or f"{name} is written to"
                self._keep(found)
                if holder.namespace is not None:
                    self._present.setdefault(id(holder.namespace), set()).add(name)
            else:
                self._seek({name})

    def _look(self, names: AbstractSet[str]) -> None:
        """Note the attributes of these names.

        All at once, since it is each name for each of many objects, of which few are there: these are looked up.
        """
        found: list[tuple[Holder, AbstractSet[str]]] = []
        for known, holders in self._of_classes.values():
            if telling := known.telling(names):
                found += zip(holders, repeat(telling))
        if described := names & DESCRIBING:
            found += zip(self._plain[0], repeat(described))
        holders, have_none = self._spacious
        having = compress(holders, [not has_none(names) for has_none in have_none])
        found += [self._present_in(holder, names) for holder in having]
        for holder in compress(*self._plain):
            if not cast("Namespace", holder.namespace).keys().isdisjoint(names):
                found.append(self._present_in(holder, names))
        self._look_up(found)

    def _look_at(self, holder: Holder) -> None:
        """Note those attributes of something that is held from now on."""
        names, known = self._sought, holder.known
        telling = names & DESCRIBING if known is None else known.telling(names)
        found: list[tuple[Holder, AbstractSet[str]]] = [(holder, telling)]
        if holder.namespace and not holder.namespace.keys().isdisjoint(names):
            found.append(self._present_in(holder, names))
        self._look_up(found)
        if self._counters:
            self._keep_counters(holder, self._counters)

    def _present_in(self, holder: Holder, names: AbstractSet[str]) -> tuple[Holder, AbstractSet[str]]:
        """Those of some names that are there."""
        namespace = cast("Namespace", holder.namespace)
        present = names & namespace.keys()
        self._present.setdefault(id(namespace), set()).update(present)
        return holder, present

    def _look_up(self, found: Sequence[tuple[Holder, AbstractSet[str]]]) -> None:
        """Note attributes; what is found may lead to more, which all holders are asked for."""
        for holder, names in found:
            for name in names:
                self._look_up_one(holder, name)

    def _known_of(self, classes: tuple[type, ...]) -> Classes:
        known = self._known.get(id(classes))
        if known is None:
            known = self._known[id(classes)] = known_of(classes)
        return known

    def _reflect(self) -> None:
        """Note all attributes of all that has some, since names may be asked for by strings."""
        self._reflects = True
        self._seek(NOTHING, self._strings)
        for holder in list(self._holders):
            self._list(holder)

    def list_attributes(self, value: Any, names: AbstractSet[str]) -> None:
        """Note all attributes of an object that was followed; of another one, which may be a copy, those that count."""
        self._seek(self._counters & names)
        if id(value) in self._kept and id(value) not in self._listed:
            for holder in [holder for holder in self._holders if holder.value is value]:
                self._list(holder)

    def _list(self, holder: Holder) -> None:
        """Note all attributes that an object has, and that it has no others; modules have too many.

        Those of a table are pandas's own, and its content is compared.
        """
        if id(holder.value) in self._listed or isinstance(holder.value, ModuleType) or is_table(holder.value):
            return
        self._listed.add(id(holder.value))
        if holder.namespace is not None:
            self._contents.append((check_of_names(holder.namespace), holder.namespace))
            self._before[id(holder.namespace)] = tuple(holder.namespace)
            for name in tuple(holder.namespace):
                found = self._enter(holder.namespace.get, holder.namespace, name)
                if not is_shared(found):  # what is drawn of it is seen
                    self.follow(found)
        for kind in holder.known.classes if holder.known is not None else ():
            for name, value in tuple(vars(kind).items()):
                if isinstance(value, MemberDescriptorType) or (is_users(kind) and not hasattr(type(value), "__get__")):
                    self._look_up_one(holder, name)

    def _look_up_one(self, holder: Holder, name: str) -> None:
        """Note an attribute, or its absence where a class has it or the program may do without."""
        value, namespace, known, is_trusted = holder
        is_in_class = False
        if known is not None and name in known.names:
            is_in_class = True
            self._look_in_classes(value, known, name)
        is_described = name in DESCRIBING and isinstance(value, (FunctionType, type))
        if is_described or (known is not None and known.is_local and isinstance(value, threading.local)):
            self._note(functools.partial(getattr, value), value, name)  # each thread has values of its own
        if namespace is None:
            return
        if name in namespace:
            found = self._enter(namespace.get, namespace, name)
            if not (is_trusted and callable(found)) or isinstance(found, type):
                self.follow(found)
        elif is_in_class and name not in self._optional:  # what is optional is noted in the end
            self._needless.setdefault(id(namespace), (namespace, set()))[1].add(name)

    def _look_in_classes(self, value: Any, known: Classes, name: str) -> None:
        """Note what classes have of a name, all of them, since `super()` passes over some."""
        for kind, get in known.noted:
            member = get(name, MISSING)
            if isinstance(member, MemberDescriptorType):  # a slot: the value is the object's own
                self._note(functools.partial(getattr, value), value, name)
            elif member is not MISSING and kind in known.users:
                self._note(get, kind, name)

    def _note_missing(self) -> None:
        """Note the absence of names: for each namespace, of those that the program may do without and did not find."""
        for namespace, names in self._needless.values():
            self._note_absent(namespace, names)
        self._needless.clear()
        optional = frozenset(self._optional | self._counters if self._handles else self._optional)
        for namespace in [holder.namespace for holder in self._holders if optional and holder.namespace is not None]:
            present = self._present.get(id(namespace))
            if missing := optional - present if present else optional:
                self._note_absent(namespace, missing)
        self._present.clear()

    def _note_absent(self, namespace: Namespace, names: AbstractSet[str]) -> None:
        """Note that a namespace has nothing of these names."""
        noted = self._absent.get(id(namespace))
        self._absent[id(namespace)] = (namespace.keys(), names) if noted is None else (noted[0], noted[1] | names)

    # ---- values ----------------------------------------------------------------------------------------------------

    @property
    def read(self) -> KeysView[int]:
        """The identities of all that was followed: not of what the function only appended to."""
        return self._kept.keys()

    def follow(self, value: Any) -> None:
        """Note what a value is made of, so that a change inside it is seen."""
        kind = type(value)
        if kind in SIMPLE or id(value) in self._kept or (self._seeks_effects and self.effect is not None):
            return  # to whom looks for effects, the rest is of no use once one was found
        if kind is FunctionType:  # the commonest ones are asked for first
            self._kept[id(value)] = value
            self._follow_function(value)
        elif kind in CONTAINERS:
            self._kept[id(value)] = value
            self._follow_elements(value, cast("Elements", elements_of(value)))
        elif kind in ProxyTypes:
            self.follow(behind(value))
        elif not isinstance(value, UNCHANGING):
            self._kept[id(value)] = value
            self._follow_other(value)

    def _follow_other(self, value: Any) -> None:
        if id(value) in ASKING:
            self._reflect()
        if type(value) is np.ndarray and not value.dtype.hasobject:
            self._follow_array(value)
        elif isinstance(value, ModuleType):
            self._hold_module(value)
        elif isinstance(value, type):
            self._follow_class(cast("type[Any]", value))
        elif (library := library_class(type(value))) is None or library.is_others:
            self._follow_object(value, library)
        elif (function := compiled_from(value)) is not None:  # the rest of it is Numba's
            self.follow(function)
        elif not isinstance(value, Handle):  # a transformed function, which nobody else leads from to its own
            self.follow(getattr(value, "__wrapped__", None))
            self.follow(getattr(value, "rule", None))

    def _follow_class(self, value: type[Any]) -> None:
        if isinstance(value, ABCMeta):
            self._enter(lambda _, __: get_cache_token(), ABCMeta, "register")
        if is_users(value):
            self._hold(value, None, (*value.__mro__, *cast("type", type(value)).__mro__))
            if getattr(value, "_is_protocol", False):
                self._seek(NOTHING, {*vars(value), *vars(value).get("__annotations__", ())})

    def _follow_function(self, function: FunctionType) -> None:
        code = original_of(function.__code__)
        if is_trusted(code.co_filename):  # a transform, for example: nobody else has its cells
            for cell in function.__closure__ or ():
                self.follow(cell.cell_contents)
            return
        defaults, by_name = function.__defaults__, function.__kwdefaults__
        self._contents.append((FunctionCheck(function, code, defaults, by_name), function))
        if defaults is not None:
            self.follow(defaults)
        if by_name is not None:
            self.follow(by_name)
        cells = function.__closure__  # none for the frame that Numba shows a profiler: what it compiled is fixed
        if cells:
            reads = reads_of(code)
            for name, cell in zip(code.co_freevars, cells, strict=False):
                self._note_use(functools.partial(_content, cell), cell, name, reads)
        self._hold_plain(function, vars(function))

    def _follow_object(self, value: Any, library: LibraryClass | None) -> None:
        self.effect = self.effect or effect_of_object(value)
        if library is None or library.is_wrapper:
            self._follow_wrapper(value)
        namespace = _namespace(value) if library is None or library.has_namespace else None
        if namespace is not None or library is None:
            self._note_kind(value, namespace)
        if self._known_of(type(value).__mro__).has_content if library is None else library.has_content:
            self._follow_content(value)
            if namespace is None and elements_of(value) is None and hasattr(type(value), "__next__"):
                self._meet("an iterator is read")
        self._hold(value, namespace, type(value).__mro__, library)

    def _follow_wrapper(self, value: Any) -> None:
        for part in parts(value):
            self.follow(part)
        if isinstance(value, (operator.attrgetter, operator.methodcaller)):
            self._seek(names_of(value))
        if isinstance(value, ContextVar):
            self._note(lambda _, default: value.get(default), value, "value")
        if isinstance(value, CACHED):  # what it returned before, it returns without running
            self._visit(value.__wrapped__.__code__, value.__wrapped__.__globals__)

    def _note_kind(self, value: Any, namespace: Namespace | None) -> None:
        self._kinds[0].append(value)
        self._kinds[1].append(type(value))
        if namespace is not None and getattr(value, "__dict__", None) is namespace:
            self._namespaces[0].append(value)
            self._namespaces[1].append(namespace)

    def _follow_content(self, value: Any) -> None:
        elements = elements_of(value)
        if elements is not None:
            self._follow_elements(value, elements)
        elif isinstance(value, np.ndarray):
            self._follow_array(value)
        elif draws_numbers(value):
            self._contents.append((check_of_generator(value), value))
        elif is_table(value):
            check = check_of_table(value)
            self._contents.extend([(check, value)] if check else [])
            if check is None:
                self._meet(f"a {type(value).__name__} of pandas is read")
        elif is_on_device(value):
            self._meet("an array of a device is read")
        elif hasattr(type(value), "__array__"):
            self._contents.append((check_of_array_like(value), value))

    def _follow_array(self, value: Array) -> None:
        check = check_of_array(value)
        if check is not None:
            self._contents.append((check, value))

    def _follow_elements(self, value: Any, elements: Elements) -> None:
        if not isinstance(value, tuple):
            before = self._before.setdefault(id(value), tuple(elements()))
            self._contents.append((check_of_elements(elements, before), value))
        for element in elements():
            self.follow(element)

    def _hold(
        self,
        value: Any,
        namespace: Namespace | None,
        classes: tuple[type, ...],
        library: LibraryClass | None = None,
    ) -> None:
        """Hold what has attributes, and finds others in classes; `library` is what is known of its class, if so."""
        known = self._known_of(classes)
        if library is None:
            self._note_classes(known)
        holder = Holder(value, namespace, known, False)
        if namespace is not None or (tells_names(value, known) if library is None else library.has_slots):
            self._holders.append(holder)
            self._of_classes.setdefault(id(known), (known, []))[1].append(holder)
            if namespace is not None:
                self._spacious[0].append(holder)
                self._spacious[1].append(namespace.keys().isdisjoint)
            self._look_at(holder)
        if "__getattr__" in known.names if library is None else library.makes_attributes:
            self._make_attributes()
        if self._reflects or known.is_unwatched:
            self._list(holder)

    def _hold_plain(self, value: FunctionType | ModuleType, namespace: Namespace, *, is_trusted: bool = False) -> None:
        """Hold a function or a module."""
        holder = Holder(value, namespace, None, is_trusted)
        self._holders.append(holder)
        holders, namespaces = self._plain
        holders.append(holder)
        namespaces.append(namespace)
        if namespace or not DESCRIBING.isdisjoint(self._sought):
            self._look_at(holder)
        if self._reflects:
            self._list(holder)

    def _hold_module(self, module: ModuleType) -> None:
        namespace, is_trusted = vars(module), is_library_module(module)
        self._hold_plain(module, namespace, is_trusted=is_trusted)
        if "__getattr__" in namespace and not is_trusted:
            self._make_attributes()

    def _make_attributes(self) -> None:
        """Note that something has a function that is asked for what it has not: any attribute may be missing."""
        self._handles = True
        self._seek(NOTHING)

    def _note_classes(self, known: Classes) -> None:
        for kind, (_, names, special) in known.users.items():
            if id(kind) not in self._classes:
                self._classes.add(id(kind))
                self._contents.append((check_of_class(kind, names), kind))
                for name in implicit_methods(kind, special):
                    self._note(vars(kind).get, kind, name)


class _Here(threading.local):
    watching: tuple[Environment, ...] = ()


_HERE = _Here()


def note_attributes(value: Any, names: AbstractSet[str]) -> None:
    """Note that this package reads all attributes of an object, of these names, for the function that is traced."""
    for environment in _HERE.watching:
        environment.list_attributes(value, names)


def _is_counted(get: Get, name: str, value: Any) -> bool:
    """Whether a counter is still a number, or was not there, as where only the class has one yet."""
    now = get(name, MISSING)
    if type(value) in (list, dict):
        return now is value and _has_numbers(now)
    return type(now) in NUMBERS or (now is MISSING and value is MISSING)


def _has_numbers(value: Any) -> bool:
    """Whether a value is a list or dict of numbers alone, for which no code of anybody's runs."""
    elements = value.values() if type(value) is dict else value if type(value) is list else [None]
    return NUMBERS.issuperset(map(type, elements))


def _places_of(holder: Holder, name: str) -> list[tuple[Get, object]]:
    """Where something has an attribute: in its classes, a slot or its namespace, each with what tells it apart."""
    value, namespace, known, _ = holder
    places: list[tuple[Get, object]] = []
    if known is not None and name in known.names:
        for kind, get in known.noted:
            member = get(name, MISSING)
            if isinstance(member, MemberDescriptorType):
                places.append((functools.partial(getattr, value), value))
            elif member is not MISSING and kind in known.users:
                places.append((get, kind))
    if namespace is not None and (places or name in namespace):
        places.append((namespace.get, namespace))
    return places


def keeps_plainly(holder: Holder) -> bool:
    """Whether attributes are set with no code of anybody's, and read by none that is not watched."""
    value, kind = holder.value, type(holder.value)
    if kind is FunctionType or kind is ModuleType:
        return not holder.is_trusted
    if isinstance(value, type):
        return kind.__setattr__ is type.__setattr__ and kind.__getattribute__ is type.__getattribute__
    is_plain = kind.__setattr__ is object.__setattr__ and kind.__getattribute__ is object.__getattribute__
    libraries = [base for base in kind.__mro__ if not is_users(base)]
    return is_plain and not any("__dict__" in vars(base) or has_slots(base) for base in libraries)


def _is_found(get: Get, name: str, value: Any) -> bool:
    now = get(name, MISSING)
    return now is value or same(now, value)


def _is_of_import(frame: FrameType) -> bool:
    """Whether a frame of a module is run by Python's own import: by `exec`, a function may run such code too."""
    return frame.f_back is not None and frame.f_back.f_code.co_filename.startswith("<frozen importlib.")


def tells_names(value: Any, known: Classes) -> bool:
    """Whether anything is noted of attributes of what has no namespace: of few containers and arrays is any."""
    return bool(known.noted) or isinstance(value, (type, threading.local))


def is_of_trace(value: Any) -> bool:
    """Whether a value is traced, in a trace under way, or a tuple in which there is such."""
    if type(value) is tuple:
        return any(map(is_of_trace, value))
    return issubclass(type(value), Handle) and value.is_alive


def found_in(reference: Callable[[], Any], reach: Callable[[Any], Get]) -> Get:
    """The function that finds names in what is not kept alive."""

    def get(name: str, default: object) -> Any:
        owner = reference()
        return default if owner is None else reach(owner)(name, default)

    return get


def are_absent(get: Get, names: AbstractSet[str]) -> bool:
    """Whether nothing of these names is found."""
    return all(get(name, MISSING) is MISSING for name in names)


def is_of_kind(reference: Callable[[], Any], kind: type) -> bool:
    """Whether an object is there, and of this class."""
    return type(reference()) is kind


def has_names(reference: Callable[[], Any], names: tuple[str, ...]) -> bool:
    """Whether an object is there, and has attributes of these names, in this order."""
    owner = reference()
    return owner is not None and tuple(NAMESPACE(owner)) == names


def _itself(value: Any) -> Any:
    return value


def _cell_of(number: int, function: FunctionType) -> Get:
    return functools.partial(_content, (function.__closure__ or ())[number])


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
