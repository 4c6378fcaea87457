"""Which loops may run on several threads, and how long they take.

A loop is parallel if its iterations touch disjoint parts of all that is written in it (Note [Aligned accesses] in
`footprint.py`), apart from folds over it that can be put together of parts: sums, whose order is free, those at
computed places included, and what is exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fnad.ir.size import estimate
from fnad.lower.footprint import aligned, footprint
from fnad.lower.index import Counter, Index
from fnad.lower.loop_ir import (
    ArgReduce,
    Check,
    Control,
    Count,
    Effect,
    Item,
    LibraryCall,
    NestLoop,
    Product,
    Reduce,
    Scan,
    SequentialFor,
    SequentialWhile,
    Switch,
    Update,
    controls,
    effects,
)
from fnad.lower.nodes import Buffer, BufferLoad, Checked, Node, ScalarOperation, all_nodes, loaded

LOAD, OPERATOR, FUNCTION, STORE, MULTIPLICATION = 0.3, 0.15, 1.0, 0.4, 0.05
"""The approximate times of what loops consist of, in nanoseconds."""

ITERATIONS = 10
"""The assumed iterations of a loop whose number is not known."""

LARGEST_LOCAL = 1024
"""The most elements of a temporary that each task has on the stack."""


def is_parallel(loop: NestLoop) -> bool:
    """True if the iterations of a nest's loop may run on several threads."""
    touched = footprint(loop)
    folds = {e.buffer.root for e in effects(loop) if isinstance(e, Reduce) and loop.depth in e.depths}
    folds |= {product.out.buffer.root for product in products_over(loop)}
    folds |= scattered(loop).keys()
    return all(_may_be_split(loop, effect, loops) for effect, loops in effects_in_loops(loop, ())) and all(
        buffer in folds or aligned([*written, *touched.read.get(buffer, ())], loop.depth, loop.extent)
        for buffer, written in touched.written.items()
    )


def _may_be_split(loop: NestLoop, effect: Effect | Product | LibraryCall, loops: Sequence[NestLoop]) -> bool:
    """True if an effect within these loops, the first of which is `loop`, is no reason against it."""
    match effect:
        case Check() | Count() | LibraryCall():
            return False
        case Product() if loop.depth in effect.depths:
            return effect.parts is not None
        case Scan() | ArgReduce():
            return len(loops) > 1
        case Reduce() if loop.depth in effect.depths:
            is_exact = is_in_any_order(effect)
            if _is_in_memory(effect, loops):
                return is_exact and all(isinstance(atom, Counter) for atom, _ in effect.address.terms)
            # Its accumulator is a variable of this loop unless it also runs over the one around.
            return is_exact and loop.depth - 1 not in effect.depths
        case _:
            return True


def is_in_any_order(effect: Reduce) -> bool:
    """True if a fold may be put together of parts: a sum, whose order is free, or what is exact."""
    return effect.is_sum or effect.dtype.kind in "biu" or effect.step.startswith(("maximum", "minimum"))


def _is_in_memory(effect: Reduce, loops: Sequence[NestLoop]) -> bool:
    """True if a fold accumulates in memory: it has several results in a loop that it runs over."""
    return not all(inner.depth in effect.depths for inner in loops)


def results_of(loop: NestLoop, effect: Reduce) -> tuple[Index, int]:
    """The place of a result among those of a fold in one iteration of the loops around it, and their number."""
    inner = Index(0, tuple(t for t in effect.address.terms if isinstance(t[0], Counter) and t[0].depth > loop.depth))
    low, high = inner.range
    return inner - low, high - low + 1


def number_of_results(loop: NestLoop) -> int:
    """The number of results that each task of a loop has in memory: of folds, and of sums at computed places."""
    folded = sum(results_of(loop, effect)[1] for effect, _ in folds_in_memory(loop))
    return folded + sum(buffer.aval.size for buffer in scattered(loop))


def scattered(loop: NestLoop) -> dict[Buffer, list[Update]]:
    """The arrays to which a loop only adds, its iterations to the same elements, with these additions."""
    found: dict[Buffer, list[Update]] = {}
    for effect in effects(loop):
        if isinstance(effect, Update) and effect.step == "{old} + {new}":
            found.setdefault(effect.buffer.root, []).append(effect)
    if not found:
        return {}
    touched = footprint(loop)
    accesses = {buffer: (touched.written[buffer], touched.read[buffer]) for buffer in found}
    return {
        buffer: updates
        for buffer, updates in found.items()
        if len(updates) == len(accesses[buffer][0]) == len(accesses[buffer][1])
        and not aligned(accesses[buffer][0], loop.depth, loop.extent)
    }


