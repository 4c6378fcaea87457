"""Repeats in the equations of a program: what a loop in Python leaves behind when it is traced.

A step of such a loop is a *block* of equations, and the blocks stand side by side. They are alike but for the values
they read and for positions, such as the first index of a slice. What only shows part of an array (`View`) belongs to
the operand that reads it: the builder makes such an equation once, so it stands in the first block that needs it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from fnad.ir.content import content_key, key_of_params
from fnad.ir.primitive import IndexMap
from fnad.ir.program import Atom, Equation, Program, Var
from fnad.ir.walk import has_effect
from fnad.ops.shape import reshape, slice_

DEEPEST = 6
"""The most steps of a view; one of more is an array of its own."""

PERIODS = 8
"""How many lengths of a block are tried at an equation: distances to the next ones like it."""


Step: TypeAlias = Equation
"""One equation of a view: it moves elements, without a condition."""


class View(NamedTuple):
    """An operand: a value, a constant, or what some steps make of one."""

    root: Atom
    steps: tuple[Step, ...] = ()

    def then(self, step: Step) -> View:
        """The view one step further; of two changes of the shape the last one counts."""
        if self.steps and step.primitive is reshape and self.steps[-1].primitive is reshape:
            return View(self.root, (*self.steps[:-1], step))
        return View(self.root, (*self.steps, step))

    @property
    def starts(self) -> list[int]:
        """Where its slices begin."""
        return [start for step in self.steps if step.primitive is slice_ for start in step.params["starts"]]


class Line(NamedTuple):
    """An equation that computes something, with views for operands."""

    equation: Equation
    operands: tuple[View, ...]


def kind_of(line: Line) -> Hashable:
    """What is the same of an equation in all blocks; one with an effect is alike to none."""
    equation = line.equation
    if equation.primitive.effect or (equation.regions and has_effect(equation)):
        return object()
    regions = tuple(map(content_key, equation.regions)) if equation.regions else ()
    operands = tuple([(view.root.aval, *map(_kind_of_step, view.steps)) for view in line.operands])
    return equation.primitive, key_of_params(equation), regions, operands, equation.source


def _kind_of_step(step: Step) -> Hashable:
    params = step.params["strides"] if step.primitive is slice_ else key_of_params(step)
    return step.primitive, step.results[0].aval, params


def lines_of(program: Program) -> tuple[list[Line], dict[Var, View]]:
    """The equations that compute something, and the views that the others are."""
    lines: list[Line] = []
    views: dict[Var, View] = {}
    for equation in program.equations:
        operands = tuple([views.get(a) or _whole(a, views) for a in equation.operands])  # type: ignore[arg-type]
        if len(operands) == 1 and len(operands[0].steps) < DEEPEST and is_view(equation):
            views[equation.results[0]] = operands[0].then(equation)
        else:
            lines.append(Line(equation, operands))
    return lines, views


def _whole(atom: Atom, views: dict[Var, View]) -> View:
    view = View(atom)
    if isinstance(atom, Var):
        views[atom] = view
    return view


def is_view(equation: Equation) -> bool:
    """Whether an equation only moves elements of one operand."""
    lower = equation.primitive.lower
    return isinstance(lower, IndexMap) and lower.guard is None and len(equation.operands) == 1


def numbered(kinds: Sequence[Hashable]) -> list[int]:
    """Small integers, equal where these are."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(kind, len(numbers)) for kind in kinds]


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
