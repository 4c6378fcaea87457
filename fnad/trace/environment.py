"""The values from outside that a traced function read (`fnad.trace.recording`), and whether they are as they were.

`holds()` looks at all reads again. A counter is not compared, until other code reads it: then its value is the one
before it was counted. A value that can be neither compared nor trusted forces a trace at each call: an iterator, a file
that is opened, a generator of random numbers that others share. `met` has those that were noticed.

A large array is compared as a whole at each look, so it is better passed as an argument.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from itertools import chain, repeat
from operator import is_
from types import FunctionType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fnad.ir.program import Source
from fnad.trace.capture import Array
from fnad.trace.effects import DRAW
from fnad.trace.generators import draws_numbers
from fnad.trace.parts import CONSTANTS, CONTAINERS, MISSING
from fnad.trace.reads import (
    NAMED,
    Memory,
    Read,
    Remembered,
    Way,
    answer,
    array_in,
    code_of,
    content_of,
    elements,
    first_read,
    kind,
    member,
    pickled,
    reached_from,
    released,
    same,
)
from fnad.trace.source import line_naming

Key: TypeAlias = tuple[Way, int, str]
"""A read: the way, the identity of the owner, and the name."""


FAST = (dict.get, getattr, member, content_of, kind)
"""The ways to values that mostly are the same objects."""

GONE = repeat(MISSING)


def is_generator(read: Read) -> bool:
    """True if the state of a generator of random numbers was read."""
    return read.way is pickled and draws_numbers(read.owner)


class Change(NamedTuple):
    """A change of a value since it was read, with its place."""

    what: str
    source: Source | None


class Met(NamedTuple):
    """A value from outside that cannot be compared: `anew` if the function is traced at each call for it."""

    what: str
    source: Source | None
    anew: bool

    def __str__(self) -> str:
        place = f" at {self.source}" if self.source is not None else ""
        return f"{self.what}{place}  -> {'traced again at each call' if self.anew else 'as it was when traced'}"


class Environment:
    """The reads of values from outside; `counted` are those of counters, and of containers that are only extended."""

    def __init__(self) -> None:
        self.met: list[Met] = []
        self.reads: dict[Key, Read] = {}
        self.counted: dict[Key, Read] = {}
        self._is_void = False
        self._failed: Read | None = None
        self._groups: list[tuple[Any, ...]] = []
        self._grouped = 0

    def end(self) -> None:
        """End the recording: if the function itself has changed what it read, its run is not to be repeated."""
        self._is_void = not self.holds()

    @property
    def unknown(self) -> Met | None:
        """The first value that cannot be compared, for which the function is traced at each call."""
        return next((met for met in self.met if met.anew), None)

    def read(self, way: Way, owner: Any, name: str = "") -> Any:
        """Record a read, and return the value; of a counter, that before it was counted."""
        key = way, id(owner), name
        if key not in self.reads:
            self.reads[key] = self.counted.pop(key, None) or first_read(way, owner, name)
        return self.reads[key].value

    def count(self, way: Way, owner: Any, name: str = "") -> Any:
        """Record a counter, or a container that is extended, for a later read of its value, and return that."""
        key = way, id(owner), name
        found = self.reads.get(key) or self.counted.setdefault(key, first_read(way, owner, name))
        return found.value

    def holds(self) -> bool:
        """True if everything is as it was; first what was not the last time, which may change at each call."""
        failed, self._failed = self._failed, None
        if failed is not None and not failed.holds():
            self._failed = failed
            return False
        if len(self.reads) != self._grouped:
            self._group()
        for way, owners, names, values, checks in self._groups:
            if way in FAST:
                now = map(type, owners) if way is kind else map(way, owners, names, GONE)
                if all(map(is_, now, values)):
                    continue
            for read, holds in checks.items():
                if not holds():
                    self._failed = self.reads[read]
                    return False
        return not ((self.met and self.unknown) or self._is_void) and all(
            read.is_counted() for read in self.counted.values()
        )

    def _group(self) -> None:
        """Put the reads together by their ways, because there may be many, which maps in C compare."""
        ways: dict[Way, dict[Key, Read]] = {}
        for key, read in self.reads.items():
            ways.setdefault(read.way, {})[key] = read
        self._groups = [
            (way, *map(list, list(zip(*reads.values(), strict=True))[1:]), {k: r.check() for k, r in reads.items()})
            for way, reads in ways.items()
        ]
        self._grouped = len(self.reads)

    def covers(self, other: Environment) -> bool:
        """True if this holds, and has all that another one has, which holds too."""
        has_all = other.reads.keys() <= self.reads.keys()
        has_all = has_all and other.counted.keys() <= self.reads.keys() | self.counted.keys()
        return has_all and not (other.unknown or other._is_void) and self.holds()

    def conditions(self) -> list[tuple[Any, ...]] | None:
        """The conditions for native code; None if something cannot be compared."""
        if self.unknown or self._is_void:
            return None
        found = [condition for read in self.reads.values() for condition in read.conditions()]
        found += [("ASKED", read.is_counted) for read in self.counted.values()]
        return sorted(found, key=lambda condition: condition[0] == "ASKED")

    def released(self) -> Environment:
        """The same without references to objects, functions and what these hold, which may go when they like.

        Their attributes are looked up in them again, not in the namespaces they had.
        """
        own = [read.owner for read in self.reads.values() if read.way in (kind, code_of)]
        owners = dict(chain.from_iterable(map(reached_from, own)))
        memory = Memory({id(read.owner): read.value for read in self.reads.values() if read.way is elements})
        new = Environment()
        new.met, new._is_void = self.met, self._is_void
        for reads, made in ((self.reads, new.reads), (self.counted, new.counted)):
            made.update(
                (key, released(read, memory, owners)) for key, read in reads.items() if read.way is not elements
            )
        seen = memory.seen
        new.reads.update((k, read) for k, read in self.reads.items() if read.way is elements and k[1] not in seen)
        return new

    # ---- what has changed --------------------------------------------------------------------------------------------

    def difference(self) -> Change:
        """The first thing that is no longer as it was."""
        unknown = Change("it changes what it reads", None) if self.unknown is None else Change(*self.unknown[:2])
        changed = (self._change(read) for read in self.reads.values() if not read.holds())
        counted = (self._change(read) for read in self.counted.values() if not read.is_counted())
        return next(chain(changed, counted), unknown)

    def _change(self, read: Read) -> Change:
        now, name, before = read.now(), read.name, read.value
        if read.way is answer:
            return Change(f"the result of {read.owner.__name__} {was(before, now)}", None)
        if name == "__dict__":
            name = self._name_of(read.owner)
            return Change(f"{name or 'an object it reads'} has another __dict__", self._place_of(name))
        if name:
            what = f"{name} {was(before, now)}" if now is not before else f"{name} has more than numbers in it"
            return Change(what, self._place_of(name))
        content: Any = before.content if isinstance(before, Remembered) else before
        if content is None:  # it is not kept alive
            return Change("an object it reads has changed", None)
        name = self._name_of(read.owner)
        if read.way is kind:
            kinds = f"was of class {content.__name__}, and is of class {now.__name__}"
            what = f"{name or 'an object it reads'} {kinds}"
        else:
            what = f"the {type(read.owner).__name__} {name or 'it reads'} has another content"
            what += array_changed(now, content) if read.way is array_in else ""
            what += container_changed(read.owner, content, now) if read.way is elements else ""
        return Change(what, self._place_of(name))

    @property
    def has_drawn(self) -> bool:
        """True if a generator of random numbers has drawn some since it was read."""
        return any(is_generator(read) and not read.holds() for read in self.reads.values())

    @property
    def has_only_drawn(self) -> bool:
        """True if nothing that was read has changed, or is read anew at each call, but generators of random numbers."""
        changed = [read for read in self.reads.values() if not read.holds()]
        draws = [*map(is_generator, changed), *[met.what == DRAW for met in self.met if met.anew]]
        return bool(draws) and all(draws) and all(read.is_counted() for read in self.counted.values())

    def restored_arrays(self) -> Iterator[tuple[str, Source | None]]:
        """Restore the content of arrays that was changed since it was read; the names of these arrays, with a line."""
        for read in self.reads.values():
            array = read.owner
            is_array = read.way in (array_in, elements) and issubclass(type(array), np.ndarray)
            if is_array and not read.holds():
                if read.way is array_in:
                    read.now()[...] = read.value.content
                else:  # of objects
                    for i, element in enumerate(read.value):
                        array.flat[i] = element
                name = self._name_of(array) or self._name_of_holder(array)
                codes = (read.value[0] for read in self.reads.values() if read.way is code_of)
                first = (Source(code.co_filename, code.co_firstlineno, code.co_name) for code in codes)
                yield name or "an array", self._place_of(name) or next(first, None)

    def _name_of_holder(self, value: Any) -> str | None:
        """The name of a container with a value, or of a parameter with the value as default."""
        held: list[tuple[str | None, Any]] = []
        for way, owner, name, before in self.reads.values():
            if way is elements or (way in NAMED and isinstance(before, tuple)):
                held.append((name or self._name_of(owner), before))
            elif way is code_of:
                code, defaults, by_name = before
                last = code.co_varnames[: code.co_argcount][::-1]
                by_place = zip(last, (defaults or ())[::-1], strict=False)
                held += [(name, (default,)) for name, default in (*by_place, *(by_name or {}).items())]
        return next((name for name, parts in held if name and any(value is part for part in parts)), None)

    def _name_of(self, value: Any) -> str | None:
        named = (read for read in self.reads.values() if read.name)
        return next((read.name for read in named if same(value, read.value)), None)

    def _place_of(self, name: str | None) -> Source | None:
        """A line that reads a name, or writes it, in the functions that were followed."""
        functions = [read.owner for read in self.reads.values() if isinstance(read.owner, FunctionType)]
        functions.sort(key=lambda function: function.__name__.startswith("__"))  # `__init__` is the last to be meant
        lines = ((f.__code__, line_naming(f.__code__, name)) for f in functions if name is not None)
        found = next(((code, line) for code, line in lines if line is not None), None)
        return None if found is None else Source(found[0].co_filename, found[1], found[0].co_name)


# ---- words -----------------------------------------------------------------------------------------------------------


def was(old: Any, new: Any) -> str:
    """That a value was this, and is that; of two objects of a class, that it is another one."""
    if isinstance(old, Remembered) or (type(old) is type(new) and not isinstance(new, CONSTANTS)):
        or_content = ", or has another content" if isinstance(old, Remembered) and type(new) in CONTAINERS else ""
        return f"is another {type(new).__name__}{or_content}"
    return f"was {shown(old)}, and is {shown(new)}"


def shown(value: Any) -> str:
    """The text of a value in a sentence: a constant itself, of anything else the class."""
    if value is MISSING:
        return "not there"
    return reprlib.repr(value) if isinstance(value, CONSTANTS) else f"of class {type(value).__name__}"


def container_changed(value: Any, before: tuple[Any, ...], now: tuple[Any, ...]) -> str:
    """The numbers of elements that a container had and has, or the first element that differs."""
    keys = len(now) // 2 if hasattr(type(value), "keys") else 0  # before as many values
    if len(before) != len(now):
        each = 2 if hasattr(type(value), "keys") else 1
        return f": it had {len(before) // each} elements, and has {len(now) // each}"
    i = next((i for i, (old, new) in enumerate(zip(before, now, strict=True)) if not same(new, old)), None)
    if i is None:
        return ""
    if isinstance(value, AbstractSet):
        place = "an element"
    elif keys:
        place = f"key {i}" if i < keys else f"the value of {shown(now[i - keys])}"
    else:
        place = f"element {i}"
    return f", where {place} {was(before[i], now[i])}"


def array_changed(now: Array, before: Array) -> str:
    """The difference of an array from its former value: in dtype or shape, or the first element that differs."""
    for what in ("dtype", "shape"):
        if (old := getattr(before, what)) != (new := getattr(now, what)):
            return f": its {what} was {old}, and is {new}"
    rows = [np.ascontiguousarray(x).reshape(-1).view(np.uint8).reshape(x.size, -1) for x in (now, before)]
    places = np.flatnonzero((rows[0] != rows[1]).any(axis=1))
    if not len(places):  # another thread writes to it
        return ""
    index = tuple(int(i) for i in np.unravel_index(places[0], now.shape))
    place = {0: "its element", 1: f"element {', '.join(map(str, index))}"}.get(len(index), f"element {index}")
    several = f", the first of {len(places)} that differ" if len(places) > 1 else ""
    old, new = (str(x[index]) if x.dtype.kind in "biufc" else reprlib.repr(x[index].item()) for x in (before, now))
    return f", where {place} was {old}, and is {new}{several}"
