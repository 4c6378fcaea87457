"""The values that are the same in every step of a loop: they are computed before it, and constants are inlined.

A carry that the body hands on as it came in is a constant of the loop. What follows from constants alone is computed
before the loop if it is expensive: products of matrices, sums, library calls, transcendental functions. Cheap
arithmetic stays, since reading what was stored costs as much. A library call that may fail stays where no step may be
taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from typing import NamedTuple

from fnad.control.signatures import Flags, Symbols
from fnad.ir.builder import inline, rebuilt
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


class LoopPart(NamedTuple):
    """A region of a loop, on constants and then the carry; `runs` says that it runs at least once."""

    region: Program
    consts: Symbols
    runs: bool


def unchanged(body: Program, inputs: Sequence[Var], outputs: Sequence[Atom], init: Symbols) -> list[bool]:
    """Which carried values are the same in every step: handed on as they came in, or one number throughout."""
    carried = zip(inputs, outputs, init, strict=True)
    return [
        after is before or _is_number(after, at) or _stays_zero(body, before, after, at)
        for before, after, at in carried
    ]


def _stays_zero(body: Program, before: Var, after: Atom, start: Symbol) -> bool:
    """True if a sum begins with 0.0 and adds nothing else, as that of cotangents that are zero."""
    zero = Literal(before.aval.dtype.type(0))
    if not (isinstance(start.atom, Literal) and start.atom.key == zero.key):
        return False
    maker = next((equation for equation in body.equations if after in equation.results), None)
    if maker is None or maker.primitive.name != "add":
        return False
    return all(atom is before or (isinstance(atom, Literal) and atom.key == zero.key) for atom in maker.operands)


def _is_number(atom: Atom, symbol: Symbol) -> bool:
    return isinstance(atom, Literal) and isinstance(symbol.atom, Literal) and atom.key == symbol.atom.key


def specialized(parts: Sequence[LoopPart], init: Symbols, same: Flags) -> list[Specialized] | None:
    """The regions of a loop with less to do in each step, where of the carry so much is the `same`; None if none has.

    A number that is put in lets a region simplify. Else it takes something expensive to be worth an operand more.
    """
    fixed = [_fixed(part, init, same) for part in parts]
    if not any(same) and not any(map(_gains, parts, fixed)):
        return None
    return list(map(_specialized, parts, fixed))


def _gains(part: LoopPart, fixed: Mapping[Var, Symbol]) -> bool:
    if any(isinstance(symbol.atom, Literal) for symbol in fixed.values()):
        return True
    return any(is_expensive(equation, runs=part.runs) for equation in _invariant(part.region, fixed))


def _fixed(part: LoopPart, init: Symbols, same: Flags) -> dict[Var, Symbol]:
    """The outer values of the inputs of a region that are the same in every step."""
    count = len(part.consts)
    inputs = *part.region.inputs[:count], *compress(part.region.inputs[count:], same)
    return dict(zip(inputs, [*part.consts, *compress(init, same)], strict=True))


def _specialized(part: LoopPart, fixed: Mapping[Var, Symbol]) -> Specialized:
    region, invariant = part.region, _invariant(part.region, fixed)
    expensive = [equation for equation in invariant if is_expensive(equation, runs=part.runs)]
    made = tuple(var for equation in expensive for var in equation.results)
    before = dce(Program(region.name, tuple(fixed), tuple(invariant), made))
    known = {**fixed, **dict(zip(made, inline(before, list(fixed.values())), strict=True))}
    rest = [var for var in region.inputs if var not in fixed]
    left = set(region.equations).difference(expensive)
    equations = tuple(equation for equation in region.equations if equation in left)
    whole = Program(region.name, (*known, *rest), equations, region.outputs)
    consts = [symbol for symbol in known.values() if not isinstance(symbol.atom, Literal)]
    return Specialized(simplify(with_numbers(whole, known)), consts)


def with_numbers(region: Program, fixed: Mapping[Var, Symbol]) -> Program:
    """The region with numbers in the place of the inputs that are one."""
    numbers = {var: symbol.atom for var, symbol in fixed.items() if isinstance(symbol.atom, Literal)}

    def put(atoms: Iterable[Atom]) -> tuple[Atom, ...]:
        return tuple(numbers.get(atom, atom) if isinstance(atom, Var) else atom for atom in atoms)

    equations = tuple(rebuilt(e, operands=put(e.operands)) for e in region.equations)
    return Program(region.name, tuple(v for v in region.inputs if v not in numbers), equations, put(region.outputs))


def _invariant(region: Program, fixed: Iterable[Var]) -> list[Equation]:
    """The equations that follow from what is fixed."""
    known = set(fixed)
    found: list[Equation] = []
    for equation in region.equations:
        if not has_effect(equation) and all(isinstance(atom, Literal) or atom in known for atom in equation.operands):
            known.update(equation.results)
            found.append(equation)
    return found


def is_expensive(equation: Equation, *, runs: bool) -> bool:
    """True if an equation is computed before a loop rather than in each step of it."""
    if not equation.operands or any(var.aval.is_residual_stack for var in equation.results):
        return False
    match equation.primitive.lower:
        case Scalar(_, cost):
            return cost > CHEAP and is_inexact(equation.results[0].aval.dtype)
        case Contraction() | Fold() | ArgFold() | Cumulative():
            return equation.operands[0].aval.size > 1
        case Library(raises=raises):
            return runs or not raises
        case _:  # a loop in the loop may fail, or not end, so it must not run where no step is taken
            return runs and bool(equation.regions)
