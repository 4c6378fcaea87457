"""A lowered program as kernels and the memory that they share, which a backend compiles and runs."""

from __future__ import annotations

from collections.abc import Sequence

from fnad.kernel.chunk_kernels import (
    chunk_kernel,
    local_arrays,
    small_temporaries,
    statements_of_chunks,
    unread_temporaries,
)
from fnad.kernel.layout import Layout
from fnad.kernel.python_source import module_text
from fnad.kernel.steps import chunks_of, cut, read_by_python
from fnad.lower.allocation import allocate, donations
from fnad.lower.loop_ir import LoopProgram
from fnad.lower.nodes import Buffer
from fnad.lower.rows import rows
from fnad.lower.target import Target


class Plan:
    """A program lowered for a target: its memory layout, and its kernels before compilation."""

    def __init__(self, loops: LoopProgram, target: Target, donated: Sequence[int] = ()) -> None:
        self.loops = loops
        self.steps = cut(loops.items, target.costs.largest_kernel)
        self.chunks = list(chunks_of(self.steps))
        read_outside = set(read_by_python(self.steps))
        temporaries = [buffer for buffer in loops.temporaries if buffer not in read_outside]
        row_of = rows(loops.items, temporaries)
        statements = statements_of_chunks(self.chunks, loops.residual_stacks, row_of, target)
        local = local_arrays(statements.values())
        unread = unread_temporaries(statements.values(), loops.temporaries) - read_outside
        small = small_temporaries(self.chunks, loops.temporaries, read_outside | unread)
        stored = [
            buffer for buffer in loops.temporaries if not (buffer in unread or buffer in small or buffer.name in local)
        ]
        self.slots, places = allocate(loops.items, stored, loops.outputs)
        self.donations = donations(loops.items, [loops.inputs[i] for i in donated], loops.outputs, places)
        outside = {buffer: buffer.name for buffer in (*loops.inputs, *loops.outputs, *loops.residual_stacks)}
        outside |= {given: output.name for output, given in self.donations.items()}
        self.places: dict[Buffer, str] = outside | {buffer: slot.name for buffer, slot in places.items()}
        names = {buffer.name: place for buffer, place in self.places.items()}
        names |= {buffer.name: f"l{n}" for n, buffer in enumerate(b for b in temporaries if b.name in local)}
        layout = Layout(names, {buffer.name: f"c{n}" for n, buffer in enumerate(small)})
        dead = {buffer.name for buffer in unread}
        self.kernels = {
            chunk: chunk_kernel(f"chunk{n}", chunk, statements[chunk], layout, dead, loops.residual_stacks)
            for n, chunk in enumerate(self.chunks)
        }

    @property
    def source(self) -> str:
        """All kernels, as Python source."""
        return module_text(list(self.kernels.values()))

    @property
    def nbytes(self) -> int:
        """The memory of inputs, outputs and temporaries, in bytes; residual stacks not counted."""
        arrays = [b.aval for b in (*self.loops.inputs, *self.loops.outputs) if not b.aval.is_residual_stack]
        return sum(x.size * x.dtype.itemsize for x in (*arrays, *self.slots))
