"""Operations without a branch, so that loops vectorise: selects, extrema, tests, signs, exponents, strong products."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import llvmlite.ir as ir
import numpy as np

from fnad.backends.llvm.emitter import Builder, Dtype, Emit, Instructions, Kinds, Value, Values, by_kind
from fnad.backends.llvm.operators import multiply
from fnad.backends.llvm.scalar import absolute, call, is_nan, is_true, on_parts, overloaded, parts

INFINITY = float("inf")

# ---- neighbours and exponents ----------------------------------------------------------------------------------------


def next_after(builder: Builder, kinds: Kinds, values: Values) -> Value:
    """The next number after x towards y, as C has it: bits of numbers of one sign are in the order of their sizes."""
    (x, y), word = values, ir.IntType(8 * kinds[0].itemsize)
    grows = builder.icmp_unsigned("==", builder.fcmp_ordered("<", x, y), builder.fcmp_ordered(">", x, x.type(0.0)))
    moved = builder.add(builder.bitcast(x, word), builder.select(grows, word(1), word(-1)))
    sign = builder.and_(builder.bitcast(y, word), word(1 << word.width - 1))
    bits = builder.select(builder.fcmp_ordered("==", x, x.type(0.0)), builder.or_(sign, word(1)), moved)
    found = builder.select(builder.fcmp_ordered("==", x, y), y, builder.bitcast(bits, x.type))
    return builder.select(builder.fcmp_unordered("uno", x, y), builder.fadd(x, y), found)


def scale(builder: Builder, kinds: Kinds, values: Values) -> Value:
    """The product x * 2**e as C's `ldexp`: steps before the last are exact, or the result is 0 or infinite."""
    (x, e), word = values, ir.IntType(8 * kinds[0].itemsize)
    digits = np.finfo(kinds[0]).nmant
    largest = np.finfo(kinds[0]).maxexp - 1
    least = 1 - largest
    far = least + digits + 1
    e = builder.sext(e, ir.IntType(64)) if e.type.width < 64 else e
    e = clamped(builder, e, 4 * least, 4 * largest)
    e = builder.trunc(e, word) if word.width < 64 else e
    for _ in range(2):
        is_below, is_above = builder.icmp_signed("<", e, word(least)), builder.icmp_signed(">", e, word(largest))
        power = builder.select(is_below, x.type(2.0**far), builder.select(is_above, x.type(2.0**largest), x.type(1.0)))
        done = builder.select(is_below, word(far), builder.select(is_above, word(largest), word(0)))
        x, e = builder.fmul(x, power), builder.sub(e, done)
    exponent = builder.add(clamped(builder, e, least, largest), word(largest))
    return builder.fmul(x, builder.bitcast(builder.shl(exponent, word(digits)), x.type))


def clamped(builder: Builder, number: Value, low: int, high: int) -> Value:
    least, most = number.type(low), number.type(high)
    number = builder.select(builder.icmp_signed("<", number, least), least, number)
    return builder.select(builder.icmp_signed(">", number, most), most, number)


# ---- selects -----------------------------------------------------------------------------------------------------


def choose(builder: Builder, dtype: Dtype, condition: Value, a: Value, b: Value) -> Value:
    """The value a where the condition is true, else b."""
    if dtype.kind == "c":
        return on_parts(builder, lambda x, y: builder.select(condition, x, y), a, b)
    return builder.select(condition, a, b)


def emit_select(builder: Builder, kinds: Kinds, values: Values) -> Value:
    return choose(builder, kinds[1], *values)


def emit_strong_multiply(builder: Builder, kinds: Kinds, values: Values) -> Value:
    """The product cotangent * partial, and 0 where the cotangent is 0, whatever the partial."""
    cotangent, _ = values
    product = multiply(builder, kinds, values)
    is_nonzero = is_true(builder, kinds[0], cotangent)
    return choose(builder, kinds[0], is_nonzero, product, ir.Constant(cotangent.type, None))


# ---- tests and signs ---------------------------------------------------------------------------------------------


def test(of_float: Callable[[Builder, Value], Value]) -> Emit:
    """The emitter of a test that is true of a complex number if it is of either part, and of no integer."""

    def of_parts(builder: Builder, kinds: Kinds, values: Values) -> Value:
        return builder.or_(*(of_float(builder, part) for part in parts(builder, values[0])))

    return by_kind(
        f=lambda builder, kinds, values: of_float(builder, values[0]),
        c=of_parts,
        iu=lambda builder, kinds, values: ir.IntType(1)(0),
    )


def is_infinite(builder: Builder, value: Value) -> Value:
    return builder.fcmp_ordered("==", absolute(builder, value), value.type(INFINITY))


