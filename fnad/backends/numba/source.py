"""Loop programs as Python source: what Numba compiles, and what a person reads.

One function per chunk of items, whose parameters are flat arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fnad.backends.numba.control import ControlEmitter, tape_text
from fnad.backends.numba.emitter import Layout
from fnad.backends.numba.statements import has_code
from fnad.backends.numba.steps import Chunk
from fnad.lower.nodes import Buffer


@dataclass(frozen=True, slots=True)
class Function:
    """The source of one chunk and the names of the arrays it takes, in order; `status` is the last.

    One that `stops` may return early, with a fault in `status`.
    """

    name: str
    source: str
    parameters: tuple[str, ...]
    stops: bool = False


def unread_temporaries(
    chunks: Sequence[Chunk], temporaries: Iterable[Buffer], tapes: tuple[Buffer, ...]
) -> frozenset[Buffer]:
    """Return the temporaries that no chunk loads, since each value is used from the variable it is in."""
    read: set[Buffer] = set()
    for chunk in chunks:
        ControlEmitter(Layout({}, tapes=tapes), read, chunk.depth).emit(chunk.items)
    return frozenset(temporaries) - read


def chunk_function(name: str, chunk: Chunk, layout: Layout) -> Function:
    """Return the source of a chunk; what is unread is not stored."""
    emitter = ControlEmitter(layout, set(), chunk.depth)
    emitter.emit(chunk.items)
    touched = [b for b in emitter.body.buffers() if b not in layout.unread and b not in layout.variables]
    tapes = [b for b in touched if b in layout.tapes]
    arrays = dict.fromkeys(layout.arrays[buffer] for buffer in touched if buffer not in tapes)
    lines = [
        *(f"    i{depth} = counters[{depth}]" for depth in range(chunk.depth)),
        *(f"    {layout.arrays[tape]} = {tape_text(tape, layout)}" for tape in tapes),
        *emitter.body.lines("    ", layout.unread),
    ]
    parameters = (*arrays, *["counters"] * (chunk.depth > 0), *["tapes"] * bool(tapes), "status")
    source = "\n".join([f"def {name}({', '.join(parameters)}):", *(lines if has_code(lines) else ["    pass"]), ""])
    return Function(name, source, parameters, emitter.stops)
