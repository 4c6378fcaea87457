"""Filters of scipy.signal, whose results have SciPy's dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.signal

import fnad
from fnad.errors import DomainError, ShapeError

X = np.array([0.3, -0.7, 1.1, 0.4])
SINGLE = np.array([1.0, 0.5], np.float32)
SECTION = np.array([[1, 0.5, 0.1, 1, 0.2, 0.1]], np.float32)
FILTERS: dict[str, Any] = {
    "lfilter": lambda x: scipy.signal.lfilter(SINGLE, SINGLE / 2, x),
    "lfilter without feedback": lambda x: scipy.signal.lfilter(SINGLE, np.array([1], np.int8), x),
    "lfilter by integers": lambda x: scipy.signal.lfilter(np.array([1, 2], np.int8), np.array([1, 0], np.int8), x),
    "lfilter from a state": lambda x: scipy.signal.lfilter(SINGLE, SINGLE, x, zi=SINGLE[:1])[0],
    "state behind": lambda x: scipy.signal.lfilter(SINGLE, SINGLE, x, zi=SINGLE[:1])[1],
    "sosfilt": lambda x: scipy.signal.sosfilt(SECTION, x),
    "upfirdn": lambda x: scipy.signal.upfirdn(SINGLE, x, up=2),
    "resample_poly": lambda x: scipy.signal.resample_poly(x, 1, 2),
    "decimate": lambda x: scipy.signal.decimate(x, 2),
    "doubles": lambda x: scipy.signal.lfilter([1.0, 0.5], [1.0, 0.2], x),
}


@pytest.mark.parametrize("name", FILTERS)
def test_filters_have_scipys_values_and_dtype(name: str) -> None:
    for dtype in (np.float32, np.complex64, np.float64):
        x = np.random.default_rng(0).normal(size=40).astype(dtype)
        found, expected = fnad.jit(lambda x: FILTERS[name](x))(x), FILTERS[name](x)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


STEPS = {
    "lfilter_zi": lambda b, a: scipy.signal.lfilter_zi(b, a),
    "lfiltic": lambda b, a: scipy.signal.lfiltic(b, a, X[:2], X[2:]),
    "filtfilt": lambda b, a: scipy.signal.filtfilt(b, a, np.linspace(0.0, 1.0, 12)),
}


@pytest.mark.parametrize("name", STEPS)
def test_states_of_filters_have_a_derivative_by_a_first_coefficient_of_1(name: str) -> None:
    b, a, step = np.array([0.5, 1.0, 0.2]), np.array([1.0, -0.4, 0.3]), 1e-6
    found = fnad.jacobian(STEPS[name], argnums=1)(b, a)[:, 0]
    above, below = (STEPS[name](b, a + change * np.eye(3)[0]) for change in (step, -step))
    np.testing.assert_allclose(found, (above - below) / (2 * step), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(fnad.jit(STEPS[name])(b, a), STEPS[name](b, a), rtol=1e-12)


REFUSED = {
    "a state that is too long": lambda x: scipy.signal.lfilter([1.0], [1.0, 0.5], x, zi=np.ones(2)),
    "a state with other axes": lambda x: scipy.signal.lfilter([1.0], [1.0, 0.5], x, zi=np.ones((1, 1))),
    "no coefficients": lambda x: scipy.signal.lfilter([], [1.0, 0.5], x),
    "states of other sections": lambda x: scipy.signal.sosfilt(SECTION, x, zi=np.ones((2, 2))),
    "sections of five coefficients": lambda x: scipy.signal.sosfilt([[1.0, 0.5, 0.2, 1.0, 0.3]], x),
    "no weights": lambda x: scipy.signal.upfirdn([], x),
}


@pytest.mark.parametrize("name", REFUSED)
def test_filters_refuse_shapes_that_scipy_refuses(name: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the texts differ
        REFUSED[name](X)
    with pytest.raises(ShapeError):
        fnad.jit(REFUSED[name])(X)


@pytest.mark.parametrize(
    "filtered", [scipy.signal.sosfilt, lambda s, x: scipy.signal.sosfilt(s, x, zi=np.ones((1, 2)))]
)
def test_sections_have_a_leading_1(filtered: Any) -> None:
    sections = np.array([[1.0, 0.5, 0.2, 2.0, 0.3, 0.1]])
    for call in (lambda: filtered(sections, X), lambda: fnad.jit(lambda x: filtered(sections, x))(X)):
        with pytest.raises(ValueError, match="should be all ones"):
            call()
    with pytest.raises(DomainError, match="should be all ones"):
        fnad.jit(filtered)(sections, X)


def test_one_section_may_be_a_row() -> None:
    np.testing.assert_allclose(
        fnad.jit(lambda x: scipy.signal.sosfilt(SECTION[0], x))(X), scipy.signal.sosfilt(SECTION[0], X), rtol=1e-14
    )
