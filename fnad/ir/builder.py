"""The builder: the only maker of equations.

It infers the avals of results as an equation is made, so that an untyped value cannot exist; it numbers values, so that
the same primitive on the same operands is one equation (local common-subexpression elimination); and it notes the
user's source line.

Builders nest, one per function being traced. A symbol of an outer builder, or an array, that is used in an inner
one becomes a captured input of the inner program, which keeps every program closed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from fnad.errors import FnadError, UsedAfterTraceError, VerificationError
from fnad.ir.content import params_key
from fnad.ir.program import Atom, Equation, Literal, Params, Program, Source, ValueEnvironment, Var, keywords
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval, aval_of
from fnad.watch import unwatched

if TYPE_CHECKING:
    from fnad.ir.primitive import Primitive

Captured: TypeAlias = "Symbol | np.ndarray[Any, Any]"


class _Stack(threading.local):
    def __init__(self) -> None:
        self.builders: list[Builder] = []


_STACK = _Stack()


def current_builder() -> Builder:
    """The builder of the innermost trace of this thread."""
    if not _STACK.builders:
        raise UsedAfterTraceError(
            "a traced value was used outside its trace",
            remedy="return it from the traced function; do not keep it in a list, an attribute or a cache",
        )
    return _STACK.builders[-1]


def is_tracing() -> bool:
    """Whether a trace is under way in this thread."""
    return bool(_STACK.builders)


class Builder:
    """A program under construction."""

    def __init__(self) -> None:
        self.inputs: list[Var] = []
        self.equations: list[Equation] = []
        self.captured: list[Captured] = []
        self.baked: list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]] = []
        self.source: Source | None = None
        self.alive = False
        self._captured_vars: dict[int, Var] = {}
        self._numbered: dict[Any, tuple[Var, ...]] = {}

    @contextmanager
    def active(self) -> Generator[Builder]:
        """Make this the innermost builder of the thread; when the block ends, its symbols become invalid."""
        _STACK.builders.append(self)
        self.alive = True
        try:
            yield self
        finally:
            self.alive = False
            _STACK.builders.remove(self)

    # ---- values --------------------------------------------------------------------------------------------------

    def input(self, aval: Aval) -> Symbol:
        """Add an input."""
        var = Var(aval)
        self.inputs.append(var)
        return Symbol(self, var, aval)

    def literal(self, value: np.generic) -> Symbol:
        """The symbol of a scalar constant."""
        return Symbol(self, Literal(value), aval_of(value))

    def capture(self, value: Captured) -> Symbol:
        """The input bound to a value from outside, which is added on first use."""
        var = self._captured_vars.get(id(value if isinstance(value, np.ndarray) else value.atom))
        if var is None:
            aval = aval_of(value) if isinstance(value, np.ndarray) else value.aval
            var = Var(aval)
            self._captured_vars[id(value if isinstance(value, np.ndarray) else value.atom)] = var
            self.captured.append(value)
        return Symbol(self, var, var.aval)

    def bake(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """An array whose content determines shapes; `baked` records it and its content with the program."""
        self.baked.append((array, array.copy()))
        return array

    def lift(self, value: Symbol | np.generic) -> Symbol:
        """The value as a symbol of this builder."""
        if isinstance(value, np.generic):
            return self.literal(value)
        if value.builder is self:
            return value
        if not value.builder.alive:
            raise UsedAfterTraceError(
                f"a traced value of aval {value.aval} was used after its trace ended",
                source=self.source,
                remedy="return it from the traced function; do not keep it in a list, an attribute or a cache",
            )
        if isinstance(value.atom, Literal):
            return Symbol(self, value.atom, value.aval)
        return self.capture(value)

    @property
    def captured_variables(self) -> list[Var]:
        """The inputs bound to `captured`."""
        return list(self._captured_vars.values())

    # ---- equations -----------------------------------------------------------------------------------------------

    @unwatched
    def bind(
        self, primitive: Primitive, operands: Sequence[Any], params: Params, regions: tuple[Program, ...] = ()
    ) -> Any:
        """Add an equation; return its result, or a tuple of results where the primitive has several."""
        symbols = [self.lift(operand) for operand in operands]
        inferred = self._infer(primitive, [symbol.aval for symbol in symbols], keywords(params, regions))
        atoms = tuple([symbol.atom for symbol in symbols])
        if isinstance(inferred, tuple):
            variables = self._number(primitive, atoms, params, regions, inferred)
            return tuple([Symbol(self, var, var.aval) for var in variables])
        (variable,) = self._number(primitive, atoms, params, regions, (inferred,))
        return Symbol(self, variable, variable.aval)

    def _infer(self, primitive: Primitive, avals: list[Aval], params: Params) -> Aval | tuple[Aval, ...]:
        try:
            return primitive.infer(*avals, **params)
        except FnadError as error:
            raise error.at(self.source) from None

    def _number(
        self,
        primitive: Primitive,
        atoms: tuple[Atom, ...],
        params: Params,
        regions: tuple[Program, ...],
        avals: tuple[Aval, ...],
    ) -> tuple[Var, ...]:
        key = equation_key(primitive, atoms, params, regions)
        found = None if primitive.effect else self._numbered.get(key)
        if found is None:
            found = tuple([Var(aval) for aval in avals])
            self._numbered[key] = found
            self.equations.append(Equation(found, primitive, atoms, dict(params), regions, self.source))
        return found

    def found(self, primitive: Primitive, operands: Sequence[Symbol]) -> Symbol | None:
        """The result of an equation without params, if there is one already."""
        variables = self._numbered.get(equation_key(primitive, [operand.atom for operand in operands], {}, ()))
        return None if variables is None else Symbol(self, variables[0], variables[0].aval)

    # ---- the end -------------------------------------------------------------------------------------------------

    def finish(self, name: str, outputs: Sequence[Symbol]) -> Program:
        """The program; captured values follow the inputs, in the order of `captured`."""
        atoms = tuple(self.lift(output).atom for output in outputs)
        captured = tuple(self._captured_vars.values())
        return Program(name, (*self.inputs, *captured), tuple(self.equations), atoms)


def equation_key(
    primitive: Primitive, atoms: Sequence[Atom], params: Params, regions: tuple[Program, ...]
) -> tuple[Any, ...]:
    """The key by which equations are one: params count to the bit, as constants do."""
    return primitive, atom_keys(atoms), params_key(params) if params else (), regions


def atom_keys(atoms: Sequence[Atom]) -> tuple[Any, ...]:
    """Keys by which operands are equal: the identity of a Var, the bits of a Literal."""
    return tuple([atom.key if isinstance(atom, Literal) else atom for atom in atoms])  # quicker than a generator


@unwatched
def trace(function: Callable[..., Sequence[Symbol]], *avals: Aval, name: str = "program") -> Program:
    """The program of a rule or a pass written as a function on symbols; it must capture nothing."""
    builder = Builder()
    with builder.active():
        outputs = function(*[builder.input(aval) for aval in avals])
        program = builder.finish(name, outputs)
    if builder.captured:
        raise AssertionError(f"{name} captured {len(builder.captured)} values from outside its arguments")
    return program


class SymbolEnvironment(ValueEnvironment):
    """An environment of symbols, in which a literal is read as the symbol of its constant."""

    __slots__ = ()

    def read(self, atoms: Sequence[Atom]) -> list[Symbol]:  # type: ignore[override]
        builder = current_builder()
        return [
            builder.literal(atom.value) if isinstance(atom, Literal) else value
            for atom, value in zip(atoms, super().read(atoms), strict=True)
        ]


@unwatched
def inline(program: Program, arguments: Sequence[Symbol]) -> list[Symbol]:
    """Add a program's equations to the program under construction, on these arguments; return its outputs."""
    from_atom: dict[Var, Symbol] = dict(zip(program.inputs, arguments, strict=True))
    builder = current_builder()
    outer = builder.source

    def read(atom: Atom) -> Symbol:
        return builder.literal(atom.value) if isinstance(atom, Literal) else from_atom[atom]

    for equation in program.equations:
        builder.source = equation.source or outer
        results = builder.bind(
            equation.primitive, [read(atom) for atom in equation.operands], equation.params, equation.regions
        )
        from_atom.update(zip(equation.results, results if isinstance(results, tuple) else (results,), strict=True))
    builder.source = outer
    return [read(atom) for atom in program.outputs]


def bind_equation(equation: Equation, operands: Sequence[Symbol]) -> list[Symbol]:
    """Add the equation to the program under construction, on these operands; return its results as a list."""
    results = current_builder().bind(equation.primitive, operands, equation.params, equation.regions)
    return list(results) if isinstance(results, tuple) else [results]


def rebuilt(equation: Equation, **parts: Any) -> Equation:
    """The equation with other operands, params, regions or results, inferred anew; its results keep their avals."""
    made = replace(equation, **parts)
    inferred = made.primitive.infer(*[atom.aval for atom in made.operands], **made.keywords)
    avals = tuple(var.aval for var in made.results)
    if avals != (inferred if isinstance(inferred, tuple) else (inferred,)):
        declared = ", ".join(map(str, avals))
        raise VerificationError(f"{made.primitive.name} was rebuilt with results {declared}, and gives {inferred}")
    return made
