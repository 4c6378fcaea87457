"""Blocks of code that hold something while they run, such as the collector off, or a trace under way.

    BLOCKS: Blocks[int] = Blocks()
    with BLOCKS.holding(1):
        BLOCKS.innermost  # 1

The blocks under way are one list, and what follows from it is computed from it by one function, which may be called at
any time and is called at each begin and end. The list refers to the context managers of the blocks weakly. So Ctrl-C
may come at any line of a begin or an end: the context manager, which the error alone still refers to, goes with it, its
entry too, and the next begin makes right what follows from the list. Where something keeps the error, the outermost
call of fnad ends the blocks (`end_blocks`).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar
from weakref import WeakSet, ref

from fnad import forks

T = TypeVar("T")

OWN = __file__.removesuffix("blocks.py")
_ALL: WeakSet[Blocks[Any]] = WeakSet()


class Blocks(Generic[T]):
    """The blocks under way, the innermost one last."""

    def __init__(self) -> None:
        self.entries: list[ref[Holding[T]]] = []
        _ALL.add(self)

    @property
    def innermost(self) -> T | None:
        """The value of the innermost block, if there is one."""
        entries = self.entries
        found = entries[-1]() if entries else None
        return None if found is None else found.value

    @property
    def under_way(self) -> list[Holding[T]]:
        """The context managers of the blocks."""
        return [found for entry in self.entries if (found := entry()) is not None]

    def holding(self, value: T) -> Holding[T]:
        """A context manager of a block with a value."""
        return Holding(self, value)

    def changed(self) -> None:
        """Make what follows from the list what it has to be."""


class LocalBlocks(threading.local, Blocks[T]):
    """The blocks of each thread."""


class ListedBlocks(LocalBlocks[T]):
    """The blocks of each thread, with their `values`, the innermost one last."""

    values: tuple[T, ...] = ()

    def changed(self) -> None:
        self.values = tuple(block.value for block in self.under_way)


class SharedBlocks(Blocks[T]):
    """The blocks of all threads; a child process has those of the thread that forked."""

    def __init__(self, changed: Callable[[], None] | None = None) -> None:
        super().__init__()
        if changed is not None:
            self.changed = changed
        forks.at_fork(after_in_child=self._in_child)

    def _in_child(self) -> None:
        own = threading.get_ident()
        self.entries[:] = [entry for entry in self.entries if (found := entry()) is not None and found.thread == own]
        self.changed()


class Holding(Generic[T]):
    """The context manager of a block."""

    __slots__ = ("__weakref__", "_blocks", "thread", "value")

    def __init__(self, blocks: Blocks[T], value: T) -> None:
        self._blocks, self.value = blocks, value

    def __enter__(self) -> T:
        self.thread, entries = threading.get_ident(), self._blocks.entries
        entries.append(ref(self, entries.remove))
        self._blocks.changed()
        return self.value

    def __exit__(self, *_: object) -> None:
        self._blocks.entries.remove(ref(self))
        self._blocks.changed()


def end_blocks() -> None:
    """End what an interrupt has left of this thread's blocks, where it leaves the outermost call of fnad."""
    frame = sys._getframe(3)  # pyright: ignore[reportPrivateUsage] - that of the code which calls the public function
    while frame is not None and not frame.f_code.co_filename.startswith(OWN):
        frame = frame.f_back
    if frame is None:
        own = threading.get_ident()
        for blocks in list(_ALL):
            blocks.entries[:] = [entry for entry in blocks.entries if (held := entry()) and held.thread != own]
            blocks.changed()
