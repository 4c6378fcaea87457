"""The sparsity pattern of an equation's Jacobian: which elements of a result can depend on which of an operand.

It follows from the record (`fnad/ir/axes.py`): an element affects the elements of a result at the same indices of the
axes that the two share. It is exact for data movement, and otherwise the best bound without knowing values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fnad.ir.axes import Along, AxisPairs, Contract, Custom, Elementwise, Opaque, Over, Reindex, Stacked
from fnad.ir.primitive import Accumulation, IndexMap, Primitive
from fnad.ir.program import Params
from fnad.ir.types import Aval, Shape
from fnad.ops.contraction import free_axes


class SparsityPattern(NamedTuple):
    """The pairs of flat positions in a result (`rows`) and in an operand (`columns`), each pair once."""

    rows: np.ndarray[Any, Any]
    columns: np.ndarray[Any, Any]


def patterns(primitive: Primitive, operands: Sequence[Aval], params: Params) -> list[list[SparsityPattern]]:
    """For each result of an equation without regions, the pattern with respect to each operand."""
    inferred = primitive.infer(*operands, **params)
    results = inferred if isinstance(inferred, tuple) else (inferred,)
    if isinstance(primitive.axes, Reindex):
        return [[_moved(primitive, operand, results[0], params) for operand in operands]]
    aligned = aligned_axes(primitive, operands, params)
    return [
        [_of_shared_axes(result.shape, operand.shape, pairs) for operand, pairs in zip(operands, aligned, strict=True)]
        for result in results
    ]


def aligned_axes(primitive: Primitive, operands: Sequence[Aval], params: Params) -> Sequence[AxisPairs]:
    """The axes that each operand shares with the results."""
    match primitive.axes:
        case Elementwise():
            return [_same(range(x.ndim)) for x in operands]
        case Stacked(trailing):
            return [_same(range(x.ndim - trailing)) for x in operands]
        case Along(name):
            return [_same(a for a in range(x.ndim) if a not in np.atleast_1d(params[name])) for x in operands]
        case Over(name):
            gone = np.atleast_1d(params[name])
            return [_in_order(a for a in range(x.ndim) if a not in gone) for x in operands]
        case Contract():
            return _of_contraction(*operands, **params)
        case Custom(_, aligned):
            return aligned(*operands, **params)
        case Opaque() | Reindex():
            return [() for _ in operands]


def _same(axes: Any) -> AxisPairs:
    return tuple((a, a) for a in axes)


def _in_order(axes: Any, first: int = 0) -> AxisPairs:
    return tuple((a, i) for i, a in enumerate(axes, first))


def _of_contraction(x: Aval, y: Aval, *, contract: Any, batch: Any) -> list[AxisPairs]:
    free_x, free_y = free_axes(x.ndim, contract[0], batch[0]), free_axes(y.ndim, contract[1], batch[1])
    of_y = _in_order(free_y, len(batch[0]) + len(free_x))
    return [_in_order((*batch[0], *free_x)), (*_in_order(batch[1]), *of_y)]


def _of_shared_axes(result: Shape, operand: Shape, pairs: AxisPairs) -> SparsityPattern:
    """All pairs of positions that agree in the shared axes."""
    of_result, of_operand = shared_groups(result, operand, pairs)
    count = np.prod([operand[o] for o, _ in pairs], dtype=int)
    sorted_by = [np.argsort(groups, kind="stable") for groups in (of_result, of_operand)]
    rows, columns = (positions.reshape(count, len(positions) // max(count, 1)) for positions in sorted_by)
    both = np.broadcast_arrays(rows[:, :, None], columns[:, None, :])
    return SparsityPattern(*[positions.ravel() for positions in both])


def shared_groups(result: Shape, operand: Shape, pairs: AxisPairs) -> tuple[np.ndarray[Any, Any], ...]:
    """For each position in the result, and in the operand, the number of its index in the axes that they share."""
    return _groups(result, [r for _, r in pairs]), _groups(operand, [o for o, _ in pairs])


def _groups(shape: Shape, shared: Sequence[int]) -> np.ndarray[Any, Any]:
    count = np.prod([shape[a] for a in shared], dtype=int)
    numbers = np.arange(count).reshape([shape[a] for a in shared])
    rest = [1] * (len(shape) - len(shared))
    in_place = np.moveaxis(numbers.reshape((*numbers.shape, *rest)), range(len(shared)), shared)
    return np.broadcast_to(in_place, shape).ravel()


def _moved(primitive: Primitive, operand: Aval, result: Aval, params: Params) -> SparsityPattern:
    """The position that each element comes from, or goes to, by the lowering's index map."""
    match primitive.lower:
        case IndexMap(index, guard):
            to = _indices(result)
            there = np.ones(result.size, bool)
            for value, low, high in guard(to, operand, result, **params) if guard else ():
                there &= (low <= value) & (value < high)
            places = index([i[there] for i in to], operand, result, **params)
            return SparsityPattern(np.flatnonzero(there), _flat(places, operand.shape, int(there.sum())))
        case Accumulation(index):
            places = index(
                list(np.indices(operand.shape).reshape(operand.ndim, operand.size)), operand, result, **params
            )
            return SparsityPattern(_flat(places, result.shape, operand.size), np.arange(operand.size))
        case lower:
            raise AssertionError(f"{primitive} moves elements, but {lower} does not say where")


def _indices(x: Aval) -> list[np.ndarray[Any, Any]]:
    """The index of every element along each axis."""
    return list(np.indices(x.shape).reshape(x.ndim, x.size))


def _flat(places: Sequence[Any], shape: Shape, count: int) -> np.ndarray[Any, Any]:
    """The flat positions of `count` elements, given by the index along each axis."""
    flat: Any = np.zeros(count, int)
    for place, n in zip(places, shape, strict=True):
        flat = flat * n + place
    return flat
