"""The memory of large results, which is used again when nobody holds it any more.

Fresh pages can cost as much as the arithmetic that fills them: the system clears each when it is first written to. So
large results have a memory handler of their own (NEP 49), which NumPy keeps with the array and calls when the array and
its last view are gone. To its holder the array is like any other: it owns its memory, may be resized, donated or kept.

    malloc(size):
        block = the latest free one that is large enough, by at most an eighth of it; if none: NumPy's malloc
    free(data):
        the block becomes the first of the free ones; those at the end that exceed the limit: NumPy's free

NumPy calls a handler with the GIL, which guards the free blocks, before a fork too, and orders what threads read of
them. Where there is none, in free-threaded Python, there is no pool. A GIL that is there stays: Python may enable it
later, but does not disable it again. The functions are native and never unloaded, since the last arrays go when Python
has ended. `tracemalloc` sees arrays, as with any handler, and no free blocks. Where the user has set a handler, results
are allocated by that.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable
from contextvars import Context
from functools import cache

import numpy as np

from fnad import config
from fnad.backends.base import Array
from fnad.backends.cpu import idle, native, pool_code
from fnad.backends.cpu.codegen import LOWEST
from fnad.backends.cpu.loader import LOCK
from fnad.backends.cpu.objects import (
    ALLOCATOR,
    IS_KNOWN,
    address,
    capsule,
    current_handler,
    default_handler,
    set_handler,
)
from fnad.backends.cpu.pool_code import LARGE
from fnad.scalar.operation import Dtype
from fnad.store import STORE

SHARE = 4
"""The part of `config.cache_bytes` that free blocks may take."""

EXPORTS = "pool_trim", "pool_begin"


class Pool:
    """The free blocks of this process, and the arrays that take from them."""

    def __init__(self) -> None:
        engine = native.linked(EXPORTS, pool_code, level=LOWEST)
        places = {
            name: engine.get_global_value_address(f"pool_{name}") for name in ("bytes", "limit", "default", "handler")
        }
        self._trim, begin = (ctypes.PYFUNCTYPE(None)(engine.get_function_address(name)) for name in EXPORTS)
        engine.detach()  # which unloads nothing
        begin()
        ctypes.memmove(places["handler"], b"fnad".ljust(ALLOCATOR - 1, b"\0") + b"\1", ALLOCATOR)  # name, version
        name = places["handler"] + ALLOCATOR + 40
        ctypes.memmove(name, b"mem_handler", 12)
        self._bytes, self._limit = (ctypes.c_int64.from_address(places[name]) for name in ("bytes", "limit"))
        self._default = default_handler()
        ctypes.c_void_p.from_address(places["default"]).value = address(self._default) + ALLOCATOR
        self._context = Context()
        self._context.run(set_handler, capsule(places["handler"], name))
        self._noted = -idle.SECONDS
        STORE.share(self)

    def empty(self, shape: tuple[int, ...], dtype: Dtype) -> Array:
        """An array whose content is not defined, as that of `np.empty`."""
        if current_handler() is not self._default:
            return np.empty(shape, dtype)
        self._limit.value = config.current().cache_bytes // SHARE
        if time.monotonic() - self._noted > idle.SECONDS / 10:  # a note takes longer than all else here
            self._noted = time.monotonic()
            idle.WATCH.note(self)
        return self._context.copy().run(np.empty, shape, dtype)

    @property
    def workspace_bytes(self) -> int:
        """The memory of the free blocks, in bytes."""
        return self._bytes.value

    def free_workspaces(self) -> int:
        """Free them, and until `empty` is called again what arrays give back; return the number of bytes freed."""
        freed = self.workspace_bytes
        self._limit.value = 0
        self._trim()
        return freed


@cache
def pool() -> Pool:
    """The pool of this process."""
    return Pool()


def has_gil() -> bool:
    """True if one thread at a time runs Python."""
    return getattr(sys, "_is_gil_enabled", lambda: True)()


def allocator(nbytes: int) -> Callable[[tuple[int, ...], Dtype], Array]:
    """The allocator of results of so many bytes."""
    if nbytes < LARGE or not (IS_KNOWN and has_gil()):
        return np.empty
    with LOCK:
        return pool().empty
