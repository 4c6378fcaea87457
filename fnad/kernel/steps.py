"""A program cut into steps: native chunks, library calls, and the control flow that Python runs.

    step ::= Chunk | LibraryCall | PythonControl(control, [[step]])

A chunk becomes a native function. Loops and branches are part of a chunk unless they contain a library call: those run
in Python, and what is native in them becomes chunks again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

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


class Portion(NamedTuple):
    """Items that belong to one chunk, and the number of their effects."""

    items: list[Item]
    size: int


def cut(items: Iterable[Item], largest: int, depth: int = 0) -> list[Step]:
    """The steps of a sequence of items within this many loops; a chunk has no more than `largest` effects.

    Loops may make it twice as large: what they carry stays in registers if the chunk has all that reads it.
    """
    steps: list[Step] = []
    native: list[Portion] = []
    for group in _groups(items):
        item = group[-1]
        if is_native(item):
            native.append(Portion(group, sum(1 for each in group for _ in effects(each))))
            continue
        steps += _chunks(native, largest, depth)
        native = []
        if isinstance(item, LibraryCall):
            steps.append(item)
        else:
            assert isinstance(item, Control)
            steps.append(PythonControl(item, tuple(cut(body, largest, depth + 1) for body in item.bodies)))
    return [*steps, *_chunks(native, largest, depth)]


def _chunks(portions: Iterable[Portion], largest: int, depth: int) -> Iterator[Chunk]:
    """The chunks of native items."""
    chunk: list[Portion] = []
    size = 0
    for portion in portions:
        while chunk and _is_full(chunk, size, portion, largest):
            end = _end([*chunk, portion], largest)
            yield Chunk(_items(chunk[:end]), depth)
            chunk = chunk[end:]
            size = sum(each.size for each in chunk)
        chunk.append(portion)
        size += portion.size
    if chunk:
        yield Chunk(_items(chunk), depth)


def _is_full(chunk: Sequence[Portion], size: int, portion: Portion, largest: int) -> bool:
    grown = size + portion.size
    return grown > largest and (grown > 2 * largest or not _shares_number(_items(chunk), portion.items[-1]))


def _end(portions: Sequence[Portion], largest: int) -> int:
    """The place where a full chunk ends: before the largest portion that ends in its last third, or before the last.

    So the chunks of layers that are alike begin at the same item of each layer, and share their code
    (`fnad.backends.cpu.families`).
    """
    end, most, grown = len(portions) - 1, portions[-1].size, portions[0].size
    for place, (items, size) in enumerate(portions[1:-1], 1):
        grown += size
        if 3 * grown > 2 * largest and size > most and not _shares_number(_items(portions[:place]), items[-1]):
            end, most = place, size
    return end


def _items(portions: Iterable[Portion]) -> list[Item]:
    return [item for portion in portions for item in portion.items]


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
