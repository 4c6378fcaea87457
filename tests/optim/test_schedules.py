"""Schedules against their formulas, for counts that are Python's, NumPy's and traced."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import fnad
from fnad import errors, optim

COUNTS = range(14)


def cosine(t: float) -> float:
    return 0.5 * (1 + math.cos(math.pi * min(t, 1)))


def between(a: float, b: float, t: float) -> float:
    return a + (b - a) * min(max(t, 0), 1)


CASES: dict[str, tuple[Any, Any]] = {
    "constant": (optim.constant_schedule(0.3), lambda n: 0.3),
    "linear": (optim.linear_schedule(1.0, 0.2, 5, 3), lambda n: between(1.0, 0.2, (n - 3) / 5)),
    "polynomial": (
        optim.polynomial_schedule(1.0, 0.2, 3, 5),
        lambda n: 0.8 * (1 - min(n, 5) / 5) ** 3 + 0.2,
    ),
    "exponential": (optim.exponential_decay(2.0, 4, 0.5, 2), lambda n: 2.0 * 0.5 ** (max(n - 2, 0) / 4)),
    "staircase": (optim.exponential_decay(2.0, 4, 0.5, staircase=True), lambda n: 2.0 * 0.5 ** (n // 4)),
    "to an end": (optim.exponential_decay(2.0, 4, 0.5, end_value=0.7), lambda n: max(2.0 * 0.5 ** (n / 4), 0.7)),
    "up to an end": (optim.exponential_decay(2.0, 4, 1.5, end_value=5.0), lambda n: min(2.0 * 1.5 ** (n / 4), 5.0)),
    "cosine": (optim.cosine_decay_schedule(2.0, 8), lambda n: 2.0 * cosine(n / 8)),
    "cosine to a part": (optim.cosine_decay_schedule(2.0, 8, 0.1, 2), lambda n: 2 * (0.9 * cosine(n / 8) ** 2 + 0.1)),
    "piecewise constant": (
        optim.piecewise_constant_schedule(2.0, {9: 0.1, 4: 0.5}),
        lambda n: 2.0 if n < 4 else 1.0 if n < 9 else 0.1,
    ),
    "piecewise linear": (
        optim.piecewise_interpolate_schedule("linear", 2.0, {4: 0.5, 9: 0.1}),
        lambda n: between(2.0, 1.0, n / 4) if n < 4 else between(1.0, 0.1, (n - 4) / 5),
    ),
    "piecewise cosine": (
        optim.piecewise_interpolate_schedule("cosine", 2.0, {4: 0.5}),
        lambda n: 1.0 + cosine(n / 4),
    ),
    "warm-up": (optim.warmup_constant_schedule(0.1, 1.0, 4), lambda n: between(0.1, 1.0, n / 4)),
    "no warm-up": (optim.warmup_constant_schedule(0.1, 1.0, 0), lambda n: 1.0),
    "warm-up, cosine": (
        optim.warmup_cosine_decay_schedule(0.1, 1.0, 4, 12, 0.2),
        lambda n: between(0.1, 1.0, n / 4) if n < 4 else 0.8 * cosine((n - 4) / 8) + 0.2,
    ),
    "warm-up, exponential": (
        optim.warmup_exponential_decay_schedule(0.1, 1.0, 4, 3, 0.5),
        lambda n: between(0.1, 1.0, n / 4) if n < 4 else 0.5 ** ((n - 4) / 3),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_schedule_is_its_formula(name: str) -> None:
    schedule, formula = CASES[name]
    traced = fnad.jit(schedule)
    for count in COUNTS:
        expected = pytest.approx(formula(count), rel=1e-14, abs=1e-15)
        assert float(schedule(count)) == expected
        assert float(schedule(np.int32(count))) == expected
        assert float(traced(np.array(count))) == expected


def test_joined_schedules_begin_anew() -> None:
    schedule = optim.join_schedules([lambda n: n, lambda n: 100 + n, lambda n: 200 + n], [3, 5])
    assert [int(schedule(count)) for count in range(7)] == [0, 1, 2, 100, 101, 200, 201]


def test_an_optimizer_follows_its_schedule() -> None:
    opt = optim.sgd(optim.linear_schedule(1.0, 0.0, 4))
    step = fnad.jit(lambda state: opt.update(np.float32(1.0), state))
    state, taken = opt.init(np.float32(1.0)), []
    for _ in range(5):
        update, state = step(state)
        assert update.dtype == np.float32
        taken.append(float(update))
    assert taken == [-1.0, -0.75, -0.5, -0.25, 0.0]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: optim.linear_schedule(1.0, 0.0, 0), "transition_steps is 0"),
        (lambda: optim.cosine_decay_schedule(1.0, -2), "decay_steps is -2"),
        (lambda: optim.cosine_decay_schedule(1.0, 2.5), "decay_steps is 2.5"),
        (lambda: optim.exponential_decay(1.0, 2, 0.0), "decay_rate is 0.0"),
        (lambda: optim.warmup_cosine_decay_schedule(0.0, 1.0, 5, 5), "decay_steps is 5"),
        (lambda: optim.warmup_constant_schedule(0.0, 1.0, -1), "warmup_steps is -1"),
        (lambda: optim.piecewise_constant_schedule(1.0, {-1: 0.5}), "a boundary is -1"),
        (lambda: optim.piecewise_interpolate_schedule("cubic", 1.0, {1: 0.5}), "interpolate_type is 'cubic'"),
        (lambda: optim.join_schedules([abs, abs], []), r"2 schedules have boundaries \[\]"),
        (lambda: optim.join_schedules([abs, abs, abs], [5, 3]), r"3 schedules have boundaries \[5, 3\]"),
    ],
)
def test_a_schedule_that_cannot_be(make: Any, says: str) -> None:
    with pytest.raises(errors.HyperparameterError, match=f"^{says}\n  at test_schedules.py"):
        make()
