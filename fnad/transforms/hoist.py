"""Computing before broadcasting: f(broadcast(x), broadcast(y)) = broadcast(f(x, y)), once for each element of x."""

from __future__ import annotations

from collections.abc import Sequence

from fnad.ir.axes import Elementwise
from fnad.ir.primitive import Primitive
from fnad.ir.program import Params, Program
from fnad.ir.symbol import Symbol
from fnad.ops.shape import broadcast_in_dim, constant
from fnad.transforms.rewrite import application, constant_of, rewrite


def hoist(program: Program) -> Program:
    """The program with elementwise equations moved before the broadcasts of their operands."""
    return rewrite(program, broadcast_late)


def broadcast_late(primitive: Primitive, operands: Sequence[Symbol], params: Params) -> Symbol | None:
    """The broadcast of an elementwise equation on operands that are broadcast alike, except for constants."""
    if not isinstance(primitive.axes, Elementwise) or primitive.raises:  # of no elements it would not raise
        return None
    constants = [constant_of(operand) for operand in operands]
    origins = [application(o, broadcast_in_dim) for o, value in zip(operands, constants, strict=True) if value is None]
    if not origins or (first := origins[0]) is None:
        return None
    shape = first[0][0].shape
    if any(origin is None or origin[0][0].shape != shape or origin[1] != first[1] for origin in origins):
        return None
    given = iter(origin[0][0] for origin in origins if origin is not None)
    inner = [next(given) if value is None else constant(value, value.dtype, shape) for value in constants]
    return broadcast_in_dim(primitive(*inner, **params), **first[1])
