"""Exponentials of matrices too large for an expansion, and their derivatives, by eigenvalues and finite series."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fnad
import fnad.scipy.linalg
from fnad.ops.matrix_function import LARGEST_EXPANDED, expm, expm_frechet

N = LARGEST_EXPANDED + 5
TOLERANCES = {"f4": 3e-6, "f8": 3e-14, "c8": 5e-6, "c16": 3e-14}
SIZES = (1e-3, 0.02, 0.2, 0.7, 3.0, 30.0)
"""One for each degree, and halvings."""


def hermitian(dtype: str, size: float) -> Any:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((N, N)) + (1j * rng.standard_normal((N, N)) if dtype[0] == "c" else 0)
    a = a + a.conj().T
    return (a * (size / np.abs(np.linalg.eigvalsh(a)).max())).astype(dtype)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", TOLERANCES)
def test_values_and_derivatives_are_those_of_the_eigenvalues(dtype: str, size: float) -> None:
    a, e = hermitian(dtype, size), np.random.default_rng(1).standard_normal((N, N)).astype(dtype)
    w, v = np.linalg.eigh(a.astype(np.result_type(dtype, "f8")))
    gaps = w[:, None] - w[None, :]
    slopes = np.exp((w[:, None] + w[None, :]) / 2) * np.where(
        gaps == 0, 1, np.sinh(gaps / 2) / np.where(gaps == 0, 1, gaps / 2)
    )
    exact = (v * np.exp(w)) @ v.conj().T
    along = v @ (slopes * (v.conj().T @ e @ v)) @ v.conj().T
    for found, expected in ((expm.evaluate(a), exact), (expm_frechet.evaluate(a, e), along)):
        assert found.dtype == a.dtype
        np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCES[dtype] * np.abs(expected).max())


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_compiled_stack_and_its_gradient_are_right(dtype: str) -> None:
    stack = np.stack([hermitian(dtype, size) for size in (0.1, 2.0)])
    run = fnad.jit(fnad.value_and_grad(lambda a: np.sum(np.sin(fnad.scipy.linalg.expm(a)))))
    run(stack)
    value, gradient = run(stack)
    exact = 0.0
    direction = np.random.default_rng(2).standard_normal(stack.shape)
    for a, e, found in zip(stack.astype("f8"), direction, gradient, strict=True):
        w, v = np.linalg.eigh(a)
        whole = (v * np.exp(w)) @ v.T
        gaps = w[:, None] - w[None, :] + np.eye(N)
        slopes = (np.exp(w)[:, None] - np.exp(w)[None, :]) / gaps + np.diag(np.exp(w))
        along = v @ (slopes * (v.T @ e @ v)) @ v.T
        exact += np.sum(np.sin(whole))
        np.testing.assert_allclose(np.sum(found * e), np.sum(np.cos(whole) * along), rtol=TOLERANCES[dtype] * 300)
    np.testing.assert_allclose(value, exact, rtol=TOLERANCES[dtype] * 10)


def test_matrices_far_from_normal_are_not_halved_for_their_size() -> None:
    half = N // 2
    a = np.zeros((N, N))
    a[:half, half : 2 * half] = 1e8 * np.random.default_rng(3).standard_normal((half, half))
    np.testing.assert_allclose(expm.evaluate(a), np.eye(N) + a, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("size", [0.0, -1e3, -1e30, 1e3, np.nan])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_multiples_of_the_identity_are_right_at_all_sizes(dtype: str, size: float) -> None:
    a = (size * np.eye(N)).astype(dtype)
    with np.errstate(all="ignore"):
        found, exact = np.diagonal(expm.evaluate(a)), np.exp(a[0, 0])
    if np.isfinite(exact):
        np.testing.assert_allclose(found, np.full(N, exact), rtol=1e-4 if dtype == "f4" else 1e-11)
    else:
        assert not np.isfinite(found).any()
