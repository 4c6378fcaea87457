"""A lowered program as kernels and the memory that they share, which a backend compiles and runs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet

from fnad.kernel.chunk_kernels import (
    Touching,
    chunk_kernel,
    local_arrays,
    small_temporaries,
    statements_of_chunks,
    unread_temporaries,
)
from fnad.kernel.layout import Layout
from fnad.kernel.python_source import module_text
from fnad.kernel.scratch import frame_words
from fnad.kernel.statements import SCRATCH, Statement
from fnad.kernel.steps import chunks_of, cut, read_by_python
from fnad.lower.allocation import Slot, allocate, donations
from fnad.lower.loop_ir import LibraryCall, LoopProgram, effects
from fnad.lower.nodes import Buffer
from fnad.lower.rows import rows
from fnad.lower.target import Target
from fnad.scalar.operation import INDEX


class PlacedProgram:
    """A lowered program with a place in memory for each buffer that needs one.

    Kernels have these `statements`, one for each of the `chunks` of items, and `read_outside` are the temporaries that
    others than these read or write. A buffer is in an array that is given or returned, or in a slot of the workspace;
    `layout` says so to the kernels, which have variables and arrays of their own for some. What is `unread` is not
    stored.
    """

    def __init__(
        self, loops: LoopProgram, donated: Sequence[int], chunks: Sequence[Touching],
        statements: Collection[Sequence[Statement]], read_outside: AbstractSet[Buffer],
    ) -> None:  # fmt: skip
        self.loops = loops
        temporaries, made = loops.temporaries, local_arrays(statements)
        local = [buffer for buffer in temporaries if buffer.name in made]
        unread = unread_temporaries(statements, temporaries) - read_outside
        small = small_temporaries(chunks, temporaries, read_outside | unread)
        without = {*local, *unread, *small}
        self.slots, places = allocate(loops.items, [b for b in temporaries if b not in without], loops.outputs)
        self.donations = donations(loops.items, [loops.inputs[i] for i in donated], loops.outputs, places)
        outside = {buffer: buffer.name for buffer in (*loops.inputs, *loops.outputs, *loops.residual_stacks)}
        outside |= {given: output.name for output, given in self.donations.items()}
        self.places: dict[Buffer, str] = outside | {buffer: slot.name for buffer, slot in places.items()}
        names = {buffer.name: place for buffer, place in self.places.items()}
        names |= {buffer.name: f"l{n}" for n, buffer in enumerate(local)}
        self.layout = Layout(names, {buffer.name: f"c{n}" for n, buffer in enumerate(small)})
        self.unread = {buffer.name for buffer in unread}

    @property
    def nbytes(self) -> int:
        """The memory of inputs, outputs and temporaries, in bytes; residual stacks not counted."""
        arrays = [b.aval for b in (*self.loops.inputs, *self.loops.outputs) if not b.aval.is_residual_stack]
        return sum(x.size * x.dtype.itemsize for x in (*arrays, *self.slots))


class Plan(PlacedProgram):
    """A program lowered for a processor: its memory, and its kernels before compilation."""

    def __init__(self, loops: LoopProgram, target: Target, donated: Sequence[int] = ()) -> None:
        self.steps = cut(loops.items, target.costs.largest_kernel)
        self.chunks = list(chunks_of(self.steps))
        stacks, read_outside = loops.residual_stacks, set(read_by_python(self.steps))
        row_of = rows(loops.items, [buffer for buffer in loops.temporaries if buffer not in read_outside])
        statements = statements_of_chunks(self.chunks, stacks, row_of, target)
        super().__init__(loops, donated, self.chunks, statements.values(), read_outside)
        self.kernels = {
            chunk: chunk_kernel(f"chunk{n}", chunk, statements[chunk], self.layout, self.unread, stacks)
            for n, chunk in enumerate(self.chunks)
        }
        kernels = [kernel for kernel in self.kernels.values() if SCRATCH in kernel.parameters]
        words = max([0, *(frame_words(kernel.body) for kernel in kernels)])
        if words:
            self.slots.append(Slot(SCRATCH.name, INDEX, words))

    @property
    def calls_libraries(self) -> bool:
        """True if it calls routines for whole arrays, which may have threads of their own."""
        return any(isinstance(effect, LibraryCall) for item in self.loops.items for effect in effects(item))

    @property
    def source(self) -> str:
        """All kernels, as Python source."""
        return module_text(list(self.kernels.values()))
