"""A program applied for each index of a new leading axis: the transform behind `vmap`.

Most equations become one equation on whole stacks (`fnad/transforms/batching.py`), and what no stack reaches stays as
it is. A `scan` goes over its steps once, with a body on stacks; so do the branches of a `cond` that is decided for all
rows at once, the region of a `checkpoint`, and functions with rules of their own with these rules. A `callback` calls
its function for each row.

Everything else is done row by row, by a scan over the rows: branches that each row chooses for itself, of which only
that one is run; loops that end when the row says so, and do not wait for the slowest row; solvers, and searches in an
array that differs among the rows. In native code that is one loop. Where these are arithmetic on scalars, rows are
computed together instead (`lockstep.py`), those of a loop a few at a time. Where loops leave residuals and take
different numbers of steps, all of the program is done row by row, since residual stacks of different lengths make no
array.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import compress
from typing import Any, TypeAlias

import numpy as np

from fnad.control.blocks import in_blocks
from fnad.control.callback import Host, callback
from fnad.control.checkpoint import checkpoint
from fnad.control.cond import cond
from fnad.control.custom import custom_jvp, custom_vjp, ruled
from fnad.control.external import external
from fnad.control.lockstep import ROWS, is_vector_code, loop_in_lockstep, selected, selecting_is_cheaper
from fnad.control.loop import Groups, closure
from fnad.control.region_rules import pieces
from fnad.control.scan import bind_scan, scan, scan_as_loop
from fnad.control.signatures import Flags, Symbols
from fnad.control.while_loop import while_as_loop, while_loop
from fnad.ir.builder import SymbolEnvironment, bind_equation, current_builder, inline, trace
from fnad.ir.primitive import Primitive
from fnad.ir.program import Equation, Program, Var
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval
from fnad.ops.shape import copies, in_front, stack_operands
from fnad.transforms.batching import batched

Batched: TypeAlias = tuple[list[Symbol], list[bool]]
"""Results, and which of them are stacks; the others are the same for all rows."""

Rule: TypeAlias = Callable[[Equation, int, Symbols, Flags], Batched]


def batched_program(program: Program, count: int, operands: Symbols, stacked: Flags) -> Batched:
    """The results of a program for each of `count` rows of the operands marked in `stacked`."""
    if not any(map(leaves_residuals, program.equations)):
        return _on_stacks(program, count, operands, stacked)
    marks: list[bool] = []

    def run(*args: Symbol) -> list[Symbol]:
        found, marks[:] = _on_stacks(program, count, args, stacked)
        return found

    try:
        on_stacks = trace(run, *[x.aval for x in operands], name=program.name)
    except _RowsDifferError:
        return row_by_row(program, count, operands, stacked)
    return inline(on_stacks, operands), marks


class _RowsDifferError(Exception):
    """A loop that leaves residuals takes different numbers of steps, so that its residual stacks make no array."""


def _on_stacks(program: Program, count: int, operands: Symbols, stacked: Flags) -> Batched:
    builder = current_builder()
    outer = builder.source
    env = SymbolEnvironment(program.inputs, operands)
    stacks = set(compress(program.inputs, stacked))
    for equation in program.equations:
        builder.source = equation.source or outer
        marks = [isinstance(atom, Var) and atom in stacks for atom in equation.operands]
        found, found_marks = batched_equation(equation, count, env.read(equation.operands), marks)
        env.write(equation.results, found)
        stacks.update(compress(equation.results, found_marks))
    builder.source = outer
    return env.read(program.outputs), [isinstance(atom, Var) and atom in stacks for atom in program.outputs]


def batched_equation(equation: Equation, count: int, operands: Symbols, stacked: Flags) -> Batched:
    """The results of one equation for each of `count` rows."""
    primitive = equation.primitive
    if not any(stacked):
        results = bind_equation(equation, operands)
        return results, [False] * len(results)
    if primitive in RULES:
        return RULES[primitive](equation, count, operands, stacked)
    results = batched(primitive, count, operands, stacked, equation.params)
    if results is None:
        return _equation_row_by_row(equation, count, operands, stacked)
    return list(results), [True] * len(results)


def leaves_residuals(equation: Equation) -> bool:
    """True if a loop of unknown length saves what its steps need in reverse mode."""
    return any(var.aval.is_residual_stack for var in equation.results)


# ---- row by row ------------------------------------------------------------------------------------------------------


def row_by_row(program: Program, count: int, operands: Symbols, stacked: Flags) -> Batched:
    """The results by a scan over the rows."""
    body, groups, given = _by_rows(program, operands, stacked)
    results = bind_scan(body, groups, [], given, count, reverse=False)
    return results, [True] * len(results)


def _by_rows(program: Program, operands: Symbols, stacked: Flags) -> tuple[Program, Groups, list[Symbol]]:
    """The program as the body of a scan over the rows, and the operands of that scan."""
    consts, rows = _apart(operands, stacked)
    order = sorted(range(len(stacked)), key=stacked.__getitem__)
    body = replace(program, inputs=tuple(program.inputs[i] for i in order))
    return body, Groups(len(consts), 0, len(rows)), [*consts, *rows]


def _equation_row_by_row(equation: Equation, count: int, operands: Symbols, stacked: Flags) -> Batched:
    return row_by_row(_alone(equation, operands, stacked), count, operands, stacked)


def _alone(equation: Equation, operands: Symbols, stacked: Flags) -> Program:
    """The equation of one row as a program."""
    source = current_builder().source

    def row(*operands: Symbol) -> list[Symbol]:
        current_builder().source = source
        return bind_equation(equation, operands)

    avals = [_row(x.aval) if mark else x.aval for x, mark in zip(operands, stacked, strict=True)]
    return trace(row, *avals, name=equation.primitive.name)


def _apart(operands: Symbols, stacked: Flags) -> tuple[list[Symbol], list[Symbol]]:
    """The operands that are the same for all rows, and the stacks."""
    return list(compress(operands, [not mark for mark in stacked])), list(compress(operands, stacked))


def _row(aval: Aval) -> Aval:
    return aval.with_shape(aval.shape[1:])


# ---- regions on stacks -----------------------------------------------------------------------------------------------


def batched_region(region: Program, count: int, stacked: Flags, wanted: Flags) -> tuple[Program, list[bool]]:
    """A region on stacks; its results are stacks where they depend on one, and where `wanted` says so."""
    marks: list[bool] = []

    def run(*args: Symbol) -> list[Symbol]:
        found, found_marks = batched_program(region, count, args, stacked)
        marks[:] = [mark or is_wanted for mark, is_wanted in zip(found_marks, wanted, strict=True)]
        pairs = zip(found, found_marks, wanted, strict=True)
        return [copies(x, count) if is_wanted and not mark else x for x, mark, is_wanted in pairs]

    avals = [_stack(aval, count) if mark else aval for aval, mark in zip(region.in_avals, stacked, strict=True)]
    return trace(run, *avals, name=region.name), marks


def _stack(aval: Aval, count: int) -> Aval:
    return aval.with_shape((count, *aval.shape))


def _batched_body(body: Program, groups: Groups, count: int, stacked: Flags) -> tuple[Program, list[bool]]:
    """The body of a loop on stacks, and which results are: of the carry, what is one after any step."""
    consts, carry, xs = groups.split(stacked)
    rows = [False] * (len(body.outputs) - groups.carry)
    bodies: list[tuple[Program, list[bool]]] = []

    def step(carry: list[bool]) -> list[bool]:
        bodies.append(batched_region(body, count, [*consts, *carry, *xs], [*carry, *rows]))
        return bodies[-1][1][: groups.carry]

    closure(carry, step)
    return bodies[-1]  # the last step is the one that set no more


def _start(init: Symbols, count: int, are_stacks: Flags, marks: Flags) -> list[Symbol]:
    """The carry at the start, with stacks of what becomes one later."""
    marked = zip(init, are_stacks, marks[: len(init)], strict=True)
    return [copies(x, count) if mark and not is_one else x for x, is_one, mark in marked]


def _swapped(rows: Symbols, marks: Flags) -> list[Symbol]:
    """Arrays that a scan goes over, with the steps in front, for stacks of them, and the other way round.

    Residual stacks have their steps in front in any case.
    """
    pairs = zip(rows, marks, strict=True)
    return [in_front(x, (1,)) if mark and not x.aval.is_residual_stack else x for x, mark in pairs]


def _scan(equation: Equation, count: int, operands: Symbols, stacked: Flags) -> Batched:
    """One scan, whose body works on stacks; the carry is one from the start where it becomes one."""
    body, groups, head, _, length, reverse, _ = scan_as_loop(equation.params, equation.regions)
    if any(stacked[:head]):
        return _different_lengths(equation, count, operands, stacked)
    region, marks = _batched_body(body, groups, count, stacked[head:])
    (consts, init, xs), (_, were_stacks, over) = groups.split(operands[head:]), groups.split(stacked[head:])
    given = [*consts, *_start(init, count, were_stacks, marks), *_swapped(xs, over)]
    results = bind_scan(region, groups, operands[:head], given, length, reverse)
    return [*results[: groups.carry], *_swapped(results[groups.carry :], marks[groups.carry :])], marks


def _different_lengths(equation: Equation, count: int, operands: Symbols, stacked: Flags) -> Batched:
    if leaves_residuals(equation):
        raise _RowsDifferError
    return _equation_row_by_row(equation, count, operands, stacked)


def _while(equation: Equation, count: int, operands: Symbols, stacked: Flags) -> Batched:
    """One loop, whose body works on stacks, if all rows take the same steps."""
    body, groups, head, *_ = while_as_loop(equation.params, equation.regions)
    region, marks = _batched_body(body, groups, count, stacked[head:])
    carry = marks[: groups.carry]
    test, (differ,) = batched_region(equation.regions[0], count, [*stacked[:head], *carry], [False])
    if differ:
        return _loops_of_rows(equation, count, operands, stacked)
    (consts, init, _), (_, were_stacks, _) = groups.split(operands[head:]), groups.split(stacked[head:])
    given = [*operands[:head], *consts, *_start(init, count, were_stacks, carry)]
    results = while_loop(*given, **equation.params, regions=(test, region))
    return list(results), [*carry, False, *marks[groups.carry :]]


def _loops_of_rows(equation: Equation, count: int, operands: Symbols, stacked: Flags) -> Batched:
    """Loops of a few rows each, one after the other."""
    if leaves_residuals(equation):
        raise _RowsDifferError
    alone = _alone(equation, operands, stacked)
    if count < 2 or not all(map(is_vector_code, equation.regions)):
        return row_by_row(alone, count, operands, stacked)
    width = min(count, ROWS)
    avals = [_stack(aval, width) if mark else aval for aval, mark in zip(alone.in_avals, stacked, strict=True)]
    together = trace(lambda *rows: _in_lockstep(equation, width, rows, stacked), *avals, name=alone.name)
    row, groups, given = _by_rows(alone, operands, stacked)
    block, *_ = _by_rows(together, operands, stacked)
    return in_blocks(block, row, groups, given, count, width, reverse=False), [True] * len(equation.results)


def _in_lockstep(equation: Equation, width: int, rows: Symbols, stacked: Flags) -> list[Symbol]:
    (test, body), params = equation.regions, equation.params
    sizes = params["test_consts"], params["body_consts"], len(rows)
    (of_test, of_body, carry), marks = pieces(rows, sizes), pieces(stacked, sizes)
    every = [True] * len(carry)
    regions = (
        batched_region(test, width, [*marks[0], *every], [True])[0],
        batched_region(body, width, [*marks[1], *every], every)[0],
    )
    start = stack_operands(width, carry, marks[2])
    return loop_in_lockstep(*regions, (of_test, of_body), start, params["max_steps"], params.get("failure"))


def _cond(equation: Equation, count: int, operands: Symbols, stacked: Flags) -> Batched:
    """Branches on stacks, if all rows take the same one, or if that is cheaper than each row's own alone."""
    if stacked[0]:
        if not (all(map(is_vector_code, equation.regions)) and selecting_is_cheaper(equation.regions)):
            return _equation_row_by_row(equation, count, operands, stacked)
        every = [True] * len(equation.results)
        branches = [batched_region(region, count, stacked[1:], every)[0] for region in equation.regions]
        return selected(operands[0], [inline(branch, operands[1:]) for branch in branches]), every
    none = [False] * len(equation.results)
    made = [batched_region(region, count, stacked[1:], none) for region in equation.regions]
    wanted = list(map(any, zip(*[marks for _, marks in made], strict=True)))
    regions = tuple(
        made_alone if marks == wanted else batched_region(region, count, stacked[1:], wanted)[0]
        for region, (made_alone, marks) in zip(equation.regions, made, strict=True)
    )
    return list(cond(*operands, regions=regions)), wanted


