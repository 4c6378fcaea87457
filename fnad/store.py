"""The store: what was made of programs, found by content, for all threads.

    content of the traced program ─▶ derived programs ─▶ each simplified ─▶ lowered ─▶ native code and its memory

A key contains everything that the value depends on, so nothing in the store can be stale, and a function that is traced
again finds what was made before. The derived programs of a content are kept while it is among the `cache_entries` most
recently used. The compilation stages of a derived program (`Stages`) are found by its content, and live as long as
something refers to them: the derived programs in the store, or a function that `jit` compiled. What is requested again
after that is kept from then on, like derived programs, since functions that are created at each step of a loop
(`jit(lambda: …)`) would otherwise be compiled each time. So is what is derived within a trace, of a program with the
same lines, which becomes part of another one.

When everything takes more than `cache_bytes`, the arrays that native code keeps for its next call are freed first:
memory that programs share, then that of the least recently used programs. If the programs alone take more, the least
recently used ones are dropped: derived programs first, then what functions in use can make again. The program that ran
last keeps everything.
"""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Callable, Hashable
from itertools import count
from operator import methodcaller
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, cast
from weakref import WeakValueDictionary

from fnad import config, forks
from fnad.blocks import Holding, SharedBlocks
from fnad.codes import forget_codes

T = TypeVar("T")

now = count(1).__next__
"""A logical clock that advances by one at each call."""

REMEMBERED = 4096
"""The number of dropped keys that the store remembers."""

WEIGHED_AGAIN = 16
"""The share of new programs, one in so many, at which total sizes are added up again: that takes linear time."""


def uncollected() -> Holding[None]:
    """Leave garbage where it is in this block.

    A compiler makes much that is kept and little garbage: to look for that takes a fifth of the time or more, the
    larger the program the more.
    """
    return _UNCOLLECTED.holding(None)


def _turn_collector() -> None:
    """Have the garbage collector off while there are such blocks, and then on again if it was on before."""
    global _is_off  # noqa: PLW0603 - the collector is one for the process
    if _UNCOLLECTED.entries:
        if gc.isenabled():
            _is_off = True
            gc.disable()
    elif _is_off:
        gc.enable()
        _is_off = False


_UNCOLLECTED: SharedBlocks[None] = SharedBlocks(_turn_collector)
_is_off = False
"""True if the garbage collector is off because of a block."""


class KeptMemory(Protocol):
    """An owner of memory that is kept for the next call."""

    @property
    def workspace_bytes(self) -> int:
        """The memory that is kept for the next call, in bytes."""
        ...

    def free_workspaces(self) -> int:
        """Free the memory that is kept for the next call; return the number of bytes freed."""
        ...


class Stages(KeptMemory, Protocol):
    """A program and its compilation stages."""

    used: int
    """The time of its last run."""

    @property
    def nbytes(self) -> int:
        """The approximate memory that it takes without workspaces, in bytes."""
        ...

    @property
    def is_native(self) -> bool:
        """True if it was compiled."""
        ...

    def free(self) -> int:
        """Free everything that can be made again; return the number of bytes freed, without workspaces."""
        ...


S = TypeVar("S", bound=Stages)


class CacheInfo(NamedTuple):
    """The contents of the store.

    `programs` are ready to run, each content once: those of compiled functions in use, and those that transforms have
    derived (`vjp` two, forward and backward). `compiled` of them are native code; in all they take about `nbytes`, with
    the memory that native code has at hand for its next call and for its results. This is what `config.cache_bytes`
    bounds. `kept` counts what is there though no function has it, to be found by a later call; `config.cache_entries`
    bounds it.
    """

    programs: int
    compiled: int
    kept: int
    nbytes: int


Key: TypeAlias = "tuple[tuple[Any, ...], Hashable]"
"""The key of a derived program: its kind, and the content of the original program."""