def products_over(loop: NestLoop) -> list[Product]:
    """The products that are summed over a loop."""
    return [e for e in effects(loop) if isinstance(e, Product) and loop.depth in e.depths]


def folds_in_memory(loop: NestLoop) -> list[tuple[Reduce, Sequence[NestLoop]]]:
    """The folds over a loop that accumulate in memory, each with the loops inside that it does not run over."""
    return [
        (effect, [inner for inner in loops if inner.depth not in effect.depths])
        for effect, loops in effects_in_loops(loop, ())
        if isinstance(effect, Reduce) and loop.depth in effect.depths and _is_in_memory(effect, loops)
    ]


def effects_in_loops(
    loop: NestLoop, around: Sequence[NestLoop]
) -> Iterator[tuple[Effect | Product | LibraryCall, Sequence[NestLoop]]]:
    """All effects of a loop, with the loops around them, those given first."""
    for item in loop.items:
        if isinstance(item, NestLoop):
            yield from effects_in_loops(item, (*around, loop))
        else:
            yield from ((effect, (*around, loop)) for effect in effects(item))


def has_independent_rows(loop: SequentialFor) -> bool:
    """True if the iterations of a loop of control flow may run on several threads, each with temporaries of its own."""
    inside = [loop, *(inner for body in loop.bodies for item in body for inner in controls(item))]
    touched = footprint(loop)
    return (
        isinstance(loop.extent, int)
        and not loop.updates
        and not any(_may_end_the_run(control) for control in inside)
        and not any(isinstance(effect, Check | Count | LibraryCall) for effect in effects(loop))
        and not has_checks(loop)
        and all(
            is_local(buffer, loop)
            or (
                buffer.depth <= loop.depth
                and aligned([*written, *touched.read.get(buffer, ())], loop.depth, loop.extent)
            )
            for buffer, written in touched.written.items()
        )
    )


def _may_end_the_run(control: Control) -> bool:
    match control:
        case SequentialFor():
            return bool(control.residual_stacks)
        case SequentialWhile():
            return bool(control.residual_stacks) or control.may_fail or control.limit is not None
        case Switch():
            return False


def is_local(buffer: Buffer, loop: SequentialFor) -> bool:
    """True if a buffer holds values of one iteration, few enough for a thread's stack."""
    return buffer.depth > loop.depth and buffer.aval.size <= LARGEST_LOCAL


def local_buffers(loop: SequentialFor) -> list[Buffer]:
    """The buffers of an iteration that need memory."""
    return [buffer for buffer in footprint(loop).written if is_local(buffer, loop) and buffer.aval.size > 1]


def has_checks(item: Item) -> bool:
    """True if an iteration checks an index."""
    return any(isinstance(node, Checked) for effect in effects(item) for node in _nodes([effect]))


def nanoseconds(item: Item) -> float:
    """The approximate time of an item; what is the same in all iterations of a loop is not counted."""
    match item:
        case NestLoop():
            return item.expected * _nanoseconds(item.items, item.depth + 1)
        case SequentialFor():
            extent = estimate(item.extent) if isinstance(item.extent, int) else ITERATIONS
            return extent * _nanoseconds([*item.items, *item.updates], item.depth + 1)
        case SequentialWhile():
            return ITERATIONS * _nanoseconds([*item.test, *item.items, *item.updates], item.depth + 1)
        case Switch():
            return max(_nanoseconds(branch, item.depth + 1) for branch in item.branches)
        case Product():
            return item.m * item.k * item.n * MULTIPLICATION
        case _:
            return STORE


def _nanoseconds(items: Sequence[Item], depth: int) -> float:
    """The approximate time of items within this many loops."""
    here = [item for item in items if isinstance(item, Effect)]
    return sum(map(nanoseconds, items)) + sum(_time(node) for node in _nodes(here) if node.depth >= depth)


def _time(node: Node) -> float:
    match node:
        case BufferLoad():
            return LOAD
        case ScalarOperation(operation):
            return OPERATOR if operation.symbol is not None else FUNCTION
        case _:
            return 0.0


def calls_functions(item: Item) -> bool:
    """True if an item computes more than operators do."""
    return any(isinstance(node, ScalarOperation) and node.operation.symbol is None for node in _nodes(effects(item)))


def _nodes(effects: Iterable[object]) -> Iterator[Node]:
    """All nodes of effects, each once."""
    return all_nodes(
        node for effect in effects if isinstance(effect, Effect) for node in (effect.node, *loaded(effect.address))
    )
