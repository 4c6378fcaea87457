"""Sums over part of an array in the loop of the gradient: where they are, values and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fnad import grad
from fnad.backends.cpu.target import CPU
from fnad.lower import padded_sums
from fnad.lower.loop_ir import NestLoop
from fnad.lower.lowering import lower
from tests.lower.test_across import OF_SMALL_TILES, check, program_of

RNG = np.random.default_rng(0)
Function = Callable[[Any], Any]


def rosenbrock(x: Any) -> Any:
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def variation(x: Any) -> Any:
    return np.sum(np.abs(x[1:] - x[:-1])) + np.sum((x[:, 1:] - x[:, :-1]) ** 2)


def weighted(x: Any) -> Any:
    return np.sum((x[1:] - x[:-1]) ** 2 * np.cumsum(np.sin(x))[1:])


def of_rows(x: Any) -> Any:
    return np.sum(np.sum((x[:, 1:] - x[:, :-1]) ** 2, axis=1) ** 1.5)


def of_columns(x: Any) -> Any:
    return np.sum(np.sum((x[:, 1:] - x[:, :-1]) ** 2, axis=0) ** 1.5)


def curvature(x: Any) -> Any:
    """The hyperbolic tangents have a buffer, so that their sum stays in the loop that computes them."""
    return np.sum(np.tanh(x[2:] - 2 * x[1:-1] + x[:-2]) ** 2)


def loops(function: Function, x: np.ndarray) -> list[NestLoop]:
    program = program_of(lambda x: (function(x), grad(function)(x)), [x])
    return [item for item in lower(program, CPU).items if isinstance(item, NestLoop)]


@pytest.mark.parametrize(("function", "ndim"), [(rosenbrock, 1), (variation, 2), (of_rows, 2)])
def test_sum_and_gradient_are_one_loop(function: Function, ndim: int) -> None:
    (loop,) = loops(function, np.ones((100_000,) if ndim == 1 else (300, 300)))
    assert loop.extent == (100_000 if ndim == 1 else 300)


def test_sum_stays_where_its_terms_are_computed() -> None:
    assert [loop.extent for loop in loops(curvature, np.ones(100_000))] == [99_998, 100_000]


def test_small_arrays_have_loops_of_their_own() -> None:
    assert [loop.extent for loop in loops(rosenbrock, np.ones(1000))] == [999, 1000]


@pytest.mark.parametrize("function", [rosenbrock, weighted, variation, of_rows, of_columns, curvature])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("target", [CPU, OF_SMALL_TILES], ids=["cpu", "small tiles"])
def test_values_are_those_of_the_interpreter(
    function: Function, dtype: str, target: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(padded_sums, "SMALLEST", 1)
    x = RNG.standard_normal((97,) if function in (rosenbrock, weighted, curvature) else (13, 19)).astype(dtype)
    check(lambda x: (function(x), grad(function)(x)), [x], target)


@pytest.mark.parametrize("at", [0, -1])
def test_an_element_at_the_border_that_is_nan_counts(at: int) -> None:
    x = np.ones(100_000)
    x[at] = np.nan
    check(lambda x: (rosenbrock(x), grad(rosenbrock)(x)), [x], CPU)


def test_gradient_of_rosenbrock() -> None:
    x = RNG.standard_normal(100_000)
    bend = x[1:] - x[:-1] ** 2
    expected = np.pad(-400 * bend * x[:-1] - 2 * (1 - x[:-1]), (0, 1)) + np.pad(200 * bend, (1, 0))
    np.testing.assert_allclose(grad(rosenbrock)(x), expected, rtol=1e-12)
