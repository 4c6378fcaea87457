"""Residual stacks in native code: see `fnad.kernel.residual_stack`."""

from __future__ import annotations

from functools import partial

import llvmlite.ir as ir

from fnad.backends.llvm.emitter import Builder, Dtype, Instructions, Kinds, Value, Values
from fnad.backends.llvm.scalar import call, memory_type
from fnad.kernel.residual_stack import ADDRESS, FIELDS, SMALLEST
from fnad.kernel.routines import STACK_ARRAYS

LONG, BYTES = ir.IntType(64), ir.IntType(8).as_pointer()


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


def array_of(dtype: Dtype, builder: Builder, kinds: Kinds, values: Values) -> Value:
    """Emit the address of the array of a residual stack."""
    table, number = values
    return builder.inttoptr(builder.load(field_of(builder, table, number, ADDRESS)), memory_type(dtype).as_pointer())


INSTRUCTIONS: Instructions = {"reserve": emit_reserve} | {
    routine.name: partial(array_of, dtype) for dtype, routine in STACK_ARRAYS.items()
}
