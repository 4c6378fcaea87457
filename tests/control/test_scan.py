"""Scans, fori loops and maps: values and derivatives to second order are those of the same loop in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fnad
from tests.control.truth import check
from tests.together import some_of

X = np.array([0.7, -1.1, 0.4])
ROWS = np.array([[0.5, -0.25], [1.5, 0.75], [-0.5, 1.25]])
SQUARE = np.array([[0.9, -0.3], [0.2, 0.8]])


def scan_in_python(f, init, xs, length=None, reverse=False):
    """Return what `scan` does, with Python's loop over rows; xs is an array, a tuple of arrays or None."""
    carry, ys = init, []
    row = lambda i: None if xs is None else tuple(x[i] for x in xs) if isinstance(xs, tuple) else xs[i]  # noqa: E731
    steps = length if xs is None else len(xs[0]) if isinstance(xs, tuple) else len(xs)
    for i in range(steps)[::-1] if reverse else range(steps):
        carry, y = f(carry, row(i))
        ys.append(y)
    return carry, ys[::-1] if reverse else ys


def stacked(*args, **options):
    """Return what `scan` does, where the ys are single arrays."""
    carry, ys = scan_in_python(*args, **options)
    return carry, np.stack(ys)


# ---- scan ------------------------------------------------------------------------------------------------------------


def recurrence(s, x):
    return np.sin(s) * x + 0.5 * s, s * s


def with_captured(a):
    return lambda s, x: (np.tanh(a @ s + x), np.sum(s * x))


CASES: dict[str, tuple[Any, Any, tuple[Any, ...]]] = {}


def case(name, *args):
    """Enter a pair of functions, that of fnad and that of Python, which `pair` returns."""

    def enter(pair):
        CASES[name] = (*pair(), args)
        return pair

    return enter


def both(body, init=lambda *_: None, xs=lambda *_: None, **options):
    """Return a scan and the same in Python; body, init and xs are functions of the arguments."""

    def loop(*args):
        return fnad.scan(body(*args), init(*args), xs(*args), **options)

    def in_python(*args):
        carry, ys = scan_in_python(body(*args), init(*args), xs(*args), **options)
        return carry, None if ys[0] is None else np.stack(ys)

    return loop, in_python


@case("a carry, rows and ys", 0.3, X)
def plain():
    return both(lambda s, x: recurrence, lambda s, x: s, lambda s, x: x)


@case("reverse", 0.3, X)
def reverse():
    return both(lambda s, x: recurrence, lambda s, x: s, lambda s, x: x, reverse=True)


@case("one step", 0.3, X[:1])
def one_step():
    return both(lambda s, x: recurrence, lambda s, x: s, lambda s, x: x)


@case("captured matrix", SQUARE, np.array([0.1, 0.2]), ROWS)
def captured():
    return both(lambda a, s, x: with_captured(a), lambda a, s, x: s, lambda a, s, x: x)


@case("captured matrix, reverse", SQUARE, np.array([0.1, 0.2]), ROWS)
def captured_reverse():
    return both(lambda a, s, x: with_captured(a), lambda a, s, x: s, lambda a, s, x: x, reverse=True)


@case("no rows", 0.3)
def no_rows():
    return both(lambda s: lambda s, _: (np.cos(s), None), lambda s: s, length=4)


@case("no carry", X)
def no_carry():
    return both(lambda x: lambda _, x: (None, np.exp(x) * x), xs=lambda x: x)


@case("swapped carries", 0.3, 1.2)
def swapped():
    return both(lambda a, b: lambda s, _: ((s[1], np.sin(s[0]) * s[1]), s[0]), lambda a, b: (a, b), length=3)


@case("carries only swapped", 0.3, 1.2)
def only_swapped():
    return both(lambda a, b: lambda s, _: ((s[1], s[0]), None), lambda a, b: (a, b), length=3)


@case("a carry that stays", 0.3, 1.2)
def stays():
    return both(lambda a, b: lambda s, _: ((s[0], s[0] * s[1] ** 2), s[0]), lambda a, b: (a, b), length=3)


@case("a body that does nothing", 0.3, X)
def nothing():
    return both(lambda s, x: lambda s, x: (s, x), lambda s, x: s, lambda s, x: x)


