"""Programs and symbols as part of the trace under way."""

from __future__ import annotations

from collections.abc import Sequence

from fnad.api.staging.leaves import Operand, to_user
from fnad.ir.builder import current_builder, inline
from fnad.ir.program import Atom, Program, Var
from fnad.ir.symbol import Symbol
from fnad.ir.walk import between
from fnad.numpy.operands import as_symbol, as_weak
from fnad.trace.capture import Trace
from fnad.trace.looping import LOOPING
from fnad.trace.tracer import Tracer


def inlined(program: Program, operands: Sequence[Operand]) -> list[Tracer]:
    """The outputs of a program, which becomes part of the trace under way."""
    symbols = [as_symbol(value if isinstance(value, Symbol) else to_user(value)) for value in operands]
    return [traced(symbol) for symbol in (_begun(program, symbols) or inline(program, symbols))]


def _begun(program: Program, symbols: Sequence[Symbol]) -> list[Symbol] | None:
    """The outputs of a program with which an outermost trace begins, as that of `jit(grad(f))` does, or None."""
    builder = current_builder()
    given = {symbol.atom: symbol for symbol in symbols if symbol.builder is builder and isinstance(symbol.atom, Var)}
    begins = isinstance(builder, Trace) and builder.outer is None and not builder.equations
    if not begins or len(given) < len(symbols):
        return None
    outputs = builder.begin(program, tuple(given))
    return [given[atom] if atom in given else Symbol(builder, atom, atom.aval) for atom in outputs]


def asked_of_loops(program: Program) -> list[Var]:
    """The values that Python read while a program was traced and that its loops and branches compute."""
    found: set[Atom] = set()
    for equation in program.equations:
        if equation.regions or not found.isdisjoint(equation.operands):
            found.update(equation.results)
    return [var for equation in program.equations for var in equation.results if var in found & program.asked]


def guard_by(program: Program, asked: Sequence[Var], operands: Sequence[Operand], answers: Sequence[Tracer]) -> None:
    """Replace the values of a program that guards read by these answers, which are equal.

    Not in a step of a loop in which ways would part before their decisions, because a derivative differs in each.
    """
    if LOOPING.steps and LOOPING.loops is not None and LOOPING.loops.decides_first:
        return
    builder = current_builder()
    assert isinstance(builder, Trace)
    symbols = [as_symbol(value if isinstance(value, Symbol) else to_user(value)) for value in operands]
    there = inline(between(program, program.inputs, asked), symbols)  # as equations of the trace already
    makers: dict[Atom, int] = {}
    for place, equation in enumerate(builder.equations):
        makers.update(dict.fromkeys(equation.results, place + 1))
    found = {known.atom: answer.symbol.atom for known, answer in zip(there, answers, strict=True)}
    guards, latest = list(builder.guards.values()), 0
    builder.guards.clear()
    for guard in guards:
        atom = found.get(guard.atom, guard.atom)
        latest = max(latest, guard.position if atom is guard.atom else makers.get(atom, guard.position))
        builder.guards.setdefault(atom, guard._replace(atom=atom, position=latest))


def traced(symbol: Symbol, *, weak: bool = False) -> Tracer:
    """A symbol of the trace under way as the user gets it; `weak` marks a Python number."""
    symbol = as_weak(symbol) if weak else symbol
    return Tracer(symbol, is_scalar=not symbol.shape)
