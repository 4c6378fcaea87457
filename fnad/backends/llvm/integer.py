"""Integer powers and shifts, with NumPy's results where C leaves them undefined."""

from __future__ import annotations

import llvmlite.ir as ir

from fnad.backends.llvm.emitter import Builder, Instructions, Kinds, Value, Values


def emit_left_shift(builder: Builder, kinds: Kinds, values: Values) -> Value:
    """The shift a << b, and 0 where b is negative or not below the width."""
    a, b = values
    return builder.select(is_within(builder, b), builder.shl(a, masked(builder, b)), a.type(0))


def emit_right_shift(builder: Builder, kinds: Kinds, values: Values) -> Value:
    """The shift a >> b; where b is negative or not below the width all bits are the sign."""
    a, b = values
    if kinds[0].kind == "u":
        return builder.select(is_within(builder, b), builder.lshr(a, masked(builder, b)), a.type(0))
    return builder.ashr(a, builder.select(is_within(builder, b), b, b.type(b.type.width - 1)))


def is_within(builder: Builder, shift: Value) -> Value:
    return builder.icmp_unsigned("<", shift, shift.type(shift.type.width))


def masked(builder: Builder, shift: Value) -> Value:
    """A shift count below the width; a larger one gives poison in LLVM, even in an arm that is not taken."""
    return builder.and_(shift, shift.type(shift.type.width - 1))


def power(builder: Builder, kinds: Kinds, values: Values) -> Value:
    """The power base ** exponent, wrapping, for an exponent that is not negative."""
    type_ = values[0].type
    name = f"fnad.power.{type_}"
    return builder.call(builder.module.globals.get(name) or define_power(builder.module, name, type_), values)


def define_power(module: ir.Module, name: str, type_: ir.IntType) -> ir.Function:
    """Define: product = 1; while exponent: product *= base if exponent is odd; base *= base; exponent >>= 1."""
    function = ir.Function(module, ir.FunctionType(type_, [type_, type_]), name=name)
    function.linkage = "internal"
    entry, loop, done = (function.append_basic_block(label) for label in ("entry", "loop", "done"))
    ir.IRBuilder(entry).branch(loop)
    builder = ir.IRBuilder(loop)
    base, exponent, product = (builder.phi(type_) for _ in range(3))
    is_odd = builder.trunc(exponent, ir.IntType(1))
    next_product = builder.select(is_odd, builder.mul(product, base), product)
    next_exponent = builder.lshr(exponent, type_(1))
    following = builder.mul(base, base), next_exponent, next_product
    for phi, first, after in zip((base, exponent, product), (*function.args, type_(1)), following, strict=True):
        phi.add_incoming(first, entry)
        phi.add_incoming(after, loop)
    builder.cbranch(builder.icmp_unsigned("!=", next_exponent, type_(0)), loop, done)
    ir.IRBuilder(done).ret(next_product)
    return function


def absolute(builder: Builder, kinds: Kinds, values: Values) -> Value:
    """The absolute value |value|; the least integer is unchanged."""
    (value,) = values
    return builder.select(builder.icmp_signed("<", value, value.type(0)), builder.neg(value), value)


INSTRUCTIONS: Instructions = {"left_shift": emit_left_shift, "right_shift": emit_right_shift}