@case("a constant output", 0.3, X)
def constant():
    return both(lambda s, x: lambda s, x: (s * x, np.float64(2.0)), lambda s, x: s, lambda s, x: x)


@case("a captured value as output", 0.3, X)
def captured_output():
    return both(lambda s, x: lambda c, _: (c + 1.0, s * s), lambda s, x: s, lambda s, x: x)


@case("unused rows", 0.3, X)
def unused_rows():
    return both(lambda s, x: lambda s, x: (s * s, None), lambda s, x: s, lambda s, x: x)


@case("a carry that nothing uses", 0.3, X)
def dead_carry():
    def dropped(loop):
        def run(*args):
            carry, ys = loop(*args)
            return carry[0], ys

        return run

    body = lambda s, x: lambda s, x: ((s[0] * x, np.sin(s[1])), s[0])  # noqa: E731
    return tuple(map(dropped, both(body, lambda s, x: (s, s), lambda s, x: x)))


@case("integer and bool carries beside a float one", 0.3, X)
def integer_carry():
    def body(s, x):
        total, count, flag = s
        return (total * x + count, count + 1, flag ^ (x > 0)), (count, flag)

    def in_python(s, x):
        carry, ys = scan_in_python(body, (s, np.int64(0), np.False_), x)
        return carry, tuple(map(np.stack, zip(*ys, strict=True)))

    return lambda s, x: fnad.scan(body, (s, np.int64(0), np.False_), x), in_python


@case("several rows at once", X, ROWS)
def several_rows():
    body = lambda s, x: (s * x[0] + np.sum(x[1]), s)  # noqa: E731
    return both(lambda x, y: body, lambda x, y: x[0], lambda x, y: (x, y))


@case("a loop in a loop", 0.3, ROWS)
def nested():
    inner = lambda s, x: (np.sin(s) + x, s * x)  # noqa: E731

    def outer(s, row):
        s, ys = fnad.scan(inner, s, row)
        return s, np.sum(ys)

    def outer_in_python(s, row):
        s, ys = scan_in_python(inner, s, row)
        return s, sum(ys)

    return (
        lambda s, x: fnad.scan(outer, s, x),
        lambda s, x: stacked(outer_in_python, s, x),
    )


@case("a loop in a loop that both capture", 0.3, X)
def nested_captured():
    def loop(a, x):
        inner = lambda s, y: (np.sin(s * a) + y, None)  # noqa: E731
        return fnad.scan(lambda s, y: (fnad.scan(inner, s * y, x)[0], s), a, x)

    def in_python(a, x):
        inner = lambda s, y: (np.sin(s * a) + y, None)  # noqa: E731
        return stacked(lambda s, y: (scan_in_python(inner, s * y, x)[0], s), a, x)

    return loop, in_python


@case("a body that writes into its carry", X, ROWS)
def writes():
    def body(c, row):
        c[0] = c[1] * row[0]
        c[1:] += c[:-1] * row[1]
        return c, c[0]

    return lambda x, rows: fnad.scan(body, x, rows), lambda x, rows: stacked(body, x.copy(), rows)


@case("complex", np.complex128(0.3 + 0.2j), X + 1j * X[::-1])
def complex_carry():
    body = lambda s, x: (np.sin(s) * x, s.real * x.imag)  # noqa: E731
    return both(lambda s, x: body, lambda s, x: s, lambda s, x: x)


@case("f32", np.float32(0.3), X.astype(np.float32))
def single():
    return both(lambda s, x: recurrence, lambda s, x: s, lambda s, x: x)


@case("fori_loop", 0.3, X)
def fori():
    def loop(s, x):
        return fnad.fori_loop(0, 3, lambda i, s: np.sin(s) * x[i] + i, s)

    def in_python(s, x):
        for i in range(3):
            s = np.sin(s) * x[i] + i
        return s

    return loop, in_python


@case("fori_loop of a traced length", 0.3, X, np.int64(3))
def fori_traced():
    def loop(s, x, n):
        return fnad.fori_loop(0, n, lambda i, s: np.sin(s) * x[i] + i, s)

    def in_python(s, x, n):
        for i in range(n):
            s = np.sin(s) * x[i] + i
        return s

    return loop, in_python


