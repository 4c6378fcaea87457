"""Writes of a run of a function, so that a run that is abandoned can be undone, and no traced value outlives its trace.

Hooks (`fnad.trace.hooks`) report attributes, elements and variables before user code stores them, and containers and
generators of random numbers before a method changes them. What they were is kept. Iterators cannot go back, so user
code reads an iterator from outside through a `Replayed` one.

Changes that installed packages make stay: what such packages change in C would stay too. For the same reason nothing is
undone if the run has imported a module of user code.

Compiled code stores nothing: whoever reads `self.w`, `TABLE["a"]` or a global variable later would find a value of a
trace that is over. So a traced value that is stored in what the function has read from outside is an error.
"""

from __future__ import annotations

import io
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Container, Generator, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import CellType, CodeType, FrameType, FunctionType, MemberDescriptorType, ModuleType
from typing import Any, NamedTuple
from weakref import ProxyTypes, ref

import numpy as np

from fnad.blocks import OWN, Holding, ListedBlocks
from fnad.errors import MutationError, TracerEscapeError
from fnad.ir.builder import Builder
from fnad.ir.program import Source
from fnad.trace.handle import Handle
from fnad.trace.libraries import is_trusted, package_of
from fnad.trace.parts import MISSING, elements_of, namespace_of
from fnad.trace.reads import content_of, reference_to
from fnad.trace.recording import Recorder
from fnad.trace.source import current_source, line_naming
from fnad.trace.variables import Facts

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


class UndoableWrite(NamedTuple):
    """The first write into an attribute, a variable or a container, with its place and the function that undoes it.

    A container has itself as the owner, and the name "". The place of a variable is the code that binds it. An object
    with a namespace is not kept alive.
    """

    owner: Any
    name: str
    now: Callable[[], Any]
    restore: Callable[[], Any] | None
    place: Source | CodeType | None

    @property
    def source(self) -> Source | None:
        """The line of the write."""
        code = self.place
        if not isinstance(code, CodeType):
            return code
        return Source(code.co_filename, line_naming(code, self.name, is_stored=True) or 0, code.co_name)


