"""Which loops of a nest are free: their iterations touch different elements, whatever the other counters are.

An address is stride · i<d> + rest + high, where the terms in `high` are multiples of a number M. Let the stride be the
same in all accesses, their rests lie within less than one stride, and all of it within less than M. Then the address
modulo M tells i<d>: no two of its iterations touch the same element. So such a loop may be moved to the outside, and
its iterations run in any order. This says more than Note [Aligned accesses] in `footprint.py`, which compares
iterations for which the outer counters agree.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import gcd

from fnad.ir.size import is_size
from fnad.lower import loop_ir
from fnad.lower.index import Counter, Index
from fnad.lower.nodes import Buffer


def chain(nest: loop_ir.NestLoop) -> list[loop_ir.NestLoop]:
    """The loops of a nest from the outermost on, as far as each is all that there is in the one around it."""
    found = [nest]
    while len(found[-1].items) == 1 and isinstance(inner := found[-1].items[0], loop_ir.NestLoop):
        found.append(inner)
    return found


def is_free(loop: loop_ir.NestLoop, items: Iterable[loop_ir.Item]) -> bool:
    """True if the iterations of a loop around items, which may have other loops around them, are independent."""
    found = [effect for item in items for effect in loop_ir.effects(item)]
    counter = Counter(loop.depth, loop.extent)
    return not any(_runs_along(effect, loop) for effect in found) and all(
        independent(addresses, counter) for addresses in written_addresses(found).values()
    )


def _runs_along(effect: loop_ir.Effect | loop_ir.Product | loop_ir.LibraryCall, loop: loop_ir.NestLoop) -> bool:
    """True if an effect needs the iterations of a loop together, or in order."""
    match effect:
        case loop_ir.Reduce():
            return loop.depth in effect.depths
        case loop_ir.Scan() | loop_ir.ArgReduce():
            return any(item is effect for item in loop.items)
        case loop_ir.Check() | loop_ir.Count() | loop_ir.Product() | loop_ir.LibraryCall():
            return True
        case _:
            return False


def written_addresses(
    found: Iterable[loop_ir.Effect | loop_ir.Product | loop_ir.LibraryCall],
) -> dict[Buffer, list[Index]]:
    """The addresses at which effects touch each of the buffers that they write."""
    touched: dict[Buffer, list[Index]] = defaultdict(list)
    written: set[Buffer] = set()
    for effect in found:
        if isinstance(effect, loop_ir.Effect):
            written.add(effect.buffer.root)
            touched[effect.buffer.root].append(effect.address)
            for load in loop_ir.effect_loads(effect):
                touched[load.buffer.root].append(load.address)
    return {buffer: touched[buffer] for buffer in written}


def independent(addresses: Sequence[Index], counter: Counter) -> bool:
    """True if accesses at these addresses are to different elements for different values of a counter."""
    if any(is_size(number) for address in addresses for number in (address.constant, *(c for _, c in address.terms))):
        return False
    strides = {address.coefficient(counter) for address in addresses}
    stride = abs(next(iter(strides)))
    if len(strides) > 1 or stride == 0:
        return False
    period = gcd(*(c for address in addresses for _, c in address.terms if abs(c) > stride))
    ranges = [_rest(address, counter, stride, period).range for address in addresses]
    width = max(high for _, high in ranges) - min(low for low, _ in ranges)
    return width < stride and (period == 0 or stride * (counter.extent - 1) + width < period)


def _rest(address: Index, counter: Counter, stride: int, period: int) -> Index:
    """An address without the counter and without multiples of the period."""
    terms = tuple((atom, c) for atom, c in address.terms if atom != counter and abs(c) <= stride)
    return Index(address.constant % period if period else address.constant, terms)
