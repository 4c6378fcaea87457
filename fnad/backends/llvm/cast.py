"""Casts between scalars, with the semantics of NumPy's `astype`.

A float out of an integer's range, which is undefined in C, is cast as in NumPy on x86-64. The float without its
fraction goes into a register of 32 bits, or of 64 for u32 and 64-bit integers; if it does not fit (nan never does), the
register gets its least integer. The result is the register's low bits. So 300. is 44 as a u8, and -1. is 255.
"""

from __future__ import annotations

import llvmlite.ir as ir
import numpy as np

from fnad.backends.llvm.emitter import Builder, Dtype, Emit, Instructions, Value
from fnad.backends.llvm.scalar import call, is_true, llvm_type, on_parts, overloaded, pair, parts
from fnad.scalar.operation import real_dtype
from fnad.scalar.operations import DTYPES


def cast(builder: Builder, source: Dtype, target: Dtype, value: Value) -> Value:
    """The `value` of dtype `source` as `target`."""
    if source == target:
        return value
    if target.kind == "b":
        return is_true(builder, source, value)
    if target.kind == "c":
        return to_complex(builder, source, target, value)
    if source.kind == "c":
        return cast(builder, real_dtype(source), target, parts(builder, value)[0])
    return (to_float if target.kind == "f" else to_integer)(builder, source, target, value)


def to_complex(builder: Builder, source: Dtype, target: Dtype, value: Value) -> Value:
    part = real_dtype(target)
    if source.kind == "c":
        return on_parts(builder, lambda v: cast(builder, real_dtype(source), part, v), value)
    return pair(builder, cast(builder, source, part, value), llvm_type(part)(0.0))


def to_float(builder: Builder, source: Dtype, target: Dtype, value: Value) -> Value:
    if source.kind == "b":  # of a vector's masks a number is chosen in one instruction, and converted in four
        into = llvm_type(target)
        return builder.select(is_true(builder, source, value), into(1.0), into(0.0))
    if source.kind == "f":
        convert = builder.fpext if target.itemsize > source.itemsize else builder.fptrunc
    else:
        convert = builder.sitofp if source.kind == "i" else builder.uitofp
    return convert(value, llvm_type(target))


def to_integer(builder: Builder, source: Dtype, target: Dtype, value: Value) -> Value:
    if source.kind == "f":
        return float_to_integer(builder, target, value)
    into = llvm_type(target)
    if into.width <= value.type.width:
        return low_bits(builder, value, into)
    return builder.sext(value, into) if source.kind == "i" else builder.zext(value, into)


def low_bits(builder: Builder, value: Value, into: ir.Type) -> Value:
    return builder.trunc(value, into) if into.width < value.type.width else value


def float_to_integer(builder: Builder, target: Dtype, value: Value) -> Value:
    if target == np.uint64:
        return float_to_u64(builder, value)
    register = ir.IntType(64 if target == np.uint32 or target.itemsize == 8 else 32)
    return low_bits(builder, truncated(builder, register, value), llvm_type(target))


def float_to_u64(builder: Builder, value: Value) -> Value:
    """The u64 of a float; from 2**63 on, that of the difference, with the highest bit flipped."""
    register, middle = ir.IntType(64), value.type(2.0**63)
    rest = truncated(builder, register, builder.fsub(value, middle))
    is_high = builder.fcmp_ordered(">=", value, middle)
    return builder.select(is_high, builder.xor(rest, register(1 << 63)), truncated(builder, register, value))


def truncated(builder: Builder, register: ir.Type, value: Value) -> Value:
    """A float without its fraction, in a register; its least integer if it does not fit."""
    whole, bound = call(builder, overloaded("llvm.trunc", value.type), value.type, value), 2 ** (register.width - 1)
    low, high = value.type(float(-bound)), value.type(float(bound))
    fits = builder.and_(builder.fcmp_ordered(">=", whole, low), builder.fcmp_ordered("<", whole, high))
    return builder.select(fits, builder.fptosi(whole, register), register(-bound))


def to(target: Dtype) -> Emit:
    """The emitter of the cast to `target`."""
    return lambda builder, kinds, values: cast(builder, kinds[0], target, values[0])


INSTRUCTIONS: Instructions = {name: to(dtype) for name, dtype in DTYPES.items()}
