"""Memory for temporaries: two that are never needed at the same time share an array.

A temporary lives from the first item that touches it to the last. Going through them in order of birth, each takes the
free array of its dtype that is nearest in size, else a new one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fnad.ir.types import Dtype
from fnad.lower.loops import Item, effects, reads, writes
from fnad.lower.nodes import Buffer


@dataclass(slots=True)
class Slot:
    """An array that temporaries take turns in."""

    name: str
    dtype: Dtype
    size: int
    free_from: int


def assign(items: Sequence[Item], temporaries: Sequence[Buffer]) -> tuple[list[Slot], dict[Buffer, Slot]]:
    """Return the arrays needed, and which of them each temporary is in."""
    lives = _lives(items, set(temporaries))
    slots: list[Slot] = []
    places: dict[Buffer, Slot] = {}
    for buffer, (birth, death) in sorted(lives.items(), key=lambda life: life[1][0]):
        free = [s for s in slots if s.dtype == buffer.dtype and s.free_from <= birth]
        if free:
            slot = min(free, key=lambda s: abs(s.size - buffer.aval.size))
        else:
            slot = Slot(f"t{len(slots)}", buffer.dtype, 0, 0)
            slots.append(slot)
        slot.size = max(slot.size, buffer.aval.size)
        slot.free_from = death + 1
        places[buffer] = slot
    return slots, places


def _lives(items: Sequence[Item], temporaries: set[Buffer]) -> dict[Buffer, tuple[int, int]]:
    lives: dict[Buffer, tuple[int, int]] = {}
    for number, item in enumerate(items):
        for effect in effects(item):
            for buffer, _ in (*reads(effect), *writes(effect)):
                if buffer in temporaries:
                    lives[buffer] = (lives.get(buffer, (number, number))[0], number)
    return lives
