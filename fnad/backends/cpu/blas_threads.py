"""One thread for matrix products and small factorizations.

OpenBLAS distributes a product of more than a few hundred thousand multiplications over all its threads, which spin
while they wait for each other. On a busy machine a product of some microseconds then takes milliseconds. So native
code runs the BLAS on its own thread, and divides large products among fnad's threads (`threads.py`), which do not
spin: `enter` sets OpenBLAS to one thread, `leave` restores the previous setting. Both are native and take nanoseconds;
they count users, since several threads may be inside. NumPy and SciPy each bring an OpenBLAS, and each has a pair of
its own.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import llvmlite.ir as ir

from fnad import forks
from fnad.backends.cpu import blas_threads_code, native, system
from fnad.backends.cpu.codegen import LOWEST
from fnad.backends.cpu.loader import key_of, link, object_code
from fnad.backends.llvm.emitter import Builder
from fnad.backends.llvm.scalar import call
from fnad.lapack_threads import openblas_function

LARGEST = 2**22
"""The most multiplications of a small product: about 0.1 ms of work."""

PAIR = "enter", "leave"
WITHOUT = 'define void @"enter"() { ret void }\ndefine void @"leave"() { ret void }'

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
    library, state = ctypes.CDLL(library_file), (ctypes.c_int64 * 3)()
    forks.at_fork(after_in_child=lambda: ctypes.memset(state, 0, ctypes.sizeof(state)))
    addresses = {"state": ctypes.addressof(state)}
    for verb in ("get", "set"):
        function = openblas_function(library, f"{verb}_num_threads")
        addresses[f"{verb}_threads"] = ctypes.cast(function, ctypes.c_void_p).value or 0
    for word, address in addresses.items():
        llvm.add_symbol(f"{prefix}{word}", address)
    is_there = all(addresses.values())
    key = key_of(f"{blas_threads_code.__name__} {prefix} {is_there}")  # sources of fnad are part of each key
    linked = link(object_code(key, lambda: llvm.parse_assembly(code_for(prefix, is_there=is_there)), LOWEST))
    symbols = tuple(f"{prefix}{word}" for word in PAIR)
    for symbol in symbols:
        llvm.add_symbol(symbol, linked.get_function_address(symbol))
    _KEPT.append((linked, state))
    return symbols


def code_for(prefix: str, *, is_there: bool) -> str:
    """The functions of `PAIR` as LLVM code, for an OpenBLAS or for another BLAS, with a prefix for their names."""
    code = native.llvm_text(PAIR, blas_threads_code) if is_there else WITHOUT
    names = {word: f"{prefix}{word}" for word in ("state", "get_threads", "set_threads", *PAIR)}
    names["give_way"] = system.yield_name()
    return re.sub(r'@"(\w+)"', lambda found: f'@"{names.get(found[1], found[1])}"', code)
