"""Tapes: arrays that grow while native code runs, a row for each step of a loop whose length nobody knows.

A tape is three numbers in an i64 table, its address, its capacity in bytes and its rows. It doubles when it is full.

    reserve(table, n, rows, row)    have room for `rows` rows of `row` bytes on tape n; False where there is no memory
    tape_f64(table, n)              the array of tape n, until it grows; there is one such name for each dtype
"""

from __future__ import annotations

import ctypes
from typing import Any

import llvmlite.ir as ir
import numpy as np

from fnad.backends.numba.operation import BOOL, Builder, Dtype, Kinds, Operation, Pointer, Value, Values
from fnad.backends.numba.scalar import call, llvm_type
from fnad.ir.types import DTYPES, dtype_name

ADDRESS, CAPACITY, ROWS, FIELDS = 0, 1, 2, 3
SMALLEST = 4096
LONG, BYTES = ir.IntType(64), ir.IntType(8).as_pointer()

_reallocate = ctypes.pythonapi.PyMem_RawRealloc
_reallocate.restype, _reallocate.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t]
_free = ctypes.pythonapi.PyMem_RawFree
_free.restype, _free.argtypes = None, [ctypes.c_void_p]


def field_of(builder: Builder, table: Value, number: Value, position: int) -> Value:
    index = builder.add(builder.mul(number, LONG(FIELDS)), LONG(position))
    return builder.gep(table, [index], inbounds=True)


def emit_reserve(builder: Builder, kinds: Kinds, values: Values) -> Value:
    table, number, rows, row = values
    address, capacity, length = (field_of(builder, table, number, field) for field in range(FIELDS))
    needed, has = builder.mul(rows, row), builder.load(capacity)
    builder.store(rows, length)
    start = builder.block
    with builder.if_then(builder.icmp_signed(">", needed, has), likely=False):
        more = builder.mul(has, LONG(2))
        more = builder.select(builder.icmp_signed(">", needed, more), needed, more)
        more = builder.select(builder.icmp_signed(">", more, LONG(SMALLEST)), more, LONG(SMALLEST))
        old = builder.inttoptr(builder.load(address), BYTES)
        grown = builder.ptrtoint(call(builder, "PyMem_RawRealloc", BYTES, old, more), LONG)
        succeeded = builder.icmp_unsigned("!=", grown, LONG(0))
        with builder.if_then(succeeded, likely=True):
            builder.store(grown, address)
            builder.store(more, capacity)
        end = builder.block
    result = builder.phi(ir.IntType(1))
    result.add_incoming(ir.IntType(1)(1), start)
    result.add_incoming(succeeded, end)
    return result


def plain_reserve(table: Any, number: int, rows: int, row: int) -> bool:
    """Have room for so many rows; return whether there is."""
    entry = table[FIELDS * number : FIELDS * (number + 1)]
    entry[ROWS] = rows
    if rows * row > entry[CAPACITY]:
        more = max(rows * row, 2 * int(entry[CAPACITY]), SMALLEST)
        grown = _reallocate(int(entry[ADDRESS]) or None, more)
        if grown is None:
            return False
        entry[ADDRESS], entry[CAPACITY] = grown, more
    return True


def array_of(dtype: Dtype) -> Operation:
    """Return the operation that gives a tape as an array."""
    in_memory = ir.IntType(8) if dtype == BOOL else llvm_type(dtype)

    def emit(builder: Builder, kinds: Kinds, values: Values) -> Value:
        table, number = values
        return builder.inttoptr(builder.load(field_of(builder, table, number, ADDRESS)), in_memory.as_pointer())

    return Operation(
        f"tape_{cast_name(dtype)}", lambda *kinds: Pointer(dtype), emit, lambda t, n: recorded(t, n, dtype)
    )


def cast_name(dtype: Dtype) -> str:
    return "bool_" if dtype == BOOL else dtype_name(dtype)


def recorded(table: Any, number: int, dtype: Dtype) -> Any:
    """Return the memory of a tape as a flat array."""
    address, capacity = (int(n) for n in table[FIELDS * number : FIELDS * number + ROWS])
    if capacity == 0:
        return np.empty(0, dtype)
    memory = (ctypes.c_ubyte * capacity).from_address(address)
    return np.ctypeslib.as_array(memory).view(dtype)[: capacity // dtype.itemsize]


def new_table(tapes: int) -> Any:
    """Return the table of so many empty tapes."""
    return np.zeros(FIELDS * tapes, np.int64)


def rows_of(table: Any, number: int) -> int:
    return int(table[FIELDS * number + ROWS])


def release(table: Any) -> None:
    """Free all tapes."""
    for address in table[ADDRESS::FIELDS]:
        _free(int(address) or None)
    table[:] = 0


OPERATIONS = (
    Operation("reserve", lambda *kinds: BOOL, emit_reserve, plain_reserve),
    *map(array_of, DTYPES.values()),
)
