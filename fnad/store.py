"""The store: what was made of programs, found by content, for all threads.

    content of the traced program ─▶ derived programs ─▶ each simplified ─▶ lowered ─▶ native code and its memory

A key says everything that the value depends on, so nothing in the store can be stale, and a function that is traced
anew finds what was made before. The derived programs of a content are kept while it is among the `cache_entries` that
were used last. What a program is made into on its way to native code (`Stages`) is found by the content of the derived
program, and lives as long as someone has it: the derived programs it belongs to, or a function that `jit` compiled,
which takes along what was its own. What is asked for again after that is kept from then on, like derived programs, for
functions that are made anew at each step of a loop (`jit(lambda: …)`) would be compiled each time.

Where all take more than `cache_bytes`, the arrays that native code has at hand for its next call are freed, first those
of the programs that were used least recently. Where the programs alone take more, those used least recently are given
up: derived ones, then what functions in use can make again. The program that was run last keeps all.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from itertools import count
from operator import methodcaller
from threading import RLock
from typing import Any, NamedTuple, Protocol, TypeVar, cast
from weakref import WeakValueDictionary

from fnad import config
from fnad.codes import forget_codes

T = TypeVar("T")

now = count(1).__next__
"""The time, which goes on by one when it is asked for."""

REMEMBERED = 4096
"""Keys whose values are gone, of which the store knows that they were there."""


class Stages(Protocol):
    """A program, and what was made of it."""

    used: int
    """When it was run last."""

    @property
    def nbytes(self) -> int:
        """The memory that it takes, about, without workspaces."""
        ...

    @property
    def workspace_bytes(self) -> int:
        """The memory that is at hand for the next call."""
        ...

    @property
    def is_native(self) -> bool:
        """Whether it was compiled."""
        ...

    def free_workspaces(self) -> int:
        """Free the memory that is at hand for the next call; return how many bytes it was."""
        ...

    def free(self) -> int:
        """Free all that can be made again; return how many bytes it was, without workspaces."""
        ...


S = TypeVar("S", bound=Stages)


class CacheInfo(NamedTuple):
    """What the store has: programs, how many of them are native code, and about how many bytes they take."""

    programs: int
    compiled: int
    nbytes: int


class Store:
    """Values by key. Its methods may be called from several threads at once."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()
        self._stages: WeakValueDictionary[Hashable, Stages] = WeakValueDictionary()
        self._known: dict[int, None] = {}
        self._lock = RLock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key, which is kept while it is used; make it if it is not there."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
                return found
        made = make()
        with self._lock:
            kept = self._kept.setdefault(key, made)
        self.trim()
        return kept

    def stages(self, key: Hashable, make: Callable[[], S]) -> S:
        """The stages of a key, which live as long as someone has them; make them if they are not there."""
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

    def trim(self, wanted: int = 0) -> None:
        """Give up what is too much, where so many bytes are to be allocated."""
        settings = config.current()
        with self._lock:
            while len(self._kept) > settings.cache_entries:
                self._kept.popitem(last=False)
            programs = self._nbytes()
            excess = programs + sum(stages.workspace_bytes for stages in self._stages.values()) - settings.cache_bytes
            self._give_up(methodcaller("free_workspaces"), excess + wanted)
            if programs <= settings.cache_bytes:
                return
            while len(self._kept) > 1 and self._nbytes() > settings.cache_bytes:
                self._kept.popitem(last=False)
            self._give_up(methodcaller("free"), self._nbytes() - settings.cache_bytes)

    def _nbytes(self) -> int:
        return sum(stages.nbytes for stages in self._stages.values())

    def _give_up(self, free: Callable[[Stages], int], excess: int) -> None:
        """Free memory of the stages used least recently until there is no excess; those used last keep theirs."""
        if excess > 0:
            for stages in sorted(self._stages.values(), key=lambda stages: stages.used)[:-1]:
                excess -= free(stages) if excess > 0 else 0

    def info(self) -> CacheInfo:
        """Return what there is."""
        with self._lock:
            stages = list(self._stages.values())
        nbytes = sum(s.nbytes + s.workspace_bytes for s in stages)
        return CacheInfo(len(stages), sum(s.is_native for s in stages), nbytes)

    def clear(self) -> None:
        """Free everything; what functions in use have is made again at their next call."""
        with self._lock:
            self._kept.clear()
            self._known.clear()
            stages = list(self._stages.values())
        for each in stages:
            each.free()


STORE = Store()


def cache_info() -> CacheInfo:
    """Return how many programs are in the store, how many of them as native code, and about how many bytes they take.

    >>> import fnad
    >>> f = fnad.jit(lambda x: x + 1.0)
    >>> f(2.0)
    np.float64(3.0)
    >>> fnad.cache_info().compiled > 0
    True
    """
    return STORE.info()


def clear_cache() -> None:
    """Free all programs, native code and its memory. Functions in use are compiled again at their next call.

    What is known of the code of functions is forgotten, too.

    >>> import fnad
    >>> fnad.clear_cache()
    >>> fnad.cache_info().compiled
    0
    """
    STORE.clear()
    forget_codes()
