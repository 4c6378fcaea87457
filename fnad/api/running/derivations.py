"""The programs that transforms derive: the key of each in the store, and how it is made.

`wrt` marks the inputs of a program that a derivative is taken in, `outputs` counts its leading outputs that have one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from fnad.control.rolled import rolled
from fnad.ir.builder import inline, trace
from fnad.ir.program import Program
from fnad.ir.symbol import Symbol
from fnad.transforms import differentiation


class Derivation(NamedTuple):
    """The programs that a transform makes of one: `key` tells them apart from what others make of it.

    `rewrite` gets the program as it is `prepared`: most get loops of Python that were found again. The results of the
    first program begin with the outputs of the given one from number `begins` on, if outputs may be added to it.
    """

    key: tuple[str, *tuple[object, ...]]
    rewrite: Callable[[Program], tuple[Program, ...]]
    prepared: Callable[[Program], Program] = rolled
    begins: int | None = None

    def derive(self, program: Program) -> tuple[Program, ...]:
        """The programs that are made of one as it was traced."""
        return self.rewrite(self.prepared(program))


def unchanged(program: Program) -> Program:
    """The program, for what needs each step of a loop."""
    return program


AS_IT_IS = Derivation(("as it is",), lambda program: (program,), unchanged)


def gradient(wrt: Sequence[bool]) -> Derivation:
    """(x…) -> (auxiliary…, x̄…)."""
    return Derivation(("grad", *wrt), lambda program: (differentiation.gradient(program, wrt),), begins=1)


def value_and_gradient(wrt: Sequence[bool]) -> Derivation:
    """(x…) -> (y, auxiliary…, x̄…)."""
    return Derivation(
        ("value_and_grad", *wrt), lambda program: (differentiation.value_and_gradient(program, wrt),), begins=0
    )


def vjp(wrt: Sequence[bool], outputs: int) -> Derivation:
    """The joint program in two: (x…) -> (y…, auxiliary…, residuals…) and (residuals…, ct…) -> (x̄…)."""
    from fnad.transforms.split import split  # noqa: PLC0415 - not loaded for a gradient

    def cut(program: Program) -> tuple[Program, Program]:
        swept = differentiation.joint(program, wrt, outputs)
        return split(swept, len(program.inputs), len(program.outputs))

    return Derivation(("vjp", *wrt, outputs), cut)


def linearized(wrt: Sequence[bool], outputs: int) -> Derivation:
    """The program of tangents in two: (x…) -> (y…, auxiliary…, residuals…) and (residuals…, dx…) -> (dy…)."""
    from fnad.transforms.split import split  # noqa: PLC0415 - likewise

    def cut(program: Program) -> tuple[Program, Program]:
        (pushed,) = jvp(wrt, outputs).rewrite(program)
        given, count = len(program.inputs), len(program.outputs)

        def whole(*args: Symbol) -> list[Symbol]:  # a loop computes tangents with values: these are of the loop before
            return [*inline(program, args[:given]), *inline(pushed, args)[count:]]

        return split(trace(whole, *pushed.in_avals, name=program.name), given, count)

    return Derivation(("linearize", *wrt, outputs), cut)


def jvp(wrt: Sequence[bool], outputs: int) -> Derivation:
    """(x…, dx…) -> (y…, auxiliary…, dy…)."""
    return Derivation(("jvp", *wrt, outputs), lambda program: (differentiation.jvp(program, wrt, outputs),), begins=0)


def columns(wrt: Sequence[bool], outputs: int) -> Derivation:
    """(x…) -> (y…, auxiliary…, Jacobians…) for a small program of numbers; no program for others."""
    return _of_some("columns", differentiation.columns, wrt, outputs)


def diagonals(wrt: Sequence[bool], outputs: int) -> Derivation:
    """(x…) -> (y…, auxiliary…, Jacobians…) for a program that computes element by element; no program for others."""
    return _of_some("diagonals", differentiation.diagonals, wrt, outputs)


def _of_some(name: str, derive: Callable[..., Program | None], wrt: Sequence[bool], outputs: int) -> Derivation:
    def derived(program: Program) -> tuple[Program, ...]:
        found = derive(program, wrt, outputs)
        return () if found is None else (found,)

    return Derivation((name, *wrt, outputs), derived)
