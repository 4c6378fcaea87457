"""The values that a pullback keeps of the forward run, for `explain`."""

from __future__ import annotations

from collections.abc import Sequence

from fnad.api import derivations
from fnad.ir.program import Atom, Equation, Program, Source, Var
from fnad.ir.types import Aval
from fnad.records import NamedTuple


class Residual(NamedTuple):
    """A value that a pullback keeps: the name of the argument that it is, or the line that computes or first reads it.

    A residual stack, of a loop whose length only the run knows, has one row for each step.
    """

    name: str
    aval: Aval
    source: Source | None

    @property
    def nbytes(self) -> int:
        """Its size in bytes; that of one row for a residual stack."""
        return abs(self.aval.nbytes)

    def __str__(self) -> str:
        place = f" {self.name}" if self.name else f" at {self.source}" if self.source else ""
        return f"{self.nbytes} bytes{' a step' if self.aval.is_residual_stack else ''}: {self.aval}{place}"


def residuals_of(program: Program, names: Sequence[str], outputs: int) -> tuple[Residual, ...]:
    """The residuals of the pullback of the first `outputs`; the first inputs are arguments of these names."""
    wrt = [i < len(names) for i in range(len(program.inputs))]
    forward, _ = derivations.vjp(wrt, outputs).derive(program)
    named = dict(zip(forward.inputs, names, strict=False))
    kept = [atom for atom in forward.outputs[len(program.outputs) :] if isinstance(atom, Var)]
    return tuple(
        Residual(named[var], var.aval, None)
        if var in named
        else Residual("", var.aval, _source(var, forward.equations))
        for var in kept
    )


def _source(atom: Atom, equations: Sequence[Equation]) -> Source | None:
    """The line that computes a value, in the body of a loop if it is a row of that; else the first that reads it."""
    maker = next((equation for equation in equations if atom in equation.results), None)
    if maker is None:
        return next((equation.source for equation in equations if atom in equation.operands), None)
    if maker.regions:
        body, place = maker.regions[-1], maker.results.index(atom) - len(maker.results)
        inner = body.outputs[place] if -place <= len(body.outputs) else atom
        return _source(inner, body.equations) or maker.source
    return maker.source
