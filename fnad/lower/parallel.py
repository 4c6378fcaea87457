"""Which loops may run on several threads, and how long they take.

A loop is parallel if its iterations touch disjoint parts of all that is written in it (Note [Aligned accesses] in
`fuse.py`), apart from folds over it that can be put together of parts: sums, whose order is free, and what is exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fnad.lower.fuse import aligned, footprint
from fnad.lower.loop_ir import ArgReduce, Check, Effect, LibraryCall, NestLoop, Product, Reduce, Scan, effects
from fnad.lower.nodes import BufferLoad, Checked, Node, ScalarOperation, children, loaded

LOAD, OPERATOR, FUNCTION, STORE, MULTIPLICATION = 0.3, 0.15, 1.0, 0.4, 0.05
"""The approximate times of what loops consist of, in nanoseconds."""


def is_parallel(loop: NestLoop) -> bool:
    """Whether the iterations of a nest's loop may run on several threads."""
    touched = footprint(loop)
    folds = {e.buffer.root for e in effects(loop) if isinstance(e, Reduce) and loop.depth in e.depths}
    return all(_may_be_split(loop, effect, loops) for effect, loops in effects_in_loops(loop, ())) and all(
        buffer in folds or aligned([*written, *touched.read.get(buffer, ())], loop.depth, loop.extent)
        for buffer, written in touched.written.items()
    )


def _may_be_split(loop: NestLoop, effect: Effect | Product | LibraryCall, loops: Sequence[NestLoop]) -> bool:
    """Whether an effect within these loops, the first of which is `loop`, is no reason against it."""
    match effect:
        case Check() | LibraryCall():
            return False
        case Scan() | ArgReduce():
            return len(loops) > 1
        case Reduce() if loop.depth in effect.depths:
            # Its accumulator is a variable of this loop if it runs over all loops inside, and not over the one around.
            is_exact = effect.is_sum or effect.dtype.kind in "biu" or effect.step.startswith(("maximum", "minimum"))
            is_here = loop.depth - 1 not in effect.depths and all(inner.depth in effect.depths for inner in loops)
            return is_exact and is_here
        case _:
            return True


def effects_in_loops(
    loop: NestLoop, around: Sequence[NestLoop]
) -> Iterator[tuple[Effect | Product | LibraryCall, Sequence[NestLoop]]]:
    """All effects of a loop, with the loops around them, those given first."""
    for item in loop.items:
        if isinstance(item, NestLoop):
            yield from effects_in_loops(item, (*around, loop))
        else:
            yield from ((effect, (*around, loop)) for effect in effects(item))


def has_checks(loop: NestLoop) -> bool:
    """Whether an iteration checks an index."""
    return any(isinstance(node, Checked) for effect in effects(loop) for node in _nodes([effect]))


def nanoseconds(loop: NestLoop) -> float:
    """The approximate time of a nest; what is the same in all iterations of a loop is not counted."""
    depth = loop.depth + 1
    inner = sum(nanoseconds(item) for item in loop.items if isinstance(item, NestLoop))
    here = [effect for item in loop.items if not isinstance(item, NestLoop) for effect in effects(item)]
    varying = sum(_time(node) for node in _nodes(here) if node.depth >= depth)
    return loop.extent * (inner + varying + sum(map(_time_of_effect, here)))


def _time_of_effect(effect: Effect | Product | LibraryCall) -> float:
    return effect.m * effect.k * effect.n * MULTIPLICATION if isinstance(effect, Product) else STORE


def _time(node: Node) -> float:
    match node:
        case BufferLoad():
            return LOAD
        case ScalarOperation(operation):
            return OPERATOR if operation.symbol is not None else FUNCTION
        case _:
            return 0.0


def _nodes(effects: Iterable[object]) -> Iterator[Node]:
    """All nodes of effects, each once."""
    seen: set[Node] = set()
    pending: list[Node] = []
    for effect in effects:
        if isinstance(effect, Effect):
            pending += [effect.node, *loaded(effect.address)]
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            yield node
            pending += children(node)
