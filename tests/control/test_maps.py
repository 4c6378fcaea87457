"""Scans whose steps only add up what they compute: arithmetic on arrays, with the same numbers to the bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fnad
from fnad.control.maps import mapped
from fnad.ir.program import Program
from fnad.transforms.interpret import interpret
from fnad.transforms.pipeline import simplify
from tests.together import together

X = np.random.default_rng(0).normal(size=40)
X[3] = -0.0


def scanned(step: Callable[..., Any], start: Any = 0.0, **options: Any) -> Callable[..., Any]:
    return lambda x, a: fnad.scan(lambda s, v: step(s, v, a), start, x, **options)


def three(s: Any, v: Any, a: Any) -> Any:
    def small() -> Any:
        return fnad.cond(v < -a, lambda: s - v * v, lambda: s)

    return fnad.cond(v > a, lambda: np.sin(v) + s, small), v * a


def two_sums(s: Any, v: Any, a: Any) -> Any:
    x, n = s
    x, n = fnad.cond(v > a, lambda: (x - v / a, n + 1), lambda: (x, n - 2))
    return (x, n), fnad.cond(v < 0, lambda: v / (v + a), lambda: 2.0)


def no_carry(s: Any, v: Any, a: Any) -> Any:
    return s, fnad.cond(v * a > 0, lambda: np.sqrt(v * a), lambda: v - a)


MAPPED = [
    *(scanned(three), scanned(three, reverse=True), scanned(three, -0.0), scanned(no_carry, None)),
    *(scanned(two_sums, (0.0, 0)), scanned(two_sums, (np.float64(1e9), 3), reverse=True)),
    lambda x, a: fnad.scan(lambda s, v: (s + scanned(three)(x * v, a)[0], None), 0.0, x),
]


def decides(s: Any, v: Any, a: Any) -> Any:
    return fnad.cond(s > a, lambda: s - v**3, lambda: s + v), None


def scaled(s: Any, v: Any, a: Any) -> Any:
    return fnad.cond(v > a, lambda: s * 0.5 + v**3, lambda: s + v), None


def returned(s: Any, v: Any, a: Any) -> Any:
    return fnad.cond(v > a, lambda: s + v**3, lambda: s), s


def added_twice(s: Any, v: Any, a: Any) -> Any:
    return fnad.cond(v > a, lambda: s + v**3, lambda: s) + v, None


def dear(s: Any, v: Any, a: Any) -> Any:
    return s + fnad.cond(v > a, lambda: np.sin(np.exp(np.cos(np.tanh(v)))), lambda: v), None


def decided_by_a_function(s: Any, v: Any, a: Any) -> Any:
    return s + fnad.cond(np.sin(v) > a, lambda: v**3, lambda: v * a), None


def of_other(s: Any, v: Any, a: Any) -> Any:
    x, y = s
    return (fnad.cond(v > a, lambda: x + y**3, lambda: x), y + v), None


def cheap(s: Any, v: Any, a: Any) -> Any:
    return s + fnad.cond(v > a, lambda: v * v, lambda: a * v), None


def on_rows(s: Any, v: Any, a: Any) -> Any:
    return s + fnad.cond(v > a, lambda: np.ones(3) * v, lambda: np.zeros(3)), None


KEPT = [*map(scanned, (decides, scaled, returned, added_twice, dear, decided_by_a_function, cheap))]
KEPT += [scanned(of_other, (0.0, 1.0)), scanned(on_rows, np.zeros(3)), lambda x, a: scanned(three)(x[:8], a)]


def program_of(f: Callable[..., Any], x: Any, a: Any) -> Program:
    return simplify(fnad.make_program(f)(x, a).program)


def results(program: Program, x: Any, a: Any) -> list[bytes]:
    return [np.asarray(result).tobytes() for result in interpret(program, [x, np.asarray(a)])]


@pytest.mark.slow
def test_steps_that_only_sum_are_arithmetic_on_arrays() -> None:
    with together() as check:
        for number, f in enumerate(MAPPED):
            with check(number):
                program = program_of(f, X, 0.3)
                found = mapped(program)
                assert " cond(" in str(program)
                assert " cond(" not in str(found)
                for a in (0.3, 0.0, np.nan):
                    with np.errstate(all="ignore"):
                        assert results(found, X, a) == results(program, X, a)


def test_other_scans_stay() -> None:
    for f in KEPT:
        program = program_of(f, X, 0.3)
        assert str(mapped(program)) == str(program)


@pytest.mark.parametrize("f", MAPPED[:5])
def test_gradients_are_mapped_as_well(f: Callable[..., Any]) -> None:
    """The compiled loops against those of the interpreter, which computes step by step at the first call."""

    def total(x: Any, a: Any) -> Any:
        return sum(np.sum(each**2) for each in fnad.tree.leaves(f(x, a)))

    both = fnad.jit(fnad.value_and_grad(total, (0, 1)))
    text = both.lower(X, 0.3).as_text("simplified")
    assert " cond(" not in text
    both(X, 0.3)
    value, (to_x, to_a) = both(X, 0.3)
    with fnad.config.override(executor="interpreter"):
        expected, (x, a) = fnad.value_and_grad(total, (0, 1))(X, 0.3)
    np.testing.assert_allclose(value, expected, rtol=1e-14)
    np.testing.assert_allclose(to_x, x, rtol=1e-13)
    np.testing.assert_allclose(to_a, a, rtol=1e-12)
