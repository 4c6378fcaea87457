"""Scalar expressions: what one iteration of a loop nest computes.

Nodes are hash-consed: `Nodes` makes each expression once, so equal expressions are the same object, a common
subexpression is found by identity, and comparing or hashing one costs nothing however large it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeAlias

import numpy as np

from fnad.ir.program import Source
from fnad.ir.types import Aval, Dtype
from fnad.lower.index import Index, Loaded, Quotient, Remainder
from fnad.scalar.operation import Operation
from fnad.scalar.template import cast_to, instantiate

_numbers = count()


def numbered() -> int:
    """The field of a node with its number, by which terms of indices are ordered; later nodes have greater ones."""
    return field(default_factory=_numbers.__next__)


Condition: TypeAlias = tuple[Index, int, int]
"""(index, low, high): low <= index < high."""


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """A flat array: an input, an output or a temporary of the program, or part of another buffer.

    A buffer is written once in each iteration of the `depth` levels of control flow around it. What is written to the
    same memory again, such as a carry, is another buffer, whose `memory` is the buffer that owns all of the memory, and
    which begins there at `offset`.
    """

    name: str
    aval: Aval
    depth: int = 0
    memory: Buffer | None = None
    offset: Index = field(default_factory=lambda: Index(0))

    @property
    def dtype(self) -> Dtype:
        return self.aval.dtype

    @property
    def root(self) -> Buffer:
        """The buffer that owns the memory of this one."""
        return self if self.memory is None else self.memory

    def again(self, depth: int) -> Buffer:
        """A buffer for another value in the same memory."""
        return Buffer(self.name, self.aval, depth, self.root, self.offset)

    def part(self, aval: Aval, start: Index, depth: int) -> Buffer:
        """The buffer of the elements from `start` on."""
        return Buffer(self.name, aval, depth, self.root, self.offset + start)


@dataclass(frozen=True, slots=True, eq=False)
class BufferLoad:
    """An element of a buffer."""

    buffer: Buffer
    address: Index
    depth: int
    source: Source | None = None
    number: int = numbered()

    @property
    def dtype(self) -> Dtype:
        return self.buffer.aval.dtype


@dataclass(frozen=True, slots=True, eq=False)
class ScalarConstant:
    """A number."""

    value: np.generic
    depth: int = 0
    number: int = numbered()

    @property
    def dtype(self) -> Dtype:
        return self.value.dtype


@dataclass(frozen=True, slots=True, eq=False)
class ScalarOperation:
    """A scalar operation on its operands."""

    operation: Operation
    operands: tuple[Node, ...]
    dtype: Dtype
    depth: int
    source: Source | None = None
    number: int = numbered()


@dataclass(frozen=True, slots=True, eq=False)
class IndexValue:
    """An index as a number."""

    index: Index
    dtype: Dtype
    depth: int
    number: int = numbered()


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """`inside` where all conditions hold, else `outside`; only the one needed is computed."""

    conditions: tuple[Condition, ...]
    inside: Node
    outside: Node
    depth: int
    number: int = numbered()

    @property
    def dtype(self) -> Dtype:
        return self.inside.dtype


@dataclass(frozen=True, slots=True, eq=False)
class Checked:
    """A run-time index; outside of 0 <= index < extent it is reported as fault number `fault`, and 0 is used."""

    operand: Node
    extent: int
    fault: int
    depth: int
    number: int = numbered()

    @property
    def dtype(self) -> Dtype:
        return np.dtype(np.int64)


Node: TypeAlias = BufferLoad | ScalarConstant | ScalarOperation | IndexValue | Branch | Checked


class Nodes:
    """Makes nodes, each once, for an equation of `source`."""

    def __init__(self) -> None:
        self._made: dict[Any, Any] = {}
        self.source: Source | None = None

    def load(self, buffer: Buffer, address: Index) -> BufferLoad:
        depth = max(address.depth, buffer.depth)
        return self._once((BufferLoad, buffer, address), lambda: BufferLoad(buffer, address, depth, self.source))

    def constant(self, value: np.generic) -> Node:
        return self._once((ScalarConstant, value.dtype.char, value.tobytes()), lambda: ScalarConstant(value))

    def apply(self, operation: Operation, *operands: Node) -> Node:
        depth = max((node.depth for node in operands), default=0)
        dtype = operation.result(*(node.dtype for node in operands))
        assert isinstance(dtype, np.dtype)
        return self._once(
            (ScalarOperation, operation, operands),
            lambda: ScalarOperation(operation, operands, dtype, depth, self.source),
        )

    def template(self, template: str, dtype: Dtype, *operands: Node) -> Node:
        """The expression of a template on operands, with a result of this dtype."""
        return instantiate(template, self, dtype, {str(n): operand for n, operand in enumerate(operands)})

    def cast(self, operand: Node, dtype: Dtype) -> Node:
        """A value cast to a dtype."""
        return operand if operand.dtype == dtype else self.apply(cast_to(dtype), operand)

    def number(self, index: Index, dtype: Dtype) -> Node:
        return self._once((IndexValue, index, dtype), lambda: IndexValue(index, dtype, index.depth))

    def branch(self, conditions: tuple[Condition, ...], inside: Node, outside: Node) -> Node:
        undecided = tuple(c for c in conditions if not _always(c))
        if not undecided:
            return inside
        depth = max(inside.depth, outside.depth, *(index.depth for index, _, _ in undecided))
        key = (Branch, undecided, inside, outside)
        return self._once(key, lambda: Branch(undecided, inside, outside, depth))

    def checked(self, operand: Node, extent: int, fault: int, depth: int) -> Node:
        """The check, which is made within the `depth` levels of control flow that the index is read in."""
        depth = max(operand.depth, depth)
        return self._once((Checked, operand, extent, fault, depth), lambda: Checked(operand, extent, fault, depth))

    def _once(self, key: Any, make: Any) -> Any:
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = make()
        return found


def _always(condition: Condition) -> bool:
    index, low, high = condition
    least, greatest = index.range
    return low <= least and greatest < high


def children(node: Node) -> Sequence[Node]:
    """The operands of a node, and the nodes in its addresses."""
    match node:
        case ScalarOperation():
            return node.operands
        case BufferLoad():
            return loaded(node.address)
        case ScalarConstant():
            return ()
        case Branch(conditions, inside, outside):
            return [*(each for index, _, _ in conditions for each in loaded(index)), inside, outside]
        case IndexValue():
            return loaded(node.index)
        case Checked():
            return (node.operand,)


def indices(node: Node) -> list[Index]:
    """The addresses and integers in a node that follow from the counters of loops."""
    match node:
        case BufferLoad(_, index, _) | IndexValue(index, _, _):
            return [index]
        case Branch(conditions, _, _, _):
            return [index for index, _, _ in conditions]
        case _:
            return []


def loaded(index: Index) -> list[Node]:
    """The run-time integers in an index."""
    found: list[Node] = []
    for atom, _ in index.terms:
        if isinstance(atom, Loaded):
            found.append(atom.node)
        elif isinstance(atom, Quotient | Remainder):
            found += loaded(atom.dividend)
    return found


def all_nodes(roots: Iterable[Node]) -> Iterator[Node]:
    """These nodes and all below them, each once."""
    seen, pending = set[Node](), [*roots]
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            yield node
            pending.extend(children(node))


def loads(roots: Iterable[Node]) -> list[BufferLoad]:
    """All loads below these nodes, each once."""
    return [node for node in all_nodes(roots) if isinstance(node, BufferLoad)]
