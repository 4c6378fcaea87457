"""The builder: the only maker of equations.

It infers the avals of results as an equation is made, so that an untyped value cannot exist; it numbers values, so that
the same primitive on the same operands is one equation (local common-subexpression elimination); and it notes the
user's source line.

Builders nest, one per function being traced. A symbol of an outer builder, or an array, that is used in an inner
one becomes a captured input of the inner program, which keeps every program closed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Hashable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from fnad.blocks import Holding, LocalBlocks
from fnad.errors import FnadError, UsedAfterTraceError, VerificationError
from fnad.forks import cached_property
from fnad.ir.content import content_key, key_of_params, params_key
from fnad.ir.program import Atom, Equation, Literal, Params, Program, Source, ValueEnvironment, Var, keywords
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval, aval_of

if TYPE_CHECKING:
    from fnad.ir.primitive import Primitive

Captured: TypeAlias = "Symbol | np.ndarray[Any, Any]"


Inferred: TypeAlias = "Aval | tuple[Aval, ...]"

MOST_INFERRED = 4096
_INFERRED: dict[tuple[Primitive, tuple[Aval, ...], Hashable], tuple[Inferred, Params, Hashable]] = {}
"""The avals of results by primitive, avals and params, with these: programs have many equations alike."""


class Repeated(NamedTuple):
    """An equation to be added again, and what takes its operands from the atoms so far."""

    primitive: Primitive
    operands: Callable[[Sequence[Any]], tuple[Any, ...]]
    params: Params
    static: Hashable
    inferred: Inferred


def taking(places: Sequence[int]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """A function that takes elements by their places."""
    if len(places) > 1:
        return itemgetter(*places)
    if not places:
        return lambda atoms: ()
    place = places[0]
    return lambda atoms: (atoms[place],)


NOT_KEPT = "return it from the traced function, or keep its numbers with fnad.callback(kept.append, x)"


def made_at(value: Symbol) -> Source | None:
    """The line where a value was computed, if one is known: not of an argument."""
    equations = value.builder.equations
    return next((e.source for e in equations if any(var is value.atom for var in e.results)), None)


def not_kept(value: Symbol) -> str:
    """The way out for a value that was kept past its trace, with the line where it was made."""
    source = made_at(value)
    return NOT_KEPT if source is None else f"it was made at {source}\n  {NOT_KEPT}"


def current_builder() -> Builder:
    """The builder of the innermost trace of this thread."""
    found = BUILDERS.innermost
    if found is None:
        raise UsedAfterTraceError("a traced value was used outside its trace", remedy=NOT_KEPT)
    return found


@contextmanager
def untried() -> Generator[None]:
    """A block in which no operation is `tried`, because user code gets no error of it."""
    builder = current_builder()
    before, builder.is_untried = builder.is_untried, True
    try:
        yield
    finally:
        builder.is_untried = before


def innermost_builder() -> Builder | None:
    """The builder of the innermost trace of this thread, if there is one."""
    return BUILDERS.innermost


def is_tracing() -> bool:
    """True if a trace is under way in this thread."""
    return bool(BUILDERS.entries)


class Builder:
    """A program under construction; each of the `tried` notes an equation before it is added."""

    tried: Sequence[Any] = ()
    is_untried = False

    def __init__(self) -> None:
        self.inputs: list[Var] = []
        self.equations: list[Equation] = []
        self.definitions: dict[Any, Equation] = {}  # by their only results; filled by a `Rewriter`
        self.captured: list[Captured] = []
        self.baked: list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]] = []
        self.source: Source | None = None
        self.alive = False
        self.constants: object = None
        self._captured_vars: dict[int, Var] = {}
        self._beginning: tuple[Program, tuple[Atom, ...], tuple[Atom, ...]] | None = None

    @contextmanager
    def active(self) -> Generator[Builder]:
        """Make this the innermost builder of the thread; when the block ends, its symbols become invalid."""
        try:
            with BUILDERS.holding(self):
                self.alive = True
                yield self
        finally:
            self.alive = False

    def innermost(self) -> Holding[Builder]:
        """Make this, which is alive, the innermost builder of the thread for a block."""
        return BUILDERS.holding(self)

    # ---- values --------------------------------------------------------------------------------------------------

    def input(self, aval: Aval) -> Symbol:
        """Add an input."""
        var = Var(aval)
        self.inputs.append(var)
        return Symbol(self, var, aval)

    def literal(self, value: np.generic) -> Symbol:
        """The symbol of a scalar constant."""
        literal = Literal(value)
        return Symbol(self, literal, literal.aval)

    def capture(self, value: Captured) -> Symbol:
        """The input bound to a value from outside, which is added on first use."""
        identity = id(value.atom if isinstance(value, Symbol) else value)
        var = self._captured_vars.get(identity)
        if var is None:
            var = self._captured_vars[identity] = Var(value.aval if isinstance(value, Symbol) else aval_of(value))
            self.captured.append(value)
        return Symbol(self, var, var.aval)

    def bake(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """An array whose content determines shapes; `baked` records it and its content with the program."""
        self.baked.append((array, array.copy()))
        return array

    def warn(self, message: str, category: type[Warning]) -> None:
        """Warn at the user's line."""
        source = self.source
        warnings.warn_explicit(message, category, source.file if source else __file__, source.line if source else 0)

    def lift(self, value: Symbol | np.generic) -> Symbol:
        """The value as a symbol of this builder."""
        if isinstance(value, Symbol):
            if value.builder is self:
                return value
        else:
            return self.literal(value)
        if not value.builder.alive:
            what = f"a traced value of aval {value.aval} was used after its trace ended"
            raise UsedAfterTraceError(what, source=self.source, remedy=not_kept(value))
        if isinstance(value.atom, Literal):
            return Symbol(self, value.atom, value.aval)
        return self.capture(value)

    @property
    def captured_variables(self) -> list[Var]:
        """The inputs bound to `captured`."""
        return list(self._captured_vars.values())

    # ---- equations -----------------------------------------------------------------------------------------------

    def bind(
        self, primitive: Primitive, operands: Sequence[Any], params: Params, regions: tuple[Program, ...] = ()
    ) -> Any:
        """Add an equation; return its result, or a tuple of results where the primitive has several."""
        symbols = [o if type(o) is Symbol and o.builder is self else self.lift(o) for o in operands]
        atoms = tuple([symbol.atom for symbol in symbols])
        static = params_key(params)
        key = primitive, atom_keys(atoms), static, regions
        found = None if primitive.effect else self._numbered.get(key)
        if found is None:
            avals = tuple([symbol.aval for symbol in symbols])
            inferred, params, static = self._infer(primitive, avals, params, static, regions)
            for clauses in self.tried:
                clauses.note(primitive, symbols, params)
            found = self._numbered[key] = tuple(map(Var, inferred)) if isinstance(inferred, tuple) else Var(inferred)
            results = found if isinstance(found, tuple) else (found,)
            made = Equation(results, primitive, atoms, params, regions, self.source)
            made.static = static
            self.equations.append(made)
        if isinstance(found, tuple):
            return tuple([Symbol(self, var, var.aval) for var in found])
        return Symbol(self, found, found.aval)

    def repeat(self, equations: Sequence[Repeated], atoms: list[Atom], keys: list[Any]) -> None:
        """Add equations that were added to another program, on other atoms; those of the results are appended.

        `keys` are what operands are equal by, which are the atoms themselves where there are no constants.
        """
        numbered, source = self._numbered, self.source
        for primitive, taken, params, static, inferred in equations:
            operands = taken(atoms)
            key = primitive, operands if keys is atoms else taken(keys), static, ()
            found = numbered.get(key)
            if found is not None:
                results = found if isinstance(found, tuple) else (found,)
            else:
                is_several = isinstance(inferred, tuple)
                results = tuple(map(Var, inferred)) if is_several else (Var(inferred),)
                numbered[key] = results if is_several else results[0]
                made = Equation(results, primitive, operands, params, (), source)
                made.static = static
                self.equations.append(made)
            atoms += results
            if keys is not atoms:
                keys += results

    @cached_property
    def _numbered(self) -> dict[Any, Var | tuple[Var, ...]]:
        """The results of equations by what makes equations equal; of those that it began with, once somebody asks."""
        return {_number_of(e, e.operands): _as_found(e) for e in self.equations if not e.primitive.effect}

    def begin(self, program: Program, arguments: tuple[Atom, ...]) -> tuple[Atom, ...]:
        """Begin with the equations of a program on these inputs; return its outputs.

        The results of the equations are the same values, so neither of the two programs may be a region of the other.
        """
        given: dict[Atom, Atom] = dict(zip(program.inputs, arguments, strict=True))
        for equation in program.equations:
            is_the_same = equation.source is not None and given.keys().isdisjoint(equation.operands)
            self.equations.append(equation if is_the_same else self._begun(equation, given))
        outputs = tuple([given.get(atom, atom) for atom in program.outputs])
        self._beginning = program, arguments, outputs
        vars(self).pop("_numbered", None)
        return outputs

    def _begun(self, equation: Equation, given: dict[Atom, Atom]) -> Equation:
        operands = tuple([given.get(atom, atom) for atom in equation.operands])
        source = equation.source or self.source
        made = Equation(equation.results, equation.primitive, operands, equation.params, equation.regions, source)
        made.static = equation.static
        return made

    def add(self, equation: Equation, operands: tuple[Atom, ...]) -> tuple[Var, ...]:
        """Add an equation of another program on operands of the same avals, for which nothing has to be inferred."""
        key = _number_of(equation, operands)
        found = None if equation.primitive.effect else self._numbered.get(key)
        if found is not None:
            return found if isinstance(found, tuple) else (found,)
        results = tuple([Var(var.aval) for var in equation.results])
        made = Equation(results, equation.primitive, operands, equation.params, equation.regions, self.source)
        made.static = equation.static
        self._numbered[key] = _as_found(made)
        self.equations.append(made)
        return results

    def _infer(
        self,
        primitive: Primitive,
        avals: tuple[Aval, ...],
        params: Params,
        static: Hashable,
        regions: tuple[Program, ...],
    ) -> tuple[Inferred, Params, Hashable]:
        """The avals of the results, and the params, which equations alike share: to make and free them takes long.

        What was inferred before is known, unless there are regions, which are not kept for it.
        """
        key = primitive, avals, static
        found = None if regions else _INFERRED.get(key)
        if found is not None:
            return found
        try:
            inferred = primitive.infer(*avals, **keywords(params, regions))
        except FnadError as error:
            raise error.at(self.source) from None
        made = inferred, params, static
        if not regions:
            if len(_INFERRED) >= MOST_INFERRED:
                _INFERRED.clear()
            _INFERRED[key] = made
        return made

    def found(self, primitive: Primitive, operands: Sequence[Symbol]) -> Symbol | None:
        """The result of an equation without params, if there is one already."""
        found = self._numbered.get((primitive, atom_keys([operand.atom for operand in operands]), (), ()))
        return Symbol(self, found, found.aval) if isinstance(found, Var) else None

    # ---- the end -------------------------------------------------------------------------------------------------

    def finish(self, name: str, outputs: Sequence[Symbol]) -> Program:
        """The program; captured values follow the inputs, in the order of `captured`."""
        atoms = tuple(self.lift(output).atom for output in outputs)
        inputs = (*self.inputs, *self._captured_vars.values())
        program = Program(name, inputs, tuple(self.equations), atoms)
        if self._beginning is not None:
            whole, *ends = self._beginning
            if len(whole.equations) == len(self.equations) and ends == [inputs, atoms]:  # it is the same but for lines
                object.__setattr__(program, "content", content_key(whole))
        return program


