"""Memory allocation: temporaries whose lifetimes do not overlap share an array.

A temporary is live from the first item that touches it to the last. In order of birth, each temporary is allocated in a
free array of its dtype: that of an output which is written only later, else the nearest in size of those that other
temporaries no longer need, else a new one. A temporary may share the array of an output even in the item that computes
the output from it. That item must read each element no later than it stores the output's element in its place. An
output may likewise take the memory of an input that the caller donates.

Items are numbered through control flow. What is touched only inside a loop body is live within the iteration; what is
touched outside as well, such as a carry, is live as long as the loop runs, and so is an output.
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

from fnad.ir.size import at_least_both, estimate, is_at_least
from fnad.ir.types import Dtype
from fnad.lower.index import Index
from fnad.lower.loop_ir import BufferStore, Control, Item, effects, reads, touched, writes
from fnad.lower.nodes import Buffer


@dataclass(slots=True, eq=False)
class Slot:
    """An array that temporaries share one after the other; from item `closed_from` on it is that of `output`."""

    name: str
    dtype: Dtype
    size: int
    free_from: int = 0
    closed_from: int | None = None
    output: Buffer | None = None


@dataclass(frozen=True, slots=True)
class Life:
    """The live range of a temporary: the positions of the first and the last item that touches it."""

    birth: int
    death: int


class Accesses(NamedTuple):
    """An effect, the addresses at which it reads each buffer's memory, and the memory it writes."""

    effect: Any
    read: Mapping[Buffer, Sequence[Index | None]]
    written: AbstractSet[Buffer]


def allocate(
    items: Sequence[Item], temporaries: Sequence[Buffer], outputs: Sequence[Buffer]
) -> tuple[list[Slot], dict[Buffer, Slot]]:
    """The arrays needed besides the outputs, and the array of each temporary."""
    flat, lives = live_ranges(items, {*temporaries, *outputs}, set(outputs))
    accesses = cache(lambda position: _accesses(flat[position]))
    # An output's own array is free until the output is first written: a temporary that is dead by then costs nothing.
    output_slots = [Slot(o.name, o.dtype, o.aval.size, 0, lives[o].birth, o) for o in outputs if o in lives]
    slots = Slots()
    places: dict[Buffer, Slot] = {}
    for buffer in sorted((t for t in temporaries if t in lives), key=lambda t: lives[t].birth):
        life = lives[buffer]
        slot = next((slot for slot in output_slots if _fits_before(slot, buffer, life, accesses)), None)
        if slot is None:
            places[buffer] = slots.take(buffer, life)
        else:
            slot.free_from = life.death + 1
            places[buffer] = slot
    return slots.all, places


class Slots:
    """The arrays besides the outputs; they are requested in the order of birth."""

    def __init__(self) -> None:
        self.all: list[Slot] = []
        self._taken: list[tuple[int, int]] = []
        self._free: dict[Dtype, list[tuple[int, int]]] = defaultdict(list)

    def take(self, buffer: Buffer, life: Life) -> Slot:
        """The array for a temporary: the free one nearest in size, and the oldest of several such."""
        self._release(life.birth)
        number = self._nearest(self._free[buffer.dtype], estimate(buffer.aval.size))
        if number is None:
            number = len(self.all)
            self.all.append(Slot(f"t{number}", buffer.dtype, 0))
        slot = self.all[number]
        slot.size = at_least_both(slot.size, buffer.aval.size)
        slot.free_from = life.death + 1
        heappush(self._taken, (slot.free_from, number))
        return slot

    def _release(self, now: int) -> None:
        while self._taken and self._taken[0][0] <= now:
            _, number = heappop(self._taken)
            insort(self._free[self.all[number].dtype], (estimate(self.all[number].size), number))

    def _nearest(self, free: list[tuple[int, int]], size: int) -> int | None:
        """Take the nearest in size out of the free arrays, which are sorted by size and number."""
        if not free:
            return None
        above = bisect_left(free, (size, 0))
        below = bisect_left(free, (free[above - 1][0], 0)) if above else above
        place = min({below, min(above, len(free) - 1)}, key=lambda n: (abs(free[n][0] - size), free[n][1]))
        return free.pop(place)[1]


