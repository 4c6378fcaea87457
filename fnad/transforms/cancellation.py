"""Values that cancel out, such as the largest element that is subtracted before an exponential: they get no derivative.

    m = max(x)
    e = exp(x - m)            times exp(-d) if m grows by d
    s = sum(e)                times exp(-d)
    y = e / s                 as before

If m grows by d, some values grow by a multiple of d, and others by the factor exp of one. Where no result grows, the
derivative with respect to m is 0, of any order. So m is put into a `stop_gradient`: what would compute that 0, up to
rounding and by passes over all of x, is never there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from heapq import heappop, heappush
from math import isfinite, prod
from typing import NamedTuple

from fnad.ir.primitive import Bilinear, Concatenation, Gather, IndexMap, Linear, NonDifferentiable
from fnad.ir.program import Atom, Equation, Literal, Program, Var
from fnad.ir.types import is_inexact
from fnad.ops.arithmetic import add, div, mul, neg, strong_mul, sub
from fnad.ops.autodiff import stop_gradient
from fnad.ops.comparison import select
from fnad.ops.conversion import convert
from fnad.ops.elementary import exp, log, sqrt
from fnad.ops.indexing import gather
from fnad.ops.logistic import weighted_exp
from fnad.ops.shape import broadcast_in_dim, pad, reduce_sum, reshape, slice_, transpose
from fnad.transforms.by_rows import counted_axes
from fnad.transforms.sparsity import aligned_axes

FARTHEST = 40
"""The number of equations through which a value is followed."""


class Shift(NamedTuple):
    """The change of a value if m grows by d: times exp(degree · d) if it `scales`, otherwise plus degree · d.

    The axes of m with several elements are these `axes` of the value.
    """

    scales: bool
    degree: Fraction
    axes: tuple[int, ...]


class UnknownShiftError(Exception):
    """There is no such shift."""


def without_cancelled(program: Program) -> Program:
    """The program with each value that cancels out in a `stop_gradient`."""
    found = _Cancellation(program).found()
    return _stopped(program, found) if found else program


def _stopped(program: Program, found: set[Var]) -> Program:
    stopped: dict[Atom, Var] = {}
    equations: list[Equation] = []
    for equation in program.equations:
        equations.append(replace(equation, operands=tuple(stopped.get(a, a) for a in equation.operands)))
        for var in found.intersection(equation.results):
            stopped[var] = Var(var.aval)
            equations.append(Equation((stopped[var],), stop_gradient, (var,), source=equation.source))
    return Program(program.name, program.inputs, tuple(equations), program.outputs)


class _Cancellation:
    """The search for values that cancel out in a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.made = {var: equation for equation in program.equations for var in equation.results}
        self.readers: dict[Atom, list[int]] = defaultdict(list)
        for number, equation in enumerate(program.equations):
            for atom in equation.operands:
                self.readers[atom].append(number)
        self.outputs = {atom for atom in program.outputs if is_inexact(atom.aval.dtype)}
        self.cancelled: set[Var] = set()

    def found(self) -> set[Var]:
        """The values; the last first, since what depends on m through another one of them does not count."""
        tried: dict[Atom, int] = {}  # and how many were found before
        for equation in reversed(self.program.equations):
            m = self._origin(equation.operands[1]) if equation.primitive is sub else None
            if m not in self.made or m.aval.dtype.kind != "f" or tried.get(m) == len(self.cancelled):
                continue
            tried[m] = len(self.cancelled)
            if m not in self.cancelled and self._cancels(m):
                self.cancelled.add(m)
        return self.cancelled

    def _origin(self, atom: Atom) -> Atom:
        """The value of which a value is a reshape or broadcast."""
        equation = self.made.get(atom) if isinstance(atom, Var) else None
        moved = equation is not None and equation.primitive in (broadcast_in_dim, reshape)
        return self._origin(equation.operands[0]) if equation is not None and moved else atom

    def _cancels(self, m: Atom) -> bool:
        """True if no result changes as m does."""
        axes = tuple(axis for axis, n in enumerate(m.aval.shape) if n != 1)
        shifts: dict[Atom, Shift] = {m: Shift(False, Fraction(1), axes)}
        pending, met = list(self.readers[m]), set(self.readers[m])
        while pending:
            equation = self.program.equations[heappop(pending)]
            try:
                shift = self._shift(equation, shifts)
            except UnknownShiftError:
                return False
            (result, *_) = equation.results
            if shift is None or result in self.cancelled:
                continue
            shifts[result] = shift
            for number in self.readers[result]:
                if number not in met:
                    met.add(number)
                    heappush(pending, number)
            if len(met) > FARTHEST:
                return False
        return not self.outputs.intersection(shifts)

    def _shift(self, equation: Equation, shifts: dict[Atom, Shift]) -> Shift | None:
        """The shift of a result; None if it stays as it is."""
        operands = [shifts.get(atom) for atom in equation.operands]
        primitive = equation.primitive
        if equation.regions or primitive.effect or len(equation.results) != 1:
            raise UnknownShiftError
        if isinstance(primitive.derivative, NonDifferentiable) or not is_inexact(equation.results[0].aval.dtype):
            return None
        moved = [shift and self._moved(equation, place, shift) for place, shift in enumerate(operands)]
        match [shift.scales for shift in moved if shift is not None]:
            case scales if all(scales):
                return self._scaled(equation, moved)
            case scales if not any(scales):
                return self._translated(equation, moved)
            case _:
                raise UnknownShiftError

    def _moved(self, equation: Equation, place: int, shift: Shift) -> Shift:
        """The shift of an operand with the axes as those of the result."""
        if not shift.axes:
            return shift
        places = _places(equation, place)
        if equation.primitive is gather and place == 0:
            places |= counted_axes(equation.operands[0], equation.operands[1:], self.made)
        if any(axis not in places for axis in shift.axes):
            raise UnknownShiftError
        return shift._replace(axes=tuple(places[axis] for axis in shift.axes))

    def _scaled(self, equation: Equation, shifts: Sequence[Shift | None]) -> Shift | None:
        """The shift of a result where all shifts are factors."""
        primitive, derivative = equation.primitive, equation.primitive.derivative
        if primitive is log:
            return _one(shifts)._replace(scales=False)
        if primitive is sqrt:
            return _times(_one(shifts), Fraction(1, 2))
        if primitive is div:
            return _sum([shifts[0], shifts[1] and _times(shifts[1], Fraction(-1))])
        match derivative:
            case Bilinear():
                return _sum(shifts)
            case Linear(_, wrt):
                linear = range(len(shifts)) if wrt is None else wrt
                if any(shifts[place] for place in range(len(shifts)) if place not in linear):
                    raise UnknownShiftError
                return _one([shifts[place] for place in linear if self._number(equation.operands[place]) != 0])
            case _:
                raise UnknownShiftError

    def _translated(self, equation: Equation, shifts: Sequence[Shift | None]) -> Shift | None:
        """The shift of a result where all shifts are terms."""
        primitive = equation.primitive
        if primitive is exp or (primitive is weighted_exp and shifts[0] is None):
            return _one(shifts[-1:])._replace(scales=True)
        if primitive is add:
            return _sum(shifts)
        if primitive is sub:
            return _sum([shifts[0], shifts[1] and _times(shifts[1], Fraction(-1))])
        if primitive is neg:
            return _times(_one(shifts), Fraction(-1))
        if primitive is reduce_sum:
            shape = equation.operands[0].aval.shape
            return _times(_one(shifts), Fraction(prod(shape[axis] for axis in equation.params["axes"])))
        if primitive in (mul, strong_mul, div):
            return self._multiple(equation, shifts)
        if primitive is select:
            return _one(shifts[1:])
        if primitive is gather:
            return _one(shifts[:1])
        if primitive is convert or _moves(equation):
            return _one(shifts)
        raise UnknownShiftError

    def _multiple(self, equation: Equation, shifts: Sequence[Shift | None]) -> Shift:
        """The shift of a product with a number, or of a quotient by one."""
        (place,) = [place for place, shift in enumerate(shifts) if shift is not None] if None in shifts else [-1]
        number, shift = self._number(equation.operands[1 - place]) if place >= 0 else None, shifts[place]
        if number is None or shift is None or number == 0 or (equation.primitive is div and place == 1):
            raise UnknownShiftError
        return _times(shift, 1 / number if equation.primitive is div else number)

    def _number(self, atom: Atom) -> Fraction | None:
        """The real number that a value is, in any shape."""
        origin = self._origin(atom)
        if not isinstance(origin, Literal) or origin.value.dtype.kind != "f" or not isfinite(origin.value):
            return None
        return Fraction(float(origin.value))


