"""The relation of a primitive's axes: which elements of a result depend on which elements of an operand.

A record declares it once, as `Primitive.axes`; how the primitive is applied to a stack (`fnad/transforms/batching.py`)
and which elements of its Jacobian can be nonzero (`fnad/transforms/sparsity.py`) follow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

AxisPairs: TypeAlias = tuple[tuple[int, int], ...]
"""The pairs of an operand's and a result's axis along which index i of the one affects only index i of the other."""


class Elementwise:
    """An element of the result depends on the elements of the operands at the same index; all have one shape."""


class Stacked(NamedTuple):
    """A function of arrays with `trailing` axes, for each index of the leading axes, which results share."""

    trailing: int = 2


class Along(NamedTuple):
    """A function along the axis, or the axes, in the param of this name, for each index of the others; they remain."""

    param: str = "axis"


class Over(NamedTuple):
    """A function over the axes, or the axis, in the param of this name; results lack these axes."""

    param: str = "axes"


class Contract:
    """Sums of products of two operands over the param `contract`, for each index of the param `batch`."""


class Reindex(NamedTuple):
    """Elements of the operand at other indices, which the lowering's index map computes without reading values.

    `stack(count, **params)` gives the params for an operand and a result with a new leading axis of this size.
    """

    stack: Callable[..., dict[str, Any]]


class Custom(NamedTuple):
    """Any other relation.

    `batch(count, operands, stacked, **params)` gives the result with a leading axis of `count`, or None where it is to
    be computed for one element of the stack after the other; of the operands, those marked in `stacked` have one.
    `aligned(*operand_avals, **params)` gives the pairs of axes of each operand.
    """

    batch: Callable[..., Any]
    aligned: Callable[..., tuple[AxisPairs, ...]]


class Opaque(NamedTuple):
    """No known relation, with the reason: any element may affect any other, and stacks are computed row by row."""

    reason: str


Axes: TypeAlias = Elementwise | Stacked | Along | Over | Contract | Reindex | Custom | Opaque
