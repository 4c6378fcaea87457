"""Workspaces and memory for results that are not used for some seconds are given back.

A program keeps its workspace, since fresh memory costs as much as the arithmetic on it, but one that is called no more
would keep it for ever. So while there are large ones, a thread looks every second for those that have not been used.
"""

from __future__ import annotations

import threading
import time
from typing import Protocol
from weakref import WeakKeyDictionary

from fnad import forks

LARGE = 2**20
"""The bytes of a workspace from which it is given back."""

SECONDS = 5.0
"""The time without a use after which it is."""


class Owner(Protocol):
    """The owner of workspaces."""

    def free_workspaces(self) -> int:
        """Free those not in use; return the number of bytes freed."""
        ...


class Watch:
    """The time of each owner's last use, and the thread, which ends when no owner is left, and before a fork."""

    def __init__(self) -> None:
        self._used: WeakKeyDictionary[Owner, float] = WeakKeyDictionary()
        self._lock = forks.lock()
        self._ends = threading.Event()
        self._thread: threading.Thread | None = None
        forks.at_fork(before=self._before_fork, after_in_parent=self._after_fork, after_in_child=self._after_fork)

    def note(self, owner: Owner) -> None:
        """An owner has used its workspace."""
        with self._lock:
            self._used[owner] = time.monotonic()
            self._start()

    def _start(self) -> None:
        if self._thread is None:
            (thread := threading.Thread(target=self._watch, name="fnad-idle", daemon=True)).start()
            self._thread = thread

    def _watch(self) -> None:
        while not self._ends.wait(SECONDS / 5) and self._free_unused():
            pass

    def _free_unused(self) -> bool:
        """Free what has not been used; whether there is more to look after."""
        with self._lock:
            before = time.monotonic() - SECONDS
            unused = [owner for owner, used in self._used.items() if used < before]
            for owner in unused:
                del self._used[owner]
            stays = len(self._used) > 0
            if not stays:
                self._thread = None
        for owner in unused:
            owner.free_workspaces()
        return stays

    def _before_fork(self) -> None:
        thread = self._thread
        if thread is not None:
            self._ends.set()
            thread.join()

    def _after_fork(self) -> None:
        self._thread = None
        self._ends.clear()
        with self._lock:
            if self._used:
                self._start()


WATCH = Watch()
