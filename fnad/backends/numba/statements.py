"""Python statements in blocks, and what is known in each block.

A block is filled before it is put among its parent's statements, so that what a loop's body has computed outside of the
loop comes before the loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from fnad.lower.index import Index
from fnad.lower.nodes import Buffer, Load, Node


@dataclass(frozen=True, slots=True)
class Statement:
    """A line, with the buffers it touches; `stores` is the one it does nothing but store into."""

    text: str
    buffers: tuple[Buffer, ...] = ()
    stores: Buffer | None = None


@dataclass(slots=True)
class Block:
    """The statements under a header, and what is known in them: names of values, and of what was stored."""

    header: str | None = None
    parent: Block | None = None
    stays: bool = False  # even with nothing in it
    statements: list[Statement | Block] = field(default_factory=list["Statement | Block"])
    names: dict[Node, str] = field(default_factory=dict[Node, str])
    stored: dict[tuple[Buffer, Index], str] = field(default_factory=dict[tuple[Buffer, Index], str])

    def child(self, header: str, *, stays: bool = False) -> Block:
        """Return a block to be filled, not yet among the statements: what is hoisted meanwhile comes before it."""
        return Block(header, self, stays)

    def find(self, node: Node) -> str | None:
        """Return the variable that holds a value here."""
        block: Block | None = self
        while block is not None:
            name = block.names.get(node)
            if name is None and isinstance(node, Load):
                name = block.stored.get((node.buffer, node.address))
            if name is not None:
                return name
            block = block.parent
        return None

    def forget(self, buffer: Buffer) -> None:
        """Read a buffer from memory from now on: it was written into at addresses only known at run time."""
        self.stored = {place: name for place, name in self.stored.items() if place[0] is not buffer}

    def lines(self, indent: str, unread: frozenset[Buffer]) -> Iterator[str]:
        for statement in self.statements:
            if isinstance(statement, Block):
                inner = list(statement.lines(indent + "    ", unread))
                if has_code(inner):
                    yield from [f"{indent}{statement.header}", *inner]
                elif statement.stays:
                    yield from [f"{indent}{statement.header}", f"{indent}    pass"]
            elif statement.text and statement.stores not in unread:
                yield indent + statement.text

    def buffers(self) -> list[Buffer]:
        found: dict[Buffer, None] = {}
        for statement in self.statements:
            found.update(dict.fromkeys(statement.buffers() if isinstance(statement, Block) else statement.buffers))
        return list(found)


def has_code(lines: Iterable[str]) -> bool:
    """Say whether there is more than comments in these lines, which Python takes for no block."""
    return not all(line.lstrip().startswith("#") for line in lines)
