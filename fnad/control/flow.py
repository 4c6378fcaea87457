"""The sources of the operands of repeated blocks, and the choice of the blocks that become a loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from operator import attrgetter
from typing import Any, NamedTuple, cast

import numpy as np

from fnad.control.repeats import Lines, View, before
from fnad.control.rolled import FEWEST, SMALLEST, weight
from fnad.ir.program import Atom, Literal, Source, Var

FARTHEST = 3
"""From how many blocks before a value may come."""

MOST_LENGTHS = 3
"""The most lengths of inner loops in a loop around them: the first one and the last one may be cut."""

EQUATIONS_A_NUMBER = 4
"""The fewest equations that a loop replaces for each float of its tables."""

OUTSIDE = -(1 << 40)
NUMBER = -(1 << 50)
"""Codes of operands: values from before the loop are counted downwards from the first; others are places in a block."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Blocks that become a loop: `count` of `period` lines, from `start`; a block has `size` results.

    `codes` say of each operand of a block where it comes from. `roots` are the numbers of what the operands show, and
    `starts` where their slices begin, a row a block.
    """

    start: int
    period: int
    count: int
    size: int
    codes: list[int]
    roots: Any
    starts: Any

    @property
    def end(self) -> int:
        """The line after it."""
        return self.start + self.period * self.count


def distance(code: int, size: int) -> int:
    """The number of blocks since the operand was computed; 0 for the same block and for values from outside."""
    return 0 if code >= 0 or code <= OUTSIDE else -(code // size)


class Flow:
    """The flow of values between the lines of a program: the place of each value, and the sources of operands.

    The place of a result is its number among those of lines, in which that of the first one of each line is `first`.
    """

    def __init__(self, listed: Lines) -> None:
        self.listed, self.lines = listed, listed.lines
        self.first, self.slots = ([0, *np.cumsum(each).tolist()] for each in (listed.counts, listed.arities))
        self.roots = listed.roots(listed.operands)
        size = len(listed.values)
        self._places = -1 - np.arange(size)
        self._places[listed.results] = np.arange(len(listed.results))
        outside = range(listed.made, size)
        self._places[[n for n in outside if isinstance(listed.values[n], Literal)]] = NUMBER
        self.places = self._places[self.roots]
        self._weights = np.ones(len(self.lines) + 1, np.int64)
        with_regions = list(compress(range(len(self.lines)), map(attrgetter("regions"), self.lines)))
        self._weights[with_regions] = [weight(self.lines[n]) for n in with_regions]
        self._weights = before(self._weights)

    def atoms(self, numbers: Any) -> list[Atom]:
        """Values by their numbers."""
        return [self.listed.values[n] for n in numbers.tolist()]

    def result(self, place: int) -> Var:
        """The result of a line."""
        return cast("Var", self.listed.values[self.listed.results[place]])

    def place(self, atom: Atom) -> int:
        """The source of a value: the place of a result, a negative number from outside, NUMBER for a constant."""
        return int(self._places[self.listed.number(atom)])

    def weight(self, start: int, end: int) -> int:
        """The number of equations of lines, with those in regions."""
        return int(self._weights[end] - self._weights[start])

    def blocks(self, values: Any, start: int, period: int, count: int) -> Any:
        """The values of each operand, for so many blocks, a row a block."""
        return values[self.slots[start] : self.slots[start + period * count]].reshape(count, -1)

    def views(self, start: int, period: int) -> list[View]:
        """The operands of a block."""
        operands = chain.from_iterable([line.operands for line in self.lines[start : start + period]])
        return list(map(self.listed.view, operands))

    def starts(self, start: int, period: int, count: int) -> Any:
        """The starts of the operands' slices, a row a block."""
        operands = self.blocks(self.listed.operands, start, period, count)
        columns = chain.from_iterable(map(self.listed.starts, operands.T))
        return np.array(list(columns), np.int64).reshape(-1, count).T

    def codes(self, start: int, period: int, count: int) -> Any:
        """The sources of the operands of blocks, a row a block."""
        base, size = self.first[start], self.first[start + period] - self.first[start]
        places = self.blocks(self.places, start, period, count)
        begin = base + size * np.arange(count)[:, None]
        is_outside = (places < base) | (places < begin - FARTHEST * size)
        codes = np.where(is_outside, OUTSIDE - (places + len(self._places)), places - begin)
        return np.where(places == NUMBER, NUMBER, codes)

    def is_before(self, number: int, line: int) -> bool:
        """True if a value is there before a line runs."""
        return bool(self._places[number] < self.first[line])


