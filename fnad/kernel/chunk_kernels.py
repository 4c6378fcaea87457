"""A lowered program as kernels: one for each chunk of items, on arrays that are laid out in memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol

from fnad.kernel.borders import split
from fnad.kernel.build import locate, statements_of
from fnad.kernel.forward import forward
from fnad.kernel.layout import Layout
from fnad.kernel.liveness import live, read_arrays
from fnad.kernel.plain_products import with_plain_products
from fnad.kernel.scratch import frame_words
from fnad.kernel.statements import (
    COUNTERS,
    SCRATCH,
    SIZE,
    SIZES,
    STACKS,
    STATUS,
    Assign,
    Kernel,
    Load,
    Name,
    Statement,
    Store,
    assigned,
    integer,
    walk,
)
from fnad.kernel.steps import Chunk
from fnad.kernel.unroll import unroll
from fnad.kernel.writer import array_of, counter
from fnad.lower.loop_ir import Item, LibraryCall, effects, touched
from fnad.lower.nodes import Buffer
from fnad.lower.rows import Row
from fnad.lower.target import Target
from fnad.scalar.operation import Pointer


def statements_of_chunks(
    chunks: Sequence[Chunk], stacks: Sequence[Buffer], rows: Mapping[Buffer, Row], target: Target
) -> dict[Chunk, list[Statement]]:
    """The statements of each chunk, with loads of stored values replaced."""
    return {chunk: forward(unroll(statements_of(chunk.items, chunk.depth, stacks, rows, target))) for chunk in chunks}


def unread_temporaries(statements: Iterable[Sequence[Statement]], temporaries: Iterable[Buffer]) -> frozenset[Buffer]:
    """The temporaries that are never loaded, since each of their values is used from a variable."""
    read = {name for block in statements for name in read_arrays(block)}
    return frozenset(buffer for buffer in temporaries if buffer.name not in read)


def local_arrays(statements: Iterable[Sequence[Statement]]) -> set[str]:
    """The arrays that statements find or make."""
    targets = (target for block in statements for target in assigned(block))
    return {target.name for target in targets if isinstance(target.kind, Pointer)}


class Touching(Protocol):
    """The content of a kernel."""

    @property
    def items(self) -> Sequence[Item]: ...


def small_temporaries(
    chunks: Sequence[Touching], temporaries: Iterable[Buffer], others: AbstractSet[Buffer]
) -> list[Buffer]:
    """The one-element temporaries that only one chunk touches, except for `others`: variables can hold them."""
    given = {buffer for chunk in chunks for item in chunk.items for buffer in given_to_routines(item)}
    users: dict[Buffer, set[Touching]] = defaultdict(set)
    for chunk in chunks:
        for item in chunk.items:
            for buffer in touched(item):
                users[buffer].add(chunk)
    return [b for b in temporaries if b.aval.size == 1 and b not in others and b not in given and len(users[b]) == 1]


def given_to_routines(item: Item) -> Iterator[Buffer]:
    """The buffers that routines take by their address."""
    for effect in effects(item):
        if isinstance(effect, LibraryCall):
            yield from (buffer.root for buffer in (*effect.operands, *effect.results))


def chunk_kernel(
    name: str, chunk: Chunk, statements: Sequence[Statement], layout: Layout, unread: AbstractSet[str],
    stacks: Sequence[Buffer],
) -> Kernel:  # fmt: skip
    """The kernel of a chunk, without stores into `unread` buffers."""
    body = with_plain_products(layout.place(split(live(statements, unread))))
    used = arrays_of(body)
    sizes = [Assign((size,), Load(SIZES, integer(k))) for k, size in enumerate(SIZE) if size in used]
    located = [locate(stack, stacks) for stack in stacks if array_of(stack) in used]
    counters = [Assign((counter(d),), Load(COUNTERS, integer(d))) for d in range(chunk.depth)]
    local = {STATUS.name, STACKS.name, COUNTERS.name, *(size.name for size in SIZE), *local_arrays([[*located, *body]])}
    arrays = [array for array in used if array.name not in local]
    has_stacks = bool(located) or STACKS in used
    body = [*sizes, *counters, *located, *body]
    scratch = [SCRATCH] * (frame_words(body) > 0)
    arrays += [SIZES] * bool(sizes)
    return Kernel(name, (*arrays, *[COUNTERS] * bool(counters), *[STACKS] * has_stacks, *scratch, STATUS), body)


def arrays_of(statements: Sequence[Statement]) -> dict[Name, None]:
    """The arrays that statements touch, and the sizes that they use, in the order of the text."""
    found: dict[Name, None] = {}
    for statement in walk(statements):
        if isinstance(statement, Store):
            found[statement.array] = None
        for expression in statement.expressions():
            if isinstance(expression, Load):
                found[expression.array] = None
            elif isinstance(expression, Name) and (isinstance(expression.kind, Pointer) or expression in SIZE):
                found[expression] = None
    return found
