"""Common-subexpression elimination: no equation is made twice.

The builder numbers values, so writing a program anew is enough; operands of a commutative primitive match in either
order.
"""

from __future__ import annotations

from collections.abc import Sequence

from fnad.ir.primitive import Primitive
from fnad.ir.program import Params
from fnad.ir.symbol import Symbol
from fnad.ir.types import is_complex
from fnad.transforms.rewrite import Rewriter


def reuse_commuted(primitive: Primitive, operands: Sequence[Symbol], params: Params) -> Symbol | None:
    """The value of an earlier equation that differs only in the order of its operands."""
    # NumPy rounds the complex products x * y and y * x differently.
    if not primitive.commutative or is_complex(operands[0].dtype):
        return None
    builder = operands[0].builder
    assert isinstance(builder, Rewriter)
    return builder.found(primitive, operands[::-1])
