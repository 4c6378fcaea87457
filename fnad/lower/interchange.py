"""Nests in another form, for machines that share out iterations: loops in another order, a nest for each item.

Loops that follow one another without anything between them may be put in any order that keeps the loops that are not
free (`independence.py`) in theirs. A nest of several items may become several nests, one after the other: only items
whose iterations touch their own parts of what they share are fused (`fuse.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from fnad.lower.independence import chain
from fnad.lower.loop_ir import Item, NestLoop, Product, effects
from fnad.lower.nodes import Nodes
from fnad.lower.rewrite import Rewrite


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