def donations(
    items: Sequence[Item], donated: Sequence[Buffer], outputs: Sequence[Buffer], places: Mapping[Buffer, Slot]
) -> dict[Buffer, Buffer]:
    """The outputs that can take the memory of a donated input, each with its input.

    The last read of such an input precedes the first write of the output and of any temporary allocated there, or the
    item that writes the output reads each element of the input in time.
    """
    if not donated:
        return {}
    flat, lives = live_ranges(items, {*donated, *outputs, *places}, {*donated, *outputs})
    births: dict[Buffer | None, list[int]] = defaultdict(list)
    for buffer, slot in places.items():
        # A temporary in the output's array is written before the output is, so the input must be dead by then too.
        births[slot.output].append(lives[buffer].birth)
    found: dict[Buffer, Buffer] = {}
    for output in outputs:
        births_inside = births[output]
        for given in donated:
            if given in found.values() or given.aval != output.aval or output not in lives:
                continue
            death, birth = lives[given].death if given in lives else -1, lives[output].birth
            if death < min([birth, *births_inside]) or (
                death == birth < min([birth + 1, *births_inside])
                and _overwritten_in_step(_accesses(flat[birth]), given, output)
            ):
                found[output] = given
                break
    return found


def _fits_before(slot: Slot, buffer: Buffer, life: Life, accesses: Callable[[int], list[Accesses]]) -> bool:
    """True if a temporary fits into an output's array until the output is written."""
    if slot.dtype != buffer.dtype or not is_at_least(slot.size, buffer.aval.size) or slot.free_from > life.birth:
        return False
    if slot.closed_from is None or slot.output is None or life.death > slot.closed_from:
        return False
    if life.death < slot.closed_from:
        return True
    # Its last item also writes the output. One that it is also born in would be written and read in the same step.
    return life.birth < life.death and _overwritten_in_step(accesses(life.death), buffer, slot.output)


def _overwritten_in_step(effects: Sequence[Accesses], buffer: Buffer, output: Buffer) -> bool:
    """True if an item stores the output in one effect, and reads each element of the buffer before it is overwritten.

    That holds where no later effect reads the buffer, and all reads are at the address of the store.
    """
    places: list[Index | None] = []
    stored: BufferStore | None = None
    for effect, read, written in effects:
        found = read.get(buffer, ())
        if found and stored is not None:
            return False
        places += found
        if output in written:
            if stored is not None or not isinstance(effect, BufferStore):
                return False
            stored = effect
    return stored is not None and all(place == stored.address for place in places)


def _accesses(item: Item | None) -> list[Accesses]:
    """The accesses of the effects of an item; none are listed for control flow."""
    found: list[Accesses] = []
    for effect in effects(item) if item is not None else ():
        read: dict[Buffer, list[Index | None]] = defaultdict(list)
        for buffer, address in reads(effect):
            read[buffer.root].append(address)
        found.append(Accesses(effect, read, {buffer.root for buffer, _ in writes(effect)}))
    return found


def live_ranges(
    items: Sequence[Item], buffers: set[Buffer], outputs: set[Buffer]
) -> tuple[list[Item | None], dict[Buffer, Life]]:
    """The numbered items, None for those in control flow, and the live ranges of buffers."""
    flat: list[Item | None] = []
    for item in items:
        flat += [None] * _length(item) if isinstance(item, Control) else [item]
    lives = _lives_in(items, 0, buffers)
    return flat, {buffer: span if buffer in outputs else life for buffer, (life, span) in lives.items()}


def _lives_in(items: Iterable[Item], start: int, buffers: set[Buffer]) -> dict[Buffer, tuple[Life, Life]]:
    """The live range of each buffer among items numbered from `start`, and that of the items which touch it."""
    lives: dict[Buffer, tuple[Life, Life]] = {}
    for item in items:
        span = Life(start, start + _length(item) - 1)
        inner = {b: Life(start, start) for b in touched(item) if b in buffers}
        if isinstance(item, Control):
            inner |= {b: life for b, (life, _) in _lives_in(chain(*item.bodies), start, buffers).items()}
        for buffer, life in inner.items():
            # Touched by two items of this sequence, it is live from the start of the one to the end of the other, since
            # a loop among them runs its items again.
            joined = Life(lives[buffer][1].birth, span.death) if buffer in lives else None
            lives[buffer] = (joined, joined) if joined else (life, span)
        start = span.death + 1
    return lives


def _length(item: Item) -> int:
    """The number of positions that an item occupies."""
    return max(1, sum(map(_length, chain(*item.bodies)))) if isinstance(item, Control) else 1
