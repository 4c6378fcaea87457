"""Every primitive with each of its samples, and the programs that consist of one equation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pytest

import fnad.control  # pyright: ignore[reportUnusedImport] registers the primitives
import fnad.ops  # noqa: F401 # pyright: ignore[reportUnusedImport] registers the primitives
from fnad.ir.builder import trace
from fnad.ir.primitive import PRIMITIVES, NoFormula, NonDifferentiable, Partials, Primitive, Sample, Unknown
from fnad.ir.program import Program, keywords
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval, aval_of, is_inexact
from fnad.ops.autodiff import stop_gradient
from tests.together import drawn, in_groups


@dataclass(frozen=True)
class Case:
    """One primitive at one of its samples."""

    primitive: Primitive
    sample: Sample
    number: int

    @property
    def operands(self) -> tuple[Any, ...]:
        return self.sample.operands

    @property
    def avals(self) -> list[Aval]:
        return [aval_of(operand) for operand in self.operands]

    def __str__(self) -> str:
        dtype = str(self.avals[0]).split("[")[0] if self.operands else "none"
        return f"{self.primitive.name}-{self.number}-{dtype}"

    def has_formula(self, operand: int) -> bool:
        """Say whether the primitive can be differentiated with respect to an operand."""
        derivative = self.primitive.derivative
        return not (isinstance(derivative, Partials) and isinstance(derivative.functions[operand], NoFormula))

    def program(self) -> Program:
        return self._program

    @cached_property
    def _program(self) -> Program:
        """Return the program that applies the primitive to its inputs, to those without a formula as constants."""

        return trace(lambda *inputs: self.applied(inputs), *self.avals, name=self.primitive.name)

    def applied(self, inputs: Sequence[Symbol]) -> tuple[Symbol, ...]:
        """Add the primitive's equation to the program under construction; return its results."""
        operands = [x if self.has_formula(i) else stop_gradient(x) for i, x in enumerate(inputs)]
        results = self.primitive(*operands, **self.sample.params, regions=self.sample.regions)
        return results if isinstance(results, tuple) else (results,)

    def evaluate(self, *operands: Any) -> Any:
        with np.errstate(all="ignore"):
            results = self.primitive.evaluate(*operands, **keywords(self.sample.params, self.sample.regions))
        return results[0] if isinstance(results, tuple) and len(results) == 1 else results


@dataclass(frozen=True)
class Result(Case):
    """One result of a primitive that has several."""

    index: int

    def __str__(self) -> str:
        return f"{super().__str__()}-result{self.index}"

    def applied(self, inputs: Sequence[Symbol]) -> tuple[Symbol, ...]:
        return (super().applied(inputs)[self.index],)

    def evaluate(self, *operands: Any) -> Any:
        return super().evaluate(*operands)[self.index]


def by_result(case: Case) -> list[Case]:
    """Return the case, or one for each of its results if there are several."""
    count = len(case.program().out_avals)
    return [case] if count == 1 else [Result(case.primitive, case.sample, case.number, i) for i in range(count)]


def is_determined(case: Case) -> bool:
    """Say whether nearby operands give nearby results: not where vectors have a phase, or a basis is completed."""
    name, params = case.primitive.name, case.sample.params
    if not isinstance(case, Result) or (name, case.index) not in (("eigh", 1), ("svd", 0), ("svd", 2)):
        return True
    *_, m, n = case.avals[0].shape
    is_completed = name == "svd" and params["full"] and abs(m - n) > 1
    return case.avals[0].dtype.kind != "c" and not is_completed


BY_NAME = {
    name: [Case(primitive, sample, number) for number, sample in enumerate(primitive.samples())]
    for name, primitive in PRIMITIVES.items()
}
CASES = [case for cases in BY_NAME.values() for case in cases]


def cases_of(primitive: Primitive) -> list[Case]:
    """Return a primitive with each of its samples."""
    return BY_NAME[primitive.name]


def is_differentiable(case: Case) -> bool:
    """Say whether derivatives of the sample's result in its operands are asked for."""
    inexact = [operand for operand in case.operands if is_inexact(operand.dtype)]
    results = case.program().out_avals
    return bool(inexact) and all(is_inexact(aval.dtype) for aval in results)


def has_derivative(case: Case) -> bool:
    """Say whether there is an inexact result with a derivative in an inexact operand."""
    program = case.program()
    takes, gives = (any(is_inexact(a.dtype) for a in avals) for avals in (program.in_avals, program.out_avals))
    return takes and gives and not isinstance(case.primitive.derivative, (NonDifferentiable, Unknown))


def is_smooth(case: Case) -> bool:
    """Say whether the sample has one result, with derivatives that differences find."""
    differentiable = not isinstance(case.primitive.derivative, (NonDifferentiable, Unknown))
    is_single = len(case.program().out_avals) == 1
    return case.sample.smooth and is_single and differentiable and is_differentiable(case) and is_determined(case)


SMOOTH = [one for case in CASES for one in by_result(case) if is_smooth(one)]


def widest_of_each_form(cases: list[Case]) -> list[Case]:
    """Return the case of the highest precision among those that differ in precision or numbers alone."""
    found: dict[Any, Case] = {}
    for case in sorted(cases, key=lambda case: -sum(aval.dtype.itemsize for aval in case.avals)):
        shapes = [(aval.dtype.kind, aval.shape) for aval in case.avals]
        index = case.index if isinstance(case, Result) else None
        regions = [str(region) for region in case.sample.regions]
        found.setdefault((case.primitive.name, index, repr(shapes), repr(case.sample.params), repr(regions)), case)
    return list(found.values())


def some(cases: Iterable[Case], count: int) -> list[Case]:
    """Return at most so many of these cases of each primitive, drawn by its name."""
    return drawn(cases, lambda case: case.primitive.name, count)


def one_of_each_kind(cases: Iterable[Case]) -> list[Case]:
    """Return one of these cases of each primitive and each kind of its first operand's numbers, drawn by both."""
    return drawn(cases, lambda case: f"{case.primitive.name} {case.avals[0].dtype.kind}")


def over(cases: Iterable[Case]) -> Callable[..., Any]:
    """Run a test for each of these cases."""
    return in_groups("case", cases)


def by_primitives(cases: Iterable[Case], count: int = 8) -> Callable[..., Any]:
    """Run a test for each so many primitives, on those of these cases that are theirs."""
    found: dict[str, list[Case]] = {}
    for case in cases:
        found.setdefault(case.primitive.name, []).append(case)
    groups = [list(found)[start : start + count] for start in range(0, len(found), count)]
    values = [[case for name in names for case in found[name]] for names in groups]
    return pytest.mark.parametrize("cases", values, ids=map(" ".join, groups))
