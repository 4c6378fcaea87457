"""Products with cotangents of extrema, in loops over spans: ties, nans, both orders, and what stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fnad
from fnad import config
from fnad.backends.cpu.executor import compile_plan
from fnad.backends.cpu.target import COSTS, CPU
from fnad.ir.builder import trace
from fnad.ir.primitive import Fold
from fnad.ir.program import Program
from fnad.ir.types import I64, aval_of
from fnad.kernel.plan import Plan
from fnad.lower.loop_ir import Item, NestLoop, Product, effects
from fnad.lower.lowering import lower
from fnad.lower.printer import loops_text
from fnad.ops.spans import contract_spans
from fnad.trace.tracing import trace_function
from fnad.transforms.interpret import interpret
from fnad.transforms.pipeline import simplify
from fnad.transforms.spans import by_spans

RNG = np.random.default_rng(0)
ROWS, COLUMNS, SIDE = 300, 40, 5
IN_TASKS = replace(CPU, costs=replace(COSTS, parallel_nanoseconds=1, task_nanoseconds=1))


def weights(x: Any, y: Any, c: Any) -> Any:
    """Sums of rows of y, by where x has the largest element of its row, as a gradient at 0."""
    return fnad.grad(lambda c: np.sum(np.max(x + y @ c, axis=1)))(c)


def turned(x: Any, y: Any, c: Any) -> Any:
    return fnad.grad(lambda c: np.sum(np.sin(np.min(x + y @ c.T, axis=1))))(c.T)


def sums(x: Any, y: Any, c: Any) -> Any:
    return fnad.grad(lambda b: np.sum(np.max(x + b, axis=1) * y[:, 0]))(c[0])


def of_largest(x: Any) -> Any:
    """1 where x has the largest element of its row, or nan, and 0 elsewhere."""
    return np.where((x == x.max(1)[:, None]) | np.isnan(x), 1.0, 0.0)


def by_numpy(x: Any, y: Any, _: Any) -> tuple[Any, Any, Any]:
    """The three, one row after the other."""
    found = np.zeros((SIDE, COLUMNS)), np.zeros((COLUMNS, SIDE)), np.zeros(COLUMNS)
    for row, others in zip(x, y, strict=True):
        chosen = np.isnan(row) if np.isnan(row).any() else row == row.max()
        found[0][:, chosen] += others[:, None] / chosen.sum()
        found[2][chosen] += others[0] / chosen.sum()
        chosen = np.isnan(row) if np.isnan(row).any() else row == row.min()
        found[1][chosen] += np.cos(row.min()) * others / chosen.sum()
    return found


def with_ties(dtype: str) -> list[Any]:
    x = RNG.standard_normal((ROWS, COLUMNS))
    x[3], x[7, 2:30:9], x[8, [0, -1]], x[9, 1:4], x[5, [4, 17]] = 0.5, 9.0, -9.0, -7.0, np.nan
    return [a.astype(dtype) for a in (x, RNG.standard_normal((ROWS, SIDE)), np.zeros((SIDE, COLUMNS)))]


def program_of(function: Callable[..., Any], args: list[Any]) -> Program:
    return simplify(trace_function(lambda xs: [function(*xs)], list(map(aval_of, args)), name="f").program)


def spans(items: list[Item]) -> list[NestLoop]:
    nests = [item for item in items if isinstance(item, NestLoop)]
    return [*(nest for nest in nests if nest.span), *(loop for nest in nests for loop in spans(nest.items))]


@pytest.mark.parametrize("factor", [lambda z: 3.0 * z, lambda z: z * 3.0, lambda z: z / 3.0, lambda z: z / -np.inf])
def test_a_known_factor_outside_of_the_product_is_passed_over(factor: Callable[[Any], Any]) -> None:
    def function(x: Any, y: Any, c: Any) -> Any:
        return fnad.grad(lambda c: np.sum(np.max(x - factor(y @ c), axis=1)))(c)

    args = with_ties("f8")
    loops = lower(program_of(function, args), CPU)
    assert len(spans(list(loops.items))) == 1
    expected = by_numpy(*args)[0] * -factor(1.0)
    np.testing.assert_allclose(compile_plan(Plan(loops, CPU))(args)[0], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("number", "dtype"), [(0, "f8"), (0, "f4"), (1, "f8"), (2, "f8")])
def test_ties_and_nans_share_in_loops_over_spans(number: int, dtype: str) -> None:
    function, args = (weights, turned, sums)[number], with_ties(dtype)
    program = program_of(function, args)
    expected, bound = by_numpy(*args)[number], 1e-5 if dtype == "f4" else 1e-12
    np.testing.assert_allclose(interpret(program, args)[0], expected, rtol=bound, atol=bound)
    for target in (CPU, IN_TASKS):
        loops = lower(program, target)
        assert len(spans(list(loops.items))) == 1
        np.testing.assert_allclose(compile_plan(Plan(loops, target))(args)[0], expected, rtol=bound, atol=bound)


@pytest.mark.parametrize(("function", "extremum"), [(weights, "reduce_max"), (turned, "reduce_min")])
def test_places_and_their_number_are_one_sum(function: Callable[..., Any], extremum: str) -> None:
    """For the least place, integers would be compared for each element of each row."""
    program = by_spans(program_of(function, with_ties("f8")))
    folds = [e for e in program.equations if isinstance(e.primitive.lower, Fold) and e.params["axes"] == (1,)]
    assert [(e.primitive.name, e.results[0].aval.dtype) for e in folds] == [(extremum, "f8"), ("reduce_sum", I64)]


def test_the_number_is_a_sum_of_its_own_where_no_loop_needs_the_places() -> None:
    program = by_spans(program_of(lambda x, y, c: fnad.grad(lambda x: np.sum(np.max(x, axis=1)))(x), with_ties("f8")))
    assert all(e.results[0].aval.dtype != I64 for e in program.equations)


@pytest.mark.parametrize("columns", [2**16, 2**16 + 1])
def test_rows_have_loops_over_spans_up_to_a_length(columns: int) -> None:
    """All elements of the first row are chosen, so the sum of places is the largest there is."""
    x, y = np.array([[1.0], [2.0]]) * np.ones(columns), np.array([[3.0], [5.0]])
    x[1, -1] = 7.0
    args = [x, y, np.zeros((1, columns))]
    program = program_of(weights, args)
    assert any(e.primitive is contract_spans for e in by_spans(program).equations) == (columns == 2**16)
    expected = np.full(columns, 3.0 / columns)
    expected[-1] += 5.0
    np.testing.assert_allclose(compile_plan(Plan(lower(program, CPU), CPU))(args)[0][0], expected, rtol=1e-12)


def test_the_mask_is_not_stored() -> None:
    """A loop over a span reads hardly any of its elements, and compares them again."""
    loops = lower(program_of(weights, with_ties("f8")), CPU)
    assert all(buffer.dtype != np.bool_ for buffer in loops.temporaries)


def test_results_do_not_depend_on_threads() -> None:
    args = with_ties("f8")
    run = compile_plan(Plan(lower(program_of(weights, args), IN_TASKS), IN_TASKS))
    with config.override(threads=1):
        (one,) = run(args)
    with config.override(threads=min(2, config.CORES)):
        (two,) = run(args)
    np.testing.assert_array_equal(one, two)


def test_a_span_is_part_of_the_text_and_of_no_collapsed_loop() -> None:
    loops = lower(program_of(weights, with_ties("f8")), CPU)
    assert " from select(" in loops_text(loops)
    assert not any(isinstance(effect, Product) for loop in spans(list(loops.items)) for effect in effects(loop))


def test_a_loop_over_a_span_does_not_ask_what_is_inside() -> None:
    loops = lower(program_of(weights, with_ties("f8")), CPU)
    assert " >= " not in loops_text(replace(loops, items=tuple(spans(list(loops.items)))))


@pytest.mark.parametrize("rows", [1, 2])
def test_what_is_outside_of_a_span_is_not_multiplied(rows: int) -> None:
    x, y, place = np.ones((rows, 9)), np.full((rows, 3), np.inf), np.full(rows, 4)
    program = trace(lambda *xs: [contract_spans(*xs)], *map(aval_of, (x, y, place, place)))
    (found,) = compile_plan(Plan(lower(program, CPU), CPU))([x, y, place, place])
    expected = np.zeros((9, 3))
    expected[4] = np.inf
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y, c: np.where(x > 0.0, x, 0.0).T @ y,  # half of the elements may be chosen
        lambda x, y, c: np.where(x == y[:, :1], 1.0, 0.0).T @ y,  # of another number than the extremum
        lambda x, y, c: np.where(x == x.max(0), 1.0, 0.0).T @ y,  # of the columns
        lambda x, y, c: np.where(x == x.max(1)[:, None], 1.0, 2.0).T @ y,  # not 0 elsewhere
        lambda x, y, c: (of_largest(x) * np.inf).T @ y,  # nan elsewhere
        lambda x, y, c: (of_largest(x) / 0.0).T @ y,  # nan elsewhere
        lambda x, y, c: (of_largest(x) * y[:, :1]).T @ y,  # by numbers that may be nan
        lambda x, y, c: (2.0 / of_largest(x)).T @ y,  # inf elsewhere
        lambda x, y, c: fnad.grad(lambda c: np.sum(np.max(x[:, :7] + y @ c, axis=1)))(c[:, :7]),  # too few
    ],
)
def test_other_products_stay(function: Callable[..., Any]) -> None:
    program = by_spans(program_of(function, with_ties("f8")))
    assert all(equation.primitive is not contract_spans for equation in program.equations)