class BlockRun:
    """Blocks side by side that have equations alike."""

    def __init__(self, flow: Flow, start: int, period: int, count: int) -> None:
        self.flow, self.start, self.period, self.count = flow, start, period, count
        first = flow.first
        self.size = first[start + period] - first[start]
        self.roots = flow.blocks(flow.roots, start, period, count)
        self.codes = flow.codes(start, period, count)
        self.starts = flow.starts(start, period, count)
        self.same = np.ones(count, bool)  # as the block before
        self.same[1:] = (self.codes[1:] == self.codes[:-1]).all(axis=1)
        self.has_tables = False
        self.even = np.ones(count, bool)  # as far from the block before, in places and numbers, as that from its own
        self.even[2:] = self._evenly_placed() & self._even_numbers()

    def _evenly_placed(self) -> Any:
        return (np.diff(self.starts, 2, axis=0) == 0).all(axis=1)

    def _even_numbers(self) -> Any:
        even = np.ones(self.count - 2, bool)
        for slot in np.flatnonzero((self.codes == NUMBER).any(axis=0)).tolist():
            roots = self.flow.atoms(self.roots[:, slot])
            indices = integers(roots)
            if indices is not None:
                even &= np.diff(indices, 2) == 0
                continue
            values = [root.value if isinstance(root, Literal) else None for root in roots]
            keys = [root.key if isinstance(root, Literal) else None for root in roots]
            if len(set(keys)) > 1:
                even &= [grows_evenly(values[b : b + 3], keys[b : b + 3]) for b in range(self.count - 2)]
        return even

    def segments(self) -> list[Segment]:
        """The blocks that become loops, if they are enough in all.

        Places or numbers that do not grow evenly are taken from tables if most steps would be left out otherwise. So
        they are if the loops would have many lengths, because a loop around them would not be found.
        """
        found = list(self._segments())
        lengths, covered = {each.count for each in found}, sum(each.count for each in found)
        if (2 * covered < self.count or len(lengths) > MOST_LENGTHS) and not self.even.all():
            regular, self.even, self.has_tables = self.even, np.ones(self.count, bool), True
            longer = [each for each in self._segments() if self._is_worth_tables(each)]
            if sum(each.count for each in longer) > covered:
                found = longer
            else:
                self.even, self.has_tables = regular, False
        return found if sum(self.flow.weight(each.start, each.end) for each in found) >= SMALLEST else []

    def _is_worth_tables(self, segment: Segment) -> bool:
        """True if the loop is long, and replaces many more equations than its tables have floats.

        A chain of few operations on arrays runs faster unrolled, where it is fused; what has irregular indices is none.
        """
        tables: set[tuple[Any, ...]] = set()
        for slot in [slot for slot, code in enumerate(segment.codes) if code == NUMBER]:
            roots = self.flow.atoms(segment.roots[:, slot])
            numbers = [root for root in roots if isinstance(root, Literal)]
            if numbers[0].aval.dtype.kind in "fc" and not is_growth(numbers):
                tables.add(tuple([number.key for number in numbers]))
        fewest = max(SMALLEST, EQUATIONS_A_NUMBER * segment.count * len(tables))
        return self.flow.weight(segment.start, segment.end) >= fewest

    def _segments(self) -> Iterator[Segment]:
        begin = done = 0
        while begin < self.count - 1:
            end = begin + 1
            while end < self.count and self.same[end] and (end < begin + 2 or self.even[end]):
                end += 1
            if end - begin >= 2:
                first = next(b for b in range(max(done, begin - FARTHEST), begin + 1) if self._may_begin(b, begin, end))
                if end - first >= FEWEST and self._grow(first, end):
                    done = end
                    start = self.start + first * self.period
                    parts = self.roots[first:end], self.starts[first:end]
                    yield Segment(start, self.period, end - first, self.size, self.codes[end - 1].tolist(), *parts)
                    begin = end
                    continue
            begin = max(begin + 1, end - 1)

    def _grow(self, first: int, end: int) -> bool:
        """True if the numbers that differ among blocks grow evenly to the bit, or may be a table."""
        for slot in np.flatnonzero(self.codes[end - 1] == NUMBER).tolist():
            roots = self.flow.atoms(self.roots[first:end, slot])
            literals = [root for root in roots if isinstance(root, Literal)]
            if not self.has_tables and not is_growth(literals):
                return False
        return True

    def _may_begin(self, first: int, begin: int, end: int) -> bool:
        """True if the blocks from `begin` to `end` may be lengthened to the `first`."""
        if first == begin:
            return True
        if not self.even[first + 2 : begin + 2].all():
            return False
        line = self.start + first * self.period
        codes = self.codes[end - 1]
        for b in range(first, begin):
            for slot in np.flatnonzero(self.codes[b] != codes):
                if b >= first + distance(int(codes[slot]), self.size):
                    return False
                if not self.flow.is_before(self.roots[b, slot], line):
                    return False
        return True

    def cuts(self) -> list[int]:
        """The blocks at which another loop begins."""
        return [b for b in range(1, self.count) if not self.same[b] or (b > 1 and not self.even[b])]

    def difference(self, found: Sequence[Segment]) -> tuple[Source | None, str] | None:
        """The first difference between a block and those before, and its line; None if there is none."""
        end = (found[0].end - self.start) // self.period if found else 2
        cuts = [b for b in self.cuts() if b >= end]
        if not cuts:
            return None
        block = cuts[0]
        blocks = [
            self.flow.views(self.start + b * self.period, self.period) for b in range(max(block - 2, 0), block + 1)
        ]
        lines = self.flow.lines[self.start + block * self.period : self.start + (block + 1) * self.period]
        sources = [line.source for line in lines for _ in line.operands]
        for slot, views in enumerate(zip(*blocks, strict=True)):
            what = self._difference_at(block, slot, views)
            if what is not None:
                return sources[slot], f"step {block + 1} {what}"
        return None

    def _difference_at(self, block: int, slot: int, views: Sequence[View]) -> str | None:
        if self.codes[block - 1][slot] != self.codes[block][slot]:
            return "takes a value from elsewhere than the step before"
        if block < 2:
            return None
        earlier, before, view = views
        if isinstance(view.root, Literal) and isinstance(before.root, Literal) and isinstance(earlier.root, Literal):
            roots = earlier.root, before.root, view.root
            if not grows_evenly([root.value for root in roots], [root.key for root in roots]):
                return f"takes the number {view.root.value!s} after {before.root.value!s} and {earlier.root.value!s}"
        pairs = zip(earlier.starts, before.starts, view.starts, strict=True)
        uneven = next(((a, b, c) for a, b, c in pairs if c - b != b - a), None)
        return None if uneven is None else "reads from index {2} after {1} and {0}".format(*uneven)


