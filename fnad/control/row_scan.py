"""Loops whose steps read and write the next row of arrays: a scan over these rows, with a row for each that is written.

The last few rows that were written are carried for steps that read them. An array that is carried has a cotangent that
is carried as well, and the steps of a loop that carries one depend on each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np

from fnad.control.closures import Closed
from fnad.ir.builder import current_builder
from fnad.ir.primitive import DynamicSlice, DynamicUpdate
from fnad.ir.program import Atom, Equation, Literal, Program, Source, Var
from fnad.ir.symbol import Symbol
from fnad.ir.types import I64, Aval
from fnad.ir.walk import use_counts
from fnad.ops.indexing import dynamic_update_slice
from fnad.ops.shape import Ints, iota, reshape, reshape_to, slice_
from fnad.transforms.dce import dce


class RowScan(NamedTuple):
    """A loop of some `steps` as a scan over rows: its step, the carry at the start and the rows.

    The loop carries `width` values, the first of which is the number of the step. By the place of a carried array in
    whose rows the step writes, `written` has the array and where the rows begin.
    """

    step: Closed
    init: list[Symbol]
    rows: list[Symbol]
    written: dict[int, tuple[Symbol, Ints]]
    steps: int
    width: int

    def carried(self, found: Sequence[Symbol]) -> list[Symbol]:
        """The values that the loop carries at its end, from the results of the scan."""
        rest, rows = iter(found), iter(found[len(self.init) :])
        carried = [current_builder().literal(np.int64(self.steps))]
        for place in range(1, self.width):
            if place in self.written:
                array, begins = self.written[place]
                starts = [current_builder().literal(np.int64(begin)) for begin in begins]
                carried.append(dynamic_update_slice(array, next(rows), *starts))
            else:
                carried.append(next(rest))
        return carried


def with_rows(step: Closed, init: Sequence[Symbol], count: int) -> RowScan:
    """The loop as a scan. The step has an input, behind the others, for each read of the next row of an array.

    An array is not carried if a step writes its next row alone, and reads the last few or rows that are not written
    yet: the step returns its row, and carries the last few. The number of the step is a row too.
    It grows by one at each, so none may be left undone.
    """
    program, outside = dce(step.program), dict(zip(step.program.inputs, step.captured, strict=False))
    carry = program.inputs[len(outside) :]
    places: dict[Atom, tuple[int, int]] = {carry[0]: (1, 0)}
    boxes = {e: box for e in program.equations if (box := _rows(e, places_of(e, places), count))}
    written = {place: made for place in range(len(init)) if (made := _written(program, place, carry[place], boxes))}
    outside.update((carry[place], init[place]) for place in written)
    writes = [made.write for made in written.values()]
    recent = {place: [Var(made.row) for _ in range(made.depth)] for place, made in written.items()}
    read = {use: recent[place][lag - 1] for place, made in written.items() for use, lag in made.lags.items() if lag > 0}
    builder, inputs, equations = current_builder(), [carry[0]], list[Equation]()
    rows = [iota(dtype=I64, shape=(count,), axis=0)]
    for equation in program.equations:
        var = read.get(equation)
        is_read = var is None and equation in boxes and isinstance(equation.primitive.lower, DynamicSlice)
        array = outside.get(equation.operands[0]) if is_read else None  # pyright: ignore[reportArgumentType]
        if array is not None and _is_inside(equation, boxes[equation]):
            builder.source = equation.source
            rows.append(_box(builder.lift(array), *boxes[equation]))
            var = Var(rows[-1].aval.with_shape(rows[-1].shape[1:]))
            inputs.append(var)
        if var is not None:
            equation = _reshaped(equation.results[0], var, equation.source)  # noqa: PLW2901
        equations += [equation] * (equation not in writes)
    made = [Var(each.row) for each in written.values()]
    equations += [_reshaped(var, write.operands[1], write.source) for var, write in zip(made, writes, strict=True)]
    left = [place > 0 and place not in written for place in range(len(init))]
    last = [var for own in recent.values() for var in own]
    following = [each for var, own in zip(made, recent.values(), strict=True) for each in [var, *own][: len(own)]]
    before = (*program.inputs[: len(step.captured)], *compress(carry, left), *last, *inputs)
    body = Program(program.name, before, tuple(equations), (*compress(program.outputs, left), *following, *made))
    starts = [*compress(init, left)]
    for place, each in written.items():
        starts += [_row_before(init[place], boxes[each.write], lag) for lag in range(1, each.depth + 1)]
    arrays = {place: (init[place], boxes[each.write][0]) for place, each in written.items()}
    return RowScan(Closed(body, step.captured), starts, rows, arrays, count, len(init))


def _reshaped(result: Var, atom: Atom, source: Source | None) -> Equation:
    return Equation((result,), reshape, (atom,), {"shape": result.aval.shape}, (), source)


def _box(array: Symbol, begins: Ints, sizes: Ints) -> Symbol:
    limits = tuple(start + size for start, size in zip(begins, sizes, strict=True))
    return slice_(array, starts=begins, limits=limits, strides=(1,) * len(limits))


def _row_before(array: Symbol, box: tuple[Ints, Ints], lag: int) -> Symbol:
    """The row this many steps before the first one of a box; those before the first of the array are its last."""
    (first, *begins), (_, *sizes) = box
    return reshape_to(_box(array, ((first - lag) % array.shape[0], *begins), (1, *sizes)), tuple(sizes))


class _Written(NamedTuple):
    """The write of the next row of a carried array, and for each read the steps since the row was written."""

    write: Equation
    lags: Mapping[Equation, int]

    @property
    def row(self) -> Aval:
        update = self.write.operands[1].aval
        return update.with_shape(update.shape[1:])

    @property
    def depth(self) -> int:
        """The number of rows to carry."""
        return max((0, *self.lags.values()))


MOST_RECENT = 4
"""The most rows of an array that are carried."""


def _written(program: Program, place: int, array: Var, boxes: Mapping[Equation, tuple[Ints, Ints]]) -> _Written | None:
    """The write of the next row of a carried array; None if the step uses other rows."""
    uses = [equation for equation in program.equations if array in equation.operands]
    writes = [equation for equation in uses if program.outputs[place] in equation.results]
    if len(writes) != 1 or not isinstance(writes[0].primitive.lower, DynamicUpdate):
        return None
    (write,), reads = writes, [use for use in uses if use not in writes]
    is_read_once = program.outputs.count(array) == 0 and use_counts(program)[write.results[0]] == 1
    are_reads = all(isinstance(use.primitive.lower, DynamicSlice) for use in reads)
    if not (is_read_once and are_reads and all(use.operands.count(array) == 1 and use in boxes for use in uses)):
        return None
    (first, *begins), sizes = boxes[write]
    lags = {use: first - boxes[use][0][0] for use in reads}
    are_rows = all(boxes[use] == ((first - lag, *begins), sizes) for use, lag in lags.items())
    are_near = all(
        lag <= min(MOST_RECENT, array.aval.shape[0]) if lag > 0 else _is_inside(use, boxes[use])
        for use, lag in lags.items()
    )
    return _Written(write, lags) if are_rows and are_near and _is_inside(write, boxes[write]) else None


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
    return tuple(place[1] for place in starts if place), (count, *sizes[1:])


def _is_inside(equation: Equation, box: tuple[Ints, Ints]) -> bool:
    shape = equation.operands[0].aval.shape
    return all(0 <= start <= n - size for start, size, n in zip(*box, shape, strict=True))


def lies_inside(first: int, last: int, length: int, size: int) -> bool:
    """True if boxes that begin between these places lie in an axis; -1 is the place of its last element."""
    return (-length if size == 1 else 0) <= first and last + size <= length


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
