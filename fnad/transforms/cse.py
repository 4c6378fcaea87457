"""Common-subexpression elimination: an equation that is there already is not made again.

The builder numbers values, so writing a program anew is all it takes; operands of a commutative primitive count in
either order. (Not if complex: there NumPy rounds x * y and y * x apart.)
"""

from __future__ import annotations

from collections.abc import Sequence

from fnad.ir.primitive import Primitive
from fnad.ir.program import Params, Program
from fnad.ir.symbol import Symbol
from fnad.ir.types import is_complex
from fnad.transforms.rewrite import Rewriter, rewrite


def cse(program: Program) -> Program:
    """The program without equations that compute a value a second time."""
    return rewrite(program, reuse_commuted)


def reuse_commuted(primitive: Primitive, operands: Sequence[Symbol], params: Params) -> Symbol | None:
    """The value of an equation that differs in the order of its operands only."""
    if not primitive.commutative or is_complex(operands[0].dtype):
        return None
    builder = operands[0].builder
    assert isinstance(builder, Rewriter)
    return builder.numbered(primitive, operands[::-1])
