"""Slopes of the incomplete gamma and beta functions in their parameters: all orders, sizes and ends."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
import scipy.special
import scipy.stats

import fnad
from fnad.scalar.quadrature import BLOCK, beta_slope, gamma_slope


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize(("a", "x"), [(0.4, 0.2), (0.4, 3.0), (7.0, 6.0), (7.0, 9.5), (60.0, 50.0)])
def test_derivatives_of_gammainc_in_its_order_are_mpmaths(a: float, x: float, order: int):
    with mp.workdps(50):
        expected = float(mp.diff(lambda a: mp.gammainc(a, 0, mp.mpf(x), regularized=True), mp.mpf(a), order))
    assert gamma_slope(np.array(a), np.array(x), order=order) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("orders", [(1, 0), (0, 1), (2, 1), (0, 3)])
@pytest.mark.parametrize(("a", "b", "x"), [(0.4, 2.0, 0.1), (0.4, 2.0, 0.9), (30.0, 20.0, 0.55), (3.0, 0.2, 0.99)])
def test_derivatives_of_betainc_in_its_orders_are_mpmaths(a: float, b: float, x: float, orders: tuple[int, int]):
    with mp.workdps(50):
        exact = mp.mpf(x)
        expected = float(
            mp.diff(lambda a, b: mp.betainc(a, b, 0, exact, regularized=True), (mp.mpf(a), mp.mpf(b)), orders)
        )
    assert beta_slope(*map(np.array, (a, b, x)), orders=orders) == pytest.approx(expected, rel=1e-9)


def test_more_elements_than_a_block():
    x = np.linspace(0.1, 9.0, BLOCK + 7).reshape(1, -1)
    found = gamma_slope(np.full_like(x, 2.5), x, order=1)
    assert found.shape == x.shape
    np.testing.assert_array_equal(found[0, [0, -1]], gamma_slope(np.full(2, 2.5), x[0, [0, -1]], order=1))


def test_slopes_at_the_ends_of_the_range_are_zero_and_nan_outside():
    with np.errstate(all="ignore"):
        of_gamma = gamma_slope(np.array([2.0, 2.0, 2.0, -1.0]), np.array([0.0, np.inf, np.nan, 1.0]), order=1)
        of_beta = beta_slope(np.full(4, 2.0), np.full(4, 3.0), np.array([0.0, 1.0, np.nan, 2.0]), orders=(1, 0))
    np.testing.assert_array_equal(of_gamma, [0, 0, np.nan, np.nan])
    np.testing.assert_array_equal(of_beta, [0, 0, np.nan, np.nan])


def test_gamma_slope_stays_in_single_precision():
    found = gamma_slope(np.float32([2.5]), np.float32([2.0]), order=1)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, gamma_slope(np.array([2.5]), np.array([2.0]), order=1), rtol=1e-6)


def test_compiled_densities_of_f32_are_rounded_from_f64():
    """They are multiplied by the size of an exponent, 234 here."""
    a, x = np.float32([0.5, 1.0, 7.5, 60.0]), np.float32([0.25, 3.0, 6.0, 50.0])
    function = fnad.jit(fnad.grad(lambda x: np.sum(scipy.special.gammainc(a, x))))
    expected = scipy.stats.gamma.pdf(x.astype("f8"), a.astype("f8"))
    np.testing.assert_allclose(function.lower(x).compile()(x), expected, rtol=2.0**-23)


@pytest.mark.parametrize(("letter", "rel"), [("f", 2.0**-23), ("d", 1e-11)])
def test_compiled_slopes_of_gamma(letter: str, rel: float):
    """Below, at and above the mean, in the tail, for a large parameter, and near 0."""
    pairs = [(a, a * ratio) for a in (1e-3, 0.4, 3.0, 60.0) for ratio in (0.01, 0.9, 1.3, 4.0)]
    a, x = np.array([*pairs, (0.4, 30.0), (7.0, 23.0), (2e3, 1.98e3), (2e3, 2.02e3), (2e3, 2.2e3)], letter).T
    with mp.workdps(50):
        expected = [
            float(mp.diff(lambda a, x=x: mp.gammainc(a, 0, mp.mpf(x), regularized=True), mp.mpf(a)))
            for a, x in zip(a.tolist(), x.tolist(), strict=True)
        ]
    with fnad.config.override(executor="compiled"):
        found = fnad.grad(lambda a: np.sum(scipy.special.gammainc(a, x)))(a)
    assert found.dtype == a.dtype
    assert found == pytest.approx(expected, rel=rel)


@pytest.mark.parametrize("letter", "fd")
def test_compiled_slopes_of_gamma_at_ends(letter: str):
    a, x = np.array([(2, 0), (2, np.inf), (2, np.nan), (-1, 1), (np.inf, 1), (np.nan, 1), (0, 1)], letter).T
    with fnad.config.override(executor="compiled"):
        found = fnad.grad(lambda a: np.sum(scipy.special.gammainc(a, x)))(a)
    np.testing.assert_array_equal(found, [0, 0, *[np.nan] * 5])
