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

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from heapq import heappop, heappush
from itertools import chain
from typing import Any, NamedTuple

from fnad.ir.types import Dtype
from fnad.lower.index import Index
from fnad.lower.loops import Control, Item, Store, effects, reads, touched, writes
from fnad.lower.nodes import Buffer


@dataclass(slots=True, eq=False)
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


class Accesses(NamedTuple):
    """An effect, the addresses where it reads each memory, and the memory that it writes."""

    effect: Any
    read: Mapping[Buffer, Sequence[Index | None]]
    written: AbstractSet[Buffer]


def assign(
    items: Sequence[Item], temporaries: Sequence[Buffer], outputs: Sequence[Buffer]
) -> tuple[list[Slot], dict[Buffer, Slot]]:
    """Return the arrays needed beside the outputs, and which array each temporary is in."""
    flat, lives = _lives(items, {*temporaries, *outputs}, set(outputs))
    accesses = cache(lambda position: _accesses(flat[position]))
    hosts = [Slot(o.name, o.dtype, o.aval.size, 0, lives[o].birth, o) for o in outputs if o in lives]
    slots = Slots()
    places: dict[Buffer, Slot] = {}
    for buffer in sorted((t for t in temporaries if t in lives), key=lambda t: lives[t].birth):
        life = lives[buffer]
        host = next((host for host in hosts if _hosts(host, buffer, life, accesses)), None)
        if host is None:
            places[buffer] = slots.take(buffer, life)
        else:
            host.free_from = life.death + 1
            places[buffer] = host
    return slots.all, places


class Slots:
    """The arrays beside the outputs; who asks for one was born no earlier than who asked before."""

    def __init__(self) -> None:
        self.all: list[Slot] = []
        self._taken: list[tuple[int, int]] = []
        self._free: dict[Dtype, list[tuple[int, int]]] = defaultdict(list)

    def take(self, buffer: Buffer, life: Life) -> Slot:
        """Return the array for a temporary: of those that are free the nearest in size, the oldest of these."""
        self._release(life.birth)
        number = self._nearest(self._free[buffer.dtype], buffer.aval.size)
        if number is None:
            number = len(self.all)
            self.all.append(Slot(f"t{number}", buffer.dtype, 0))
        slot = self.all[number]
        slot.size = max(slot.size, buffer.aval.size)
        slot.free_from = life.death + 1
        heappush(self._taken, (slot.free_from, number))
        return slot

    def _release(self, now: int) -> None:
        while self._taken and self._taken[0][0] <= now:
            _, number = heappop(self._taken)
            insort(self._free[self.all[number].dtype], (self.all[number].size, number))

    def _nearest(self, free: list[tuple[int, int]], size: int) -> int | None:
        """Take the nearest in size out of the free ones, which are in order of size and number."""
        if not free:
            return None
        above = bisect_left(free, (size, 0))
        below = bisect_left(free, (free[above - 1][0], 0)) if above else above
        place = min({below, min(above, len(free) - 1)}, key=lambda n: (abs(free[n][0] - size), free[n][1]))
        return free.pop(place)[1]


def heirs(
    items: Sequence[Item], donated: Sequence[Buffer], outputs: Sequence[Buffer], places: Mapping[Buffer, Slot]
) -> dict[Buffer, Buffer]:
    """Return the outputs that can lie in the memory of an input which nobody needs afterwards, each with its input.

    Such an input is read for the last time before the output, or a temporary that lies there, is first written, or
    turns into it.
    """
    flat, lives = _lives(items, {*donated, *outputs, *places}, {*donated, *outputs})
    births: dict[Buffer | None, list[int]] = defaultdict(list)
    for buffer, slot in places.items():
        births[slot.output].append(lives[buffer].birth)
    found: dict[Buffer, Buffer] = {}
    for output in outputs if donated else ():
        guests = births[output]
        for given in donated:
            if given in found.values() or given.aval != output.aval or output not in lives:
                continue
            death, birth = lives[given].death if given in lives else -1, lives[output].birth
            if death < min([birth, *guests]) or (
                death == birth < min([birth + 1, *guests]) and _turns_into(_accesses(flat[birth]), given, output)
            ):
                found[output] = given
                break
    return found


def _hosts(host: Slot, buffer: Buffer, life: Life, accesses: Callable[[int], list[Accesses]]) -> bool:
    """Say whether a temporary can lie in an output's array until the output is written."""
    if host.dtype != buffer.dtype or host.size < buffer.aval.size or host.free_from > life.birth:
        return False
    if host.closed_from is None or host.output is None or life.death > host.closed_from:
        return False
    if life.death < host.closed_from:
        return True
    return life.birth < life.death and _turns_into(accesses(life.death), buffer, host.output)


def _turns_into(effects: Sequence[Accesses], buffer: Buffer, output: Buffer) -> bool:
    """Say whether one effect of an item stores the output, and each element of the buffer is read before its place is.

    That is so where no effect behind that one reads the buffer, and all read it at the address of the store.
    """
    places: list[Index | None] = []
    stored: Store | None = None
    for effect, read, written in effects:
        found = read.get(buffer, ())
        if found and stored is not None:
            return False
        places += found
        if output in written:
            if stored is not None or not isinstance(effect, Store):
                return False
            stored = effect
    return stored is not None and all(place == stored.address for place in places)


def _accesses(item: Item | None) -> list[Accesses]:
    """Return what the effects of an item outside of control flow read and write."""
    found: list[Accesses] = []
    for effect in effects(item) if item is not None else ():
        read: dict[Buffer, list[Index | None]] = defaultdict(list)
        for buffer, address in reads(effect):
            read[buffer.root].append(address)
        found.append(Accesses(effect, read, {buffer.root for buffer, _ in writes(effect)}))
    return found


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
