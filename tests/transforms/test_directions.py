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
from fnad.ops.arithmetic import mul, strong_mul
from fnad.ops.autodiff import directions
from fnad.ops.contraction import dot_general
from fnad.ops.shape import broadcast_in_dim
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


A, X = RNG.normal(size=(3, 4)), RNG.normal(size=4)


@pytest.mark.parametrize("jacobian", [fnad.jacfwd, fnad.jacrev])
@pytest.mark.parametrize(
    ("f", "count"),
    [
        (lambda x: A @ x, 0),
        (lambda x: x @ A.T, 0),
        (lambda x: A @ np.sin(x), 0),
        (lambda x: np.tanh(A @ x), 1),
    ],
)
def test_jacobians_have_no_product_with_an_identity(jacobian: Any, f: Callable[[Any], Any], count: int) -> None:
    text = fnad.jit(jacobian(f)).lower(X).as_text("simplified")
    assert text.count("= dot_general(") == count
    expected = np.stack([(f(X + 1e-5 * e) - f(X - 1e-5 * e)) / 2e-5 for e in np.eye(4)], axis=-1)
    np.testing.assert_allclose(fnad.jit(jacobian(f))(X), expected, rtol=1e-8, atol=1e-9)
