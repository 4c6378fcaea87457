"""Functions composed of primitives, checked as the catalogue checks primitives: against differences of NumPy's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from fnad.ir.builder import trace
from fnad.ir.primitive import Library
from fnad.ir.program import Program
from fnad.ir.types import Aval, aval_of
from fnad.testing import Run, assert_close, tolerance
from tests.catalogue import test_first_derivatives as first
from tests.catalogue import test_second_derivatives as second

CHECKS = (
    first.test_forward_mode_is_the_difference,
    first.test_reverse_mode_is_the_transpose,
    first.test_derivatives_have_the_avals_of_their_primals,
    second.test_forward_over_forward,
    second.test_forward_over_reverse,
    second.test_reverse_over_forward,
    second.test_reverse_over_reverse,
)


class _Called:
    """What stands for the primitive of a case: nothing is linear, and nothing has an extended precision."""

    derivative, lower = None, Library()


@dataclass(frozen=True)
class Composition:
    """A function on symbols of one result, the same function on arrays, and operands to compare them at."""

    name: str
    function: Callable[..., Any]
    reference: Callable[..., Any]
    operands: tuple[Any, ...]
    primitive: Any = _Called

    @property
    def avals(self) -> list[Aval]:
        return [aval_of(operand) for operand in self.operands]

    def program(self) -> Program:
        return trace(lambda *symbols: [self.function(*symbols)], *self.avals, name=self.name)

    def evaluate(self, *operands: Any) -> Any:
        return self.reference(*operands)


def over(compositions: Iterable[Composition]) -> Callable[..., Any]:
    """Run a test for each of these."""
    return pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in compositions])


def check_value(case: Composition, run: Run) -> None:
    """Compare the value with the reference's."""
    (found,) = run(case.program(), case.operands)
    expected = case.reference(*case.operands)
    assert_close(found, expected, tolerance(found.dtype), 1.0)


def check_derivatives(case: Composition, run: Run) -> None:
    """Compare first and second derivatives, in every mode and nesting, with differences of the reference."""
    for check in CHECKS:
        check(case, run)  # type: ignore[arg-type]