def _times(shift: Shift, number: Fraction) -> Shift:
    return shift._replace(degree=shift.degree * number)


def _sum(shifts: Sequence[Shift | None]) -> Shift | None:
    """The shift by the sum of these; None if it is 0."""
    given = [shift for shift in shifts if shift is not None]
    degree = sum((shift.degree for shift in given), Fraction(0))
    if any(shift.axes != given[0].axes for shift in given):
        raise UnknownShiftError
    return given[0]._replace(degree=degree) if degree else None


def _one(shifts: Sequence[Shift | None]) -> Shift:
    """The shift that all of these are."""
    first = shifts[0]
    if first is None or any(shift != first for shift in shifts):
        raise UnknownShiftError
    return first


def _moves(equation: Equation) -> bool:
    """True if each element of the result is one of an operand."""
    lower = equation.primitive.lower
    return isinstance(lower, Gather | Concatenation) or (isinstance(lower, IndexMap) and lower.guard is None)


def _places(equation: Equation, place: int) -> dict[int, int]:
    """The axes of a result that axes of an operand become."""
    x, y, params = equation.operands[place].aval, equation.results[0].aval, equation.params
    if equation.primitive is broadcast_in_dim:
        return dict(enumerate(params["dims"]))
    if equation.primitive is transpose:
        return {axis: number for number, axis in enumerate(params["permutation"])}
    if equation.primitive is reshape:
        long = [[axis for axis, n in enumerate(shape) if n != 1] for shape in (x.shape, y.shape)]
        same = [x.shape[a] for a in long[0]] == [y.shape[a] for a in long[1]]
        return dict(zip(*long, strict=True)) if same else {}
    if equation.primitive in (slice_, pad):
        return {axis: axis for axis, n in enumerate(x.shape) if n == y.shape[axis]}
    avals = [atom.aval for atom in equation.operands]
    return dict(aligned_axes(equation.primitive, avals, params)[place])