# ---- numbers that grow -----------------------------------------------------------------------------------------------


def is_growth(numbers: Sequence[Literal]) -> bool:
    """True if numbers are all equal, or grow evenly to the bit."""
    indices = integers(numbers)
    if indices is not None:
        return step_of(indices) is not None
    return len({each.key for each in numbers}) == 1 or growth([each.value for each in numbers]) is not None


def integers(atoms: Sequence[Atom]) -> Any:
    """Atoms as an array, if all are integers of one dtype whose distances do not overflow."""
    if not {Literal}.issuperset(map(type, atoms)) or len(avals := set(map(attrgetter("aval"), atoms))) > 1:
        return None
    if avals.pop().dtype.kind not in "iu":
        return None
    found = np.array(list(map(attrgetter("value"), atoms)))
    return found.astype(np.int64) if found.min() > -(2**60) and found.max() < 2**60 else None


def step_of(places: Any) -> int | None:
    """The distance of each place, of a vector, from the one before; None if the distances differ."""
    moves = np.diff(places)
    return int(moves[0]) if (moves == moves[0]).all() else None


def grows_evenly(values: Sequence[Any], keys: Sequence[Any]) -> bool:
    """True if three numbers are equal, or about as far from each other; what is no number is neither."""
    a, b, c = values
    if a is None or b is None or c is None or keys[0] == keys[1] == keys[2]:
        return True
    if a.dtype.kind in "iu":
        return int(c) - int(b) == int(b) - int(a) != 0
    if a.dtype.kind != "f" or keys[0] == keys[1] or keys[1] == keys[2]:
        return False
    return abs((float(c) - float(b)) - (float(b) - float(a))) <= 8 * float(np.finfo(a.dtype).eps) * max(abs(a), abs(c))


class Growth(NamedTuple):
    """Numbers by their place k: `by` (`begin` + k) + `first`, or without `first` where that is None."""

    begin: int
    by: np.generic
    first: np.generic | None


def growth(values: Sequence[np.generic]) -> Growth | None:
    """The form of numbers that grow evenly, to the bit; None where there is none."""
    first, second, dtype = values[0], values[1], values[0].dtype
    if dtype.kind in "iu":
        if max(abs(int(value)) for value in values) >= 2**62:
            return None
        by = step_of(np.array(values).astype(np.int64))
        return None if by is None else Growth(0, np.int64(by), np.int64(int(first)))
    if dtype.kind != "f":
        return None
    bits = np.array(values).tobytes()
    with np.errstate(all="ignore"):
        by = second - first  # type: ignore[operator]
        forms = [Growth(0, by, first)]
        ratio = float(first / by)  # type: ignore[operator]
        if np.isfinite(ratio) and abs(ratio) < EXACT:
            begin, last = round(ratio), len(values) - 1
            units = [values[k] / dtype.type(begin + k) for k in (last, 0, 1) if begin + k]  # type: ignore[operator]
            forms += [Growth(begin, unit, None) for unit in (*units, by)]
        return next((form for form in reversed(forms) if _numbers(form, len(values), dtype).tobytes() == bits), None)


def _numbers(form: Growth, count: int, dtype: Any) -> Any:
    found = (np.arange(count) + form.begin).astype(dtype) * form.by
    return found if form.first is None else found + form.first


EXACT = 2**20
"""Counters below it are exact in all dtypes of numbers that are looked at."""
