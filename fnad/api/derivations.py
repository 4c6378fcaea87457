"""What transforms make of programs: under which key the store has it, and how it is made.

`wrt` marks the inputs of a program that a derivative is taken in, `outputs` counts its leading outputs that have one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from fnad.control.reroll import rolled
from fnad.ir.builder import inline, trace
from fnad.ir.program import Program
from fnad.ir.symbol import Symbol
from fnad.ir.types import is_inexact
from fnad.transforms import differentiation
from fnad.transforms.split import split


class Derivation(NamedTuple):
    """The programs that a transform makes of one: `key` tells them apart from what others make of it."""

    key: tuple[str, *tuple[object, ...]]
    derive: Callable[[Program], tuple[Program, ...]]


AS_IT_IS = Derivation(("as it is",), lambda program: (program,))


def gradient(wrt: Sequence[bool]) -> Derivation:
    """(x…) -> (auxiliary…, x̄…)."""
    return Derivation(("grad", *wrt), lambda program: (differentiation.gradient(rolled(program), wrt),))


def value_and_gradient(wrt: Sequence[bool]) -> Derivation:
    """(x…) -> (y, auxiliary…, x̄…)."""
    return Derivation(
        ("value_and_grad", *wrt), lambda program: (differentiation.value_and_gradient(rolled(program), wrt),)
    )


def vjp(wrt: Sequence[bool], outputs: int) -> Derivation:
    """The joint program in two: (x…) -> (y…, auxiliary…, residuals…) and (residuals…, ct…) -> (x̄…)."""

    def cut(program: Program) -> tuple[Program, Program]:
        swept = differentiation.joint(rolled(program), wrt, outputs)
        return split(swept, len(program.inputs), len(program.outputs))

    return Derivation(("vjp", *wrt, outputs), cut)


def linearized(wrt: Sequence[bool], outputs: int) -> Derivation:
    """The program of tangents in two: (x…) -> (y…, auxiliary…, residuals…) and (residuals…, dx…) -> (dy…)."""

    def cut(program: Program) -> tuple[Program, Program]:
        (pushed,) = jvp(wrt, outputs).derive(program)
        given, count = len(program.inputs), len(program.outputs)

        def whole(*args: Symbol) -> list[Symbol]:  # a loop computes tangents with values: these are of the loop before
            return [*inline(program, args[:given]), *inline(pushed, args)[count:]]

        return split(trace(whole, *pushed.in_avals, name=program.name), given, count)

    return Derivation(("linearize", *wrt, outputs), cut)


def jvp(wrt: Sequence[bool], outputs: int) -> Derivation:
    """(x…, dx…) -> (y…, auxiliary…, dy…)."""

    def push(program: Program) -> tuple[Program]:
        pushed = differentiation.jvp(rolled(program), wrt)
        count = len(program.outputs) + sum(is_inexact(aval.dtype) for aval in program.out_avals[:outputs])
        return (Program(pushed.name, pushed.inputs, pushed.equations, pushed.outputs[:count]),)

    return Derivation(("jvp", *wrt, outputs), push)
