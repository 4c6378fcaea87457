"""Collapsing two nested loops into one, where memory does not distinguish their counters.

Two loops, one directly inside the other, may become one loop over the product of their extents. In every address and
every index the coefficient of the outer counter must be that of the inner one times its extent. Elementwise work on a
matrix becomes one long loop: fewer loops to compile, and no short inner loop that starts over for each row.
"""

from __future__ import annotations

from dataclasses import replace

from fnad.lower.index import Counter, Index, canonical
from fnad.lower.loop_ir import BufferStore, Item, NestLoop, Reduce, Update, effects
from fnad.lower.nodes import Node, Nodes, all_nodes, indices
from fnad.lower.rewrite import Rewrite


def collapse(item: Item, nodes: Nodes) -> Item:
    """The nest with all loops collapsed that can be."""
    if not isinstance(item, NestLoop):
        return item
    while len(item.items) == 1 and isinstance(item.items[0], NestLoop) and _collapsible(item, item.items[0]):
        item = _Collapse(item, item.items[0], nodes).loop()
    return replace(item, items=[collapse(inner, nodes) for inner in item.items])


def _collapsible(outer: NestLoop, inner: NestLoop) -> bool:
    a, b = Counter(outer.depth, outer.extent), Counter(inner.depth, inner.extent)
    if outer.span is not None or inner.span is not None or inner.across:
        return False
    return all(_effect_collapses(effect, a, b) for effect in effects(inner))


def _effect_collapses(effect: object, a: Counter, b: Counter) -> bool:
    match effect:
        case BufferStore() | Update() | Reduce():
            # A fold over only one of the loops fails the test by its address, which has the other counter alone.
            return _all_collapse(effect.address, effect.node, a, b)
        case _:  # what runs along the innermost loop, a scan or a position, needs that loop's own counter
            return False


def _all_collapse(address: Index, node: Node, a: Counter, b: Counter) -> bool:
    read = (index for each in all_nodes([node]) for index in indices(each))
    return all(_index_collapses(index, a, b) for index in (address, *read))


def _index_collapses(index: Index, a: Counter, b: Counter) -> bool:
    # A quotient, a remainder or a loaded integer may hide either counter.
    if any(not isinstance(atom, Counter) for atom, _ in index.terms):
        return False
    return index.coefficient(a) == index.coefficient(b) * b.extent


class _Collapse(Rewrite):
    """The rewrite of two loops to one counter, which moves deeper loops up one level."""

    def __init__(self, outer: NestLoop, inner: NestLoop, nodes: Nodes) -> None:
        super().__init__(nodes, outer.depth)
        self.inner = inner
        self.outer_counter = Counter(outer.depth, outer.extent)
        self.inner_counter = Counter(inner.depth, inner.extent)
        self.joint = Counter(outer.depth, outer.extent * inner.extent)

    def loop(self) -> NestLoop:
        items = [self.item(item) for item in self.inner.items]
        return NestLoop(self.joint.depth, self.joint.extent, items)

    def depth(self, depth: int) -> int:
        return depth - 1 if depth >= self.inner_counter.depth else depth

    def index(self, index: Index) -> Index:
        terms: dict[object, int] = {}
        for atom, c in index.terms:
            if atom == self.inner_counter:
                terms[self.joint] = c
            elif isinstance(atom, Counter) and atom != self.outer_counter:
                terms[Counter(self.depth(atom.depth), atom.extent)] = c
        return canonical(index.constant, terms)  # type: ignore[arg-type]
