"""The operating system: the functions that native code calls there, and the number of C's flag of invalid operations.

`posix.py` and `windows.py` are the part of the code of threads (`threads_code.py`) that differs between systems:

    lock(mutex), unlock(mutex)
    wait(condition, mutex)                  sleep until woken, with the mutex given back meanwhile
    wait_in_vain(condition, mutex)          likewise, for 50 ms at most; true if nothing woke the thread
    wake(condition), wake_all(condition)
    now(), worked()                         nanoseconds, and those that this thread had a processor
    begin_worker()                          prepare a new thread
    threads_reset()                         make the mutex and the conditions anew
    threads_start(number, handle)           start `threads_worker(number)`; true unless the system refuses
    threads_join(handle)                    wait until the thread has ended

A mutex and a condition each have 64 bytes, which is enough on all systems. Locking a mutex is an acquire operation and
unlocking it is a release operation, by POSIX and by Windows: a thread reads everything that other threads wrote before
they unlocked the mutex.
"""

from __future__ import annotations

import ctypes
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

import llvmlite.binding as llvm

IS_WINDOWS = sys.platform == "win32"


def yield_name() -> str:
    """The function that lets another thread have the processor."""
    return "SwitchToThread" if IS_WINDOWS else "sched_yield"


def invalid_flag() -> int:
    """FE_INVALID of C."""
    return 16 if IS_WINDOWS else 1


def threads_module() -> ModuleType:
    """The part of the code of threads that differs between systems."""
    return import_module(f"fnad.backends.cpu.{'windows' if IS_WINDOWS else 'posix'}")


LIBRARIES = {"__chkstk": ("ntdll", "__chkstk"), "hypotf": ("ucrtbase", "_hypotf")}
"""Functions of Windows by their symbols, the library and the name there: large arrays on the stack call the first one.

The object files have the format ELF on Windows too, because llvmlite makes no others there, and no mark `_fltused`.
"""

_KEPT: list[Any] = []


def register() -> None:
    """Register with LLVM the symbols of object files that its search of the process does not find."""
    if IS_WINDOWS:
        for symbol, (library, name) in LIBRARIES.items():
            _KEPT.append(found := getattr(ctypes.CDLL(library), name))
            llvm.add_symbol(symbol, ctypes.cast(found, ctypes.c_void_p).value)
