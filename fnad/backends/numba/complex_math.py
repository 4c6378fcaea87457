"""Complex functions: C99's of libm, as NumPy calls them, and what NumPy has of its own.

Branch cuts, infinities and nan are those of C99 annex G. Only the two ways of passing complex numbers matter that System V
platforms have: a pair of doubles goes in two registers everywhere, a pair of floats in one on x86-64 and in two elsewhere.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Sequence
from typing import Any

import llvmlite.ir as ir
import numpy as np

from fnad.backends.numba.division import divide_complex
from fnad.backends.numba.operation import Emit, Kind, Operation, among
from fnad.backends.numba.scalar import call, llvm_type, multiply_complex, on_parts, overloaded, pair, parts, real_dtype
from fnad.backends.numba.vector_math import libm

FLOATS_SHARE_A_REGISTER = platform.machine() in ("x86_64", "AMD64")
WORD = ir.IntType(32)


def library(symbol: str) -> Emit:
    """Return the emitter that calls libm's complex function `symbol`; the one for c64 adds an f."""

    def emit(builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[Any]) -> ir.Value:
        if kinds[0].itemsize == 8 and FLOATS_SHARE_A_REGISTER:
            vectors = [packed(builder, value) for value in values]
            return unpacked(builder, call(builder, symbol + "f", vectors[0].type, *vectors))
        scalars = [part for value in values for part in parts(builder, value)]
        return call(builder, symbol if kinds[0].itemsize == 16 else symbol + "f", values[0].type, *scalars)

    return emit


