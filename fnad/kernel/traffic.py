"""The bytes that a launch moves between a device's memory and its threads.

Each access in the text counts once for each of the elements that it is made to: those of as many indices as the loops,
threads and blocks that the index depends on have, but no more than the array has elements. What all blocks read again,
such as a row of weights, comes from the cache, and counts once. So an array that two passes read counts twice. An
atomic addition reads and writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TypeAlias

from fnad.kernel import statements as code
from fnad.kernel.device import ATOMIC_ADD, BLOCK, THREAD, TICKET
from fnad.kernel.launches import Launch
from fnad.scalar.operation import INDEX, Pointer
from fnad.scalar.operations import OPERATIONS

Sources: TypeAlias = frozenset[str]
"""The sources of an index: counters of loops, the numbers of a thread and of its block."""


def moved(launch: Launch, sizes: Mapping[str, int]) -> tuple[int, int]:
    """The bytes that a launch reads and writes of arrays with so many elements each, by name."""
    counting = _Counting(launch, sizes)
    counting.block(launch.kernel.body)
    return counting.read, counting.written


def additions(launch: Launch) -> int:
    """The number of additions that threads make at once, those of the parts of complex numbers apart."""
    counting = _Counting(launch, {})
    counting.block(launch.kernel.body)
    return counting.additions


class _Counting:
    """The count: how many values each counter has, and what variables depend on."""

    def __init__(self, launch: Launch, sizes: Mapping[str, int]) -> None:
        self.extents = {THREAD.name: launch.threads, BLOCK.name: launch.blocks}
        self.sizes = sizes
        self.variables: dict[str, Sources] = {}
        self.read = self.written = self.additions = 0

    def block(self, statements: Sequence[code.Statement], around: Sources = frozenset()) -> None:
        """Count what is in loops with these counters."""
        for statement in statements:
            self.statement(statement, around)
            inner = around | self.variables[statement.counter.name] if isinstance(statement, code.For) else around
            for body in statement.bodies:
                self.block(body, inner)

    def statement(self, statement: code.Statement, around: Sources) -> None:
        for load in statement.loads():
            self.read += self.bytes(load.array, load.index)
        match statement:
            case code.Assign(targets, value):
                found = self.sources(value)
                for target in targets:
                    self.variables[target.name] = self.variables.get(target.name, frozenset()) | found
            case code.Store(array, _, code.Apply(operation)) if operation is TICKET:
                self.variables[array.name] = frozenset((BLOCK.name,))
            case code.Store(array, index):
                self.written += self.bytes(array, index)
            case code.Evaluate(code.Apply(operation, (code.Name(_, Pointer(dtype)) as array, index, _))) if (
                operation is ATOMIC_ADD
            ):
                self.additions += self.product(around) * (2 if dtype.kind == "c" else 1)
                self.read += self.bytes(array, index)
                self.written += self.bytes(array, index)
            case code.For():
                self.variables[statement.counter.name] = self.counter(statement)
            case _:
                pass

    def counter(self, loop: code.For) -> Sources:
        """The sources of a counter: itself, with all its values in all threads."""
        first, stop = self.least(loop.start), self.least(loop.stop)
        name = f"{loop.counter.name} from {first}"
        if isinstance(loop.stop, code.Constant):
            starts = self.product(self.sources(loop.start))
            rounds = -(-(stop - first) // loop.step)
            self.extents[name] = max(0, min(rounds * starts, stop - first))
            return frozenset((name,))
        # a part, which begins and ends where others end and begin
        return self.sources(loop.start) | self.sources(loop.stop)

    def least(self, expression: code.Expression) -> int:
        """An expression where all that it depends on is 0."""
        match expression:
            case code.Constant(value):
                return int(value)
            case code.Apply(operation, inner, kind) if kind == INDEX and inner and operation.name in OPERATIONS:
                return int(operation.plain(*map(self.least, inner)))
            case _:
                return 0

    def sources(self, expression: code.Expression) -> Sources:
        found: set[str] = set()
        for part in code.subexpressions(expression):
            if isinstance(part, code.Name | code.Load):
                name = part.name if isinstance(part, code.Name) else part.array.name
                found |= self.variables.get(name, frozenset())
            elif isinstance(part, code.Apply) and part.operation in (THREAD, BLOCK):
                found.add(part.operation.name)
        return frozenset(found)

    def product(self, sources: Sources) -> int:
        """The number of values of these sources together."""
        return prod(self.extents[source] for source in sources)

    def bytes(self, array: code.Name, index: code.Expression) -> int:
        if array.name not in self.sizes:
            return 0
        return min(self.product(self.sources(index)), self.sizes[array.name]) * array.dtype.itemsize
