"""What reverse mode keeps: the same values and derivatives under every policy, with memory and steps as it promises."""

from __future__ import annotations

import re
from itertools import product
from math import comb, isqrt
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fnad
from fnad.ir.axes import Elementwise
from fnad.ir.primitive import Library, Linear, Primitive
from fnad.ir.program import Program
from fnad.ir.types import Aval
from fnad.ir.walk import all_equations
from fnad.testing import marks
from fnad.trace.tracer import Tracer
from fnad.trace.tracing import trace_function
from fnad.transforms.interpret import interpret
from fnad.transforms.joint import joint
from fnad.transforms.pipeline import simplify
from tests.control.truth import check
from tests.together import drawn

X = np.array([0.7, -1.1, 0.4, 0.9, -0.2])
ways = pytest.mark.parametrize("executor", ["interpreter", "compiled"])
POLICIES: dict[str, dict[str, Any]] = {
    "all": {"policy": "all"},
    "carry": {"policy": "carry"},
    "sqrt": {"policy": "sqrt"},
    "one snapshot": {"policy": "binomial", "snapshots": 1},
    "two snapshots": {"policy": "binomial", "snapshots": 2},
    "many snapshots": {"policy": "binomial", "snapshots": 50},
}
policies = pytest.mark.parametrize("policy", POLICIES)


# ---- the same numbers ------------------------------------------------------------------------------------------------


def scanned(a, s, x):
    return fnad.scan(lambda s, x: (np.sin(s) * x + a, np.exp(s) * x), s, x)


def scanned_in_python(a, s, x):
    ys = []
    for value in x:
        ys.append(np.exp(s) * value)
        s = np.sin(s) * value + a
    return s, np.stack(ys)


def backwards(a, s, x):
    return fnad.scan(lambda s, x: (np.sin(s) * x + a, np.exp(s) * x), s, x, reverse=True)


def backwards_in_python(a, s, x):
    s, ys = scanned_in_python(a, s, x[::-1])
    return s, ys[::-1]


def counted(a, s, n):
    return fnad.fori_loop(2, n, lambda i, s: np.sin(s) * a + 1 / i, s)


def counted_in_python(a, s, n):
    for i in range(2, n):
        s = np.sin(s) * a + 1 / type(a)(i)
    return s


def newton(a):
    return fnad.while_loop(lambda s: abs(s * s - a) > 1e-3, lambda s: (s + a / s) / 2, a)


def newton_in_python(a):
    s = a
    while abs(s * s - a) > 1e-3:
        s = (s + a / s) / 2
    return s


def nested(a, s, x):
    inner = lambda s, x: fnad.fori_loop(0, 3, lambda _, t: np.sin(t) * x + a, s)  # noqa: E731
    return fnad.scan(lambda s, x: (inner(s, x), s * s), s, x)


def nested_in_python(a, s, x):
    ys = []
    for value in x:
        ys.append(s * s)
        for _ in range(3):
            s = np.sin(s) * value + a
    return s, np.stack(ys)


LOOPS: dict[str, tuple[Any, Any, tuple[Any, ...]]] = {
    "scan": (scanned, scanned_in_python, (0.3, 0.5, X)),
    "scan, reverse": (backwards, backwards_in_python, (0.3, 0.5, X)),
    "scan of one step": (scanned, scanned_in_python, (0.3, 0.5, X[:1])),
    "fori_loop": (counted, counted_in_python, (0.7, 0.5, np.int64(9))),
    "fori_loop of no steps": (counted, counted_in_python, (0.7, 0.5, np.int64(1))),
    "while_loop": (newton, newton_in_python, (5.3,)),
    "while_loop of one step": (newton, newton_in_python, (1.05,)),
    "loops in loops": (nested, nested_in_python, (0.3, 0.5, X)),
}
COMPILED = {("scan", "sqrt"), ("fori_loop", "two snapshots"), ("while_loop", "sqrt"), ("while_loop", "one snapshot")}
"""Those that are compiled here; the others are interpreted."""

