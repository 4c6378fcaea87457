"""`associative_scan` against the same combinations one after the other, in order."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import numpy as np
import pytest

import fnad
from fnad.errors import ArgumentTypeError, ShapeError, StructureError

LENGTHS = (0, 1, 2, 3, 4, 7, 8)


def one_by_one(fn: Any, x: Any, reverse: bool, axis: int) -> Any:
    """Return e₀, fn(e₀, e₁), … of slices of length 1, where e₀ is the last one if `reverse`."""
    slices = [x[(slice(None),) * axis + (slice(i, i + 1),)] for i in range(x.shape[axis])]
    found = list(accumulate(slices[::-1] if reverse else slices, fn))
    return np.concatenate(found[::-1] if reverse else found, axis) if found else x


def cases() -> Iterator[tuple[Any, Any, int]]:
    """Yield functions, arrays and axes; products of matrices tell the order of the operands."""
    rng = np.random.default_rng(0)
    for n in LENGTHS:
        yield np.multiply, rng.uniform(0.5, 1.5, n), 0
        yield np.add, rng.uniform(0.5, 1.5, (2, n, 3)), 1
        yield np.matmul, rng.uniform(0.5, 1.5, (n, 2, 2)), 0


@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan_combines_prefixes_in_order(reverse: bool) -> None:
    for fn, x, axis in cases():
        found = fnad.associative_scan(fn, x, reverse=reverse, axis=axis)
        np.testing.assert_allclose(found, one_by_one(fn, x, reverse, axis), rtol=1e-14)


@pytest.mark.parametrize("reverse", [False, True])
def test_derivatives_of_products_of_matrices(reverse: bool) -> None:
    """The derivative along dx is the imaginary part of a step of 1e-30 i."""
    rng = np.random.default_rng(1)
    x, dx, ct = rng.uniform(-1, 1, (3, 5, 2, 2))
    f = lambda x: fnad.associative_scan(np.matmul, x, reverse=reverse)  # noqa: E731
    exact = one_by_one(np.matmul, x + 1e-30j * dx, reverse, 0).imag / 1e-30
    np.testing.assert_allclose(fnad.jvp(f, (x,), (dx,))[1], exact, rtol=1e-12, atol=1e-13)
    gradient = fnad.jit(fnad.grad(lambda x: np.sum(ct * f(x))))(x)
    np.testing.assert_allclose(np.sum(gradient * dx), np.sum(ct * exact), rtol=1e-12)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_linear_recurrence_over_a_pytree(reverse: bool) -> None:
    """Pairs (a, b) stand for h -> a h + b; the prefix of the b is h from 0."""
    rng = np.random.default_rng(2)
    a, b = rng.uniform(0.5, 1.5, (2, 6))

    def after(first: Any, second: Any) -> Any:
        return {"a": first["a"] * second["a"], "b": second["a"] * first["b"] + second["b"]}

    h, expected = 0.0, []
    for a_, b_ in zip(a[::-1] if reverse else a, b[::-1] if reverse else b, strict=True):
        h = a_ * h + b_
        expected.append(h)
    found = fnad.associative_scan(after, {"a": a, "b": b}, reverse=reverse)["b"]
    np.testing.assert_allclose(found, expected[::-1] if reverse else expected, rtol=1e-14)


def test_associative_scan_refuses_wrong_elements_and_functions() -> None:
    with pytest.raises(ShapeError, match="axes of one length"):
        fnad.associative_scan(lambda a, b: a, (np.ones(2), np.ones(3)))
    with pytest.raises(ShapeError, match="axes of one length"):
        fnad.associative_scan(np.add, 1.0)
    with pytest.raises(StructureError):
        fnad.associative_scan(lambda a, b: (a, b), np.ones(3))
    with pytest.raises(ArgumentTypeError, match=r"^elems\[0\] is of type str"):
        fnad.associative_scan(np.add, ["a"])
