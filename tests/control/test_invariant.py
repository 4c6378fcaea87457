"""What is the same in every step is computed before a loop; branches that are known take the place of the choice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import gammaln

import fnad
from fnad.errors import FactorizationError
from fnad.ir.parser import parse_program
from fnad.ir.primitive import Cond, ScanLoop, WhileLoop
from fnad.ir.printer import print_program
from fnad.ir.program import Equation, Program
from fnad.ir.types import aval_of
from fnad.ir.verifier import verify
from fnad.ir.walk import all_equations, equal_up_to_names
from fnad.testing import marks
from fnad.trace.tracing import trace_function
from fnad.transforms.interpret import interpret
from fnad.transforms.joint import joint
from fnad.transforms.jvp import jvp
from fnad.transforms.pipeline import simplify

A, X, N = np.array([[0.9, -0.3], [0.2, 0.8]]), np.array([0.5, -0.25]), np.int64(3)
KINDS = ScanLoop, WhileLoop, Cond


def simplified(f: Any, *args: Any) -> Program:
    """Return the simplified program of a function, which verifies, prints and computes what it did before."""
    arrays = [np.asarray(arg) for arg in args]
    run = lambda tracers: [f(*tracers)]  # noqa: E731
    program = trace_function(run, [aval_of(array) for array in arrays], name="f").program
    for before in (program, joint(program, marks(program)), jvp(program, marks(program))):
        after = simplify(before)
        verify(after)
        assert equal_up_to_names(parse_program(print_program(after)), after)
        given = [*arrays, *[np.ones(v.aval.shape, v.aval.dtype) for v in before.inputs[len(arrays) :]]]
        for one, other in zip(interpret(after, given), interpret(before, given), strict=True):
            assert_allclose(one, other, rtol=1e-12, atol=1e-14)
    return simplify(program)


def structured(program: Program) -> list[Equation]:
    """Return the loops and branches that stand in a program itself."""
    return [e for e in program.equations if isinstance(e.primitive.lower, KINDS)]


def inside(program: Program) -> list[str]:
    """Return the names of the primitives in the regions of the one loop of a program."""
    (loop,) = structured(program)
    return [e.primitive.name for region in loop.regions for e in all_equations(region)]


def outside(program: Program) -> list[str]:
    return [e.primitive.name for e in program.equations]


# ---- branches --------------------------------------------------------------------------------------------------------


def test_a_branch_that_is_known_takes_the_place_of_the_choice():
    for pred in (True, False):
        program = simplified(lambda x, p=pred: fnad.cond(np.bool_(p), np.sin, np.cos, x), X)
        assert outside(program) == ["sin" if pred else "cos"]
    for index, name in ((-3, "sin"), (0, "sin"), (1, "cos"), (9, "exp")):
        program = simplified(lambda x, i=index: fnad.switch(np.int64(i), [np.sin, np.cos, np.exp], x), X)
        assert outside(program) == [name]


def test_a_branch_that_becomes_known_in_a_loop():
    def f(x):
        body = lambda s, _: (fnad.cond(np.float64(2.0) > 1.0, lambda: np.sin(s), lambda: np.cos(s)), None)  # noqa: E731
        return fnad.scan(body, x, length=3)[0]

    assert inside(simplified(f, X)) == ["sin"]


def test_numbers_are_put_into_branches():
    program = simplified(lambda x: fnad.cond(x[0] > 0, lambda x, a: x * a, lambda x, a: x + a, x, 1.0), X)
    (choice,) = structured(program)
    assert [len(region.equations) for region in choice.regions] == [2, 0]  # x + 1 with the 1 broadcast, x * 1
    assert len(choice.operands) == 2


# ---- carries ---------------------------------------------------------------------------------------------------------


def test_a_carry_that_stays_is_a_constant():
    step = lambda s: (s[0], s[1] * s[0], s[2])  # noqa: E731
    loops = (
        lambda x: fnad.scan(lambda s, _: (step(s), None), (x, x, 2 * x), length=4)[0],
        lambda x: fnad.fori_loop(0, N, lambda _, s: step(s), (x, x, 2 * x)),
        lambda x: fnad.while_loop(lambda s: np.sum(s[1] * s[1]) > 1e-3, step, (x, x, 2 * x)),
    )
    for loop in loops:
        program = simplified(lambda x, loop=loop: loop(x)[0] + loop(x)[1] + loop(x)[2], X)
        (equation,) = structured(program)
        assert [v.aval.shape for v in equation.results].count((2,)) == 1
        assert equation.params.get("carry", 1) <= 2


def test_a_number_that_stays_is_put_into_the_body():
    program = simplified(
        lambda x: fnad.scan(lambda s, _: ((np.sin(s[0]) * s[1], 1.0), None), (x, 1.0), length=3)[0][0], X
    )
    assert structured(program)[0].params["carry"] == 1
    assert inside(program) == ["sin"]


def test_a_carry_that_stays_may_hide_another():
    """When the first is known to stay, the second, which takes its value, does so too."""

    def f(x, y):
        body = lambda s, _: ((s[0], np.where(s[0] > 1e9, s[1] * 2, s[1]), s[2] * s[1]), None)  # noqa: E731
        return fnad.scan(body, (1.0, y, x), length=3)[0][2]

    (loop,) = structured(simplified(f, X, np.float64(0.5)))
    assert (loop.params["consts"], loop.params["carry"]) == (1, 1)


def test_swapped_carries_are_no_constants():
    program = simplified(
        lambda x, a: fnad.scan(lambda s, _: ((s[1], s[0]), None), (x, 2 * x), length=3)[0][0] + a, X, X
    )
    assert structured(program)[0].params["carry"] == 2


# ---- what is dear ----------------------------------------------------------------------------------------------------


def test_what_is_dear_is_computed_before_the_loop():
    def f(a, x):
        body = lambda s, _: (s @ np.exp(a) @ (a @ a) + np.linalg.inv(a)[0] + np.sum(a * a), None)  # noqa: E731
        return fnad.scan(body, x, length=3)[0]

    program = simplified(f, A, X)
    assert sorted(inside(program)) == ["add", "add", "dot_general", "mul"] or "inv" not in inside(program)
    assert {"exp", "dot_general", "reduce_sum"} <= set(outside(program))
    assert not {"exp", "reduce_sum", "inverse", "inv"} & set(inside(program))


def test_what_is_cheap_stays_in_the_loop():
    program = simplified(lambda a, x: fnad.scan(lambda s, _: (s * (a[0] + a[1]), None), x, length=3)[0], A, X)
    assert not {"add", "mul"} & set(outside(program))
    assert {"add", "mul"} <= set(inside(program))


def test_a_loop_of_constants_in_a_loop():
    def f(x, y):
        inner = lambda: fnad.scan(lambda s, _: (np.sin(s), None), y, length=5)[0]  # noqa: E731
        return fnad.scan(lambda s, _: (s * inner(), None), x, length=3)[0]

    program = simplified(f, X, X)
    assert len(structured(program)) == 2
    assert all(not e.regions for loop in structured(program) for e in loop.regions[0].equations)


def test_the_test_of_a_while_loop():
    def f(a, x):
        return fnad.while_loop(lambda s: np.sum(s) < np.sum(np.exp(a)), lambda s: s + np.exp(x), x)

    program = simplified(f, A, X)
    assert "exp" not in inside(program)
    assert outside(program).count("exp") == 2


def inverse(a):
    return np.linalg.inv(a)


@pytest.mark.parametrize("executor", ["interpreter", "compiled"])
def test_a_call_that_fails_is_not_made_where_no_step_is(executor):
    singular = np.zeros((2, 2))
    loops = (
        lambda a, x: fnad.fori_loop(0, np.int64(0) * N, lambda _, s: np.linalg.inv(a) @ s, x),
        lambda a, x: fnad.fori_loop(0, np.sum(x > 5), lambda _, s: np.linalg.inv(a) @ s, x),
        lambda a, x: fnad.while_loop(lambda s: s[0] > 5, lambda s: np.linalg.inv(a) @ s, x),
        lambda a, x: fnad.cond(x[0] > 5, lambda: np.linalg.inv(a) @ x, lambda: x),
        lambda a, x: fnad.scan(lambda s, _: (np.linalg.inv(a) @ s, None), x, length=0)[0],
    )
    with fnad.config.override(executor=executor):
        for loop in loops:
            assert_array_equal(fnad.jit(loop)(singular, X), X)
        with pytest.raises(FactorizationError) as raised:
            fnad.jit(lambda a, x: fnad.scan(lambda s, _: (inverse(a) @ s, None), x, length=2)[0])(singular, X)
    assert "return np.linalg.inv(a)" in str(raised.value)


def test_a_call_that_cannot_fail_is_made_once():
    """A function of SciPy of a constant: before the loop, however many steps there are, in native code too."""
    f = lambda n, a: fnad.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] + gammaln(a)), (0, 0.0))[1]  # noqa: E731
    program = simplified(f, N, np.float64(2.5))
    calls = [equation for equation in program.equations if equation.primitive.name == "gammaln"]
    assert len(calls) == 1
    (loop,) = [equation for equation in program.equations if equation.regions]
    assert all(e.primitive.name != "gammaln" for region in loop.regions for e in all_equations(region))
    for n in (0, 3):
        assert_allclose(fnad.jit(f)(n, 2.5), n * gammaln(2.5), rtol=1e-15)


# ---- loops that are none ---------------------------------------------------------------------------------------------


def test_one_step_or_none_is_no_loop():
    step = lambda s, x: (np.sin(s) * x, s + x)  # noqa: E731
    for length in (0, 1):
        for reverse in (False, True):
            program = simplified(
                lambda s, x, r=reverse: sum(map(np.sum, fnad.scan(step, s, x, reverse=r))), np.float64(0.3), X[:length]
            )
            assert structured(program) == []


# ---- dead parts ------------------------------------------------------------------------------------------------------


def test_what_only_dead_results_need_is_dropped():
    def body(s, x):
        used, dead, chain = s
        return (np.sin(used), dead * np.exp(x), chain + dead), (used * 2, np.cos(dead))

    def f(x, rows):
        carry, ys = fnad.scan(body, (x, x, x), rows)
        return carry[0] + np.sum(ys[0], axis=0)

    program = simplified(f, X, np.ones((3, 2)))
    (loop,) = structured(program)
    assert set(inside(program)) == {"mul", "sin", "broadcast_in_dim"}
    assert (loop.params["consts"], loop.params["carry"], len(loop.operands)) == (0, 1, 1)


def test_a_carry_that_a_live_one_needs_is_kept():
    program = simplified(lambda x: fnad.fori_loop(0, 3, lambda i, s: (s[1] * 2, s[0] + 1), (x, x))[0], X)
    assert structured(program)[0].params["carry"] == 2


def test_a_counter_that_nobody_reads_is_dropped():
    program = simplified(lambda x: fnad.fori_loop(0, 3, lambda _, s: np.sin(s), x), X)
    assert structured(program)[0].params["carry"] == 1


# ---- boxes -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "snapshots"), [("binomial", 2), ("sqrt", 1), ("carry", 1)])
def test_loops_that_shrink_in_checkpoints(policy, snapshots):
    """A constant carry, rows that nobody reads and products before the loop leave the box around it right."""

    def f(a, x, unused):
        def body(s, u):
            still, moving = s
            return (still, np.sin(moving @ (a @ a)) + still), None

        return fnad.scan(body, (x, x), unused)[0][1]

    unused = np.ones((7, 3))
    boxed = fnad.checkpoint(f, policy=policy, snapshots=snapshots)
    plain = fnad.jit(fnad.grad(lambda a, x: np.sum(f(a, x, unused)), (0, 1)))(A, X)
    once = fnad.jit(fnad.grad(fnad.jit(lambda a, x: np.sum(boxed(a, x, unused))), (0, 1)))(A, X)
    looped = lambda a, x: fnad.scan(lambda s, _: (s + np.sum(boxed(a, x, unused)), None), 0.0, length=1)[0]  # noqa: E731
    for found in (once, fnad.jit(fnad.grad(looped, (0, 1)))(A, X)):
        for one, other in zip(found, plain, strict=True):
            assert_allclose(one, other, rtol=1e-12)

    def along(g):
        return lambda a, x: np.sum(fnad.grad(lambda a: np.sum(g(a, x, unused)))(a) * A)

    body = lambda g: lambda a, x: fnad.scan(lambda s, _: (s + along(g)(a, s * x), None), 1.0, length=2)[0]  # noqa: E731
    with fnad.config.override(executor="interpreter"):
        second, expected = (fnad.jit(fnad.grad(body(g)))(A, X) for g in (boxed, f))
    assert_allclose(second, expected, rtol=1e-10)


# ---- before derivatives are taken ------------------------------------------------------------------------------------


def test_what_leaves_a_loop_is_not_kept_for_each_step():
    """The exponential of a matrix that all steps use is one, not a thousand of them on the way back."""

    def f(tracers):
        a, x = tracers
        return [np.sum(fnad.scan(lambda s, _: (np.tanh(np.exp(a) @ s), None), x, length=1000)[0])]

    program = trace_function(f, [aval_of(A), aval_of(X)], name="f").program
    swept = simplify(joint(program, marks(program)))
    assert outside(swept).count("exp") == 1
    assert max(var.aval.size for e in all_equations(swept) for var in e.results) == 1000 * X.size
    pushed = simplify(jvp(program, marks(program)))
    assert outside(pushed).count("exp") == 1
    assert "exp" not in inside(pushed)


def test_a_zero_that_changes_its_sign_is_not_the_same_in_every_step() -> None:
    for before, after in ((0.0, -0.0), (-0.0, 0.0), (1.0, 1.0)):
        f = lambda x: fnad.fori_loop(0, 3, lambda i, c: (c[1] * x, after), (x, before))  # noqa: B023, E731
        for run in (f, fnad.jit(f)):
            product, carried = run(1.0)
            assert np.signbit(carried) == np.signbit(after)
            assert np.signbit(product) == np.signbit(after)
