"""The size of a program in a line: its equations, and what running it takes.

Floating-point operations are counted as the loops have them: an elementary function is one, a value that does not vary
in a loop is computed before it, and of branches the longest counts. A loop of unknown length counts as one step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from fnad.backends.base import Planned
from fnad.ir.program import Program
from fnad.ir.walk import all_equations
from fnad.lower import loop_ir
from fnad.lower.nodes import Node, ScalarOperation, children
from fnad.scalar.template import CASTS

NO_ARITHMETIC = {*CASTS.values(), "select"}


def program_summary(program: Program) -> str:
    """The number of equations, those of regions among them."""
    return f"{program.name}: {_counted(sum(1 for _ in all_equations(program)), 'equation')}"


def loops_summary(planned: Planned) -> str:
    """The nests, calls and floating-point operations, and the bytes of arguments, results and temporaries."""
    items = planned.loops.items
    calls = sum(isinstance(effect, loop_ir.LibraryCall) for item in items for effect in loop_ir.effects(item))
    counts = [_counted(nests(items), "nest"), *([_counted(calls, "library call")] if calls else [])]
    flops = f"{'at least ' if any(map(_is_open, items)) else ''}{_counted(operations(items), 'flop')}"
    return ", ".join([*counts, flops, _counted(planned.nbytes, "byte")])


def _counted(n: int, what: str) -> str:
    return f"{n:,} {what}{'s' * (n != 1)}"


def nests(items: Sequence[loop_ir.Item]) -> int:
    """The loops of a program that are not within another loop nest; loops of control flow count as well."""
    return sum(_nests(item) for item in items)


def _nests(item: loop_ir.Item) -> int:
    match item:
        case loop_ir.NestLoop():
            return 1
        case loop_ir.Switch(_, _, branches):
            return sum(map(nests, branches))
        case loop_ir.SequentialFor() | loop_ir.SequentialWhile():
            return 1 + sum(map(nests, item.bodies))
        case _:
            return 0


def _is_open(item: loop_ir.Item) -> bool:
    """True if it has a loop whose length is not known before it runs."""
    return any(
        isinstance(control, loop_ir.SequentialWhile)
        or (isinstance(control, loop_ir.SequentialFor) and not isinstance(control.extent, int))
        for control in loop_ir.controls(item)
    )


def operations(items: Sequence[loop_ir.Item], around: tuple[int, ...] = ()) -> int:
    """The floating-point operations of items within loops of these extents."""
    seen: set[Node] = set()
    return sum(_operations(item, around, seen) for item in items)


def _operations(item: loop_ir.Item, around: tuple[int, ...], seen: set[Node]) -> int:
    match item:
        case loop_ir.NestLoop():
            return sum(_operations(inner, (*around, item.expected), seen) for inner in item.items)
        case loop_ir.Switch(_, _, branches):
            return max((operations(branch, (*around, 1)) for branch in branches), default=0)
        case loop_ir.SequentialFor() | loop_ir.SequentialWhile():
            times = item.extent if isinstance(item, loop_ir.SequentialFor) and isinstance(item.extent, int) else 1
            return sum(operations(body, (*around, times)) for body in item.bodies)
        case loop_ir.Product(_, _, _, m, k, n, _, _, _):
            return 2 * m * k * n * prod(around)
        case loop_ir.LibraryCall():
            return 0
        case loop_ir.BufferStore() | loop_ir.Check() | loop_ir.Count():
            return sum(prod(around[:depth]) for depth in _depths(item.node, seen))
        case _:  # a fold or an update has one more at each step
            is_float = item.node.dtype.kind in "fc"
            return is_float * prod(around) + sum(prod(around[:depth]) for depth in _depths(item.node, seen))


def _depths(node: Node, seen: set[Node]) -> Iterator[int]:
    """For each floating-point operation below a node that was not seen, the number of loops that it varies in."""
    if node in seen:
        return
    seen.add(node)
    if isinstance(node, ScalarOperation) and node.dtype.kind in "fc" and node.operation.name not in NO_ARITHMETIC:
        yield node.depth
    for child in children(node):
        yield from _depths(child, seen)
