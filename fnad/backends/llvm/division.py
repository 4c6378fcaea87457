"""Division with NumPy's results: quotients, floor division, and the remainders of floor division and of C.

Integers: a zero divisor gives 0; the least integer divided by -1 wraps. Floats: the quotient and remainder of NumPy's
`npy_divmod`, signs of zeros included. Complex: Smith's algorithm (R. L. Smith 1962, "Algorithm 116: Complex division").
"""

from __future__ import annotations

from typing import Any

import llvmlite.ir as ir

from fnad.backends.llvm.emitter import Builder, Instructions, Kinds, Value, Values
from fnad.backends.llvm.scalar import absolute, call, is_nan, overloaded, pair, parts


def divide_complex(builder: Builder, dividend: Value, divisor: Value) -> Value:
    """The quotient, scaled by the larger part of the divisor; a zero divisor divides both parts by +0."""
    (a, b), (c, d) = parts(builder, dividend), parts(builder, divisor)
    real_is_larger = builder.fcmp_ordered(">=", absolute(builder, c), absolute(builder, d))
    larger, smaller = builder.select(real_is_larger, c, d), builder.select(real_is_larger, d, c)
    ratio = builder.fdiv(smaller, larger)
    scale = builder.fdiv(c.type(1.0), builder.fadd(larger, builder.fmul(smaller, ratio)))
    a_part, b_part = builder.fmul(a, ratio), builder.fmul(b, ratio)
    real = builder.select(real_is_larger, builder.fadd(a, b_part), builder.fadd(a_part, b))
    imaginary = builder.select(real_is_larger, builder.fsub(b, a_part), builder.fsub(b_part, a))
    is_zero, zero = builder.fcmp_ordered("==", larger, c.type(0.0)), absolute(builder, c)
    return pair(
        builder,
        builder.select(is_zero, builder.fdiv(a, zero), builder.fmul(real, scale)),
        builder.select(is_zero, builder.fdiv(b, zero), builder.fmul(imaginary, scale)),
    )


def divide_integers(builder: Builder, signed: bool, a: Value, b: Value) -> tuple[Value, Value]:
    """Quotient and remainder rounded to zero, both 0 for a zero divisor."""
    is_zero = builder.icmp_unsigned("==", b, b.type(0))
    divisor = builder.select(is_zero, b.type(1), b)
    if signed:
        is_minus_one = builder.icmp_signed("==", b, b.type(-1))
        divided = builder.sdiv(a, builder.select(is_minus_one, b.type(1), divisor))
        quotient = builder.select(is_minus_one, builder.neg(a), divided)
    else:
        quotient = builder.udiv(a, divisor)
    remainder = builder.sub(a, builder.mul(quotient, divisor))
    return builder.select(is_zero, a.type(0), quotient), builder.select(is_zero, a.type(0), remainder)


def floor_integers(builder: Builder, signed: bool, a: Value, b: Value) -> tuple[Value, Value]:
    """Quotient and remainder rounded down, as Python does."""
    quotient, remainder = divide_integers(builder, signed, a, b)
    if not signed:
        return quotient, remainder
    differ_in_sign = builder.icmp_signed("<", builder.xor(remainder, b), b.type(0))
    adjust = builder.and_(builder.icmp_signed("!=", remainder, b.type(0)), differ_in_sign)
    less_one = builder.sub(quotient, quotient.type(1))
    return builder.select(adjust, less_one, quotient), builder.select(adjust, builder.add(remainder, b), remainder)


def floor_floats(builder: Builder, a: Value, b: Value) -> tuple[Value, Value]:
    """Quotient and remainder as npy_divmod does: the remainder has the divisor's sign, also where it is 0."""
    zero = a.type(0.0)
    rest = remainder_of_c(builder, a, b)
    is_exact = builder.fcmp_ordered("==", rest, zero)
    differ_in_sign = builder.xor(builder.fcmp_ordered("<", b, zero), builder.fcmp_ordered("<", rest, zero))
    adjust = builder.and_(differ_in_sign, builder.not_(is_exact))
    near = builder.fdiv(builder.fsub(a, rest), b)
    near = builder.select(adjust, builder.fsub(near, a.type(1.0)), near)
    adjusted = builder.select(adjust, builder.fadd(rest, b), rest)
    remainder = builder.select(is_exact, copy_sign(builder, zero, b), adjusted)
    ratio = builder.fdiv(a, b)
    by_zero = builder.fcmp_ordered("==", b, zero)
    quotient = builder.select(by_zero, ratio, snapped(builder, near, ratio))
    return quotient, builder.select(by_zero, rest, remainder)


def snapped(builder: Builder, near: Value, ratio: Value) -> Value:
    """The integer nearest to `near`; a zero gets the sign of `ratio`."""
    zero = near.type(0.0)
    floor = call(builder, overloaded("llvm.floor", near.type), near.type, near)
    is_above = builder.fcmp_ordered(">", builder.fsub(near, floor), near.type(0.5))
    integer = builder.select(is_above, builder.fadd(floor, near.type(1.0)), floor)
    return builder.select(builder.fcmp_ordered("==", near, zero), copy_sign(builder, zero, ratio), integer)


def copy_sign(builder: Builder, magnitude: Value, sign: Value) -> Value:
    return call(builder, overloaded("llvm.copysign", sign.type), sign.type, magnitude, sign)


def remainder_of_c(builder: Builder, a: Value, b: Value) -> Value:
    """C's fmod. LLVM folds fmod(0, b) to 0 where b is known to be nonzero, even if b is nan."""
    rest = call(builder, "fmod" if isinstance(a.type, ir.DoubleType) else "fmodf", a.type, a, b)
    return builder.select(is_nan(builder, b), b, rest)


def floored(builder: Builder, kinds: Kinds, values: Values) -> tuple[Value, Value]:
    if kinds[0].kind == "f":
        return floor_floats(builder, *values)
    return floor_integers(builder, kinds[0].kind == "i", *values)


def emit_floor_divide(builder: Builder, kinds: Kinds, values: Values) -> Value:
    return floored(builder, kinds, values)[0]


def emit_remainder(builder: Builder, kinds: Kinds, values: Values) -> Value:
    return floored(builder, kinds, values)[1]


def emit_fmod(builder: Builder, kinds: Kinds, values: Values) -> Any:
    if kinds[0].kind == "f":
        return remainder_of_c(builder, *values)
    return divide_integers(builder, kinds[0].kind == "i", *values)[1]


INSTRUCTIONS: Instructions = {"floor_divide": emit_floor_divide, "remainder": emit_remainder, "fmod": emit_fmod}
