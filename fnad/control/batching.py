"""A program applied for each index of a new leading axis: the transform behind `vmap`.

Most equations become one equation on whole stacks (`fnad/transforms/batching.py`), and what no stack reaches stays as
it is. A `scan` goes over its steps once, with a body on stacks; so do the branches of a `cond` that is decided for all
rows at once, and the region of a `checkpoint`.

Everything else is done row by row, by a scan over the rows: branches that each row chooses for itself, of which only
that one is run; loops that end when the row says so, and do not wait for the slowest row; functions with rules of their
own, solvers and callbacks. In native code that is one loop. Where a loop of unknown length leaves residuals, all of the
program is done row by row, since residual stacks of different lengths make no array.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import compress
from typing import TypeAlias

from fnad.control.checkpoint import checkpoint
from fnad.control.cond import cond
from fnad.control.loop import Groups, closure
from fnad.control.scan import bind_scan, scan, scan_as_loop
from fnad.control.signatures import Flags, Symbols
from fnad.ir.axes import Opaque
from fnad.ir.builder import SymbolEnvironment, bind_equation, current_builder, inline, trace
from fnad.ir.primitive import Primitive
from fnad.ir.program import Equation, Program, Var
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval
from fnad.ops.shape import copies, in_front
from fnad.transforms.batching import batched

Batched: TypeAlias = tuple[list[Symbol], list[bool]]
"""Results, and which of them are stacks; the others are the same for all rows."""

Rule: TypeAlias = Callable[[Equation, int, Symbols, Flags], Batched]


def batched_program(program: Program, count: int, operands: Symbols, stacked: Flags) -> Batched:
    """The results of a program for each of `count` rows of the operands marked in `stacked`."""
    if any(var.aval.is_residual_stack for equation in program.equations for var in equation.results):
        return row_by_row(program, count, operands, stacked)
    builder = current_builder()
    outer = builder.source
    env = SymbolEnvironment(program.inputs, operands)
    stacks = set(compress(program.inputs, stacked))
    for equation in program.equations:
        builder.source = equation.source or outer
        marks = [isinstance(atom, Var) and atom in stacks for atom in equation.operands]
        found, found_marks = _batched_equation(equation, count, env.read(equation.operands), marks)
        env.write(equation.results, found)
        stacks.update(compress(equation.results, found_marks))
    builder.source = outer
    return env.read(program.outputs), [isinstance(atom, Var) and atom in stacks for atom in program.outputs]


def _batched_equation(equation: Equation, count: int, operands: Symbols, stacked: Flags) -> Batched:
    primitive = equation.primitive
    if not any(stacked):
        results = bind_equation(equation, operands)
        return results, [False] * len(results)
    if primitive in RULES:
        return RULES[primitive](equation, count, operands, stacked)
    if isinstance(primitive.axes, Opaque):
        return _equation_row_by_row(equation, count, operands, stacked)
    results = batched(primitive, count, operands, stacked, equation.params)
    return list(results), [True] * len(results)


# ---- row by row ------------------------------------------------------------------------------------------------------


def row_by_row(program: Program, count: int, operands: Symbols, stacked: Flags) -> Batched:
    """The results by a scan over the rows."""
    consts, rows = _apart(operands, stacked)

    def run(*values: Symbol) -> list[Symbol]:
        same, own = iter(values[: len(consts)]), iter(values[len(consts) :])
        return inline(program, [next(own) if is_stacked else next(same) for is_stacked in stacked])

    avals = [*[x.aval for x in consts], *[_row(x.aval) for x in rows]]
    groups = Groups(len(consts), 0, len(rows))
    body = trace(run, *avals, name=program.name)
    results = bind_scan(body, groups, [], [*consts, *rows], count, reverse=False)
    return results, [True] * len(results)


def _equation_row_by_row(equation: Equation, count: int, operands: Symbols, stacked: Flags) -> Batched:
    avals = [_row(x.aval) if mark else x.aval for x, mark in zip(operands, stacked, strict=True)]

    def run(*values: Symbol) -> list[Symbol]:
        return bind_equation(equation, values)

    program = trace(run, *avals, name=equation.primitive.name)
    return row_by_row(program, count, operands, stacked)


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


def _scan(equation: Equation, count: int, operands: Symbols, stacked: Flags) -> Batched:
    """One scan, whose body works on stacks; the carry is one from the start where it becomes one."""
    body, groups, head, _, length, reverse, _ = scan_as_loop(equation.params, equation.regions)
    if any(stacked[:head]):
        return _equation_row_by_row(equation, count, operands, stacked)
    consts, carry, xs = groups.split(stacked[head:])
    rows = [False] * (len(body.outputs) - groups.carry)
    bodies: list[tuple[Program, list[bool]]] = []

    def step(carry: list[bool]) -> list[bool]:
        bodies.append(batched_region(body, count, [*consts, *carry, *xs], [*carry, *rows]))
        return bodies[-1][1][: groups.carry]

    carry = closure(carry, step)
    region, found = bodies[-1]  # the last step is the one that set no more
    given_consts, init, given_xs = groups.split(operands[head:])
    _, were_stacks, _ = groups.split(stacked[head:])
    start = [copies(x, count) if mark and not was else x for x, mark, was in zip(init, carry, were_stacks, strict=True)]
    over = [in_front(x, (1,)) if mark else x for x, mark in zip(given_xs, xs, strict=True)]
    results = bind_scan(region, groups, operands[:head], [*given_consts, *start, *over], length, reverse)
    marks = [*carry, *found[groups.carry :]]
    ends, ys = results[: groups.carry], results[groups.carry :]
    return [
        *ends,
        *[in_front(y, (1,)) if mark else y for y, mark in zip(ys, marks[groups.carry :], strict=True)],
    ], marks


def _cond(equation: Equation, count: int, operands: Symbols, stacked: Flags) -> Batched:
    """Branches on stacks, if all rows take the same one."""
    if stacked[0]:
        return _equation_row_by_row(equation, count, operands, stacked)
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


RULES: dict[Primitive, Rule] = {scan: _scan, cond: _cond, checkpoint: _checkpoint}
"""Primitives whose regions work on stacks."""