@case("fori_loop between traced bounds, with captured arrays", 0.3, X, np.int64(-1), np.int64(2))
def fori_bounds():
    def loop(s, x, lo, hi):
        return fnad.fori_loop(lo, hi, lambda i, c: (np.sin(c[0]) * x[i], c[1] + x * s), (s, x))

    def in_python(s, x, lo, hi):
        c, d = s, x
        for i in range(lo, hi):
            c, d = np.sin(c) * x[i], d + x * s
        return c, d

    return loop, in_python


@case("fori_loop of no steps", 0.3, np.int64(3), np.int64(1))
def fori_none():
    return lambda s, lo, hi: fnad.fori_loop(lo, hi, lambda _, s: s * s, s), lambda s, lo, hi: s


@case("a triangle of loops", X)
def triangle():
    def loop(x):
        return fnad.fori_loop(0, 3, lambda i, s: fnad.fori_loop(0, i, lambda j, t: t * x[j] + x[i], s), 0.5)

    def in_python(x):
        s = type(x[0])(0.5)
        for i in range(3):
            for j in range(i):
                s = s * x[j] + x[i]
        return s

    return loop, in_python


@case("map", X, ROWS)
def mapped():
    return lambda x, y: fnad.map(lambda p: p[0] * np.sin(p[1]), (x, y)), lambda x, y: x[:, None] * np.sin(y)


@case("a gradient inside a body", 0.3, X)
def gradient_inside():
    energy = lambda s, x: np.sin(s) * x**2  # noqa: E731
    slope = lambda s, x: np.cos(s) * x**2  # noqa: E731
    return (
        lambda s, x: fnad.scan(lambda s, y: (s - 0.25 * fnad.grad(energy)(s, y), s), s, x),
        lambda s, x: stacked(lambda s, y: (s - 0.25 * slope(s, y), s), s, x),
    )


@case("a gradient of a loop inside a loop", 0.3, X)
def gradient_of_inner():
    def product(s, x):
        return fnad.scan(lambda c, y: (c * s * y, None), 1.0, x)[0]

    def body(s, y):
        return s + 0.5 * fnad.grad(product)(s, np.stack([y, y + 1.0])), None

    def in_python(s, x):
        for y in x:
            s = s + 0.5 * 2 * s * y * (y + 1.0)
        return s, None

    return lambda s, x: fnad.scan(body, s, x), in_python


