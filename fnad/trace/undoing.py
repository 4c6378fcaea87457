"""Changes that a run of a function makes outside of it, so that a run that is abandoned can be undone.

Hooks (`fnad.trace.hooks`) report attributes, elements and variables before user code stores them, and containers and
generators of random numbers before a method changes them. What they were is kept. Iterators cannot go back, so user
code reads an iterator from outside through a `Replayed` one.

Changes that installed packages make stay: what such packages change in C would stay too. For the same reason nothing is
undone if the run has imported a module of user code.
"""

from __future__ import annotations

import io
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from types import CellType, FunctionType, MemberDescriptorType
from typing import Any
from weakref import ref

import numpy as np

from fnad.blocks import OWN, Holding, ListedBlocks
from fnad.trace.conditions import MISSING
from fnad.trace.contents import namespace_of
from fnad.trace.environment import content
from fnad.trace.handle import Handle
from fnad.trace.libraries import is_trusted, package_of
from fnad.trace.rewriting import Facts

CHANGING = frozenset(
    {
        *("add", "append", "appendleft", "clear", "difference_update", "discard", "extend", "extendleft", "fill"),
        *("insert", "intersection_update", "partition", "pop", "popitem", "popleft", "put", "remove", "reverse"),
        *("rotate", "setdefault", "sort", "symmetric_difference_update", "update", "__delitem__", "__iadd__"),
        *("__ior__", "__setitem__", "byteswap", "getrandbits", "itemset", "random", "read", "readinto", "readline"),
        *("readlines", "resize", "setfield", "setflags"),
    }
)
"""Methods in C that change a container, the place in a file or a generator of random numbers."""


def _refilling(kind: Any, copy: Callable[[Any], Any], extend: Callable[[Any, Any], None]) -> tuple[Any, Any]:
    """Return the functions for a class of containers; they run no code of a subclass."""

    def restore(value: Any, before: Any) -> None:
        kind.clear(value)
        extend(value, before)

    return copy, restore


_KEPT: dict[type, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {
    list: _refilling(list, list.copy, list.extend),
    dict: _refilling(dict, dict.copy, dict.update),
    OrderedDict: _refilling(OrderedDict, lambda value: list(OrderedDict.items(value)), OrderedDict.update),
    set: _refilling(set, set.copy, set.update),
    deque: _refilling(deque, lambda value: list(deque.__iter__(value)), deque.extend),
    bytearray: _refilling(bytearray, bytes, bytearray.extend),
    np.ndarray: (np.copy, np.copyto),
    io.IOBase.__mro__[1]: (lambda file: file.tell(), lambda file, place: file.seek(place)),
}
KEPT = {id(kind): functions for kind, functions in _KEPT.items()}
"""The identities of classes of what has a content, each with the functions that return and restore it."""

DRAWING: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Any], None]]] = {
    "numpy.random._generator.Generator": (
        lambda drawn: drawn.bit_generator.state,
        lambda drawn, state: setattr(drawn.bit_generator, "state", state),
    ),
    "numpy.random.mtrand.RandomState": (lambda drawn: drawn.get_state(), lambda drawn, state: drawn.set_state(state)),
    "random.Random": (lambda drawn: drawn.getstate(), lambda drawn, state: drawn.setstate(state)),
}
"""Classes of random number generators, by name: their modules load slowly."""


class Replayed:
    """An iterator whose values are kept: it returns them again from `place` on, before it goes on."""

    def __init__(self, iterator: Iterator[Any]) -> None:
        self.iterator, self.values, self.place = iterator, [], 0

    def __iter__(self) -> Replayed:
        return self

    def __next__(self) -> Any:
        if self.place == len(self.values):
            self.values.append(next(self.iterator))
        self.place += 1
        return self.values[self.place - 1]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.iterator, name)

    @property
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return type(self.iterator)


