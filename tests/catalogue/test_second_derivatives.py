"""Second derivatives of every primitive, by all four ways to nest forward and reverse mode, against differences.

For φ(x) = <ct, f(x)> and directions u, v each way gives <ct, D²f(x)[u, v]>:

    forward over forward    tangent of the tangent                     paired with ct
    forward over reverse    tangent of the gradient, along v           paired with u
    reverse over forward    gradient of the tangent along u            paired with v
    reverse over reverse    gradient of <gradient, v>                  paired with u

What comes beside it, the first derivatives, has to agree too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.testing import (
    SCALE,
    Run,
    assert_close,
    direction,
    magnitude,
    marks,
    pairing,
    pullback,
    pushforward,
    tolerance,
)
from fnad.transforms.joint import joint
from fnad.transforms.jvp import jvp
from tests.catalogue.cases import CASES, Case, is_smooth, over
from tests.catalogue.truth import directions, second_order

SMOOTH = [case for case in CASES if is_smooth(case)]


def zeros(arrays: Any) -> list[Any]:
    return [np.zeros_like(array) for array in arrays]


def allowed(case: Case, result: Any, error: float) -> float:
    """Return the error allowed: that of the narrowest dtype, or of the differences."""
    return max(error, *(tolerance(x.dtype, 2) for x in (*case.operands, result)))


def check_pairing(case: Case, found: list[Any], directions: list[Any], cts: list[Any], truth: Any, error: float):
    """Compare <found, directions> with <cts, truth>."""
    expected = pairing(cts, [truth])
    scale = max(abs(expected), magnitude(found, directions), magnitude(cts, [truth]), SCALE)
    assert abs(pairing(found, directions) - expected) <= allowed(case, cts[0], error) * scale


@over(SMOOTH)
def test_forward_over_forward(case: Case, run: Run):
    us, vs = directions(case, 0), directions(case, 10)
    program = case.program()
    pushed = jvp(program, marks(program))
    dy, ddy = pushforward(run, pushed, [*case.operands, *us], [*vs, *zeros(us)])
    truth, error = second_order(case, us, vs)
    assert_close(ddy, truth, allowed(case, ddy, error), SCALE)
    assert_close(dy, pushforward(run, program, case.operands, vs)[0], tolerance(dy.dtype, 1), SCALE)


@over(SMOOTH)
def test_forward_over_reverse(case: Case, run: Run):
    us, vs = directions(case, 0), directions(case, 10)
    program = case.program()
    cts = [direction(program.out_avals[0], 20)]
    _, *found = pushforward(run, joint(program, marks(program)), [*case.operands, *cts], [*vs, *zeros(cts)])
    check_pairing(case, found, us, cts, *second_order(case, us, vs))


@over(SMOOTH)
def test_reverse_over_forward(case: Case, run: Run):
    us, vs = directions(case, 0), directions(case, 10)
    program = case.program()
    cts = [direction(program.out_avals[0], 20)]
    found = pullback(run, jvp(program, marks(program)), [*case.operands, *us], [*zeros(cts), *cts])
    check_pairing(case, found[: len(us)], vs, cts, *second_order(case, us, vs))
    for mine, first in zip(found[len(us) :], pullback(run, program, case.operands, cts), strict=True):
        assert_close(mine, first, tolerance(first.dtype, 1), SCALE)


@over(SMOOTH)
def test_reverse_over_reverse(case: Case, run: Run):
    us, vs = directions(case, 0), directions(case, 10)
    program = case.program()
    cts = [direction(program.out_avals[0], 20)]
    *found, ct_ct = pullback(run, joint(program, marks(program)), [*case.operands, *cts], [*zeros(cts), *vs])
    check_pairing(case, found, us, cts, *second_order(case, us, vs))
    assert_close(ct_ct, pushforward(run, program, case.operands, vs)[0], tolerance(ct_ct.dtype, 1), SCALE)