class ProgramStore:
    """Values by key. Its methods may be called from several threads at once."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Key, Any] = OrderedDict()
        self._stages: WeakValueDictionary[Key, Stages] = WeakValueDictionary()
        self._known: dict[int, None] = {}
        self._shared: list[KeptMemory] = []
        self._unweighed = 0
        self._lock = forks.lock()

    def get(self, key: Key, make: Callable[[], T]) -> T:
        """The value of a key, made if missing, and kept while it is used."""
        found = self._found(key)
        if found is not None:
            return found
        with uncollected():
            made = make()
        with self._lock:
            kept = self._kept.setdefault(key, made)
            self._forget_oldest()
            self._unweighed += 1
            is_due = self._unweighed * WEIGHED_AGAIN > len(self._stages)
        if is_due:
            self.trim()
        return kept

    def _found(self, key: Key) -> Any:
        """The value of a key, which was just used; None if it is missing."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def repeated(self, key: Key, make: Callable[[], T]) -> T:
        """The value of a key, made if missing, and kept from the second time on: much is requested once."""
        found = self._found(key)
        if found is not None:
            return found
        with self._lock:
            was_there = self._was_there(hash(key))
        if was_there:
            return self.get(key, make)
        with uncollected():
            return make()

    def stages(self, key: Key, make: Callable[[], S]) -> S:
        """The stages of a key, made if missing, which live as long as something refers to them."""
        found = self._stages.get(key)
        if found is None:
            made = make()
            with self._lock:
                found = self._stages.setdefault(key, made)
                if self._was_there(hash(key)):
                    self._kept[key] = found
        return cast("S", found)

    def _was_there(self, digest: int) -> bool:
        known = digest in self._known
        self._known[digest] = None
        if len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]
        return known

    def share(self, memory: KeptMemory) -> None:
        """Count memory that programs share, which is freed before their own."""
        self._shared.append(memory)

    def trim(self, wanted: int = 0) -> None:
        """Drop what exceeds the limit if this many bytes are to be allocated."""
        settings = config.current()
        with self._lock:
            self._unweighed = 0
            self._forget_oldest()
            programs = self._nbytes()
            at_hand = sum(memory.workspace_bytes for memory in (*self._shared, *self._stages.values()))
            excess = programs + at_hand - settings.cache_bytes + wanted
            if excess > 0:
                excess -= sum(memory.free_workspaces() for memory in self._shared)
            self._give_up(methodcaller("free_workspaces"), excess)
            if programs <= settings.cache_bytes:
                return
            while len(self._kept) > 1 and self._nbytes() > settings.cache_bytes:
                self._kept.popitem(last=False)
            self._give_up(methodcaller("free"), self._nbytes() - settings.cache_bytes)

    def _forget_oldest(self) -> None:
        while len(self._kept) > config.current().cache_entries:
            self._kept.popitem(last=False)

    def _nbytes(self) -> int:
        return sum(stages.nbytes for stages in self._stages.values())

    def _give_up(self, free: Callable[[Stages], int], excess: int) -> None:
        """Free memory of the least recently used stages until there is no excess; those used last keep theirs."""
        if excess > 0:
            for stages in sorted(self._stages.values(), key=lambda stages: stages.used)[:-1]:
                excess -= free(stages) if excess > 0 else 0

    def made_of(self, content: Hashable) -> list[tuple[tuple[Any, ...], tuple[Stages, ...]]]:
        """The programs made from the program of a content, each with its kind."""
        with self._lock:
            stages = [(key, (found,)) for key, found in self._stages.items()]
            derived = [(key, found) for key, found in self._kept.items() if isinstance(found, tuple)]
        return [(key[0], found) for key, found in (*stages, *derived) if key[1] == content]

    def notes_of(self, content: Hashable) -> list[str]:
        """The findings on the program of a content, as text."""
        with self._lock:
            notes = [(key, found) for key, found in self._kept.items() if isinstance(found, list)]
        return [str(note) for key, found in notes if key[1] == content for note in cast("list[object]", found)]

    def info(self) -> CacheInfo:
        """The contents of the store."""
        with self._lock:
            stages, kept = list(self._stages.values()), len(self._kept)
        nbytes = sum(s.nbytes + s.workspace_bytes for s in stages) + sum(m.workspace_bytes for m in self._shared)
        return CacheInfo(len(stages), sum(s.is_native for s in stages), kept, nbytes)

    def clear(self) -> None:
        """Free everything; functions in use are compiled again at their next call."""
        with self._lock:
            self._kept.clear()
            self._known.clear()
            stages = list(self._stages.values())
        for memory in self._shared:
            memory.free_workspaces()
        for each in stages:
            each.free()


STORE = ProgramStore()


def cache_info() -> CacheInfo:
    """The number and size of the programs in memory.

    Returns:
        CacheInfo: A named tuple of ints: `programs`; `compiled`, the programs in native code; `kept`, the programs that
            no function uses any more; and `nbytes`, about the size of all.
    Examples:
        >>> import fnad
        >>> f = fnad.jit(lambda x: x + 1.0)
        >>> f(2.0), f(3.0)
        (np.float64(3.0), np.float64(4.0))
        >>> fnad.cache_info().compiled > 0
        True
    """
    return STORE.info()


def clear_cache() -> None:
    """Free all programs, native code and its memory; functions in use are compiled again at their next call.

    The cache on disk stays: see `fnad cache clear`.

    Examples:
        >>> import fnad
        >>> fnad.clear_cache()
        >>> fnad.cache_info().compiled
        0
    """
    STORE.clear()
    forget_codes()
