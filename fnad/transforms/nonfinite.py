"""The first nan or inf in a run of a program, among those that reach its results.

The program is interpreted, and what is not finite is followed. It arises in an equation that makes it of finite
operands, or a nan of an inf that came from outside; otherwise it has the origin of the operand that it came from. What
inputs and constants hold has none: a mask of -inf is no finding. Nor is what no result depends on, such as the branch
that `where` does not choose. Regions are interpreted in the same way, so that the step of a loop is known.

Elementwise operations are followed by elements, others by whole arrays: a result that is not finite is taken to come
from whatever operand is not finite anywhere. If several are, the one that arose first is blamed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fnad.errors import FnadError, NonFiniteError
from fnad.ir.axes import Elementwise
from fnad.ir.constant import static_text
from fnad.ir.primitive import ScanLoop, WhileLoop
from fnad.ir.program import Atom, Equation, Literal, Program, Source, Var
from fnad.ir.types import Aval, aval_of
from fnad.transforms.interpret import NEVER, Run, regions_by

REMEDY = "keep its operands away from there: choose them by np.where, or bound them by np.maximum, before the operation"

Index: TypeAlias = tuple[int, ...]


class LoopStep(NamedTuple):
    """A step of a loop: its number from 0, in the order of the arrays that a scan goes over."""

    equation: Equation
    number: int

    def __str__(self) -> str:
        return f"in step {self.number} of {self.equation.primitive.name} at {self.equation.source}"


class Origin(NamedTuple):
    """The origin of a nan or inf: the equation, the element, and the steps of the loops around, the outermost first.

    `operands` are the elements that an elementwise operation made it of, and whole arrays for other operations.
    """

    number: int
    equation: Equation
    aval: Aval
    place: Index
    value: np.generic
    operands: tuple[Any, ...]
    steps: tuple[LoopStep, ...]

    @property
    def source(self) -> Source | None:
        """The user's line; that of the forward operation, if a derivative of it is to blame."""
        return self.equation.source

    @property
    def mode(self) -> str:
        """The derivative that the equation is part of: "reverse mode", "forward mode of reverse mode"; "" for none."""
        return "" if self.source is None else self.source.mode

    def error(self) -> NonFiniteError:
        """The error that says all of it."""
        error = NonFiniteError(str(self), source=self.source, remedy=REMEDY)
        error.origin = self
        return error

    def __str__(self) -> str:
        kind = "nan" if np.isnan(self.value) else "inf"
        mode = f" in {self.mode}" if self.mode else ""
        element = f", element {list(self.place)} of {self.aval}" if self.place else ""
        lines = [f"{kind} arises{mode}: {self.call} = {self.value}{element}", *[f"  {step}" for step in self.steps]]
        return "\n".join(lines)

    @property
    def call(self) -> str:
        """The operation with its operands and params."""
        params = [f"{name}={static_text(value)}" for name, value in self.equation.params.items()]
        return f"{self.equation.primitive.name}({', '.join([*map(_text, self.operands), *params])})"


def _text(operand: Any) -> str:
    array = np.asarray(operand)
    if array.size == 0:
        return str(aval_of(array))
    return f"{aval_of(array)} from {array.min()} to {array.max()}" if array.shape else str(array)


Found: TypeAlias = tuple[list[Any], list[Origin | None]]
"""Values, and of each that is not finite its origin, if it arose in the run."""


def follow(program: Program, arguments: Sequence[Any]) -> Found:
    """The outputs of the program on these arrays, and their origins.

    Raises `NonFiniteError` if an operation fails (a singular matrix, a loop that does not end) and has an operand that
    is not finite; what else it raises, programs raise too.
    """
    with np.errstate(all="ignore"):
        return _follow(program, arguments, (), count())


def _follow(program: Program, arguments: Sequence[Any], steps: tuple[LoopStep, ...], numbers: count[int]) -> Found:
    values: dict[Var, Any] = dict(zip(program.inputs, arguments, strict=True))
    origins: dict[Var, Origin] = {}
    for equation in program.equations:
        operands, given = _read(equation.operands, values, origins)
        results, inside = _evaluated(equation, operands, given, steps, numbers)
        for var, value in zip(equation.results, results, strict=True):
            values[var] = value
            if is_not_finite(value):
                earlier = _earlier(equation, operands, given, value)
                own = inside if equation.regions else _arising(equation, operands, value, steps, numbers)
                if (origin := earlier or own) is not None:
                    origins[var] = origin
    return _read(program.outputs, values, origins)


