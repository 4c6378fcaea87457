"""Products with what was divided by a sum: the sum of x · (a / Σ x) is (a / Σ x) · Σ x, and Σ x is known.

So the gradient of the logarithm of a sum, and of what is normalized by one, takes a pass less. The number must be a
quotient by the sum itself: where a sum overflows, products of its terms with another small number can be finite.
"""

from __future__ import annotations

from collections.abc import Sequence

from fnad.ir.primitive import Primitive
from fnad.ir.program import Params
from fnad.ir.symbol import Symbol
from fnad.ops.arithmetic import add, div, mul, neg, strong_mul, sub
from fnad.ops.autodiff import stop_gradient
from fnad.ops.shape import broadcast_in_dim, reduce_sum, reshape
from fnad.transforms.pattern import same_values
from fnad.transforms.rewrite import application, definition, operands_of, unreshaped

FACTORS = (mul, strong_mul, neg, reshape)
"""The operations that keep a quotient a multiple of one."""

DEPTH = 6
"""The number of equations through which a number is traced back."""


def factored(primitive: Primitive, operands: Sequence[Symbol], params: Params) -> Symbol | None:
    """The rewrite of a sum of such products, up to rounding."""
    product = application(operands[0], strong_mul) if primitive is reduce_sum else None
    spread = application(product[0][0], broadcast_in_dim) if product is not None else None
    if product is None or spread is None:
        return None
    (number,), x = spread[0], product[0][1]
    kept = tuple(axis for axis in range(x.ndim) if axis not in params["axes"])
    total = reduce_sum(x, **params)
    if spread[1]["dims"] != kept or number.shape != total.shape or not _is_quotient(number, total):
        return None
    return strong_mul(number, total)


def _is_quotient(number: Symbol, total: Symbol, depth: int = DEPTH) -> bool:
    """True if a number is a multiple of 1 / total, or of 1 / total + (total - total), the derivative of log."""
    equation = definition(number)
    if equation is None or depth == 0:
        return False
    operands = operands_of(number, equation)
    if equation.primitive is div:
        return _is_same(operands[1], total)
    if equation.primitive is add:
        pairs = (operands, operands[::-1])
        return any(_is_difference(other, total) and _is_quotient(one, total, depth - 1) for one, other in pairs)
    return equation.primitive in FACTORS and any(_is_quotient(operand, total, depth - 1) for operand in operands)


def _is_difference(number: Symbol, total: Symbol) -> bool:
    held = application(number, stop_gradient)
    found = None if held is None else application(held[0][0], sub)
    return found is not None and all(_is_same(operand, total) for operand in found[0])


def _is_same(number: Symbol, total: Symbol) -> bool:
    """True if two values are the same but for their shapes."""
    return same_values([unreshaped(number)], [unreshaped(total)])
