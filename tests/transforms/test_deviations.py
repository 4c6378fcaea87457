"""Sums of deviations from a mean: left out where they are 0, and only there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fnad

W = np.random.default_rng(1).standard_normal((4, 4))


def centered(x: Any, axis: Any, *, keepdims: bool = True) -> Any:
    return x - np.mean(x, axis=axis, keepdims=keepdims)


SUMS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "rows": (lambda x: np.sum(centered(x, 1), axis=1), 1),
    "columns": (lambda x: np.sum(3 * centered(x, 0), axis=0), 1),
    "all": (lambda x: np.sum(centered(x, (0, 1))), 1),
    "beside others": (lambda x: np.sum(centered(x, 1) + x * x, axis=1), 2),
    "along the other axis": (lambda x: np.sum(centered(x, 1), axis=0), 2),
    "times other numbers": (lambda x: np.sum(W * centered(x, 1), axis=1), 2),
    "from the means of columns": (lambda x: np.sum(x - np.mean(x, axis=0), axis=1), 2),
    "from the means of rows, as columns": (lambda x: np.sum(centered(x, 1, keepdims=False), axis=1), 2),
    "from the mean of another": (lambda x: np.sum(x * x - np.mean(x, axis=1, keepdims=True), axis=1), 2),
    "from a half of the mean": (lambda x: np.sum(x - np.sum(x, axis=1, keepdims=True) / 8, axis=1), 2),
}


@pytest.mark.parametrize("name", SUMS)
def test_a_sum_is_left_out_where_it_is_zero(name: str) -> None:
    f, sums = SUMS[name]
    x = np.random.default_rng(0).standard_normal((4, 4))
    compiled = fnad.jit(f)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(np.isnan(compiled(x * np.inf)), np.isnan(f(x * np.inf)))
    np.testing.assert_allclose(compiled(x), f(x), rtol=1e-12, atol=1e-14)
    assert compiled.lower(x).as_text("simplified").count("reduce_sum") == sums


def norm(x: Any) -> Any:
    c = centered(x, 1)
    return np.sum(W * np.arange(1.0, 5.0) * c / np.sqrt(np.mean(c**2, axis=1, keepdims=True) + 1e-5))


@pytest.mark.parametrize("f", [norm, lambda x: np.sum(W[0] * np.var(x, axis=0)), lambda x: np.std(x) ** 3])
def test_gradients_of_deviations_are_those_of_differences(f: Callable[[Any], Any]) -> None:
    x, h = np.random.default_rng(0).standard_normal((4, 4)), 1e-6
    directions = np.eye(16).reshape(16, 4, 4)
    slopes = [(f(x + h * d) - f(x - h * d)) / (2 * h) for d in directions]
    for gradient in (fnad.grad(f), fnad.jit(fnad.grad(f))):
        np.testing.assert_allclose(gradient(x).ravel(), slopes, rtol=1e-7, atol=1e-9)
