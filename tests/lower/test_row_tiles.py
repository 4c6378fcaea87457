"""Loops over narrow rows by tiles: where they are, their values and gradients, faults, sums over all rows, threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import fnad
from fnad import grad, jit
from fnad.backends.cpu.target import CPU
from fnad.lower.loop_ir import NestLoop
from fnad.lower.lowering import lower
from fnad.lower.row_tiles import TILE
from fnad.testing import assert_close, tolerance
from tests.lower.test_across import across_in, check, program_of, run

RNG = np.random.default_rng(1)
ROWS = 3 * TILE + 5


def softmax(x: Any, w: Any) -> Any:
    return scipy.special.softmax(x, axis=1) * w


def layer_norm(x: Any, w: Any) -> Any:
    return (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-3) * w


def several_results(x: Any, w: Any) -> Any:
    """One of them is read again, by column and as a whole."""
    e = np.exp(x)
    p = e / np.sum(e, axis=1, keepdims=True)
    return p, np.argmax(np.sin(p), axis=1), np.max(p * w, axis=1), np.sum(p * w), np.sum(np.tanh(p), axis=0)


def of_the_first_row(x: Any, w: Any) -> Any:
    return scipy.special.softmax(x + np.sin(x[0]), axis=1) * w


def of_views(x: Any, w: Any) -> Any:
    return scipy.special.softmax(x[::-1, ::-1], axis=1) * w, scipy.special.softmax(x[:, 1:], axis=1) * w[:, :-1]


def of_neighbours(x: Any, w: Any) -> Any:
    """No tile has all that it reads."""
    return scipy.special.softmax(np.sin(x[1:]) + x[:-1], axis=1) * w[1:]


def of_columns(x: Any, w: Any) -> Any:
    return scipy.special.softmax(x.T, axis=0) * w.T


def of_a_stack(x: Any, w: Any) -> Any:
    return scipy.special.softmax(x.reshape(-1, 1, x.shape[1]), axis=2)[:, 0] * w


FUNCTIONS = (softmax, layer_norm, several_results, of_the_first_row, of_views, of_neighbours, of_columns, of_a_stack)


def arguments(columns: int, dtype: str = "f8", rows: int = ROWS) -> list[np.ndarray]:
    return [RNG.standard_normal((rows, columns)).astype(dtype) for _ in range(2)]


def total(function: Callable[..., Any]) -> Callable[..., Any]:
    """The sum of the squares of all results that are not integers."""

    def squares(x: Any, w: Any) -> Any:
        found = function(x, w)
        return sum(np.sum(y**2) for y in (found if isinstance(found, tuple) else (found,)) if y.dtype.kind == "f")

    return squares


@pytest.mark.slow
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(("columns", "dtype"), [(10, "f8"), (7, "f4"), (32, "f4")])
def test_values_and_gradients_are_those_of_the_interpreter(
    function: Callable[..., Any], columns: int, dtype: str
) -> None:
    args = arguments(columns, dtype)
    check(function, args, CPU)
    check(grad(total(function)), args, CPU)


@pytest.mark.parametrize("function", [softmax, layer_norm, several_results, of_the_first_row, of_a_stack])
def test_they_run_by_tiles(function: Callable[..., Any]) -> None:
    args = arguments(10)
    assert across_in(function, args, CPU)
    assert across_in(grad(total(function)), args, CPU)


@pytest.mark.parametrize(
    ("function", "columns", "rows"),
    [
        (softmax, 33, ROWS),  # wide
        (softmax, 1, ROWS),
        (softmax, 10, 2 * TILE - 1),  # few
        (lambda x, w: np.sum(x, axis=1), 10, ROWS),  # less work than copies
        (lambda x, w: np.sum(np.exp(x) * w), 10, ROWS),  # not along rows
        (of_neighbours, 10, ROWS),
    ],
)
def test_others_do_not(function: Callable[..., Any], columns: int, rows: int) -> None:
    assert not across_in(function, arguments(columns, rows=rows), CPU)


@pytest.mark.parametrize("columns", [2, 3, 4, 5, 8, 9, 16, 17, 31, 32])
def test_any_number_of_columns(columns: int) -> None:
    check(lambda x, w: (softmax(x, w), grad(total(softmax))(x, w)), arguments(columns), CPU)


def of_rows_taken(x: Any) -> Any:
    """Rows at places that arrays hold, all read and added to."""
    first, second = (np.arange(len(x)) * factor % len(x) for factor in (7, 11))
    edges = x[first] - x[second]
    forces = edges / np.sqrt(np.sum(np.exp(edges), axis=1, keepdims=True))
    sums = np.zeros(x.shape)
    np.add.at(sums, first, forces)
    return sums


@pytest.mark.parametrize("columns", [3, 5, 9, 10, 31])
@pytest.mark.parametrize(
    "rows",
    [
        lambda x: np.concatenate([x, x[:-3]]),
        lambda x: np.concatenate([np.exp(x), np.sin(x)]),
        lambda x: np.roll(x, 2, axis=0),
        lambda x: np.pad(x, ((3, 2), (0, 0))),
        lambda x: np.diff(x, axis=0, prepend=x[:1]),
        of_rows_taken,
    ],
)
def test_rows_of_several_places(rows: Callable[..., Any], columns: int) -> None:
    """A copy of a row is made without the condition under which its place is read, so the place must be there."""
    x = RNG.standard_normal((ROWS, columns))
    weights = np.arange(columns)
    both = fnad.value_and_grad(lambda x: np.sum(softmax(rows(x), weights)))
    with fnad.config.override(executor="compiled"):
        found = jit(both)(x)
    with fnad.config.override(executor="interpreter"):
        expected = both(x)
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other, tolerance(np.dtype("f8"), 1), scale=1)


def test_each_argument_and_result_is_copied_once() -> None:
    items = lower(program_of(softmax, arguments(10)), CPU).items
    (nest,) = [item for item in items if isinstance(item, NestLoop)]
    assert nest.tile == TILE
    plain = [item for item in nest.items if isinstance(item, NestLoop) and not item.across]
    assert len(plain) == 3


def cross_entropy(x: Any, labels: Any) -> Any:
    return -np.mean(scipy.special.log_softmax(x, axis=1)[np.arange(len(x)), labels])


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_a_cross_entropy_and_its_gradient_in_closed_form(dtype: str) -> None:
    x, labels = arguments(10, dtype)[0], RNG.integers(-10, 10, ROWS)
    value, slope = jit(fnad.value_and_grad(cross_entropy)).lower(x, labels).compile()(x, labels)
    exact = np.exp(x.astype("g"))
    p = exact / exact.sum(axis=1, keepdims=True)
    rows = np.arange(ROWS)
    np.testing.assert_allclose(value, -np.mean(np.log(p[rows, labels])), rtol=8 * np.finfo(dtype).eps)
    p[rows, labels] -= 1
    np.testing.assert_allclose(slope, p / ROWS, rtol=16 * np.finfo(dtype).eps, atol=np.finfo(dtype).eps / ROWS)


@pytest.mark.parametrize("place", [0, TILE, ROWS - 1])
def test_a_label_out_of_range_is_an_error(place: int) -> None:
    x, labels = arguments(10)[0], np.zeros(ROWS, int)
    run = jit(grad(cross_entropy)).lower(x, labels).compile()
    labels[place] = 10
    with pytest.raises(IndexError, match="10"):
        run(x, labels)


def test_a_sum_over_all_rows_is_compensated() -> None:
    """The sum of a tile is less than half a unit of the first number: only what is in its tile may vanish beside it."""
    x = np.zeros((8 * TILE, 10))
    x[0, 0], x[-1, -1] = 2.0**63, -(2.0**63)

    def energy(x: Any) -> Any:
        e = np.exp(0 * x)
        return np.sum(x + e / e.max(axis=1, keepdims=True))

    program = program_of(energy, [x])
    assert across_in(energy, [x], CPU)
    (found,) = run(program, CPU, [x])
    assert abs(found - x.size) <= 2 * 10 * TILE


@pytest.mark.slow
def test_infinite_numbers_and_nans_stay_in_their_rows() -> None:
    x, w = arguments(10)
    x[[3, TILE, ROWS - 1], [0, 4, 9]] = np.nan, np.inf, -np.inf
    check(softmax, [x, w], CPU)
    (found,) = run(program_of(softmax, [x, w]), CPU, [x, w])
    assert sorted({*np.argwhere(np.isnan(found))[:, 0]}) == [3, TILE]


@pytest.mark.slow
def test_one_and_two_threads_give_the_same_bits() -> None:
    args = arguments(10, "f4", rows=100 * TILE + 3)
    program = program_of(lambda *args: (*several_results(*args), grad(total(layer_norm))(*args)), args)
    for one, two in zip(*(run(program, CPU, args, threads) for threads in (1, 2)), strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_donated_argument_is_read_before_its_memory_is_written() -> None:
    x, w = arguments(10)
    expected = scipy.special.softmax(x, axis=1) * w
    given = x.copy()
    run = jit(softmax, donate_argnums=0).lower(x, w).compile()
    np.testing.assert_allclose(run(given, w), expected, rtol=1e-14)
