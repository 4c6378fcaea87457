"""`vectorize` against np.vectorize, which calls the function in a loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fnad
from fnad.errors import ShapeError, SignatureError

RNG = np.random.default_rng(0)


def normal(*shape: int) -> Any:
    return RNG.normal(size=shape)


CASES: dict[str, tuple[Any, str | None, list[Any]]] = {
    "numbers": (lambda x, y: np.sin(x) * y, None, [normal(3, 1), normal(4)]),
    "one number": (lambda x: x * x, None, [2.0]),
    "axes of size 1": (lambda x, y: x * y, None, [normal(1, 3, 1), normal(2, 1, 1)]),
    "only axes of size 1": (lambda x: np.exp(x), None, [normal(1, 1)]),
    "no elements": (lambda x: np.exp(x), None, [normal(0, 2)]),
    "inner products": (np.dot, "(n),(n)->()", [normal(5, 1, 3), normal(4, 3)]),
    "products with matrices": (np.matmul, "(m,n),(n)->(m)", [normal(2, 3), normal(5, 4, 3)]),
    "an outer product": (np.outer, "(m),(n)->(m,n)", [normal(2, 3), normal(2, 4)]),
    "several results": (lambda m: (np.trace(m), m[0]), "(n,n)->(),(n)", [normal(6, 3, 3)]),
    "a fixed size": (lambda x: np.cross(x, x[::-1]), "(3)->(3)", [normal(4, 3)]),
    "blanks": (np.dot, "(n), (n) -> ()", [normal(2, 3), normal(3)]),
}


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_numpy(name: str) -> None:
    f, signature, args = CASES[name]
    if name == "no elements":
        expected: Any = np.zeros((0, 2))
    else:
        expected = np.vectorize(f, signature=signature and signature.replace(" ", ""))(*args)
    for g in (fnad.vectorize(f, signature=signature), fnad.jit(fnad.vectorize(f, signature=signature))):
        found = g(*args)
        pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
        for mine, theirs in pairs:
            assert np.shape(mine) == np.shape(theirs)
            assert_allclose(mine, theirs, rtol=1e-13)


def test_gradients_of_vectorized_functions_are_exact() -> None:
    x, y = normal(2, 1, 3), normal(4, 3)
    f = fnad.vectorize(lambda x, y: np.sum(x * y) ** 2, signature="(n),(n)->()")
    expected = np.sum(2 * np.einsum("aon,bn->ab", x, y)[:, :, None] * y, axis=1, keepdims=True)
    assert_allclose(fnad.grad(lambda x: np.sum(f(x, y)))(x), expected, rtol=1e-12)


def test_arguments_that_are_excluded() -> None:
    f = fnad.vectorize(lambda p, x, scale=1.0: np.polyval(p, x) * scale, excluded={0})
    x = normal(3, 2)
    assert_allclose(f([1.0, 2.0, 3.0], x), x**2 + 2 * x + 3)
    assert_allclose(f([1.0, 2.0], x, scale=2.0), 2 * (x + 2))
    decorated = fnad.vectorize(signature="(n)->()")(np.sum)
    assert_allclose(decorated(x), np.sum(x, axis=-1))


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: fnad.vectorize(np.dot, signature="n,n->"), SignatureError, "'n,n->' is no signature of a function"),
        (lambda: fnad.vectorize(np.dot, signature="(n)->()")(1.0, 2.0), SignatureError, "has 1 arguments, which are 2"),
        (
            lambda: fnad.vectorize(np.dot, signature="(n),(n)->()")(1.0, 2.0),
            ShapeError,
            r"dot is vectorized, and an argument of shape \(\) has no axes \(n\)",
        ),
        (
            lambda: fnad.vectorize(np.dot, signature="(n),(n)->()")(np.ones(3), np.ones(2)),
            ShapeError,
            "axis n has 2 elements in an argument, and 3 elsewhere",
        ),
        (lambda: fnad.vectorize(np.sum, signature="(3)->()")(np.ones(2)), ShapeError, "axis 3 has 2 elements"),
        (
            lambda: fnad.vectorize(np.outer, signature="(m),(n)->(n,m)")(np.ones(3), np.ones(2)),
            SignatureError,
            r"outer returned \(3, 2\) where its signature says \(n,m\)",
        ),
        (lambda: fnad.vectorize(lambda x: x[None] * x)(np.ones(2)), SignatureError, "says numbers"),
        (lambda: fnad.vectorize(np.add)(np.ones(2), np.ones(3)), ShapeError, "could not be broadcast|shape mismatch"),
    ],
)
def test_what_does_not_fit(call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()
