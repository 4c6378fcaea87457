"""Programs and symbols as part of the trace under way."""

from __future__ import annotations

from collections.abc import Sequence

from fnad.api.staging.leaves import Operand, to_user
from fnad.ir.builder import current_builder, inline
from fnad.ir.program import Program, Var
from fnad.ir.symbol import Symbol
from fnad.numpy.operands import WeakSymbol, as_symbol
from fnad.trace.capture import Trace
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


def traced(symbol: Symbol, *, weak: bool = False) -> Tracer:
    """A symbol of the trace under way as the user gets it; `weak` marks a Python number."""
    symbol = WeakSymbol(symbol.builder, symbol.atom, symbol.aval) if weak else symbol
    return Tracer(symbol, is_scalar=not symbol.shape)
