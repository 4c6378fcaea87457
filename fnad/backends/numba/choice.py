"""Choosing between values without a branch, so that loops vectorise: select, extrema, tests, signs, strong products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import llvmlite.ir as ir
import numpy as np

from fnad.backends.numba.division import absolute
from fnad.backends.numba.operation import BOOL, Emit, Kind, OperandError, Operation, among, by_kind, to_bool
from fnad.backends.numba.operators import MULTIPLY
from fnad.backends.numba.scalar import is_true, on_parts, parts, real_dtype


def selected(*kinds: Kind) -> Kind:
    condition, *arms = kinds
    if condition != BOOL:
        raise OperandError(f"select chooses by a bool, not {condition}")
    return among("biufc")(*arms)


def emit_select(builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[Any]) -> ir.Value:
    return choose(builder, kinds[1], *values)


def choose(builder: ir.IRBuilder, dtype: np.dtype[Any], condition: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
    """Return a where the condition is true, else b."""
    if dtype.kind == "c":
        return on_parts(builder, lambda x, y: builder.select(condition, x, y), a, b)
    return builder.select(condition, a, b)


def extremum(sign: str, nan_operand: int) -> Emit:
    """Return the emitter of `a if a <sign>= b else b` that also takes a where the operand numbered `nan_operand` is nan."""

    def floats(builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[Any]) -> ir.Value:
        wins = builder.fcmp_ordered(sign, *values)
        return builder.select(builder.or_(wins, emit_isnan(builder, kinds[:1], [values[nan_operand]])), *values)

    def integers(method: str) -> Emit:
        return lambda builder, kinds, values: builder.select(getattr(builder, method)(sign, *values), *values)

    return by_kind(f=floats, i=integers("icmp_signed"), bu=integers("icmp_unsigned"))


def emit_isnan(builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[Any]) -> ir.Value:
    return on_any_part(builder, kinds, values, lambda part: builder.fcmp_unordered("uno", part, part))


def emit_isinf(builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[Any]) -> ir.Value:
    infinity = float("inf")
    return on_any_part(builder, kinds, values, lambda part: builder.fcmp_ordered("==", absolute(builder, part), part.type(infinity)))


def emit_isfinite(builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[Any]) -> ir.Value:
    infinity = float("inf")
    is_not = on_any_part(builder, kinds, values, lambda part: builder.fcmp_unordered(">=", absolute(builder, part), part.type(infinity)))
    return builder.not_(is_not)


def on_any_part(builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[Any], test: Any) -> ir.Value:
    """Return whether the test holds of the float, or of either part of the complex number; an integer has none."""
    if kinds[0].kind == "c":
        real, imaginary = parts(builder, values[0])
        return builder.or_(test(real), test(imaginary))
    return test(values[0]) if kinds[0].kind == "f" else ir.IntType(1)(0)


def emit_signbit(builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[Any]) -> ir.Value:
    bits = builder.bitcast(values[0], ir.IntType(8 * kinds[0].itemsize))
    return builder.icmp_signed("<", bits, bits.type(0))


def sign_of_float(builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[Any]) -> ir.Value:
    """Return 1, -1 or +0; nan stays nan."""
    (value,) = values
    zero = value.type(0.0)
    nonzero = builder.select(builder.fcmp_ordered(">", value, zero), zero.type(1.0), zero.type(-1.0))
    ordered = builder.select(builder.fcmp_ordered("==", value, zero), zero, nonzero)
    return builder.select(emit_isnan(builder, kinds, values), value, ordered)


def sign_of_integer(builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[Any]) -> ir.Value:
    (value,) = values
    is_zero = builder.icmp_signed("==", value, value.type(0))
    if kinds[0].kind == "u":
        return builder.select(is_zero, value.type(0), value.type(1))
    return builder.select(is_zero, value.type(0), builder.or_(builder.ashr(value, value.type(value.type.width - 1)), value.type(1)))


def emit_strong_multiply(builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[Any]) -> ir.Value:
    dtype, (cotangent, _) = kinds[0], values
    product = MULTIPLY.emit(builder, kinds, values)
    zero = ir.Constant(cotangent.type, None)
    return choose(builder, dtype, is_true(builder, dtype, cotangent), product, zero)


def plain_strong_multiply(cotangent: Any, partial: Any) -> Any:
    return cotangent * partial if cotangent != 0 else type(cotangent)(0)


def plain_select(condition: Any, a: Any, b: Any) -> Any:
    return a if condition else b


OPERATIONS = (
    Operation("select", selected, emit_select, plain_select),
    Operation("minimum", among("biuf"), extremum("<=", 0), np.minimum),
    Operation("maximum", among("biuf"), extremum(">=", 0), np.maximum),
    Operation("fmin", among("biuf"), extremum("<=", 1), np.fmin),
    Operation("fmax", among("biuf"), extremum(">=", 1), np.fmax),
    Operation("min", among("i"), extremum("<=", 0), min),
    Operation("max", among("i"), extremum(">=", 0), max),
    Operation("isnan", among("iufc", to_bool), emit_isnan, np.isnan),
    Operation("isinf", among("iufc", to_bool), emit_isinf, np.isinf),
    Operation("isfinite", among("iufc", to_bool), emit_isfinite, np.isfinite),
    Operation("signbit", among("f", to_bool), emit_signbit, np.signbit),
    Operation("sign", among("iuf"), by_kind(f=sign_of_float, iu=sign_of_integer), np.sign),
    Operation("strong_multiply", among("iufc"), emit_strong_multiply, plain_strong_multiply),
)
