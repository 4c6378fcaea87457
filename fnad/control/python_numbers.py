"""Python's own numbers in a loop: what a step computes of them alone has to be what Python would compute.

Python's integers have any size, and a division of its numbers by 0 raises. In a loop they are values that are carried,
of 64 bits. So each integer that a step computes of such numbers alone has an interval here, which has to fit; and
what divides or takes powers of them is refused, except by a number whose interval does not have 0 in it. A float has an
interval if it is computed of integers and constants; rounding is monotonic, so that its ends bound it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from fnad.control.ways import Way
from fnad.ir.program import Atom, Equation, Literal

FAR, STEP = 2**60, 2**20
"""The largest value of a number that grows by at most `STEP` in a step: a loop takes fewer than 2**40 steps."""


class Interval(NamedTuple):
    """The integers from `low` to `high`, or the floats."""

    low: float
    high: float

    @property
    def has_zero(self) -> bool:
        return self.low <= 0 <= self.high

    def union(self, other: Interval) -> Interval:
        return Interval(min(self.low, other.low), max(self.high, other.high))

    def lies_in(self, other: Interval) -> bool:
        return other.low <= self.low and self.high <= other.high


class UnsafeError(Exception):
    """A number may not be what Python would compute."""


FLOAT = Interval(-math.inf, math.inf)
"""The interval of a bool, and of a float that may be any."""

WIDEST = Interval(-FAR, FAR)
COUNTS = Interval(0, 2**40)
FEW, SHORT = 4, 64
"""The times that intervals grow by results of steps before they are the widest; so many steps have exact ones."""


def _corners(function: Callable[[Any, Any], Any], x: Interval, y: Interval) -> Interval:
    found = [function(a, b) for a, b in product(x, y)]
    return Interval(min(found), max(found))


def _magnitude(x: Interval) -> Interval:
    low = 0 if x.low <= 0 <= x.high else min(abs(x.low), abs(x.high))
    return Interval(low, max(abs(x.low), abs(x.high)))


def _divided(x: Interval, y: Interval) -> Interval:
    if y.low != y.high or not y.low:
        raise UnsafeError
    return _corners(lambda a, b: a // b, x, y)


def _remainder(x: Interval, y: Interval) -> Interval:
    if y.low != y.high or not y.low:
        raise UnsafeError
    return Interval(min(y.low + 1, 0), max(y.low - 1, 0))


INTEGERS: dict[str, Callable[..., Interval]] = {
    "add": partial(_corners, lambda a, b: a + b),
    "sub": partial(_corners, lambda a, b: a - b),
    "mul": partial(_corners, lambda a, b: a * b),
    "maximum": partial(_corners, max),
    "minimum": partial(_corners, min),
    "neg": lambda x: Interval(-x.high, -x.low),
    "abs": _magnitude,
    "floor_divide": _divided,
    "remainder": _remainder,
    "reshape": lambda x: x,
}
"""The interval of the result of an operation on integers."""

EXACT = ("add", "sub", "mul", "maximum", "minimum", "neg", "abs")
"""The operations on floats whose results have an interval."""

LOOPS = ("scan", "while_loop")
DIVIDING = {"div", "floor_divide", "remainder", "pow", "int_pow", "fmod", "trunc_divide"}


def check_numbers(ways: Sequence[Way], start: Mapping[int, Interval], steps: int | None) -> None:
    """Raise `UnsafeError` where a way may not compute what Python would of its own numbers.

    `start` has those that are carried, with the interval of each at the start, or `FLOAT`.
    """
    counts = COUNTS if steps is None else Interval(0, steps)
    before = dict(start)
    exact = steps is not None and steps <= SHORT
    for _ in range(steps if exact and steps is not None else FEW):
        after = dict(before)
        for way in ways:
            for slot, found in _outputs(way, before, counts).items():
                after[slot] = after[slot].union(found)
        if after == before:
            return
        before = after
    if exact:
        return
    wide = {slot: _widened(start[slot], before[slot]) for slot in start}
    for way in ways:
        for slot, found in _outputs(way, wide, counts).items():
            low, high = wide[slot]
            if not found.lies_in(Interval(low - STEP * (low == -FAR), high + STEP * (high == FAR))):
                raise UnsafeError


def _widened(start: Interval, later: Interval) -> Interval:
    """The interval of a number in all steps, where it goes on to grow on the sides on which it has grown."""
    if start is FLOAT:
        return FLOAT
    return Interval(start.low if later.low == start.low else -FAR, start.high if later.high == start.high else FAR)


def _outputs(way: Way, carried: Mapping[int, Interval], counts: Interval) -> dict[int, Interval]:
    """The intervals of carried integers behind a step."""
    known: dict[Atom, Interval] = {way.counter: counts}
    known.update((var, carried[slot]) for slot, var in way.inputs.items() if slot in carried)
    for equation in way.equations:
        if equation.primitive.name in LOOPS:  # whose steps are steps too, and were looked at before
            known.update((var, WIDEST) for var in equation.results if var.aval.dtype.kind == "i")
            continue
        operands = [_interval(atom, known) for atom in equation.operands]
        if any(x is None for x in operands) or all(isinstance(atom, Literal) for atom in equation.operands):
            continue
        known.update(dict.fromkeys(equation.results, _result(equation, operands)))
    outputs = {slot: atom for slot, atom in way.outputs.items() if slot in carried and carried[slot] is not FLOAT}
    found = {slot: _interval(atom, known) for slot, atom in outputs.items()}
    if None in found.values():
        raise UnsafeError
    return {slot: interval for slot, interval in found.items() if interval is not None}


def _interval(atom: Atom, known: Mapping[Atom, Interval]) -> Interval | None:
    if not isinstance(atom, Literal):
        return known.get(atom)
    value = np.abs(atom.value).item() if atom.aval.dtype.kind == "c" else atom.value.item()
    return Interval(value, value) if np.isfinite(value) else FLOAT


def _result(equation: Equation, operands: Sequence[Any]) -> Interval:
    name, kind = equation.primitive.name, equation.results[0].aval.dtype.kind
    if kind != "i":
        if name in DIVIDING and (name in ("pow", "int_pow") or operands[-1].has_zero):
            raise UnsafeError
        if name == "convert" and kind == "f":
            return operands[0]
        found = INTEGERS[name](*operands) if name in EXACT and FLOAT not in operands and kind == "f" else FLOAT
        return found if np.isfinite(found).all() else FLOAT
    if name == "select":
        return operands[1].union(operands[2])
    if name not in INTEGERS:
        raise UnsafeError
    found = INTEGERS[name](*operands)
    if not found.lies_in(Interval(-(2**63), 2**63 - 1)):
        raise UnsafeError
    return found
