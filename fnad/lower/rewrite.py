"""Nests written anew with other loops: items, effects and nodes with their indices changed."""

from __future__ import annotations

from dataclasses import replace

from fnad.lower.index import Index
from fnad.lower.loop_ir import ArgReduce, BufferStore, Item, NestLoop, Reduce, Scan, Update
from fnad.lower.nodes import (
    Branch,
    BufferLoad,
    Checked,
    IndexValue,
    Node,
    Nodes,
    ScalarConstant,
    ScalarOperation,
)


class Rewrite:
    """A change of the loops of a nest; those that it is made for say what becomes of an index and of a depth."""

    def __init__(self, nodes: Nodes, outermost: int) -> None:
        self.nodes = nodes
        self.outermost = outermost
        self._memo: dict[Node, Node] = {}

    def index(self, index: Index) -> Index:
        raise NotImplementedError

    def depth(self, depth: int) -> int:
        raise NotImplementedError

    def item(self, item: Item) -> Item:
        match item:
            case NestLoop(depth, _, items, _, span):
                moved = None if span is None else (self.node(span[0]), self.node(span[1]))
                return replace(item, depth=self.depth(depth), items=[self.item(i) for i in items], span=moved)
            case Reduce():
                depths = frozenset(self.depth(d) for d in item.depths)
                return replace(item, address=self.index(item.address), node=self.node(item.node), depths=depths)
            case BufferStore() | Update() | ArgReduce() | Scan():
                return replace(item, address=self.index(item.address), node=self.node(item.node))
            case _:
                return item

    def node(self, node: Node) -> Node:
        found = self._memo.get(node)
        if found is None:
            found = self._memo[node] = self._rewritten(node)
        return found

    def _rewritten(self, node: Node) -> Node:
        match node:
            case BufferLoad(buffer, address):
                address = self.index(address)
                self.nodes.source = node.source
                return self.nodes.load(buffer, address)
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
