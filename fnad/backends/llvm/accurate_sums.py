"""Sums: additions in any order, and compensated addition.

A fold sums blocks by `accumulate`, the one operation whose order LLVM may change, so that it adds in vector lanes;
everything else is rounded as written, as in NumPy. LLVM has no flag for the order of additions alone. `reassoc` allows
it to distribute too, but it does so only together with `nsz`: then sum(x * c) becomes sum(x) * c, which overflows for
other operands. Without `nsz` it vectorises all the same, and zeros keep their signs.

A fold adds the blocks' sums with Neumaier's algorithm, in its branch-free form (Ogita, Rump, Oishi 2005, "Accurate sum
and dot product", algorithm 4.1): `rest` collects the rounding errors, and total + rest is the sum.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import llvmlite.ir as ir

from fnad.backends.llvm.emitter import Builder, Instructions, Kinds, Value, Values
from fnad.backends.llvm.scalar import absolute, on_parts, pair, parts


def two_sum(builder: Builder, a: Value, b: Value) -> tuple[Value, Value]:
    """The rounded sum and its error, which add up to a + b exactly (Knuth)."""
    total = builder.fadd(a, b)
    seen = builder.fsub(total, a)
    lost_of_a = builder.fsub(a, builder.fsub(total, seen))
    lost_of_b = builder.fsub(b, seen)
    return total, builder.fadd(lost_of_a, lost_of_b)


def add(builder: Builder, total: Value, rest: Value, value: Value) -> tuple[Value, Value]:
    """The new total and rest; an infinite total has no rounding error, where the formula has inf - inf = nan."""
    new_total, error = two_sum(builder, total, value)
    is_finite = builder.fcmp_ordered("<", absolute(builder, new_total), total.type(float("inf")))
    return new_total, builder.fadd(rest, builder.select(is_finite, error, error.type(0.0)))


def compensated_by(add: Callable[..., tuple[Value, Value]], builder: Builder, kinds: Kinds, values: Values) -> Value:
    """Emit a compensated addition that adds real numbers by this function."""
    if kinds[0].kind == "f":
        total, rest = add(builder, *values)
    else:
        reals, imaginaries = zip(*(parts(builder, value) for value in values), strict=True)
        both = zip(add(builder, *reals), add(builder, *imaginaries), strict=True)
        total, rest = (pair(builder, real, imaginary) for real, imaginary in both)
    empty = ir.Constant(ir.ArrayType(total.type, 2), ir.Undefined)
    return builder.insert_value(builder.insert_value(empty, total, 0), rest, 1)


def emit_accumulate(builder: Builder, kinds: Kinds, values: Values) -> Value:
    def add_in_any_order(a: Value, b: Value) -> Value:
        return builder.fadd(a, b, flags=("reassoc",))

    return on_parts(builder, add_in_any_order, *values) if kinds[0].kind == "c" else add_in_any_order(*values)


INSTRUCTIONS: Instructions = {"accumulate": emit_accumulate, "compensated_add": partial(compensated_by, add)}
