"""Loops whose steps read and write the next row of arrays: a scan over these rows, with a row for each that is written.

An array that is carried has a cotangent that is carried as well, and the steps of a loop that carries one depend on
each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import compress

import numpy as np

from fnad.control.closures import Closed
from fnad.ir.builder import current_builder
from fnad.ir.primitive import DynamicSlice, DynamicUpdate
from fnad.ir.program import Atom, Equation, Literal, Program, Var
from fnad.ir.symbol import Symbol
from fnad.ir.walk import use_counts
from fnad.ops.indexing import dynamic_update_slice
from fnad.ops.shape import Ints, reshape, slice_
from fnad.records import NamedTuple


class RowScan(NamedTuple):
    """A loop as a scan over rows: its step, the carry at the start and the rows.

    By the place of a carried array in whose rows the step writes, `written` has the array and where the rows begin.
    """

    step: Closed
    init: list[Symbol]
    rows: list[Symbol]
    written: dict[int, tuple[Symbol, Ints]]

    def carried(self, found: Sequence[Symbol]) -> list[Symbol]:
        """The values that the loop carries at its end, from the results of the scan."""
        rest, rows = iter(found), iter(found[len(self.init) :])
        carried: list[Symbol] = []
        for place in range(len(self.init) + len(self.written)):
            if place in self.written:
                array, begins = self.written[place]
                starts = [current_builder().literal(np.int64(begin)) for begin in begins]
                carried.append(dynamic_update_slice(array, next(rows), *starts))
            else:
                carried.append(next(rest))
        return carried


def with_rows(step: Closed, init: Sequence[Symbol], count: int) -> RowScan:
    """The loop as a scan. The step has an input, behind the others, for each read of the next row of an array.

    An array that a step reads and writes at its own row alone is not carried: the step returns its row.
    The number of the step grows by one at each, so none may be left undone.
    """
    program, outside = step.program, dict(zip(step.program.inputs, step.captured, strict=False))
    carry = program.inputs[len(outside) :]
    places: dict[Atom, tuple[int, int]] = {carry[0]: (1, 0)}
    boxes = {e: box for e in program.equations if (box := _rows(e, places_of(e, places), count))}
    written = {place: made for place in range(len(init)) if (made := _written(program, place, carry[place], boxes))}
    outside.update((carry[place], init[place]) for place in written)
    builder, equations, inputs, rows = current_builder(), list[Equation](), list[Var](), list[Symbol]()
    for equation in program.equations:
        if equation in written.values():
            continue
        if equation in boxes and isinstance(equation.primitive.lower, DynamicSlice) and equation.operands[0] in outside:
            builder.source, (begins, box) = equation.source, boxes[equation]
            limits = tuple(start + size for start, size in zip(begins, box, strict=True))
            array = builder.lift(outside[equation.operands[0]])  # pyright: ignore[reportArgumentType]
            rows.append(slice_(array, starts=begins, limits=limits, strides=(1,) * len(limits)))
            inputs.append(Var(rows[-1].aval.with_shape(rows[-1].shape[1:])))
            shape = equation.results[0].aval.shape
            equation = Equation(equation.results, reshape, (inputs[-1],), {"shape": shape}, (), equation.source)  # noqa: PLW2901
        equations.append(equation)
    left = [place not in written for place in range(len(init))]
    before = (*program.inputs[: len(step.captured)], *compress(carry, left))
    updates = [(equation.operands[1], equation.source) for equation in written.values()]
    made = [Var(update.aval.with_shape(update.aval.shape[1:])) for update, _ in updates]
    for var, (update, source) in zip(made, updates, strict=True):
        equations.append(Equation((var,), reshape, (update,), {"shape": var.aval.shape}, (), source))
    outputs = (*compress(program.outputs, left), *made)
    body = Program(program.name, (*before, *inputs), tuple(equations), outputs)
    arrays = {place: (init[place], boxes[equation][0]) for place, equation in written.items()}
    return RowScan(Closed(body, step.captured), list(compress(init, left)), rows, arrays)


def _written(program: Program, place: int, array: Var, boxes: Mapping[Equation, tuple[Ints, Ints]]) -> Equation | None:
    """The equation that writes the next row of a carried array; None if the step uses other rows."""
    uses = [equation for equation in program.equations if array in equation.operands]
    writes = [equation for equation in uses if program.outputs[place] in equation.results]
    if len(writes) != 1 or not isinstance(writes[0].primitive.lower, DynamicUpdate) or writes[0] not in boxes:
        return None
    is_read_once = program.outputs.count(array) == 0 and use_counts(program)[writes[0].results[0]] == 1
    are_reads = all(isinstance(use.primitive.lower, DynamicSlice) for use in uses if use is not writes[0])
    are_rows = all(use.operands.count(array) == 1 and boxes.get(use) == boxes[writes[0]] for use in uses)
    return writes[0] if is_read_once and are_reads and are_rows else None


def _rows(equation: Equation, starts: Sequence[tuple[int, int] | None], count: int) -> tuple[Ints, Ints] | None:
    """The starts and sizes of the box of rows that a loop reads or writes one by one; None if it does not."""
    match equation.primitive.lower:
        case DynamicSlice():
            starts, sizes = starts[1:], equation.params["sizes"]
        case DynamicUpdate():
            starts, sizes = starts[2:], equation.operands[1].aval.shape
        case _:
            return None
    if not starts or None in starts:
        return None
    first, *rest = starts
    if first is None or first[0] != 1 or sizes[0] != 1 or any(place is None or place[0] for place in rest):
        return None
    begins, box = tuple(place[1] for place in starts if place), (count, *sizes[1:])
    shape = equation.operands[0].aval.shape
    is_inside = all(0 <= start <= n - size for start, size, n in zip(begins, box, shape, strict=True))
    return (begins, box) if is_inside else None


def places_of(equation: Equation, places: dict[Atom, tuple[int, int]]) -> list[tuple[int, int] | None]:
    """The operands as places that only the number of the step decides; adds that of the result to the `places`."""
    starts = [_affine(atom, places) for atom in equation.operands]
    name = equation.primitive.name
    if name in AFFINE and None not in starts:
        places[equation.results[0]] = AFFINE[name](*starts)
    return starts


def _affine(atom: Atom, places: Mapping[Atom, tuple[int, int]]) -> tuple[int, int] | None:
    """The factor of the number of the step in an integer, and what is added; None if it is another one."""
    if isinstance(atom, Literal):
        return (0, int(atom.value)) if atom.aval.dtype.kind == "i" else None
    return places.get(atom)


AFFINE: dict[str, Callable[..., tuple[int, int]]] = {
    "add": lambda x, y: (x[0] + y[0], x[1] + y[1]),
    "sub": lambda x, y: (x[0] - y[0], x[1] - y[1]),
}
