"""Memory for temporaries: two that are never needed at the same time share an array.

A temporary lives from the first item that touches it to the last. Going through them in order of birth, each takes a
free array of its dtype: that of an output which is only written later, or else one that another temporary has left,
the nearest in size, or else a new one. A temporary may even lie in the output that it is turned into, element by
element: where its last item reads each element just to store the output's element in its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fnad.ir.types import Dtype
from fnad.lower.loops import Item, Store, effects, reads, writes
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
    lives = _lives(items, {*temporaries, *outputs})
    hosts = [Slot(o.name, o.dtype, o.aval.size, 0, lives[o].birth, o) for o in outputs if o in lives]
    slots: list[Slot] = []
    places: dict[Buffer, Slot] = {}
    for buffer in sorted((t for t in temporaries if t in lives), key=lambda t: lives[t].birth):
        life = lives[buffer]
        slot = next((host for host in hosts if _hosts(host, buffer, life, items)), None)
        if slot is None:
            slot = _free_slot(slots, buffer, life) or Slot(f"t{len(slots)}", buffer.dtype, 0)
            slots += [slot] if slot not in slots else []
            slot.size = max(slot.size, buffer.aval.size)
        slot.free_from = life.death + 1
        places[buffer] = slot
    return slots, places


def _free_slot(slots: Sequence[Slot], buffer: Buffer, life: Life) -> Slot | None:
    free = [slot for slot in slots if slot.dtype == buffer.dtype and slot.free_from <= life.birth]
    return min(free, key=lambda slot: abs(slot.size - buffer.aval.size), default=None)


def _hosts(host: Slot, buffer: Buffer, life: Life, items: Sequence[Item]) -> bool:
    """Say whether a temporary can lie in an output's array until the output is written."""
    if host.dtype != buffer.dtype or host.size < buffer.aval.size or host.free_from > life.birth:
        return False
    if host.closed_from is None or host.output is None or life.death > host.closed_from:
        return False
    if life.death < host.closed_from:
        return True
    return life.birth < life.death and _turns_into(items[life.death], buffer, host.output)


def _turns_into(item: Item, buffer: Buffer, output: Buffer) -> bool:
    """Say whether the one effect of the item that touches the buffer reads it only where it stores the output."""
    touching = [e for e in effects(item) if any(b is buffer or b is output for b, _ in (*reads(e), *writes(e)))]
    if len(touching) != 1 or not isinstance(store := touching[0], Store) or store.buffer is not output:
        return False
    return all(address == store.address for b, address in reads(store) if b is buffer)


def _lives(items: Sequence[Item], buffers: set[Buffer]) -> dict[Buffer, Life]:
    lives: dict[Buffer, Life] = {}
    for number, item in enumerate(items):
        for buffer in _touched(item):
            if buffer in buffers:
                lives[buffer] = Life(lives[buffer].birth if buffer in lives else number, number)
    return lives


def _touched(item: Item) -> Iterator[Buffer]:
    for effect in effects(item):
        for buffer, _ in (*reads(effect), *writes(effect)):
            yield buffer