SECOND = drawn(product(LOOPS, POLICIES), lambda case: (re.split(r"\W", case[0])[0], case[1]))
"""Those whose second derivatives are checked: a loop of each kind under each policy."""


@policies
@pytest.mark.parametrize("loop", LOOPS)
def test_a_policy_changes_no_number(loop, policy):
    f, in_python, args = LOOPS[loop]
    order = 1 + (loop != "loops in loops" and (loop, policy) in SECOND)
    check(fnad.checkpoint(f, **POLICIES[policy]), in_python, *args, order=order, compiled=(loop, policy) in COMPILED)


def test_checkpoints_in_checkpoints():
    for outer in POLICIES.values():
        for inner in ("all", "sqrt"):
            f = lambda a, s, x, inner=inner: fnad.checkpoint(scanned, policy=inner)(a, np.cos(s), x)[0]  # noqa: E731
            g = fnad.checkpoint(f, **outer)
            with fnad.config.override(executor="interpreter"):
                found = fnad.grad(g, (0, 1, 2))(0.3, 0.5, X)
                plain = fnad.grad(lambda a, s, x: scanned(a, np.cos(s), x)[0], (0, 1, 2))(0.3, 0.5, X)
            for one, other in zip(found, plain, strict=True):
                assert_allclose(one, other, rtol=1e-13)


def test_pytrees_keywords_and_captured_values():
    def f(a):
        inner = fnad.checkpoint(lambda t, *, scale: {"y": np.sin(t["x"] * a) * scale, "n": (None, t["n"])})
        result = inner({"x": a * a, "n": 3}, scale=2.0)
        return result["y"] * result["n"][1]

    slope = lambda a: 18 * a * a * np.cos(a**3)  # noqa: E731
    assert_allclose(fnad.grad(f)(0.7), slope(0.7), rtol=1e-14)
    assert_allclose(fnad.jit(fnad.grad(f))(0.7), slope(0.7), rtol=1e-14)


# ---- effects ---------------------------------------------------------------------------------------------------------


@ways
def test_what_runs_again_does_not_report_again(executor):
    seen = []

    def step(s):
        fnad.callback(lambda v: seen.append(float(v)), s)
        return np.sin(s) * 1.5

    def loop(s):
        return fnad.fori_loop(0, 7, lambda _, s: step(s), s)

    inner = lambda s, x: (fnad.while_loop(lambda t: t < 2.0, lambda t: step(t) + x * t, s) * 0.1, None)  # noqa: E731
    functions = [lambda s: fnad.scan(inner, s, np.array([1.0, 1.5, 1.2]))[0], fnad.checkpoint(step)]
    functions += [fnad.checkpoint(loop, **options) for options in POLICIES.values()]
    if executor == "compiled":  # which has nothing of its own here
        del functions[1:]
    with fnad.config.override(executor=executor):
        for f in functions:
            seen.clear()
            f(0.9)
            once = list(seen)
            seen.clear()
            fnad.grad(f)(0.9)
            assert seen == once
            seen.clear()
            _, pullback = fnad.vjp(f, 0.9)
            pullback(1.0)
            assert seen == once


# ---- random numbers --------------------------------------------------------------------------------------------------


@ways
@policies
def test_row_50_the_second_pass_draws_the_same(policy, executor):
    key = fnad.random.key(11)

    def noisy(scale, key):
        def step(s, i):
            draw = fnad.random.normal(fnad.random.fold_in(key, i), (2,))
            return np.tanh(s + scale * draw), None

        return np.sum(fnad.scan(step, np.zeros(2), np.arange(6))[0])

    with fnad.config.override(executor="interpreter"):
        expected = fnad.value_and_grad(noisy)(0.5, key)
    with fnad.config.override(executor=executor):
        found = fnad.jit(fnad.value_and_grad(fnad.checkpoint(noisy, **POLICIES[policy])))(0.5, key)
    assert_allclose(found, expected, rtol=1e-13)


# ---- what is kept ----------------------------------------------------------------------------------------------------


