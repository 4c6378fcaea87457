"""First derivatives of every primitive: forward against differences, reverse against forward."""

from __future__ import annotations

import numpy as np

from fnad.ir.primitive import NonDifferentiable
from fnad.testing import SCALE, Run, assert_close, direction, pullback, pushforward, tolerance
from fnad.testing.numbers import check_pullback
from tests.catalogue.cases import CASES, SMOOTH, Case, has_derivative, is_differentiable, over
from tests.catalogue.truth import directions, first_order

CONSTANT = [c for c in CASES if isinstance(c.primitive.derivative, NonDifferentiable) and is_differentiable(c)]


def check_first_derivatives(case: Case, run: Run) -> None:
    dxs = directions(case, 0)
    (found,) = pushforward(run, case.program(), case.operands, dxs)
    expected, error = first_order(case, dxs)
    assert_close(found, expected, max(tolerance(found.dtype, 1), error), SCALE)
    check_pullback(run, case.program(), case.operands, dxs, [found])


@over(SMOOTH)
def test_forward_mode_is_the_difference_and_reverse_mode_its_transpose(case: Case, run: Run):
    check_first_derivatives(case, run)


def check_zero(case: Case, run: Run) -> None:
    program = case.program()
    dxs = directions(case, 0)
    cts = [direction(aval, seed) for seed, aval in enumerate(program.out_avals)]
    for found in (*pushforward(run, program, case.operands, dxs), *pullback(run, program, case.operands, cts)):
        assert np.all(found == 0)


@over(CONSTANT)
def test_derivative_of_a_constant_piece_is_exactly_zero(case: Case, run: Run):
    """Row 15: round, floor, sign, comparisons: exactly 0, no error."""
    check_zero(case, run)


def test_every_primitive_with_a_derivative_is_checked():
    """Except a formula that is missing, draws from a distribution, and parts of exponentials, whose sum has one."""
    checked = {case.primitive.name for case in SMOOTH}
    assert {case.primitive.name for case in CASES if has_derivative(case)} - checked == {
        "without_formula",
        "random_gamma",
        "exp_high",
        "exp_low",
    }
