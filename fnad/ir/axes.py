"""What a primitive does to the axes of its operands: which elements of a result an element can reach.

A record says it once, as `Primitive.axes`; how the primitive is applied to a stack (`fnad/transforms/batching.py`) and
which elements of its Jacobian can be other than 0 (`fnad/transforms/sparsity.py`) follow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

AxisPairs: TypeAlias = tuple[tuple[int, int], ...]
"""An axis of an operand and one of a result, for each pair whose indices are the same: i reaches nothing but i."""


class Elementwise:
    """An element of the result depends on the elements of the operands at its place, in operands of one shape."""


class Stacked(NamedTuple):
    """A function of arrays of `trailing` axes, for each index of the axes before, which operands and results share."""

    trailing: int = 2


class Along(NamedTuple):
    """A function of what lies along one axis, the param of this name, for each index of the others; the axis stays."""

    param: str = "axis"


class Over(NamedTuple):
    """A function of what lies along the axes, or the axis, in the param of this name; results do not have them."""

    param: str = "axes"


class Contract:
    """Sums of products of two operands over the param `contract`, for each index of the param `batch`."""


class Reindex(NamedTuple):
    """Elements of the operand, elsewhere; where is computed by the index of the lowering, without reading values.

    `stack(count, **params)` returns the params for an operand and a result with a new leading axis of this size.
    """

    stack: Callable[..., dict[str, Any]]


class Custom(NamedTuple):
    """What fits none of the others.

    `batch(count, operands, stacked, **params)` returns the result with a leading axis of `count`, of symbols of which
    those marked in `stacked` have one. `aligned(*operand_avals, **params)` returns the pairs of axes of each operand.
    """

    batch: Callable[..., Any]
    aligned: Callable[..., tuple[AxisPairs, ...]]


class Opaque(NamedTuple):
    """Every element of an operand may reach every element of a result, and a stack is not possible: the reason."""

    reason: str


Axes: TypeAlias = Elementwise | Stacked | Along | Over | Contract | Reindex | Custom | Opaque
