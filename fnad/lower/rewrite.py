"""Nests written anew with other loops: items, effects and nodes with their indices changed."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from fnad.lower.index import Atom, Counter, Index, Loaded, Quotient, Remainder, canonical
from fnad.lower.loop_ir import ArgReduce, BufferStore, Item, NestLoop, Reduce, Scan, Update
from fnad.lower.nodes import (
    Branch,
    Buffer,
    BufferLoad,
    Checked,
    IndexValue,
    Node,
    Nodes,
    ScalarConstant,
    ScalarOperation,
)

_Effect = TypeVar("_Effect", bound=BufferStore | Reduce | Update | ArgReduce | Scan)


class Rewrite:
    """A change of a nest; subclasses define the new index, depth and place in memory."""

    def __init__(self, nodes: Nodes, outermost: int) -> None:
        self.nodes = nodes
        self.outermost = outermost
        self._memo: dict[Node, Node] = {}

    def index(self, index: Index) -> Index:
        return canonical(index.constant, {self.renamed(atom): c for atom, c in index.terms})

    def renamed(self, atom: Atom) -> Atom:
        match atom:
            case Counter(depth, extent):
                return Counter(self.depth(depth), extent)
            case Loaded(node, extent):
                return Loaded(self.node(node), extent)
            case Quotient(dividend, divisor):
                return Quotient(self.index(dividend), divisor)
            case Remainder(dividend, divisor):
                return Remainder(self.index(dividend), divisor)

    def depth(self, depth: int) -> int:
        return depth

    def place(self, buffer: Buffer, address: Index) -> tuple[Buffer, Index]:
        return buffer, self.index(address)

    def item(self, item: Item) -> Item:
        match item:
            case NestLoop(depth, _, items, _, span):
                moved = None if span is None else (self.node(span[0]), self.node(span[1]))
                return replace(item, depth=self.depth(depth), items=[self.item(i) for i in items], span=moved)
            case Reduce():
                depths = frozenset(self.depth(d) for d in item.depths)
                return replace(self.effect(item), depths=depths)
            case BufferStore() | Update() | ArgReduce() | Scan():
                return self.effect(item)
            case _:
                return item

    def effect(self, effect: _Effect) -> _Effect:
        """An effect at its new address, with its new value."""
        buffer, address = self.place(effect.buffer, effect.address)
        return replace(effect, buffer=buffer, address=address, node=self.node(effect.node))

    def node(self, node: Node) -> Node:
        found = self._memo.get(node)
        if found is None:
            found = self._memo[node] = self._rewritten(node)
        return found

    def _rewritten(self, node: Node) -> Node:
        match node:
            case BufferLoad(buffer, address):
                moved = self.place(buffer, address)
                self.nodes.source = node.source
                return self.nodes.load(*moved)
            case IndexValue(index, dtype, _):
                return self.nodes.number(self.index(index), dtype)
            case ScalarOperation(operation, operands):
                operands = [*map(self.node, operands)]
                self.nodes.source = node.source
                return self.nodes.apply(operation, *operands)
            case Branch(conditions, inside, outside, _):
                moved = tuple((self.index(index), low, high) for index, low, high in conditions)
                return self.nodes.branch(moved, self.node(inside), self.node(outside))
            case Checked(operand, extent, fault, depth):
                return self.nodes.checked(self.node(operand), extent, fault, min(depth, self.outermost))
            case ScalarConstant():
                return node
