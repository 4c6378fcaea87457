"""Activation functions: their slopes, at kinks those of `jax.nn`, dtypes, and large arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special
from numpy.testing import assert_allclose, assert_array_equal

import fnad
from fnad import nn
from tests.together import together

ELEMENTWISE = (
    *("celu", "elu", "gelu", "hard_sigmoid", "hard_silu", "hard_tanh", "leaky_relu", "log_sigmoid", "mish", "relu"),
    *("relu6", "selu", "sigmoid", "silu", "soft_sign", "softplus"),
)
POINTS = np.array([-40.0, -2.5, -0.3, 0.7, 2.5, 5.0, 30.0])

KINKS = {
    "relu": {0.0: 0.0},
    "relu6": {0.0: 0.0, 6.0: 0.0},
    "leaky_relu": {0.0: 1.0},
    "hard_tanh": {-1.0: 1.0, 1.0: 1.0},
    "elu": {0.0: 1.0},
    "celu": {0.0: 1.0},
    "hard_sigmoid": {-3.0: 0.0, 3.0: 0.0},
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_a_slope_is_the_difference(name: str) -> None:
    f = getattr(nn, name)
    h = 1e-6
    expected = (f(POINTS + h) - f(POINTS - h)) / (2 * h)
    assert_allclose(fnad.vmap(fnad.grad(f))(POINTS), expected, rtol=1e-6, atol=1e-9)
    assert_allclose(fnad.jvp(f, (POINTS,), (np.ones(7),))[1], expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_values_keep_kind_and_dtype_and_hand_nan_on(name: str) -> None:
    f = getattr(nn, name)
    assert f(np.ones(3, np.float32)).dtype == np.float32
    assert isinstance(f(0.5), float)
    assert isinstance(fnad.jit(f)(0.5), float)
    with np.errstate(invalid="ignore"):
        assert np.isnan(f(np.nan))
    with fnad.config.override(executor="interpreter"):
        assert_allclose(fnad.jit(f)(POINTS), f(POINTS), rtol=1e-15)


def test_slopes_at_kinks_are_those_of_jax() -> None:
    with together() as check:
        for name, slopes in KINKS.items():
            for x, slope in slopes.items():
                with check(f"{name} at {x}"):
                    assert fnad.grad(getattr(nn, name))(x) == slope


def test_a_branch_that_is_not_taken_does_not_overflow() -> None:
    with np.errstate(over="raise"), together() as check:
        for name in ("elu", "celu", "selu", "softplus", "sigmoid", "silu", "mish", "log_sigmoid"):
            with check(name):
                assert np.isfinite(getattr(nn, name)(np.array([-1e4, 1e4]))).all()
                assert np.isfinite(fnad.grad(getattr(nn, name))(1e4))


def test_the_exact_gelu_is_x_times_the_normal_distribution() -> None:
    slopes = scipy.special.ndtr(POINTS) + POINTS * np.exp(-(POINTS**2) / 2) / np.sqrt(2 * np.pi)
    assert_allclose(nn.gelu(POINTS, approximate=False), POINTS * scipy.special.ndtr(POINTS))
    assert_allclose(fnad.grad(lambda x: np.sum(nn.gelu(x, approximate=False)))(POINTS), slopes, atol=1e-15)


@pytest.mark.parametrize("f", [nn.softmax, nn.log_softmax, nn.logsumexp])
def test_functions_along_an_axis_are_those_of_scipy(f: Callable[..., Any]) -> None:
    x = np.arange(6.0).reshape(2, 3) ** 1.5
    for axis in (0, 1, -1):
        assert_allclose(f(x, axis=axis), getattr(scipy.special, f.__name__)(x, axis=axis))
    last = {} if f is not nn.logsumexp else {"axis": -1}
    weights = np.ones(2) if last else np.arange(6.0).reshape(2, 3)
    found = fnad.grad(lambda x: np.sum(weights * f(x, **last)))(x)
    h = 1e-6
    for i in np.ndindex(2, 3):
        step = np.zeros((2, 3))
        step[i] = h
        difference = np.sum(weights * (f(x + step, **last) - f(x - step, **last))) / (2 * h)
        assert_allclose(found[i], difference, atol=1e-8)


def test_glu_and_one_hot_take_an_axis() -> None:
    x = np.arange(8.0).reshape(4, 2)
    assert_allclose(nn.glu(x, 0), x[:2] * nn.sigmoid(x[2:]))
    assert_array_equal(nn.one_hot(np.array([2, -1]), 3, axis=0, dtype=np.float32), [[0, 0], [0, 0], [1, 0]])
    assert nn.one_hot(1, 3, dtype=np.float32).dtype == np.float32
    picked = fnad.jit(fnad.grad(lambda w, k: np.sum(w * nn.one_hot(k, 3))))
    assert_array_equal(picked(np.ones(3), 1), [0.0, 1.0, 0.0])
