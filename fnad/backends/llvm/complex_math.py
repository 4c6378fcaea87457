"""Complex functions that NumPy implements itself, of real functions of libm; powers, and the parts of a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import llvmlite.ir as ir

from fnad.backends.llvm.division import divide_complex
from fnad.backends.llvm.emitter import Builder, Dtype, Emit, Instructions, Kinds, Value, Values
from fnad.backends.llvm.scalar import call, llvm_type, multiply_complex, on_parts, overloaded, pair, parts
from fnad.scalar.operation import real_dtype

WORD = ir.IntType(32)

Libm: TypeAlias = Callable[..., Value]
"""The call of a libm function on a target: libm(builder, symbol, *values), with the symbol of f64."""

# ---- NumPy's own -------------------------------------------------------------------------------------------------


def absolute(libm: Libm) -> Emit:
    return lambda builder, kinds, values: libm(builder, "hypot", *parts(builder, values[0]))


def scaled(builder: Builder, value: Value, factor: float) -> Value:
    return on_parts(builder, lambda part: builder.fmul(part, part.type(factor)), value)


def expm1(libm: Libm, builder: Builder, kinds: Kinds, values: Values) -> Value:
    """The exponential less one; of a + bi the real part is written expm1 a · cos b - 2 sin² b/2."""
    a, b = parts(builder, values[0])
    half_sine = libm(builder, "sin", builder.fmul(b, b.type(0.5)))
    versine = builder.fmul(builder.fmul(half_sine, half_sine), b.type(2.0))
    real = builder.fsub(builder.fmul(libm(builder, "expm1", a), libm(builder, "cos", b)), versine)
    return pair(builder, real, builder.fmul(libm(builder, "exp", a), libm(builder, "sin", b)))


def log1p(libm: Libm, builder: Builder, kinds: Kinds, values: Values) -> Value:
    a, b = parts(builder, values[0])
    real = builder.fadd(a, a.type(1.0))
    return pair(builder, libm(builder, "log", libm(builder, "hypot", real, b)), libm(builder, "atan2", b, real))


# ---- powers ------------------------------------------------------------------------------------------------------


def power(general: Emit, builder: Builder, kinds: Kinds, values: Values) -> Value:
    """The power as in npy_cpow: small integer powers by squaring, which is accurate, others by a `general` function."""
    name = f"fnad.power.{kinds[0]}"
    known = builder.module.globals.get(name)
    return builder.call(known or define_power(builder.module, name, kinds[0], general), values)


def define_power(module: ir.Module, name: str, dtype: Dtype, general: Emit) -> ir.Function:
    type_, real = llvm_type(dtype), llvm_type(real_dtype(dtype))
    function = ir.Function(module, ir.FunctionType(type_, [type_, type_]), name=name)
    function.linkage = "internal"
    base, exponent = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    order = call(builder, overloaded("llvm.fptosi.sat", WORD, real), WORD, parts(builder, exponent)[0])
    with builder.if_then(is_small_integer(builder, exponent, order)):
        builder.ret(of_zero(builder, base, exponent, by_squaring(builder, base, order)))
    builder.ret(of_zero(builder, base, exponent, general(builder, [dtype, dtype], [base, exponent])))
    return function


def is_small_integer(builder: Builder, exponent: Value, order: Value) -> Value:
    """True if the exponent is the integer `order`, and below 100 in magnitude."""
    real, imaginary = parts(builder, exponent)
    is_integer = builder.fcmp_ordered("==", builder.sitofp(order, real.type), real)
    is_real = builder.fcmp_ordered("==", imaginary, imaginary.type(0.0))
    is_small = builder.icmp_unsigned("<", builder.add(order, WORD(99)), WORD(199))
    return builder.and_(is_small, builder.and_(is_integer, is_real))


def by_squaring(builder: Builder, base: Value, order: Value) -> Value:
    """The power base ** order."""
    is_negative = builder.icmp_signed("<", order, WORD(0))
    powered = natural_power(builder, base, builder.select(is_negative, builder.neg(order), order))
    inverse = divide_complex(builder, ir.Constant(base.type, [1.0, 0.0]), powered)
    return builder.select(is_negative, inverse, powered)


def natural_power(builder: Builder, base: Value, order: Value) -> Value:
    """The power base ** order, order >= 0; the first factor is copied, since inf * (1 + 0i) has a nan."""
    before, loop, done = builder.block, builder.append_basic_block("loop"), builder.append_basic_block("done")
    builder.branch(loop)
    builder.position_at_end(loop)
    phis = [builder.phi(type_) for type_ in (base.type, WORD, base.type, ir.IntType(1))]
    factor, rest, product, has_factor = phis
    is_odd = builder.trunc(rest, ir.IntType(1))
    multiplied = builder.select(has_factor, multiply_complex(builder, product, factor), factor)
    next_product = builder.select(is_odd, multiplied, product)
    next_rest = builder.lshr(rest, WORD(1))
    square = multiply_complex(builder, factor, factor)
    following = (square, next_rest, next_product, builder.or_(has_factor, is_odd))
    start = (base, order, ir.Constant(base.type, [1.0, 0.0]), ir.IntType(1)(0))
    for phi, first, after in zip(phis, start, following, strict=True):
        phi.add_incoming(first, before)
        phi.add_incoming(after, loop)
    builder.cbranch(builder.icmp_unsigned("!=", next_rest, WORD(0)), loop, done)
    builder.position_at_end(done)
    return next_product


def of_zero(builder: Builder, base: Value, exponent: Value, otherwise: Value) -> Value:
    """NumPy's powers of 0: 1 for an exponent of 0, 0 where the exponent's real part is positive, else nan."""
    real = parts(builder, exponent)[0]
    is_positive = builder.fcmp_ordered(">", real, real.type(0.0))
    value = builder.select(is_positive, real.type(0.0), real.type(float("nan")))
    applies = builder.and_(is_zero(builder, base), builder.not_(is_zero(builder, exponent)))
    return builder.select(applies, pair(builder, value, value), otherwise)


def is_zero(builder: Builder, value: Value) -> Value:
    return builder.and_(*(builder.fcmp_ordered("==", part, part.type(0.0)) for part in parts(builder, value)))


# ---- parts -------------------------------------------------------------------------------------------------------


def emit_conjugate(builder: Builder, kinds: Kinds, values: Values) -> Value:
    real, imaginary = parts(builder, values[0])
    return pair(builder, real, builder.fneg(imaginary))


INSTRUCTIONS: Instructions = {
    "real": lambda builder, kinds, values: parts(builder, values[0])[0],
    "imag": lambda builder, kinds, values: parts(builder, values[0])[1],
    "conjugate": emit_conjugate,
    "make_complex": lambda builder, kinds, values: pair(builder, *values),
}
