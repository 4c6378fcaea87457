"""Linear algebra and Fourier transforms at singular matrices, of symmetric ones, and at second order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fnad import grad, jit, jvp
from tests.edge_cases.ways import check

floats = pytest.mark.parametrize("dtype", [np.float64, np.float32])


@floats
def test_row_24_determinant_of_a_singular_matrix(dtype: Any) -> None:
    det = np.linalg.det
    check(det, np.array([[1, 2], [2, 4]], dtype), value=0, gradient=[4, -2, -2, 1], rtol=1e-6)
    check(det, np.ones((3, 3), dtype), value=0, gradient=np.zeros(9).tolist(), rtol=1e-6)
    check(det, np.zeros((2, 2), dtype), value=0, gradient=[0, 0, 0, 0], hessian=np.eye(4)[::-1] * [-1, 1, 1, -1] * -1)


@floats
def test_row_25_second_derivative_of_a_determinant(dtype: Any) -> None:
    """det of [[t + 2, 1], [1, 2 t + 3]] is 2 t² + 7 t + 5."""

    def f(t: Any) -> Any:
        return np.linalg.det(np.stack([np.stack([t + 2, 1 + 0 * t]), np.stack([1 + 0 * t, 2 * t + 3])]))

    t = 0.7
    check(f, dtype(t), value=2 * t**2 + 7 * t + 5, gradient=[4 * t + 7], hessian=[[4]], rtol=1e-5)


SYMMETRIC = np.array([[4, 1, 0.5], [1, 3, -0.2], [0.5, -0.2, 2]])


@pytest.mark.parametrize("name", ["cholesky", "eigh", "eigvalsh"])
def test_row_27_gradient_of_a_function_of_a_symmetric_matrix_is_symmetric(name: str) -> None:
    functions: dict[str, Any] = {
        "cholesky": lambda a: np.sum(np.linalg.cholesky(a) * np.arange(9.0).reshape(3, 3)),
        "eigh": lambda a: np.sum(np.linalg.eigh(a)[1][:, 0] ** 2 * np.arange(3.0)),
        "eigvalsh": lambda a: np.sum(np.linalg.eigvalsh(a) ** 2),
    }
    f = functions[name]
    for gradient in (grad(f)(SYMMETRIC), jit(grad(f))(SYMMETRIC)):
        np.testing.assert_allclose(gradient, gradient.T, atol=1e-12)
        direction = np.array([[1, 2, 3], [2, -1, 0.5], [3, 0.5, 1]])
        h = 1e-6
        slope = (f(SYMMETRIC + h * direction) - f(SYMMETRIC - h * direction)) / (2 * h)
        np.testing.assert_allclose(np.sum(gradient * direction), slope, rtol=1e-6)
        np.testing.assert_allclose(jvp(f, (SYMMETRIC,), (direction,))[1], slope, rtol=1e-6)


@floats
def test_row_28_power_of_a_spectrum(dtype: Any) -> None:
    x = np.arange(1, 5).astype(dtype)
    check(lambda x: np.sum(np.abs(np.fft.rfft(x)) ** 2), x, value=112, gradient=[12, 20, 20, 28], rtol=1e-5)


@pytest.mark.parametrize("n", [4, 5])
def test_row_28_inverse_of_even_and_odd_length(n: int) -> None:
    weights = np.arange(1.0, n + 1)
    z = np.array([1.0, 2 - 1j, 0.5 + 1j])
    f = lambda z: np.sum(np.fft.irfft(z, n) * weights)  # noqa: E731
    units = np.concatenate([np.eye(3), 1j * np.eye(3)])
    for gradient in (grad(f)(z), jit(grad(f))(z)):
        slopes = [(f(z + unit) - f(z - unit)) / 2 for unit in units]
        np.testing.assert_allclose(np.real(units @ gradient), slopes, atol=1e-12)
        np.testing.assert_allclose([jvp(f, (z,), (unit,))[1] for unit in units], slopes, atol=1e-12)
