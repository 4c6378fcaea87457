"""One thread for matrix products and small factorizations.

OpenBLAS distributes a product of more than a few hundred thousand multiplications over all its threads, which spin
while they wait for each other. On a busy machine a product of some microseconds then takes milliseconds. So native
code runs the BLAS on its own thread, and divides large products among fnad's threads (`threads.py`), which do not
spin: `enter` sets OpenBLAS to one thread, `leave` restores the previous setting. Both are native and take nanoseconds;
they count users, since several threads may be inside. NumPy and SciPy each bring an OpenBLAS, and each has a pair of
its own.

    enter: lock; if users == 0 { saved = get(); if saved > 1 { set(1) } }; users += 1; unlock
    leave: lock; users -= 1; if users == 0 and saved > 1 and get() == 1 { set(saved) }; unlock
"""

from __future__ import annotations

import ctypes
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import llvmlite.ir as ir

from fnad import forks
from fnad.backends.cpu import system
from fnad.backends.cpu.codegen import LOWEST
from fnad.backends.cpu.loader import key_of, link, object_code
from fnad.backends.llvm.emitter import Builder
from fnad.backends.llvm.scalar import call

LARGEST = 2**22
"""The most multiplications of a small product: about 0.1 ms of work."""

GETTERS = tuple(f"{p}openblas_get_num_threads{s}" for p in ("scipy_", "") for s in ("", "64_"))
SETTERS = tuple(name.replace("get", "set") for name in GETTERS)
CORE_NAMES = tuple(name.replace("num_threads", "corename") for name in GETTERS)

PAIR = "enter", "leave"
DECLARATIONS = """
@state = external global [3 x i32]
declare i32 @get()
declare void @set(i32)
declare i32 @YIELD()
"""
WITHOUT = "define void @enter() { ret void }\ndefine void @leave() { ret void }"
CODE = """
define internal void @lock() alwaysinline {
  br label %again
again:
  ; acquire, with the releases below: the numbers that are read are those of the last thread that had the lock
  %taken = atomicrmw xchg ptr @state, i32 1 acquire
  %busy = icmp ne i32 %taken, 0
  br i1 %busy, label %wait, label %done
wait:
  call i32 @YIELD()
  br label %again
done:
  ret void
}

define void @enter() {
  call void @lock()
  %users = getelementptr i32, ptr @state, i64 1
  %saved = getelementptr i32, ptr @state, i64 2
  %count = load i32, ptr %users
  %more = add i32 %count, 1
  store i32 %more, ptr %users
  %first = icmp eq i32 %count, 0
  br i1 %first, label %save, label %done
save:
  %threads = call i32 @get()
  store i32 %threads, ptr %saved
  %many = icmp sgt i32 %threads, 1
  br i1 %many, label %limit, label %done
limit:
  call void @set(i32 1)
  br label %done
done:
  store atomic i32 0, ptr @state release, align 4
  ret void
}

define void @leave() {
  call void @lock()
  %users = getelementptr i32, ptr @state, i64 1
  %saved = getelementptr i32, ptr @state, i64 2
  %count = load i32, ptr %users
  %fewer = sub i32 %count, 1
  store i32 %fewer, ptr %users
  %threads = load i32, ptr %saved
  %last = icmp eq i32 %fewer, 0
  %many = icmp sgt i32 %threads, 1
  %now = call i32 @get()
  %limited = icmp eq i32 %now, 1
  %changed = and i1 %many, %limited
  %restore = and i1 %last, %changed
  br i1 %restore, label %back, label %done
back:
  call void @set(i32 %threads)
  br label %done
done:
  store atomic i32 0, ptr @state release, align 4
  ret void
}
"""

_KEPT: list[Any] = []
"""The code, and the memory in which it counts its users."""


@contextmanager
def one_thread(builder: Builder, library_file: str, prefix: str) -> Generator[None]:
    """Write calls between which the OpenBLAS that the extension module at this path is linked to has one thread."""
    enter, leave = registered(library_file, prefix)
    call(builder, enter, ir.VoidType())
    yield
    call(builder, leave, ir.VoidType())


@cache
def registered(library_file: str, prefix: str) -> tuple[str, ...]:
    """The symbols of `PAIR` for a library, registered with LLVM; for another BLAS they do nothing."""
    library, state = ctypes.CDLL(library_file), (ctypes.c_int * 3)()  # lock, users, saved
    forks.at_fork(after_in_child=lambda: ctypes.memset(state, 0, ctypes.sizeof(state)))
    addresses = {"state": ctypes.addressof(state), "get": _symbol(library, GETTERS), "set": _symbol(library, SETTERS)}
    code = (DECLARATIONS + CODE).replace("YIELD", system.yield_name()) if all(addresses.values()) else WITHOUT
    for word in ("state", "get", "set", *PAIR):
        code = code.replace(f"@{word}", f"@{prefix}{word}")
    for word, address in addresses.items():
        llvm.add_symbol(f"{prefix}{word}", address or 0)
    linked = link(object_code(key_of(code), lambda: llvm.parse_assembly(code), LOWEST))
    symbols = tuple(f"{prefix}{word}" for word in PAIR)
    for symbol in symbols:
        llvm.add_symbol(symbol, linked.get_function_address(symbol))
    _KEPT.append((linked, state))
    return symbols


def _symbol(library: ctypes.CDLL, names: tuple[str, ...]) -> int | None:
    for name in names:
        if hasattr(library, name):
            return ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    return None
