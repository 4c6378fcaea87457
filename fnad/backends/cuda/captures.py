"""The parts of a program that a graph can capture: launches and products, at the same places each time."""

from __future__ import annotations

from math import prod

from fnad.kernel.launches import DeviceControl, DeviceProducts, DeviceStep, Launch
from fnad.lower.loop_ir import SequentialFor

LARGEST_GRAPH, LARGEST_UNROLLED = 1024, 8192
"""The most launches of a program that is captured as a whole, with its loops unrolled; and of one with a loop that can
be captured in no other way, since products in it are not at the same places in each iteration."""


def is_captured(step: DeviceStep) -> bool:
    """True if the host only launches: it waits for nothing, and computes nothing."""
    match step:
        case Launch() | DeviceProducts():
            return True
        case DeviceControl(SequentialFor(extent=int(), residual_stacks=())):
            return all(is_captured(inner) for body in step.bodies for inner in body)
        case _:
            return False


def is_part_of_graph(step: DeviceStep, depth: int) -> bool:
    """True if a step in loops up to this depth may be part of a graph: it launches the same each time, and not much."""
    return is_captured(step) and not is_at_counters(step, depth) and nodes_of(step) <= LARGEST_GRAPH


def nodes_of(step: DeviceStep) -> int:
    """The number of launches and products in a step."""
    match step:
        case DeviceControl(SequentialFor(extent=int(extent)), (body,)):
            return 1 + extent * (1 + sum(map(nodes_of, body)))
        case DeviceProducts():
            return prod(loop.extent for loop in step.loops)
        case _:
            return 1


def is_at_counters(step: DeviceStep, depth: int) -> bool:
    """True if a product in a step begins where a counter of a loop at this depth, or of one around it, says."""
    match step:
        case DeviceControl():
            return any(is_at_counters(inner, depth) for body in step.bodies for inner in body)
        case DeviceProducts(_, product):
            return any(m.offset.reads(d) for m in (product.out, product.a, product.b) for d in range(depth + 1))
        case _:
            return False