def packed(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    real, imaginary = parts(builder, value)
    empty = ir.Constant(ir.VectorType(real.type, 2), ir.Undefined)
    return builder.insert_element(builder.insert_element(empty, real, WORD(0)), imaginary, WORD(1))


def unpacked(builder: ir.IRBuilder, vector: ir.Value) -> ir.Value:
    return pair(builder, builder.extract_element(vector, WORD(0)), builder.extract_element(vector, WORD(1)))


def absolute(builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[Any]) -> ir.Value:
    return libm(builder, "hypot", *parts(builder, values[0]))


def scaled_log(base: float) -> Emit:
    """Return the emitter of the logarithm to `base`."""

    def emit(builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[Any]) -> ir.Value:
        return scaled(builder, library("clog")(builder, kinds, values), 1 / math.log(base))

    return emit


def exp2(builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[Any]) -> ir.Value:
    return library("cexp")(builder, kinds, [scaled(builder, values[0], math.log(2))])


def expm1(builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[Any]) -> ir.Value:
    """Return e^(a+bi) - 1: its real part is expm1(a) cos b - 2 sin²(b/2), which does not cancel."""
    a, b = parts(builder, values[0])
    half_sine = libm(builder, "sin", builder.fmul(b, b.type(0.5)))
    versine = builder.fmul(builder.fmul(half_sine, half_sine), b.type(2.0))
    real = builder.fsub(builder.fmul(libm(builder, "expm1", a), libm(builder, "cos", b)), versine)
    return pair(builder, real, builder.fmul(libm(builder, "exp", a), libm(builder, "sin", b)))


def log1p(builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[Any]) -> ir.Value:
    a, b = parts(builder, values[0])
    above = builder.fadd(a, a.type(1.0))
    return pair(builder, libm(builder, "log", libm(builder, "hypot", above, b)), libm(builder, "atan2", b, above))


def scaled(builder: ir.IRBuilder, value: ir.Value, factor: float) -> ir.Value:
    return on_parts(builder, lambda part: builder.fmul(part, part.type(factor)), value)


def power(builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[Any]) -> ir.Value:
    """Return base ** exponent as NumPy's npy_cpow: small integer powers by squaring, so that they are accurate, others by cpow."""
    name = f"fnad.power.{kinds[0]}"
    function = builder.module.globals.get(name) or define_power(builder.module, name, kinds[0])
    return builder.call(function, values)


def define_power(module: ir.Module, name: str, dtype: np.dtype[Any]) -> ir.Function:
    complex_, real = llvm_type(dtype), llvm_type(real_dtype(dtype))
    function = ir.Function(module, ir.FunctionType(complex_, [complex_, complex_]), name=name)
    function.linkage = "internal"
    base, exponent = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    order = call(builder, overloaded("llvm.fptosi.sat", WORD, real), WORD, parts(builder, exponent)[0])
    with builder.if_then(is_small_integer(builder, exponent, order)):
        magnitude = builder.select(builder.icmp_signed("<", order, WORD(0)), builder.neg(order), order)
        powered = by_squaring(builder, base, magnitude)
        inverse = divide_complex(builder, pair(builder, real(1.0), real(0.0)), powered)
        chosen = builder.select(builder.icmp_signed("<", order, WORD(0)), inverse, powered)
        builder.ret(of_zero_base(builder, base, exponent, chosen))
    builder.ret(of_zero_base(builder, base, exponent, library("cpow")(builder, [dtype, dtype], [base, exponent])))
    return function


def is_small_integer(builder: ir.IRBuilder, exponent: ir.Value, order: ir.Value) -> ir.Value:
    real, imaginary = parts(builder, exponent)
    is_integer = builder.fcmp_ordered("==", builder.sitofp(order, real.type), real)
    is_real = builder.fcmp_ordered("==", imaginary, imaginary.type(0.0))
    is_small = builder.icmp_unsigned("<", builder.add(order, WORD(99)), WORD(199))
    return builder.and_(is_small, builder.and_(is_integer, is_real))


def by_squaring(builder: ir.IRBuilder, base: ir.Value, order: ir.Value) -> ir.Value:
    """Return base ** order, order >= 0; the first factor is copied, not multiplied by 1, for inf * (1 + 0j) has a nan."""
    before = builder.block
    loop, done = builder.append_basic_block("loop"), builder.append_basic_block("done")
    builder.branch(loop)
    builder.position_at_end(loop)
    factor, rest, product, has_factor = (builder.phi(type_) for type_ in (base.type, WORD, base.type, ir.IntType(1)))
    is_odd = builder.trunc(rest, ir.IntType(1))
    multiplied = builder.select(has_factor, multiply_complex(builder, product, factor), factor)
    next_product = builder.select(is_odd, multiplied, product)
    following = multiply_complex(builder, factor, factor), builder.lshr(rest, WORD(1)), next_product, builder.or_(has_factor, is_odd)
    one = ir.Constant(base.type, [1.0, 0.0])
    for phi, first, after in zip((factor, rest, product, has_factor), (base, order, one, ir.IntType(1)(0)), following, strict=True):
        phi.add_incoming(first, before)
        phi.add_incoming(after, loop)
    builder.cbranch(builder.icmp_unsigned("!=", following[1], WORD(0)), loop, done)
    builder.position_at_end(done)
    return next_product


def of_zero_base(builder: ir.IRBuilder, base: ir.Value, exponent: ir.Value, otherwise: ir.Value) -> ir.Value:
    """Return NumPy's powers of 0: 1 for an exponent of 0, 0 where the exponent's real part is positive, else nan."""
    is_zero, is_one = is_zero_complex(builder, base), is_zero_complex(builder, exponent)
    real = parts(builder, exponent)[0]
    zero, nan = real.type(0.0), real.type(float("nan"))
    value = builder.select(builder.fcmp_ordered(">", real, zero), zero, nan)
    return builder.select(builder.and_(is_zero, builder.not_(is_one)), pair(builder, value, value), otherwise)


def is_zero_complex(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    real, imaginary = parts(builder, value)
    return builder.and_(*(builder.fcmp_ordered("==", part, part.type(0.0)) for part in (real, imaginary)))


log2, log10 = scaled_log(2), scaled_log(10)


def to_real(dtype: np.dtype[Any]) -> Kind:
    return real_dtype(dtype)


def emit_part(index: int) -> Emit:
    return lambda builder, kinds, values: builder.extract_value(values[0], index)


def emit_conjugate(builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[Any]) -> ir.Value:
    real, imaginary = parts(builder, values[0])
    return pair(builder, real, builder.fneg(imaginary))


def complex_of(dtype: np.dtype[Any]) -> Kind:
    return np.dtype(f"c{2 * dtype.itemsize}")


def plain_make_complex(real: Any, imaginary: Any) -> Any:
    return np.array([real, imaginary]).view(f"c{2 * np.asarray(real).itemsize}")[0]


OPERATIONS = (
    Operation("real", among("c", to_real), emit_part(0), np.real),
    Operation("imag", among("c", to_real), emit_part(1), np.imag),
    Operation("conjugate", among("c"), emit_conjugate, np.conjugate),
    Operation("make_complex", among("f", complex_of), lambda builder, kinds, values: pair(builder, *values), plain_make_complex),
)
