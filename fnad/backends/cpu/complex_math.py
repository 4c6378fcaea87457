"""Complex functions: libm's C99 functions, which NumPy calls, and those that NumPy makes of them.

Branch cuts, infinities and nan are those of C99, annex G. C passes a pair of doubles in two registers on every System V
platform, and a pair of floats in one register on x86-64 but in two elsewhere.
"""

from __future__ import annotations

import math
import platform

import llvmlite.ir as ir

from fnad.backends.llvm.complex_math import scaled
from fnad.backends.llvm.emitter import Builder, Emit, Kinds, Value, Values
from fnad.backends.llvm.scalar import call, pair, parts

FLOATS_SHARE_A_REGISTER = platform.machine() in ("x86_64", "AMD64")
WORD = ir.IntType(32)


def library(symbol: str) -> Emit:
    """The emitter that calls libm's complex function `symbol`; the one for c64 adds an f."""

    def emit(builder: Builder, kinds: Kinds, values: Values) -> Value:
        if kinds[0].itemsize == 8 and FLOATS_SHARE_A_REGISTER:
            vectors = [packed(builder, value) for value in values]
            return unpacked(builder, call(builder, symbol + "f", vectors[0].type, *vectors))
        scalars = [part for value in values for part in parts(builder, value)]
        return call(builder, symbol if kinds[0].itemsize == 16 else symbol + "f", values[0].type, *scalars)

    return emit


def packed(builder: Builder, value: Value) -> Value:
    real, imaginary = parts(builder, value)
    empty = ir.Constant(ir.VectorType(real.type, 2), ir.Undefined)
    return builder.insert_element(builder.insert_element(empty, real, WORD(0)), imaginary, WORD(1))


def unpacked(builder: Builder, vector: Value) -> Value:
    return pair(builder, builder.extract_element(vector, WORD(0)), builder.extract_element(vector, WORD(1)))


def logarithm(base: float) -> Emit:
    """The emitter of the logarithm to `base`."""
    return lambda builder, kinds, values: scaled(builder, library("clog")(builder, kinds, values), 1 / math.log(base))


def exp2(builder: Builder, kinds: Kinds, values: Values) -> Value:
    return library("cexp")(builder, kinds, [scaled(builder, values[0], math.log(2))])
