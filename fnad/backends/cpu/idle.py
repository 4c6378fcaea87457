"""Workspaces that are not used for some seconds are given back.

A program keeps its workspace, since fresh memory costs as much as the arithmetic on it, but one that is called no more
would keep it for ever. So while there are large ones, a thread looks every second for those that have not been used.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Protocol
from weakref import WeakKeyDictionary

LARGE = 2**20
"""The bytes of a workspace from which it is given back."""

SECONDS = 5.0
"""The time without a use after which it is."""


class Owner(Protocol):
    """What has workspaces."""

    def free_workspaces(self) -> int:
        """Free those not in use; return the number of bytes freed."""
        ...


class Watch:
    """The time of each owner's last use, and the thread, which ends when no owner is left."""

    def __init__(self) -> None:
        self._reset()
        os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        """Begin anew, as in a child, which has no other threads."""
        self._used: WeakKeyDictionary[Owner, float] = WeakKeyDictionary()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def note(self, owner: Owner) -> None:
        """An owner has used its workspace."""
        with self._lock:
            self._used[owner] = time.monotonic()
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="fnad-idle", daemon=True)
                self._thread.start()

    def _watch(self) -> None:
        while self._thread is threading.current_thread():
            time.sleep(SECONDS / 5)
            self._free_unused()

    def _free_unused(self) -> None:
        with self._lock:
            before = time.monotonic() - SECONDS
            unused = [owner for owner, used in self._used.items() if used < before]
            for owner in unused:
                del self._used[owner]
            if not self._used:
                self._thread = None
        for owner in unused:
            owner.free_workspaces()


WATCH = Watch()
