"""While loops: values and derivatives to second order through a number of steps that only the run knows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fnad
from fnad.errors import ControlFlowWarning, LoopLimitError
from tests.control.truth import check, check_each
from tests.together import some_of

X = np.array([0.7, -1.1, 0.4])
ways = pytest.mark.parametrize("executor", ["interpreter", "compiled"])


def in_python(test, body, init):
    """Return what `while_loop` does, with Python's loop."""
    while test(init):
        init = body(init)
    return init


def both(f):
    """Return a function of a way to loop with that of fnad and that of Python."""
    return (lambda *args: f(fnad.while_loop, *args)), (lambda *args: f(in_python, *args))


def newton(loop, a):
    return loop(lambda s: abs(s * s - a) > 1e-3, lambda s: (s + a / s) / 2, a)


def collatz(loop, x, n):
    """Go by the rule of Collatz, and multiply or add to x on the way."""

    def body(s):
        x, n, steps = s
        even = n % 2 == 0
        x = np.where(even, np.sin(x) + 1.5, x * x / 3)
        return x, np.where(even, n // 2, 3 * n + 1), steps + 1

    return loop(lambda s: s[1] != 1, body, (x, n, np.int64(0)))


def growth(loop, x, a):
    body = lambda s: (s[0] * a[0] + s[1], np.cos(s[0]) * a, s[2] + 1)  # noqa: E731
    return loop(lambda s: (s[2] < 6) & (np.sum(s[0]) < 20.0), body, (x, a, np.int64(0)))


def captured_test(loop, x, limit):
    """The test captures what the derivative does not pass through; it decides only."""
    return loop(lambda s: s < limit, lambda s: s * x + limit, x)


def swapped(loop, a, b):
    return loop(lambda s: s[2] < 5, lambda s: (s[1], np.sin(s[0]) + s[1], s[2] + 1), (a, b, np.int64(0)))


def stays(loop, a, b):
    return loop(lambda s: s[1] < 10, lambda s: (s[0], s[1] * s[0]), (a, b))


def only_counts(loop, a):
    return a * a, loop(lambda n: n < 4, lambda n: n + 1, np.int64(0))


def nested(loop, x):
    """A loop in a loop, as long as the values say."""

    def inner(s):
        return loop(lambda t: t[0] < s, lambda t: (t[0] + 0.75, np.sin(t[1] * s)), (0 * s, 1 + 0 * s))[1]

    return loop(lambda s: s[1] < 3, lambda s: (np.sin(inner(s[0])) + 1.5, s[1] + 1), (x, np.int64(0)))[0]


def writes(loop, x):
    def body(c):
        c[0] = c[1] * c[2]
        c[1:] += c[:-1] * 0.5
        return c

    return loop(lambda c: np.sum(c * c) < 4, body, x * 1)


def complex_spiral(loop, z):
    return loop(lambda s: np.abs(s) < 3.0, lambda s: s * (1.1 + 0.5j) + z, z)


CASES: dict[str, tuple[Any, list[tuple[Any, ...]]]] = {
    "newton": (newton, [(2.1,), (5.3,), (0.3,)]),
    "newton in f32": (newton, [(np.float32(2.1),)]),
    "collatz": (collatz, [(0.4, np.int64(n)) for n in (1, 2, 6, 27)]),
    "growth": (growth, [(X, np.array([1.1, 0.9, 1.3]))]),
    "no step": (stays, [(2.0, 11.0)]),
    "one step": (stays, [(2.0, 6.0)]),
    "a test that captures": (captured_test, [(1.3, 4.7)]),
    "swapped carries": (swapped, [(0.3, 1.2)]),
    "a carry that stays": (stays, [(1.7, 0.9)]),
    "a loop that only counts": (only_counts, [(0.7,)]),
    "a loop in a loop": (nested, [(1.2,)]),
    "a body that writes into its carry": (writes, [(X,)]),
    "complex": (complex_spiral, [(np.complex128(0.3 + 0.2j),)]),
}
DEEP = ("collatz", "a loop in a loop")
"""Those of which second derivatives are compiled too."""
COMPILED = {*DEEP, *some_of([*CASES], "compiled loops", len(CASES) // 3)}
"""Those of which first ones are compiled: `tests/backends/test_control.py` compiles others."""


@pytest.mark.parametrize("name", CASES)
def test_a_loop_is_that_of_python(name):
    f, arguments = CASES[name]
    check_each(*both(f), arguments, compiled=(name in COMPILED) + (name in DEEP))


@pytest.mark.slow
def test_a_loop_in_a_scan_and_in_a_branch():
    def loop(x, n):
        body = lambda s, k: (fnad.while_loop(lambda t: t < k, lambda t: t * x + 0.5, s), s)  # noqa: E731
        return fnad.scan(body, x, n)

    def python(x, n):
        s, ys = x, []
        for k in n:
            ys.append(s)
            while s < k:
                s = s * x + 0.5
        return s, np.stack(ys)

    check(loop, python, 1.2, np.array([2.0, 1.0, 9.0, 20.0]))
    check(
        lambda x: fnad.cond(x > 1, lambda x: newton(fnad.while_loop, x), lambda x: x * x, x),
        lambda x: newton(in_python, x) if x > 1 else x * x,
        2.1,
    )


def test_a_scan_and_a_branch_in_a_loop():
    def loop(x):
        def body(s):
            t = fnad.cond(s[0] > 1, np.sin, lambda t: t * t + 1.0, s[0])
            return fnad.scan(lambda t, y: (t * y + 0.1, None), t, x)[0] + 0.75 * s[0], s[1] + 1

        return fnad.while_loop(lambda s: s[1] < 4, body, (x[0], np.int64(0)))

    def python(x):
        s = x[0]
        for _ in range(4):
            t = np.sin(s) if s > 1 else s * s + 1.0
            for y in x:
                t = t * y + 0.1
            s = t + 0.75 * s
        return s, np.int64(4)

    check(loop, python, X)


@pytest.mark.slow
def test_a_gradient_in_the_body_of_a_loop():
    """Newton's method for a minimum, with derivatives of derivatives inside."""
    energy = lambda s, a: s**4 / 4 + np.exp(s) - a * s  # noqa: E731
    slope, curvature = fnad.grad(energy), fnad.grad(fnad.grad(energy))

    def f(a):
        body = lambda s: (s[0] - slope(s[0], a) / curvature(s[0], a), s[1] + 1)  # noqa: E731
        return fnad.while_loop(lambda s: s[1] < 4, body, (0.5 * a, np.int64(0)))[0]

    def python(a):
        s = 0.5 * a
        for _ in range(4):
            s = s - (s**3 + np.exp(s) - a) / (3 * s**2 + np.exp(s))
        return s

    check(f, python, 1.9)


@ways
def test_row_52_the_derivative_is_that_of_the_steps_taken(executor):
    """At a = 4 no step is taken from s = 2, so that the program's derivative is 0."""
    root = lambda a: fnad.while_loop(lambda s: abs(s * s - a) > 1e-8, lambda s: (s + a / s) / 2, 2.0)  # noqa: E731
    with fnad.config.override(executor=executor):
        assert_allclose(fnad.jit(fnad.grad(root))(4.1), 0.5 / np.sqrt(4.1), rtol=1e-6)
        with pytest.warns(ControlFlowWarning, match="depends on a through control flow only"):
            assert fnad.jit(fnad.grad(root))(4.0) == 0


@ways
def test_while_loop_of_many_steps_has_a_gradient(executor):
    """The residual stack grows: y after n steps of y = y (1 + x / n) is (1 + x / n)^n."""

    def f(x, n):
        return fnad.while_loop(lambda s: s[1] < n, lambda s: (s[0] * (1 + x / n), s[1] + 1), (1.0, 0))[0]

    steps = 3000
    with fnad.config.override(executor=executor):
        value, slope = fnad.jit(fnad.value_and_grad(f))(0.7, np.int64(steps))
        assert_allclose(value, (1 + 0.7 / steps) ** steps, rtol=1e-12)
        assert_allclose(slope, (1 + 0.7 / steps) ** (steps - 1), rtol=1e-12)


@ways
def test_the_same_program_takes_other_numbers_of_steps(executor):
    f = fnad.jit(
        fnad.value_and_grad(
            lambda x, n: fnad.while_loop(lambda s: s[1] > 0, lambda s: (s[0] * x, s[1] - 1), (1.0, n))[0]
        )
    )
    with fnad.config.override(executor=executor):
        for n in (5, 0, 40, 1, 7):
            value, slope = f(1.1, np.int64(n))
            assert_allclose((value, slope), (1.1**n, n * 1.1 ** (n - 1)), rtol=1e-13)


@ways
def test_while_loop_beyond_max_steps_raises(executor):
    f = fnad.jit(
        fnad.value_and_grad(lambda x, limit: fnad.while_loop(lambda s: s < limit, lambda s: s * x, x, max_steps=5))
    )
    with fnad.config.override(executor=executor):
        assert_allclose(f(2.0, 64.0), (64.0, 6 * 32.0))
        with pytest.raises(LoopLimitError) as raised:
            f(2.0, 65.0)
        assert_allclose(f(2.0, 64.0), (64.0, 6 * 32.0))
    message = str(raised.value).splitlines()
    assert message[0] == "a loop went on after max_steps=5 steps"
    assert message[1].startswith("  at test_while.py:")
    assert "fnad.while_loop(" in message[1]
    assert message[2].startswith("  give more steps")


@ways
def test_bool_and_integer_carries_that_decide(executor):
    def f(x):
        def body(s):
            go, count, y = s
            return (count < 4) & go, count + 1, y * x

        return fnad.while_loop(lambda s: s[0], body, (True, 0, 1.0))

    with fnad.config.override(executor=executor):
        go, count, y = fnad.jit(f)(1.5)
        assert (bool(go), int(count), float(y)) == (False, 5, 1.5**5)
        assert_allclose(fnad.jit(fnad.grad(lambda x: f(x)[2]))(1.5), 5 * 1.5**4)


@ways
def test_keys_as_carries(executor):
    def f(scale, key):
        def body(s):
            key, total, n = s
            key, here = fnad.random.split(key)
            return key, total + scale * fnad.random.normal(here), n + 1

        return fnad.while_loop(lambda s: s[2] < 6, body, (key, 0.0, 0))[1]

    key = fnad.random.key(7)
    total, k = 0.0, key
    for _ in range(6):
        k, here = fnad.random.split(k)
        total += fnad.random.normal(here)
    with fnad.config.override(executor=executor):
        value, slope = fnad.jit(fnad.value_and_grad(f))(2.0, key)
    assert_allclose((value, slope), (2 * total, total), rtol=1e-13)


@ways
def test_row_39_results_and_pullbacks_stay(executor):
    f = lambda x: fnad.while_loop(lambda s: np.sum(s) < 50.0, lambda s: s * x, x)  # noqa: E731
    x = np.array([1.5, 2.0])
    with fnad.config.override(executor=executor):
        jitted = fnad.jit(f)
        first = jitted(x)
        kept = first.copy()
        jitted(x + 1)
        assert_array_equal(first, kept)
        value, pullback = fnad.vjp(f, x)
        ct = pullback(np.ones(2))
        again = [np.copy(c) for c in ct]
        pullback(np.zeros(2))
        for one, other in zip(ct, pullback(np.ones(2)), strict=True):
            assert_array_equal(one, other)
            assert_array_equal(one, again[0])
    assert_array_equal(value, kept)
    assert_array_equal(x, [1.5, 2.0])
