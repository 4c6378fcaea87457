"""Linear algebra and Fourier transforms at singular matrices, of symmetric ones, and at second order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm_frechet

from fnad import cond, fori_loop, grad, jit, jvp, vjp
from tests.edge_cases.ways import check

floats = pytest.mark.parametrize("dtype", [np.float64, np.float32])


@pytest.mark.slow
@floats
def test_row_24_determinant_of_a_singular_matrix(dtype: Any) -> None:
    det = np.linalg.det
    check(det, np.array([[1, 2], [2, 4]], dtype), value=0, gradient=[4, -2, -2, 1], rtol=1e-6)
    check(det, np.ones((3, 3), dtype), value=0, gradient=np.zeros(9).tolist(), rtol=1e-6)
    check(det, np.zeros((2, 2), dtype), value=0, gradient=[0, 0, 0, 0], hessian=np.eye(4)[::-1] * [-1, 1, 1, -1] * -1)


@pytest.mark.slow
@floats
def test_row_25_second_derivative_of_a_determinant(dtype: Any) -> None:
    """det of [[t + 2, 1], [1, 2 t + 3]] is 2 t² + 7 t + 5."""

    def f(t: Any) -> Any:
        return np.linalg.det(np.stack([np.stack([t + 2, 1 + 0 * t]), np.stack([1 + 0 * t, 2 * t + 3])]))

    t = 0.7
    check(f, dtype(t), value=2 * t**2 + 7 * t + 5, gradient=[4 * t + 7], hessian=[[4]], rtol=1e-5)


def decomposed(function: Any) -> Any:
    return lambda a: function(*np.linalg.eigh((a + a.conj().swapaxes(-1, -2)) / 2))


EXPONENTIALS: dict[str, Any] = {
    "columns": lambda w, v: (v * np.exp(w)) @ v.T,
    "rows": lambda w, v: v @ (np.exp(w)[:, None] * v.T),
    "divided": lambda w, v: np.dot(v / np.exp(-w)[None], np.transpose(v)),
    "diagonal": lambda w, v: v @ np.diag(np.exp(w)) @ v.T,
    "diagonal first": lambda w, v: v @ (np.diag(np.exp(w)) @ v.conj().T),
    "einsum": lambda w, v: np.einsum("ij,j,kj->ik", v, np.exp(w), v),
    "twice": lambda w, v: (v * np.exp(w / 2)) @ (v * np.exp(w / 2)).T,
    "multi_dot": lambda w, v: np.linalg.multi_dot([v, np.diag(np.exp(w)), v.T]),
}


@floats
@pytest.mark.parametrize("name", EXPONENTIALS)
def test_row_26_spectral_function_at_equal_eigenvalues(name: str, dtype: Any) -> None:
    f = lambda a: np.sum(decomposed(EXPONENTIALS[name])(a))  # noqa: E731
    one, everywhere = np.eye(2, dtype=dtype), np.full((2, 2), np.e, dtype)
    pulled = lambda a: vjp(f, a)[1](dtype(1))[0]  # noqa: E731
    for gradient in (grad(f)(one), jit(grad(f))(one), pulled(one), jit(pulled)(one)):
        np.testing.assert_allclose(gradient, everywhere, rtol=1e-6)
    direction = np.array([[1, 2], [3, 4]], dtype)
    np.testing.assert_allclose(jvp(f, (one,), (direction,))[1], 10 * np.e, rtol=1e-6)
    np.testing.assert_allclose(grad(lambda t: f(t * one))(dtype(1)), 2 * np.e, rtol=1e-6)


@pytest.mark.parametrize(("uplo", "triangle"), [("L", np.tril), ("U", np.triu)])
def test_rows_26_and_27_spectral_function_of_the_triangle_that_is_read(uplo: Any, triangle: Any) -> None:
    """At A = 1 the derivative of exp(A) along E is e times the symmetric matrix that has the triangle of E."""

    def f(a: Any) -> Any:
        w, v = np.linalg.eigh(a, uplo)
        return np.sum(WEIGHTS * ((v * np.exp(w)) @ v.T))

    expected = np.e * triangle(WEIGHTS + WEIGHTS.T - np.diag(np.diag(WEIGHTS)))
    for gradient in (grad(f)(np.eye(3)), jit(grad(f))(np.eye(3))):
        np.testing.assert_allclose(gradient, expected, rtol=1e-14)
    np.testing.assert_allclose(jvp(f, (np.eye(3),), (WEIGHTS,))[1], np.sum(expected * WEIGHTS), rtol=1e-14)
    a = np.eye(3) + 0.1 * WEIGHTS
    twice = lambda a: np.sum(WEIGHTS * grad(f)(a))  # noqa: E731
    differences = (grad(f)(a + 1e-5 * WEIGHTS) - grad(f)(a - 1e-5 * WEIGHTS)) / 2e-5
    np.testing.assert_allclose(grad(twice)(a), differences, rtol=1e-7, atol=1e-7)


def test_row_26_where_the_function_is_zero() -> None:
    """At w = 1 the cotangent of V in V log(w) Vᵀ is 0."""
    logarithm = decomposed(lambda w, v: ((v * np.log(w)) @ v.T)[0, 1])
    np.testing.assert_allclose(grad(logarithm)(np.eye(3)), [[0, 0.5, 0], [0.5, 0, 0], [0, 0, 0]])


WEIGHTS = np.arange(9.0).reshape(3, 3)


@pytest.mark.parametrize("gap", [0, 1e-16, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1])
def test_row_26_at_close_eigenvalues(gap: float) -> None:
    q = np.linalg.qr(SYMMETRIC)[0]
    a = q * [1, 1 + gap, 2] @ q.T
    gradient = grad(decomposed(lambda w, v: np.sum(WEIGHTS * ((v * np.exp(w)) @ v.T))))(a)
    exact = expm_frechet(a, (WEIGHTS + WEIGHTS.T) / 2, compute_expm=False)
    np.testing.assert_allclose(gradient, exact, rtol=1e-10)


def test_row_26_of_complex_matrices_in_a_batch() -> None:
    """The gradient of Re sum(exp(A) W) at A = 2 is e² W, of which the Hermitian part counts."""
    weights = np.array([[1, 2 - 1j], [1j, 3]])
    f = decomposed(lambda w, v: np.sum(((v * np.exp(w)[:, None]) @ v.conj().swapaxes(1, 2) * weights).real))
    two = 2 * np.stack([np.eye(2), np.eye(2)]).astype(complex)
    w = weights.T
    np.testing.assert_allclose(grad(f)(two), np.stack([np.exp(2) * (w + w.conj().T).T / 2] * 2), rtol=1e-12)


def test_row_26_of_complex_matrices_the_vectors_are_conjugated_once() -> None:
    """V exp(W) Vᵀ, without the conjugate, is a function of the matrix for real ones alone."""
    two = 2 * np.eye(2).astype(complex)
    for f in (lambda w, v: (v * np.exp(w)) @ v.T, lambda w, v: (v.conj() * np.exp(w)) @ v.conj().T):
        assert np.isnan(grad(decomposed(lambda w, v, f=f: np.sum(f(w, v).real)))(two)).any()
        real = grad(decomposed(lambda w, v, f=f: np.sum(f(w, v).real)))(two.real)
        np.testing.assert_allclose(real, np.full((2, 2), np.exp(2)), rtol=1e-14)


def test_row_26_with_what_else_the_function_reads() -> None:
    """Of e^A / tr(e^A) at A = 1 along E: E / 3 - tr(E) / 9; of exp(t A) along t: e."""
    f = decomposed(lambda w, v: np.sum(WEIGHTS * ((v * (np.exp(w) / np.sum(np.exp(w)))) @ v.T)))
    np.testing.assert_allclose(grad(f)(np.eye(3)), (WEIGHTS + WEIGHTS.T) / 6 - np.eye(3) * 12 / 9, atol=1e-15)
    by_time = lambda t: decomposed(lambda w, v: np.sum((v * np.exp(t * w)) @ v.T))(np.eye(3))  # noqa: E731
    np.testing.assert_allclose([grad(by_time)(1.0), grad(grad(by_time))(1.0)], 3 * np.e, rtol=1e-14)


def test_row_26_hessian_of_a_function_of_the_eigenvalues() -> None:
    """The Hessian of tr(A³) at 1, times W, is 3 (W + Wᵀ)."""
    cube = lambda a: np.sum(np.linalg.eigvalsh((a + a.T) / 2) ** 3)  # noqa: E731
    product = grad(lambda a: np.sum(grad(cube)(a) * WEIGHTS))(np.eye(3))
    np.testing.assert_allclose(product, 3 * (WEIGHTS + WEIGHTS.T), rtol=1e-14)


NOT_FUNCTIONS: dict[str, Any] = {
    "vectors": lambda w, v: np.sum(v),
    "of the place": lambda w, v: np.sum((v * (w * [1, 2, 3])) @ v.T),
    "zero by its value": lambda w, v: np.sum(v @ (np.log(w) * (v.T @ np.ones(3)))),
    "two decompositions": lambda w, v: np.sum((v * w) @ np.linalg.eigh(2 * np.diag(w))[1].T),
}


@pytest.mark.parametrize("name", NOT_FUNCTIONS)
def test_row_26_what_is_not_seen_to_be_a_function_of_the_matrix_is_nan(name: str) -> None:
    f = decomposed(NOT_FUNCTIONS[name])
    for gradient in (grad(f)(np.eye(3)), jit(grad(f))(np.eye(3))):
        assert np.isnan(gradient).any()
    assert np.isnan(jvp(f, (np.eye(3),), (np.ones((3, 3)),))[1])


def test_row_26_in_a_stack_a_factor_may_depend_on_the_matrix_and_not_on_the_place() -> None:
    """Of tr(c exp(A) W) at A = 1, for a number c of each matrix, the gradient is c e times the symmetric part of W."""
    stack = np.stack([np.eye(3), np.eye(3)])

    def weighted(factor: Any) -> Any:
        scaled = lambda w, v: (v * (np.exp(w) * factor)[:, None]) @ v.swapaxes(1, 2)  # noqa: E731
        return decomposed(lambda w, v: np.sum(WEIGHTS * scaled(w, v)))

    symmetric = np.e * (WEIGHTS + WEIGHTS.T) / 2
    by_matrix = grad(weighted(np.array([[1.0], [2.0]])))(stack)
    np.testing.assert_allclose(by_matrix, [symmetric, 2 * symmetric], rtol=1e-14)
    for by_place in (np.array([1.0, 2.0, 3.0]), np.array([[1.0, 2.0, 3.0], [1.0, 1.0, 1.0]])):
        assert np.isnan(grad(weighted(by_place))(stack)[0]).any()


def test_row_26_vectors_of_other_eigenvalues() -> None:
    """The last vector has a derivative, though the others have none."""
    a = np.diag([1.0, 1, 3])
    last = decomposed(lambda w, v: v[1, -1] * v[2, -1])
    np.testing.assert_allclose(grad(last)(a), [[0, 0, 0], [0, 0, 0.25], [0, 0.25, 0]], atol=1e-16)


PICKED: dict[str, Any] = {
    "an index": lambda w, v: v[:, np.argmax(w)],
    "indices": lambda w, v: v[[0, 1, 2], np.argmax(w)],
    "of a row": lambda w, v: v.T[np.argmax(w)],
    "take": lambda w, v: np.take(v, np.argmax(w), axis=1),
    "take_along_axis": lambda w, v: np.take_along_axis(v, np.argmax(w) + np.zeros((3, 1), int), axis=1)[:, 0],
    "argsort": lambda w, v: v[:, np.argsort(-w)][:, 0],
}


@pytest.mark.parametrize("name", PICKED)
def test_row_26_a_vector_that_is_found_when_the_program_runs(name: str) -> None:
    """That of the largest value has a derivative, that of the smallest has none, though found in the same way."""
    a = np.diag([1.0, 1, 3])
    product = lambda sign: decomposed(lambda w, v: np.prod(PICKED[name](sign * w, v)[1:]))  # noqa: E731
    for gradient in (grad(product(1.0)), jit(grad(product(1.0)))):
        np.testing.assert_allclose(gradient(a), [[0, 0, 0], [0, 0, 0.25], [0, 0.25, 0]], atol=1e-16)
    np.testing.assert_allclose(jvp(product(1.0), (a,), (np.ones((3, 3)),))[1], 0.5, rtol=1e-15)
    assert np.isnan(grad(product(-1.0))(a)).any()


SYMMETRIC = np.array([[4, 1, 0.5], [1, 3, -0.2], [0.5, -0.2, 2]])


@pytest.mark.parametrize("name", ["cholesky", "eigh", "eigvalsh"])
def test_row_27_gradient_is_in_the_triangle_that_is_read(name: str) -> None:
    functions: dict[str, Any] = {
        "cholesky": lambda a: np.sum(np.linalg.cholesky(a) * np.arange(9.0).reshape(3, 3)),
        "eigh": lambda a: np.sum(np.linalg.eigh(a)[1][:, 0] ** 2 * np.arange(3.0)),
        "eigvalsh": lambda a: np.sum(np.linalg.eigvalsh(a) ** 2),
    }
    f = functions[name]
    for gradient in (grad(f)(SYMMETRIC), jit(grad(f))(SYMMETRIC)):
        np.testing.assert_array_equal(gradient, np.tril(gradient))
        direction = np.array([[1, 9, 9], [2, -1, 9], [3, 0.5, 1]])
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


def test_row_26_within_loops_and_branches() -> None:
    def exponential(a: Any) -> Any:
        return decomposed(lambda w, v: (v * np.exp(w - 1)) @ v.T)(a)

    def in_loop(a: Any) -> Any:
        return np.sum(fori_loop(0, 2, lambda i, c: exponential(c), a))

    def in_branch(a: Any) -> Any:
        return np.sum(cond(a[0, 0] > 0, exponential, lambda a: a, a))

    for f in (in_loop, in_branch):
        np.testing.assert_allclose(grad(f)(np.eye(2)), np.ones((2, 2)), rtol=1e-14)
        np.testing.assert_allclose(jvp(f, (np.eye(2),), (np.ones((2, 2)),))[1], 4, rtol=1e-14)
    vectors = lambda a: np.sum(fori_loop(0, 2, lambda i, c: np.linalg.eigh(c)[1] * 0, a))  # noqa: E731
    assert np.isnan(grad(vectors)(np.eye(2))).any()


def test_eigenvectors_of_no_numbers() -> None:
    for f in (lambda a: np.sum(np.linalg.eigh(a)[1]), lambda a: np.sum(np.linalg.eigh(a)[0])):
        assert grad(f)(np.zeros((0, 0))).shape == (0, 0)
        assert jvp(f, (np.zeros((2, 0, 0)),), (np.zeros((2, 0, 0)),))[1] == 0
