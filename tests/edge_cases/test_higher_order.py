"""Second derivatives, constants among them, and complex numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fnad.ops.autodiff import stop_gradient
from fnad.ops.conversion import conj, imag, real
from fnad.ops.elementary import exp, log, sqrt
from fnad.ops.indexing import scatter
from fnad.testing import Run
from tests.edge_cases.derivatives import forward, gradient, hessian, reverse, value

floats = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def test_row_32_the_last_assignment_wins(run: Run):
    weights = np.array([1.0, 2.0, 3.0])

    def f(v: Any, y: Any, index: Any, weight: Any) -> Any:
        return scatter(y, v, index) * weight

    found = reverse(run, f, np.ones(3), np.zeros(3), np.array([0, 0, 1]), weights)
    np.testing.assert_array_equal(found[:3], [0, 1, 2])
    np.testing.assert_array_equal(found[3:6], [0, 0, 3])
    np.testing.assert_array_equal(forward(run, f, np.ones(3), np.zeros(3), np.array([0, 0, 1]), weights), found)


@floats
def test_row_48_stop_gradient(dtype: Any, run: Run):
    def f(x: Any) -> Any:
        return x * stop_gradient(x)

    np.testing.assert_array_equal(value(run, f, dtype(3)), 9)
    np.testing.assert_array_equal(gradient(run, f, dtype(3)), [3])
    np.testing.assert_array_equal(hessian(run, f, dtype(3)), [[0]])


@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
def test_row_70_complex_convention(dtype: Any, run: Run):
    """Gradients are not conjugated: that of |z|² at 3+4j is 6-8j; a holomorphic function has its derivative."""
    z = dtype(3 + 4j)
    absolute_square = reverse(run, lambda z: real(z) * real(z) + imag(z) * imag(z), z)
    np.testing.assert_allclose(absolute_square, [6 - 8j])
    np.testing.assert_allclose(reverse(run, lambda z: real(z * conj(z)), z), [6 - 8j])
    np.testing.assert_allclose(gradient(run, lambda z: z * z, z), [6 + 8j])
    np.testing.assert_allclose(gradient(run, exp, z), [np.exp(z)], rtol=1e-6)


@floats
def test_row_71_second_derivatives_through_strong_zeros(dtype: Any, run: Run):
    zero, one, two = dtype(0), dtype(1), dtype(2)
    np.testing.assert_allclose(hessian(run, lambda x: (x - 1.0) * sqrt(x), one), [[1]])
    np.testing.assert_array_equal(hessian(run, lambda x, y: x * log(y), zero, one), [[0, 1], [1, 0]])
    np.testing.assert_array_equal(hessian(run, lambda x, y: x / y, zero, two), [[0, -0.25], [-0.25, 0]])
