"""Contractions with directions are selections: the same values, and no product."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import fnad
from fnad.ir.builder import trace
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64, Aval
from fnad.ir.verifier import verify
from fnad.ops.arithmetic import add, mul, neg, strong_mul, sub
from fnad.ops.autodiff import directions
from fnad.ops.contraction import dot_general
from fnad.ops.shape import broadcast_in_dim, reshape_to, zeros_like
from fnad.transforms.interpret import interpret
from fnad.transforms.pipeline import simplify

SHAPE = 2, 3, 4
RNG = np.random.default_rng(0)


@pytest.mark.parametrize("scaled", [False, True])
def test_contractions_of_any_axes(scaled: bool) -> None:
    """All of them, some, in another order, from either side, with directions of another argument before and behind."""
    chosen = [axes for n in (1, 2, 3) for axes in combinations(range(3), n)] + [(2, 0), (1, 2, 0)]
    for axes in chosen:
        y, d = RNG.normal(size=(5, *[SHAPE[a] for a in axes])), RNG.normal(size=(2, 4))
        of_y, of_directions = tuple(range(1, y.ndim)), tuple(a + 1 for a in axes)

        def run(y: Symbol, d: Symbol, axes: Any = (of_y, of_directions)) -> list[Symbol]:
            found = directions(dtype=F64, count=30, start=4, shape=SHAPE)
            spread = broadcast_in_dim(d, shape=found.shape, dims=(1, 3))
            if scaled:
                found = strong_mul(mul(spread, found), spread)
            none = ((), ())
            left = dot_general(found, y, contract=axes[::-1], batch=none)
            return [dot_general(y, found, contract=axes, batch=none), left]

        program = trace(run, Aval(F64, y.shape), Aval(F64, d.shape))
        simpler = simplify(program)
        verify(simpler)
        assert all(equation.primitive is not dot_general for equation in simpler.equations)
        for found, expected in zip(interpret(simpler, [y, d]), interpret(program, [y, d]), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-15)


@pytest.mark.parametrize("dims", [(1, 2, 3, 4), (0, 2, 3, 4), (0, 1, 2, 4), (0, 1, 2, 3), (1, 2, 4, 5), (0, 2, 4, 5)])
def test_stacks_of_directions(dims: tuple[int, ...]) -> None:
    """Anywhere among the axes, paired with those of the other array or not, with factors that differ in a stack."""
    shape = [2, 3, 4, 5, 6, 7][: dims[-1] + 1 if dims[-1] > 3 else 5]
    for d, n in zip(dims, (30, *SHAPE), strict=True):
        shape[d] = n
    along, elements = dims[0], dims[1:]
    stacks = tuple(a for a in range(len(shape)) if a not in dims)
    for axes, paired in [(elements, stacks), (elements[::-1], ()), (elements[1:2], stacks[::-1]), ((), stacks[:1])]:
        y = RNG.normal(size=(*[shape[a] for a in paired], 2, *[shape[a] for a in axes]))
        d = RNG.normal(size=[n for a, n in enumerate(shape) if a != along])
        of_y = tuple(range(len(paired))), tuple(range(len(paired) + 1, y.ndim))

        def run(y: Symbol, d: Symbol, axes: Any = axes, paired: Any = paired, of_y: Any = of_y) -> list[Symbol]:
            found = directions(dtype=F64, count=30, start=4, shape=SHAPE)
            found = broadcast_in_dim(add(found, found), shape=tuple(shape), dims=dims)
            spread = broadcast_in_dim(d, shape=found.shape, dims=tuple(a for a in range(len(shape)) if a != along))
            one = sub(zeros_like(found), mul(spread, neg(found)))
            found = sub(strong_mul(one, spread), add(found, zeros_like(found)))
            left = dot_general(found, y, contract=(axes, of_y[1]), batch=(paired, of_y[0]))
            return [dot_general(y, found, contract=(of_y[1], axes), batch=(of_y[0], paired)), left]

        program = trace(run, Aval(F64, y.shape), Aval(F64, d.shape))
        simpler = simplify(program)
        verify(simpler)
        assert all(equation.primitive is not dot_general for equation in simpler.equations)
        for found, expected in zip(interpret(simpler, [y, d]), interpret(program, [y, d]), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("shape", [(6, 2, 3), (6, 1, 6), (6, 3, 1, 2), (6, 6, 1)])
def test_directions_of_a_reshaped_argument(shape: tuple[int, ...]) -> None:
    """Axes of one element may be copied; each of the others is contracted, alone and with all of them."""
    wide = tuple(4 if n == 1 else n for n in shape)
    elements = tuple(a for a in range(1, len(shape)) if shape[a] != 1)
    for axes in {elements, elements[:1], elements[-1:]}:
        y, d = RNG.normal(size=(5, *[shape[a] for a in axes])), RNG.normal(size=wide[1:])

        def run(y: Symbol, d: Symbol, axes: Any = axes) -> list[Symbol]:
            found = reshape_to(neg(directions(dtype=F64, count=6, start=0, shape=(6,))), shape)
            found = broadcast_in_dim(found, shape=wide, dims=tuple(range(len(wide))))
            spread = broadcast_in_dim(d, shape=wide, dims=tuple(range(1, len(wide))))
            contract = tuple(range(1, y.ndim)), axes
            return [dot_general(y, mul(found, spread), contract=contract, batch=((), ()))]

        program = trace(run, Aval(F64, y.shape), Aval(F64, d.shape))
        simpler = simplify(program)
        verify(simpler)
        assert all(equation.primitive is not dot_general for equation in simpler.equations)
        np.testing.assert_allclose(interpret(simpler, [y, d])[0], interpret(program, [y, d])[0], rtol=1e-14, atol=1e-15)


def scaled_along_the_directions(found: Symbol, d: Symbol) -> Symbol:
    return mul(found, broadcast_in_dim(d, shape=found.shape, dims=(0,)))


def of_other_elements(found: Symbol, d: Symbol) -> Symbol:
    return add(found, directions(dtype=F64, count=6, start=1, shape=(6,)))


def beside_others(found: Symbol, d: Symbol) -> Symbol:
    return add(found, broadcast_in_dim(d, shape=found.shape, dims=(0,)))


def stretched(found: Symbol, d: Symbol) -> Symbol:
    return broadcast_in_dim(directions(dtype=F64, count=6, start=2, shape=(1,)), shape=found.shape, dims=(0, 1))


@pytest.mark.parametrize("other", [scaled_along_the_directions, of_other_elements, beside_others, stretched])
def test_what_is_not_directions(other: Callable[[Symbol, Symbol], Symbol]) -> None:
    def run(y: Symbol, d: Symbol) -> list[Symbol]:
        found = other(directions(dtype=F64, count=6, start=0, shape=(6,)), d)
        stacked = broadcast_in_dim(found, shape=(6, 2, 6), dims=(0, 2))
        return [
            dot_general(y, found, contract=((1,), (1,)), batch=((), ())),
            dot_general(y, found, contract=((1,), (0,)), batch=((), ())),
            dot_general(y, stacked, contract=((0, 1), (1, 2)), batch=((), ())),
            dot_general(y, stacked, contract=((0,), (1,)), batch=((1,), (2,))),
        ]

    program = trace(run, Aval(F64, (2, 6)), Aval(F64, (6,)))
    operands = [RNG.normal(size=(2, 6)), RNG.normal(size=6)]
    for found, expected in zip(interpret(simplify(program), operands), interpret(program, operands), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-15)


def test_many_sums_are_looked_through_once() -> None:
    def run(y: Symbol) -> list[Symbol]:
        found = directions(dtype=F64, count=6, start=0, shape=(6,))
        for _ in range(30):
            found = add(found, found)
        far = found
        for _ in range(3000):
            far = sub(far, mul(y, far))
        return [dot_general(y, x, contract=((1,), (1,)), batch=((), ())) for x in (found, far)]

    simpler = simplify(trace(run, Aval(F64, (6, 6))))
    y = RNG.normal(size=(6, 6))
    np.testing.assert_array_equal(interpret(simpler, [y])[0], 2.0**30 * y)
    assert [equation.primitive for equation in simpler.equations].count(dot_general) == 1


A, X = RNG.normal(size=(3, 4)), RNG.normal(size=4)


@pytest.mark.parametrize("jacobian", [fnad.jacfwd, fnad.jacrev])
@pytest.mark.parametrize(
    ("f", "count"),
    [
        (lambda x: A @ x, 0),
        (lambda x: x @ A.T, 0),
        (lambda x: A @ np.sin(x), 0),
        (lambda x: np.tanh(A @ x), 1),
        (lambda x: A @ (np.sin(x) * x - np.exp(-x)), 0),
    ],
)
def test_jacobians_have_no_product_with_an_identity(jacobian: Any, f: Callable[[Any], Any], count: int) -> None:
    of_rows, rows = fnad.jit(fnad.vmap(jacobian(f))), np.stack([X, -2 * X])
    for text in (fnad.jit(jacobian(f)).lower(X).as_text("simplified"), of_rows.lower(rows).as_text("simplified")):
        assert text.count("= dot_general(") == count
    expected = np.stack([(f(X + 1e-5 * e) - f(X - 1e-5 * e)) / 2e-5 for e in np.eye(4)], axis=-1)
    np.testing.assert_allclose(fnad.jit(jacobian(f))(X), expected, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(of_rows(rows), [jacobian(f)(row) for row in rows], rtol=1e-14)
