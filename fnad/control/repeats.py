"""Repeats in the equations of a program: what a loop in Python leaves behind when it is traced.

A step of such a loop is a *block* of equations, and the blocks stand side by side. They are alike but for the values
they read and for positions, such as the first index of a slice. What only shows part of an array (`View`) belongs to
the operand that reads it: the builder makes such an equation once, so it stands in the first block that needs it.

Nearly all equations of a long program are in some loop, so what is asked of all of them takes most of the time. Here
values and kinds are numbers, and it is asked of all at once: by arrays, and by the maps of CPython.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import chain, compress, count
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fnad.ir.content import content_key, key_of_params
from fnad.ir.primitive import IndexMap, Primitive
from fnad.ir.program import Atom, Equation, Program
from fnad.ir.walk import acts_outside
from fnad.ops.shape import reshape, slice_

DEEPEST = 6
"""The most steps of a view; one of more is an array of its own."""

AT_ONCE = 2000
"""The number of equations in one query."""

PERIODS = 8
"""The number of block lengths tried at an equation: distances to the next similar equations."""


Step: TypeAlias = Equation
"""One equation of a view: it moves elements, without a condition."""


class View(NamedTuple):
    """An operand: a value, a constant, or what some steps make of one; `starts` says where their slices begin."""

    root: Atom
    steps: tuple[Step, ...]
    starts: tuple[int, ...]


# ---- equal ones as small integers ------------------------------------------------------------------------------------


class Numbers(defaultdict[Any, int]):
    """Small integers, equal where keys are: in the order in which they come."""

    def __init__(self) -> None:
        super().__init__(count().__next__)

    def of(self, keys: Iterable[Hashable]) -> Any:
        """Those of keys."""
        return np.fromiter(map(self.__getitem__, keys), np.int64)


def paired(a: Any, b: Any) -> Any:
    """Small integers, equal where the elements of both vectors are."""
    if not len(a):
        return a
    width = int(b.max()) + 1
    pairs, most = a * width + b, (int(a.max()) + 1) * width
    if most > 4 * len(pairs):
        return np.unique(pairs, return_inverse=True)[1]
    is_there = np.zeros(most, bool)
    is_there[pairs] = True
    return (np.cumsum(is_there) - 1)[pairs]


def folded(elements: Any, lengths: Any) -> Any:
    """Small integers, equal where sequences are, which stand side by side and have so many elements."""
    elements = elements + 1  # 0 stands for what is missing
    while (lengths != 1).any():
        halves = np.maximum((lengths + 1) // 2, 1)
        place = 2 * (np.arange(halves.sum()) - np.repeat(before(halves), halves))
        first, left = np.repeat(before(lengths), halves) + place, np.repeat(lengths, halves) - place
        padded = np.append(elements, 0)
        one, two = (padded[np.where(left > n, first + n, -1)] for n in (0, 1))
        elements, lengths = paired(one, two) + 1, halves
    return elements


def before(lengths: Any) -> Any:
    """The sums of the lengths before each of some parts."""
    return np.cumsum(lengths) - lengths


# ---- the equations of a program --------------------------------------------------------------------------------------


class ValueNumbers(dict[Atom, int]):
    """The numbers of values: of results from 0 on, in their order, of what is from `outside` from -1 downwards."""

    def __init__(self) -> None:
        super().__init__()
        self.results: list[Atom] = []
        self.outside: list[Atom] = []

    def add(self, results: Sequence[Atom]) -> None:
        """Number the results of the next equations."""
        self.update(zip(results, count(len(self.results)), strict=False))
        self.results += results

    def __missing__(self, atom: Atom) -> int:
        self.outside.append(atom)
        number = self[atom] = -len(self.outside)
        return number


class QueryTable:
    """Queries on each equation, for a part of them at a time that fits into the cache of a processor."""

    def __init__(self, program: Program) -> None:
        self.values, self.known, self.avals = ValueNumbers(), Numbers(), Numbers()
        self._params, self._sources = Numbers(), Numbers()
        equations = program.equations
        parts = [self._part(equations[i : i + AT_ONCE]) for i in range(0, max(len(equations), 1), AT_ONCE)]
        columns = map(np.concatenate, zip(*parts, strict=True))
        self.counts, self.arities, self.read, self.primitives, self.params, self.sources, self.looks = columns

    def _part(self, equations: Sequence[Equation]) -> Sequence[Any]:
        results, operands = (list(map(attrgetter(name), equations)) for name in ("results", "operands"))
        values: list[Atom] = list(chain.from_iterable(results))
        self.values.add(values)
        return (
            np.fromiter(map(len, results), np.int64),
            np.fromiter(map(len, operands), np.int64),
            np.fromiter(map(self.values.__getitem__, chain.from_iterable(operands)), np.int64),
            self.known.of(map(attrgetter("primitive"), equations)),
            self._params.of(_params_of(equations)),
            self._sources.of(map(id, map(attrgetter("source"), equations))),
            self.avals.of(map(attrgetter("aval"), values)),
        )


class Lines:
    """The equations of a program that compute something, its `lines`, and what the values that they read are.

    Of `values` the results of all equations come first, `made` of them, then what comes from outside, each constant for
    itself. A value shows its root, and is a view if that is another one: alike to those of equal `looks` but for the
    root, and for where slices begin. Lines of equal `kinds` may be steps of a loop. They have `arities` operands, of
    the numbers `operands`, and `counts` results, of the numbers `results`.
    """

    def __init__(self, program: Program) -> None:
        table = QueryTable(program)
        equations = self._equations = program.equations
        self._numbers, self.made = table.values, len(table.values.results)
        for atom in (*program.inputs, *program.outputs):
            self.number(atom)
        outside = self._numbers.outside
        self.values = [*self._numbers.results, *reversed(outside)]
        read = np.where(table.read < 0, table.read + len(self.values), table.read)
        self.looks = np.append(table.looks, table.avals.of(map(attrgetter("aval"), reversed(outside))))
        self._maker = np.repeat(np.arange(len(equations)), table.counts)

        primitives, counts, arities = table.primitives, table.counts, table.arities
        kinds = paired(primitives, table.params)
        is_step = (arities == 1) & np.array(list(map(moves, table.known)), bool)[primitives]
        is_reshape = np.array([each is reshape for each in table.known], bool)[primitives[is_step]]
        is_line = ~is_step
        views, shown = before(counts)[is_step], read[before(arities)[is_step]]
        is_line[is_step] = self._look(views, shown, kinds[is_step], is_reshape)
        deep = np.flatnonzero(is_line & is_step)  # of which it matters where a slice begins
        params = Numbers().of([key_of_params(equations[n]) for n in deep.tolist()])
        kinds[deep] = paired(primitives[deep], params) + len(equations)

        self.lines = list(compress(equations, is_line.tolist()))
        self.arities, self.operands = arities[is_line], read[np.repeat(is_line, arities)]
        self.counts, self.results = counts[is_line], np.flatnonzero(np.repeat(is_line, counts))
        own = paired(kinds[is_line], self._equal_sources(table.sources[is_line]))
        self.kinds = paired(own, folded(self.looks[self.operands], self.arities))

    def _look(self, views: Any, shown: Any, kinds: Any, is_reshape: Any) -> Any:
        """Find out what values show, where some may be views of others; whether these are none, of too many steps.

        Of changes of the shape that follow each other the last one counts.
        """
        size = len(self.values)
        self._roots, self._under = np.arange(size), np.full(size, -1)
        self._under[views] = shown
        is_reshaped = np.zeros(size, bool)
        is_reshaped[views[is_reshape]] = True
        twice = views[is_reshape & is_reshaped[shown]]
        while len(twice):
            self._under[twice] = self._under[self._under[twice]]
            twice = twice[is_reshaped[self._under[twice]]]
        steps = paired(kinds, self.looks[views])
        is_left = np.zeros(size, bool)
        is_left[views] = True
        for _ in range(DEEPEST):
            is_next = is_left[views] & ~is_left[self._under[views]]
            now, under = views[is_next], self._under[views[is_next]]
            self.looks[now] = paired(self.looks[under], steps[is_next]) + self.looks.max() + 1
            self._roots[now] = self._roots[under]
            is_left[now] = False
        self._under[is_left] = -1
        return is_left[views]

    def _equal_sources(self, numbers: Any) -> Any:
        """The numbers of sources such that equal ones have the same, which takes longer to find out."""
        places = np.unique(numbers, return_index=True)[1]
        found = np.zeros(numbers.max(initial=0) + 1, np.int64)
        found[numbers[places]] = Numbers().of([self.lines[n].source for n in places.tolist()])
        return found[numbers]

    def number(self, atom: Atom) -> int:
        """The number of a value."""
        return self._numbers[atom]

    def roots(self, numbers: Any) -> Any:
        """The values that values show, by number."""
        return self._roots[numbers]

    def root(self, atom: Atom) -> Atom:
        """The value that an atom shows."""
        return self.values[self._roots[self._numbers[atom]]]

    def look(self, atom: Atom) -> int:
        """The number that similar views share."""
        return int(self.looks[self._numbers[atom]])

    def view(self, atom: Atom) -> View:
        """The view of an atom."""
        number, steps = self._numbers[atom], []
        while self._under[number] >= 0:
            steps.append(self._equations[self._maker[number]])
            number = self._under[number]
        steps.reverse()
        starts = chain.from_iterable([step.params["starts"] for step in steps if step.primitive is slice_])
        return View(self.values[number], tuple(steps), tuple(starts))

    def starts(self, numbers: Any) -> list[Any]:
        """The starts of the slices of similar views: a vector for each axis of each slice."""
        found: list[Any] = []
        while self._under[numbers[0]] >= 0:
            made = self._maker[numbers]
            if self._equations[made[0]].primitive is slice_:
                several = made if (made != made[0]).any() else made[:1]
                starts = np.array([self._equations[n].params["starts"] for n in several.tolist()], np.int64)
                found = [*np.broadcast_to(starts, (len(made), starts.shape[1])).T, *found]
            numbers = self._under[numbers]
        return found


def _params_of(equations: Sequence[Equation]) -> list[Hashable]:
    """The params of equations as keys, without where slices begin; what has an effect is equal to none."""
    return [
        equation.params["strides"]
        if equation.primitive is slice_
        else _special(equation)
        if equation.regions or equation.primitive.effect
        else equation.static or key_of_params(equation)
        for equation in equations
    ]


def _special(equation: Equation) -> Hashable:
    return object() if acts_outside(equation) else (key_of_params(equation), *map(content_key, equation.regions))


def moves(primitive: Primitive) -> bool:
    """True if a primitive, if it has one operand, only moves elements."""
    lower = primitive.lower
    return isinstance(lower, IndexMap) and lower.guard is None


# ---- what repeats ----------------------------------------------------------------------------------------------------


class Repeats:
    """Finds where a sequence repeats, in constant time a question, by hashes of its prefixes."""

    BASE, MODULUS = 0x9E3779B97F4A7C15, 1 << 64

    def __init__(self, numbers: Any) -> None:
        self._array, self._numbers, size = numbers, numbers.tolist(), len(numbers)
        self._powers = np.cumprod(np.append(np.uint64(1), np.full(size, self.BASE, np.uint64)))
        terms = (numbers + 1).astype(np.uint64) * self._powers[:-1]
        self._hashes = np.append(np.uint64(0), np.cumsum(terms))
        order = np.argsort(numbers, kind="stable")
        is_followed = numbers[order[1:]] == numbers[order[:-1]]
        following = np.zeros(size, np.int64)
        following[order[:-1][is_followed]] = order[1:][is_followed]
        self._next: list[int] = following.tolist()  # 0 where there is none

    def _hash(self, start: int, length: int) -> int:
        """The hash of a part, times a power of the base for where it begins."""
        return int(self._hashes[start + length]) - int(self._hashes[start])

    def periods(self, start: int) -> Iterator[int]:
        """The distances to the next places that are like this one."""
        place = start
        for _ in range(PERIODS):
            place = self._next[place]
            if not place:
                return
            yield place - start

    def blocks(self, start: int, period: int, fewest: int) -> int:
        """The number of adjacent blocks of this length; 0 if there are fewer than `fewest`."""
        numbers, last = self._numbers, start + period * (fewest - 1)
        if last + period > len(numbers) or numbers[last] != numbers[start]:  # as nearly always where nothing repeats
            return 0
        if numbers[start + 1] != numbers[start + period + 1] or not self._alike(start, period, last - start):
            return 0
        low, most = period * (fewest - 1), len(numbers) - start - period
        while low < most and self._alike(start, period, min(2 * low, most)):
            low = min(2 * low, most)
        high = min(2 * low, most + 1)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._alike(start, period, middle) else (low, middle)
        end = start + low  # a hash may be that of another sequence
        is_so = np.array_equal(self._array[start:end], self._array[start + period : end + period])
        return low // period + 1 if is_so else 0

    def _alike(self, start: int, period: int, length: int) -> bool:
        here, there = self._hash(start, length), self._hash(start + period, length)
        return (here * int(self._powers[period]) - there) % self.MODULUS == 0
