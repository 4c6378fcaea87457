"""Second derivatives of every primitive, by all four ways to nest forward and reverse mode, against differences.

For φ(x) = <ct, f(x)> and directions u, v each way gives <ct, D²f(x)[u, v]>:

    forward over forward    tangent of the tangent                     paired with ct
    forward over reverse    tangent of the gradient, along v           paired with u
    reverse over forward    gradient of the tangent along u            paired with v
    reverse over reverse    gradient of <gradient, v>                  paired with u

What comes beside it, the first derivatives, has to agree too.

One sample of each primitive is drawn for it, and three others are checked by reverse over reverse.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.ir.program import Program
from fnad.ir.types import is_inexact
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
from fnad.transforms.dce import dce
from fnad.transforms.interpret import interpret
from fnad.transforms.joint import cotangent_avals, joint
from fnad.transforms.jvp import jvp
from tests.catalogue.cases import CASES, SMOOTH, Case, has_derivative, over, some, widest_of_each_form
from tests.catalogue.truth import directions, second_order
from tests.together import some_of, together

EDGES = [case for case in CASES if not case.sample.smooth and has_derivative(case)]


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


def check_second_derivatives(case: Case, run: Run) -> None:
    us, vs = directions(case, 0), directions(case, 10)
    program = case.program()
    pushed, pulled = jvp(program, marks(program)), joint(program, marks(program))
    cts = [direction(program.out_avals[0], 20)]
    truth, error = second_order(case, us, vs)
    tangent = pushforward(run, program, case.operands, vs)[0]
    with together() as check:
        with check("forward over forward"):
            dy, ddy = pushforward(run, pushed, [*case.operands, *us], [*vs, *zeros(us)])
            assert_close(ddy, truth, allowed(case, ddy, error), SCALE)
            assert_close(dy, tangent, tolerance(dy.dtype, 1), SCALE)
        with check("forward over reverse"):
            _, *found = pushforward(run, pulled, [*case.operands, *cts], [*vs, *zeros(cts)])
            check_pairing(case, found, us, cts, truth, error)
        with check("reverse over forward"):
            found = pullback(run, pushed, [*case.operands, *us], [*zeros(cts), *cts])
            check_pairing(case, found[: len(us)], vs, cts, truth, error)
            for mine, first in zip(found[len(us) :], pullback(run, program, case.operands, cts), strict=True):
                assert_close(mine, first, tolerance(first.dtype, 1), SCALE)
        with check("reverse over reverse"):
            *found, ct_ct = pullback(run, pulled, [*case.operands, *cts], [*zeros(cts), *vs])
            check_pairing(case, found, us, cts, truth, error)
            assert_close(ct_ct, tangent, tolerance(ct_ct.dtype, 1), SCALE)


WIDEST = some(widest_of_each_form(SMOOTH), 1)
CHOSEN = set(map(str, WIDEST))
OTHERS = some([case for case in SMOOTH if str(case) not in CHOSEN], 3)


@over(WIDEST)
def test_second_derivatives_agree_in_all_nestings(case: Case, run: Run):
    check_second_derivatives(case, run)


@over(OTHERS)
def test_reverse_over_reverse_is_the_difference(case: Case, run: Run):
    us, vs = directions(case, 0), directions(case, 10)
    program = case.program()
    cts = [direction(program.out_avals[0], 20)]
    *found, _ = pullback(run, joint(program, marks(program)), [*case.operands, *cts], [*zeros(cts), *vs])
    check_pairing(case, found, us, cts, *second_order(case, us, vs))


# ---- edge samples ----------------------------------------------------------------------------------------------------


def without(program: Program, count: int) -> Program:
    """Return the program without its first outputs, as a user's function that does not return them."""
    return dce(Program(program.name, program.inputs, program.equations, program.outputs[count:]))


def by_all_nestings(case: Case, operands: list[int]) -> list[list[Any]]:
    """Return <ct, D²f[u, v]> with one weight an operand, by each nesting: the forward one is given as the pairing."""
    program = case.program()
    active = [i in operands for i in range(len(program.in_avals))]
    us, vs = ([direction(program.in_avals[i], seed + i) for i in operands] for seed in (0, 10))
    cts = [direction(aval, 20 + i) for i, aval in enumerate(cotangent_avals(program))]
    pushed, pulled = (without(mode(program, active), len(program.outputs)) for mode in (jvp, joint))
    nestings = [
        (jvp, pushed, us, vs),
        (jvp, pulled, cts, vs),
        (joint, pushed, vs, cts),
        (joint, pulled, cts, vs),
    ]
    found: list[list[Any]] = []
    for mode, first, given, second in nestings:
        whole = without(mode(first, [*active, *[False] * len(given)]), len(first.outputs))
        with np.errstate(all="ignore"):
            found.append(interpret(whole, [*case.operands, *given, *second]))
    return found


def agree(x: Any, y: Any) -> bool:
    return np.allclose(x, y, rtol=1e-6, atol=1e-9, equal_nan=True)


def check_edge(case: Case) -> None:
    """Of one operand, which is drawn, to the same inf and nan; of all together in what is finite.

    For inf - inf depends on the order.
    """
    operands = [i for i, aval in enumerate(case.avals) if is_inexact(aval.dtype) and case.has_formula(i)]
    for i in some_of(operands, str(case)):
        _, *gradients = by_all_nestings(case, [i])
        for found in gradients[1:]:
            assert agree(found[0], gradients[0][0]), f"in operand {i}: {found[0]} and {gradients[0][0]}"
    if len(operands) > 1:
        _, *gradients = by_all_nestings(case, operands)
        for parts in zip(*gradients, strict=True):
            finite = np.isfinite(parts).all(axis=0)
            for part in parts:
                assert agree(part[finite], parts[0][finite]), f"in all operands: {parts}"


@over(EDGES)
def test_all_nestings_agree_at_an_edge(case: Case):
    check_edge(case)
