"""How often a long loop asks whether Ctrl-C was pressed."""

from __future__ import annotations

from fnad.lower.loops import Choice, Item, Loop, Product, Repeat, While

PERIOD = 2**24
"""About how many nanoseconds a loop runs before it asks whether it is interrupted."""

EFFECT = 10
"""About how many nanoseconds an effect takes."""


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
