"""Complex functions: libm's C99 functions, which NumPy calls, and those that NumPy makes of them.

Branch cuts, infinities and nan are those of C99, annex G. C passes a pair of doubles in two registers, and a pair of
floats in one register on x86-64 but in two elsewhere. On Windows a pair of doubles is passed by its address, as the
result is, and a pair of floats as one integer.
"""

from __future__ import annotations

import math

import llvmlite.ir as ir

from fnad.backends.cpu.ufunc_loops import place
from fnad.backends.llvm.complex_math import scaled
from fnad.backends.llvm.emitter import Builder, Emit, Kinds, Value, Values
from fnad.backends.llvm.scalar import call, pair, parts

WORD, LONG = ir.IntType(32), ir.IntType(64)


def library(symbol: str) -> Emit:
    """The emitter that calls libm's complex function `symbol`; the one for c64 adds an f."""

    def emit(builder: Builder, kinds: Kinds, values: Values) -> Value:
        is_single, triple = kinds[0].itemsize == 8, str(builder.module.triple)
        name = symbol + "f" * is_single
        if "windows" in triple:
            return (as_integers if is_single else by_address)(builder, name, values)
        if is_single and triple.startswith("x86_64"):
            vectors = [packed(builder, value) for value in values]
            return unpacked(builder, call(builder, name, vectors[0].type, *vectors))
        scalars = [part for value in values for part in parts(builder, value)]
        return call(builder, name, values[0].type, *scalars)

    return emit


def as_integers(builder: Builder, name: str, values: Values) -> Value:
    vectors = [packed(builder, value) for value in values]
    result = call(builder, name, LONG, *(builder.bitcast(vector, LONG) for vector in vectors))
    return unpacked(builder, builder.bitcast(result, vectors[0].type))


def by_address(builder: Builder, name: str, values: Values) -> Value:
    result, *places = (place(builder, values[0].type) for _ in range(len(values) + 1))
    for value, where in zip(values, places, strict=True):
        builder.store(value, where)
    call(builder, name, ir.VoidType(), result, *places)
    return builder.load(result)


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