def steps_of(length, policy):
    """Return the joint program of a scan over so many steps of a carry of 1000 numbers."""
    carry = Aval(np.dtype("f8"), (1000,))

    def f(s):
        return fnad.scan(lambda s, _: (np.sin(s), None), s, length=length)[0]

    program = _traced(fnad.checkpoint(f, **POLICIES[policy]), carry)
    return simplify(joint(program, marks(program)))


def _traced(f: Any, aval: Aval) -> Program:
    return trace_function(lambda tracers: [f(*tracers)], [aval], name="f").program


def most_rows(program: Program) -> int:
    """Return how many copies of the carry the largest value of a program or its regions holds."""
    return max(var.aval.size for e in all_equations(program) for var in e.results) // 1000


def test_kept_copies_of_the_carry():
    for n in (100, 400, 1600):
        assert most_rows(steps_of(n, "carry")) == n
        assert most_rows(steps_of(n, "sqrt")) <= isqrt(n) + 1
        assert most_rows(steps_of(n, "two snapshots")) == 3
        assert most_rows(steps_of(n, "all")) == n


def test_every_copy_that_is_alive_at_once():
    """Of n steps, √n segments and √n steps of one of them are alive at once: saved rows of all sizes add up to that."""
    for n in (100, 400, 1600):
        rows = {
            e.results[0].aval.shape[0]
            for e in all_equations(steps_of(n, "sqrt"))
            for _ in e.results
            if e.results[0].aval.shape[1:] == (1000,)
        }
        assert sum(rows) <= 2 * isqrt(n) + 2


# ---- how often the steps are taken -----------------------------------------------------------------------------------


def evaluations(length, **policy):
    """Return how often the body of a loop runs, as a part of its pullback too, when a derivative is computed."""
    calls = []

    def passed(x: Any) -> Any:
        calls.append(x)
        return x

    counted = Primitive(
        "counted", lambda x: x, passed, Linear(lambda ct, _: [ct]), Library(), tuple, "The operand.", axes=Elementwise()
    )

    def f(s):
        return fnad.scan(lambda s, _: (np.sin(Tracer(counted(s.symbol))), None), s, length=length)[0]

    program = _traced(fnad.checkpoint(f, **policy), Aval(np.dtype("f8")))
    interpret(simplify(joint(program, marks(program))), [np.float64(0.5), np.float64(1.0)])
    return len(calls)


def fewest(steps, snapshots):
    """Return how many steps have to be taken forward to go back over so many (Griewank and Walther, 2000)."""
    r = 0
    while comb(snapshots + r, snapshots) < steps:
        r += 1
    return r * steps - comb(snapshots + r, snapshots + 1)


@pytest.mark.parametrize(
    ("steps", "snapshots"), [(1, 1), (6, 1), (10, 2), (20, 3), (21, 3), (56, 3), (100, 5), (65, 64)]
)
def test_the_steps_of_revolve(steps, snapshots):
    taken = evaluations(steps, policy="binomial", snapshots=snapshots)
    assert taken - 2 * steps == fewest(steps, snapshots)


def test_each_step_is_taken_three_times_by_square_roots():
    for n in (1, 2, 9, 10, 100, 90):
        assert evaluations(n, policy="sqrt") <= 4 * n
    assert evaluations(100, policy="carry") == 200


def test_a_budget_is_as_many_snapshots_as_go_into_it():
    def last(x):
        return fnad.scan(lambda s, _: (np.sin(s), None), x, length=50)[0]

    def count(**options: int) -> int:
        f = fnad.checkpoint(last, policy="binomial", **options)
        program = trace_function(lambda leaves: [f(leaves[0])], [Aval(np.dtype("f8"), (3,))], name="last").program
        return program.equations[-1].params["count"]

    assert [count(snapshots=4), count(budget=4 * 24), count(budget=4 * 24 + 23), count(budget=1)] == [4, 4, 4, 1]
    assert_allclose(
        fnad.grad(fnad.checkpoint(lambda x: last(x).sum(), policy="binomial", budget=99))(X),
        fnad.grad(lambda x: last(x).sum())(X),
        rtol=1e-13,
    )
    with pytest.raises(fnad.errors.SettingError, match="budget is -1"):
        fnad.checkpoint(last, policy="binomial", budget=-1)
