"""Casts between scalars, with the semantics of NumPy's `astype`.

A float out of an integer's range, which C and NumPy leave undefined, saturates, and nan becomes 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.backends.numba.operation import BOOL, Builder, Dtype, Kind, Kinds, OperandError, Operation, Value, Values
from fnad.backends.numba.scalar import call, is_true, llvm_type, on_parts, overloaded, pair, parts, real_dtype

DTYPES: dict[str, Dtype] = {
    "bool_": BOOL,
    **{f"{kind}{8 * size}": np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)},
    **{f"{kind}{8 * size}": np.dtype(f"{kind}{size}") for kind, size in (("f", 4), ("f", 8), ("c", 8), ("c", 16))},
}


def cast(builder: Builder, source: Dtype, target: Dtype, value: Value) -> Value:
    """Return `value`, of dtype `source`, as `target`."""
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
    if source.kind == "f":
        convert = builder.fpext if target.itemsize > source.itemsize else builder.fptrunc
    else:
        convert = builder.sitofp if source.kind == "i" else builder.uitofp
    return convert(value, llvm_type(target))


def to_integer(builder: Builder, source: Dtype, target: Dtype, value: Value) -> Value:
    into = llvm_type(target)
    if source.kind == "f":
        name = "llvm.fptosi.sat" if target.kind == "i" else "llvm.fptoui.sat"
        return call(builder, overloaded(name, into, value.type), into, value)
    if into.width <= value.type.width:
        return builder.trunc(value, into) if into.width < value.type.width else value
    return builder.sext(value, into) if source.kind == "i" else builder.zext(value, into)


def constructor(name: str, target: Dtype) -> Operation:
    """Return the cast to `target`, called `name`."""

    def result(source: Kind) -> Kind:
        if not isinstance(source, np.dtype):
            raise OperandError(f"{name} casts a scalar, not {source}")
        return target

    def emit(builder: Builder, kinds: Kinds, values: Values) -> Value:
        return cast(builder, kinds[0], target, values[0])

    def plain(value: Any) -> Any:
        return (np.real(value) if np.iscomplexobj(value) and target.kind not in "cb" else np.asarray(value)).astype(
            target
        )[()]

    return Operation(name, result, emit, plain)


OPERATIONS = tuple(constructor(name, dtype) for name, dtype in DTYPES.items())
