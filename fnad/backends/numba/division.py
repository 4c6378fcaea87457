"""Division with NumPy's values: quotients, floors, remainders and the remainders of C.

Integers: a zero divisor gives 0; the least integer divided by -1 wraps. Floats: the quotient and remainder of
`npy_divmod`, signs of zeros included. Complex: Smith's algorithm (R. L. Smith 1962, "Algorithm 116: Complex division").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import llvmlite.ir as ir
import numpy as np

from fnad.backends.numba import exact
from fnad.backends.numba.operation import Operation, among, by_kind
from fnad.backends.numba.scalar import call, overloaded, pair, parts


def emit_divide(builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[Any]) -> ir.Value:
    return divide_complex(builder, *values) if kinds[0].kind == "c" else builder.fdiv(*values)


def divide_complex(builder: ir.IRBuilder, dividend: ir.Value, divisor: ir.Value) -> ir.Value:
    """Return the quotient, scaled by the larger part of the divisor; a zero divisor divides both parts by +0."""
    (a, b), (c, d) = parts(builder, dividend), parts(builder, divisor)
    real_is_larger = builder.fcmp_ordered(">=", absolute(builder, c), absolute(builder, d))
    larger, smaller = builder.select(real_is_larger, c, d), builder.select(real_is_larger, d, c)
    ratio = exact.divide(builder, smaller, larger)
    scale = exact.divide(builder, c.type(1.0), exact.add(builder, larger, exact.multiply(builder, smaller, ratio)))
    scaled_a, scaled_b = exact.multiply(builder, a, ratio), exact.multiply(builder, b, ratio)
    real = builder.select(real_is_larger, exact.add(builder, a, scaled_b), exact.add(builder, scaled_a, b))
    imaginary = builder.select(real_is_larger, exact.subtract(builder, b, scaled_a), exact.subtract(builder, scaled_b, a))
    is_zero = builder.fcmp_ordered("==", larger, c.type(0.0))
    zero = absolute(builder, c)
    return pair(
        builder,
        builder.select(is_zero, exact.divide(builder, a, zero), exact.multiply(builder, real, scale)),
        builder.select(is_zero, exact.divide(builder, b, zero), exact.multiply(builder, imaginary, scale)),
    )


def absolute(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    return call(builder, overloaded("llvm.fabs", value.type), value.type, value)


def copy_sign(builder: ir.IRBuilder, magnitude: ir.Value, sign: ir.Value) -> ir.Value:
    return call(builder, overloaded("llvm.copysign", sign.type), sign.type, magnitude, sign)


def divide_integers(builder: ir.IRBuilder, signed: bool, a: ir.Value, b: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Return quotient and remainder rounded to zero, both 0 for a zero divisor."""
    is_zero = builder.icmp_unsigned("==", b, b.type(0))
    divisor = builder.select(is_zero, b.type(1), b)
    if not signed:
        quotient = builder.udiv(a, divisor)
    else:
        is_minus_one = builder.icmp_signed("==", b, b.type(-1))
        divided = builder.sdiv(a, builder.select(is_minus_one, b.type(1), divisor))
        quotient = builder.select(is_minus_one, builder.neg(a), divided)
    kept = builder.select(is_zero, a.type(0), quotient)
    remainder = builder.sub(a, builder.mul(kept, b))
    return kept, builder.select(is_zero, a.type(0), remainder)


def floor_integers(builder: ir.IRBuilder, signed: bool, a: ir.Value, b: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Return quotient and remainder rounded down, as Python does."""
    quotient, remainder = divide_integers(builder, signed, a, b)
    if not signed:
        return quotient, remainder
    differ_in_sign = builder.icmp_signed("<", builder.xor(remainder, b), b.type(0))
    adjust = builder.and_(builder.icmp_signed("!=", remainder, b.type(0)), differ_in_sign)
    less_one = builder.sub(quotient, quotient.type(1))
    return builder.select(adjust, less_one, quotient), builder.select(adjust, builder.add(remainder, b), remainder)


def floor_floats(builder: ir.IRBuilder, a: ir.Value, b: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Return quotient and remainder as npy_divmod does: the remainder has the divisor's sign, also where it is 0."""
    zero, one = a.type(0.0), a.type(1.0)
    rest = fmod(builder, a, b)
    near = exact.divide(builder, exact.subtract(builder, a, rest), b)
    is_exact = builder.fcmp_ordered("==", rest, zero)
    differ_in_sign = builder.xor(builder.fcmp_ordered("<", b, zero), builder.fcmp_ordered("<", rest, zero))
    adjust = builder.and_(differ_in_sign, builder.not_(is_exact))
    near = builder.select(adjust, exact.subtract(builder, near, one), near)
    nonzero = builder.select(adjust, exact.add(builder, rest, b), rest)
    remainder = builder.select(is_exact, copy_sign(builder, zero, b), nonzero)
    ratio = exact.divide(builder, a, b)
    quotient = snapped(builder, near, ratio)
    by_zero = builder.fcmp_ordered("==", b, zero)
    return builder.select(by_zero, ratio, quotient), builder.select(by_zero, rest, remainder)


def snapped(builder: ir.IRBuilder, near: ir.Value, ratio: ir.Value) -> ir.Value:
    """Return the integer `near` stands for; a zero has the sign of `ratio`."""
    zero, one = near.type(0.0), near.type(1.0)
    floor = call(builder, overloaded("llvm.floor", near.type), near.type, near)
    is_above = builder.fcmp_ordered(">", exact.subtract(builder, near, floor), near.type(0.5))
    integer = builder.select(is_above, exact.add(builder, floor, one), floor)
    return builder.select(builder.fcmp_ordered("==", near, zero), copy_sign(builder, zero, ratio), integer)


def fmod(builder: ir.IRBuilder, a: ir.Value, b: ir.Value) -> ir.Value:
    return call(builder, "fmod" if isinstance(a.type, ir.DoubleType) else "fmodf", a.type, a, b)


def emit_floor_divide(builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[Any]) -> ir.Value:
    return floor_quotient_and_remainder(builder, kinds, values)[0]


def emit_remainder(builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[Any]) -> ir.Value:
    return floor_quotient_and_remainder(builder, kinds, values)[1]


def floor_quotient_and_remainder(builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[Any]) -> tuple[ir.Value, ir.Value]:
    if kinds[0].kind == "f":
        return floor_floats(builder, *values)
    return floor_integers(builder, kinds[0].kind == "i", *values)


def emit_fmod(builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[Any]) -> ir.Value:
    if kinds[0].kind == "f":
        return fmod(builder, *values)
    return divide_integers(builder, kinds[0].kind == "i", *values)[1]


FLOOR_DIVIDE = Operation("floor_divide", among("iuf"), emit_floor_divide, np.floor_divide)
REMAINDER = Operation("remainder", among("iuf"), emit_remainder, np.remainder)
FMOD = Operation("fmod", among("iuf"), emit_fmod, np.fmod)
OPERATIONS = (FLOOR_DIVIDE, REMAINDER, FMOD)
