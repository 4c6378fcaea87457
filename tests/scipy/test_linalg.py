"""fnad.scipy.linalg and fnad.scipy.signal: SciPy where nothing is traced, its values and errors where something is.

Their derivatives are compared with differences in tests/numpy/test_derivatives_of_calls.py.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import optree
import pytest
import scipy.linalg
import scipy.signal

from fnad import grad, jit, jvp, make_program, value_and_grad, vmap
from fnad.config import override
from fnad.errors import DomainError, FactorizationError, ShapeError, UnsupportedFunctionError
from fnad.scipy import linalg, signal
from tests.edge_cases.ways import check as check_everywhere
from tests.numpy.against_numpy import check, check_error, sample, traced
from tests.numpy.linalg_calls import hermitian, regular
from tests.together import in_groups

A = regular((3, 3))
V = sample(3, "f64", 1)


@in_groups("name", linalg.__all__)
def test_names_are_those_of_scipy(name: str) -> None:
    ours, scipys = getattr(linalg, name), getattr(scipy.linalg, name)
    assert ours.__doc__
    assert ours is not scipys


def test_what_is_not_traced_is_computed_by_scipy() -> None:
    np.testing.assert_array_equal(linalg.expm(A), scipy.linalg.expm(A))
    np.testing.assert_array_equal(linalg.cho_factor(A @ A.T)[0], scipy.linalg.cho_factor(A @ A.T)[0])
    np.testing.assert_array_equal(signal.convolve(V, V, "same"), scipy.signal.convolve(V, V, "same"))
    np.testing.assert_array_equal(linalg.hilbert(3), scipy.linalg.hilbert(3))
    np.testing.assert_array_equal(signal.get_window("hann", 5), scipy.signal.get_window("hann", 5))
    with pytest.raises(AttributeError):
        _ = linalg.nothing


@pytest.mark.peers
@pytest.mark.parametrize("dtype", ["f32", "c64", "c128", "i64"])
def test_dtypes_are_scipys(dtype: str) -> None:
    a = (hermitian(A) * 4).astype(np.dtype("i8")) if dtype == "i64" else hermitian(regular((3, 3), dtype))
    for function in (
        linalg.inv,
        linalg.det,
        linalg.cholesky,
        linalg.eigvalsh,
        linalg.qr,
        linalg.lu,
        linalg.svdvals,
        linalg.toeplitz,
        lambda a: linalg.solve(a, a[:, 0]),
        lambda a: linalg.block_diag(a, np.ones(2, np.float32)),
        lambda a: linalg.solve_triangular(a, a[:, 0]),
    ):
        found, expected = traced(function, a)[0], function(a)
        for mine, his in zip(optree.tree_leaves(found), optree.tree_leaves(expected), strict=True):
            assert np.asarray(mine).dtype == np.asarray(his).dtype
            allowed = 32 * np.finfo(a.dtype if a.dtype.kind in "fc" else np.float64).eps
            np.testing.assert_allclose(mine, his, rtol=allowed, atol=4 * allowed)


def test_lyapunovs_equation_by_each_method() -> None:
    """The bilinear method solves another equation with the same solution, and rounds otherwise."""
    for method in ("direct", "bilinear"):
        found = jit(lambda a, q, method=method: linalg.solve_discrete_lyapunov(a, q, method))(A / 9, A)
        np.testing.assert_allclose(found, scipy.linalg.solve_discrete_lyapunov(A / 9, A, method), rtol=1e-13)


def test_stacks_of_matrices() -> None:
    b = regular((2, 3, 3))
    for function in (linalg.expm, linalg.sqrtm, linalg.lu, lambda b: linalg.solve(b, b), linalg.block_diag):
        found, expected = traced(function, b)[0], function(b)
        for mine, his in zip(optree.tree_leaves(found), optree.tree_leaves(expected), strict=True):
            np.testing.assert_allclose(mine, his, rtol=1e-12, atol=1e-14)


def test_empty_and_single_matrices() -> None:
    for n in (0, 1):
        a = regular((n, n))
        for function in (linalg.inv, linalg.expm, linalg.cholesky, lambda a: linalg.block_diag(a, a), linalg.svdvals):
            check(function, a)
        check(lambda a, b: linalg.solve(a, b), a, np.ones(n))


@pytest.mark.slow
def test_row_26_exponential_of_a_matrix_with_equal_eigenvalues() -> None:
    ones, slope = np.eye(2), np.full(4, np.e)
    check_everywhere(lambda a: np.sum(linalg.expm(a)), ones, value=2 * np.e, gradient=slope, rtol=2e-15)


def test_cholesky_solves_differentiate_through_the_factor() -> None:
    """The gradient of b · A⁻¹ b is - x xᵀ, symmetric, however it is computed."""
    spd = A @ A.T
    x = np.linalg.solve(spd, V)
    for function in (
        lambda a: V @ linalg.cho_solve(linalg.cho_factor(a), V),
        lambda a: V @ linalg.solve(a, V, assume_a="pos"),
        lambda a: V @ linalg.solve(a, V, assume_a="sym", lower=True),
        lambda a: np.sum(linalg.solve_triangular(linalg.cholesky(a, lower=True), V, lower=True) ** 2),
        lambda a: V @ linalg.lu_solve(linalg.lu_factor(a), V),
    ):
        gradient = grad(lambda a: function(hermitian(a)))  # noqa: B023
        for found in (gradient(spd), jit(gradient)(spd)):
            np.testing.assert_allclose(found, -np.outer(x, x), rtol=1e-12)


def test_row_27_gradients_are_in_the_triangle_that_is_read() -> None:
    """The gradient of b · A⁻¹ b is - x xᵀ, twice off the diagonal, where A is the symmetric matrix of one triangle."""
    spd = A @ A.T
    x = np.linalg.solve(spd, V)
    junk = np.full((3, 3), np.nan)
    for lower, triangle, others in ((True, np.tril, np.triu), (False, np.triu, np.tril)):
        given = triangle(spd) + others(junk, 1 if lower else -1)
        expected = -triangle(2 * np.outer(x, x) - np.diag(x * x))
        for function in (
            lambda a: V @ linalg.cho_solve(linalg.cho_factor(a, lower), V),  # noqa: B023
            lambda a: V @ linalg.solve(a, V, lower, assume_a="pos"),  # noqa: B023
            lambda a: V @ linalg.solve(a, V, lower, assume_a="sym"),  # noqa: B023
            lambda a: V @ linalg.solve(a, V, lower, assume_a="her"),  # noqa: B023
        ):
            np.testing.assert_allclose(grad(function)(given), expected, rtol=1e-12)
        found = grad(lambda a: np.sum(np.log(linalg.eigvalsh(a, lower=lower))))(given)  # noqa: B023
        inverse = np.linalg.inv(spd)
        np.testing.assert_allclose(found, triangle(2 * inverse - np.diag(np.diag(inverse))), rtol=1e-10)


@pytest.mark.peers
def test_a_matrix_of_one_element_is_divided_by_whatever_it_is_said_to_be() -> None:
    for assume_a in ("pos", "her", "sym", "gen"):
        check(lambda a, b: linalg.solve(a, b, assume_a=assume_a), np.array([[-2.0 + 1j]]), np.ones(1))  # noqa: B023


def test_unused_corners_of_a_band_do_not_count() -> None:
    band = np.array([[np.nan, 1.0, 2.0], [4.0, 5.0, 6.0], [1.0, 2.0, np.nan]])
    found = grad(lambda ab: np.sum(linalg.solve_banded((1, 1), ab, V)))(band)
    assert found[0, 0] == found[2, 2] == 0
    assert np.isfinite(found).all()


@pytest.mark.parametrize(("below", "above"), [(2, 0), (0, 2)])
def test_triangular_bands_are_solved_without_their_corners(below: int, above: int) -> None:
    """Unused corners do not count, an infinite element changes none before it, and a diagonal of 0 is an error."""
    band = np.array([[4.0, 5.0, 6.0], [1.0, 2.0, np.nan], [0.5, np.nan, np.nan]])
    band = band if below else np.array(band[::-1, ::-1])
    found, slopes = value_and_grad(lambda ab: np.sum(linalg.solve_banded((below, above), ab, V)))(band)
    assert np.isfinite([found, *slopes[np.isfinite(band)]]).all()
    v = V.copy()
    v[1] = np.inf
    assert np.isfinite(jit(lambda v: linalg.solve_banded((below, above), band, v))(v)[0 if below else -1])
    band[0 if below else -1, 1] = 0
    with pytest.raises(FactorizationError, match="singular matrix"):
        jit(lambda ab: linalg.solve_banded((below, above), ab, V))(band)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("above", [0, 1, 2])
def test_a_band_that_is_not_positive_definite_is_an_error(above: int, lower: bool) -> None:
    band = np.full((above + 1, 4), 0.5)
    band[0 if lower else -1] = [4.0, 4.0, 4.0, -1.0]
    f = lambda ab: np.sum(linalg.solveh_banded(ab, np.ones(4), lower=lower))  # noqa: E731
    for call in (f, jit(f), grad(f), jit(grad(f)), lambda ab: jit(vmap(f))(ab[None]), lambda ab: jvp(f, (ab,), (ab,))):
        with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
            call(band)


@pytest.mark.parametrize("c", [[0.1, 0.2, 0.3, -0.6], [1.0, 1.0, 1.0, 1.0], [1e9 / 3, -1e9 / 3, 1.0, -1.0]])
def test_a_circulant_matrix_that_is_singular_to_rounding_is_an_error(c: list[float]) -> None:
    f = lambda c: np.sum(linalg.solve_circulant(c, np.arange(4.0)))  # noqa: E731
    for call in (f, jit(f), grad(f), jit(grad(f)), lambda c: jit(vmap(f))(c[None])):
        with pytest.raises(np.linalg.LinAlgError, match="ingular"):
            call(np.array(c))


@pytest.mark.parametrize(
    ("m", "n", "rank"), [(4, 3, 2), (3, 4, 2), (4, 4, 2), (3, 5, 1), (5, 3, 1), (3, 3, 3), (3, 5, 3)]
)
def test_spaces_of_a_matrix_move_at_constant_rank(m: int, n: int, rank: int) -> None:
    """Along matrices of one rank; the basis of a kernel is any, so its projection is compared."""
    rng = np.random.default_rng(m + n)
    left, right, dleft, dright = (rng.normal(size=shape) for shape in ((m, rank), (rank, n)) * 2)
    weights = rng.normal(size=(5, 5))

    def along(space: Any) -> Any:
        def f(t: Any) -> Any:
            basis = space((left + t * dleft) @ (right + t * dright))
            return np.sum(basis @ basis.T * weights[: len(basis), : len(basis)])

        return f

    of_kernel, of_range = along(scipy.linalg.null_space), along(scipy.linalg.orth)
    for f in (of_kernel, of_range):
        h = 1e-5
        slope = (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)
        np.testing.assert_allclose(jit(f)(0.0), f(0.0), atol=1e-12)
        np.testing.assert_allclose([grad(f)(0.0), jvp(f, (0.0,), (1.0,))[1]], [slope, slope], rtol=1e-6, atol=1e-8)
    bend = (of_kernel(1e-3) - 2 * of_kernel(0.0) + of_kernel(-1e-3)) / 1e-6
    np.testing.assert_allclose(grad(grad(of_kernel))(0.0), bend, rtol=1e-3, atol=1e-4)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_filters_are_infinite_from_the_infinite_element_on() -> None:
    b, a, sections = [0.3, 0.1, 0.2], [1.2, -0.5, 0.1], np.array([[0.3, 0.1, 0.2, 1.0, -0.5, 0.1]] * 2)
    for number, place in product((np.inf, -np.inf, np.nan), range(5)):
        x = np.linspace(1.0, 2.0, 5)
        x[place] = number
        for found, expected in (
            (jit(lambda x: signal.lfilter(b, a, x))(x), scipy.signal.lfilter(b, a, x)),
            (jit(lambda x: signal.sosfilt(sections, x))(x), scipy.signal.sosfilt(sections, x)),
        ):
            np.testing.assert_allclose(found, expected, 1e-12)


# ---- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (linalg.inv, (np.ones((2, 3)),)),
        (linalg.inv, (np.zeros((2, 2)),)),
        (linalg.cholesky, (-np.eye(2),)),
        (linalg.solve, (np.eye(2), np.ones(3))),
        (lambda a, b: linalg.solve(a, b, assume_a="pos"), (-np.eye(2), np.ones(2))),
        (linalg.solve_triangular, (np.zeros((2, 2)), np.ones(2))),
        (linalg.expm, (np.ones((2, 3)),)),
        (linalg.solve_sylvester, (np.eye(2), np.eye(3), np.ones((2, 2)))),
        (lambda x: signal.convolve(x, np.ones((2, 2))), (V,)),
        (lambda x: signal.convolve(x, x, "none"), (V,)),
        (lambda x: signal.convolve(x, x, method="none"), (V,)),
        (lambda x: signal.convolve(x, np.ones((2, 4)), "valid"), (A,)),
        (lambda x: signal.fftconvolve(x, np.ones((2, 2)), axes=0), (A,)),
        (lambda x: signal.convolve2d(x, x), (V,)),
        (lambda x: signal.convolve2d(x, x, boundary="none"), (A,)),
    ],
)
def test_error_is_scipys(function: Any, args: Any) -> None:
    check_error(function, *args)


def test_what_has_no_rule_is_named() -> None:
    for function, message in (
        (lambda a: linalg.qr(a, pivoting=True), r"scipy\.linalg\.qr has no rule for the option pivoting="),
        (lambda a: linalg.solve(a, a, assume_a="banded"), r"scipy\.linalg\.solve has no rule for assume_a='banded'"),
        (lambda a: linalg.pinv(a, atol=0.1), r"scipy\.linalg\.pinv has no rule for the option atol="),
    ):
        with pytest.raises(UnsupportedFunctionError, match=message):
            grad(lambda a: np.sum(function(a)[0]))(A)  # noqa: B023


def test_square_root_that_is_complex() -> None:
    with pytest.raises(DomainError, match="no real square root"):
        grad(lambda a: np.sum(linalg.sqrtm(a)))(np.diag([1.0, -1.0]))
    np.testing.assert_allclose(
        grad(lambda a: np.sum(linalg.sqrtm(a.astype(complex))).imag)(np.diag([4.0, -1.0])).diagonal(), [0, -0.5]
    )


def test_least_squares_in_single_precision_can_be_printed() -> None:
    """The default limit of singular values is a number of Python, as all parameters of programs are."""
    a = np.arange(6.0, dtype="f4").reshape(3, 2) ** 2
    program = make_program(lambda b: scipy.linalg.lstsq(a, b)[0])(np.ones(3, "f4")).program
    assert "rcond=1.1920928955078125e-07" in str(program)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16", "i4"])
@pytest.mark.parametrize(
    ("shape", "axis", "options"),
    [
        ((9,), -1, {}),
        ((9, 2), 0, {"bp": [7, 3]}),
        ((3, 8, 2), 1, {"type": "l", "bp": 1}),
        ((2, 6), -1, {"type": "c", "bp": 3}),
        ((1,), 0, {}),
    ],
)
def test_detrend_compiled_is_scipys(dtype: str, shape: tuple[int, ...], axis: int, options: dict[str, Any]) -> None:
    x = sample(shape, np.dtype(dtype))
    with override(executor="compiled"):
        found = jit(lambda x: scipy.signal.detrend(x, axis=axis, **options))(x)
    expected = scipy.signal.detrend(x, axis=axis, **options)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, atol=1e-5 if expected.dtype in ("f4", "c8") else 1e-12)


def test_what_cannot_be_detrended() -> None:
    for options in ({"type": "quadratic"}, {"bp": [9]}, {"bp": [-1]}):
        with pytest.raises(ShapeError):
            jit(lambda x, options=options: scipy.signal.detrend(x, **options))(np.ones(5))


@pytest.mark.parametrize("lower", [False, True])
def test_solveh_banded_reads_the_real_part_of_the_diagonal(lower: bool) -> None:
    diagonal, beside = np.array([4.0 + 0.5j, 5.0 - 0.3j, 6.0 + 0.7j]), np.array([1.0 + 0.2j, -0.5j])
    band = np.stack([diagonal, [*beside, 0.0]] if lower else [[0.0, *beside], diagonal])
    f = lambda ab: linalg.solveh_banded(ab, np.array([1.0, 2.0j, 3.0]), lower=lower)  # noqa: E731
    np.testing.assert_allclose(jit(f)(band), f(band), rtol=1e-14)
    loss = lambda ab: np.sum(np.abs(f(ab)) ** 2)  # noqa: E731
    found, step = grad(loss)(band), 1e-6
    for i in np.ndindex(band.shape):
        for part, change in ((found[i].real, step), (-found[i].imag, 1j * step)):
            by = np.zeros_like(band)
            by[i] = change
            np.testing.assert_allclose(part, (loss(band + by) - loss(band - by)) / (2 * step), rtol=1e-6, atol=1e-9)


def test_the_driver_gelsy_has_no_singular_values() -> None:
    a, b = sample((4, 2), "f64", 0), sample(4, "f64", 1)
    for found in (
        jit(lambda a: scipy.linalg.lstsq(a, b, lapack_driver="gelsy"))(a),
        scipy.linalg.lstsq(a, b, lapack_driver="gelsy"),
    ):
        assert found[1].shape == (0,)
        assert found[2:] == (2, None)
    with pytest.raises(ValueError, match='"gels" is not found'):
        jit(lambda a: scipy.linalg.lstsq(a, b, lapack_driver="gels"))(a)
