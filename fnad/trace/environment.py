"""The values from outside that a traced function read (`fnad.trace.recording`), and whether they are as they were.

    names       a global, an attribute, a cell, a default, a module: the same object, or an equal number or string
    absence     of an attribute or a global: nothing of that name
    contents    of an array, the same bits; of a list, dict or set, the same elements; of a class, the same names and
                bases; of an object, the same class, and for a NumPy or SciPy object the same attributes

`holds()` looks at all of it again. A counter is not compared, until other code reads it: then its value is the one
before it was counted. A value that can be neither compared nor trusted forces a trace at each call: an iterator, a file
that is opened, a generator of random numbers that others share. `met` has those that were noticed.

A large array is compared as a whole at each look, so it is better passed as an argument.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from operator import is_
from types import CellType, FunctionType, ModuleType
from typing import Any, TypeAlias, cast

import numpy as np

from fnad.ir.program import Source
from fnad.records import NamedTuple
from fnad.trace.changes import Change, array_changed, container_changed, was
from fnad.trace.conditions import MISSING, Attribute, Cell, Conditions, Name
from fnad.trace.contents import (
    Check,
    FunctionCheck,
    Memory,
    NamesCheck,
    array_before,
    check_of_remembered_function,
    draws_numbers,
    memory_of_array,
    reference_to,
    same,
)
from fnad.trace.source import line_naming

Namespace: TypeAlias = Mapping[str, Any]

Get: TypeAlias = Callable[[str, object], Any]
"""Like dict.get: from a name and a default to the present value of the name."""

NUMBERS = {*map(id, (bool, int, float))}
"""The identities of the classes of counters."""

NAMESPACE = operator.attrgetter("__dict__")


class Noted(NamedTuple):
    """A name, how it is looked up, and its value when it was read."""

    get: Get
    name: str
    value: Any

    def is_as_it_was(self) -> bool:
        now = self.get(self.name, MISSING)
        return now is self.value or same(now, self.value)

    def is_counted(self) -> bool:
        """True if it is a number, or a list or dict of numbers; or if it was not there, as where a class has it yet."""
        now = self.get(self.name, MISSING)
        if type(self.value) in (list, dict):
            return now is self.value and has_numbers(now)
        return id(type(now)) in NUMBERS or (now is MISSING and self.value is MISSING)


class Met(NamedTuple):
    """A value from outside that cannot be compared: `anew` if the function is traced at each call for it."""

    what: str
    source: Source | None
    anew: bool

    def __str__(self) -> str:
        place = f" at {self.source}" if self.source is not None else ""
        return f"{self.what}{place}  -> {'traced again at each call' if self.anew else 'as it was when traced'}"


class Environment:
    """The values that were read from outside, and what they were.

    `names` and `unread`, which has the counters, are keyed by the identity of where the name is looked up. `absent` has
    the names that a namespace lacks. `kinds` are objects with their classes, `namespaces` objects with their
    `__dict__`; `contents` has a check for each value with a content, `before` the elements of containers. `holders` are
    the objects whose attributes were read, by the identity of the object or its namespace.
    """

    def __init__(self) -> None:
        self.met: list[Met] = []
        self.names: dict[tuple[int, str], Noted] = {}
        self.unread: dict[tuple[int, str], Noted] = {}
        self.absent: dict[int, tuple[Namespace, set[str]]] = {}
        self.kinds: tuple[list[Any], list[type]] = [], []
        self.namespaces: tuple[list[Any], list[Namespace]] = [], []
        self.contents: list[tuple[Check, Any]] = []
        self.before: dict[int, tuple[Any, ...]] = {}
        self.holders: dict[int, tuple[Any, Namespace | None]] = {}
        self._changing = ""
        self._is_void = False
        self._failed: Check | None = None

    def end(self) -> None:
        """End the recording: if the function itself has changed what it read, its run is not to be repeated."""
        self._is_void = not self.holds()

    @property
    def reads_anew(self) -> bool:
        """True if something was read that cannot be compared, for which the function is traced at each call."""
        return bool(self._changing)

    def meet(self, what: str, source: Source | None = None, *, anew: bool = True) -> None:
        """Note a value that cannot be compared."""
        self.met.append(Met(what, source, anew))
        if anew:
            self._changing = what

    def holds(self) -> bool:
        """True if everything is as it was; first what was not the last time, which may change at each call."""
        failed, self._failed = self._failed, None
        if failed is not None and not failed():
            self._failed = failed
            return False
        for noted in self.names.values():
            get, name, value = noted
            now = get(name, MISSING)
            if now is not value and not same(now, value):
                self._failed = noted.is_as_it_was
                return False
        for unchanged, _ in self.contents:
            if not unchanged():
                self._failed = unchanged
                return False
        if not all(noted.is_counted() for noted in self.unread.values()):
            return False
        for namespace, names in self.absent.values():
            if not namespace.keys().isdisjoint(names):
                return False
        is_fixed = not (self._changing or self._is_void)
        return is_fixed and (not self.kinds[0] or self._are_of_kind())

    def _are_of_kind(self) -> bool:
        """True if objects have the classes and namespaces they had; by maps in C, because there may be many."""
        (objects, kinds), (holders, namespaces) = self.kinds, self.namespaces
        return all(map(is_, map(type, objects), kinds)) and all(map(is_, map(NAMESPACE, holders), namespaces))

    def covers(self, other: Environment) -> bool:
        """True if this holds, and has all that another one has, which holds too."""
        contents = {id(value) for _, value in self.contents}
        has_all = (
            other.names.keys() <= self.names.keys()
            and other.unread.keys() <= self.names.keys() | self.unread.keys()
            and contents.issuperset(id(value) for _, value in other.contents)
            and all(key in self.absent and names <= self.absent[key][1] for key, (_, names) in other.absent.items())
            and set(map(id, other.kinds[0])) <= set(map(id, self.kinds[0]))
        )
        return has_all and not (other._changing or other._is_void) and self.holds()

    # ---- for native code ---------------------------------------------------------------------------------------------

    def conditions(self) -> Conditions | None:
        """The conditions for native code; None if something cannot be compared."""
        if self._changing or self._is_void:
            return None
        names, cells, attributes, others = self._conditions_of_names()
        others += [noted.is_counted for noted in self.unread.values()]
        for namespace, missing in self.absent.values():
            if type(namespace) is dict:
                names += [(cast("dict[str, Any]", namespace), name, MISSING) for name in missing]
            else:
                others.append(functools.partial(are_absent, namespace.get, frozenset(missing)))
        attributes += [(holder, "__dict__", namespace) for holder, namespace in zip(*self.namespaces, strict=True)]
        functions: list[FunctionCheck] = []
        empty: list[dict[str, Any]] = []
        for check, _ in self.contents:
            if isinstance(check, FunctionCheck):
                functions.append(check)
            elif isinstance(check, NamesCheck) and type(check.namespace) is dict and not check.names:
                empty.append(check.namespace)
            else:
                others.append(check)
        return Conditions(names, cells, attributes, [*zip(*self.kinds, strict=True)], functions, empty, others)

    def _conditions_of_names(self) -> tuple[list[Name], list[Cell], list[Attribute], list[Check]]:
        """The names in dictionaries, the cells, the attributes, and a check for each other name.

        Native code compares objects, so a value that is only equal to what it was, such as a number that is made when
        it is asked for, has a check of its own.
        """
        names: list[Name] = []
        cells: list[Cell] = []
        attributes: list[Attribute] = []
        others: list[Check] = []
        for noted in self.names.values():
            get, name, value = noted
            if get(name, MISSING) is not value:
                others.append(noted.is_as_it_was)
            elif type(space := getattr(get, "__self__", None)) is dict:
                names.append((space, name, value))
            elif isinstance(get, functools.partial) and get.func is content:
                cells.append((get.args[0], value))
            elif isinstance(get, functools.partial) and get.func is getattr:
                attributes.append((get.args[0], name, value))
            else:
                others.append(noted.is_as_it_was)
        return names, cells, attributes, others

    # ---- what has changed --------------------------------------------------------------------------------------------

    def difference(self) -> Change:
        """The first thing that is no longer as it was."""
        unknown = Change(
            self._changing or "it changes what it reads", next((m.source for m in self.met if m.anew), None)
        )
        changed = chain(self._changed_names(), self._changed_contents(), self._changed_kinds())
        return next(changed, unknown)

    def _changed_names(self) -> Iterator[Change]:
        for get, name, value in self.names.values():
            if not same(now := get(name, MISSING), value):
                yield Change(f"{name} {was(value, now)}", self._place_of(name))
        for noted in self.unread.values():
            if not noted.is_counted():
                get, name, value = noted
                now = get(name, MISSING)
                what = f"{name} {was(value, now)}" if now is not value else f"{name} has more than numbers in it"
                yield Change(what, self._place_of(name))
        for namespace, names in self.absent.values():
            for name in names & namespace.keys():
                yield Change(f"{name} was not there, and is now", self._place_of(name))

    def _changed_contents(self) -> Iterator[Change]:
        for unchanged, value in self.contents:
            if not unchanged():
                yield self._changed_content(unchanged, value)

    def _changed_content(self, check: Check, value: Any) -> Change:
        if value is None:  # it is not kept alive
            return Change("an object it reads has changed", None)
        name, before = self._name_of(value), array_before(check)
        where = (
            container_changed(value, self.before.get(id(value), ()))
            if before is None
            else array_changed(memory_of_array(value), before)
        )
        what = f"the {type(value).__name__} {name or 'it reads'} has another content"
        return Change(what + where, self._place_of(name))

    def _changed_kinds(self) -> Iterator[Change]:
        for value, kind in zip(*self.kinds, strict=True):
            if type(value) is not kind:
                name = self._name_of(value)
                kinds = f"was of class {kind.__name__}, and is of class {type(value).__name__}"
                yield Change(f"{name or 'an object it reads'} {kinds}", self._place_of(name))
        for value, namespace in zip(*self.namespaces, strict=True):
            if NAMESPACE(value) is not namespace:
                name = self._name_of(value)
                yield Change(f"{name or 'an object it reads'} has another __dict__", self._place_of(name))

    @property
    def has_drawn(self) -> bool:
        """True if a generator of random numbers has drawn some since it was read."""
        return any(draws_numbers(value) and not unchanged() for unchanged, value in self.contents)

    def restored_arrays(self) -> Iterator[tuple[str, Source | None]]:
        """Restore the content of arrays that was changed since it was read; the names of these arrays, with a line."""
        for unchanged, value in self.contents:
            if isinstance(value, np.ndarray) and not unchanged():
                before = array_before(unchanged)
                if before is not None:
                    memory_of_array(value)[...] = before
                else:  # of objects
                    for i, element in enumerate(self.before[id(value)]):
                        value.flat[i] = element
                name = self._name_of(value) or self._name_of_holder(value)
                codes = (check.code for check, _ in self.contents if isinstance(check, FunctionCheck))
                first = (Source(code.co_filename, code.co_firstlineno, code.co_name) for code in codes)
                yield name or "an array", self._place_of(name) or next(first, None)

    def _name_of_holder(self, value: Any) -> str | None:
        """The name of a container with a value, or of a parameter with the value as default."""
        held = [(name, held) for _, name, held in self.names.values() if isinstance(held, tuple)]
        held += [(self._name_of(holder), self.before.get(id(holder), ())) for _, holder in self.contents]
        for check, _ in self.contents:
            if isinstance(check, FunctionCheck):
                last = check.code.co_varnames[: check.code.co_argcount][::-1]
                defaults = zip(last, (check.defaults or ())[::-1], strict=False)
                held += [(name, (default,)) for name, default in (*defaults, *(check.by_name or {}).items())]
        return next((name for name, parts in held if name and any(value is part for part in parts)), None)

    def _name_of(self, value: Any) -> str | None:
        return next((name for _, name, held in self.names.values() if same(value, held)), None)

    def _place_of(self, name: str | None) -> Source | None:
        """A line that reads a name, or writes it, in the functions that were followed."""
        functions = [value for _, value in self.contents if isinstance(value, FunctionType)]
        functions.sort(key=lambda function: function.__name__.startswith("__"))  # `__init__` is the last to be meant
        lines = ((f.__code__, line_naming(f.__code__, name)) for f in functions if name is not None)
        found = next(((code, line) for code, line in lines if line is not None), None)
        return None if found is None else Source(found[0].co_filename, found[1], found[0].co_name)

    # ---- without keeping objects alive -------------------------------------------------------------------------------

    def released(self, kept: Mapping[int, Any]) -> Environment:
        """The same without references to objects, functions and what these hold, which may go when they like.

        Their attributes are looked up in them again, not in the namespaces they had. `kept` are the values that were
        read, by identity.
        """
        before = {address: found for address, found in self.before.items() if address in kept}
        new, memory, owners = Environment(), Memory(before), self._owners()
        new.met, new._changing, new._is_void = self.met, self._changing, self._is_void
        for known, made in ((self.names, new.names), (self.unread, new.unread)):
            for (where, _), (get, name, value) in known.items():
                found = found_in(*owners[where]) if where in owners else get
                made[id(found), name] = Noted(found, name, memory.of(value))
        for where, (namespace, names) in self.absent.items():
            if where in owners:
                check = functools.partial(are_absent, found_in(*owners[where]), frozenset(names))
                new.contents.append((check, None))
            else:
                new.absent[where] = namespace, names
        for value, kind in zip(*self.kinds, strict=True):
            reference = reference_to(value) or functools.partial(_itself, value)
            new.contents.append((functools.partial(is_of_kind, reference, kind), None))
        for check, value in self.contents:
            if isinstance(value, FunctionType):
                new.contents.append((check_of_remembered_function(value, memory), None))
            elif type(value) is dict and id(value) in owners:
                names = self.before[id(value)]
                new.contents.append((functools.partial(has_names, owners[id(value)][0], names), None))
            elif id(value) not in memory.seen:
                new.contents.append((check, value))
        return new

    def _owners(self) -> dict[int, tuple[Callable[[], Any], Callable[[Any], Get]]]:
        """By namespace or cell the object that it belongs to, without keeping that alive, and how it is found there."""
        owners: dict[int, tuple[Callable[[], Any], Callable[[Any], Get]]] = {}
        for value, namespace in self.holders.values():
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


def has_numbers(value: Any) -> bool:
    """True for a list or dict of numbers alone, for which no user code runs."""
    elements = value.values() if type(value) is dict else value if type(value) is list else [None]
    return NUMBERS.issuperset(map(id, map(type, elements)))


def found_in(reference: Callable[[], Any], reach: Callable[[Any], Get]) -> Get:
    """The function that looks names up in an object that is not kept alive."""

    def get(name: str, default: object) -> Any:
        owner = reference()
        return default if owner is None else reach(owner)(name, default)

    return get


def are_absent(get: Get, names: frozenset[str]) -> bool:
    """True if none of these names is found."""
    return all(get(name, MISSING) is MISSING for name in names)


def is_of_kind(reference: Callable[[], Any], kind: type) -> bool:
    """True if an object is there, and of this class."""
    return type(reference()) is kind


def has_names(reference: Callable[[], Any], names: tuple[str, ...]) -> bool:
    """True if an object is there, and has attributes of these names, in this order."""
    owner = reference()
    return owner is not None and tuple(NAMESPACE(owner)) == names


def content(cell: CellType, _: str, default: object) -> Any:
    """The value of a variable of an enclosing function."""
    try:
        return cell.cell_contents
    except ValueError:  # it has no value yet
        return default


def _itself(value: Any) -> Any:
    return value


def _cell_of(number: int, function: FunctionType) -> Get:
    return functools.partial(content, (function.__closure__ or ())[number])
