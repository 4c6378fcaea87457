"""Concatenations of concatenations along one axis become one, where nothing else needs the inner ones.

Rules that merge two at a time would copy a growing list of operands at each step; this takes linear time. What is added
to a concatenation can then be added to its pieces, before they are stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet

from fnad.ir.builder import rebuilt
from fnad.ir.primitive import Primitive
from fnad.ir.program import Atom, Equation, Literal, Program
from fnad.ir.walk import use_counts
from fnad.ops.arithmetic import add
from fnad.ops.constructors import INEXACT
from fnad.ops.shape import broadcast_in_dim, concatenate
from fnad.transforms.dce import dce
from fnad.transforms.pattern import Rule, by_rules
from fnad.transforms.rewrite import rewrite

PIECEWISE = (
    Rule(
        "add(concatenate(*xs, axis=axis), 0.0) = concatenate(x + 0 for x in xs)",
        lambda xs, axis: concatenate(*[x + 0 for x in xs], axis=axis),
        INEXACT,
    ),
)
_add_piecewise = by_rules(PIECEWISE)


def flatten(program: Program) -> Program:
    """The program with nested concatenations merged, and zeros added to their pieces."""
    joined = _results(program, concatenate)
    if not joined or not (_inner(program) or _has_constant_added(program, joined)):
        return program
    return dce(_merged(rewrite(_merged(program), _add_piecewise)))


def _has_constant_added(program: Program, values: AbstractSet[Atom]) -> bool:
    """True if a number, or a broadcast value, is added to one of these values."""
    numbers = _results(program, broadcast_in_dim)
    additions = [e for e in program.equations if e.primitive is add and not values.isdisjoint(e.operands)]
    return any(isinstance(x, Literal) or x in numbers for equation in additions for x in equation.operands)


def _results(program: Program, primitive: Primitive) -> set[Atom]:
    return {equation.results[0] for equation in program.equations if equation.primitive is primitive}


def _merged(program: Program) -> Program:
    inner = _inner(program)
    equations = tuple(
        rebuilt(equation, operands=tuple(_pieces(equation, inner)))
        if equation.primitive is concatenate and equation.results[0] not in inner
        else equation
        for equation in program.equations
    )
    return Program(program.name, program.inputs, equations, program.outputs)


def _inner(program: Program) -> dict[Atom, Equation]:
    """The concatenations whose only use is in another one along the same axis, by their results."""
    uses = use_counts(program)
    concatenations: dict[Atom, Equation] = {
        equation.results[0]: equation for equation in program.equations if equation.primitive is concatenate
    }
    return {
        atom: concatenations[atom]
        for outer in concatenations.values()
        for atom in outer.operands
        if atom in concatenations and uses[concatenations[atom].results[0]] == 1
        if concatenations[atom].params == outer.params
    }


def _pieces(equation: Equation, inner: Mapping[Atom, Equation]) -> Iterator[Atom]:
    """The operands of a concatenation, in place of an inner one its own operands, and so on."""
    pending = [*reversed(equation.operands)]
    while pending:
        atom = pending.pop()
        if atom in inner:
            pending.extend(reversed(inner[atom].operands))
        else:
            yield atom