class Writes:
    """The writes since this was made, by the identities of what is written to, which stays alive."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str], UndoableWrite] = {}
        self._modules = len(sys.modules)
        self.replayed: dict[int, Replayed] = {}

    def undo(self) -> None:
        """Restore what was changed, the last change first; what changes later is kept anew."""
        imported = list(sys.modules.values())[self._modules :]
        if not all(is_trusted(getattr(module, "__file__", None) or "<frozen >") for module in imported):
            self._known.clear()
        while self._known:
            restore = self._known.popitem()[1].restore
            if restore is not None:
                restore()

    def _note(
        self, owner: Any, name: str, now: Callable[[], Any], restore: Callable[[], Any], code: CodeType | None = None
    ) -> None:
        known, is_own = self._known.get((id(owner), name)), _is_own_file()
        if known is None or (is_own and known.restore is None):
            undone = restore if is_own else None
            is_kept = issubclass(type(owner), type) or not isinstance(namespace_of(owner), dict)
            held = owner if is_kept else reference_to(owner) or owner  # a function may wait for the end of an object
            self._known[id(owner), name] = UndoableWrite(held, name, now, undone, code or current_source())

    def _is_kept(self, owner: Any, name: str) -> bool:
        known = self._known.get((id(owner), name))
        return known is not None and known.restore is not None

    def attribute(self, owner: Any, name: str) -> None:
        """Keep an attribute, and the content of its value, which may be changed in place."""
        if self._is_kept(owner, name) or issubclass(type(owner), Handle):
            return
        namespace, is_slot = namespace_of(owner), isinstance(getattr(type(owner), name, None), MemberDescriptorType)
        look_up: Callable[[], Any] = (
            partial(getattr, owner, name, MISSING)
            if namespace is None or is_slot
            else partial(namespace.get, name, MISSING)
        )
        before = look_up()
        if isinstance(namespace, dict) and not is_slot:
            restore = partial(_restore_item, namespace, name, before)
        else:
            restore = partial(
                _restore_attribute, type if issubclass(type(owner), type) else object, owner, name, before
            )
        is_stored = namespace is not None or is_slot  # a property would run user code again
        self._note(owner, name, look_up if is_stored else lambda: None, restore)
        self.content(before)

    def content(self, value: Any) -> None:
        """Keep the content of a value that has one."""
        kind = type(value)
        known = (KEPT.get(id(base)) or DRAWING.get(f"{base.__module__}.{base.__qualname__}") for base in kind.__mro__)
        found = next((each for each in known if each is not None), None)
        if found is None or self._is_kept(value, "") or issubclass(kind, Handle):
            return
        take, restore = found
        is_own, is_array = _is_own_file(), isinstance(value, np.ndarray)
        if not is_array:
            with suppress(OSError):  # of a file that cannot go back
                self._note(value, "", lambda: value, partial(restore, value, take(value) if is_own else None))
        elif is_own:  # one that dies is of the run alone, and may be large
            key, array = (id(value), ""), ref(value, lambda _: self._known.pop(key, None))
            restore = partial(_restore_array, array, value.copy())
            self._known[key] = UndoableWrite(array, "", array, restore, current_source())

    def variables(self, facts: Facts, frame: FrameType) -> None:
        """Keep the globals that a function assigns to."""
        namespace = frame.f_globals
        for name in facts.assigned:
            restore = partial(_restore_item, namespace, name, namespace.get(name, MISSING))
            self._note(namespace, name, partial(namespace.get, name), restore, frame.f_code)

    def cells(self, function: FunctionType, facts: Facts) -> None:
        """Keep the variables of enclosing functions that a function assigns to."""
        code = function.__code__
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            if name in facts.rebound:
                restore = partial(_restore_cell, cell, content_of(cell, "", MISSING))
                self._note(cell, name, partial(content_of, cell), restore, code)

    def place(self, replayed: Replayed) -> None:
        """Keep the place of an iterator."""
        self._note(replayed, "place", lambda: None, partial(setattr, replayed, "place", replayed.place))

    def check_stored(self, trace: Builder, read: Container[int]) -> None:
        """Raise where a value of a trace is stored in something that the function has `read`, by identity."""
        for write in self._known.values():
            now = write.now()
            owner = write.owner() if isinstance(write.owner, ref) else write.owner
            place = owner if write.name else now
            if id(place) not in read and not isinstance(place, ModuleType):
                continue
            elements = None if write.name else elements_of(now)
            parts = now if type(now) is tuple else [now] if elements is None else elements()
            found = next((part for part in parts if issubclass(type(part), Handle) and part.is_within(trace)), None)
            if found is not None:
                raise TracerEscapeError(
                    f"a traced value of aval {found.aval} was stored in {_words_for(place, write.name, found)}, "
                    "which is there after the trace",
                    source=write.source,
                    remedy="return it and store the result of the call: what is stored under jit has no numbers",
                )


def _words_for(place: Any, name: str, value: Any) -> str:
    kind = type(place)
    if kind is CellType:
        return "a variable of an enclosing function"
    if not name:
        key = next((key for key, part in place.items() if part is value), None) if isinstance(place, dict) else None
        return f"a {kind.__name__}" if key is None else f"{key!r} of a {kind.__name__}"
    if isinstance(place, (dict, ModuleType)):
        return f"{name!r} of the module"
    return f"{name!r} of {place.__qualname__ if isinstance(place, type) else f'an object of class {kind.__name__}'}"


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
    elif content_of(cell, "", MISSING) is not MISSING:
        del cell.cell_contents


def _restore_array(array: ref[Any], before: Any) -> None:
    found = array()
    if found is not None and found.flags.writeable:
        found[...] = before


UNDOING: ListedBlocks[Writes] = ListedBlocks()
"""The runs of this thread that may be undone."""


def undoing() -> Holding[Writes]:
    """A block of which the changes may be undone."""
    return UNDOING.holding(Writes())


def kept(value: Any) -> Any:
    """A value of which the content is kept."""
    for writes in UNDOING.values:
        writes.content(value)
    return value


def replayed(iterator: Any) -> Any:
    """An iterator whose values a run that is undone does not lose; any other value itself."""
    writes = UNDOING.values
    if not writes or type(iterator) is Replayed or not _is_own_file():
        return iterator
    found = writes[0].replayed.setdefault(id(iterator), Replayed(iterator))
    for each in writes:
        each.place(found)
    return found


def changing(function: Any) -> Callable[..., Any]:
    """A function that changes its first argument."""

    def call(value: Any, *args: Any, **options: Any) -> Any:
        kept(getattr(function, "__self__", None))
        kept(value)
        return function(value, *args, **options)

    return call


# ---- arrays outside of a function that is traced once ----------------------------------------------------------------

# Branches, bodies of loops, what solvers call and custom rules run never, once or many times. What Python writes into
# an array that the program does not have is written once, whatever runs: so it is undone, and is an error. The arrays
# that user code read from outside are compared, because C functions write into arrays too.


class OuterReads(Recorder):
    """A recorder of values from outside that leaves out attributes of classes which the block itself makes."""

    def attribute(self, owner: Any, name: str) -> None:
        kind = type(owner)
        place: Any = owner if issubclass(kind, (type, *ProxyTypes)) else kind
        if issubclass(kind, (ModuleType, *ProxyTypes)) or id(owner) in self.kept or id(place) in self.kept:
            super().attribute(owner, name)


@contextmanager
def without_outer_writes(*values: object) -> Generator[OuterReads]:
    """Undo what this block writes into arrays from outside, and raise for it.

    The values are functions, and what they are called with from outside.
    """
    recorder = OuterReads()
    with undone_writes(*values, recorder=recorder) as errors:
        yield recorder
    for error in errors:
        raise error


@contextmanager
def undone_writes(*values: object, recorder: OuterReads | None = None) -> Generator[list[MutationError]]:
    """Undo what this block writes into arrays from outside; the list has an error for each then."""
    recorder, errors = recorder or OuterReads(), list[MutationError]()
    for value in values:
        recorder.follow(value)
    try:
        with recorder.active():
            yield errors
    finally:
        for name, source in recorder.environment.restored_arrays():
            function = "a function" if source is None else source.function
            errors.append(
                MutationError(
                    f"{function} writes into {name}, an array outside of it: it is traced once, whether "
                    "it runs never, once or many times",
                    source=source,
                    remedy="make the array in the function, or part of its operands or of what a loop carries, "
                    "and return it",
                )
            )
