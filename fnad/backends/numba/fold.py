"""Sums that lose nothing: compensated addition.

A fold sums blocks with vector instructions and adds the blocks' sums with Neumaier's algorithm (Rump, Ogita, Oishi 2008, "Accurate
floating-point summation I", algorithm 1.1, TwoSum): `rest` collects what each addition rounds off, and total + rest is the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import llvmlite.ir as ir
import numpy as np

from fnad.backends.numba.operation import Kind, Operation, among, same
from fnad.backends.numba.scalar import declare, suffix

# Note [Exact arithmetic]
# Emitted functions are compiled with `reassoc`, under which (t - s) + v is 0. Numba's fast-math pass gives its flags to every
# instruction that has none, so an instruction that must round exactly as written carries one flag that means nothing for
# it: `arcp` (reciprocals) on additions and products, `contract` on divisions.
EXACT = ("arcp",)
EXACT_DIVISION = ("contract",)


def two_sum(builder: ir.IRBuilder, a: ir.Value, b: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Return s = fl(a + b) and the error e with s + e = a + b exactly (Knuth)."""
    total = builder.fadd(a, b, flags=EXACT)
    seen = builder.fsub(total, a, flags=EXACT)
    lost_of_a = builder.fsub(a, builder.fsub(total, seen, flags=EXACT), flags=EXACT)
    lost_of_b = builder.fsub(b, seen, flags=EXACT)
    return total, builder.fadd(lost_of_a, lost_of_b, flags=EXACT)


def is_finite(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    magnitude = builder.call(declare(builder.module, f"llvm.fabs.{suffix(value.type)}", value.type, [value.type]), [value])
    return builder.fcmp_ordered("<", magnitude, value.type(float("inf")))


def emit_compensated_add(builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[ir.Value]) -> ir.Value:
    """An infinite total has no rounding error; without the select its error would be inf - inf = nan."""
    total, rest, value = values
    new_total, error = two_sum(builder, total, value)
    kept = builder.select(is_finite(builder, new_total), error, error.type(0.0))
    new_rest = builder.fadd(rest, kept, flags=EXACT)
    empty = ir.Constant(ir.ArrayType(total.type, 2), ir.Undefined)
    return builder.insert_value(builder.insert_value(empty, new_total, 0), new_rest, 1)


def plain_compensated_add(total: Any, rest: Any, value: Any) -> tuple[Any, Any]:
    new_total = total + value
    if not np.isfinite(new_total):
        return new_total, rest
    seen = new_total - total
    return new_total, rest + ((total - (new_total - seen)) + (value - seen))


def pair_of_floats(*kinds: Kind) -> Kind:
    kind = among("f")(*kinds)
    return (kind, kind)


compensated_add = Operation("compensated_add", pair_of_floats, emit_compensated_add, plain_compensated_add)
OPERATIONS = (compensated_add,)
