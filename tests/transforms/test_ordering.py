"""Contractions in the cheapest order: fewer multiplications, the same values and derivatives."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import pytest

import fnad
from fnad.ir.program import Program
from fnad.ops.contraction import dot_general, free_axes
from fnad.transforms.pipeline import simplify

N = 40
SQUARE = (N, N)
RNG = np.random.default_rng(0)

FORMS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...], int]] = {
    "chain": (lambda a, b, c, v: a @ b @ c @ v, (SQUARE, SQUARE, SQUARE, (N,)), 3 * N**2),
    "chain of transposes": (lambda a, b, v: (a @ b.T).T @ v, (SQUARE, SQUARE, (N,)), 2 * N**2),
    "from the left": (lambda a, b, v: v @ (a @ b), (SQUARE, SQUARE, (N,)), 2 * N**2),
    "longer than a search": (lambda a, v: a @ a @ a.T @ a @ a @ a.T @ a @ a @ v, (SQUARE, (N,)), 8 * N**2),
    "einsum of a product": (lambda a, b, v: np.einsum("i,ik->k", v, a @ b), (SQUARE, SQUARE, (N,)), 2 * N**2),
    "weights of a product": (
        lambda w, p, t: np.einsum("vb,bvi->vi", w, p @ t.T),
        ((300, 8), (8, 300, 4), (3, 4)),
        300 * 8 * 4 + 300 * 4 * 3,
    ),
    "sum": (lambda a, b: np.sum(a @ b), (SQUARE, SQUARE), N),
    "mean of a chain": (lambda a, b, c: np.mean(a @ b @ c), (SQUARE, SQUARE, SQUARE), N**2 + 2 * N),
    "trace": (lambda a, b: np.trace(a @ b), (SQUARE, SQUARE), N**2),
    "trace beside the diagonal": (lambda a, b: np.trace(a @ b, 3), ((N, 9), (9, N + 2)), N * 9),
    "diagonal": (lambda a, b: np.diag(a @ b), (SQUARE, SQUARE), N**2),
    "diagonal below": (lambda a, b: np.diag(a @ b, -5), ((N, 30), (30, N)), (N - 5) * 30),
    "diagonals of a stack": (lambda a, b: np.diagonal(a @ b, 0, 1, 2), ((7, 20, 3), (7, 3, 20)), 7 * 20 * 3),
    "diagonal of a chain": (lambda x, s: np.diag(x @ s @ x.T), ((50, N), SQUARE), 50 * N**2 + 50 * N),
    "outer product": (lambda u, v, w: np.tensordot(u, v, 0) @ w, ((N,), (N,), (N,)), 2 * N),
}


def multiplications(program: Program) -> int:
    """Return the multiplications in the contractions of a program."""
    total = 0
    for equation in program.equations:
        if equation.primitive is dot_general:
            x, y = (atom.aval for atom in equation.operands)
            free = free_axes(y.ndim, equation.params["contract"][1], equation.params["batch"][1])
            total += x.size * prod(y.shape[axis] for axis in free)
    return total


def simplified(f: Callable[..., Any], arguments: list[Any]) -> Program:
    return simplify(fnad.make_program(f)(*arguments).program)


@pytest.mark.parametrize("name", FORMS)
def test_values_derivatives_and_multiplications(name: str) -> None:
    f, shapes, most = FORMS[name]
    arguments = [RNG.normal(size=shape) / N**0.5 for shape in shapes]
    assert multiplications(simplified(f, arguments)) <= most
    expected = f(*arguments)
    np.testing.assert_allclose(fnad.jit(f)(*arguments), expected, rtol=1e-11, atol=1e-11 * np.max(np.abs(expected)))

    def loss(*args: Any) -> Any:
        return np.sum(np.sin(f(*args)))

    wrt = tuple(range(len(arguments)))
    directions = [RNG.normal(size=shape) for shape in shapes]
    step = 1e-30j
    slope = loss(*[x + step * d for x, d in zip(arguments, directions, strict=True)]).imag / 1e-30
    gradients = fnad.jit(fnad.grad(loss, argnums=wrt))(*arguments)
    found = sum(np.sum(g * d) for g, d in zip(gradients, directions, strict=True))
    scale = sum(np.sum(np.abs(g * d)) for g, d in zip(gradients, directions, strict=True))
    assert abs(found - slope) <= 1e-11 * scale
    pushed = fnad.jit(lambda *args: fnad.jvp(loss, args, tuple(directions))[1])(*arguments)
    assert abs(pushed - slope) <= 1e-11 * scale


def test_a_chain_in_the_known_optimal_order() -> None:
    """The chain of Cormen, Leiserson, Rivest and Stein, Introduction to Algorithms, of ten times the sizes."""
    sizes = [300, 350, 150, 50, 100, 200, 250]
    arguments = [np.ones(shape) for shape in pairwise(sizes)]
    assert multiplications(simplified(lambda a, b, c, d, e, f: a @ b @ c @ d @ e @ f, arguments)) == 15_125_000


@pytest.mark.parametrize(
    ("f", "shapes"),
    [
        (lambda a, b: np.sum(a @ b), (SQUARE, SQUARE)),
        (lambda a, b: np.trace(a @ b), (SQUARE, SQUARE)),
        (lambda a, v: np.sum(a @ v), (SQUARE, (N,))),
    ],
)
def test_cotangents_of_ones_are_not_multiplied(f: Callable[..., Any], shapes: tuple[tuple[int, ...], ...]) -> None:
    arguments = [RNG.normal(size=shape) for shape in shapes]
    program = simplified(fnad.grad(f, argnums=(0, 1)), arguments)
    assert multiplications(program) == 0


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_other_dtypes_keep_the_order_that_is_written(dtype: Any) -> None:
    """In float32 a product in another order may overflow."""
    a, v = np.ones(SQUARE, dtype), np.ones(N, dtype)
    assert multiplications(simplified(lambda a, v: a @ a.T @ v, [a, v])) == N**3 + N**2
    tiny, large = np.full(SQUARE, 1e-30, np.float32), np.full(SQUARE, 1e30, np.float32)
    assert np.all(np.isfinite(fnad.jit(lambda a, b, v: a @ b @ v)(tiny, large, np.full(N, 1e25, np.float32))))


def test_a_product_that_is_read_twice_is_computed_once() -> None:
    a, b, v = RNG.normal(size=SQUARE), RNG.normal(size=SQUARE), RNG.normal(size=N)
    program = simplified(lambda a, b, v: ((p := a @ b) @ v, p), [a, b, v])
    assert multiplications(program) == N**3 + N**2
