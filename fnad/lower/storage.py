"""Memory for temporaries: two that are never needed at the same time share an array.

A temporary lives from the first item that touches it to the last. Going through them in order of birth, each takes a
free array of its dtype: that of an output which is only written later, or else one that another temporary has left,
the nearest in size, or else a new one. A temporary may even lie in the output that it is turned into, element by
element: where its last item reads each element just to store the output's element in its place. An output may likewise
take over the memory of an input that the caller gives away.

Items are numbered through control flow. What is touched in a turn of a loop alone lives within the turn; what is
touched outside too, as a carry is, lives as long as the loop runs, and so does an output.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from fnad.ir.types import Dtype
from fnad.lower.index import Index
from fnad.lower.loops import Control, Item, Store, effects, reads, touched, writes
from fnad.lower.nodes import Buffer


@dataclass(slots=True)
class Slot:
    """An array that temporaries take turns in; `output` is whose it is in the end, from item `closed_from` on."""

    name: str
    dtype: Dtype
    size: int
    free_from: int = 0
    closed_from: int | None = None
    output: Buffer | None = None


@dataclass(frozen=True, slots=True)
class Life:
    """The positions of the first and the last item that touches a temporary."""

    birth: int
    death: int


def assign(
    items: Sequence[Item], temporaries: Sequence[Buffer], outputs: Sequence[Buffer]
) -> tuple[list[Slot], dict[Buffer, Slot]]:
    """Return the arrays needed beside the outputs, and which array each temporary is in."""
    flat, lives = _lives(items, {*temporaries, *outputs}, set(outputs))
    hosts = [Slot(o.name, o.dtype, o.aval.size, 0, lives[o].birth, o) for o in outputs if o in lives]
    slots: list[Slot] = []
    places: dict[Buffer, Slot] = {}
    for buffer in sorted((t for t in temporaries if t in lives), key=lambda t: lives[t].birth):
        life = lives[buffer]
        slot = next((host for host in hosts if _hosts(host, buffer, life, flat)), None)
        if slot is None:
            slot = _free_slot(slots, buffer, life) or Slot(f"t{len(slots)}", buffer.dtype, 0)
            slots += [slot] if slot not in slots else []
            slot.size = max(slot.size, buffer.aval.size)
        slot.free_from = life.death + 1
        places[buffer] = slot
    return slots, places


def heirs(
    items: Sequence[Item], donated: Sequence[Buffer], outputs: Sequence[Buffer], places: Mapping[Buffer, Slot]
) -> dict[Buffer, Buffer]:
    """Return the outputs that can lie in the memory of an input which nobody needs afterwards, each with its input.

    Such an input is read for the last time before the output, or a temporary that lies there, is first written, or
    turns into it.
    """
    flat, lives = _lives(items, {*donated, *outputs, *places}, {*donated, *outputs})
    found: dict[Buffer, Buffer] = {}
    for output in outputs:
        guests = [lives[buffer].birth for buffer, slot in places.items() if slot.output is output]
        for given in donated:
            if given in found.values() or given.aval != output.aval or output not in lives:
                continue
            death, birth = lives[given].death if given in lives else -1, lives[output].birth
            if death < min([birth, *guests]) or (
                death == birth < min([birth + 1, *guests]) and _turns_into(flat[birth], given, output)
            ):
                found[output] = given
                break
    return found


def _free_slot(slots: Sequence[Slot], buffer: Buffer, life: Life) -> Slot | None:
    free = [slot for slot in slots if slot.dtype == buffer.dtype and slot.free_from <= life.birth]
    return min(free, key=lambda slot: abs(slot.size - buffer.aval.size), default=None)


def _hosts(host: Slot, buffer: Buffer, life: Life, items: Sequence[Item | None]) -> bool:
    """Say whether a temporary can lie in an output's array until the output is written."""
    if host.dtype != buffer.dtype or host.size < buffer.aval.size or host.free_from > life.birth:
        return False
    if host.closed_from is None or host.output is None or life.death > host.closed_from:
        return False
    if life.death < host.closed_from:
        return True
    return life.birth < life.death and _turns_into(items[life.death], buffer, host.output)


def _turns_into(item: Item | None, buffer: Buffer, output: Buffer) -> bool:
    """Say whether one effect of the item stores the output, and each element of the buffer is read before its place is.

    That is so where no effect behind that one reads the buffer, and all read it at the address of the store.
    """
    if item is None:
        return False
    places: list[Index | None] = []
    stored: Store | None = None
    for effect in effects(item):
        found = [address for b, address in reads(effect) if b.root is buffer]
        if found and stored is not None:
            return False
        places += found
        if any(b.root is output for b, _ in writes(effect)):
            if stored is not None or not isinstance(effect, Store):
                return False
            stored = effect
    return stored is not None and all(place == stored.address for place in places)


def _lives(
    items: Sequence[Item], buffers: set[Buffer], outputs: set[Buffer]
) -> tuple[list[Item | None], dict[Buffer, Life]]:
    """Return the numbered items, None for those in control flow, and the lives of buffers."""
    flat: list[Item | None] = []
    for item in items:
        flat += [None] * _length(item) if isinstance(item, Control) else [item]
    lives = _lives_in(items, 0, buffers)
    return flat, {buffer: span if buffer in outputs else life for buffer, (life, span) in lives.items()}


def _lives_in(items: Iterable[Item], start: int, buffers: set[Buffer]) -> dict[Buffer, tuple[Life, Life]]:
    """Return the life of each buffer among items that are numbered from `start`, and that of the items it is in."""
    lives: dict[Buffer, tuple[Life, Life]] = {}
    for item in items:
        span = Life(start, start + _length(item) - 1)
        inner = {b: Life(start, start) for b in touched(item) if b in buffers}
        if isinstance(item, Control):
            inner |= {b: life for b, (life, _) in _lives_in(chain(*item.bodies), start, buffers).items()}
        for buffer, life in inner.items():
            joined = Life(lives[buffer][1].birth, span.death) if buffer in lives else None
            lives[buffer] = (joined, joined) if joined else (life, span)
        start = span.death + 1
    return lives


def _length(item: Item) -> int:
    """Return how many numbers an item takes."""
    return max(1, sum(map(_length, chain(*item.bodies)))) if isinstance(item, Control) else 1
