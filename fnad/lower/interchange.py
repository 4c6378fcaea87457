"""Nests in another form: loops in another order, a nest for each item.

Loops that follow one another without anything between them may be put in any order that keeps the loops that are not
free (`independence.py`) in theirs. A nest of several items may become several nests, one after the other: only items
whose iterations touch their own parts of what they share are fused (`fuse.py`).

Machines that share out iterations take both. On any machine a short fold along a column is made innermost: LLVM unrolls
it, so that the accumulator of each column is in a register and not in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from fnad.ir.size import is_size
from fnad.lower.independence import chain
from fnad.lower.index import Counter
from fnad.lower.loop_ir import Control, Item, NestLoop, Product, Reduce, Switch, effects
from fnad.lower.nodes import BufferLoad, Nodes, ScalarConstant, ScalarOperation, all_nodes
from fnad.lower.rewrite import Rewrite
from fnad.scalar.operations import ADD, MULTIPLY, NEGATIVE, SUBTRACT

FEWEST = 8
"""The fewest columns that are folded side by side, as the lanes of a vector."""

SHORT = 8
"""The longest columns that are folded innermost, whatever their number."""

FEW = 256
"""The most elements of columns that are folded innermost, whatever their length."""

ARITHMETIC = {ADD, SUBTRACT, MULTIPLY, NEGATIVE}
"""The operations that take no longer in a loop that LLVM unrolls."""


def nest_of(loops: Sequence[NestLoop], items: Iterable[Item]) -> NestLoop:
    """Items in loops that follow one another."""
    inner = list(items)
    for loop in reversed(loops):
        inner = list[Item]([NestLoop(loop.depth, loop.extent, inner)])
    (nest,) = inner
    assert isinstance(nest, NestLoop)
    return nest


def ordered(loops: Sequence[NestLoop], order: Sequence[NestLoop]) -> NestLoop:
    """A nest of loops that follow one another, with the same loops in another order."""
    items = loops[-1].items
    if list(order) == list(loops):
        return nest_of(loops, items)
    renaming = _Renaming({old.depth: loops[n].depth for n, old in enumerate(order)}, loops[0].depth)
    renamed = [NestLoop(loops[n].depth, old.extent) for n, old in enumerate(order)]
    return nest_of(renamed, map(renaming.item, items))


class _Renaming(Rewrite):
    """The rewrite that gives loops other depths."""

    def __init__(self, depths: Mapping[int, int], outermost: int) -> None:
        super().__init__(Nodes(), outermost)
        self.depths = depths

    def depth(self, depth: int) -> int:
        return self.depths.get(depth, depth)


def columns_inside(item: Item) -> Item:
    """The nest with the loop along a short column inside of the one over columns, if all that it does is to fold.

    Nests in control flow are replaced there.
    """
    for body in item.bodies if isinstance(item, Switch) else [item.items] if isinstance(item, Control) else []:
        body[:] = map(columns_inside, body)
    loops = chain(item) if isinstance(item, NestLoop) else []
    is_plain = not any(loop.span is not None or loop.tile or loop.across or is_size(loop.extent) for loop in loops)
    if len(loops) < 2 or not is_plain:
        return item
    *outer, column, columns = loops
    is_short = column.extent <= max(SHORT, FEW // columns.extent) and columns.extent >= FEWEST
    match columns.items:
        case [Reduce(depths=depths) as fold] if is_short and column.depth in depths and columns.depth not in depths:
            is_along = _is_along_rows(fold, Counter(columns.depth, columns.extent))
            return ordered(loops, [*outer, columns, column]) if is_along else item
        case _:
            return item


def _is_along_rows(fold: Reduce, columns: Counter) -> bool:
    """True if a fold is of arithmetic on elements that lie together for neighbours among columns."""
    return fold.address.coefficient(columns) == 1 and all(
        isinstance(node, ScalarConstant)
        or (isinstance(node, BufferLoad) and node.address.coefficient(columns) in (0, 1))
        or (isinstance(node, ScalarOperation) and node.operation in ARITHMETIC)
        for node in all_nodes([fold.node])
    )


def distributed(loops: Sequence[NestLoop], groups: Iterable[Sequence[Item]]) -> Iterator[NestLoop]:
    """A nest for each group of the items within loops, in order."""
    for group in groups:
        yield nest_of(loops, group)


def products_apart(item: Item) -> list[Item]:
    """A nest with matrix products among others as nests, one for each product and for what is between two of them."""
    if not isinstance(item, NestLoop) or not _multiplies(item):
        return [item]
    loops = chain(item)
    parts = [
        list(part) for _, part in groupby(loops[-1].items, key=lambda inner: id(inner) if _multiplies(inner) else 0)
    ]
    if len(parts) == 1:
        return [item]
    return [apart for nest in distributed(loops, parts) for apart in products_apart(nest)]


def _multiplies(item: Item) -> bool:
    return any(isinstance(effect, Product) for effect in effects(item))
