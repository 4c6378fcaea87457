"""A choice of two branches, with what they read and write of arrays outside of it.

A branch that reads or writes an element of an array would have a derivative as large as the array. So elements at
places that are known before the branches are read before them, and written behind them: the branches take and return
elements. The branch that is not taken reads and writes nothing of its own: its place is replaced by the first one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import compress
from math import prod

from fnad.control.closures import Closed, closed
from fnad.control.cond import cond
from fnad.control.region_rules import read_inputs, taking
from fnad.ir.builder import current_builder
from fnad.ir.primitive import DynamicSlice, DynamicUpdate
from fnad.ir.program import Atom, Equation, Literal, Program, Source, Var
from fnad.ir.symbol import Symbol
from fnad.ir.types import is_inexact
from fnad.ops.comparison import select
from fnad.ops.indexing import dynamic_slice, dynamic_update_slice
from fnad.records import NamedTuple
from fnad.transforms.dce import dce

SCALAR = {"add", "sub", "mul", "neg", "convert", "select", "lt", "le", "gt", "ge", "eq", "ne", "bitwise_and"}
"""Operations that are done before the branches to find a place: they cannot fail."""


class _Branch:
    """A branch while it is divided: what is left of it, and the values that are had before it."""

    def __init__(self, region: Closed, pred: Symbol, is_taken_if: bool) -> None:
        self.builder, self.pred, self.is_taken_if = current_builder(), pred, is_taken_if
        self.program, self.outputs = region.program, list(region.program.outputs)
        self.before: dict[Atom, Symbol] = dict(
            zip(region.program.inputs, map(self.builder.lift, region.captured), strict=True)
        )
        self.makers: dict[Atom, Equation] = {var: e for e in region.program.equations for var in e.results}
        self.places: set[Atom] = set(self.before)
        for equation in region.program.equations:
            if equation.primitive.name in SCALAR and not equation.results[0].aval.shape:
                self.places.update(equation.results if self._has_places(equation.operands) else ())
            elif self._reads_element(equation):
                self.before[equation.results[0]] = self._read(equation)
                self.places.update(equation.results)

    def _has_places(self, atoms: Sequence[Atom]) -> bool:
        return all(isinstance(atom, Literal) or atom in self.places for atom in atoms)

    def _reads_element(self, equation: Equation) -> bool:
        if not isinstance(equation.primitive.lower, DynamicSlice):
            return False
        array, *starts = equation.operands
        is_element = prod(equation.params["sizes"]) == 1 < array.aval.size and is_inexact(array.aval.dtype)
        return is_element and array in self.before and self._has_places(starts)

    def _read(self, equation: Equation) -> Symbol:
        array, *starts = equation.operands
        places = self.place(starts)
        self.builder.source = equation.source
        return dynamic_slice(self.value(array), *places, **equation.params)

    def value(self, atom: Atom) -> Symbol:
        """A value that can be had before the branches."""
        if isinstance(atom, Literal):
            return self.builder.literal(atom.value)
        if atom not in self.before:
            equation = self.makers[atom]
            operands = [self.value(operand) for operand in equation.operands]
            self.before[equation.results[0]] = self.builder.bind(equation.primitive, operands, equation.params)
        return self.before[atom]

    def place(self, starts: Sequence[Atom]) -> list[Symbol]:
        """The place of a box if this branch is taken; else the first one."""
        values = list(map(self.value, starts))
        firsts = [self.builder.literal(value.dtype.type(0)) for value in values]
        pairs = zip(values, firsts, strict=True) if self.is_taken_if else zip(firsts, values, strict=True)
        return [select(self.pred, *pair) for pair in pairs]

    def write(self, output: int) -> Equation | None:
        """The write into an array from before the branches that makes a result."""
        found = self.makers.get(self.outputs[output])
        if found is None or not isinstance(found.primitive.lower, DynamicUpdate):
            return None
        array, _, *starts = found.operands
        return found if array in self.before and self._has_places(starts) else None

    def returns(self, output: int, value: Symbol) -> None:
        """Return a value from before the branches."""
        var = Var(value.aval)
        self.before[var], self.outputs[output] = value, var

    def finished(self) -> Closed:
        """The branch without what is done before it and behind it."""
        left = tuple(e for e in self.program.equations if not any(var in self.before for var in e.results))
        inputs = tuple(var for var in self.before if isinstance(var, Var))
        program = dce(Program(self.program.name, inputs, left, tuple(self.outputs)))
        used = read_inputs(program)
        kept = Program(program.name, tuple(compress(inputs, used)), program.equations, program.outputs)
        return Closed(kept, tuple(compress(self.before.values(), used)))


def choose(pred: Symbol, yes: Callable[[], list[Symbol]], no: Callable[[], list[Symbol]]) -> list[Symbol]:
    """The results of one of two functions on symbols that use those around them."""
    builder = current_builder()
    source = builder.source
    branches = _Branch(closed(no, (), "no"), pred, False), _Branch(closed(yes, (), "yes"), pred, True)
    writes = {output: _write(*branches, output) for output in range(len(branches[0].outputs))}
    builder.source = source
    results = _cond(pred, [branch.finished() for branch in branches])
    for output, write in writes.items():
        if write is not None:
            builder.source = write.source
            results[output] = dynamic_update_slice(write.array, results[output], *write.places)
    builder.source = source
    return results


class _Write(NamedTuple):
    """A write behind the branches, which return the box that is written: the array, the place and the line."""

    array: Symbol
    places: list[Symbol]
    source: Source | None


def _write(no: _Branch, yes: _Branch, output: int) -> _Write | None:
    """The write that makes a result of the branches, left to be done behind them; None if it has to stay in them."""
    first, second = no.write(output), yes.write(output)
    if first is not None and second is not None:
        return _write_of_both(no, first, yes, second, output)
    if first is not None:
        return _write_of_one(no, first, yes, output)
    return None if second is None else _write_of_one(yes, second, no, output)


def _write_of_both(no: _Branch, first: Equation, yes: _Branch, second: Equation, output: int) -> _Write | None:
    """The write of both branches, if they write boxes of one shape to one place of one array."""
    (array, update, *starts), (other_array, other_update, *other_starts) = first.operands, second.operands
    found = no.value(array)
    if found.atom is not yes.value(other_array).atom:
        return None
    places, other_places = list(map(no.value, starts)), list(map(yes.value, other_starts))
    is_same = all(key_of(x) == key_of(y) for x, y in zip(places, other_places, strict=True))
    if update.aval != other_update.aval or not is_same:
        return None
    no.outputs[output], yes.outputs[output] = update, other_update
    return _Write(found, places, second.source)


def _write_of_one(branch: _Branch, write: Equation, other: _Branch, output: int) -> _Write | None:
    """The write of one branch, if the other returns the array as it is; the other returns the box as it is."""
    array, update, *starts = write.operands
    found, kept = branch.value(array), other.before.get(other.outputs[output])
    if kept is None or found.atom is not kept.atom:
        return None
    places = branch.place(starts)
    branch.outputs[output] = update
    other.returns(output, dynamic_slice(found, *places, sizes=update.aval.shape))
    return _Write(found, places, write.source)


def key_of(symbol: Symbol) -> Hashable:
    """The identity of a value; that of a constant is the constant."""
    return symbol.atom.key if isinstance(symbol.atom, Literal) else symbol.atom


def _cond(pred: Symbol, regions: Sequence[Closed]) -> list[Symbol]:
    """The results of one of the regions, which take what any of them reads."""
    operands = {id(symbol.atom): symbol for region in regions for symbol in region.captured}
    places = {key: place for place, key in enumerate(operands)}
    avals = [symbol.aval for symbol in operands.values()]
    programs = tuple(
        taking(region.program, avals, [places[id(symbol.atom)] for symbol in region.captured]) for region in regions
    )
    results = cond(pred, *operands.values(), regions=programs)
    return list(results) if isinstance(results, tuple) else [results]
