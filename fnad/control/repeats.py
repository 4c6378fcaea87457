"""Repeats in the equations of a program: what a loop in Python leaves behind when it is traced.

A step of such a loop is a *block* of equations, and the blocks stand side by side. They are alike but for the values
they read and for positions, such as the first index of a slice. What only shows part of an array (`View`) belongs to
the operand that reads it: the builder makes such an equation once, so it stands in the first block that needs it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from typing import TypeAlias

from fnad.ir.content import content_key, key_of_params
from fnad.ir.primitive import IndexMap, Primitive
from fnad.ir.program import Atom, Equation, Program
from fnad.ir.types import Aval
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
    """An operand: a value, a constant, or what some steps make of one; `starts` says where their slices begin."""

    root: Atom
    steps: tuple[Step, ...]
    starts: tuple[int, ...]


class Kind:
    """What views alike have in common: all but the value, and where their slices begin. It is equal to itself only."""

    __slots__ = ("_after", "before", "depth", "last")

    def __init__(self, last: Primitive | None = None, before: Kind | None = None) -> None:
        self.last, self.before, self.depth = last, before, before.depth + 1 if before is not None else 0
        self._after: dict[Hashable, Kind] = {}

    def then(self, primitive: Primitive, aval: Aval, params: Hashable) -> Kind:
        """The kind one step further; of two changes of the shape the last one counts."""
        key = primitive, aval, params
        found = self._after.get(key)
        if found is None:
            before = self.before if primitive is self.last is reshape else None
            found = self._after[key] = Kind(primitive, self) if before is None else before.then(*key)
        return found


Seen: TypeAlias = tuple[Kind, Atom, tuple[int, ...], "Step | None"]
"""A value as a view: its kind, the value that it shows, where its slices begin, and the last step, if there is any."""


class Views(dict[Atom, Seen]):
    """What the values of a program show, whole where nothing else is known."""

    def __init__(self) -> None:
        super().__init__()
        self._whole: defaultdict[Aval, Kind] = defaultdict(Kind)

    def __missing__(self, atom: Atom) -> Seen:
        seen = self[atom] = self._whole[atom.aval], atom, (), None
        return seen

    def add(self, step: Step, operand: Seen) -> None:
        """Note that the result of an equation is a view of its operand."""
        kind, root, starts, _ = operand
        (result,), primitive = step.results, step.primitive
        if primitive is slice_:
            params = step.params
            kind = kind.then(slice_, result.aval, params["strides"])
            self[result] = kind, root, starts + params["starts"], step
        else:
            kind = kind.then(primitive, result.aval, step.static or key_of_params(step))
            self[result] = kind, root, starts, step

    def root(self, atom: Atom) -> Atom:
        """The value that an atom shows."""
        return self[atom][1]

    def of(self, atom: Atom) -> View:
        """What an atom shows."""
        _, root, starts, step = self[atom]
        steps: list[Step] = []
        while step is not None:
            if not (steps and steps[-1].primitive is step.primitive is reshape):
                steps.append(step)
            step = self[step.operands[0]][3]
        return View(root, tuple(reversed(steps)), starts)


class Numbers(dict[Hashable, int]):
    """Small integers, equal where keys are."""

    def __missing__(self, key: Hashable) -> int:
        number = self[key] = len(self)
        return number


class LineKinds:
    """What is the same of lines in all blocks, as numbers."""

    def __init__(self) -> None:
        self._numbers = Numbers()
        self._sources: dict[int, int] = {}

    def of(self, equation: Equation, operands: Sequence[Kind]) -> int:
        """The kind of a line; one with an effect is alike to none."""
        source = self._sources.get(id(equation.source))
        if source is None:
            source = self._sources[id(equation.source)] = self._numbers[equation.source]
        params = equation.static or key_of_params(equation)
        if equation.regions or equation.primitive.effect:
            return self._numbers[self._special(equation), params, source, *operands]
        return self._numbers[equation.primitive, params, source, *operands]

    def _special(self, equation: Equation) -> Hashable:
        if equation.primitive.effect or has_effect(equation):
            return object()
        return equation.primitive, tuple(map(content_key, equation.regions))


def lines_of(program: Program) -> tuple[list[Equation], list[int], Views]:
    """The equations that compute something, their kinds, and the views that the others are.

    Lines of equal kinds may be steps of a loop.
    """
    lines: list[Equation] = []
    kinds: list[int] = []
    views, moves, kind_of = Views(), Moves(), LineKinds().of
    for equation in program.equations:
        operands = equation.operands
        if len(operands) == 1 and moves[equation.primitive] and (seen := views[operands[0]])[0].depth < DEEPEST:
            views.add(equation, seen)
        else:
            lines.append(equation)
            kinds.append(kind_of(equation, [views[atom][0] for atom in operands]))
    return lines, kinds, views


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
