"""Residual stacks: arrays that grow while a kernel runs, one row for each iteration of a loop of unknown length.

A residual stack is three numbers in an i64 table: its address, its capacity in bytes and its rows. It doubles if full.

    reserve(table, n, rows, row)    make room for `rows` rows of `row` bytes on stack n; False if memory runs out
    recorded(table, n, dtype)       the array of stack n, until it grows
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from fnad.scalar.operation import Dtype

ADDRESS, CAPACITY, ROWS, FIELDS = 0, 1, 2, 3
SMALLEST = 4096
NO_MEMORY = 2**62
"""The status of a run where a residual stack cannot grow."""

_reallocate = ctypes.pythonapi.PyMem_RawRealloc
_reallocate.restype, _reallocate.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t]
_free = ctypes.pythonapi.PyMem_RawFree
_free.restype, _free.argtypes = None, [ctypes.c_void_p]


def reserve(table: Any, number: int, rows: int, row: int) -> bool:
    """Make room for this many rows; return whether that succeeded."""
    entry = table[FIELDS * number : FIELDS * (number + 1)]
    entry[ROWS] = rows
    if rows * row > entry[CAPACITY]:
        more = max(rows * row, 2 * int(entry[CAPACITY]), SMALLEST)
        grown, old = _reallocate(None, more), int(entry[ADDRESS])
        if grown is None:
            return False
        ctypes.memmove(grown, old, int(entry[CAPACITY]))
        entry[:] = grown, more, rows  # at once: of the table and the memory, an interrupt may lose the memory alone
        _free(old or None)
    return True


def recorded(table: Any, number: int, dtype: Dtype) -> Any:
    """The memory of a residual stack as a flat array."""
    address, capacity = (int(n) for n in table[FIELDS * number : FIELDS * number + ROWS])
    if capacity == 0:
        return np.empty(0, dtype)
    memory = (ctypes.c_ubyte * capacity).from_address(address)
    return np.ctypeslib.as_array(memory).view(dtype)[: capacity // dtype.itemsize]


def new_table(stacks: int) -> Any:
    """The table of this many empty stacks."""
    return np.zeros(FIELDS * stacks, np.int64)


def rows_of(table: Any, number: int) -> int:
    return int(table[FIELDS * number + ROWS])


def release(table: Any) -> None:
    """Free all stacks."""
    addresses = table[ADDRESS::FIELDS].tolist()
    table[:] = 0  # first: an interrupt may leak memory, but nothing may be freed twice
    for address in addresses:
        _free(address or None)
