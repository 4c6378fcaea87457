"""Functions composed of primitives, checked as the catalogue checks primitives: against differences of NumPy's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fnad.ir.axes import Opaque
from fnad.ir.builder import trace
from fnad.ir.primitive import Library, Primitive, Push, Sample
from fnad.ir.program import Program
from fnad.testing import Run, assert_close, tolerance
from tests.catalogue import test_first_derivatives as first
from tests.catalogue import test_second_derivatives as second
from tests.catalogue.cases import Case

CHECKS = (
    first.check_first_derivatives,
    second.check_second_derivatives,
)


@dataclass(frozen=True)
class Composition(Case):
    """A function on symbols of one result, in the place of a primitive that is evaluated by the same on arrays."""

    function: Callable[..., Any]

    def __str__(self) -> str:
        return self.primitive.name

    def program(self) -> Program:
        return trace(lambda *symbols: [self.function(*symbols)], *self.avals, name="composition")


def composition(
    name: str, function: Callable[..., Any], reference: Callable[..., Any], operands: tuple[Any, ...]
) -> Composition:
    """Return a function on symbols with the same function on arrays, and operands to compare them at."""
    unknown = Push(lambda *_: [None])
    primitive = Primitive(
        name,
        lambda *_: (),
        reference,
        unknown,
        Library(),
        lambda: (),
        "A composition.",
        axes=Opaque("it is only differentiated"),
    )
    return Composition(primitive, Sample(operands), 0, function)


def check_value(case: Composition, run: Run) -> None:
    """Compare the value with the reference's."""
    (found,) = run(case.program(), case.operands)
    assert_close(found, case.evaluate(*case.operands), tolerance(found.dtype), 1.0)


def check_derivatives(case: Composition, run: Run) -> None:
    """Compare first and second derivatives, in every mode and nesting, with differences of the reference."""
    for check in CHECKS:
        check(case, run)
