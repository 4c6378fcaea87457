"""Computing before moving: f(broadcast(x), broadcast(y)) = broadcast(f(x, y)), once for each element of x.

Likewise rows of a loop are put together with others before they are transposed: a product takes a matrix either way.
"""

from __future__ import annotations

from collections.abc import Sequence

from fnad.ir.axes import Elementwise
from fnad.ir.primitive import Primitive
from fnad.ir.program import Params, Var
from fnad.ir.size import estimate
from fnad.ir.symbol import Symbol
from fnad.ops.shape import Ints, broadcast_in_dim, concatenate, constant, reshape_to, transpose, transpose_to
from fnad.transforms.rewrite import application, constant_of, definition, head_of


def broadcast_late(primitive: Primitive, operands: Sequence[Symbol], params: Params) -> Symbol | None:
    """The broadcast of an elementwise equation on operands that are broadcast alike, except for constants."""
    if not isinstance(primitive.axes, Elementwise) or primitive.raises:  # of no elements it would not raise
        return None
    if broadcast_in_dim not in map(head_of, operands):
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


def transpose_late(primitive: Primitive, operands: Sequence[Symbol], params: Params) -> Symbol | None:
    """The transpose of a concatenation, most of which is the transpose of rows that a loop stacks, in their place."""
    if primitive is not concatenate:
        return None
    sizes = [estimate(operand.aval.size) for operand in operands]
    largest = operands[sizes.index(max(sizes))]
    found = application(largest, transpose)
    is_most = 2 * max(sizes) > sum(sizes)
    if found is None or not is_most or not _is_stacked(found[0][0]):
        return None
    permutation = found[1]["permutation"]
    inverse = tuple(permutation.index(axis) for axis in range(len(permutation)))
    parts = [_transposed(operand, inverse) for operand in operands]
    return transpose_to(concatenate(*parts, axis=permutation[params["axis"]]), permutation)


def _is_stacked(x: Symbol) -> bool:
    """True if a value is one of several that an equation computes: what a loop carries or stacks."""
    builder, atom = x.builder, x.atom
    return isinstance(atom, Var) and definition(x) is None and atom not in builder.inputs


def _transposed(x: Symbol, permutation: Ints) -> Symbol:
    """The transpose; a reshape where no axes of several elements change their order."""
    long = [axis for axis in permutation if x.shape[axis] != 1]
    return (
        reshape_to(x, tuple(x.shape[axis] for axis in permutation))
        if long == sorted(long)
        else transpose_to(x, permutation)
    )
