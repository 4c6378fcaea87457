"""Batching: a primitive applied for each index of a new leading axis, as one equation or a few on whole stacks.

How follows from the record (`fnad/ir/axes.py`): params that name axes are shifted by one, those that are shapes get one
more axis. Operands that are the same for the whole stack are broadcast, unless the rule needs no copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fnad.ir.axes import Along, Contract, Custom, Elementwise, Opaque, Over, Reindex, Stacked
from fnad.ir.primitive import Primitive
from fnad.ir.program import Params
from fnad.ir.symbol import Symbol
from fnad.ops.contraction import Axes as Pairs
from fnad.ops.contraction import dot_general
from fnad.ops.shape import behind, in_front, stack_operands


def batched(
    primitive: Primitive, count: int, operands: Sequence[Symbol], stacked: Sequence[bool], params: Params
) -> tuple[Symbol, ...] | None:
    """The results for a stack of `count`, along axis 0, like the operands marked in `stacked`.

    None where they are to be computed for one element after the other.
    """
    match primitive.axes:
        case Opaque():
            return None
        case Custom(batch, _):
            results = batch(count, operands, stacked, **params)
        case Contract():
            results = _contract_stacks(operands, stacked, **params)
        case axes:
            results = primitive(*stack_operands(count, operands, stacked), **stacked_params(axes, count, params))
    return (results,) if isinstance(results, Symbol) else results


def stacked_params(axes: Elementwise | Stacked | Along | Over | Reindex, count: int, params: Params) -> dict[str, Any]:
    """The params of an equation all of whose operands and results have a new leading axis of size `count`."""
    match axes:
        case Elementwise() | Stacked():
            return dict(params)
        case Along(name) | Over(name):
            named = params[name]
            return {**params, name: behind(named) if isinstance(named, tuple) else named + 1}
        case Reindex(stack):
            return stack(count, **params)


def _contract_stacks(operands: Sequence[Symbol], stacked: Sequence[bool], *, contract: Pairs, batch: Pairs) -> Symbol:
    """Pair the axes of two stacks as batch axes; the axis of one alone is one of its free axes, moved to the front."""
    contract, batch = _behind(contract, stacked), _behind(batch, stacked)
    if all(stacked):
        return dot_general(*operands, contract=contract, batch=((0, *batch[0]), (0, *batch[1])))
    product = dot_general(*operands, contract=contract, batch=batch)
    return in_front(product, (len(batch[0]) if stacked[0] else operands[0].ndim - len(contract[0]),))


def _behind(pairs: Pairs, stacked: Sequence[bool]) -> Pairs:
    x, y = (behind(axes) if is_stacked else axes for axes, is_stacked in zip(pairs, stacked, strict=True))
    return x, y
