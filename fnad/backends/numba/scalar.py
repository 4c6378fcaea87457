"""The scalar types of emitted code: their LLVM form, and casts between them with NumPy's `astype` semantics.

A bool is an i1 in a register and one byte in memory; a complex number is the pair {real, imaginary}. Casts out of an
integer's range, undefined in C and in NumPy, saturate, and nan becomes 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import llvmlite.ir as ir
import numpy as np

from fnad.backends.numba.operation import Kind, OperandError, Operation

DTYPES: dict[str, np.dtype[Any]] = {
    "bool_": np.dtype(np.bool_),
    **{f"{kind}{8 * size}": np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)},
    **{f"{kind}{8 * size}": np.dtype(f"{kind}{size}") for kind, size in (("f", 4), ("f", 8), ("c", 8), ("c", 16))},
}


def llvm_type(dtype: np.dtype[Any]) -> ir.Type:
    """Return the LLVM type of a value of `dtype` in a register."""
    if dtype.kind == "b":
        return ir.IntType(1)
    if dtype.kind in "iu":
        return ir.IntType(8 * dtype.itemsize)
    if dtype.kind == "f":
        return ir.FloatType() if dtype.itemsize == 4 else ir.DoubleType()
    part = llvm_type(real_dtype(dtype))
    return ir.LiteralStructType([part, part])


def real_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of the parts of a complex `dtype`; any other is its own."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def parts(builder: ir.IRBuilder, value: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Return the real and the imaginary part of a complex value."""
    return builder.extract_value(value, 0), builder.extract_value(value, 1)


def pair(builder: ir.IRBuilder, real: ir.Value, imaginary: ir.Value) -> ir.Value:
    """Return the complex value with these parts."""
    empty = ir.Constant(ir.LiteralStructType([real.type, imaginary.type]), ir.Undefined)
    return builder.insert_value(builder.insert_value(empty, real, 0), imaginary, 1)


def cast(builder: ir.IRBuilder, source: np.dtype[Any], target: np.dtype[Any], value: ir.Value) -> ir.Value:
    """Return `value` of dtype `source` as `target`, as NumPy's astype does."""
    if source == target:
        return value
    if target.kind == "b":
        return is_true(builder, source, value)
    if target.kind == "c":
        return to_complex(builder, source, target, value)
    if source.kind == "c":
        return cast(builder, real_dtype(source), target, builder.extract_value(value, 0))
    if target.kind == "f":
        return to_float(builder, source, target, value)
    return to_integer(builder, source, target, value)


def is_true(builder: ir.IRBuilder, source: np.dtype[Any], value: ir.Value) -> ir.Value:
    """Return value != 0; nan is true."""
    if source.kind == "c":
        real, imaginary = parts(builder, value)
        real_is_true = is_true(builder, real_dtype(source), real)
        return builder.or_(real_is_true, is_true(builder, real_dtype(source), imaginary))
    if source.kind == "f":
        return builder.fcmp_unordered("!=", value, value.type(0.0))
    return builder.icmp_unsigned("!=", value, value.type(0))


def to_complex(builder: ir.IRBuilder, source: np.dtype[Any], target: np.dtype[Any], value: ir.Value) -> ir.Value:
    part = real_dtype(target)
    if source.kind == "c":
        real, imaginary = (cast(builder, real_dtype(source), part, p) for p in parts(builder, value))
        return pair(builder, real, imaginary)
    return pair(builder, cast(builder, source, part, value), llvm_type(part)(0.0))


def to_float(builder: ir.IRBuilder, source: np.dtype[Any], target: np.dtype[Any], value: ir.Value) -> ir.Value:
    convert = {"b": builder.uitofp, "u": builder.uitofp, "i": builder.sitofp}.get(source.kind)
    if convert is None:
        convert = builder.fpext if target.itemsize > source.itemsize else builder.fptrunc
    return convert(value, llvm_type(target))


def to_integer(builder: ir.IRBuilder, source: np.dtype[Any], target: np.dtype[Any], value: ir.Value) -> ir.Value:
    into = llvm_type(target)
    if source.kind == "f":
        saturating = "llvm.fptosi.sat" if target.kind == "i" else "llvm.fptoui.sat"
        return builder.call(declare(builder.module, f"{saturating}.{suffix(into)}.{suffix(value.type)}", into, [value.type]), [value])
    if target.itemsize < source.itemsize:
        return builder.trunc(value, into)
    if source.kind == "b" or target.itemsize > source.itemsize:
        return builder.sext(value, into) if source.kind == "i" else builder.zext(value, into)
    return value


def suffix(type_: ir.Type) -> str:
    """Return the type's name within an LLVM intrinsic's: f64, i32."""
    return {"double": "f64", "float": "f32"}.get(str(type_), str(type_))


def declare(module: ir.Module, name: str, result: ir.Type, operands: Sequence[ir.Type]) -> ir.Function:
    """Return the function `name` of `module`, declared on first use."""
    return module.globals.get(name) or ir.Function(module, ir.FunctionType(result, operands), name=name)


def constructor(name: str, target: np.dtype[Any]) -> Operation:
    """Return the cast named `name`."""

    def result(source: Kind) -> Kind:
        if not isinstance(source, np.dtype):
            raise OperandError(f"{name} casts a scalar, not {source}")
        return target

    def emit(builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[ir.Value]) -> ir.Value:
        return cast(builder, kinds[0], target, values[0])

    def plain(value: Any) -> Any:
        source = np.asarray(value)
        return (source.real if source.dtype.kind == "c" and target.kind not in "cb" else source).astype(target)[()]

    return Operation(name, result, emit, plain)


CASTS = tuple(constructor(name, dtype) for name, dtype in DTYPES.items())