class Changes:
    """The changes since this was made: functions that restore values, by the identities of the values.

    These functions refer to what they restore, so that no identity comes again.
    """

    def __init__(self) -> None:
        self._restoring: dict[tuple[Any, ...], Callable[[], Any]] = {}
        self._modules = len(sys.modules)
        self.replayed: dict[int, Replayed] = {}

    def undo(self) -> None:
        """Restore what was changed, the last change first; what changes later is kept anew."""
        imported = list(sys.modules.values())[self._modules :]
        if not all(is_trusted(getattr(module, "__file__", None) or "<frozen >") for module in imported):
            self._restoring.clear()
        while self._restoring:
            self._restoring.popitem()[1]()

    def attribute(self, owner: Any, name: str) -> None:
        """Keep an attribute, and the content of its value, which may be changed in place."""
        key = id(owner), name
        if key in self._restoring or issubclass(type(owner), Handle) or not _is_own_file():
            return
        namespace, is_slot = namespace_of(owner), isinstance(getattr(type(owner), name, None), MemberDescriptorType)
        if isinstance(namespace, dict) and not is_slot:
            before = namespace.get(name, MISSING)
            self._restoring[key] = partial(_restore_item, namespace, name, before)
        else:
            kind = type if isinstance(owner, type) else object
            before = getattr(owner, name, MISSING) if namespace is None or is_slot else namespace.get(name, MISSING)
            self._restoring[key] = partial(_restore_attribute, kind, owner, name, before)
        self.content(before)

    def content(self, value: Any) -> None:
        """Keep the content of a value that has one."""
        key, kind = (id(value),), type(value)
        known = (KEPT.get(id(base)) or DRAWING.get(f"{base.__module__}.{base.__qualname__}") for base in kind.__mro__)
        found = next((each for each in known if each is not None), None)
        if found is None or key in self._restoring or issubclass(kind, Handle) or not _is_own_file():
            return
        take, restore = found
        if isinstance(value, np.ndarray):  # one that dies is of the run alone, and may be large
            array = ref(value, lambda _: self._restoring.pop(key, None))
            self._restoring[key] = partial(_restore_array, array, value.copy())
        else:
            with suppress(OSError):  # of a file that cannot go back
                self._restoring[key] = partial(restore, value, take(value))

    def variables(self, facts: Facts, namespace: dict[str, Any]) -> None:
        """Keep the globals that a function assigns to."""
        for name in facts.assigned:
            key = id(namespace), name
            if key not in self._restoring and _is_own_file():
                self._restoring[key] = partial(_restore_item, namespace, name, namespace.get(name, MISSING))

    def cells(self, function: FunctionType, facts: Facts) -> None:
        """Keep the variables of enclosing functions that a function assigns to."""
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            if name in facts.rebound and (id(cell),) not in self._restoring:
                self._restoring[id(cell),] = partial(_restore_cell, cell, content(cell, "", MISSING))

    def place(self, replayed: Replayed) -> None:
        """Keep the place of an iterator."""
        self._restoring.setdefault((id(replayed),), partial(setattr, replayed, "place", replayed.place))


def _is_own_file() -> bool:
    """True if the code that runs is user code, of no installed package."""
    frame: Any = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while (file := frame.f_code.co_filename).startswith(OWN):
        frame = frame.f_back
    return package_of(file) is None


def _restore_item(namespace: dict[str, Any], name: str, before: Any) -> None:
    if before is not MISSING:
        namespace[name] = before
    else:
        namespace.pop(name, None)


def _restore_attribute(kind: Any, owner: Any, name: str, before: Any) -> None:
    if before is not MISSING:
        kind.__setattr__(owner, name, before)
    elif hasattr(owner, name):
        kind.__delattr__(owner, name)


def _restore_cell(cell: CellType, before: Any) -> None:
    if before is not MISSING:
        cell.cell_contents = before
    elif content(cell, "", MISSING) is not MISSING:
        del cell.cell_contents


def _restore_array(array: ref[Any], before: Any) -> None:
    found = array()
    if found is not None and found.flags.writeable:
        found[...] = before


UNDOING: ListedBlocks[Changes] = ListedBlocks()
"""The runs of this thread that may be undone."""


def undoing() -> Holding[Changes]:
    """A block of which the changes may be undone."""
    return UNDOING.holding(Changes())


def kept(value: Any) -> Any:
    """A value of which the content is kept."""
    for changes in UNDOING.values:
        changes.content(value)
    return value


def replayed(iterator: Any) -> Any:
    """An iterator whose values a run that is undone does not lose; any other value itself."""
    changes = UNDOING.values
    if not changes or type(iterator) is Replayed or not _is_own_file():
        return iterator
    found = changes[0].replayed.setdefault(id(iterator), Replayed(iterator))
    for each in changes:
        each.place(found)
    return found


def changing(function: Any) -> Callable[..., Any]:
    """A function that changes its first argument."""

    def call(value: Any, *args: Any, **options: Any) -> Any:
        kept(getattr(function, "__self__", None))
        kept(value)
        return function(value, *args, **options)

    return call