def _read(atoms: Sequence[Atom], values: Mapping[Var, Any], origins: Mapping[Var, Origin]) -> Found:
    found = [atom.value if isinstance(atom, Literal) else values[atom] for atom in atoms]
    return found, [None if isinstance(atom, Literal) else origins.get(atom) for atom in atoms]


def is_not_finite(value: Any) -> bool:
    """True if an array of numbers holds a nan or an inf."""
    return np.asarray(value).dtype.kind in "fc" and not np.isfinite(value).all()


def _evaluated(
    equation: Equation,
    operands: Sequence[Any],
    given: Sequence[Origin | None],
    steps: tuple[LoopStep, ...],
    numbers: count[int],
) -> tuple[Sequence[Any], Origin | None]:
    """The results of an equation, and the first origin in its regions of what these return."""
    runs: Counter[Program] = Counter()
    inside: list[Origin] = []

    def runner(region: Program) -> Run:
        return partial(run, region)

    def run(region: Program, arguments: Sequence[Any], _: float = NEVER) -> list[Any]:
        around = steps_of(equation, operands, runs[region])
        runs[region] += 1
        results, origins = _follow(region, arguments, (*steps, *around), numbers)
        if not inside:  # later steps have what is not finite from this one
            inside.extend(filter(None, origins))
        return results

    try:
        with regions_by(runner):
            results = equation.primitive.evaluate(*operands, **equation.keywords)
    except NonFiniteError:
        raise
    except FnadError as error:
        if (blamed := first([*given, *inside])) is not None:
            raise blamed.error() from error
        raise error.at(equation.source) from None
    return results if isinstance(results, tuple) else (results,), first(inside)


def first(origins: Iterable[Origin | None]) -> Origin | None:
    """The origin that arose first, if there is any."""
    return min(filter(None, origins), key=lambda origin: origin.number, default=None)


def steps_of(equation: Equation, operands: Sequence[Any], run: int) -> list[LoopStep]:
    """The step of a loop whose region runs for this time; nothing if it is no loop."""
    match equation.primitive.lower:
        case ScanLoop():
            length = equation.params["length"]
            last = (int(operands[0]) if length is None else length) - 1
            return [LoopStep(equation, last - run if equation.params["reverse"] else run)]
        case WhileLoop():
            return [LoopStep(equation, run)]
        case _:
            return []


def _earlier(equation: Equation, operands: Sequence[Any], given: Sequence[Origin | None], value: Any) -> Origin | None:
    """The first origin among the operands that a value that is not finite may come from."""
    bad = ~np.isfinite(value)
    by_element = isinstance(equation.primitive.axes, Elementwise)
    meets = [
        origin and (not by_element or (bad & ~np.isfinite(x)).any()) for x, origin in zip(operands, given, strict=True)
    ]
    return first(origin for origin, met in zip(given, meets, strict=True) if met)


def _arising(
    equation: Equation, operands: Sequence[Any], value: Any, steps: tuple[LoopStep, ...], numbers: count[int]
) -> Origin | None:
    """The origin of a value that is not finite, if it is in this equation: no operand explains it."""
    by_element = isinstance(equation.primitive.axes, Elementwise)

    def held(test: Any) -> Any:
        found = [test(x) for x in operands if np.asarray(x).dtype.kind in "fc"]
        return np.logical_or.reduce(found) if by_element and found else any(x.any() for x in found)

    arising = np.where(np.isnan(value), np.logical_not(held(np.isnan)), np.logical_not(held(lambda x: ~np.isfinite(x))))
    places = np.argwhere(arising & ~np.isfinite(value))
    if not len(places):
        return None
    index = tuple(map(int, places[0]))
    elements = tuple(np.asarray(x)[index] for x in operands) if by_element else tuple(operands)
    array = np.asarray(value)
    return Origin(next(numbers), equation, aval_of(array), index, array[index], elements, steps)
