"""Matrix products by tiles of rows, with the loops around them: what is one loop, its memory, and the values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fnad import config, fori_loop, value_and_grad
from fnad.backends.cpu.executor import compile_plan
from fnad.backends.cpu.target import COSTS, CPU
from fnad.ir.program import Program
from fnad.ir.types import aval_of
from fnad.kernel.generalize import outlined
from fnad.kernel.plan import Plan
from fnad.lower.loop_ir import NestLoop, Product
from fnad.lower.lowering import lower
from fnad.lower.target import Target
from fnad.testing import assert_close, direction, marks, tolerance
from fnad.trace.tracing import trace_function
from fnad.transforms.interpret import interpret
from fnad.transforms.joint import cotangent_avals, joint
from fnad.transforms.pipeline import simplify

OF_SMALL_TILES = replace(
    CPU,
    costs=replace(
        COSTS,
        tile_bytes=2**9,
        cache_bytes=2**9,
        tile_rows=4,
        smallest_product=1,
        parallel_nanoseconds=1,
        task_nanoseconds=1,
        sum_block=8,
    ),
)
"""A target for which small products are divided into tiles of a few rows, and the tiles into tasks."""

RNG = np.random.default_rng(0)


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def attention(x: Any, w: Any, v: Any) -> Any:
    return softmax(x @ w) @ v


def distances(x: Any, y: Any) -> Any:
    return np.sum(x**2, axis=1)[:, None] + np.sum(y**2, axis=1) - 2 * x @ y.T


def nearest(x: Any, y: Any) -> Any:
    return np.min(distances(x, y), axis=1)


def loss(x: Any, w: Any, y: Any) -> Any:
    return np.sum((np.tanh(x @ w) - y) ** 2)


def turned(x: Any, w: Any) -> Any:
    return np.sum(np.exp(x.T @ w.T), axis=0)


def of_sequences(x: Any, w: Any, v: Any) -> Any:
    return np.sin(np.tanh(x @ w) @ v)


def a_vector(x: Any, w: Any, v: Any) -> Any:
    rows = np.sin(x @ w)
    return rows @ v, np.cos(x @ v[: x.shape[1]]) @ rows


def beside_a_row(x: Any, v: Any) -> Any:
    """Of each row of the product the same vector is read, as long as the product has rows."""
    products, row = x @ x.T, 2.0 * np.cos(v)
    return np.min(products, axis=1), np.sum(np.tanh(products + row), axis=1)


def in_a_loop(x: Any, w: Any) -> Any:
    return fori_loop(0, 3, lambda _, x: np.tanh(x @ w) @ w.T + x, x)


def given(*shapes: tuple[int, ...], dtype: str = "f8") -> list[np.ndarray]:
    return [RNG.standard_normal(shape).astype(dtype) for shape in shapes]


CASES: dict[str, tuple[Callable[..., Any], list[np.ndarray]]] = {
    "attention in single precision": (attention, given((103, 5), (5, 12), (12, 7), dtype="f4")),
    "attention of several heads": (attention, given((3, 65, 5), (3, 5, 12), (3, 12, 7))),
    "nearest": (nearest, given((101, 4), (17, 4))),
    "loss": (loss, given((96, 8), (8, 16), (96, 16))),
    "turned": (turned, given((6, 98), (20, 6))),
    "sequences": (of_sequences, given((9, 11, 5), (5, 12), (12, 3))),
    "sequences of two": (of_sequences, given((50, 2, 5), (5, 12), (12, 3))),
    "a vector": (a_vector, given((99, 5), (5, 12), (12,))),
    "beside a row": (beside_a_row, given((101, 4), (101,))),
    "in a loop": (in_a_loop, given((66, 5), (5, 12))),
}


def reverse_of(function: Callable[..., Any], args: list[np.ndarray]) -> tuple[Program, list[Any]]:
    """The results and the gradient as a program, and its arguments."""

    def leaves(xs: list[Any]) -> list[Any]:
        found = function(*xs)
        return list(found) if isinstance(found, tuple) else [found]

    program = trace_function(leaves, list(map(aval_of, args)), name="f").program
    cts = [direction(aval, seed) for seed, aval in enumerate(cotangent_avals(program))]
    return simplify(joint(program, marks(program))), [*args, *cts]


def loops(items: Any) -> list[NestLoop]:
    """All loops that are divided into tiles."""
    nests = [item for item in items if isinstance(item, NestLoop)]
    return [*(nest for nest in nests if nest.tile), *(loop for nest in nests for loop in loops(nest.items))]


def run(program: Program, target: Target, args: list[Any], threads: int = 1) -> list[Any]:
    with config.override(threads=threads):
        return compile_plan(Plan(lower(program, target), target))(args)


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_the_interpreter(name: str) -> None:
    function, args = CASES[name]
    program, args = reverse_of(function, args)
    expected = interpret(program, args)
    for found, value in zip(run(program, OF_SMALL_TILES, args), expected, strict=True):
        assert_close(found, value, tolerance(np.asarray(value).dtype, 1), scale=1)


LARGE = {
    "attention": (attention, [(5003, 16), (16, 200), (200, 16)], 6),
    "nearest": (nearest, [(5003, 16), (200, 16)], 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_value_and_gradient_are_one_loop_without_memory_for_the_product(name: str) -> None:
    function, shapes, products = LARGE[name]
    program, args = reverse_of(function, given(*shapes))
    planned = Plan(lower(program, CPU), CPU)
    (loop,) = loops(planned.loops.items)
    assert sum(isinstance(item, Product) for item in loop.items) == products
    assert max((slot.size for slot in planned.slots), default=0) < 5003 * 200, "no array of all rows"
    one, two = run(program, CPU, args), run(program, CPU, args, threads=min(2, config.CORES))
    for found, again, value in zip(one, two, interpret(program, args), strict=True):
        np.testing.assert_array_equal(found, again)
        np.testing.assert_allclose(found, value, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (lambda x, w: x @ w, [(5000, 16), (16, 200)]),  # nothing else reads the rows
        (lambda x, w: np.tanh(x @ w), [(5000, 300), (300, 200)]),  # the product takes longer than memory
        (lambda x, w: np.tanh(x @ w), [(50, 16), (16, 200)]),  # it is in the cache anyway
        (
            lambda x, w: np.tanh(x @ w),
            [(200, 16), (16, 1200)],
        ),  # each tile of ten rows would pack w again
    ],
)
def test_a_product_is_whole_where_tiles_save_nothing(function: Callable[..., Any], shapes: list[Any]) -> None:
    program = trace_function(lambda xs: [function(*xs)], list(map(aval_of, given(*shapes))), name="f").program
    items = lower(simplify(program), CPU).items
    assert loops(items) == []
    assert sum(isinstance(item, Product) for item in items) == 1


def test_a_matrix_that_leaves_the_first_cache_is_divided() -> None:
    def value_and_gradient(x: Any, t: Any, s: Any) -> Any:
        return value_and_grad(lambda x: np.sum((s - np.vander(t, 128, increasing=True) @ x) ** 2))(x)

    args = [*given((128,)), np.linspace(-1, 1, 128), np.ones(128)]
    program = trace_function(lambda xs: [*value_and_gradient(*xs)], list(map(aval_of, args)), name="f").program
    planned = Plan(lower(simplify(program), CPU), CPU)
    assert loops(planned.loops.items)
    assert not [slot for slot in planned.slots if slot.size >= 128 * 128], "no memory for the matrix"
    matrix = np.vander(args[1], 128, increasing=True)
    value, gradient = compile_plan(planned)(args)
    rest = args[2] - matrix @ args[0]
    np.testing.assert_allclose(value, rest @ rest, rtol=1e-12)
    np.testing.assert_allclose(gradient, -2 * rest @ matrix, rtol=1e-9, atol=1e-9)


def test_what_runs_on_one_thread_stays_outside() -> None:
    def running(xs: Any) -> list[Any]:
        return [np.cumsum(np.min(xs[0] @ xs[1], axis=1))]

    program = trace_function(running, list(map(aval_of, given((5000, 16), (16, 200)))), name="f").program
    items = lower(simplify(program), CPU).items
    (loop,) = loops(items)
    assert loop in items
    assert len(items) == 2


def test_sizes_share_code() -> None:
    def outlines(n: int) -> list[str]:
        program, _ = reverse_of(nearest, given((n, 16), (200, 16)))
        return [outlined(kernel)[0].text for kernel in Plan(lower(program, CPU), CPU).kernels.values()]

    assert outlines(5003) == outlines(7001)
