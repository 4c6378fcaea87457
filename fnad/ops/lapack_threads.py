"""One thread for LAPACK on matrices of middle size.

OpenBLAS divides the products within a factorization among all its threads as soon as that pays off on an idle machine.
On a busy one the threads wait for each other, and what takes 0.3 ms occasionally takes 60. Matrices of such a size are
therefore factorized on one thread. OpenBLAS does not divide small ones anyway, and large ones gain from it. Only
triangular systems (trtrs, getrs) it divides at any size: one of 3 by 3 takes 50 to 1,000 µs on two threads, 8 on one.

NumPy and SciPy each bring an OpenBLAS; with another library nothing is set. The number of threads is a setting of the
process: the first user of the context sets it, and the last one restores it.
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

MIDDLE = range(2**16, 2**22 + 1)
"""Multiplications, n³ a matrix, from which OpenBLAS may take several threads and up to which one does as well."""

UP_TO_MIDDLE = range(MIDDLE.stop)
"""The same for what solves triangular systems."""

MODULES = ("numpy.linalg._umath_linalg", "scipy.linalg._flapack")
"""The extension modules that are linked to LAPACK."""

PREFIXES, SUFFIXES = ("scipy_openblas_", "openblas_"), ("64_", "")


class OneThread:
    """A context in which an OpenBLAS has one thread."""

    def __init__(self, get: Any, set_: Any) -> None:
        self._get, self._set = get, set_
        self.reset()

    def reset(self) -> None:
        """Start without users, as a child process does."""
        self._lock, self._users, self._saved = Lock(), 0, 1

    def __enter__(self) -> None:
        with self._lock:
            if not self._users:
                self._saved = self._get()
                if self._saved > 1:
                    self._set(1)
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if not self._users and self._saved > 1:
                self._set(self._saved)


class Together:
    """Several contexts as one."""

    def __init__(self, parts: Sequence[OneThread]) -> None:
        self._parts = parts

    def __enter__(self) -> None:
        for part in self._parts:
            part.__enter__()

    def __exit__(self, *_: object) -> None:
        for part in self._parts:
            part.__exit__()


def are_of(sizes: range, operands: Sequence[Any]) -> bool:
    """Whether one of the operands is a stack of matrices of such sizes."""
    return any(x.ndim > 1 and x.size * max(x.shape[-2:]) in sizes for x in operands)


def threads_for(operands: Sequence[Any], sizes: range = MIDDLE) -> AbstractContextManager[None]:
    """A context for a call of LAPACK on these arrays, which is on one thread where they are of these sizes."""
    return Together(_libraries(_loaded())) if are_of(sizes, operands) else NOTHING


NOTHING = nullcontext()


def _loaded() -> tuple[str, ...]:
    return tuple(name for name in MODULES if name in sys.modules)


@cache
def _libraries(modules: tuple[str, ...]) -> tuple[OneThread, ...]:
    found = [_library(name) for name in modules]
    return tuple(library for library in found if library is not None)


@cache
def _library(module: str) -> OneThread | None:
    path = sys.modules[module].__file__
    library = ctypes.CDLL(path) if path else None
    for prefix in PREFIXES:
        for suffix in SUFFIXES:
            get, set_ = (getattr(library, f"{prefix}{verb}_num_threads{suffix}", None) for verb in ("get", "set"))
            if get is not None and set_ is not None:
                found = OneThread(get, set_)
                os.register_at_fork(after_in_child=found.reset)
                return found
    return None
