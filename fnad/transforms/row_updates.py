"""A pass that computes from the updates alone a value made of zeros with one update in each row.

The cotangent of `x[np.arange(n), labels]` is such an array. Its sum along the rows is the vector of updates, its
product with an array reads the array where the updates are, and its sum with another one is an update of that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from fnad.ir.primitive import Primitive, Scalar
from fnad.ir.program import Params
from fnad.ir.symbol import Symbol
from fnad.ops.arithmetic import add, strong_mul
from fnad.ops.comparison import select
from fnad.ops.indexing import gather, scatter_add
from fnad.ops.shape import Ints, broadcast_in_dim, constant, reduce_sum, zeros_like
from fnad.transforms.by_rows import counted_axes
from fnad.transforms.rewrite import Rewriter, application, constant_of, definition, operands_of

Rule: TypeAlias = Callable[[Sequence[Symbol], Params], Symbol | None]

CHEAP = 5
"""The highest cost of an operation that is computed again for the elements that are read."""


class Updates(NamedTuple):
    """The updates of an array of zeros, one a row; their places; the axes that number the rows, and the other one."""

    values: Symbol
    places: Sequence[Symbol]
    rows: Ints
    along: Ints

    def add_to(self, x: Symbol, values: Symbol) -> Symbol:
        """An array with values added at the places."""
        return scatter_add(x, values, *self.places)

    def read(self, x: Symbol) -> Symbol:
        """An array at the places, and so what it is computed from, where that is cheap."""
        if (value := constant_of(x)) is not None:
            return constant(value, x.dtype, self.values.shape)
        if (found := definition(x)) is None:
            return gather(x, *self.places)
        operands = operands_of(x, found)
        if found.primitive is broadcast_in_dim and found.params["dims"] == self.rows:
            return operands[0]
        if isinstance(found.primitive.lower, Scalar) and found.primitive.lower.cost <= CHEAP:
            return found.primitive(*map(self.read, operands), **found.params)
        return gather(x, *self.places)


def updates_of(x: Symbol) -> Updates | None:
    """The updates that x consists of, if there is one in each row, and zeros elsewhere."""
    found, builder = application(x, scatter_add), x.builder
    if found is None or not isinstance(builder, Rewriter) or constant_of(found[0][0]) != 0:
        return None
    _, values, *places = found[0]
    counted = counted_axes(x.atom, [place.atom for place in places], builder.definitions)
    along = tuple(axis for axis in range(x.ndim) if axis not in counted)
    is_one_each = len(places) == x.ndim == values.ndim + 1 and list(counted.values()) == list(range(values.ndim))
    return Updates(values, places, tuple(counted), along) if is_one_each else None


def computed_from_updates(primitive: Primitive, operands: Sequence[Symbol], params: Params) -> Symbol | None:
    """The rewrite of an equation of such arrays."""
    rewrite = REWRITES.get(primitive)
    return None if rewrite is None else rewrite(operands, params)


def _sum_of_rows(operands: Sequence[Symbol], params: Params) -> Symbol | None:
    found = updates_of(operands[0])
    return found.values + 0.0 if found is not None and params["axes"] == found.along else None


def _sum(operands: Sequence[Symbol], params: Params) -> Symbol | None:
    for one, other in (operands, operands[::-1]):
        if (found := updates_of(one)) is not None:
            return found.add_to(other, found.values)
    return None


def _product(operands: Sequence[Symbol], params: Params) -> Symbol | None:
    found = updates_of(operands[0])
    if found is None:
        return None
    return found.add_to(zeros_like(operands[0]), strong_mul(found.values, found.read(operands[1])))


def _choice(operands: Sequence[Symbol], params: Params) -> Symbol | None:
    """Of the updates and zeros: zeros with the updates, or zeros, that the mask chooses."""
    mask, *arms = operands
    for place, other in ((0, 1), (1, 0)):
        found = updates_of(arms[place])
        if found is not None and constant_of(arms[other]) == 0:
            kept = [zeros_like(found.values)] * 2
            kept[place] = found.values
            return found.add_to(zeros_like(arms[0]), select(found.read(mask), *kept))
    return None


REWRITES: Mapping[Primitive, Rule] = {reduce_sum: _sum_of_rows, add: _sum, strong_mul: _product, select: _choice}
