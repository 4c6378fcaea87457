"""Python's operators on scalars, with NumPy's meaning: operands of one dtype, and integers wrap.

Numba has operators of its own. These are cheaper to type, keep NumPy's integer widths, and do complex arithmetic
without compiling helpers; `target` puts them in their place.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import llvmlite.ir as ir
import numpy as np

from fnad.backends.numba.division import FLOOR_DIVIDE, REMAINDER, divide_complex
from fnad.backends.numba.integer import LEFT_SHIFT, RIGHT_SHIFT
from fnad.backends.numba.operation import (
    BOOL,
    INDEX,
    Builder,
    Emit,
    Kind,
    Kinds,
    OperandError,
    Operation,
    Pointer,
    Value,
    Values,
    among,
    by_kind,
    to_bool,
)
from fnad.backends.numba.scalar import is_true, multiply_complex, on_parts, parts


def instruction(method: str) -> Emit:
    """Return the emitter of the builder's instruction `method`."""
    return lambda builder, kinds, values: getattr(builder, method)(*values)


def by_parts(method: str) -> Emit:
    """Return the emitter that does `method` to real and imaginary parts apart."""
    return lambda builder, kinds, values: on_parts(builder, getattr(builder, method), *values)


def compare(sign: str, plain: Callable[..., Any]) -> Operation:
    """Return the comparison written `sign`; with nan only != is true."""
    floats = "fcmp_unordered" if sign == "!=" else "fcmp_ordered"
    combine = "or_" if sign == "!=" else "and_"

    def comparison(method: str) -> Emit:
        return lambda builder, kinds, values: getattr(builder, method)(sign, *values)

    def of_parts(builder: Builder, kinds: Kinds, values: Values) -> Value:
        both = zip(*(parts(builder, value) for value in values), strict=True)
        return getattr(builder, combine)(*(getattr(builder, floats)(sign, *part) for part in both))

    emit = by_kind(bu=comparison("icmp_unsigned"), i=comparison("icmp_signed"), f=comparison(floats), c=of_parts)
    return Operation(sign, among("biufc" if sign in ("==", "!=") else "biuf", to_bool), emit, plain)


def loaded(*kinds: Kind) -> Kind:
    array, index = kinds
    if not isinstance(array, Pointer) or index != INDEX:
        raise OperandError(f"a load takes an array and an i64 index, not {array} and {index}")
    return array.dtype


def stored(*kinds: Kind) -> Kind:
    array, index, value = kinds
    if loaded(array, index) != value:
        raise OperandError(f"a value of dtype {value} is stored in {array}: cast it first")
    return None


def emit_load(builder: Builder, kinds: Kinds, values: Values) -> Value:
    array, index = values
    value = builder.load(builder.gep(array, [index], inbounds=True))
    return builder.trunc(value, ir.IntType(1)) if kinds[0].dtype == BOOL else value


def emit_store(builder: Builder, kinds: Kinds, values: Values) -> None:
    array, index, value = values
    in_memory = builder.zext(value, ir.IntType(8)) if kinds[2] == BOOL else value
    builder.store(in_memory, builder.gep(array, [index], inbounds=True))


ADD = Operation(
    "+", among("iufc"), by_kind(iu=instruction("add"), f=instruction("fadd"), c=by_parts("fadd")), operator.add
)
SUBTRACT = Operation(
    "-", among("iufc"), by_kind(iu=instruction("sub"), f=instruction("fsub"), c=by_parts("fsub")), operator.sub
)
MULTIPLY = Operation(
    "*",
    among("iufc"),
    by_kind(
        iu=instruction("mul"),
        f=instruction("fmul"),
        c=lambda builder, kinds, values: multiply_complex(builder, *values),
    ),
    operator.mul,
)
DIVIDE = Operation(
    "/",
    among("fc"),
    by_kind(f=instruction("fdiv"), c=lambda builder, kinds, values: divide_complex(builder, *values)),
    operator.truediv,
)
NEGATIVE = Operation(
    "-", among("iufc"), by_kind(iu=instruction("neg"), f=instruction("fneg"), c=by_parts("fneg")), operator.neg
)
POSITIVE = Operation("+", among("iufc"), lambda builder, kinds, values: values[0], operator.pos)
AND = Operation("&", among("biu"), instruction("and_"), operator.and_)
OR = Operation("|", among("biu"), instruction("or_"), operator.or_)
XOR = Operation("^", among("biu"), instruction("xor"), operator.xor)
INVERT = Operation("~", among("biu"), instruction("not_"), operator.invert)
NOT = Operation(
    "logical_not",
    among("biufc", to_bool),
    lambda builder, kinds, values: builder.not_(is_true(builder, kinds[0], values[0])),
    np.logical_not,
)
TRUTH = Operation("bool", among("b"), lambda builder, kinds, values: values[0], bool)
LOAD = Operation("load", loaded, emit_load, operator.getitem)
STORE = Operation("store", stored, emit_store, operator.setitem)
COMPARISONS: dict[Callable[..., Any], str] = {
    operator.eq: "==", operator.ne: "!=", operator.lt: "<", operator.le: "<=", operator.gt: ">", operator.ge: ">=",
}  # fmt: skip

OPERATIONS = (NOT,)
OPERATORS: dict[Callable[..., Any], Operation] = {
    operator.add: ADD, operator.iadd: ADD,
    operator.sub: SUBTRACT, operator.isub: SUBTRACT,
    operator.mul: MULTIPLY, operator.imul: MULTIPLY,
    operator.truediv: DIVIDE, operator.itruediv: DIVIDE,
    operator.floordiv: FLOOR_DIVIDE, operator.ifloordiv: FLOOR_DIVIDE,
    operator.mod: REMAINDER, operator.imod: REMAINDER,
    operator.neg: NEGATIVE, operator.pos: POSITIVE,
    operator.and_: AND, operator.iand: AND,
    operator.or_: OR, operator.ior: OR,
    operator.xor: XOR, operator.ixor: XOR,
    operator.lshift: LEFT_SHIFT, operator.ilshift: LEFT_SHIFT,
    operator.rshift: RIGHT_SHIFT, operator.irshift: RIGHT_SHIFT,
    operator.invert: INVERT, operator.not_: NOT, bool: TRUTH,
    operator.getitem: LOAD, operator.setitem: STORE,
    **{function: compare(sign, function) for function, sign in COMPARISONS.items()},
}  # fmt: skip
