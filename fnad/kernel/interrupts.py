"""Checks for Ctrl-C in loops that may run long."""

from __future__ import annotations

from fnad.kernel.routines import INTERRUPTED
from fnad.kernel.statements import STATUS, STOPPED, Expression, If, Load, Return, Store, apply, integer
from fnad.kernel.writer import Writer
from fnad.lower.loop_ir import Item, NestLoop, Product, SequentialFor, SequentialWhile, Switch
from fnad.lower.target import Costs


def stops(writer: Writer) -> list[If]:
    """The statement that ends an interrupted run, or task of a parallel loop; none if the target has none."""
    if INTERRUPTED.name not in writer.target.instructions:
        return []
    if not writer.is_parallel:
        return [If(apply(INTERRUPTED), [Return()])]
    condition = apply(INTERRUPTED) | Load(STATUS, integer(0)).differs(0)  # of this thread or another one
    return [If(condition, [Store(STATUS, integer(0), integer(STOPPED)), Return()])]


def stops_in_steps(writer: Writer, tile: NestLoop, loop: NestLoop, step: Expression) -> list[If]:
    """The checks of a step of a loop across a tile: in the first step, and so often that they take no time."""
    costs = writer.target.costs
    if not takes_long(tile, loop, costs):
        return []
    each = tile.tile * _work(loop, costs.effect_nanoseconds) // loop.extent
    period = 2 ** max(0, (costs.interrupt_nanoseconds // max(each, 1)).bit_length() - 1)
    return [If((step & integer(period - 1)).equals(0), [check]) for check in stops(writer)]


def takes_long(tile: NestLoop, loop: NestLoop, costs: Costs) -> bool:
    """True if a loop across the tiles of another one may take so long that it needs checks."""
    work = tile.expected * _work(loop, costs.effect_nanoseconds)
    return loop.across and work >= 2 * costs.interrupt_nanoseconds


def interrupt_period(loop: SequentialFor | SequentialWhile, costs: Costs) -> int | None:
    """The number of iterations, a power of two, between two checks for an interrupt; None for a short loop."""
    period = costs.interrupt_nanoseconds
    work = sum(_work(item, costs.effect_nanoseconds) for body in loop.bodies for item in body)
    if isinstance(loop, SequentialFor) and isinstance(loop.extent, int) and loop.extent * work < 2 * period:
        return None
    return 2 ** max(0, (period // max(work, 1)).bit_length() - 1)


def _work(item: Item, effect: int) -> int:
    """The approximate time of an item, in nanoseconds, given that of an effect.

    Inner loops with checks of their own count little.
    """
    match item:
        case NestLoop():
            return item.expected * sum(_work(inner, effect) for inner in item.items)
        case Product():
            return item.m * item.k * item.n // 8
        case Switch():
            return max(sum(_work(inner, effect) for inner in branch) for branch in item.branches)
        case SequentialFor(_, int(extent), _, items, updates):
            return extent * sum(_work(inner, effect) for inner in [*items, *updates])
        case _:
            return effect
