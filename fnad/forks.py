"""Other threads at a fork and at the end of a process: a child process finds all locks free.

A fork copies the thread that calls it and no other one. A lock of another thread would be held in the child for ever,
around something half changed, such as an LLVM compilation. So a fork first takes all of these locks, and the two
processes give them back.

    before: take each lock that is free; if one is not: give all back, wait for that one, and begin again
            if another thread is within an import by fnad: the same, because Python's locks of modules stay taken
    after:  give all back
"""

from __future__ import annotations

import atexit
import functools
import os
import sys
import threading
from collections.abc import Callable
from threading import RLock, local
from time import monotonic, sleep
from types import FrameType
from typing import TYPE_CHECKING, Any
from weakref import ref

OWN = __file__.removesuffix("forks.py")
SECONDS = 5.0
"""The longest time that threads have to leave fnad when Python ends."""
IMPORTING = 60.0
"""The longest time in seconds that a fork waits for the imports of other threads."""
IMPORTERS = "<frozen importlib._bootstrap>"
"""The file of the code of imports."""

_LOCKS: set[ref[RLock]] = set()


class _Forking(local):
    def __init__(self) -> None:
        self.taken: list[RLock] = []


_FORKING = _Forking()


if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property(functools.cached_property):  # noqa: N801
        """A property computed once, without the lock of Python 3.11, which another thread may hold at a fork."""

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            found = instance.__dict__[self.attrname] = self.func(instance)
            return found


def lock() -> RLock:
    """A new lock, which its thread may take again, as the handler of a signal does."""
    made = RLock()
    _LOCKS.add(ref(made, _LOCKS.discard))
    return made


def take(found: object) -> None:
    """Have forks take a lock of another library, if it is one."""
    if isinstance(found, type(RLock())):
        _LOCKS.add(ref(found, _LOCKS.discard))


def loaded(name: str) -> Any:
    """The module of a name, if it has been imported; not one that another thread is still importing."""
    module = sys.modules.get(name)
    return None if getattr(getattr(module, "__spec__", None), "_initializing", False) else module


def _take_all() -> None:
    until = monotonic() + IMPORTING
    _take_locks()
    while _others_import() and monotonic() < until:
        _give_back()
        sleep(0.001)
        _take_locks()


def _others_import() -> bool:
    """True if another thread is within an import by fnad."""
    frames, own = sys._current_frames(), threading.get_ident()  # pyright: ignore[reportPrivateUsage]
    return any(_imports(frame) for number, frame in frames.items() if number != own)


def _imports(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_code.co_filename != IMPORTERS:
        frame = frame.f_back
    return _is_within(frame)


def _take_locks() -> None:
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


def at_fork(**functions: Callable[[], object]) -> None:
    """Have functions called `before` a fork, `after_in_parent`, `after_in_child`; Windows has no forks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(**functions)


at_fork(before=_take_all, after_in_parent=_give_back, after_in_child=_give_back)


def end_threads() -> None:
    """End the daemon threads that are within fnad, as Python is about to do.

    Python ends a thread where it takes the GIL. In C++ code, that of LLVM or optree, that aborts the process.
    """
    shown = sys.unraisablehook  # of what ends in a finalizer nothing is to be printed
    sys.unraisablehook = lambda given: None if given.exc_type is SystemExit else shown(given)
    within, until = _daemons_within(), monotonic() + SECONDS
    while within and monotonic() < until:
        import ctypes  # noqa: PLC0415 - hardly ever needed

        for number, frame in within.items():
            if _may_end(frame):
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(number), ctypes.py_object(SystemExit))
        sleep(0.005)
        within = _daemons_within()


def _daemons_within() -> dict[int, FrameType]:
    """The innermost frames of the daemon threads that run fnad's code, or what that calls, by the threads' numbers."""
    frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage]
    daemons = [thread for thread in threading.enumerate() if thread.daemon and not thread.name.startswith("fnad-")]
    found = {number: frames[number] for thread in daemons if (number := thread.ident) in frames}
    return {number: frame for number, frame in found.items() if _is_within(frame)}


def _may_end(frame: FrameType) -> bool:
    """True if a thread of fnad may end here: not where a `with` takes its lock, which would stay taken."""
    inner: FrameType | None = frame
    while inner is not None and inner.f_code.co_name not in ("__enter__", "__exit__"):
        inner = inner.f_back
    return not _is_within(inner)


def _is_within(frame: FrameType | None) -> bool:
    while frame is not None and not frame.f_code.co_filename.startswith(OWN):
        frame = frame.f_back
    return frame is not None


atexit.register(end_threads)  # also where one is about to import optree
