"""What is the same in every step of a loop: computed before it, and put into it where it is a number.

A carry that the body hands on as it came in is a constant of the loop. What follows from constants alone is computed
before the loop if it is dear: products of matrices, sums, library calls, transcendental functions. Cheap arithmetic
stays, since reading what was stored costs as much. A library call that may fail stays where no step may be taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from fnad.ir.builder import inline
from fnad.ir.primitive import ArgFold, Contraction, Cumulative, Fold, Library, Scalar
from fnad.ir.program import Atom, Equation, Literal, Program, Var
from fnad.ir.symbol import Symbol
from fnad.ir.types import is_inexact
from fnad.transforms.dce import dce, has_effect
from fnad.transforms.pipeline import simplify

CHEAP = 8
"""The cost of a scalar operation, in additions, up to which it is computed in each step."""


class Specialized(NamedTuple):
    """A region that takes `consts`, values from outside, before those of its inputs that are not fixed."""

    region: Program
    consts: list[Symbol]


def unchanged(inputs: Sequence[Var], outputs: Sequence[Atom], init: Sequence[Symbol]) -> list[bool]:
    """Return which carried values are the same in every step: handed on as they came in, or one number throughout."""
    return [after is before or _is_number(after, at) for before, after, at in zip(inputs, outputs, init, strict=True)]


def _is_number(atom: Atom, symbol: Symbol) -> bool:
    return isinstance(atom, Literal) and isinstance(symbol.atom, Literal) and atom.key == symbol.atom.key


def gains(region: Program, fixed: Mapping[Var, Symbol], *, runs: bool) -> bool:
    """Say whether a region is less to do where these inputs are fixed; `runs` says that it runs at least once."""
    if any(isinstance(symbol.atom, Literal) for symbol in fixed.values()):
        return True
    return any(is_dear(equation, runs=runs) for equation in _invariant(region, fixed))


def specialized(region: Program, fixed: Mapping[Var, Symbol], *, runs: bool) -> Specialized:
    """Return the region with what follows from the `fixed` inputs, and is dear, computed before it."""
    invariant = _invariant(region, fixed)
    dear = [equation for equation in invariant if is_dear(equation, runs=runs)]
    made = tuple(var for equation in dear for var in equation.results)
    before = dce(Program(region.name, tuple(fixed), tuple(invariant), made))
    known = {**fixed, **dict(zip(made, inline(before, list(fixed.values())), strict=True))}
    rest = [var for var in region.inputs if var not in fixed]
    left = set(region.equations).difference(dear)
    equations = tuple(equation for equation in region.equations if equation in left)
    whole = Program(region.name, (*known, *rest), equations, region.outputs)
    consts = [symbol for symbol in known.values() if not isinstance(symbol.atom, Literal)]
    return Specialized(simplify(with_numbers(whole, known)), consts)


def with_numbers(region: Program, fixed: Mapping[Var, Symbol]) -> Program:
    """Return the region with numbers in the place of the inputs that are one."""
    numbers = {var: symbol.atom for var, symbol in fixed.items() if isinstance(symbol.atom, Literal)}

    def put(atoms: Iterable[Atom]) -> tuple[Atom, ...]:
        return tuple(numbers.get(atom, atom) if isinstance(atom, Var) else atom for atom in atoms)

    equations = tuple(replace(e, operands=put(e.operands)) for e in region.equations)
    return Program(region.name, tuple(v for v in region.inputs if v not in numbers), equations, put(region.outputs))


def _invariant(region: Program, fixed: Iterable[Var]) -> list[Equation]:
    """Return the equations that follow from what is fixed."""
    known = set(fixed)
    found: list[Equation] = []
    for equation in region.equations:
        if not has_effect(equation) and all(isinstance(atom, Literal) or atom in known for atom in equation.operands):
            known.update(equation.results)
            found.append(equation)
    return found


def is_dear(equation: Equation, *, runs: bool) -> bool:
    """Say whether an equation is computed before a loop rather than in each step of it."""
    if not equation.operands or any(var.aval.is_residual_stack for var in equation.results):
        return False
    match equation.primitive.lower:
        case Scalar(_, cost):
            return cost > CHEAP and is_inexact(equation.results[0].aval.dtype)
        case Contraction() | Fold() | ArgFold() | Cumulative():
            return equation.operands[0].aval.size > 1
        case Library(_, raises):
            return runs or not raises
        case _:
            return runs and bool(equation.regions)
