"""A choice of two branches, with what they read and write of arrays outside of it.

A branch that reads or writes an element of an array would have a derivative as large as the array. So elements at
places that are known before the branches are read before them, and written behind them: the branches take and return
elements. The branch that is not taken reads and writes nothing of its own: its place is replaced by the first one,
unless counters determine it, so that it is a place in any case.

A box that counters determine is read from what the step wrote there, without the array. Another write may be out of
range, which only the write finds.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import compress
from math import prod
from typing import NamedTuple

from fnad.blocks import LocalBlocks
from fnad.control.closures import Closed, closed
from fnad.control.cond import cond
from fnad.control.region_rules import read_inputs, taking
from fnad.control.row_scan import lies_inside
from fnad.ir.builder import current_builder
from fnad.ir.primitive import DynamicSlice, DynamicUpdate
from fnad.ir.program import Atom, Equation, Literal, Program, Source, Var
from fnad.ir.symbol import Symbol
from fnad.ir.types import Shape, is_inexact
from fnad.ir.walk import use_counts
from fnad.ops.comparison import select
from fnad.ops.indexing import dynamic_slice, dynamic_update_slice
from fnad.ops.shape import Ints, reshape, reshape_to
from fnad.transforms.dce import dce

SCALAR = {"add", "sub", "mul", "neg", "convert", "select", "lt", "le", "gt", "ge", "eq", "ne", "bitwise_and"}
"""Operations that are done before the branches to find a place: they cannot fail."""


class _Branch:
    """A branch while it is divided: what is left of it, and the values that are had before it."""

    def __init__(self, region: Closed, pred: Symbol, is_taken_if: bool) -> None:
        self.builder, self.pred, self.is_taken_if = current_builder(), pred, is_taken_if
        self.program, self.outputs = region.program, list(region.program.outputs)
        self.elements: list[Equation] = []
        self.before: dict[Atom, Symbol] = dict(
            zip(region.program.inputs, map(self.builder.lift, region.captured), strict=True)
        )
        self.makers: dict[Atom, Equation] = {var: e for e in region.program.equations for var in e.results}
        self.uses: Mapping[Atom, int] = use_counts(region.program)  # pyright: ignore[reportAttributeAccessIssue]
        self.places: set[Atom] = set(self.before)
        self.boxes: dict[Atom, Equation] = {}
        self.rows: dict[Atom, Equation] = {}
        for equation in region.program.equations:
            if equation.primitive.name in SCALAR and not equation.results[0].aval.shape:
                self.places.update(equation.results if self._has_places(equation.operands) else ())
            elif (element := self._element(equation)) is not None:
                self.before[equation.results[0]] = self._read(equation, *element)
                self.places.update(equation.results)
            else:
                self._note_row(equation)

    def _has_places(self, atoms: Sequence[Atom]) -> bool:
        return all(isinstance(atom, Literal) or atom in self.places for atom in atoms)

    def _element(self, equation: Equation) -> tuple[Atom, Sequence[Atom]] | None:
        """The array and the place of an element, also of a row of an array, that an equation reads; None of others."""
        if not isinstance(equation.primitive.lower, DynamicSlice) or prod(equation.params["sizes"]) != 1:
            return None
        array, *starts = equation.operands
        if array in self.rows:
            row, inner = self.rows[array], iter(starts)
            array, *before = row.operands
            starts = [start if n == 1 else next(inner) for n, start in zip(_sizes(row), before, strict=True)]
        is_element = array.aval.size > 1 and is_inexact(array.aval.dtype)
        return (array, starts) if is_element and array in self.before and self._has_places(starts) else None

    def _note_row(self, equation: Equation) -> None:
        """Note the equation that reads a box, by the row that is left without the axes of one element."""
        if isinstance(equation.primitive.lower, DynamicSlice):
            array, *starts = equation.operands
            sizes = zip(_sizes(equation), array.aval.shape, starts, strict=True)
            if all(n == 1 or (n == m and isinstance(start, Literal)) for n, m, start in sizes):
                self.boxes[equation.results[0]] = equation
        elif equation.primitive is reshape and equation.operands[0] in self.boxes:
            found = self.boxes[equation.operands[0]]
            if equation.params["shape"] == tuple(n for n in _sizes(found) if n != 1):
                self.rows[equation.results[0]] = found

    def _read(self, equation: Equation, array: Atom, starts: Sequence[Atom]) -> Symbol:
        sizes = (1,) * len(starts)
        places = self.place(starts, array.aval.shape, sizes)
        self.builder.source = equation.source
        return reshape_to(dynamic_slice(self.value(array), *places, sizes=sizes), equation.results[0].aval.shape)

    def value(self, atom: Atom) -> Symbol:
        """A value that can be had before the branches."""
        if isinstance(atom, Literal):
            return self.builder.literal(atom.value)
        if atom not in self.before:
            equation = self.makers[atom]
            operands = [self.value(operand) for operand in equation.operands]
            self.before[equation.results[0]] = self.builder.bind(equation.primitive, operands, equation.params)
        return self.before[atom]

    def place(self, starts: Sequence[Atom], shape: Shape, sizes: Ints) -> list[Symbol]:
        """The place of a box if this branch is taken, or if it is one in any case; else the first one."""
        values = list(map(self.value, starts))
        if all(_is_inside(*each) for each in zip(values, shape, sizes, strict=True)):
            return values
        firsts = [self.builder.literal(value.dtype.type(0)) for value in values]
        pairs = zip(values, firsts, strict=True) if self.is_taken_if else zip(firsts, values, strict=True)
        return [select(self.pred, *pair) for pair in pairs]

    def write(self, output: int) -> Equation | None:
        """The write into an array from before the branches that makes a result."""
        found = self.makers.get(self.outputs[output])
        if found is None or not isinstance(found.primitive.lower, DynamicUpdate):
            return None
        array, update, *starts = found.operands
        while (before := self._overwritten(array, found)) is not None:
            array = before
        if array not in self.before or not self._has_places(starts):
            return None
        return Equation(found.results, found.primitive, (array, update, *starts), found.params, (), found.source)

    def _overwritten(self, array: Atom, last: Equation) -> Atom | None:
        """The array before a write that is only made to be overwritten."""
        found, (_, update, *starts) = self.makers.get(array), last.operands
        if found is None or not isinstance(found.primitive.lower, DynamicUpdate) or self.uses[array] > 1:
            return None
        before, first, *places = found.operands
        return before if places == starts and first.aval == update.aval else None

    def returns(self, output: int, value: Symbol) -> None:
        """Return a value from before the branches, as `returns_box` does."""
        value = reshape_to(value, ()) if value.aval.size == 1 else value
        var = Var(value.aval)
        self.before[var], self.outputs[output] = value, var

    def returns_box(self, output: int, box: Atom) -> None:
        """Return what is written into an array; one element as a number."""
        if box in self.before:
            self.returns(output, self.before[box])
        elif box.aval.size != 1 or not box.aval.shape:
            self.outputs[output] = box
        else:
            var = Var(box.aval.with_shape(()))
            self.elements.append(Equation((var,), reshape, (box,), {"shape": ()}, (), current_builder().source))
            self.outputs[output] = var

    def finished(self) -> Closed:
        """The branch without what is done before it and behind it."""
        all_equations = (*self.program.equations, *self.elements)
        left = tuple(e for e in all_equations if not any(var in self.before for var in e.results))
        inputs = tuple(var for var in self.before if isinstance(var, Var))
        program = dce(Program(self.program.name, inputs, left, tuple(self.outputs)))
        used = read_inputs(program)
        kept = Program(program.name, tuple(compress(inputs, used)), program.equations, program.outputs)
        return Closed(kept, tuple(compress(self.before.values(), used)))


COUNTS: LocalBlocks[Mapping[Atom, int]] = LocalBlocks()
"""The number of steps of each loop under construction, by its counter, which begins at 0."""


def _is_inside(start: Symbol, length: int, size: int) -> bool:
    """True if a box that begins at `start` lies in an axis of this length in every step of the loops around."""
    (terms, constant), counts = _linear(start), COUNTS.innermost or {}
    if not counts.keys() >= terms.keys():
        return False
    last = [factor * (counts[counter] - 1) for counter, factor in terms.items()]
    return lies_inside(constant + sum(min(0, n) for n in last), constant + sum(max(0, n) for n in last), length, size)


def _linear(symbol: Symbol) -> tuple[dict[Atom, int], int]:
    """The factors of other integers in an integer, and the constant that is added to their sum."""
    symbol = _origin(symbol)
    if isinstance(symbol.atom, Literal):
        return {}, int(symbol.atom.value)
    maker = _maker(symbol)
    if maker is None or maker.primitive.name not in ("add", "sub"):
        return {symbol.atom: 1}, 0
    (terms, constant), (others, added) = (_linear(Symbol(symbol.builder, x, x.aval)) for x in maker.operands)
    sign = 1 if maker.primitive.name == "add" else -1
    factors = {atom: terms.get(atom, 0) + sign * others.get(atom, 0) for atom in terms | others}
    return {atom: factor for atom, factor in factors.items() if factor}, constant + sign * added


def _origin(symbol: Symbol) -> Symbol:
    """The symbol of a value in the program that makes it, from that in a program that captures it."""
    builder = symbol.builder
    pairs = zip(builder.captured_variables, builder.captured, strict=True)
    found = next((value for var, value in pairs if var is symbol.atom), None)
    return _origin(found) if isinstance(found, Symbol) else symbol


def _maker(symbol: Symbol) -> Equation | None:
    return next((e for e in reversed(symbol.builder.equations) if symbol.atom in e.results), None)


def read_box(array: Symbol, starts: Sequence[Symbol], sizes: Ints) -> Symbol:
    """A box of an array: the values last written into this box, or an element of the array before writes elsewhere."""
    written = _origin(array)
    equation = _maker(written)
    if equation is None or not isinstance(equation.primitive.lower, DynamicUpdate):
        return dynamic_slice(array, *starts, sizes=sizes)
    before, update, *places = (Symbol(written.builder, atom, atom.aval) for atom in equation.operands)
    if all(map(_is_inside, places, before.shape, update.shape)):
        apart = list(map(_distance, starts, places))
        if update.shape == sizes and apart == [0] * len(apart):
            return current_builder().lift(update)
        elsewhere = any(d is not None and d % n for d, n in zip(apart, before.shape, strict=True))
        if prod(sizes) == update.aval.size == 1 and is_inexact(array.dtype) and elsewhere:
            return read_box(before, starts, sizes)
    return dynamic_slice(array, *starts, sizes=sizes)


def _distance(start: Symbol, other: Symbol) -> int | None:
    """The difference of two integers, if it is the same in every step."""
    (terms, constant), (others, added) = _linear(start), _linear(other)
    return constant - added if terms == others else None


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
            box = reshape_to(results[output], write.shape)
            results[output] = dynamic_update_slice(write.array, box, *write.places)
    builder.source = source
    return results


class _Write(NamedTuple):
    """A write behind the branches, which return the box that is written: the array, its place, shape and line."""

    array: Symbol
    shape: Ints
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
    no.returns_box(output, update)
    yes.returns_box(output, other_update)
    return _Write(found, update.aval.shape, places, second.source)


def _write_of_one(branch: _Branch, write: Equation, other: _Branch, output: int) -> _Write | None:
    """The write of one branch, if the other returns the array as it is; the other returns the box as it is."""
    array, update, *starts = write.operands
    found, kept = branch.value(array), other.before.get(other.outputs[output])
    if kept is None or found.atom is not kept.atom:
        return None
    places = branch.place(starts, array.aval.shape, update.aval.shape)
    branch.returns_box(output, update)
    other.returns(output, read_box(found, places, update.aval.shape))
    return _Write(found, update.aval.shape, places, write.source)


def _sizes(equation: Equation) -> Ints:
    sizes: Ints = equation.params["sizes"]
    return sizes


def key_of(symbol: Symbol) -> Hashable:
    """The identity of a value; that of a constant is the constant."""
    return symbol.atom.key if isinstance(symbol.atom, Literal) else symbol.atom


def _cond(pred: Symbol, regions: Sequence[Closed]) -> list[Symbol]:
    """The results of one of the regions, which take what any of them reads."""
    operands: dict[tuple[int, int], Symbol] = {}
    keys: list[list[tuple[int, int]]] = []
    for region in regions:
        atoms = [id(symbol.atom) for symbol in region.captured]
        keys.append([(atom, atoms[:place].count(atom)) for place, atom in enumerate(atoms)])  # each input has its own
        operands.update(zip(keys[-1], region.captured, strict=True))
    places = {key: place for place, key in enumerate(operands)}
    avals = [symbol.aval for symbol in operands.values()]
    programs = tuple(
        taking(region.program, avals, [places[key] for key in own]) for region, own in zip(regions, keys, strict=True)
    )
    results = cond(pred, *operands.values(), regions=programs)
    return list(results) if isinstance(results, tuple) else [results]