def is_not_finite(builder: Builder, value: Value) -> Value:
    return builder.fcmp_unordered(">=", absolute(builder, value), value.type(INFINITY))


def emit_isfinite(builder: Builder, kinds: Kinds, values: Values) -> Value:
    return builder.not_(test(is_not_finite)(builder, kinds, values))


def emit_signbit(builder: Builder, kinds: Kinds, values: Values) -> Value:
    bits = builder.bitcast(values[0], ir.IntType(8 * kinds[0].itemsize))
    return builder.icmp_signed("<", bits, bits.type(0))


def sign_of_float(builder: Builder, kinds: Kinds, values: Values) -> Value:
    """The sign 1, -1 or +0; nan stays nan."""
    (value,) = values
    zero = value.type(0.0)
    nonzero = builder.select(builder.fcmp_ordered(">", value, zero), zero.type(1.0), zero.type(-1.0))
    of_number = builder.select(builder.fcmp_ordered("==", value, zero), zero, nonzero)
    return builder.select(is_nan(builder, value), value, of_number)


def sign_of_integer(builder: Builder, kinds: Kinds, values: Values) -> Value:
    (value,) = values
    zero, one = value.type(0), value.type(1)
    if kinds[0].kind == "u":
        nonzero = one
    else:
        nonzero = builder.select(builder.icmp_signed("<", value, zero), value.type(-1), one)
    return builder.select(builder.icmp_unsigned("==", value, zero), zero, nonzero)


# ---- extrema -----------------------------------------------------------------------------------------------------


def of_integers(sign: str) -> Emit:
    """The emitter of `a if a <sign> b else b`."""

    def by(method: str) -> Emit:
        return lambda builder, kinds, values: builder.select(getattr(builder, method)(sign, *values), *values)

    return by_kind(i=by("icmp_signed"), bu=by("icmp_unsigned"))


def propagating(name: str, builder: Builder, kinds: Kinds, values: Values) -> Value:
    """Emit LLVM's extremum `name`, nan if either operand is; its folds vectorise too.

    Of zeros of both signs it is either, as NumPy's: to order them takes longer than all else. With `nsz` LLVM takes x
    for an operand 0.0 + x too, which has another sign if x is -0.0. A choice between x and a constant is an operand
    that LLVM does not look into: it would choose between the accumulator and the extremum, which is no fold to it.
    """
    operands = [frozen(builder, value) if is_choice_with_constant(value) else value for value in values]
    flags = () if any(map(is_sum_with_constant, values)) else ("nsz",)
    return call(builder, overloaded(name, values[0].type), values[0].type, *operands, flags=flags)


def is_sum_with_constant(value: Value) -> bool:
    """True for a sum or difference with a constant operand, and for a choice between values of which one is."""
    if not isinstance(value, ir.Instruction):
        return False
    if value.opname == "select":
        return any(map(is_sum_with_constant, value.operands[1:]))
    return value.opname in ("fadd", "fsub") and any(isinstance(each, ir.Constant) for each in value.operands)


def is_choice_with_constant(value: Value) -> bool:
    """True for a choice between values of which one is constant."""
    is_choice = isinstance(value, ir.Instruction) and value.opname == "select"
    return is_choice and any(isinstance(each, ir.Constant) for each in value.operands[1:])


def frozen(builder: Builder, value: Value) -> Value:
    """Emit LLVM's `freeze`, which is the value."""
    instruction = ir.Instruction(builder.block, value.type, "freeze", [value])
    builder._insert(instruction)
    return instruction


def ignoring(sign: str, builder: Builder, kinds: Kinds, values: Values) -> Value:
    """Emit `a if a <sign> b else b`, which yields the other operand where one is nan."""
    a, b = values
    return builder.select(builder.or_(builder.fcmp_ordered(sign, a, b), is_nan(builder, b)), a, b)


INSTRUCTIONS: Instructions = {
    "select": emit_select,
    "strong_multiply": emit_strong_multiply,
    "isnan": test(is_nan),
    "isinf": test(is_infinite),
    "isfinite": emit_isfinite,
    "signbit": emit_signbit,
    "ldexp": scale,
    "sign": by_kind(f=sign_of_float, iu=sign_of_integer),
    "minimum": by_kind(f=partial(propagating, "llvm.minimum"), biu=of_integers("<=")),
    "maximum": by_kind(f=partial(propagating, "llvm.maximum"), biu=of_integers(">=")),
    "fmin": by_kind(f=partial(ignoring, "<="), biu=of_integers("<=")),
    "fmax": by_kind(f=partial(ignoring, ">="), biu=of_integers(">=")),
    "min": of_integers("<="),
    "max": of_integers(">="),
}
