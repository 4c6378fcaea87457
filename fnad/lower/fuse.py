"""Fusion: putting a new nest into the nests that stand already.

Nests come in the order of the program. A new one is put as early as what it reads allows. If what it reads was written
in a nest whose outermost loop has the same extent, and each turn of that loop touches only its own part of the buffers
in question, the two loops become one, and the question is asked again one level further in. So chains of elementwise
work and folds melt into one nest, and a fold over rows followed by work on the rows becomes two inner loops in one outer
loop, which finds the row in the cache.

Note [Aligned accesses]
    All accesses to a buffer are aligned at depth d if their addresses are  outer + stride · i<d> + rest,  with the same
    stride and the same coefficients of the counters outside, and the rest lies in 0 <= rest < stride for all of them: then
    the turns of loop d touch disjoint parts.
"""

from __future__ import annotations

from fnad.lower.index import Counter, Index
from fnad.lower.loops import Access, Item, Loop, effects, reads, writes
from fnad.lower.nodes import Buffer

LARGEST = 200
"""How many effects a nest may have: LLVM's time is not linear in the size of a loop body."""


def place(items: list[Item], item: Item) -> None:
    """Put an item, nothing that stands depends on, into the items, merging loops where it may."""
    after = _last_conflict(items, item)
    if after >= 0 and _mergeable(items[after], item):
        _merge(items[after], item)
        return
    for candidate in items[after + 1 :]:
        if _mergeable(candidate, item) and _share_data(candidate, item):
            _merge(candidate, item)
            return
    items.append(item)


def _merge(into: Item, item: Item) -> None:
    assert isinstance(into, Loop)
    assert isinstance(item, Loop)
    for inner in item.items:
        place(into.items, inner)


def _last_conflict(items: list[Item], item: Item) -> int:
    return max((n for n, standing in enumerate(items) if conflicts(standing, item)), default=-1)


def conflicts(first: Item, second: Item) -> dict[Buffer, list[Access]]:
    """Return the accesses to the buffers one of the two writes and the other touches."""
    written, read = _accesses(first, writes), _accesses(first, reads)
    new_written, new_read = _accesses(second, writes), _accesses(second, reads)
    shared = (written.keys() & (new_read.keys() | new_written.keys())) | (read.keys() & new_written.keys())
    return {
        buffer: [a for table in (written, read, new_written, new_read) for a in table.get(buffer, [])]
        for buffer in shared
    }


def _accesses(item: Item, kind: object) -> dict[Buffer, list[Access]]:
    table: dict[Buffer, list[Access]] = {}
    for effect in effects(item):
        for access in kind(effect):  # type: ignore[operator]
            table.setdefault(access[0], []).append(access)
    return table


def _mergeable(standing: Item, item: Item) -> bool:
    if not (isinstance(standing, Loop) and isinstance(item, Loop) and standing.extent == item.extent):
        return False
    if sum(1 for _ in effects(standing)) >= LARGEST:
        return False
    return all(
        aligned([address for _, address in accesses], standing.depth, standing.extent)
        for accesses in conflicts(standing, item).values()
    )


def _share_data(first: Item, second: Item) -> bool:
    touched = [
        {b for b in (_accesses(item, reads).keys() | _accesses(item, writes).keys()) if b.aval.size > 1}
        for item in (first, second)
    ]
    return bool(touched[0] & touched[1])


def aligned(addresses: list[Index | None], depth: int, extent: int) -> bool:
    """Say whether the accesses are aligned at this depth: see Note [Aligned accesses]."""
    outer: set[tuple[tuple[object, int], ...]] = set()
    strides: set[int] = set()
    rests: list[Index] = []
    for address in addresses:
        if address is None:
            return False
        terms = dict(address.terms)
        strides.add(terms.pop(Counter(depth, extent), 0))
        outside = {atom: c for atom, c in terms.items() if isinstance(atom, Counter) and atom.depth < depth}
        outer.add(tuple(sorted(outside.items(), key=lambda term: term[0].depth)))
        rests.append(Index(address.constant, tuple((a, c) for a, c in terms.items() if a not in outside)))
    stride = abs(next(iter(strides)))
    ranges = [rest.range for rest in rests]
    return len(strides) == len(outer) == 1 and stride > 0 and _disjoint(ranges, stride)


def _disjoint(ranges: list[tuple[int, int]], stride: int) -> bool:
    low = min(a for a, _ in ranges)
    return max(b for _, b in ranges) - low < stride