def _checkpoint(equation: Equation, count: int, operands: Symbols, stacked: Flags) -> Batched:
    region, marks = batched_region(equation.regions[0], count, stacked, [False] * len(equation.results))
    return list(checkpoint(*operands, regions=(region,))), marks


def _custom(equation: Equation, count: int, operands: Symbols, stacked: Flags) -> Batched:
    """A function on stacks of all its arguments, with its rules; what it captured is the last input of each region."""
    leaves = equation.params["leaves"]
    captured = stacked[leaves:]
    given = [*stack_operands(count, operands[:leaves], stacked[:leaves]), *operands[leaves:]]
    regions: list[Program] = []
    for region in equation.regions:
        if any(aval.is_residual_stack for aval in (*region.in_avals, *region.out_avals)):
            return _equation_row_by_row(equation, count, operands, stacked)
        flags = [*[True] * (len(region.inputs) - len(captured)), *captured]
        regions.append(batched_region(region, count, flags, [True] * len(region.outputs))[0])
    results = equation.primitive(*given, **equation.params, regions=tuple(regions))
    return list(results), [True] * len(results)


def _callback(equation: Equation, count: int, operands: Symbols, stacked: Flags) -> Batched:
    """One call from the program, in which the host calls the function for each row."""
    results = equation.params["results"]

    def each_row(*arrays: Any) -> list[Any]:
        rows = [[x[i] if mark else x for x, mark in zip(arrays, stacked, strict=True)] for i in range(count)]
        found = [callback.evaluate(*row, **equation.params) for row in rows]
        stacks = zip(*found, strict=True) if found else [()] * len(results)
        return [np.array(stack, d).reshape(count, *s) for stack, (d, s) in zip(stacks, results, strict=True)]

    stacks = tuple((dtype, (count, *shape)) for dtype, shape in results)
    host = Host.of(each_row, getattr(equation.params["host"], "name", Host.name))
    return list(callback(*operands, host=host, results=stacks)), [True] * len(results)


def _external(equation: Equation, count: int, operands: Symbols, stacked: Flags) -> Batched:
    """One call from the program, of the function on stacks."""
    results = tuple((dtype, (count, *shape)) for dtype, shape in equation.params["results"])
    host = equation.params["host"].stacked(count)
    return list(external(*stack_operands(count, operands, stacked), host=host, results=results)), [True] * len(results)


RULES: dict[Primitive, Rule] = {
    scan: _scan,
    while_loop: _while,
    cond: _cond,
    checkpoint: _checkpoint,
    custom_vjp: _custom,
    custom_jvp: _custom,
    ruled: _custom,
    callback: _callback,
    external: _external,
}
"""Primitives whose regions, or functions, work on stacks."""
