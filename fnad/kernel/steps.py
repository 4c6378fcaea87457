"""A program cut into steps: native chunks, library calls, and the control flow that Python runs.

    step ::= Chunk | LibraryCall | PythonControl(control, [[step]])

A chunk becomes a native function. Loops and branches are part of a chunk unless they contain a library call: those run
in Python, and what is native in them becomes chunks again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from fnad.lower.loop_ir import BufferStore, Control, Item, LibraryCall, effects, touched
from fnad.lower.nodes import Buffer


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """The items of one native function, which is called within `depth` loops and takes their counters."""

    items: Sequence[Item]
    depth: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class PythonControl:
    """A loop or branches in Python; a `SequentialWhile` has its test, its body and what follows the loop."""

    control: Control
    bodies: tuple[list[Step], ...]


Step: TypeAlias = Chunk | LibraryCall | PythonControl


def cut(items: Iterable[Item], largest: int, depth: int = 0) -> list[Step]:
    """The steps of a sequence of items within this many loops; a chunk has no more than `largest` effects.

    Loops may make it twice as large: what they carry stays in registers if the chunk has all that reads it.
    """
    steps: list[Step] = []
    chunk: list[Item] = []
    weight = 0
    for group in _groups(items):
        item = group[-1]
        native = is_native(item)
        size = sum(1 for each in group for _ in effects(each))
        grown = weight + size
        is_full = grown > largest and (grown > 2 * largest or not _shares_number(chunk, item))
        if chunk and (not native or is_full):
            steps.append(Chunk(chunk, depth))
            chunk, weight = [], 0
        if native:
            chunk += group
            weight += size
        elif isinstance(item, LibraryCall):
            steps.append(item)
        else:
            assert isinstance(item, Control)
            steps.append(PythonControl(item, tuple(cut(body, largest, depth + 1) for body in item.bodies)))
    return [*steps, Chunk(chunk, depth)] if chunk else steps


def _groups(items: Iterable[Item]) -> Iterator[list[Item]]:
    """The items one by one, but a native loop with the stores before it that begin the numbers which it carries."""
    stores: list[Item] = []
    for item in items:
        if isinstance(item, BufferStore):
            stores.append(item)
            continue
        begun, is_loop = len(stores), isinstance(item, Control) and is_native(item)
        while is_loop and begun and _shares_number(stores[begun - 1 : begun], item):
            begun -= 1
        yield from ([store] for store in stores[:begun])
        yield [*stores[begun:], item]
        stores = []
    yield from ([store] for store in stores)


def _shares_number(chunk: Sequence[Item], item: Item) -> bool:
    """True if an item and those of a chunk share a number that a loop among them carries."""
    numbers = _numbers(item)
    is_loop = isinstance(item, Control)
    return any((is_loop or isinstance(each, Control)) and not numbers.isdisjoint(_numbers(each)) for each in chunk)


def _numbers(item: Item) -> set[Buffer]:
    return {buffer for buffer in touched(item) if buffer.aval.size == 1}


def is_native(item: Item) -> bool:
    """True if nothing in it is called from Python."""
    return not any(isinstance(effect, LibraryCall) and effect.routine is None for effect in effects(item))


def chunks_of(steps: Iterable[Step]) -> Iterator[Chunk]:
    """The chunks, in order."""
    for step in steps:
        if isinstance(step, PythonControl):
            for body in step.bodies:
                yield from chunks_of(body)
        elif isinstance(step, Chunk):
            yield step


def read_by_python(steps: Iterable[Step]) -> Iterator[Buffer]:
    """The buffers that must be arrays because steps in Python read or write them."""
    for step in steps:
        if isinstance(step, LibraryCall):
            yield from (buffer.root for buffer in (*step.operands, *step.results))
        elif isinstance(step, PythonControl):
            yield from (load.buffer.root for load in step.control.read)
            for body in step.bodies:
                yield from read_by_python(body)
