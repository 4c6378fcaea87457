"""Repeats in the equations of a program: what a loop in Python leaves behind when it is traced.

A step of such a loop is a *block* of equations, and the blocks stand side by side. They are alike but for the values
they read and for positions, such as the first index of a slice. What only shows part of an array (`View`) belongs to
the operand that reads it: the builder makes such an equation once, so it stands in the first block that needs it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TypeAlias

from fnad.ir.content import content_key, key_of_params
from fnad.ir.primitive import IndexMap, Primitive
from fnad.ir.program import Atom, Equation, Program
from fnad.ir.walk import has_effect
from fnad.ops.shape import reshape, slice_
from fnad.records import NamedTuple

DEEPEST = 6
"""The most steps of a view; one of more is an array of its own."""

PERIODS = 8
"""How many lengths of a block are tried at an equation: distances to the next ones like it."""


Step: TypeAlias = Equation
"""One equation of a view: it moves elements, without a condition."""


class View(NamedTuple):
    """An operand: a value, a constant, or what some steps make of one.

    Views of equal `kind` are alike but for the value, and for where their slices begin, which `starts` says.
    """

    root: Atom
    steps: tuple[Step, ...] = ()
    kind: int = 0
    starts: tuple[int, ...] = ()
    before: View | None = None

    def then(self, step: Step, numbers: Numbers) -> View:
        """The view one step further; of two changes of the shape the last one counts."""
        root, steps, kind, starts, before = self
        primitive, aval = step.primitive, step.results[0].aval
        if primitive is slice_:
            params = step.params
            kind = numbers[kind, slice_, aval, params["strides"]]
            return View(root, (*steps, step), kind, starts + params["starts"], self)
        if primitive is reshape and before is not None and steps[-1].primitive is reshape:
            return before.then(step, numbers)
        kind = numbers[kind, primitive, aval, step.static or key_of_params(step)]
        return View(root, (*steps, step), kind, starts, self)


class Line(NamedTuple):
    """An equation that computes something, with views for operands; those of equal `kind` may be steps of a loop."""

    equation: Equation
    operands: list[View]
    kind: int


class Numbers(dict[Hashable, int]):
    """Small integers, equal where keys are."""

    def __missing__(self, key: Hashable) -> int:
        number = self[key] = len(self)
        return number


class Kinds:
    """What is the same of lines in all blocks, as numbers."""

    def __init__(self) -> None:
        self.numbers = Numbers()
        self._sources: dict[int, int] = {}

    def of(self, equation: Equation, operands: Sequence[View]) -> int:
        """The kind of a line; one with an effect is alike to none."""
        source = self._sources.get(id(equation.source))
        if source is None:
            source = self._sources[id(equation.source)] = self.numbers[equation.source]
        params = equation.static or key_of_params(equation)
        kinds = [view.kind for view in operands]
        if equation.regions or equation.primitive.effect:
            return self.numbers[self._special(equation), params, source, *kinds]
        return self.numbers[equation.primitive, params, source, *kinds]

    def _special(self, equation: Equation) -> Hashable:
        if equation.primitive.effect or has_effect(equation):
            return object()
        return equation.primitive, tuple(map(content_key, equation.regions))


def lines_of(program: Program) -> tuple[list[Line], Views]:
    """The equations that compute something, and the views that the others are."""
    kinds = Kinds()
    lines: list[Line] = []
    views = Views(kinds.numbers)
    moves = Moves()
    for equation in program.equations:
        operands = [views[atom] for atom in equation.operands]
        if moves[equation.primitive] and len(operands) == 1 and len(operands[0].steps) < DEEPEST:
            views[equation.results[0]] = operands[0].then(equation, kinds.numbers)
        else:
            lines.append(Line(equation, operands, kinds.of(equation, operands)))
    return lines, views


class Views(dict[Atom, View]):
    """The views that values are, whole where nothing else is known."""

    def __init__(self, numbers: Numbers) -> None:
        super().__init__()
        self._numbers = numbers

    def __missing__(self, atom: Atom) -> View:
        view = self[atom] = View(atom, (), self._numbers[atom.aval])
        return view


class Moves(dict[Primitive, bool]):
    """Whether a primitive, of one operand, only moves elements."""

    def __missing__(self, primitive: Primitive) -> bool:
        lower = primitive.lower
        found = self[primitive] = isinstance(lower, IndexMap) and lower.guard is None
        return found


class Repeats:
    """Finds where a sequence repeats, in constant time a question, by hashes of its prefixes."""

    BASE, MODULUS = 1_000_003, (1 << 61) - 1

    def __init__(self, numbers: Sequence[int]) -> None:
        self._numbers, self._size = numbers, len(numbers)
        self._hashes, self._powers = [0], [1]
        for number in numbers:
            self._hashes.append((self._hashes[-1] * self.BASE + number + 1) % self.MODULUS)
            self._powers.append(self._powers[-1] * self.BASE % self.MODULUS)
        self._next: list[int | None] = [None] * len(numbers)
        latest: dict[int, int] = {}
        for i in reversed(range(len(numbers))):
            self._next[i] = latest.get(numbers[i])
            latest[numbers[i]] = i

    def _hash(self, start: int, length: int) -> int:
        end = start + length
        return (self._hashes[end] - self._hashes[start] * self._powers[length]) % self.MODULUS

    def periods(self, start: int) -> Iterator[int]:
        """The distances to the next places that are like this one."""
        place = self._next[start]
        for _ in range(PERIODS):
            if place is None:
                return
            yield place - start
            place = self._next[place]

    def blocks(self, start: int, period: int, fewest: int) -> int:
        """How many blocks of this length stand side by side; 0 where there are fewer than `fewest`."""
        numbers, last = self._numbers, start + period * (fewest - 1)
        if last + period > self._size or numbers[last] != numbers[start]:  # as nearly always where nothing repeats
            return 0
        if numbers[start + 1] != numbers[start + period + 1] or not self._alike(start, period, last - start):
            return 0
        low, most = period * (fewest - 1), self._size - start - period
        while low < most and self._alike(start, period, min(2 * low, most)):
            low = min(2 * low, most)
        high = min(2 * low, most + 1)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._alike(start, period, middle) else (low, middle)
        end = start + low  # a hash may be that of another sequence
        return low // period + 1 if self._numbers[start:end] == self._numbers[start + period : end + period] else 0

    def _alike(self, start: int, period: int, length: int) -> bool:
        return self._hash(start, length) == self._hash(start + period, length)
