"""Loops over narrow rows with the rows in lanes: where they are, their values and gradients, ties, nans and threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fnad import config, grad
from fnad.backends.cpu.executor import compile_plan
from fnad.backends.cpu.target import COSTS, CPU
from fnad.ir.program import Program
from fnad.ir.types import aval_of
from fnad.kernel.plan import Plan
from fnad.kernel.statements import SCRATCH
from fnad.lower.loop_ir import Item, NestLoop
from fnad.lower.lowering import lower
from fnad.lower.printer import loops_text
from fnad.lower.target import Target
from fnad.testing import assert_close, tolerance
from fnad.trace.tracing import trace_function
from fnad.transforms.interpret import interpret
from fnad.transforms.pipeline import simplify

OF_SMALL_TILES = replace(
    CPU,
    costs=replace(COSTS, tile_bytes=2**13, tile_rows=4, parallel_nanoseconds=1, task_nanoseconds=1, sum_block=8),
)
"""A target for which tiles have some tens of rows, and several are a task."""

RNG = np.random.default_rng(0)
ROWS, SIDE = 301, 5


def distances(x: Any, c: Any) -> Any:
    return np.sum(x**2, axis=1)[:, None] + np.sum(c**2, axis=1) - 2 * x @ c.T


def weighted_minima(x: Any, c: Any, w: Any) -> Any:
    return np.sum(np.min(distances(x, c) + np.sin(c[:, 0]), axis=1) * w)


def log_sums(x: Any, c: Any, w: Any) -> Any:
    z = x @ c.T
    largest = np.max(z, axis=1)
    return np.sum(w * (largest + np.log(np.sum(np.exp(z - largest[:, None]), axis=1))))


def softmax(x: Any, c: Any, w: Any) -> Any:
    e = np.exp(x @ c.T / 4)
    return np.sum((w[:, None] * e / np.sum(e, axis=1, keepdims=True))[:, 0] ** 2)


def sums(x: Any, c: Any, w: Any) -> Any:
    return np.sum(np.sum(np.tanh(x @ c.T), axis=1) * w)


def several(x: Any, c: Any, w: Any) -> Any:
    z = np.exp(x @ c.T / 4)
    return np.sum(np.max(z, axis=1) / np.min(z, axis=1) * np.prod(z, axis=1) * w)


def places(x: Any, c: Any, w: Any) -> Any:
    z = distances(x, c)
    return np.argmin(z, axis=1), np.argmax(np.cos(z), axis=1), np.min(z, axis=1) + w


def kept_whole(x: Any, c: Any, w: Any) -> Any:
    """The matrix is a result, too."""
    z = distances(x, c)
    return z, np.min(z, axis=1) * w


def chosen(x: Any, c: Any, w: Any) -> Any:
    z = x @ c.T
    number = (w > 0).astype(int)
    return np.sum(np.log(np.sum(np.exp(z), axis=1)) - z[np.arange(len(x)), number])


def of_pieces(x: Any, c: Any, w: Any) -> Any:
    """What is subtracted of a row is computed in a branch."""
    z, half = x @ c.T, len(w) // 2
    padded = np.concatenate([np.exp(w[:half] / 4), np.sqrt(w[half:] ** 2 + 1)])
    return np.sum(np.max(z / padded[:, None], axis=1)) + np.sum(np.min(z - np.pad(w[1:], (0, 1))[:, None], axis=1))


LOSSES = (weighted_minima, log_sums, softmax, sums, several, chosen, of_pieces)


def by(argument: int, function: Callable[..., Any]) -> Callable[..., Any]:
    return grad(function, argnums=argument)


def arguments(columns: int, dtype: str = "f8", rows: int = ROWS) -> list[np.ndarray]:
    return [RNG.standard_normal(shape).astype(dtype) for shape in ((rows, SIDE), (columns, SIDE), (rows,))]


def program_of(function: Callable[..., Any], args: list[np.ndarray]) -> Program:
    def leaves(xs: list[Any]) -> list[Any]:
        found = function(*xs)
        return list(found) if isinstance(found, tuple) else [found]

    return simplify(trace_function(leaves, list(map(aval_of, args)), name="f").program)


def loops_across(items: Any) -> list[NestLoop]:
    nests: list[Item] = [item for item in items if isinstance(item, NestLoop)]
    found = [nest for nest in nests if isinstance(nest, NestLoop)]
    return [*(nest for nest in found if nest.across), *(loop for nest in found for loop in loops_across(nest.items))]


def run(program: Program, target: Target, args: list[Any], threads: int = 1) -> list[Any]:
    with config.override(threads=threads):
        return compile_plan(Plan(lower(program, target), target))(args)


def check(function: Callable[..., Any], args: list[np.ndarray], target: Target = OF_SMALL_TILES) -> None:
    program = program_of(function, args)
    with np.errstate(all="ignore"):
        expected = interpret(program, args)
    for found, value in zip(run(program, target, args), expected, strict=True):
        if np.isfinite(value).all():
            assert_close(found, value, tolerance(np.asarray(value).dtype, 1), scale=1)
        else:
            np.testing.assert_allclose(found, value, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("function", LOSSES)
@pytest.mark.parametrize(("columns", "dtype"), [(10, "f8"), (7, "f4")])
def test_losses_and_gradients_are_those_of_the_interpreter(
    function: Callable[..., Any], columns: int, dtype: str
) -> None:
    args = arguments(columns, dtype)
    check(lambda *args: (function(*args), by(1, function)(*args)), args)


@pytest.mark.parametrize("columns", [2, 4, 9, 31, 32, 33])
def test_any_number_of_columns(columns: int) -> None:
    args = arguments(columns)
    check(by(1, weighted_minima), args)


@pytest.mark.parametrize("function", [places, kept_whole])
@pytest.mark.parametrize(("columns", "dtype"), [(10, "f8"), (7, "f4")])
def test_values_are_those_of_the_interpreter(function: Callable[..., Any], columns: int, dtype: str) -> None:
    check(function, arguments(columns, dtype))


def with_exceptions(dtype: str) -> list[np.ndarray]:
    """Points and centres among which are ties, nans and infinite numbers, in several tiles."""
    x, c, w = (np.round(array * 2) for array in arguments(9, dtype))
    c[4], c[6] = c[2], c[0]
    x[[7, 120, 300], [0, 3, 4]] = np.nan, np.inf, -np.inf
    return [x, c, w]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_ties_share_and_nans_and_infinite_numbers_are_those_of_the_interpreter(dtype: str) -> None:
    x, c, w = with_exceptions(dtype)
    check(by(1, weighted_minima), [x, c, w])
    check(places, [x, c, w])
    check(by(0, weighted_minima), [np.nan_to_num(x, nan=0, posinf=1, neginf=-1), c, w])


def test_ties_share_the_cotangent_evenly() -> None:
    """Of two equal nearest centres each gets half of what its points give."""
    x, _, w = arguments(2)
    c = np.repeat(x[:1] + 10.0, 8, axis=0)
    c[[2, 5]] = 0.0
    (found,) = run(
        program_of(by(1, lambda x, c, w: np.sum(np.min(distances(x, c), axis=1))), [x, c, w]), OF_SMALL_TILES, [x, c, w]
    )
    near = np.sum(x**2, axis=1) < np.sum((x - c[0]) ** 2, axis=1)
    assert near.any()
    np.testing.assert_allclose(found[2], -np.sum(x[near], axis=0), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(found[2], found[5])


@pytest.mark.slow
def test_one_and_two_threads_give_the_same_bits() -> None:
    args = arguments(10, "f4", rows=1201)
    program = program_of(lambda *args: (log_sums(*args), by(1, weighted_minima)(*args)), args)
    for one, two in zip(*(run(program, OF_SMALL_TILES, args, threads) for threads in (1, 2)), strict=True):
        np.testing.assert_array_equal(one, two)


def test_the_gradient_against_differences() -> None:
    x, c, w = arguments(6)
    (found,) = run(program_of(by(1, log_sums), [x, c, w]), OF_SMALL_TILES, [x, c, w])
    step = 1e-20
    for place in ((0, 0), (5, 4)):
        moved = c.astype(complex)
        moved[place] += 1j * step
        derivative = np.sum(w * np.log(np.sum(np.exp(x @ moved.T), axis=1))).imag / step
        np.testing.assert_allclose(found[place], derivative, rtol=1e-11)


def across_in(function: Callable[..., Any], args: list[np.ndarray], target: Target = OF_SMALL_TILES) -> int:
    return len(loops_across(lower(program_of(function, args), target).items))


@pytest.mark.parametrize("function", [weighted_minima, log_sums, softmax, sums, chosen, several])
def test_folds_along_narrow_rows_of_a_product_run_across(function: Callable[..., Any]) -> None:
    assert across_in(function, arguments(10))


@pytest.mark.parametrize(
    ("function", "columns"),
    [
        (kept_whole, 10),  # the matrix has a layout of its own
        (lambda x, c, w: np.sum(np.tanh(x @ c.T) * w[:, None]), 10),  # not along rows
        (lambda x, c, w: np.min(x, axis=1), 10),  # no product
        (weighted_minima, 40),  # wide
    ],
)
def test_others_do_not(function: Callable[..., Any], columns: int) -> None:
    assert not across_in(function, arguments(columns))


def test_short_ones_do_not() -> None:
    assert not across_in(weighted_minima, arguments(10, rows=12))


def test_a_step_of_nearest_neighbours_runs_across_on_this_machine() -> None:
    args = arguments(10, rows=4000)
    assert across_in(by(1, weighted_minima), args, CPU) == 2
    check(by(1, weighted_minima), args, CPU)


def test_what_is_one_number_for_each_row_has_memory_for_a_tile() -> None:
    plan = Plan(lower(program_of(by(1, weighted_minima), arguments(10, rows=4000)), CPU), CPU)
    assert max(slot.size for slot in plan.slots if slot.name != SCRATCH.name) == 10 * SIDE, "no number of all rows"


def test_loops_across_are_part_of_the_text() -> None:
    assert "for i1 < 10 across:" in loops_text(lower(program_of(weighted_minima, arguments(10)), OF_SMALL_TILES))
