"""Loops of Python, found again: a `for` of a thousand steps is traced to a thousand blocks, and becomes one scan.

`rolled` is called before a program is differentiated or compiled, so that gradients, memory and compile time are those
of a loop. It takes time n log n in the number of equations, for each depth of nesting. What it cannot roll it leaves
as it is; `differences` says why. A short loop stays as it is: its steps are compiled quickly, and run faster.

An operand of a block is a value of the same block; or of a block before, which is carried; or the same value in all
blocks, a constant; or part of one that moves by the same distance from block to block, which the scan goes over; or a
number that grows evenly. What is read after the loop is carried to its end or becomes a row (`fnad.control.rolling`).
Blocks at the beginning and in the middle that differ stay outside. What results may repeat again, where loops are
nested, so it is looked through again. It computes the same numbers, to the bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from operator import attrgetter, is_
from typing import Any, NamedTuple

import numpy as np

from fnad.control.flow import BlockRun, Flow, Segment
from fnad.control.repeats import Lines, Repeats, View
from fnad.control.rolled import FEWEST, SMALLEST, may_repeat
from fnad.control.rolling import Rolling, Written, bound, moved, reshaped, rows_of
from fnad.control.scan import scan
from fnad.ir.builder import rebuilt
from fnad.ir.program import Atom, Equation, Literal, Program, Source
from fnad.ir.symbol import Symbol
from fnad.ir.walk import all_equations
from fnad.ops.shape import concatenate, reshape, slice_
from fnad.transforms.batching import batched
from fnad.transforms.dce import dce


class Difference(NamedTuple):
    """Why a loop was not found again, or not whole: what a step of it does otherwise, and in which line."""

    source: Source | None
    text: str

    def __str__(self) -> str:
        return f"{self.text}, at {self.source}"


ROUNDS = 8
"""The most levels of nested loops."""

SPARE = 1 << 20
"""Bytes that rows may take which are not read."""


def rolled(program: Program) -> Program:
    """The program with its repeats as loops, in regions too."""
    return _looked_through(program, None)


def loops(program: Program) -> list[str]:
    """The loops that a program has as it is `rolled`, and not before: how many steps, and the first line."""

    def scans(found: Program) -> Counter[str]:
        equations = (each for each in all_equations(found) if each.primitive is scan)
        return Counter(f"{each.params['length']} steps, from {each.source}" for each in equations)

    return list((scans(rolled(program)) - scans(program)).elements())


def differences(program: Program) -> list[Difference]:
    """Why what looks like a loop is not one in the program as it is `rolled`, or not whole."""
    found: list[Difference] = []
    left = _looked_through(program, found)
    listed = Lines(left)
    straight = [each for each in left.equations if not each.regions and not _is_constant(each, listed)]
    counts = Counter(equation.source for equation in straight)
    computed = {line.source for line in set(listed.lines).intersection(straight)}
    kept = {each.source: each for each in reversed(found) if each.source in computed}
    for source in [*_between(left), *(source for source, count in counts.items() if count >= SMALLEST)]:
        kept.setdefault(source, Difference(source, STEP_DIFFERS if source in _between(left) else STEPS_DIFFER))
    return list(kept.values())


STEP_DIFFERS = "a step with other operations than its neighbours, or values from elsewhere, stays outside the loop"
STEPS_DIFFER = (
    "the steps differ in shapes, operations or order, or few are alike, or large arrays of some are read later"
)


def _is_constant(equation: Equation, listed: Lines) -> bool:
    """True if an equation is of numbers only, as those that make a table are."""
    return all(isinstance(listed.root(atom), Literal) for atom in equation.operands)


def _between(program: Program) -> list[Source | None]:
    """The first lines of what stands between two loops that are parts of one."""
    found: list[Source | None] = []
    latest, outside = None, []
    for equation in program.equations:
        if equation.primitive is not scan:
            outside.append(equation.source)
        else:
            found += outside[:1] if equation.source == latest else []
            latest, outside = equation.source, []
    return found


def _looked_through(program: Program, differences: list[Difference] | None) -> Program:
    program = _regions_rolled(program)
    count = len(program.outputs)
    found = replace(program, outputs=(*program.outputs, *program.asked))  # where they are outputs, they are kept
    for _ in range(ROUNDS):
        changed = _once(found, count, differences) if may_repeat(found) else None
        if changed is None:
            break
        found = dce(collected(changed))
    return replace(found, outputs=found.outputs[:count]) if found.equations is not program.equations else program


def _regions_rolled(program: Program) -> Program:
    if not any(map(attrgetter("regions"), program.equations)):
        return program
    equations = tuple(
        _with_regions_rolled(equation) if equation.regions else equation for equation in program.equations
    )
    if all(map(is_, equations, program.equations)):
        return program
    return replace(program, equations=equations)


def _with_regions_rolled(equation: Equation) -> Equation:
    regions = tuple(map(rolled, equation.regions))
    return equation if all(map(is_, regions, equation.regions)) else rebuilt(equation, regions=regions)


def _once(program: Program, outputs: int, differences: list[Difference] | None) -> Program | None:
    """The program with the innermost repeats as loops; None if there are none.

    Outputs but for the first `outputs` are what Python has decided by.
    """
    listed = Lines(program)
    flow = Flow(listed)
    asked = np.array([flow.place(listed.root(atom)) for atom in program.outputs[outputs:]], np.int64)
    if len(asked):  # alike to none
        lines = np.searchsorted(flow.first, np.unique(asked[asked >= 0]), "right") - 1
        listed.kinds[lines] = -1 - lines
    segments = _segments(flow, listed.kinds, differences)
    if not segments:
        return None
    external = _external(program, flow, segments)
    taken = [(each, blocks) for each, blocks in zip(segments, external, strict=True) if is_frugal(flow, each, blocks)]
    return _written(program, flow, taken) if taken else None


def is_frugal(flow: Flow, segment: Segment, external: Mapping[int, set[int]]) -> bool:
    """True if the rows of all steps, where some are read after the loop, take little more than these."""
    for place, blocks in external.items():
        nbytes = flow.result(flow.first[segment.start] + place).aval.nbytes
        if blocks != {segment.count - 1} and segment.count * nbytes > max(2 * len(blocks) * nbytes, SPARE):
            return False
    return True


def _segments(flow: Flow, numbers: Any, differences: list[Difference] | None) -> list[Segment]:
    """The segments that become loops, from the first line to the last."""
    repeats = Repeats(numbers)
    found: list[Segment] = []
    failed: dict[int, int] = {}
    position = 0
    while position < len(numbers):
        here: list[Segment] = []
        for period in repeats.periods(position):
            if failed.get(period, 0) > position:
                continue
            count = repeats.blocks(position, period, FEWEST)
            if count and not (here := _of_run(flow, position, period, count, differences)):
                failed[period] = position + period * (count - 1)
            if here:
                break
        found += here
        position = here[-1].end if here else position + 1
    return found


def _of_run(flow: Flow, start: int, period: int, count: int, differences: list[Difference] | None) -> list[Segment]:
    """The loops of a run; where an inner loop is too short for one, those of blocks that are several of its steps."""
    run = BlockRun(flow, start, period, count)
    found = run.segments()
    if differences is not None and (difference := run.difference(found)) is not None:
        differences.append(Difference(*difference))
    if found or not (cuts := run.cuts()):
        return found
    lengths = {b - a for a, b in pairwise(cuts)}
    if len(lengths) != 1 or (length := lengths.pop()) == 1 or (blocks := (count - cuts[0]) // length) < FEWEST:
        return []
    return _of_run(flow, start + cuts[0] * period, period * length, blocks, differences)


# ---- the new program -------------------------------------------------------------------------------------------------


def _written(program: Program, flow: Flow, segments: Sequence[tuple[Segment, Mapping[int, set[int]]]]) -> Program:
    outer = Written()
    for var in program.inputs:
        outer.known[var] = outer.builder.input(var.aval)
    line = 0
    for segment, blocks in segments:
        _copied(flow.lines[line : segment.start], flow.listed, outer)
        Rolling(flow, segment, blocks, outer).write()
        line = segment.end
    _copied(flow.lines[line:], flow.listed, outer)
    return outer.builder.finish(program.name, _outputs(outer, program, flow.listed))


def _copied(lines: Sequence[Equation], listed: Lines, outer: Written) -> None:
    for equation in lines:
        outer.builder.source = equation.source
        given = [outer.view(listed.view(atom)) for atom in equation.operands]
        found = outer.builder.bind(equation.primitive, given, equation.params, equation.regions)
        outer.known.update(zip(equation.results, found if isinstance(found, tuple) else (found,), strict=True))


def _external(program: Program, flow: Flow, segments: Sequence[Segment]) -> list[dict[int, set[int]]]:
    """Of each segment the places whose values are read outside of it, each with the blocks."""
    found: list[dict[int, set[int]]] = [{} for _ in segments]
    of_result = np.full(flow.first[-1] + 1, -1)  # the last one stands for what is no result
    owner = np.full(flow.slots[-1], -1)
    for number, segment in enumerate(segments):
        of_result[flow.first[segment.start] : flow.first[segment.end]] = number
        owner[flow.slots[segment.start] : flow.slots[segment.end]] = number
    results = [flow.place(flow.listed.root(atom)) for atom in program.outputs]
    places = np.concatenate([flow.places, np.array(results, np.int64)])
    places = np.maximum(places, -1)
    reader = np.concatenate([owner, np.full(len(results), -1)])
    is_external = (of_result[places] != -1) & (of_result[places] != reader)
    for place in dict.fromkeys(places[is_external].tolist()):
        number = int(of_result[place])
        segment = segments[number]
        block, result = divmod(place - flow.first[segment.start], segment.size)
        found[number].setdefault(result, set()).add(block)
    return found


# ---- lists that become arrays ----------------------------------------------------------------------------------------


def collected(program: Program) -> Program:
    """The program with each concatenation of rows of one array that follow each other as a part of that array."""
    if not any(is_long(equation) for equation in program.equations):
        return program
    outer, listed = Written(), Lines(program)
    for var in program.inputs:
        outer.known[var] = outer.builder.input(var.aval)
    for line in listed.lines:
        if is_long(line):
            outer.builder.source = line.source
            outer.known[line.results[0]] = _joined(
                outer, line.params["axis"], [_row_of(listed, a) for a in line.operands]
            )
        else:
            _copied([line], listed, outer)
    return outer.builder.finish(program.name, _outputs(outer, program, listed))


def _outputs(outer: Written, program: Program, listed: Lines) -> list[Symbol]:
    return [outer.view(listed.view(atom)) for atom in program.outputs]


def is_long(equation: Equation) -> bool:
    """True if an equation concatenates so much that it may be rows of a loop."""
    return equation.primitive is concatenate and len(equation.operands) >= FEWEST


def _joined(outer: Written, axis: int, operands: Sequence[ShownRow]) -> Symbol:
    parts: list[Symbol] = []
    for rows in _in_order(operands):
        whole = _whole(outer, axis, rows) if len(rows) > 1 else None
        parts += [outer.view(row.view) for row in rows] if whole is None else [whole]
    return parts[0] if len(parts) == 1 else bound(outer.builder, concatenate, *parts, axis=axis)


class ShownRow(NamedTuple):
    """An operand, which row of an array it shows, and what others that show rows of it likewise have in common."""

    view: View
    start: int = 0
    alike: Hashable = None


def _row_of(listed: Lines, atom: Atom) -> ShownRow:
    """An operand as a row, if it is one."""
    view = listed.view(atom)
    root, steps, starts = view
    if not steps or steps[0].primitive is not slice_ or steps[0].results[0].aval.shape != (1, *root.aval.shape[1:]):
        return ShownRow(view)
    return ShownRow(view, starts[0], (listed.look(atom), root, starts[1:]))


def _in_order(operands: Sequence[ShownRow]) -> list[list[ShownRow]]:
    """The operands, those together that are rows of one array at even distances, forwards or backwards."""
    found: list[list[ShownRow]] = []
    for operand in operands:
        if found and _are_even([*found[-1][-2:], operand]):
            found[-1].append(operand)
        else:
            found.append([operand])
    return found


def _are_even(rows: Sequence[ShownRow]) -> bool:
    """True if two or three operands are rows of one array at even distances."""
    moves = {b.start - a.start for a, b in pairwise(rows)}
    return rows[0].alike is not None and len({row.alike for row in rows}) == len(moves) == 1 and 0 not in moves


def _whole(outer: Written, axis: int, rows: Sequence[ShownRow]) -> Symbol | None:
    """The result of `concatenate` on rows, all at once."""
    builder, count = outer.builder, len(rows)
    root, steps, _ = rows[0].view
    x = rows_of(builder, outer.value(root), steps[0], 0, rows[1].start - rows[0].start, count)
    x = reshaped(builder, x, (count, 1, *x.shape[1:]))
    for step in steps[1:]:
        with builder.active():
            found = batched(step.primitive, count, [x], [True], step.params)
        if found is None:
            return None
        (x,) = found
    x = moved(builder, x, 0, axis)
    shape = (*x.shape[:axis], count * x.shape[axis + 1], *x.shape[axis + 2 :])
    flat = bound(builder, reshape, x, shape=(x.aval.size,))  # in the order in which NumPy adds what was concatenated
    return bound(builder, reshape, flat, shape=shape)
