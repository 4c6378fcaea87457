"""The scalar types of emitted code: their LLVM form, and casts between them with NumPy's `astype` semantics.

A bool is one bit in a register and one byte in memory; a complex number is the pair {real, imaginary}. Casts of a float out
of an integer's range, which C and NumPy leave undefined, saturate, and nan becomes 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


def on_parts(builder: ir.IRBuilder, emit: Callable[..., ir.Value], *values: ir.Value) -> ir.Value:
    """Return the complex value whose parts are `emit` of the values' parts."""
    reals, imaginaries = zip(*(parts(builder, value) for value in values), strict=True)
    return pair(builder, emit(*reals), emit(*imaginaries))


def multiply_complex(builder: ir.IRBuilder, left: ir.Value, right: ir.Value) -> ir.Value:
    (a, b), (c, d) = parts(builder, left), parts(builder, right)
    real = builder.fsub(builder.fmul(a, c), builder.fmul(b, d))
    return pair(builder, real, builder.fadd(builder.fmul(a, d), builder.fmul(b, c)))


def call(builder: ir.IRBuilder, name: str, result: ir.Type, *values: ir.Value) -> ir.Value:
    """Call the C function or LLVM intrinsic `name`, declared on first use."""
    module = builder.module
    function = module.globals.get(name) or ir.Function(module, ir.FunctionType(result, [v.type for v in values]), name=name)
    return builder.call(function, values)


def overloaded(name: str, *types: ir.Type) -> str:
    """Return the name of LLVM's intrinsic `name` for these types: llvm.fabs.f64."""
    return ".".join([name, *({"double": "f64", "float": "f32"}.get(str(type_), str(type_)) for type_ in types)])


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
    if source.kind == "b":
        return value
    if source.kind == "c":
        real, imaginary = (is_true(builder, real_dtype(source), part) for part in parts(builder, value))
        return builder.or_(real, imaginary)
    if source.kind == "f":
        return builder.fcmp_unordered("!=", value, value.type(0.0))
    return builder.icmp_unsigned("!=", value, value.type(0))


def to_complex(builder: ir.IRBuilder, source: np.dtype[Any], target: np.dtype[Any], value: ir.Value) -> ir.Value:
    part = real_dtype(target)
    if source.kind == "c":
        return on_parts(builder, lambda v: cast(builder, real_dtype(source), part, v), value)
    return pair(builder, cast(builder, source, part, value), llvm_type(part)(0.0))


def to_float(builder: ir.IRBuilder, source: np.dtype[Any], target: np.dtype[Any], value: ir.Value) -> ir.Value:
    if source.kind == "f":
        convert = builder.fpext if target.itemsize > source.itemsize else builder.fptrunc
    else:
        convert = builder.sitofp if source.kind == "i" else builder.uitofp
    return convert(value, llvm_type(target))


def to_integer(builder: ir.IRBuilder, source: np.dtype[Any], target: np.dtype[Any], value: ir.Value) -> ir.Value:
    into = llvm_type(target)
    if source.kind == "f":
        name = "llvm.fptosi.sat" if target.kind == "i" else "llvm.fptoui.sat"
        return call(builder, overloaded(name, into, value.type), into, value)
    if into.width <= value.type.width:
        return builder.trunc(value, into) if into.width < value.type.width else value
    return builder.sext(value, into) if source.kind == "i" else builder.zext(value, into)


def constructor(name: str, target: np.dtype[Any]) -> Operation:
    """Return the cast named `name`."""

    def result(source: Kind) -> Kind:
        if not isinstance(source, np.dtype):
            raise OperandError(f"{name} casts a scalar, not {source}")
        return target

    def emit(builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[Any]) -> ir.Value:
        return cast(builder, kinds[0], target, values[0])

    def plain(value: Any) -> Any:
        source = np.asarray(value)
        return (source.real if source.dtype.kind == "c" and target.kind not in "cb" else source).astype(target)[()]

    return Operation(name, result, emit, plain)


CASTS = tuple(constructor(name, dtype) for name, dtype in DTYPES.items())
