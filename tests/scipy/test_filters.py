"""Filters of scipy.signal, whose results have SciPy's dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.signal

import fnad

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
