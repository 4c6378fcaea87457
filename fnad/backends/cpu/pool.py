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
from collections.abc import Callable
from contextvars import Context
from functools import cache

import llvmlite.binding as llvm
import numpy as np

from fnad import config
from fnad.backends.base import Array
from fnad.backends.cpu.idle import WATCH
from fnad.backends.cpu.loader import LOCK, key_of, link, object_code
from fnad.backends.cpu.objects import (
    ALLOCATOR,
    IS_KNOWN,
    address,
    capsule,
    current_handler,
    default_handler,
    set_handler,
)
from fnad.scalar.operation import Dtype
from fnad.store import STORE

LARGE = 2**21
"""The bytes of a result from which its memory is of the pool.

The C library uses the memory of smaller ones again itself; to ask the pool takes a microsecond.
"""

SHARE = 4
"""The part of `config.cache_bytes` that free blocks may take."""

CODE = r"""
%block = type { ptr, i64 }  ; the next free one, and the bytes of the data, which come after it
%allocator = type { ptr, ptr, ptr, ptr, ptr }  ; context, malloc, calloc, realloc, free
%handler = type <{ [127 x i8], i8, %allocator }>  ; name, version

@first = internal global ptr null
@pool_bytes = global i64 0
@pool_limit = global i64 0
@pool_default = global ptr null
@pool_capsule = constant [12 x i8] c"mem_handler\00"
@pool_handler = constant %handler <{
  [127 x i8] c"NAME", i8 1, %allocator { ptr null, ptr @malloc_, ptr @calloc_, ptr @realloc_, ptr @free_ }
}>

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define internal ptr @malloc_(ptr %context, i64 %size) {
  br label %look
look:
  %link = phi ptr [@first, %0], [%block, %compare]
  %block = load ptr, ptr %link
  %none = icmp eq ptr %block, null
  br i1 %none, label %fresh, label %compare
compare:
  %bytes = call i64 @bytes_of(ptr %block)
  %spare = sub i64 %bytes, %size
  %most = lshr i64 %bytes, 3
  %fits = icmp ule i64 %spare, %most
  br i1 %fits, label %take, label %look
take:
  %next = load ptr, ptr %block
  store ptr %next, ptr %link
  %taken = sub i64 0, %bytes
  call void @count(i64 %taken)
  %known = getelementptr %block, ptr %block, i64 1
  ret ptr %known
fresh:
  %allocated = add i64 %size, 16
  %default = call ptr @of_default(i64 0)
  %malloc = call ptr @of_default(i64 1)
  %new = call ptr %malloc(ptr %default, i64 %allocated)
  %data = call ptr @data_of(ptr %new, i64 %size)
  ret ptr %data
}

define internal ptr @calloc_(ptr %context, i64 %number, i64 %each) {
  %size = mul i64 %number, %each
  %data = call ptr @malloc_(ptr %context, i64 %size)
  %refused = icmp eq ptr %data, null
  br i1 %refused, label %done, label %clear
clear:
  call void @llvm.memset.p0.i64(ptr %data, i8 0, i64 %size, i1 0)
  br label %done
done:
  ret ptr %data
}

define internal ptr @realloc_(ptr %context, ptr %data, i64 %size) {
  %block = getelementptr %block, ptr %data, i64 -1
  %allocated = add i64 %size, 16
  %default = call ptr @of_default(i64 0)
  %realloc = call ptr @of_default(i64 3)
  %new = call ptr %realloc(ptr %default, ptr %block, i64 %allocated)
  %moved = call ptr @data_of(ptr %new, i64 %size)
  ret ptr %moved
}

define internal void @free_(ptr %context, ptr %data, i64 %size) {
  %block = getelementptr %block, ptr %data, i64 -1
  %bytes = call i64 @bytes_of(ptr %block)
  %small = icmp ult i64 %bytes, LARGE
  br i1 %small, label %give, label %keep
give:
  call void @give_back(ptr %block)
  ret void
keep:
  %next = load ptr, ptr @first
  store ptr %next, ptr %block
  store ptr %block, ptr @first
  call void @count(i64 %bytes)
  call void @pool_trim()
  ret void
}

define void @pool_trim() {
  %limit = load i64, ptr @pool_limit
  %free = load i64, ptr @pool_bytes
  %within = icmp ule i64 %free, %limit
  br i1 %within, label %done, label %look
look:
  %link = phi ptr [@first, %0], [%block, %look]
  %total = phi i64 [0, %0], [%sum, %look]
  %block = load ptr, ptr %link
  %bytes = call i64 @bytes_of(ptr %block)
  %sum = add i64 %total, %bytes
  %stays = icmp ule i64 %sum, %limit
  br i1 %stays, label %look, label %cut
cut:
  store ptr null, ptr %link
  store i64 %total, ptr @pool_bytes
  br label %give
give:
  %last = phi ptr [%block, %cut], [%next, %give]
  %next = load ptr, ptr %last
  call void @give_back(ptr %last)
  %ends = icmp eq ptr %next, null
  br i1 %ends, label %done, label %give
done:
  ret void
}

define internal void @give_back(ptr %block) {
  %bytes = call i64 @bytes_of(ptr %block)
  %allocated = add i64 %bytes, 16
  %default = call ptr @of_default(i64 0)
  %free = call ptr @of_default(i64 4)
  call void %free(ptr %default, ptr %block, i64 %allocated)
  ret void
}

define internal ptr @of_default(i64 %member) {
  %default = load ptr, ptr @pool_default
  %place = getelementptr ptr, ptr %default, i64 %member
  %found = load ptr, ptr %place
  ret ptr %found
}

define internal ptr @data_of(ptr %block, i64 %bytes) {
  %refused = icmp eq ptr %block, null
  br i1 %refused, label %fail, label %note
note:
  %place = getelementptr %block, ptr %block, i64 0, i32 1
  store i64 %bytes, ptr %place
  %data = getelementptr %block, ptr %block, i64 1
  ret ptr %data
fail:
  ret ptr null
}

define internal i64 @bytes_of(ptr %block) {
  %place = getelementptr %block, ptr %block, i64 0, i32 1
  %bytes = load i64, ptr %place
  ret i64 %bytes
}

define internal void @count(i64 %change) {
  %before = load i64, ptr @pool_bytes
  %after = add i64 %before, %change
  store i64 %after, ptr @pool_bytes
  ret void
}
"""


