"""Control flow as Python statements: branches and loops around the nests of `emitter`.

What a branch needs is computed in the branch. A loop that may run long asks every so often whether it is interrupted,
and one that writes a tape asks for room.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from math import prod

from fnad.backends.numba.emitter import Emitter, Layout
from fnad.ir.types import BOOL
from fnad.lower.loops import Choice, Item, Loop, Product, Repeat, Store, While
from fnad.lower.nodes import Buffer, cast

NO_MEMORY = 2**62
"""What `status` says where a tape cannot grow."""

PERIOD = 2**24
"""About how many nanoseconds a loop runs before it asks whether it is interrupted."""

EFFECT = 10
"""About how many nanoseconds an effect takes."""


class ControlEmitter(Emitter):
    """Writes one function, control flow included."""

    def _item(self, item: Item) -> None:
        match item:
            case Choice():
                self._choice(item)
            case Repeat():
                self._repeat(item)
            case While():
                self._while(item)
            case _:
                super()._item(item)

    def _choice(self, choice: Choice) -> None:
        """Write branches, in which nothing is computed before it is known which one is run."""
        chosen, outside = self._value(choice.index, name_it=True), self.innermost_branch
        self.innermost_branch = len(self.blocks)
        for header, branch in _headed(chosen, choice):
            with self._body(choice.depth, header, stays=header != "else:"):
                self._items(branch)
        self.innermost_branch = outside

    def _repeat(self, loop: Repeat) -> None:
        extent = str(loop.extent) if isinstance(loop.extent, int) else self._value(loop.extent, name_it=True)
        for tape in loop.tapes:
            self._reserve(tape, extent)
        turns = f"{_less_one(extent)}, -1, -1" if loop.reverse else extent
        with self._body(loop.depth, f"for i{loop.depth} in range({turns}):"):
            self._answer_interrupts(loop)
            self._items(loop.items)
            self._update(loop.updates)

    def _while(self, loop: While) -> None:
        counter = f"i{loop.depth}"
        self._add(f"{counter} = i64(0)")
        with self._body(loop.depth, "while True:"):
            self._answer_interrupts(loop)
            if loop.may_fail:
                self._exit("if status[0] != 0:", "return")
            self._items(loop.test)
            self._exit(f"if not {self._value(loop.predicate)}:", "break")
            if loop.limit is not None:
                self._exit(f"if {counter} == {loop.limit}:", f"status[0] = {loop.fault}", "return")
            for tape in loop.tapes:
                self._reserve(tape, f"({counter} + 1)")
            self._items(loop.items)
            self._update(loop.updates)
            self._add(f"{counter} = {counter} + 1")
        steps = self._name("v")
        self._add(f"{steps} = {counter}")
        self._store(loop.count, steps)

    @contextmanager
    def _body(self, depth: int, header: str, *, stays: bool = True) -> Generator[None]:
        """Write a block of control flow, a level of depth."""
        outer = self.blocks[-1]
        inner = outer.child(header, stays=stays)
        self.blocks.append(inner)
        self.loops.append(Loop(depth, 0))
        yield
        self.loops.pop()
        self.blocks.pop()
        outer.statements.append(inner)

    def _answer_interrupts(self, loop: Repeat | While) -> None:
        """Every so often, where the loop may run long, stop if Python says so: at Ctrl-C."""
        period = interrupt_period(loop)
        if period == 1:
            self._exit("if interrupted():", "return")
        elif period is not None:
            mask = period - 1
            self._exit(f"if (i{loop.depth} & {mask}) == {mask} and interrupted():", "return")

    def _reserve(self, tape: Buffer, rows: str) -> None:
        """Have room for so many rows; where there is none, the run ends."""
        name, number = self._array(tape), self.layout.tapes.index(tape)
        row = prod(tape.aval.shape[1:]) * tape.dtype.itemsize
        self._exit(f"if not reserve(tapes, {number}, {rows}, {row}):", f"status[0] = {NO_MEMORY}", "return")
        self._add(f"{name} = {tape_text(tape, self.layout)}", tape)

    def _update(self, updates: Sequence[Store]) -> None:
        """Write all updates as one: a variable that is both read and assigned is read before."""
        self.uses.clear()
        places = [self._place(update.buffer, update.address) for update in updates]
        values = [self._value(update.node) for update in updates]
        for n, (place, value) in enumerate(zip(places, values, strict=True)):
            if value in places and value != place:
                values[n] = self._name("v")
                self._add(f"{values[n]} = {value}")
        for update, place, value in zip(updates, places, values, strict=True):
            if place != value:
                self._add(f"{place} = {value}", update.buffer, stores=update.buffer)


def _headed(chosen: str, choice: Choice) -> list[tuple[str, list[Item]]]:
    """Return the branches, each with what stands before it, in the order of the text."""
    first, *between, last = choice.branches
    if choice.index.dtype == BOOL:
        return [(f"if {chosen}:", last), ("else:", first)]
    middle = [(f"elif {chosen} == {n}:", branch) for n, branch in enumerate(between, 1)]
    return [(f"if {chosen} <= 0:", first), *middle, ("else:", last)]


def _less_one(extent: str) -> str:
    return str(int(extent) - 1) if extent.isdigit() else f"{extent} - 1"


def interrupt_period(loop: Repeat | While) -> int | None:
    """Return after how many turns, a power of two, a loop asks whether it is interrupted; None if it is short."""
    work = sum(_work(item) for body in loop.bodies for item in body)
    if isinstance(loop, Repeat) and isinstance(loop.extent, int) and loop.extent * work < 2 * PERIOD:
        return None
    return 2 ** max(0, (PERIOD // max(work, 1)).bit_length() - 1)


def _work(item: Item) -> int:
    """Return about how many nanoseconds an item takes; inner loops that ask themselves count little."""
    match item:
        case Loop(_, extent, items):
            return extent * sum(map(_work, items))
        case Product():
            return item.m * item.k * item.n // 8
        case Choice():
            return max(sum(map(_work, branch)) for branch in item.branches)
        case Repeat(_, int(extent), _, items, updates):
            return extent * sum(map(_work, [*items, *updates]))
        case _:
            return EFFECT


def tape_text(tape: Buffer, layout: Layout) -> str:
    """Return the address of a tape, which changes as it grows."""
    return f"tape_{cast(tape.dtype)}(tapes, {layout.tapes.index(tape)})"
