"""The threads of LAPACK: one on matrices of middle size, on others as many as `fnad.config.threads` at most.

OpenBLAS divides the products within a factorization among all its threads as soon as that pays off on an idle machine.
On a busy one the threads wait for each other, and what takes 0.3 ms occasionally takes 60. Matrices of such a size are
therefore factorized on one thread. OpenBLAS does not divide small ones anyway, and large ones gain from it. Only
triangular systems (trtrs, getrs) it divides at any size: one of 3 by 3 takes 50 to 1,000 µs on two threads, 8 on one.

NumPy and SciPy each bring an OpenBLAS; with another library nothing is set. The number of threads is a setting of the
process: while several threads of Python use it, the least limit is in force, and the last one restores what was set.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from threading import Lock
from typing import Any

from fnad import config

MIDDLE = range(2**16, 2**22 + 1)
"""Multiplications, n³ a matrix, from which OpenBLAS may take several threads and up to which one does as well."""

UP_TO_MIDDLE = range(MIDDLE.stop)
"""The same for what solves triangular systems."""

MODULES = ("numpy.linalg._umath_linalg", "scipy.linalg._flapack")
"""The extension modules that are linked to LAPACK."""

PREFIXES, SUFFIXES = ("scipy_openblas_", "openblas_"), ("64_", "")


class Library:
    """An OpenBLAS, whose threads are limited to the least of what its users ask for."""

    def __init__(self, get: Any, set_: Any) -> None:
        self._get, self._set = get, set_
        self.reset()

    def reset(self) -> None:
        """Start without users, as a child process does."""
        self._lock, self._limits, self._before, self._limited = Lock(), list[int](), 0, 0

    def enter(self, limit: int) -> None:
        """Have no more threads than this."""
        with self._lock:
            if not self._limits:
                self._before = self._limited = self._get()
            self._limits.append(limit)
            self._limit()

    def leave(self, limit: int) -> None:
        """Have as many threads as before."""
        with self._lock:
            self._limits.remove(limit)
            self._limit()

    def _limit(self) -> None:
        number = min([self._before, *self._limits])
        # Native code takes one thread, and gives back only what is still 1; what the user set in the meantime stays.
        if number != self._limited and self._get() in (self._limited, 1):
            self._set(number)
            self._limited = number


class AtMost:
    """A context in which libraries have at most so many threads."""

    def __init__(self, libraries: Sequence[Library], limit: int) -> None:
        self._libraries, self._limit = libraries, limit

    def __enter__(self) -> None:
        for library in self._libraries:
            library.enter(self._limit)

    def __exit__(self, *_: object) -> None:
        for library in self._libraries:
            library.leave(self._limit)


def are_of(sizes: range, operands: Sequence[Any]) -> bool:
    """Whether one of the operands is a stack of matrices of such sizes."""
    return any(x.ndim > 1 and x.size * max(x.shape[-2:]) in sizes for x in operands)


def threads_for(operands: Sequence[Any], sizes: range = MIDDLE) -> AbstractContextManager[None]:
    """A context for a call of LAPACK on these arrays, which is on one thread where they are of these sizes."""
    return AtMost(_libraries(_loaded()), 1) if are_of(sizes, operands) else NOTHING


def within_settings() -> AbstractContextManager[None]:
    """A context for calls of libraries, which have at most as many threads as the settings give."""
    threads = config.current().threads
    return AtMost(_libraries(_loaded()), threads) if threads < config.CORES else NOTHING


NOTHING = nullcontext()


def _loaded() -> tuple[str, ...]:
    return tuple(name for name in MODULES if name in sys.modules)


@cache
def _libraries(modules: tuple[str, ...]) -> tuple[Library, ...]:
    found = [_library(name) for name in modules]
    return tuple(library for library in found if library is not None)


@cache
def _library(module: str) -> Library | None:
    path = sys.modules[module].__file__
    library = ctypes.CDLL(path) if path else None
    for prefix in PREFIXES:
        for suffix in SUFFIXES:
            get, set_ = (getattr(library, f"{prefix}{verb}_num_threads{suffix}", None) for verb in ("get", "set"))
            if get is not None and set_ is not None:
                found = Library(get, set_)
                os.register_at_fork(after_in_child=found.reset)
                return found
    return None
