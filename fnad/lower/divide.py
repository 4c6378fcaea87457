"""Dividing a loop whose counter is divided: loops over quotient and remainder, in which no element divides.

The elements of a reshaped, repeated or tiled array have addresses such as i // n + m * (i % n). Where n divides the
extent of the loop, two loops take its place, and the addresses become affine. Nests are fused and collapsed before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fnad.lower.index import Atom, Counter, Index, Loaded, Quotient, Remainder
from fnad.lower.loop_ir import BufferStore, Item, NestLoop, Reduce, Update, effects
from fnad.lower.nodes import Branch, Nodes, all_nodes, indices
from fnad.lower.rewrite import Rewrite


def divide(item: Item, nodes: Nodes) -> Item:
    """The nest with all loops divided that can be, those in it too."""
    if not isinstance(item, NestLoop):
        return item
    while divisor := _divisor(item):
        item = _Divide(item, divisor, nodes).loop()
    return replace(item, items=[divide(inner, nodes) for inner in item.items])


def _divisor(loop: NestLoop) -> int:
    """The largest divisor of the extent by which the counter is divided; 0 if there is none."""
    if loop.span is not None or loop.tile or loop.across:
        return 0
    found = [effect for effect in effects(loop) if isinstance(effect, BufferStore | Update | Reduce)]
    if len(found) < sum(1 for _ in effects(loop)):
        return 0
    nodes = [*all_nodes(effect.node for effect in found)]
    if any(isinstance(node, Branch) for node in nodes):  # its pieces have divisors of their own
        return 0
    whole = Index(0, ((Counter(loop.depth, loop.extent), 1),))
    read = [*(effect.address for effect in found), *(index for node in nodes for index in indices(node))]
    divisors = (n for index in read for n in _divisors_in(index, whole))
    return max((n for n in divisors if loop.extent % n == 0 and n < loop.extent), default=0)


def _divisors_in(index: Index, whole: Index) -> Iterator[int]:
    for atom, _ in index.terms:
        if isinstance(atom, Quotient | Remainder):
            if atom.dividend == whole:
                yield atom.divisor
            yield from _divisors_in(atom.dividend, whole)


class _Divide(Rewrite):
    """The rewrite of one loop to two, which moves deeper loops down one level."""

    def __init__(self, divided: NestLoop, divisor: int, nodes: Nodes) -> None:
        super().__init__(nodes, divided.depth)
        self.divided, self.divisor = divided, divisor
        outer = Index(0, ((Counter(divided.depth, divided.extent // divisor), 1),))
        self.counter = outer * divisor + Index(0, ((Counter(divided.depth + 1, divisor), 1),))

    def loop(self) -> NestLoop:
        depth, divisor = self.divided.depth, self.divisor
        inner = NestLoop(depth + 1, divisor, [self.item(item) for item in self.divided.items])
        return NestLoop(depth, self.divided.extent // divisor, [inner])

    def item(self, item: Item) -> Item:
        moved = super().item(item)
        if isinstance(item, Reduce) and isinstance(moved, Reduce) and self.divided.depth in item.depths:
            return replace(moved, depths=moved.depths | {self.divided.depth + 1})
        return moved

    def depth(self, depth: int) -> int:
        return depth + 1 if depth > self.divided.depth else depth

    def index(self, index: Index) -> Index:
        return sum((self._atom(atom) * c for atom, c in index.terms), Index(index.constant))

    def _atom(self, atom: Atom) -> Index:
        match atom:
            case Counter(depth, extent):
                is_divided = depth == self.divided.depth
                return self.counter if is_divided else Index(0, ((Counter(self.depth(depth), extent), 1),))
            case Loaded(node, extent):
                return Index(0, ((Loaded(self.node(node), extent), 1),))
            case Quotient(dividend, divisor):
                return self.index(dividend) // divisor
            case Remainder(dividend, divisor):
                return self.index(dividend) % divisor
