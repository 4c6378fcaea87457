"""How often a long loop asks whether Ctrl-C was pressed."""

from __future__ import annotations

from fnad.lower.loop_ir import Item, Loop, Product, SequentialFor, SequentialWhile, Switch

PERIOD = 2**24
"""About how many nanoseconds a loop runs before it asks whether it is interrupted."""

EFFECT = 10
"""About how many nanoseconds an effect takes."""


def interrupt_period(loop: SequentialFor | SequentialWhile) -> int | None:
    """The number of iterations, a power of two, between two checks for an interrupt; None for a short loop."""
    work = sum(_work(item) for body in loop.bodies for item in body)
    if isinstance(loop, SequentialFor) and isinstance(loop.extent, int) and loop.extent * work < 2 * PERIOD:
        return None
    return 2 ** max(0, (PERIOD // max(work, 1)).bit_length() - 1)


def _work(item: Item) -> int:
    """Return about how many nanoseconds an item takes; inner loops that ask themselves count little."""
    match item:
        case Loop(_, extent, items):
            return extent * sum(map(_work, items))
        case Product():
            return item.m * item.k * item.n // 8
        case Switch():
            return max(sum(map(_work, branch)) for branch in item.branches)
        case SequentialFor(_, int(extent), _, items, updates):
            return extent * sum(map(_work, [*items, *updates]))
        case _:
            return EFFECT
