"""Scans, fori loops and maps: values and derivatives to second order are those of the same loop in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fnad
from tests.control.truth import check, compare_values

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


def stacked(ys):
    return np.stack(ys)


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
        return carry, None if ys[0] is None else stacked(ys)

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
    def dropped(pair):
        return lambda *args: (lambda carry, ys: (carry[0], ys))(*pair(*args))

    body = lambda s, x: lambda s, x: ((s[0] * x, np.sin(s[1])), s[0])  # noqa: E731
    return tuple(map(dropped, both(body, lambda s, x: (s, s), lambda s, x: x)))


@case("integer and bool carries beside a float one", 0.3, X)
def integer_carry():
    def body(s, x):
        total, count, flag = s
        return (total * x + count, count + 1, flag ^ (x > 0)), (count, flag)

    def in_python(s, x):
        carry, ys = scan_in_python(body, (s, np.int64(0), np.False_), x)
        return carry, tuple(map(stacked, zip(*ys, strict=True)))

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
        lambda s, x: (lambda c, ys: (c, stacked(ys)))(*scan_in_python(outer_in_python, s, x)),
    )


@case("a loop in a loop that both capture", 0.3, X)
def nested_captured():
    def loop(a, x):
        inner = lambda s, y: (np.sin(s * a) + y, None)  # noqa: E731
        return fnad.scan(lambda s, y: (fnad.scan(inner, s * y, x)[0], s), a, x)

    def in_python(a, x):
        inner = lambda s, y: (np.sin(s * a) + y, None)  # noqa: E731
        carry, ys = scan_in_python(lambda s, y: (scan_in_python(inner, s * y, x)[0], s), a, x)
        return carry, stacked(ys)

    return loop, in_python


@case("a body that writes into its carry", X, ROWS)
def writes():
    def body(c, row):
        c[0] = c[1] * row[0]
        c[1:] += c[:-1] * row[1]
        return c, c[0]

    def in_python(x, rows):
        carry, ys = scan_in_python(body, x.copy(), rows)
        return carry, stacked(ys)

    return lambda x, rows: fnad.scan(body, x, rows), in_python


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
        lambda s, x: (lambda c, ys: (c, stacked(ys)))(*scan_in_python(lambda s, y: (s - 0.25 * slope(s, y), s), s, x)),
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


@pytest.mark.parametrize("name", CASES)
def test_a_loop_is_that_of_python(name):
    loop, in_python, args = CASES[name]
    check(loop, in_python, *args)
