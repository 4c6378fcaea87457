"""Lowering: from a program to loop nests, native branches and loops."""

from __future__ import annotations

from fnad.ir.program import Program
from fnad.lower.across import across, of_one_item
from fnad.lower.control_flow import Regions
from fnad.lower.expressions import Shared
from fnad.lower.interchange import columns_inside
from fnad.lower.loop_ir import LoopProgram, touched
from fnad.lower.nodes import Buffer
from fnad.lower.row_tiles import by_tiles
from fnad.lower.target import Target
from fnad.transforms.expand import expand
from fnad.transforms.factorizations import factored_once
from fnad.transforms.spans import by_spans


def lower(program: Program, target: Target) -> LoopProgram:
    """The loop nests of a program for a target; raises `LoweringError` for what has none."""
    program = program if target.grid is not None else factored_once(by_spans(program))
    program, shared = expand(program, target.sorts), Shared(target)
    values = Regions(program, shared)
    inputs = tuple(Buffer(f"x{n}", var.aval) for n, var in enumerate(program.inputs))
    outputs = tuple(Buffer(f"out{n}", atom.aval) for n, atom in enumerate(program.outputs))
    values.expressions.buffers.update(zip(program.inputs, inputs, strict=True))
    values.compute(list(zip(program.outputs, outputs, strict=True)))
    items = values.items()
    if target.grid is None:
        own = of_one_item(items, shared.temporaries)
        items = [columns_inside(by_tiles(item, own, shared)) for item in items]
    items = across(items, shared.temporaries, target.costs)
    used = {buffer for item in items for buffer in touched(item)}
    temporaries = tuple(buffer for buffer in shared.temporaries if buffer in used)
    stacks = (*shared.residual_stacks, *(buffer for buffer in outputs if buffer.aval.is_residual_stack))
    shared_tables = tuple(shared.faults), tuple(shared.meters)
    return LoopProgram(program.name, inputs, outputs, temporaries, stacks, tuple(items), *shared_tables)
