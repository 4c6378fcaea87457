"""Python's operators on scalars, with NumPy's meaning: operands of one dtype, and integers wrap.

Numba has operators of its own. These are cheaper to type, give integers NumPy's widths, and know complex arithmetic without
compiling helpers; `compiler` puts them in their place.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import llvmlite.ir as ir
import numpy as np

from fnad.backends.numba.division import FLOOR_DIVIDE, REMAINDER, emit_divide
from fnad.backends.numba.integer import LEFT_SHIFT, RIGHT_SHIFT
from fnad.backends.numba.operation import BOOL, INDEX, Emit, Kind, OperandError, Operation, Pointer, among, by_kind, to_bool
from fnad.backends.numba.scalar import is_true, multiply_complex, on_parts, parts


def binary(method: str) -> Emit:
    """Return the emitter of the builder's instruction `method`."""
    return lambda builder, kinds, values: getattr(builder, method)(*values)


def by_parts(method: str) -> Emit:
    return lambda builder, kinds, values: on_parts(builder, getattr(builder, method), *values)


def emit_multiply_complex(builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[Any]) -> ir.Value:
    return multiply_complex(builder, *values)


def compare(sign: str) -> Operation:
    """Return the comparison written `sign`; with nan only != is true."""
    ordered = "fcmp_unordered" if sign == "!=" else "fcmp_ordered"

    def instruction(method: str) -> Emit:
        return lambda builder, kinds, values: getattr(builder, method)(sign, *values)

    def equal_parts(builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[Any]) -> ir.Value:
        reals, imaginaries = zip(*(parts(builder, value) for value in values), strict=True)
        combine = builder.or_ if sign == "!=" else builder.and_
        return combine(getattr(builder, ordered)(sign, *reals), getattr(builder, ordered)(sign, *imaginaries))

    letters = "biufc" if sign in ("==", "!=") else "biuf"
    emit = by_kind(bu=instruction("icmp_unsigned"), i=instruction("icmp_signed"), f=instruction(ordered), c=equal_parts)
    return Operation(sign, among(letters, to_bool), emit, PYTHON[sign])


def emit_not(builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[Any]) -> ir.Value:
    return builder.not_(is_true(builder, kinds[0], values[0]))


def loaded(*kinds: Kind) -> Kind:
    pointer, index = kinds
    if not isinstance(pointer, Pointer) or index != INDEX:
        raise OperandError(f"a load needs an array and an i64 index, not {pointer} and {index}")
    return pointer.dtype


def stored(*kinds: Kind) -> Kind:
    if loaded(*kinds[:2]) != kinds[2]:
        raise OperandError(f"a value of dtype {kinds[2]} is stored in an array of {loaded(*kinds[:2])}: cast it first")
    return None


def emit_load(builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[Any]) -> ir.Value:
    pointer, index = values
    value = builder.load(builder.gep(pointer, [index], inbounds=True))
    return builder.trunc(value, ir.IntType(1)) if kinds[0].dtype == BOOL else value


def emit_store(builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[Any]) -> None:
    pointer, index, value = values
    byte_or_value = builder.zext(value, ir.IntType(8)) if kinds[2] == BOOL else value
    builder.store(byte_or_value, builder.gep(pointer, [index], inbounds=True))


PYTHON: dict[str, Callable[..., Any]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip

ADD = Operation("+", among("iufc"), by_kind(iu=binary("add"), f=binary("fadd"), c=by_parts("fadd")), operator.add)
SUBTRACT = Operation("-", among("iufc"), by_kind(iu=binary("sub"), f=binary("fsub"), c=by_parts("fsub")), operator.sub)
MULTIPLY = Operation("*", among("iufc"), by_kind(iu=binary("mul"), f=binary("fmul"), c=emit_multiply_complex), operator.mul)
DIVIDE = Operation("/", among("fc"), emit_divide, operator.truediv)
NEGATIVE = Operation("-", among("iufc"), by_kind(iu=binary("neg"), f=binary("fneg"), c=by_parts("fneg")), operator.neg)
POSITIVE = Operation("+", among("iufc"), lambda builder, kinds, values: values[0], operator.pos)
AND = Operation("&", among("biu"), binary("and_"), operator.and_)
OR = Operation("|", among("biu"), binary("or_"), operator.or_)
XOR = Operation("^", among("biu"), binary("xor"), operator.xor)
INVERT = Operation("~", among("biu"), binary("not_"), operator.invert)
NOT = Operation("logical_not", among("biufc", to_bool), emit_not, np.logical_not)
TRUTH = Operation("bool", among("b"), lambda builder, kinds, values: values[0], bool)
LOAD = Operation("load", loaded, emit_load, operator.getitem)
STORE = Operation("store", stored, emit_store, operator.setitem)

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
    **{PYTHON[sign]: compare(sign) for sign in PYTHON},
}  # fmt: skip