def _number_of(equation: Equation, operands: Sequence[Atom]) -> Any:
    """A key that is equal for equal equations on these operands."""
    return equation.primitive, atom_keys(operands), key_of_params(equation), equation.regions


def _as_found(equation: Equation) -> Var | tuple[Var, ...]:
    """The results of an equation as `bind` finds them: one that is alone, where it is not that of regions."""
    results = equation.results
    return results if equation.regions or len(results) != 1 else results[0]


def atom_keys(atoms: Sequence[Atom]) -> tuple[Any, ...]:
    """Keys by which operands are equal: the identity of a Var, the bits of a Literal."""
    return tuple([atom.key if isinstance(atom, Literal) else atom for atom in atoms])  # quicker than a generator


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


def inline(program: Program, arguments: Sequence[Symbol]) -> list[Symbol]:
    """Add a program's equations to the program under construction, on arguments of its avals; return its outputs."""
    builder = current_builder()
    given: dict[Atom, Symbol] = dict(zip(program.inputs, arguments, strict=True))
    if any(var.aval is not x.aval for var, x in given.items()):
        raise VerificationError(f"{program.name} of {program.in_avals} is inlined on {[x.aval for x in arguments]}")
    atoms = _Lifted(builder, given)
    outer = builder.source
    for equation in program.equations:
        builder.source = equation.source or outer
        operands = tuple([atom if type(atom) is Literal else atoms[atom] for atom in equation.operands])
        atoms.update(zip(equation.results, builder.add(equation, operands), strict=True))
    builder.source = outer
    return [given[a] if a in given else Symbol(builder, atoms.get(a, a), a.aval) for a in program.outputs]


