"""What is computed from zeros with one update in each row: the same numbers, from the updates alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from fnad.ir.builder import trace
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64, I64, aval_of
from fnad.ops.arithmetic import add, mul, neg, strong_mul
from fnad.ops.comparison import gt, select
from fnad.ops.elementary import exp
from fnad.ops.indexing import scatter_add
from fnad.ops.shape import broadcast_in_dim, constant, iota, reduce_sum, zeros_like
from fnad.transforms.interpret import interpret
from fnad.transforms.pipeline import simplify

SHAPE = (3, 4)
RNG = np.random.default_rng(0)
X, UPDATES, LABELS, ROW = RNG.normal(size=SHAPE), RNG.normal(size=3), np.array([2, 0, -1]), RNG.normal(size=3)

Computed = Callable[[Symbol, Symbol, Symbol], Symbol]


def spread(row: Symbol) -> Symbol:
    return broadcast_in_dim(row, shape=SHAPE, dims=(0,))


# `u` is the array of zeros with updates, x a matrix, r a number of each row.
CASES: dict[str, tuple[Computed, tuple[str, ...]]] = {
    "a sum of rows": (lambda u, x, r: reduce_sum(u, axes=(1,)), ()),
    "a sum of columns": (lambda u, x, r: reduce_sum(u, axes=(0,)), ("scatter_add", "reduce_sum")),
    "a sum of all": (lambda u, x, r: reduce_sum(u, axes=(0, 1)), ("scatter_add", "reduce_sum")),
    "a sum with a matrix": (lambda u, x, r: add(x, u), ("scatter_add",)),
    "a product": (lambda u, x, r: reduce_sum(strong_mul(u, x), axes=(1,)), ("gather", "strong_mul")),
    "a product with a row's number": (lambda u, x, r: reduce_sum(strong_mul(u, spread(r)), axes=(1,)), ("strong_mul",)),
    "a product with what is computed": (
        lambda u, x, r: reduce_sum(strong_mul(u, mul(neg(x), spread(r))), axes=(1,)),
        ("gather", "neg", "mul", "strong_mul"),
    ),
    "a product with costly functions": (
        lambda u, x, r: reduce_sum(strong_mul(u, exp(x)), axes=(1,)),
        ("exp", "gather", "strong_mul"),
    ),
    "a factor": (lambda u, x, r: reduce_sum(strong_mul(x, u), axes=(1,)), ("scatter_add", "strong_mul", "reduce_sum")),
    "a choice": (
        lambda u, x, r: reduce_sum(select(gt(x, spread(r)), u, zeros_like(u)), axes=(1,)),
        ("gather", "gt", "select"),
    ),
    "the other choice": (
        lambda u, x, r: reduce_sum(select(gt(x, spread(r)), zeros_like(u), u), axes=(1,)),
        ("gather", "gt", "select"),
    ),
    "a choice between it and others": (
        lambda u, x, r: reduce_sum(select(gt(x, spread(r)), x, u), axes=(1,)),
        ("scatter_add", "gt", "select", "reduce_sum"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_it_is_computed_from_the_updates(case: str) -> None:
    compute, primitives = CASES[case]

    def f(x: Symbol, updates: Symbol, labels: Symbol, r: Symbol) -> list[Symbol]:
        rows = iota(dtype=I64, shape=(3,), axis=0)
        return [compute(scatter_add(constant(0.0, F64, SHAPE), updates, rows, labels), x, r)]

    arguments = [X, UPDATES, LABELS, ROW]
    program = trace(f, *map(aval_of, arguments), name="f")
    simpler = simplify(program)
    np.testing.assert_allclose(interpret(simpler, arguments)[0], interpret(program, arguments)[0], rtol=1e-15)
    made = [equation.primitive.name for equation in simpler.equations]
    assert {name for name in made if name not in ("iota", "broadcast_in_dim", "add")} == set(primitives)


def test_places_that_do_not_count_rows_are_left_alone() -> None:
    def f(updates: Symbol, rows: Symbol, labels: Symbol) -> list[Symbol]:
        return [reduce_sum(scatter_add(constant(0.0, F64, SHAPE), updates, rows, labels), axes=(1,))]

    arguments = [UPDATES, np.array([1, 1, 0]), LABELS]
    program = simplify(trace(f, *map(aval_of, arguments), name="f"))
    assert "scatter_add" in [equation.primitive.name for equation in program.equations]
    expected = [UPDATES[2], UPDATES[0] + UPDATES[1], 0.0]
    np.testing.assert_allclose(interpret(program, arguments)[0], expected, rtol=1e-15)
