"""Collapsing two nested loops into one, where memory does not distinguish their counters.

Two loops, one directly inside the other, are one loop over the product of their extents if in every address and every
index the coefficient of the outer counter is that of the inner one times its extent. Elementwise work on a matrix
becomes one long loop: fewer loops to compile, and no short inner loop that starts over for each row.
"""

from __future__ import annotations

from dataclasses import replace

from fnad.lower.index import Counter, Index, canonical
from fnad.lower.loop_ir import ArgReduce, BufferStore, Effect, Item, NestLoop, Reduce, Scan, Update, effects
from fnad.lower.nodes import (
    Branch,
    BufferLoad,
    Checked,
    IndexValue,
    Node,
    Nodes,
    ScalarConstant,
    ScalarOperation,
    children,
)


def collapse(item: Item, nodes: Nodes) -> Item:
    """The nest with all loops collapsed that can be."""
    if not isinstance(item, NestLoop):
        return item
    while len(item.items) == 1 and isinstance(item.items[0], NestLoop) and _collapsible(item, item.items[0]):
        item = _Collapse(item, item.items[0], nodes).loop()
    return replace(item, items=[collapse(inner, nodes) for inner in item.items])


def _collapsible(outer: NestLoop, inner: NestLoop) -> bool:
    a, b = Counter(outer.depth, outer.extent), Counter(inner.depth, inner.extent)
    return all(_effect_collapses(effect, a, b) for effect in effects(inner))


def _effect_collapses(effect: object, a: Counter, b: Counter) -> bool:
    match effect:
        case BufferStore() | Update() | Reduce():
            # A fold over only one of the loops fails the test by its address, which has the other counter alone.
            return _all_collapse(effect.address, effect.node, a, b)
        case _:  # what runs along the innermost loop, a scan or a position, needs that loop's own counter
            return False


def _all_collapse(address: Index, node: Node, a: Counter, b: Counter) -> bool:
    seen: set[Node] = set()
    pending = [node]
    if not _index_collapses(address, a, b):
        return False
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        if not all(_index_collapses(index, a, b) for index in _indices(node)):
            return False
        pending.extend(children(node))
    return True


def _indices(node: Node) -> list[Index]:
    match node:
        case BufferLoad(_, index, _) | IndexValue(index, _, _):
            return [index]
        case Branch(conditions, _, _, _):
            return [index for index, _, _ in conditions]
        case _:
            return []


def _index_collapses(index: Index, a: Counter, b: Counter) -> bool:
    # A quotient, a remainder or a loaded integer may hide either counter.
    if any(not isinstance(atom, Counter) for atom, _ in index.terms):
        return False
    return index.coefficient(a) == index.coefficient(b) * b.extent


class _Collapse:
    """The rewrite of two loops to one counter, which moves deeper loops up one level."""

    def __init__(self, outer: NestLoop, inner: NestLoop, nodes: Nodes) -> None:
        self.inner = inner
        self.nodes = nodes
        self.outer_counter = Counter(outer.depth, outer.extent)
        self.inner_counter = Counter(inner.depth, inner.extent)
        self.joint = Counter(outer.depth, outer.extent * inner.extent)
        self._memo: dict[Node, Node] = {}

    def loop(self) -> NestLoop:
        items = [self._item(item) for item in self.inner.items]
        return NestLoop(self.joint.depth, self.joint.extent, items)

    def _item(self, item: Item) -> Item:
        match item:
            case NestLoop(depth, extent, items):
                return NestLoop(depth - 1, extent, [self._item(inner) for inner in items])
            case Reduce():
                depths = frozenset(self._depth(d) for d in item.depths)
                return replace(item, address=self._index(item.address), node=self._node(item.node), depths=depths)
            case BufferStore() | Update() | ArgReduce() | Scan():
                return self._effect(item)
            case _:
                return item

    def _effect(self, effect: Effect) -> Effect:
        return replace(effect, address=self._index(effect.address), node=self._node(effect.node))

    def _depth(self, depth: int) -> int:
        return depth - 1 if depth >= self.inner_counter.depth else depth

    def _index(self, index: Index) -> Index:
        terms: dict[object, int] = {}
        for atom, c in index.terms:
            if atom == self.inner_counter:
                terms[self.joint] = c
            elif isinstance(atom, Counter) and atom != self.outer_counter:
                terms[Counter(self._depth(atom.depth), atom.extent)] = c
        return canonical(index.constant, terms)  # type: ignore[arg-type]

    def _node(self, node: Node) -> Node:
        found = self._memo.get(node)
        if found is None:
            found = self._memo[node] = self._rewritten(node)
        return found

    def _rewritten(self, node: Node) -> Node:
        match node:
            case BufferLoad(buffer, address, _):
                return self.nodes.load(buffer, self._index(address))
            case IndexValue(index, dtype, _):
                return self.nodes.number(self._index(index), dtype)
            case ScalarOperation(operation, operands, _, _):
                return self.nodes.apply(operation, *map(self._node, operands))
            case Branch(conditions, inside, outside, _):
                moved = tuple((self._index(index), low, high) for index, low, high in conditions)
                return self.nodes.branch(moved, self._node(inside), self._node(outside))
            case Checked(operand, extent, fault, depth):
                return self.nodes.checked(self._node(operand), extent, fault, min(depth, self.joint.depth))
            case ScalarConstant():
                return node