def replayed(
    program: Program, arguments: Sequence[Symbol], of: Callable[[Equation, list[Symbol]], Sequence[Symbol]]
) -> list[Symbol]:
    """The outputs of a program on arguments, where `of(equation, operands)` are the results of each equation."""
    builder, env = current_builder(), SymbolEnvironment(program.inputs, arguments)
    for equation in program.equations:
        builder.source = equation.source
        env.write(equation.results, of(equation, env.read(equation.operands)))
    return env.read(program.outputs)


def retraced(program: Program, of: Callable[[Equation, list[Symbol]], Sequence[Symbol]]) -> Program:
    """The program with `of(equation, operands)` as the results of each equation."""
    return trace(lambda *args: replayed(program, args, of), *program.in_avals, name=program.name)


class _Lifted(dict[Atom, Atom]):
    """The atoms of a program as those of another one, in which an argument is lifted when it is first used."""

    def __init__(self, builder: Builder, arguments: dict[Atom, Symbol]) -> None:
        super().__init__()
        self._builder, self._arguments = builder, arguments

    def __missing__(self, atom: Atom) -> Atom:
        self[atom] = found = self._builder.lift(self._arguments[atom]).atom
        return found


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


def with_regions(program: Program, change: Callable[[Program], Program]) -> Program:
    """The program with each region of its equations transformed."""
    if not any(equation.regions for equation in program.equations):
        return program
    equations = [rebuilt(e, regions=tuple(map(change, e.regions))) if e.regions else e for e in program.equations]
    return Program(program.name, program.inputs, tuple(equations), program.outputs)


BUILDERS: LocalBlocks[Builder] = LocalBlocks()
"""The traces under way in a thread."""
