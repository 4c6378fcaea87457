"""Locks that a child process finds free.

A fork copies the thread that calls it and no other one. A lock of another thread would be held in the child for ever,
around something half changed, such as a compilation of LLVM's. So a fork first takes all of these locks, and the two
processes give them back.

    before: take each lock that is free; if one is not: give all back, wait for that one, and begin again
    after:  give all back
"""

from __future__ import annotations

import os
from threading import RLock, local
from weakref import ref

_LOCKS: set[ref[RLock]] = set()


class _Forking(local):
    def __init__(self) -> None:
        self.taken: list[RLock] = []


_FORKING = _Forking()


def lock() -> RLock:
    """A new lock, which its thread may take again, as the handler of a signal does."""
    made = RLock()
    _LOCKS.add(ref(made, _LOCKS.discard))
    return made


def _take_all() -> None:
    locks = [found for each in _LOCKS.copy() if (found := each()) is not None]
    while (busy := _first_busy(locks)) is not None:
        with busy:  # its thread may need another one, so none is held meanwhile
            pass


def _first_busy(locks: list[RLock]) -> RLock | None:
    """Take all of the locks; if one is not free, take none and return it."""
    for each in locks:
        if not each.acquire(blocking=False):
            _give_back()
            return each
        _FORKING.taken.append(each)
    return None


def _give_back() -> None:
    while _FORKING.taken:
        _FORKING.taken.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_take_all, after_in_parent=_give_back, after_in_child=_give_back)
