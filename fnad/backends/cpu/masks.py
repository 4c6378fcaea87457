"""Selects of single numbers as masks, where LLVM would write branches.

A select of vectors is a mask. One of a number becomes a branch if several selects have the condition in common, as the
products of one cotangent have. So where a loop is not vectorised, a strong product is computed in the first lane of a
vector: a comparison and a conjunction.
"""

from __future__ import annotations

import llvmlite.ir as ir

from fnad.backends.llvm.branchless import emit_strong_multiply
from fnad.backends.llvm.emitter import Builder, Instructions, Kinds, Value, Values
from fnad.backends.llvm.instructions import SCALAR
from fnad.backends.llvm.operators import multiply

BYTES = 16
"""The size of the vectors, which all processors with vectors have."""


def emit_in_first_lane(builder: Builder, kinds: Kinds, values: Values) -> Value:
    """The strong product of two numbers without a branch."""
    if kinds[0].kind != "f":
        return emit_strong_multiply(builder, kinds, values)
    lanes = BYTES // kinds[0].itemsize
    words = ir.VectorType(ir.IntType(8 * kinds[0].itemsize), lanes)
    cotangent, product = (_first(builder, value, lanes) for value in (values[0], multiply(builder, kinds, values)))
    is_nonzero = builder.fcmp_unordered("!=", cotangent, ir.Constant(cotangent.type, [0.0] * lanes))
    chosen = builder.and_(builder.sext(is_nonzero, words), builder.bitcast(product, words))
    return builder.extract_element(builder.bitcast(chosen, cotangent.type), ir.IntType(32)(0))


def _first(builder: Builder, value: Value, lanes: int) -> Value:
    """A vector with a number in its first lane."""
    empty = ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined)
    return builder.insert_element(empty, value, ir.IntType(32)(0))


INSTRUCTIONS: Instructions = {SCALAR + "strong_multiply": emit_in_first_lane}
