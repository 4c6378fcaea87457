"""Scans that only sum up what their steps compute: arithmetic on arrays with one element for each step, and a sum.

    for v in x: s += v * v if v > a else a * v     becomes     terms = select(x > a, x * x, a * x)
                                                               for t in terms: s += t

A branch that data decides is predicted wrongly in many steps, in the forward loop and once more in the loop back. On
arrays both branches are vector instructions, which are faster if they are cheap. The sum keeps its order, and so its
bits. A cotangent passes a sum unchanged, so that most loops back from such a loop are such loops too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fnad.control.batching import batched_program
from fnad.control.lockstep import BRANCH, DEAR, LANES, cost_of, is_vector_code, selected
from fnad.control.loop import Groups
from fnad.control.scan import bind_scan, scan, scan_as_loop
from fnad.control.signatures import Symbols
from fnad.ir.builder import bind_equation, rebuilt, replayed, retraced, trace
from fnad.ir.primitive import Cond, Scalar
from fnad.ir.program import Atom, Equation, Literal, Program, Var
from fnad.ir.symbol import Symbol
from fnad.ir.types import is_inexact
from fnad.ir.walk import all_equations, use_counts
from fnad.ops.arithmetic import add, neg, sub
from fnad.ops.shape import copies
from fnad.transforms.dce import dce

FEWEST = 16
"""The fewest steps that are worth a second loop."""

CHEAPEST = 3
"""The cost of two branches from which LLVM leaves them branches; below, it computes both within the loop."""

DEAREST = 41
"""The cost from which functions are not computed for steps that do not need them."""


def mapped(program: Program) -> Program:
    """The program with such scans as arithmetic on arrays, in regions too."""
    if not any(equation.primitive is scan and _chooses(equation.regions[0]) for equation in all_equations(program)):
        return program

    def of(equation: Equation, operands: list[Symbol]) -> list[Symbol]:
        inner = rebuilt(equation, regions=tuple(map(mapped, equation.regions))) if equation.regions else equation
        found = _on_arrays(inner, operands) if inner.primitive is scan else None
        return bind_equation(inner, operands) if found is None else found

    return retraced(program, of)


def _chooses(body: Program) -> bool:
    conds = [equation for equation in body.equations if isinstance(equation.primitive.lower, Cond)]
    return any(sum(map(cost_of, equation.regions)) >= CHEAPEST for equation in conds)


def _on_arrays(equation: Equation, operands: Symbols) -> list[Symbol] | None:
    """The results of a scan by arithmetic on arrays; None if its steps depend on each other, or that is not cheaper."""
    body, groups, _, _, length, reverse, _ = scan_as_loop(equation.params, equation.regions)
    if length is None or length < FEWEST or not _chooses(body):
        return None
    step = _terms(body, groups)
    if step is None or not (is_vector_code(step, dearest=DEAREST) and _decides_exactly(step, set())):
        return None
    if sum(cost_of(region) for each in step.equations for region in each.regions) > LANES * BRANCH:
        return None
    consts, init, xs = groups.split(operands)
    stacked = [*[False] * len(consts), *[True] * len(xs)]
    straight = trace(lambda *args: _selected(step, args), *step.in_avals, name=step.name)
    found = zip(*batched_program(straight, length, [*consts, *xs], stacked), strict=True)
    arrays = [array if is_stack else copies(array, length) for array, is_stack in found]
    terms, rows = arrays[: groups.carry], arrays[groups.carry :]
    if not terms:
        return rows
    sums = trace(lambda *args: list(map(add, args[: len(terms)], args[len(terms) :])), *[x.aval for x in init] * 2)
    return [*bind_scan(sums, Groups(0, len(terms), len(terms)), [], [*init, *terms], length, reverse), *rows]


# ---- terms -----------------------------------------------------------------------------------------------------------


def _terms(body: Program, groups: Groups) -> Program | None:
    """The body without its carry, and in the place of each carried value the term that it adds to that."""
    consts, carry, xs = groups.split(body.inputs)
    step = body
    for place, total in enumerate(carry):
        found = _with_term(step, place, total)
        if found is None:
            return None
        step = found
    step = dce(step)
    if not use_counts(step).keys().isdisjoint(carry):
        return None
    return replace(step, inputs=(*consts, *xs))


def _with_term(program: Program, place: int, total: Var) -> Program | None:
    """The program with the term that it adds to its input `total` as the result at a place; None if it does not add."""
    atom = program.outputs[place]
    zero = Literal(total.aval.dtype.type(-0.0 if is_inexact(total.aval.dtype) else 0))
    if atom is total:
        return _returning(program, place, zero)
    number, maker = next(((i, e) for i, e in enumerate(program.equations) if atom in e.results), (0, None))
    if maker is None or not isinstance(atom, Var) or atom.aval != total.aval or use_counts(program)[atom] > 1:
        return None
    if maker.primitive is add and total in maker.operands:
        left, right = maker.operands
        return _returning(program, place, right if left is total else left)
    if maker.primitive is sub and maker.operands[0] is total:
        term = Equation((atom,), neg, maker.operands[1:], {}, (), maker.source)
    elif isinstance(maker.primitive.lower, Cond) and maker.operands[1:].count(total) == 1:
        at, result = maker.operands[1:].index(total), maker.results.index(atom)
        regions = [_with_term(region, result, region.inputs[at]) for region in maker.regions]
        kept = tuple(region for region in regions if region is not None)
        if len(kept) < len(regions):
            return None
        term = replace(maker, regions=kept)
    else:
        return None
    return replace(program, equations=(*program.equations[:number], term, *program.equations[number + 1 :]))


def _returning(program: Program, place: int, atom: Var | Literal) -> Program:
    outputs = [*program.outputs]
    outputs[place] = atom
    return replace(program, outputs=tuple(outputs))


# ---- branches --------------------------------------------------------------------------------------------------------


def _decides_exactly(program: Program, rough: set[Atom]) -> bool:
    """True if nothing is decided by `rough` values: those of functions that may round otherwise in vectors."""
    for equation in program.equations:
        primitive = equation.primitive
        is_rough = not rough.isdisjoint(equation.operands)
        if is_rough and not all(is_inexact(var.aval.dtype) for var in equation.results):
            return False
        for region in equation.regions:
            pairs = zip(region.inputs, equation.operands[1:], strict=True)
            of_region: set[Atom] = {var for var, atom in pairs if atom in rough}
            if not _decides_exactly(region, of_region):
                return False
            is_rough = is_rough or not rough.isdisjoint(of_region) or cost_of(region) >= DEAR
        if is_rough or (isinstance(primitive.lower, Scalar) and primitive.lower.cost >= DEAR):
            rough.update(equation.results)
    return True


def _selected(program: Program, args: Sequence[Symbol]) -> list[Symbol]:
    """The results of a program with all branches computed."""

    def of(equation: Equation, operands: list[Symbol]) -> Sequence[Symbol]:
        if not equation.regions:
            return bind_equation(equation, operands)
        return selected(operands[0], [_selected(region, operands[1:]) for region in equation.regions])

    return replayed(program, args, of)
