"""The loops of a nest that a machine with many threads may share out.

Of loops that follow one another, around effects alone, each is *free* (`independence.py`), *folded* or in order. A loop
is folded if its iterations are independent except for folds over it whose parts may be put together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeVar

from fnad.lower.independence import chain, is_free
from fnad.lower.index import Counter, Index
from fnad.lower.loop_ir import (
    ArgReduce,
    BufferStore,
    Effect,
    Item,
    NestLoop,
    Reduce,
    Scan,
    Update,
    effect_loads,
    effects,
    reads,
    writes,
)
from fnad.lower.nodes import Branch, Buffer, BufferLoad, Checked, all_nodes
from fnad.lower.parallel import is_in_any_order

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Roles:
    """The loops of a nest by what may be done with them, in their order."""

    free: tuple[NestLoop, ...]
    folded: tuple[NestLoop, ...]
    ordered: tuple[NestLoop, ...]

    @property
    def results(self) -> int:
        """The number of iterations of the free loops."""
        return size(self.free)

    @property
    def length(self) -> int:
        """The number of iterations of the folded loops."""
        return size(self.folded)


def size(loops: Sequence[NestLoop]) -> int:
    """The number of iterations of loops that follow one another."""
    return prod(loop.extent for loop in loops)


def roles(loops: Sequence[NestLoop]) -> Roles:
    """The roles of loops that follow one another around effects."""
    inner = loops[-1].items
    free = tuple(loop for loop in loops if is_free(loop, inner))
    folded = tuple(loop for loop in loops if loop not in free and _is_folded(loop, inner))
    return Roles(free, folded, tuple(loop for loop in loops if loop not in free and loop not in folded))


def _is_folded(loop: NestLoop, effects: Sequence[Item]) -> bool:
    folds, others = _apart(effects, loop)
    return bool(folds) and all(map(is_in_any_order, folds)) and is_free(loop, others)


def _apart(effects: Sequence[T], loop: NestLoop) -> tuple[list[Reduce], list[T]]:
    """The folds over a loop, and the other effects."""
    folds = [effect for effect in effects if isinstance(effect, Reduce) and loop.depth in effect.depths]
    return folds, [effect for effect in effects if effect not in folds]


def groups(effects: Sequence[Effect], outermost: int = 0) -> list[list[Effect]]:
    """The effects of a loop in groups, of which each runs over the loops from a depth on in one way.

    An effect joins the last group of its kind, before others that it has nothing to do with.
    """
    found: list[list[Effect]] = []
    for effect in effects:
        joined: list[Effect] | None = None
        for group in reversed(found):
            if _go_together([*group, effect], outermost):
                joined = group
            if joined is not None or _conflict(effect, group):
                break
        if joined is None:
            found.append([effect])
        else:
            joined.append(effect)
    return found


def _conflict(effect: Effect, others: Sequence[Effect]) -> bool:
    """True if an effect has to stay behind others: one writes what another one touches."""
    written = {other.buffer.root for other in others}
    return effect.buffer.root in _touched(others) or not written.isdisjoint(_touched([effect]))


def _touched(effects: Iterable[Effect]) -> set[Buffer]:
    return {buffer.root for effect in effects for buffer, _ in (*reads(effect), *writes(effect))}


def _go_together(effects: Sequence[Effect], outermost: int) -> bool:
    folded = [{depth for depth in e.depths if depth >= outermost} for e in effects if isinstance(e, Reduce)]
    depths = {frozenset(each) for each in folded if each or not outermost}
    return len(depths) < 2 and not any(isinstance(effect, Scan | ArgReduce | Update) for effect in effects)


def row_folds(loop: NestLoop) -> list[Reduce] | None:
    """The folds over a loop around nests whose iterations are independent but for these; None if they are not.

    Their parts may be put together, and nothing else touches their results.
    """
    found = loop_effects(loop)
    folds, others = _apart(found, loop)
    results = {effect.buffer.root for effect in folds}
    touched_by_others = {load.buffer.root for effect in found for load in effect_loads(effect)}
    touched_by_others |= {effect.buffer.root for effect in others}
    is_apart = len(results) == len(folds) and results.isdisjoint(touched_by_others)
    is_exact = all(is_in_any_order(fold) for fold in folds) and len(found) == len(list(effects(loop)))
    return folds if is_apart and is_exact and is_free(loop, others) else None


WIDEST, BYTES, WORK = 4, 16, 256
"""The most elements of a vector, the bytes of one of the smallest kind, and the most operations for all elements."""


def vector_width(loops: Sequence[NestLoop]) -> int:
    """The number of neighbouring iterations that a thread takes at once, because they touch neighbouring elements."""
    inner = loops[-1]
    found = [item for item in inner.items if isinstance(item, BufferStore | Reduce | Scan)]
    operations = set(all_nodes(effect.node for effect in found))
    has_branches = any(isinstance(node, Branch | Checked) and node.depth > inner.depth for node in operations)
    if len(found) < len(inner.items) or has_branches:
        return 1
    places = [*((load.buffer, load.address) for effect in found for load in effect_loads(effect))]
    places += [(effect.buffer, effect.address) for effect in found if isinstance(effect, BufferStore | Scan)]
    counter = Counter(inner.depth, inner.extent)
    strides = {address.coefficient(counter) for _, address in places}
    along = [(buffer, address) for buffer, address in places if address.coefficient(counter) == 1]
    if not along or not strides <= {0, 1}:
        return 1
    width = min(WIDEST, BYTES // min(buffer.dtype.itemsize for buffer, _ in along))
    while width > 1 and (
        width * len(operations) > WORK or any(_is_uneven(address, counter, width) for _, address in along)
    ):
        width //= 2
    return max(width, 1)


def row_width(loop: NestLoop) -> int:
    """The number of neighbouring elements that a thread takes at once of the rows that are iterations of a loop."""
    nests = [chain(item) for item in loop.items if isinstance(item, NestLoop)]
    simple = [loops for loops in nests if not any(isinstance(item, NestLoop) for item in loops[-1].items)]
    return min(map(vector_width, simple), default=1)


def _is_uneven(address: Index, counter: Counter, width: int) -> bool:
    """True if an address may be no multiple of a width where the counter is one."""
    others = [c for atom, c in address.terms if atom != counter]
    return any(number % width for number in (address.constant, *others))


def reads_along(loop: NestLoop, others: Sequence[NestLoop]) -> bool:
    """True if neighbouring iterations of a loop read neighbouring elements, more often than those of other loops."""
    loads = [load for effect in loop_effects(loop) for load in effect_loads(effect)]
    # What varies along one of the loops alone is read again and again, and stays in the cache.
    loads = [n for n in loads if _stride(n, loop) and any(_stride(n, other) for other in others)] or loads
    return _neighbours(loop, loads) >= max((_neighbours(other, loads) for other in others), default=0)


def _neighbours(loop: NestLoop, loads: Sequence[BufferLoad]) -> int:
    return sum(abs(_stride(load, loop)) == 1 for load in loads)


def _stride(load: BufferLoad, loop: NestLoop) -> int:
    return load.address.coefficient(Counter(loop.depth, loop.extent))


def loads_across(rows: NestLoop, columns: NestLoop) -> list[BufferLoad]:
    """The loads of stores that go along the outer one of two loops; none if there are branches."""
    found = [effect for effect in columns.items if isinstance(effect, BufferStore)]
    if any(isinstance(node, Branch | Checked) for node in all_nodes(effect.node for effect in found)):
        return []
    loads = dict.fromkeys(load for effect in found for load in effect_loads(effect))
    return [load for load in loads if _stride(load, rows) == 1 and abs(_stride(load, columns)) > 1]


def loop_effects(loop: NestLoop) -> list[Effect]:
    """The effects of a loop and of those inside."""
    return [effect for effect in effects(loop) if isinstance(effect, Effect)]