DEEP = ("captured matrix, reverse", "swapped carries", "a loop in a loop that both capture", "a triangle of loops")
"""Those of which second derivatives are compiled too."""
COMPILED = {*DEEP, *some_of([*CASES], "compiled scans", len(CASES) // 3)}
"""Those of which first ones are compiled: `tests/backends/test_control.py` compiles others."""


@pytest.mark.parametrize("name", CASES)
def test_a_loop_is_that_of_python(name):
    loop, in_python, args = CASES[name]
    check(loop, in_python, *args, compiled=(name in COMPILED) + (name in DEEP))


# ---- lengths ---------------------------------------------------------------------------------------------------------

ways = pytest.mark.parametrize("executor", ["interpreter", "compiled"])


def value_and_slopes(length, unroll, reverse):
    """Return the value and derivatives of a scan of so many steps, so many in a turn."""
    x, weights = np.linspace(-1.0, 1.0, length), np.linspace(0.5, 1.5, length)

    def f(s, x):
        carry, ys = fnad.scan(recurrence, s, x, reverse=reverse, unroll=unroll)
        return carry + np.sum(ys * weights)

    value, (ds, dx) = fnad.jit(fnad.value_and_grad(f, (0, 1)))(0.3, x)
    return np.array([value, ds, *dx])


@pytest.mark.parametrize("length", [0, 1, 2, 5, 8])
def test_any_number_of_steps_in_a_turn(length):
    for reverse in (False, True):
        with fnad.config.override(executor="interpreter"):
            expected = value_and_slopes(length, 1, reverse)
            for unroll in (2, 3, 7, 8, 9):
                np.testing.assert_allclose(value_and_slopes(length, unroll, reverse), expected, rtol=1e-13)
    with fnad.config.override(executor="compiled"):
        np.testing.assert_allclose(value_and_slopes(length, 3, True), expected, rtol=1e-13)


@ways
def test_scan_of_no_steps_returns_the_carry_and_empty_outputs(executor):
    with fnad.config.override(executor=executor):
        run = fnad.jit(lambda s, x: fnad.scan(lambda s, x: (s * np.sum(x), {"y": x * s}), s, x))
        carry, ys = run(0.3, np.zeros((0, 2)))
        assert (carry, ys["y"].shape, ys["y"].dtype) == (0.3, (0, 2), np.float64)
        slope = fnad.jit(fnad.grad(lambda s, x: fnad.scan(lambda s, x: (s * s * x, s), s, x)[0], (0, 1)))
        ds, dx = slope(0.3, np.zeros(0))
        assert (ds, dx.shape) == (1.0, (0,))
        assert fnad.jit(fnad.grad(lambda s: fnad.scan(lambda s, _: (s * s, s), s, length=0)[0]))(0.3) == 1


@ways
def test_rows_without_elements(executor):
    def f(s, x):
        return fnad.scan(lambda s, row: (s * 1.5 + np.sum(row), row * s), s, x)

    with fnad.config.override(executor=executor):
        carry, ys = fnad.jit(f)(0.3, np.zeros((4, 0)))
        assert (round(float(carry), 12), ys.shape) == (round(0.3 * 1.5**4, 12), (4, 0))
        ds, dx = fnad.jit(fnad.grad(lambda s, x: f(s, x)[0], (0, 1)))(0.3, np.zeros((4, 0)))
        assert (float(ds), dx.shape) == (1.5**4, (4, 0))


@ways
def test_a_loop_between_bounds_that_are_crossed_runs_no_step(executor):
    f = fnad.jit(lambda x, lo, hi: fnad.value_and_grad(lambda x: fnad.fori_loop(lo, hi, lambda i, s: s * x + i, x))(x))
    with fnad.config.override(executor=executor):
        for dtype in (np.int64, np.int32, np.uint8):
            assert f(2.0, dtype(5), dtype(3)) == (2.0, 1.0)
            assert f(2.0, dtype(3), dtype(3)) == (2.0, 1.0)
            assert f(2.0, dtype(1), dtype(3)) == (2.0 * 2 * 2 + 2 + 2, 3 * 4 + 1)
        assert f(2.0, np.int64(-2), np.int64(0)) == (2.0 * 2 * 2 - 2 * 2 - 1, 3 * 4 - 2)


# ---- dtypes ----------------------------------------------------------------------------------------------------------


PROMOTED = {
    "an integer that meets a float": (0, np.float64(1.5), np.float64),
    "an integer that meets f32": (0, np.float32(1.5), np.float32),
    "a float of Python that meets f32": (0.0, np.float32(1.5), np.float32),
    "f32 that meets f64": (np.float32(0), np.float64(1.5), np.float64),
    "a float that meets a complex number": (0.0, np.complex128(1.5j), np.complex128),
    "f32 that meets a float of Python": (np.float32(0), 1.5, np.float32),
    "an i32 that meets f32": (np.int32(0), np.float32(1.5), np.float64),
    "a bool that meets an integer": (False, np.int64(2), np.int64),
}


@ways
@pytest.mark.parametrize("name", PROMOTED)
def test_a_carry_takes_the_dtype_it_settles_on(name, executor):
    init, term, dtype = PROMOTED[name]
    loops = {
        "fori_loop": lambda t: fnad.fori_loop(0, 3, lambda _, s: s + t, init),
        "scan": lambda t: fnad.scan(lambda s, _: (s + t, None), init, length=3)[0],
        "while_loop": lambda t: fnad.while_loop(lambda s: s[1] < 3, lambda s: (s[0] + t, s[1] + 1), (init, 0))[0],
    }
    with fnad.config.override(executor=executor):
        for loop in loops.values():
            result = fnad.jit(loop)(term)
            assert (result.dtype, result) == (dtype, 3 * term)


def test_carries_that_promote_one_after_the_other():
    """The first becomes a float in the second trace, by the second; the third, a complex number, in the third."""

    def body(s, _):
        a, b, c = s
        return (b, c, c * 1j), a

    (a, b, c), ys = fnad.scan(body, (0, 1, 2.0), length=3)
    assert [np.asarray(x).dtype for x in (a, b, c, ys)] == [np.complex128] * 4
    np.testing.assert_array_equal((a, b, c), [2.0j * 1j**0, -2.0, -2.0j])


@ways
def test_integer_results_have_no_derivative(executor):
    def f(x):
        count, total = fnad.fori_loop(0, 4, lambda i, s: (s[0] + (s[1] > 1), s[1] * x + s[0]), (0, x))
        return total + count

    def slope(x):
        h = 1e-6
        return (f(x + h) - f(x - h)) / (2 * h)

    with fnad.config.override(executor=executor):
        np.testing.assert_allclose(fnad.jit(fnad.grad(f))(1.25), slope(1.25), rtol=1e-8)
        assert fnad.jit(fnad.grad(lambda x: x * fnad.fori_loop(0, 3, lambda i, n: n + i, 1)))(2.0) == 4


# ---- pytrees and arrays of the caller --------------------------------------------------------------------------------


def test_scan_carries_and_stacks_pytrees():
    init = {"w": np.ones(2), "rest": (np.float64(2.0), None, [np.float64(3.0)])}

    def body(s, x):
        w = s["w"] * x["a"] + s["rest"][0]
        return {"w": w, "rest": (np.sum(w), None, [s["rest"][2][0] + x["b"][0]])}, {"n": None, "y": (w, ())}

    xs = {"a": np.arange(1.0, 4.0), "b": [np.arange(3.0)]}
    final, ys = fnad.jit(lambda s, x: fnad.scan(body, s, x))(init, xs)
    s, rows = init, []
    for i in range(3):
        s, y = body(s, {"a": xs["a"][i], "b": [xs["b"][0][i]]})
        rows.append(y["y"][0])
    np.testing.assert_array_equal(final["w"], s["w"])
    assert (final["rest"][0], final["rest"][2][0]) == (s["rest"][0], s["rest"][2][0])
    assert (ys["n"], ys["y"][1]) == (None, ())
    np.testing.assert_array_equal(ys["y"][0], np.stack(rows))


@ways
def test_arrays_of_the_caller_and_former_results_stay(executor):
    def body(c, row):
        c[0] += row[0]
        row[1] = 7.0
        return c, row

    f = fnad.jit(lambda c, rows: fnad.scan(body, c, rows))
    c, rows = np.array([1.0, 2.0]), np.array([[1.0, 2.0], [3.0, 4.0]])
    with fnad.config.override(executor=executor):
        first = f(c, rows)
        np.testing.assert_array_equal(first[0], [5.0, 2.0])
        np.testing.assert_array_equal(first[1], [[1.0, 7.0], [3.0, 7.0]])
        f(c + 10, rows + 10)
        fnad.grad(lambda c, rows: np.sum(f(c, rows)[1]) + f(c, rows)[0][0])(c, rows)
    np.testing.assert_array_equal(first[0], [5.0, 2.0])
    np.testing.assert_array_equal(first[1], [[1.0, 7.0], [3.0, 7.0]])
    np.testing.assert_array_equal(c, [1.0, 2.0])
    np.testing.assert_array_equal(rows, [[1.0, 2.0], [3.0, 4.0]])


@ways
def test_row_39_a_pullback_called_twice(executor):
    x = np.array([0.5, 1.5, -0.5])
    with fnad.config.override(executor=executor):
        _, pullback = fnad.vjp(lambda s, x: fnad.scan(recurrence, s, x), np.float64(0.3), x)
        first = pullback((np.float64(1.0), np.zeros(3)))
        kept = [np.copy(part) for part in first]
        pullback((np.float64(2.0), np.ones(3)))
        again = pullback((np.float64(1.0), np.zeros(3)))
    for one, before, other in zip(first, kept, again, strict=True):
        np.testing.assert_array_equal(one, before)
        np.testing.assert_array_equal(one, other)


def test_a_loop_outside_of_any_transform_reads_tables_at_traced_indices():
    table = np.array([2.0, 3.0, 5.0])
    assert fnad.fori_loop(0, 3, lambda i, s: s * table[i], 1.0) == 30
    assert fnad.cond(True, lambda i: table[i], lambda i: table[i + 1], np.int64(2)) == 5
    assert fnad.while_loop(lambda s: table[s[1]] < 5, lambda s: (s[0] + table[s[1]], s[1] + 1), (0.0, 0)) == (5.0, 2)
    np.testing.assert_array_equal(fnad.map(lambda i: table[i] ** 2, np.array([2, 0])), [25.0, 4.0])