def code() -> str:
    """The code, with its numbers."""
    return CODE.replace("LARGE", str(LARGE)).replace("NAME", "fnad" + 123 * r"\00")


class Pool:
    """The free blocks of this process, and the arrays that take from them."""

    def __init__(self) -> None:
        engine = link(object_code(key_of(text := code()), lambda: llvm.parse_assembly(text)))
        places = {
            name: engine.get_global_value_address(f"pool_{name}")
            for name in ("bytes", "limit", "default", "handler", "capsule")
        }
        self._trim = ctypes.PYFUNCTYPE(None)(engine.get_function_address("pool_trim"))
        engine.detach()  # which unloads nothing
        self._bytes, self._limit = (ctypes.c_int64.from_address(places[name]) for name in ("bytes", "limit"))
        self._default = default_handler()
        ctypes.c_void_p.from_address(places["default"]).value = address(self._default) + ALLOCATOR
        self._context = Context()
        self._context.run(set_handler, capsule(places["handler"], places["capsule"]))
        STORE.share(self)

    def empty(self, shape: tuple[int, ...], dtype: Dtype) -> Array:
        """An array whose content is not defined, as that of `np.empty`."""
        if current_handler() is not self._default:
            return np.empty(shape, dtype)
        self._limit.value = config.current().cache_bytes // SHARE
        WATCH.note(self)
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
