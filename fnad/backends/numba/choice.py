"""Choosing between values without a branch, so that loops vectorise: select, extrema, tests, signs, strong products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.ir as ir
import numpy as np

from fnad.backends.numba.operation import (
    BOOL,
    Builder,
    Dtype,
    Emit,
    Kind,
    Kinds,
    OperandError,
    Operation,
    Value,
    Values,
    among,
    by_kind,
    to_bool,
)
from fnad.backends.numba.operators import MULTIPLY
from fnad.backends.numba.scalar import absolute, call, is_true, on_parts, overloaded, parts

INFINITY = float("inf")

# ---- selects -----------------------------------------------------------------------------------------------------


def selected(*kinds: Kind) -> Kind:
    condition, *arms = kinds
    if condition != BOOL:
        raise OperandError(f"select chooses by a bool, not {condition}")
    return among("biufc")(*arms)


def choose(builder: Builder, dtype: Dtype, condition: Value, a: Value, b: Value) -> Value:
    """Return a where the condition is true, else b."""
    if dtype.kind == "c":
        return on_parts(builder, lambda x, y: builder.select(condition, x, y), a, b)
    return builder.select(condition, a, b)


def emit_select(builder: Builder, kinds: Kinds, values: Values) -> Value:
    return choose(builder, kinds[1], *values)


def plain_select(condition: Any, a: Any, b: Any) -> Any:
    return a if condition else b


def emit_strong_multiply(builder: Builder, kinds: Kinds, values: Values) -> Value:
    """Return cotangent * partial, and 0 where the cotangent is 0, whatever the partial."""
    cotangent, _ = values
    product = MULTIPLY.emit(builder, kinds, values)
    is_nonzero = is_true(builder, kinds[0], cotangent)
    return choose(builder, kinds[0], is_nonzero, product, ir.Constant(cotangent.type, None))


def plain_strong_multiply(cotangent: Any, partial: Any) -> Any:
    return cotangent * partial if cotangent != 0 else type(cotangent)(0)


# ---- tests and signs ---------------------------------------------------------------------------------------------


def test(of_float: Callable[[Builder, Value], Value]) -> Emit:
    """Return the emitter of a test that holds of a complex number if of either part, and of no integer."""

    def of_parts(builder: Builder, kinds: Kinds, values: Values) -> Value:
        return builder.or_(*(of_float(builder, part) for part in parts(builder, values[0])))

    return by_kind(
        f=lambda builder, kinds, values: of_float(builder, values[0]),
        c=of_parts,
        iu=lambda builder, kinds, values: ir.IntType(1)(0),
    )


def is_nan(builder: Builder, value: Value) -> Value:
    return builder.fcmp_unordered("uno", value, value)


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
    """Return 1, -1 or +0; nan stays nan."""
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
    """Return the emitter of `a if a <sign> b else b`."""

    def by(method: str) -> Emit:
        return lambda builder, kinds, values: builder.select(getattr(builder, method)(sign, *values), *values)

    return by_kind(i=by("icmp_signed"), bu=by("icmp_unsigned"))


def propagating(name: str) -> Emit:
    """Return the emitter of LLVM's extremum `name`, nan if either operand is; its folds vectorise too."""
    return lambda builder, kinds, values: call(builder, overloaded(name, values[0].type), values[0].type, *values)


def ignoring(sign: str) -> Emit:
    """Return the emitter of `a if a <sign> b else b` that takes the other operand where one is nan."""

    def emit(builder: Builder, kinds: Kinds, values: Values) -> Value:
        a, b = values
        return builder.select(builder.or_(builder.fcmp_ordered(sign, a, b), is_nan(builder, b)), a, b)

    return emit


OPERATIONS = (
    Operation("select", selected, emit_select, plain_select),
    Operation("strong_multiply", among("iufc"), emit_strong_multiply, plain_strong_multiply),
    Operation("isnan", among("iufc", to_bool), test(is_nan), np.isnan),
    Operation("isinf", among("iufc", to_bool), test(is_infinite), np.isinf),
    Operation("isfinite", among("iufc", to_bool), emit_isfinite, np.isfinite),
    Operation("signbit", among("f", to_bool), emit_signbit, np.signbit),
    Operation("sign", among("iuf"), by_kind(f=sign_of_float, iu=sign_of_integer), np.sign),
    Operation("minimum", among("biuf"), by_kind(f=propagating("llvm.minimum"), biu=of_integers("<=")), np.minimum),
    Operation("maximum", among("biuf"), by_kind(f=propagating("llvm.maximum"), biu=of_integers(">=")), np.maximum),
    Operation("fmin", among("biuf"), by_kind(f=ignoring("<="), biu=of_integers("<=")), np.fmin),
    Operation("fmax", among("biuf"), by_kind(f=ignoring(">="), biu=of_integers(">=")), np.fmax),
    Operation("min", among("i"), of_integers("<="), min),
    Operation("max", among("i"), of_integers(">="), max),
)
