"""Scalars in LLVM: a bool is one bit in a register and one byte in memory, a complex number is {real, imaginary}."""

from __future__ import annotations

from collections.abc import Callable

import llvmlite.ir as ir

from fnad.backends.llvm.emitter import Builder, Dtype, Value
from fnad.scalar.operation import BOOL, real_dtype


def llvm_type(dtype: Dtype) -> ir.Type:
    """The LLVM type of a value of `dtype` in a register."""
    if dtype.kind == "b":
        return ir.IntType(1)
    if dtype.kind in "iu":
        return ir.IntType(8 * dtype.itemsize)
    if dtype.kind == "f":
        return ir.FloatType() if dtype.itemsize == 4 else ir.DoubleType()
    part = llvm_type(real_dtype(dtype))
    return ir.LiteralStructType([part, part])


def memory_type(dtype: Dtype) -> ir.Type:
    """The LLVM type of a value of `dtype` in memory."""
    return ir.IntType(8) if dtype == BOOL else llvm_type(dtype)


def parts(builder: Builder, value: Value) -> tuple[Value, Value]:
    """The real and the imaginary part of a complex value."""
    return builder.extract_value(value, 0), builder.extract_value(value, 1)


def pair(builder: Builder, real: Value, imaginary: Value) -> Value:
    """The complex value with these parts."""
    empty = ir.Constant(ir.LiteralStructType([real.type, imaginary.type]), ir.Undefined)
    return builder.insert_value(builder.insert_value(empty, real, 0), imaginary, 1)


def on_parts(builder: Builder, emit: Callable[..., Value], *values: Value) -> Value:
    """The complex value whose parts are `emit` of the values' parts."""
    reals, imaginaries = zip(*(parts(builder, value) for value in values), strict=True)
    return pair(builder, emit(*reals), emit(*imaginaries))


def multiply_complex(builder: Builder, left: Value, right: Value) -> Value:
    """The product (ac - bd) + (ad + bc)i, as in NumPy: without C99's correction of infinities."""
    (a, b), (c, d) = parts(builder, left), parts(builder, right)
    real = builder.fsub(builder.fmul(a, c), builder.fmul(b, d))
    return pair(builder, real, builder.fadd(builder.fmul(a, d), builder.fmul(b, c)))


def is_true(builder: Builder, dtype: Dtype, value: Value) -> Value:
    """True if the value is not 0; nan is true."""
    if dtype.kind == "b":
        return value
    if dtype.kind == "c":
        real, imaginary = (is_true(builder, real_dtype(dtype), part) for part in parts(builder, value))
        return builder.or_(real, imaginary)
    if dtype.kind == "f":
        return builder.fcmp_unordered("!=", value, value.type(0.0))
    return builder.icmp_unsigned("!=", value, value.type(0))


def is_nan(builder: Builder, value: Value) -> Value:
    return builder.fcmp_unordered("uno", value, value)


def absolute(builder: Builder, value: Value) -> Value:
    """The absolute value of a float."""
    return call(builder, overloaded("llvm.fabs", value.type), value.type, value)


def call(builder: Builder, name: str, result: ir.Type, *values: Value, flags: tuple[str, ...] = ()) -> Value:
    """Call the C function or LLVM intrinsic `name`, declared on first use."""
    module = builder.module
    function = module.globals.get(name)
    if function is None:
        function = ir.Function(module, ir.FunctionType(result, [value.type for value in values]), name=name)
    return builder.call(function, values, fastmath=flags)


def overloaded(name: str, *types: ir.Type) -> str:
    """The name of LLVM's intrinsic `name` for these types: llvm.fabs.f64, or llvm.fabs.v8f64 of vectors."""
    return ".".join([name, *map(_short, types)])


def _short(type_: ir.Type) -> str:
    if isinstance(type_, ir.VectorType):
        return f"v{type_.count}{_short(type_.element)}"
    return {"double": "f64", "float": "f32"}.get(str(type_), str(type_))
