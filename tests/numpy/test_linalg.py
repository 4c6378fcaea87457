"""numpy.linalg on traced values beside NumPy: to the bit, in every dtype, with its errors; and the edge cases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import optree
import pytest

import fnad.numpy as fnp
from fnad import config, grad, jit, jvp, value_and_grad
from fnad.errors import DomainError, MatrixError, UnsupportedFunctionError
from fnad.scipy.linalg import expm
from tests.edge_cases.ways import check as check_everywhere
from tests.numpy.against_numpy import check_error, traced
from tests.numpy.linalg_calls import hermitian, la, rebuilt, regular
from tests.together import in_groups

DTYPES = ["f4", "f8", "c8", "c16"]


def exactly(function: Callable[..., Any], *args: Any) -> None:
    """Compare a traced function with NumPy to the bit."""
    found, _ = traced(function, *args)
    expected = function(*args)
    assert optree.tree_structure(found) == optree.tree_structure(expected)
    for mine, numpys in zip(optree.tree_leaves(found), optree.tree_leaves(expected), strict=True):
        assert (mine.dtype, mine.shape) == (np.asarray(numpys).dtype, np.shape(numpys))
        np.testing.assert_array_equal(mine, numpys)


SQUARE = {
    "inv": la.inv,
    "det": la.det,
    "slogdet": la.slogdet,
    "solve": lambda a: la.solve(a, a[..., :1]),
    "qr": la.qr,
    "complete qr": lambda a: la.qr(a[..., :2], "complete"),
    "svd": la.svd,
    "thin svd": lambda a: la.svd(a[..., :2], full_matrices=False),
    "svdvals": la.svdvals,
    "pinv": lambda a: la.pinv(a[..., :2]),
    "eigvalsh": lambda a: la.eigvalsh(hermitian(a)),
    "eigh": lambda a: la.eigh(hermitian(a), "U"),
    "cholesky": lambda a: la.cholesky(a @ np.conj(np.swapaxes(a, -1, -2))),
    "upper cholesky": lambda a: la.cholesky(a @ np.conj(np.swapaxes(a, -1, -2)), upper=True),
    "matrix_power": lambda a: la.matrix_power(a, -5),
    "matrix_rank": la.matrix_rank,
    "cond": lambda a: la.cond(a) if a.size else a,
    "norm": lambda a: la.matrix_norm(a, ord=2),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3), (1, 1), (2, 0, 0), (0, 3, 3)], ids=str)
@in_groups("name", SQUARE)
def test_value_to_the_bit(name: str, shape: Any, dtype: str) -> None:
    exactly(SQUARE[name], regular(shape, dtype))


BY_RANK = {
    "matrix_rank": la.matrix_rank,
    "matrix_rank of a stack": lambda a: la.matrix_rank(np.stack([a, a])),
    "pinv": la.pinv,
    "pinv by rtol": lambda a: la.pinv(a, rtol=None),
    "lstsq": lambda a: la.lstsq(a, np.ones(len(a), a.dtype))[::2],
    **{
        f"lstsq with rcond={rcond}": lambda a, rcond=rcond: la.lstsq(a, np.ones(len(a), a.dtype), rcond)[::2]
        for rcond in (-1, 0, 1.0, 1e-6)
    },
}


@in_groups("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(2, 20), (20, 2), (2, 2)], ids=str)
@pytest.mark.parametrize("name", BY_RANK)
def test_which_singular_values_are_zero(name: str, shape: Any, dtype: str) -> None:
    """By default it depends on the larger extent of a matrix, in units of rounding."""
    traced = jit(BY_RANK[name])
    for unit in (np.finfo(dtype).eps, np.finfo(float).eps):
        for small in (0.4, 0.7, 1.5, 3.0, 19.0, 21.0, 300.0, 3000.0):
            a = np.zeros(shape, dtype)
            a[0, 0], a[1, 1] = 1, small * unit
            with config.override(executor="interpreter"):
                found = traced(a)
            for mine, numpys in zip(optree.tree_leaves(found), optree.tree_leaves(BY_RANK[name](a)), strict=True):
                assert (mine.dtype, mine.shape) == (np.asarray(numpys).dtype, np.shape(numpys))
                np.testing.assert_allclose(mine, numpys, rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rcond", [None, -1, 1e-6])
def test_least_squares_of_matrices_of_less_than_full_rank(rcond: Any, dtype: str) -> None:
    """The slope in b is that of the pseudo-inverse, of single precision too, in which rounding hides the rank."""
    a, b = (regular((6, 2), dtype) @ regular((2, 4), dtype, 1)).astype(dtype), regular((6, 1), dtype)[:, 0]
    whole = np.concatenate([a[:, :2], np.round(a[:, :2] * 4) / 4, a[:, :1]], axis=1)
    for matrix in (np.round(whole * 4) / 4, np.ones((5, 3), dtype)):
        given = np.resize(b, len(matrix))
        solution, _, rank, values = la.lstsq(matrix, given, rcond)
        with config.override(executor="interpreter"):
            found = jit(lambda a, b: [la.lstsq(a, b, rcond)[i] for i in (0, 2, 3)])(matrix, given)
            tangent = jvp(lambda b: la.lstsq(matrix, b, rcond)[0], (given,), (given,))[1]  # noqa: B023
        assert rank < matrix.shape[1]
        assert found[1] == rank
        np.testing.assert_allclose(found[0], solution, rtol=1e-5)
        np.testing.assert_allclose(found[2], values, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(tangent, solution, rtol=1e-4, atol=1e-6)


def test_row_61_integers_are_f64() -> None:
    a = np.array([[2, 1], [1, 3]])
    for function in (la.inv, la.det, la.slogdet, la.svd, la.qr, la.pinv, la.eigvalsh, la.cholesky, la.cond):
        exactly(function, a)
    exactly(lambda a: la.matrix_power(a, 3), a)
    exactly(la.solve, a.astype(np.float32), a[:, 0])
    exactly(la.solve, a.astype(np.float32), a.astype(np.int8)[:, 0])
    exactly(la.solve, a.astype(np.complex64), a.astype(np.float64))


def test_condition_of_singular_matrices_is_infinite() -> None:
    a = np.stack([np.ones((2, 2)), np.eye(2), np.full((2, 2), np.nan)])
    for order in (1, "fro", np.inf, None):
        with np.errstate(all="ignore"):
            exactly(lambda a: la.cond(a, order), a if order else a[:2])  # noqa: B023


def test_results_of_linalg_have_the_names_of_numpy() -> None:
    def f(a: Any) -> Any:
        w, _ = la.eigh(a)
        _, s, _ = la.svd(a)
        return la.eigh(a).eigenvalues[0] + la.slogdet(a).logabsdet + la.svd(a).S[0] + la.qr(a).R[0, 0] + np.sum(w * s)

    a = np.array([[2.0, 1.0], [1.0, 3.0]])
    np.testing.assert_allclose(value_and_grad(f)(a)[0], f(a))


def test_eigenvalues_of_real_matrices_are_complex() -> None:
    """NumPy decides by the values; a traced matrix has none."""
    a = np.array([[2.0, 1.0], [1.0, 3.0]])
    (w, v), _ = traced(la.eig, a)
    assert w.dtype == v.dtype == traced(la.eigvals, a)[0].dtype == np.complex128
    np.testing.assert_array_equal(w, la.eig(a).eigenvalues)
    np.testing.assert_array_equal(v, la.eig(a).eigenvectors)
    np.testing.assert_allclose(grad(lambda a: np.prod(la.eigvals(a)).real)(a), [[3, -1], [-1, 2]], rtol=1e-14)


def test_lists_of_traced_values() -> None:
    assert grad(lambda t: fnp.linalg.norm([3.0, t]))(4.0) == 0.8
    assert grad(lambda t: fnp.linalg.det([[t, 1.0], [2.0, t]]))(3.0) == 6
    assert fnp.linalg.LinAlgError is np.linalg.LinAlgError
    with pytest.raises(AttributeError):
        _ = fnp.linalg.nothing


# ---- edge cases ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_row_14_norms_of_zero(dtype: Any) -> None:
    zero = np.zeros((2, 2), dtype)
    for order in (2, "nuc", "fro", 1, np.inf):
        check_everywhere(lambda x: la.norm(x, order), zero, value=0, gradient=np.zeros(4))  # noqa: B023


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_row_24_det_of_singular_matrices(dtype: Any) -> None:
    a = np.array([[1, 2], [2, 4]], dtype)
    twice = np.array([[0, 0, 0, 1], [0, 0, -1, 0], [0, -1, 0, 0], [1, 0, 0, 0]])
    check_everywhere(la.det, a, value=0, gradient=[4, -2, -2, 1], hessian=twice)
    check_everywhere(la.det, np.ones((3, 3), dtype), value=0, gradient=np.zeros(9))


@pytest.mark.slow
def test_row_25_second_derivative_of_det() -> None:
    def f(t: Any) -> Any:
        return la.det(np.stack([np.stack([t + 2, 1.0]), np.stack([1.0, 2 * t + 3])]))

    check_everywhere(f, np.float64(0.7), value=f_value(0.7), gradient=[4 * 0.7 + 7], hessian=[[4]], rtol=1e-14)
    once = lambda t: jvp(f, (t,), (1.0,))[1]  # noqa: E731
    assert jvp(once, (0.7,), (1.0,))[1] == pytest.approx(4, rel=1e-14)


def f_value(t: float) -> float:
    return (t + 2) * (2 * t + 3) - 1


@pytest.mark.parametrize("shape", [(4, 4), (5, 4), (3, 4)])
def test_a_null_space_beyond_the_last_singular_values_has_no_finite_derivative(shape: tuple[int, int]) -> None:
    """Singular values of rounding error are equal zeros, so that their vectors do not move by its inverse."""
    rng = np.random.default_rng(0)
    low, weights = rng.normal(size=(shape[0], 2)) @ rng.normal(size=(2, 4)), rng.normal(size=(4, 4))

    def projected(a: Any) -> Any:
        null = np.linalg.svd(a)[2][2:]
        return np.sum(null.T @ null * weights)

    for of in (grad(projected), jit(grad(projected))):
        assert not np.isfinite(of(low)).any()
    assert not np.isfinite(jvp(projected, (low,), (np.ones(shape),))[1])


def test_a_rotation_between_points_in_a_plane_has_a_derivative() -> None:
    """The third singular value is of rounding error, and the rotation a function of the first two and of the sign."""
    rng = np.random.default_rng(3)
    flat, weights = rng.normal(size=(6, 2)) @ rng.normal(size=(2, 3)), rng.normal(size=(6, 2)) @ rng.normal(size=(2, 3))
    goal = flat + 0.1 * rng.normal(size=(6, 2)) @ rng.normal(size=(2, 3))

    def moved(x: Any) -> Any:
        u, _, vh = np.linalg.svd(x.T @ goal)
        rotation = u @ np.diag(np.array([1.0, 1.0, np.sign(np.linalg.det(u @ vh))])) @ vh
        return np.sum(weights * (x @ rotation))

    plane = np.linalg.svd(flat)[2][:2]
    inside = rng.normal(size=(6, 2)) @ plane
    slope = (moved(flat + 1e-6 * inside) - moved(flat - 1e-6 * inside)) / 2e-6
    for gradient in (grad(moved), jit(grad(moved))):
        assert np.sum(gradient(flat) * inside) == pytest.approx(slope, rel=1e-6)


def test_a_pseudoinverse_by_hand_of_a_matrix_of_low_rank_has_the_derivative_of_pinv() -> None:
    rng = np.random.default_rng(1)
    left, right = rng.normal(size=(4, 2)), rng.normal(size=(2, 3))

    def by_hand(left: Any) -> Any:
        u, s, vh = np.linalg.svd(left @ right, full_matrices=False)
        return np.sum(np.sin((vh.T * np.where(s > 1e-9, 1 / s, 0.0)) @ u.T))

    with np.errstate(divide="ignore"):
        found = grad(by_hand)(left)
    np.testing.assert_allclose(found, grad(lambda left: np.sum(np.sin(np.linalg.pinv(left @ right))))(left), rtol=1e-9)


def test_row_26_equal_eigenvalues() -> None:
    """What eigenvectors cannot tell is not told wrongly; what is a function of eigenvalues is right."""

    def by_vectors(a: Any) -> Any:
        return np.sum(rebuilt(*la.eigh(hermitian(a)), np.exp))

    assert not np.isfinite(grad(lambda a: np.sum(la.eigh(a)[1]))(np.eye(2))).all()
    for exponential in (expm, lambda a: rebuilt(*la.eigh(hermitian(a)), np.exp)):
        found = grad(lambda a: np.sum(exponential(a)))(np.eye(2))  # noqa: B023
        np.testing.assert_allclose(found, np.full((2, 2), np.e), rtol=1e-15)
    for eigenvalues in (la.eigvalsh, lambda a: la.eigh(a)[0]):
        found = grad(lambda a: np.sum(np.exp(eigenvalues(a))))(np.eye(2))  # noqa: B023
        np.testing.assert_allclose(found, np.e * np.eye(2), rtol=1e-15)
    apart = np.diag([1.0, 2.0])
    expected = np.exp([[1.0, 2.0]]) * np.eye(2) + (np.e**2 - np.e) * (1 - np.eye(2))
    np.testing.assert_allclose(grad(by_vectors)(apart), expected, rtol=1e-14)


@pytest.mark.parametrize(
    "function",
    [
        lambda a: np.sum(la.cholesky(a)),
        lambda a: la.eigh(a)[1][0, 1],
        lambda a: la.eigvalsh(a)[0],
        lambda a: rebuilt(*la.eigh(a), np.exp)[0, 1],
        lambda a: la.svd(a, hermitian=True).S[1],
        lambda a: np.sum(la.pinv(a, hermitian=True)),
    ],
    ids=["cholesky", "eigh", "eigvalsh", "exponential", "svd", "pinv"],
)
def test_row_27_gradients_are_in_the_triangle_that_is_read(function: Any) -> None:
    """Off the diagonal they are twice those of the symmetric part."""
    a = np.array([[2.0, 0.5, 0.1], [0.5, 3.0, 0.2], [0.1, 0.2, 1.0]])
    for of in (grad, lambda f: jit(grad(f))):
        whole, symmetric = of(function)(a), of(lambda a: function(hermitian(a)))(a)
        np.testing.assert_allclose(symmetric, symmetric.T, rtol=1e-13)
        np.testing.assert_allclose(whole, np.tril(symmetric) + np.tril(symmetric, -1), rtol=1e-12)
        np.testing.assert_array_equal(np.triu(whole, 1), 0)
        assert abs(whole[1, 0]) > 1e-3


# ---- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (la.inv, (np.ones((2, 3)),)),
        (la.inv, (np.ones(3),)),
        (la.det, (np.float64(3),)),
        (la.solve, (np.eye(3), np.ones((2, 2)))),
        (la.solve, (np.ones((2, 3)), np.ones(3))),
        (la.svd, (np.ones(3),)),
        (lambda a: la.eigh(a, "X"), (np.eye(2),)),
        (lambda a: la.qr(a, "nothing"), (np.eye(2),)),
        (lambda a: la.norm(a, "nothing"), (np.eye(2),)),
        (lambda a: la.norm(a, 3), (np.eye(2),)),
        (lambda a: la.matrix_power(a, 1.5), (np.eye(2),)),
        (lambda a: la.multi_dot([a]), (np.eye(2),)),
        (lambda a, v: la.multi_dot([a, v, a]), (np.eye(2), np.ones(2))),
        (lambda a: la.tensorinv(a, 0), (np.eye(2),)),
        (lambda a: la.tensorinv(a, 1), (np.ones((2, 3)),)),
        (la.tensorsolve, (np.ones((2, 3)), np.ones(2))),
        (la.lstsq, (np.ones((2, 2)), np.ones(3))),
        (lambda a: la.pinv(a, 0.1, rtol=0.1), (np.eye(2),)),
        (la.cond, (np.zeros((0, 0)),)),
        (la.cross, (np.ones(2), np.ones(2))),
        (la.outer, (np.eye(2), np.ones(2))),
        (la.inv, (np.zeros((2, 2)),)),
        (la.solve, (np.ones((2, 2)), np.ones(2))),
        (la.cholesky, (-np.eye(2),)),
        (la.eig, (np.full((2, 2), np.inf),)),
    ],
)
def test_error_is_numpys(function: Any, args: Any) -> None:
    check_error(function, *args)


@pytest.mark.parametrize("executor", ["interpreter", "compiled"])
def test_singular_matrix_is_found_when_the_program_runs(executor: str) -> None:
    with config.override(executor=executor):
        inverse = jit(lambda a: la.inv(a))
        np.testing.assert_array_equal(inverse(2 * np.eye(2)), np.eye(2) / 2)
        with pytest.raises(np.linalg.LinAlgError, match=r"Singular matrix\n  at test_linalg.py:\d+ in <lambda>"):
            inverse(np.zeros((2, 2)))
        np.testing.assert_array_equal(inverse(4 * np.eye(2)), np.eye(2) / 4)


def test_error_names_the_line() -> None:
    with pytest.raises(MatrixError) as error:
        grad(lambda a: la.det(a))(np.ones((2, 3)))
    message = str(error.value)
    assert message.startswith("Last 2 dimensions of the array must be square: det of f64[2,3]\n  at test_linalg.py:")
    with pytest.raises(UnsupportedFunctionError, match=r"numpy\.linalg\.qr has no rule for mode='raw'"):
        grad(lambda a: np.sum(la.qr(a, "raw")[0]))(np.eye(2))


def test_residuals_that_numpy_does_not_give() -> None:
    a, b = np.ones((3, 2)), np.array([1.0, 2.0, 4.0])
    np.testing.assert_allclose(grad(lambda b: np.sum(la.lstsq(a, b)[0]))(b), np.full(3, 1 / 3), rtol=1e-14)
    with pytest.raises(DomainError, match="no residuals of a matrix that is not of full rank"):
        grad(lambda b: np.sum(la.lstsq(a, b)[1]))(b)


@pytest.mark.parametrize("executor", ["interpreter", "compiled"])
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (3, 4)])
def test_derivatives_where_singular_values_are_left_out(shape: Any, dtype: Any, executor: str) -> None:
    """Of A = U S Vᴴ, whose U and V turn by dU = X U and dV = Y V, with X and Y skew-Hermitian, and S moves by dS."""
    rng = np.random.default_rng(0)
    x, y, a, b = (rng.normal(size=s).astype(dtype) for s in ((shape[0],) * 2, (shape[1],) * 2, shape, shape[:1]))
    if dtype is complex:
        x, y, a = x + 1j * x.T[::-1], y + 1j * y.T[::-1], a + 1j * a[::-1]
    x, y = x - x.conj().T, y - y.conj().T
    u, _, vh = np.linalg.svd(a, full_matrices=False)
    s, ds = np.array([1.0, 0.7, 0.2]), np.array([0.3, -1.1, 2.0])
    a, p = (u * s) @ vh, (vh.conj().T * [1, 1 / 0.7, 0]) @ u.conj().T
    da = x @ a - a @ y + (u * ds) @ vh
    dp = y @ p - p @ x - (vh.conj().T * [0.3, -1.1 / 0.49, 0]) @ u.conj().T
    with config.override(executor=executor):
        found = jit(lambda a, da: jvp(lambda a: (la.pinv(a, 0.5), la.lstsq(a, b, 0.5)[0]), (a,), (da,)))(a, da)
    for one, wanted in zip(optree.tree_leaves(found), (p, p @ b, dp, dp @ b), strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-12, atol=1e-13)
    if shape == (3, 3) and dtype is float:
        h, m = (u * [1.0, -0.7, 0.2]) @ u.T, rng.normal(size=(3, 3))
        dh, q = x @ h - h @ x + (u * ds) @ u.T, (u * [1, -1 / 0.7, 0]) @ u.T
        dq = x @ q - q @ x - (u * [0.3, -1.1 / 0.49, 0]) @ u.T
        slope = grad(lambda h: np.sum(m * la.pinv(h, 0.5, hermitian=True)))(h)
        np.testing.assert_allclose(np.sum(slope * dh), np.sum(m * dq), rtol=1e-12)
