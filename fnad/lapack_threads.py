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
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from fnad import config, forks
from fnad.blocks import SharedBlocks

MIDDLE = range(2**16, 2**22 + 1)
"""Multiplications, n³ a matrix, from which OpenBLAS may take several threads and up to which one does as well."""

UP_TO_MIDDLE = range(MIDDLE.stop)
"""The same for what solves triangular systems."""

MODULES = ("numpy.linalg._umath_linalg", "scipy.linalg._flapack")
"""The extension modules that are linked to LAPACK."""

PREFIXES, SUFFIXES = ("scipy_openblas_", "openblas_"), ("64_", "")


class BlasLibrary:
    """An OpenBLAS, whose threads are limited to the least of what blocks of code ask for."""

    def __init__(self, get: Callable[[], int], set_: Callable[[int], object]) -> None:
        self._get, self._set = get, set_
        self._before: int | None = None
        self._ours: tuple[int, ...] = ()
        self._lock = forks.lock()
        self.limits: SharedBlocks[int] = SharedBlocks(self._limit)

    def _limit(self) -> None:
        """Have as many threads as the limits in force allow, without one as many as before the first."""
        with self._lock:
            limits = [each.value for each in self.limits.under_way]
            before = self._get() if self._before is None else self._before
            if limits and self._before is None:
                self._before, self._ours = before, (before,)
            number, now = min([before, *limits]), self._get()
            # Native code takes one thread, and gives back only what is still 1; what the user set meanwhile stays.
            if number != now and now in (*self._ours, 1):
                self._ours = now, number
                self._set(number)
            if not limits:
                self._before, self._ours = None, ()


class AtMost:
    """A context in which libraries have at most so many threads."""

    def __init__(self, libraries: Sequence[BlasLibrary], limit: int) -> None:
        self._blocks = [library.limits.holding(limit) for library in libraries]

    def __enter__(self) -> None:
        for block in self._blocks:
            block.__enter__()

    def __exit__(self, *_: object) -> None:
        for block in self._blocks:
            block.__exit__()


def are_of(sizes: range, operands: Sequence[Any]) -> bool:
    """True if one of the operands is a stack of matrices of such sizes."""
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
def _libraries(modules: tuple[str, ...]) -> tuple[BlasLibrary, ...]:
    found = [_library(name) for name in modules]
    return tuple(library for library in found if library is not None)


@cache
def _library(module: str) -> BlasLibrary | None:
    if (path := sys.modules[module].__file__) is None:
        return None
    get, set_ = (openblas_function(ctypes.CDLL(path), f"{verb}_num_threads") for verb in ("get", "set"))
    return BlasLibrary(get, set_) if get and set_ else None


def openblas_function(library: ctypes.CDLL, name: str) -> Any:
    """The function of this name in the OpenBLAS that a library is linked to; None if it is another BLAS."""
    names = (f"{prefix}{name}{suffix}" for prefix in PREFIXES for suffix in SUFFIXES)
    return next((getattr(library, each) for each in names if hasattr(library, each)), None)
