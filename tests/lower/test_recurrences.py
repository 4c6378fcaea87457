"""Loops whose steps work on single elements, by tiles of elements: where they are, values, gradients and threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fnad import grad, scan
from fnad.backends.cpu.target import CPU
from fnad.kernel.plan import Plan
from fnad.lower.lowering import lower
from tests.lower.test_across import OF_SMALL_TILES, check, loops_across, program_of, run

RNG = np.random.default_rng(0)
STEPS = 7


def powers(t: Any, c: Any, w: Any) -> Any:
    return np.sum((w - np.vander(t, len(c), increasing=True) @ c) ** 2)


def horner(t: Any, c: Any, w: Any) -> Any:
    return np.sum((w - scan(lambda y, k: (y * t + k, None), np.zeros_like(t), c)[0]) ** 2)


def stacked(t: Any, c: Any, w: Any) -> Any:
    y, rows = scan(lambda y, k: (np.sin(y) * t + k, np.cos(y) * k), w, c)
    return np.sum(y * w) + np.sum(rows * t) + np.sum((rows.T @ c) ** 2)


def reversed_pair(t: Any, c: Any, w: Any) -> Any:
    (a, b), rows = scan(lambda s, k: ((s[1] * k + s[0], s[0] * w - s[1]), s[0] * s[1]), (t, w), c, reverse=True)
    return np.sum(a * b) + np.sum(rows**2)


def swapped(t: Any, c: Any, w: Any) -> Any:
    (a, b), sums = scan(lambda s, k: ((s[1], s[0] * k), s[0] + s[1]), (t, w), c)
    return np.sum(a * w) + np.sum(b * t * t) + np.sum(sums * c[:, None])


def leapfrog(t: Any, c: Any, w: Any) -> Any:
    def step(state: Any, k: Any) -> Any:
        q, p = state
        p = p - np.sin(q) * k / 4
        q = q + p / 4
        return (q, p), (np.sum(q), np.max(p))

    (q, p), (sums, most) = scan(step, (t, w), c)
    return np.sum(q * p) + np.sum(sums**2) + np.sum(most)


def neighbours(t: Any, c: Any, w: Any) -> Any:
    return np.sum(scan(lambda y, k: ((np.roll(y, 1) - y) * k, None), t, c)[0] * w)


def fold_of_neighbours(t: Any, c: Any, w: Any) -> Any:
    y, most = scan(lambda y, k: (y * k, np.max(np.roll(y, 3) - t)), w, c)
    return np.sum(y * w) + np.sum(most)


def with_number(t: Any, c: Any, w: Any) -> Any:
    (y, total), _ = scan(lambda s, k: ((s[0] * t + s[1], s[1] * k), None), (w, c[0]), c)
    return np.sum(y) + total


OF_ELEMENTS = (horner, stacked, reversed_pair, swapped, leapfrog)


def arguments(elements: int, dtype: str = "f8") -> list[np.ndarray]:
    t, c, w = (RNG.uniform(-1, 1, size).astype(dtype) for size in (elements, STEPS, elements))
    return [t, c, w]


def with_gradients(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: (function(*args), *grad(function, argnums=(0, 1))(*args))


@pytest.mark.parametrize("function", OF_ELEMENTS)
@pytest.mark.parametrize(("elements", "dtype"), [(128, "f8"), (301, "f8"), (301, "f4")])
def test_values_and_gradients_are_those_of_the_interpreter(
    function: Callable[..., Any], elements: int, dtype: str
) -> None:
    check(with_gradients(function), arguments(elements, dtype))


@pytest.mark.parametrize("function", OF_ELEMENTS)
def test_steps_run_within_tiles(function: Callable[..., Any]) -> None:
    loops = lower(program_of(function, arguments(301)), CPU)
    assert loops_across(loops.items)


@pytest.mark.parametrize("function", [neighbours, fold_of_neighbours, with_number])
def test_steps_that_need_other_elements_run_over_whole_arrays(function: Callable[..., Any]) -> None:
    args = arguments(301)
    assert not loops_across(lower(program_of(function, args), CPU).items)
    check(with_gradients(function), args)


def test_the_gradient_of_powers_is_that_of_a_matrix_of_powers() -> None:
    """Steps that are written out become a loop where they are many."""
    (t, _, w), c = arguments(1000), RNG.standard_normal(128)
    matrix = t[:, None] ** np.arange(128)
    (found,) = run(program_of(grad(powers, argnums=1), [t, c, w]), CPU, [t, c, w])
    np.testing.assert_allclose(found, -2 * matrix.T @ (w - matrix @ c), rtol=1e-11)


def test_what_steps_store_has_memory_for_a_tile() -> None:
    """The powers of 4096 numbers to 127 take 4 MB, those of a tile 32 KB of the stack."""
    args = [np.linspace(-1, 1, 4096), np.ones(128), np.ones(4096)]
    assert Plan(lower(program_of(grad(powers, argnums=1), args), CPU), CPU).nbytes < 2**18


@pytest.mark.parametrize("function", [stacked, leapfrog])
def test_results_do_not_depend_on_the_number_of_threads(function: Callable[..., Any]) -> None:
    args = arguments(2000)
    program = program_of(with_gradients(function), args)
    for one, two in zip(*(run(program, OF_SMALL_TILES, args, threads) for threads in (1, 2)), strict=True):
        np.testing.assert_array_equal(one, two)
