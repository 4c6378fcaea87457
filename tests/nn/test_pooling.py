"""Pooling against loops over windows, and its derivatives."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fnad
from fnad import errors
from fnad.config import override
from fnad.nn import avg_pool, max_pool

RNG = np.random.default_rng(0)
GEOMETRIES: list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[tuple[int, int], ...]]] = [
    ((2, 3, 6), (2,), (2,), ((0, 0),)),
    ((2, 3, 6, 8), (2, 2), (2, 2), ((0, 0), (0, 0))),
    ((2, 3, 5, 7), (3, 2), (1, 2), ((0, 0), (0, 0))),
    ((2, 3, 5, 5), (3, 3), (2, 2), ((1, 1), (2, 0))),
    ((1, 2, 3, 4, 5), (2, 1, 3), (1, 2, 1), ((0, 1), (0, 0), (1, 1))),
    ((0, 3, 4, 4), (2, 2), (2, 2), ((0, 0), (0, 0))),
]


def windows(x: np.ndarray, sizes: Any, strides: Any, padding: Any) -> Any:
    """Yield the places of the result with the parts of x that the windows there see, without padding."""
    counts = [
        (n + low + high - k) // s + 1 for n, k, s, (low, high) in zip(x.shape[2:], sizes, strides, padding, strict=True)
    ]
    for place in product(*map(range, counts)):
        starts = [p * s - low for p, s, (low, _) in zip(place, strides, padding, strict=True)]
        yield place, x[(..., *[slice(max(0, a), a + k) for a, k in zip(starts, sizes, strict=True)])]


def pooled(reduce: Any, x: np.ndarray, sizes: Any, strides: Any, padding: Any) -> np.ndarray:
    parts = dict(windows(x, sizes, strides, padding))
    result = np.zeros((*x.shape[:2], *np.max(list(parts), axis=0) + 1), x.dtype)
    for place, part in parts.items():
        result[(..., *place)] = reduce(part, axis=tuple(range(2, x.ndim)))
    return result


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_pooling_equals_a_fold_over_windows(geometry: Any, dtype: str) -> None:
    shape, sizes, strides, padding = geometry
    x = (10 * RNG.standard_normal(shape) - 20).astype(dtype)

    def mean_with_padding(part: np.ndarray, axis: Any) -> Any:
        return np.sum(part, axis=axis) / np.prod(sizes)

    exact = np.float64(x)
    for wrap in (lambda f: f, fnad.jit):
        found = wrap(lambda x: max_pool(x, sizes, strides, padding))(x)
        assert found.dtype == x.dtype
        assert_array_equal(found, pooled(np.max, x, sizes, strides, padding))
        found = wrap(lambda x: avg_pool(x, sizes, strides, padding))(x)
        assert found.dtype == np.mean(x).dtype if x.size else True
        assert_allclose(found, pooled(mean_with_padding, exact, sizes, strides, padding), rtol=1e-6)
        found = wrap(lambda x: avg_pool(x, sizes, strides, padding, count_include_pad=False))(x)
        assert_allclose(found, pooled(np.mean, exact, sizes, strides, padding), rtol=1e-6)


@pytest.mark.parametrize("pool", [max_pool, avg_pool])
@pytest.mark.parametrize("geometry", GEOMETRIES[:-1], ids=str)
def test_gradients_are_differences(geometry: Any, pool: Any) -> None:
    """Pooling is piecewise linear: a difference within a piece has no error of its own."""
    shape, *arguments = geometry
    x = RNG.permutation(np.prod(shape)).reshape(shape) / 8.0
    ct = RNG.standard_normal(pool(x, *arguments).shape)
    gradient = fnad.grad(lambda x: np.sum(ct * pool(x, *arguments)))(x)
    with override(executor="compiled"):
        compiled = fnad.jit(fnad.grad(lambda x: np.sum(ct * pool(x, *arguments))))(x)
    assert_allclose(compiled, gradient, rtol=1e-13, atol=1e-14)
    for place in np.ndindex(*shape):
        step = np.zeros(shape)
        step[place] = 1 / 64
        difference = np.sum(ct * (pool(x + step, *arguments) - pool(x - step, *arguments))) * 32
        assert gradient[place] == pytest.approx(difference, rel=1e-10, abs=1e-10)


def test_ties_share_as_the_largest_of_an_array_does() -> None:
    x = np.array([[[1.0, 1.0, 0.0, 2.0, 2.0, 2.0]]])
    gradient = fnad.grad(lambda x: np.sum(max_pool(x, (3,), (3,))))(x)
    assert_allclose(gradient[0, 0, :3], fnad.grad(np.max)(x[0, 0, :3]))
    assert_allclose(gradient[0, 0], [0.5, 0.5, 0.0, 1 / 3, 1 / 3, 1 / 3])


def test_nan_and_infinities() -> None:
    x = np.array([[[1.0, np.nan, -np.inf, -np.inf, np.inf, 0.0]]])
    assert_array_equal(max_pool(x, (2,), (2,)), [[[np.nan, -np.inf, np.inf]]])


def test_second_derivatives_of_max_pool_stay_at_maxima() -> None:
    x = RNG.permutation(24).reshape(1, 1, 4, 6) / 4.0
    u = RNG.standard_normal(x.shape)
    slope = fnad.jvp(fnad.grad(lambda x: np.sum(max_pool(x, (2, 2), (2, 2)) ** 3)), (x,), (u,))[1]
    largest = x == np.repeat(np.repeat(max_pool(x, (2, 2), (2, 2)), 2, axis=2), 2, axis=3)
    assert_allclose(slope, 6 * x * u * largest, rtol=1e-13)


def test_strides_are_one_unless_given() -> None:
    x = RNG.standard_normal((1, 1, 4, 4))
    assert_array_equal(max_pool(x, (2, 2)), max_pool(x, (2, 2), (1, 1)))
    assert max_pool(x, (3, 3), padding="SAME").shape == x.shape


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ((np.ones((3, 4)), (2,)), "pooling takes images with three axes or more, got shape (3, 4)"),
        ((np.ones((1, 1, 4)), (2, 2)), "window_shape is (2, 2)"),
        ((np.ones((1, 1, 4)), (2,), (0,)), "strides is (0,)"),
        ((np.ones((1, 1, 4)), (2,), (1,), ((-1, 0),)), "padding is ((-1, 0),)"),
        (
            (np.ones((1, 1, 4)), (5,)),
            "a window reaches over 5 elements of axis 2, which has 4, its padding included",
        ),
    ],
)
def test_shapes_that_do_not_fit(arguments: Any, what: str) -> None:
    for pool in (max_pool, avg_pool):
        with pytest.raises(errors.ShapeError) as caught:
            pool(*arguments)
        assert str(caught.value).splitlines()[0] == what
