"""Rules of linear algebra that the catalogue does not reach, against differences of NumPy's functions.

Those of several results, functions of Hermitian matrices, and matrices of constant but not full rank; then what holds
at special points, and errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.linalg

import fnad
from fnad.backends.cpu.executor import compile_program
from fnad.errors import DomainError, DtypeError, MatrixError
from fnad.ir.primitive import PRIMITIVES
from fnad.ir.types import DTYPES, Aval
from fnad.ops.arithmetic import mul
from fnad.ops.determinant import cofactor, det, slogdet
from fnad.ops.eigenvalues import eig, eigh, eigvalsh, svd, svdvals
from fnad.ops.elementary import exp
from fnad.ops.least_squares import lstsq, pinv, qr
from fnad.ops.linalg import cholesky, inv, lu, positive, regular, solve, solve_triangular
from fnad.ops.matrix import adjoint, along_columns, hermitian, matmul
from fnad.ops.matrix_function import expm, expm_frechet, sqrtm
from fnad.ops.shape import reduce_sum, sample
from fnad.testing import Run, pullback, pushforward
from fnad.transforms.joint import joint
from tests.catalogue.cases import over
from tests.edge_cases.derivatives import gradient, hessian, program_of, reverse, value
from tests.ops.composition import Composition, check_derivatives, check_value, composition
from tests.together import drawn

F64, F32, C128 = DTYPES["f64"], DTYPES["f32"], DTYPES["c128"]
SQUARES = ((3, 3), (2, 2, 2), (1, 1))
RECTANGLES = (*SQUARES, (4, 2), (2, 4), (2, 3, 2))


def conjugate_transpose(x: Any) -> Any:
    return np.conj(np.swapaxes(x, -1, -2))


def hermitian_part(x: Any) -> Any:
    return (x + conjugate_transpose(x)) / 2


def label(dtype: Any, shape: Any) -> str:
    return f"{np.dtype(dtype).name} {shape}"


def nth(function: Any, n: int, **params: Any) -> Any:
    """Return one result of a function of several."""
    return lambda *operands: function(*operands, **params)[n]


# ---- functions of Hermitian matrices ---------------------------------------------------------------------------------


def exponential(w: Any, v: Any) -> Any:
    return matmul(mul(v, along_columns(exp(w), v)), adjoint(v))


def numpy_exponential(w: Any, v: Any) -> Any:
    return (v * np.exp(w)[..., None, :]) @ conjugate_transpose(v)


def hermitian_cases(dtype: Any, shape: Any) -> Iterator[Composition]:
    a, name = (regular(shape, dtype),), label(dtype, shape)
    for uplo in ("L", "U"):
        yield composition(
            f"exponential by eigh {uplo} {name}",
            lambda a, uplo=uplo: exponential(*eigh(a, uplo=uplo)),
            lambda a, uplo=uplo: numpy_exponential(*np.linalg.eigh(a, uplo)),
            a,
        )


# ---- one of several results ------------------------------------------------------------------------------------------


def lapack_lu(a: Any) -> Any:
    out = np.empty_like(a)
    getrf = scipy.linalg.get_lapack_funcs("getrf", (a,))
    for i in np.ndindex(a.shape[:-2]):
        out[i] = getrf(a[i])[0]
    return out


def complex_eig(a: Any) -> Any:
    return [x.astype(np.complex128) for x in np.linalg.eig(a)]


def square_cases(dtype: Any, shape: Any) -> Iterator[Composition]:
    name, a, b = label(dtype, shape), (sample(shape, dtype),), (regular(shape, dtype),)
    for i in (0, 1):
        yield composition(f"eig {i} {name}", nth(eig, i), nth(complex_eig, i), a)
        if i == 1 or dtype == C128:
            yield composition(f"slogdet {i} {name}", nth(slogdet, i), nth(np.linalg.slogdet, i), b)


def numpy_qr(a: Any, complete: bool) -> Any:
    return np.linalg.qr(a, "complete" if complete else "reduced")


def numpy_svd(a: Any, full: bool) -> Any:
    return np.linalg.svd(a, full_matrices=full)


def stretched(u: Any, s: Any, vh: Any) -> Any:
    return matmul(mul(u, along_columns(exp(s), u)), vh)


def numpy_stretched(u: Any, s: Any, vh: Any) -> Any:
    return (u * np.exp(s)[..., None, :]) @ vh


def rectangle_cases(dtype: Any, shape: Any) -> Iterator[Composition]:
    name, a, b = label(dtype, shape), (sample(shape, dtype),), (regular(shape, dtype),)
    yield composition(f"lu {name}", nth(lu, 0), lapack_lu, b)
    yield composition(
        f"exponential by svd {name}",
        lambda a: stretched(*svd(a, full=False)),
        lambda a: numpy_stretched(*numpy_svd(a, full=False)),
        a,
    )
    for flag in (False, True):
        for i in (0, 1):
            yield composition(f"qr {i} {flag} {name}", nth(qr, i, complete=flag), nth(numpy_qr, i, complete=flag), b)
        yield composition(f"svd 1 {flag} {name}", nth(svd, 1, full=flag), nth(numpy_svd, 1, full=flag), a)
        for i in (0, 2) if dtype != C128 and (not flag or abs(shape[-1] - shape[-2]) < 2) else ():
            yield composition(f"svd {i} {flag} {name}", nth(svd, i, full=flag), nth(numpy_svd, i, full=flag), a)


def low_rank_cases(dtype: Any) -> Iterator[Composition]:
    x, y, b = sample((4, 2), dtype), sample((2, 3), dtype, 3), sample((4, 2), dtype, 7)
    yield composition(
        f"pinv of rank 2 {dtype}",
        lambda x, y: pinv(matmul(x, y), rcond=1e-5, is_hermitian=False),
        lambda x, y: np.linalg.pinv(x @ y, 1e-5),
        (x, y),
    )
    yield composition(
        f"lstsq of rank 2 {dtype}",
        lambda x, y, b: lstsq(matmul(x, y), b, rcond=1e-5),
        lambda x, y, b: np.linalg.lstsq(x @ y, b, 1e-5)[0],
        (x, y, b),
    )


CASES = [
    *[case for dtype in (F64, F32, C128) for shape in SQUARES for case in hermitian_cases(dtype, shape)],
    *[case for dtype in (F64, F32, C128) for shape in SQUARES for case in square_cases(dtype, shape)],
    *[case for dtype in (F64, C128) for shape in RECTANGLES for case in rectangle_cases(dtype, shape)],
    *[case for dtype in (F64, C128) for case in low_rank_cases(dtype)],
]


@over(CASES)
def test_composed_linear_algebra_equals_its_closed_form(case: Composition, run: Run):
    check_value(case, run)


@pytest.mark.slow
@over(drawn(CASES, lambda case: case.primitive.name.partition(" (")[0], 2))
def test_derivatives_of_composed_linear_algebra_are_differences(case: Composition, run: Run):
    check_derivatives(case, run)


# ---- Hermitian gradients ---------------------------------------------------------------------------------------------

TRIANGLES = {
    "cholesky": (np.tril, lambda a: cholesky(a, upper=False)),
    "upper cholesky": (np.triu, lambda a: cholesky(a, upper=True)),
    "eigh": (np.tril, lambda a: exponential(*eigh(a, uplo="L"))),
    "upper eigh": (np.triu, lambda a: exponential(*eigh(a, uplo="U"))),
    "eigvalsh": (np.tril, lambda a: eigvalsh(a, uplo="L")),
    "upper eigvalsh": (np.triu, lambda a: eigvalsh(a, uplo="U")),
    "pinv": (np.tril, lambda a: pinv(a, rcond=1e-15, is_hermitian=True)),
}


def cotangents(avals: Any) -> list[Any]:
    return [sample(aval.shape, aval.dtype, seed) for seed, aval in enumerate(avals, 9)]


@pytest.mark.parametrize("dtype", [F64, C128])
@pytest.mark.parametrize("name", TRIANGLES)
def test_row_27_nothing_is_read_but_a_triangle(name: str, dtype: Any, run: Run):
    """Values and derivatives of two orders do not see the rest, and have 0 there; nor the diagonal's imaginary part."""
    triangle, function = TRIANGLES[name]
    a, rest = regular((2, 3, 3), dtype), sample((2, 3, 3), dtype, 5)
    rest = rest - triangle(rest) + np.eye(3) * 1j * rest.imag
    rest = rest if dtype == C128 else rest.real
    program = program_of(function, a)
    gradients = joint(program, (True,))
    cts = cotangents(program.out_avals)
    for whole, xs in ((program, [a]), (gradients, [a, *cts])):
        others = [a + rest, *xs[1:]]
        for mine, others_ in zip(run(whole, xs), run(whole, others), strict=True):
            np.testing.assert_array_equal(mine, others_)
        pulled = pullback(run, whole, xs, cotangents(whole.out_avals))[0]
        np.testing.assert_array_equal(pulled, triangle(pulled))
        np.testing.assert_array_equal(np.diagonal(pulled, axis1=1, axis2=2).imag, 0)
        for pushed in pushforward(run, whole, xs, [rest, *map(np.zeros_like, xs[1:])]):
            np.testing.assert_array_equal(pushed, 0)


@pytest.mark.parametrize("dtype", [F64, C128])
@pytest.mark.parametrize("name", TRIANGLES)
def test_row_27_gradient_of_a_function_of_the_hermitian_part_is_hermitian(name: str, dtype: Any, run: Run):
    a = positive((3, 3), dtype)
    program = program_of(lambda a: TRIANGLES[name][1](hermitian(a)), a)
    (found,) = pullback(run, program, [a], cotangents(program.out_avals))
    np.testing.assert_allclose(found, conjugate_transpose(found), rtol=1e-12)


# ---- singular and degenerate points ----------------------------------------------------------------------------------


def test_row_24_det_of_singular_matrices(run: Run):
    np.testing.assert_array_equal(gradient(run, det, np.array([[1.0, 2.0], [2.0, 4.0]])), [4, -2, -2, 1])
    np.testing.assert_array_equal(gradient(run, det, np.ones((3, 3))), np.zeros(9))
    found = gradient(run, det, np.diag([2.0, 3.0, 5.0, 0.0]))
    np.testing.assert_allclose(found.reshape(4, 4), np.diag([0, 0, 0, 30.0]), atol=1e-13)


@pytest.mark.parametrize("n", [4, 5, 7])
def test_cofactors_of_matrices_of_any_rank_are_signed_minors(n: int, run: Run):
    """Also of one whose first pivot is tiny, and of stacks in which only some are singular."""
    left, right = np.rint(9 * sample((2, n, n), F64, 1))
    stack = [left[:, :rank] @ right[:rank] for rank in (1, n - 2, n - 1, n)]
    stack += [np.diag([0.0, *range(1, n)]), np.where(np.arange(n) == 0, 1e-12 * np.eye(n), left)]
    for a in (np.stack(stack), np.stack(stack) * (1 - 2j)):
        keep = [[k for k in range(n) if k != i] for i in range(n)]
        minors = np.array(
            [[[np.linalg.det(x[np.ix_(keep[i], keep[j])]) for j in range(n)] for i in range(n)] for x in a]
        )
        signs = (-1.0) ** np.add.outer(np.arange(n), np.arange(n))
        scale = np.linalg.norm(a, 2, axis=(1, 2))[:, None, None] ** (n - 1)
        np.testing.assert_allclose(value(run, cofactor, a) / scale, signs * minors / scale, rtol=0, atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f8", "c16"])
@pytest.mark.parametrize("n", [3, 4])
def test_det_overflows_and_vanishes_only_where_the_determinant_does(n: int, dtype: str):
    """Rows and columns are scaled by powers of two whose product is moderate."""
    rng = np.random.default_rng(n)
    exponents = (
        [(515, 515, -500, -500), (350, 350, 350, -650), (-350, -350, -350, 650)]
        if n == 4
        else [(515, 515, -500), (-540, -540, 470)]
    )
    scales = 2.0 ** np.array([order for each in exponents for order in permutations(each)])
    moderate = rng.standard_normal((len(scales), n, n)) + 2 * np.eye(n)
    if dtype == "c16":
        moderate = moderate + 1j * rng.standard_normal(moderate.shape)
    expected = np.linalg.det(moderate) * np.exp2(np.sum(np.log2(scales), axis=1))
    for scaled in (moderate * scales[:, :, None], moderate * scales[:, None, :]):
        found = fnad.jit(np.linalg.det).lower(scaled).compile()(scaled)
        np.testing.assert_allclose(found, expected, rtol=1e-11)
    singular = scales[:, :, None] * np.ones((n, n))
    np.testing.assert_array_equal(fnad.jit(np.linalg.det).lower(singular).compile()(singular), 0)


@pytest.mark.slow
def test_second_and_third_derivatives_of_det_of_rank_deficient_matrices(run: Run):
    second = hessian(run, det, np.zeros((2, 2)))
    np.testing.assert_array_equal(second, [[0, 0, 0, 1], [0, 0, -1, 0], [0, -1, 0, 0], [1, 0, 0, 0]])
    second = hessian(run, det, np.diag([2.0, 3.0, 0.0, 0.0]))
    expected = np.zeros((16, 16))
    expected[10, 15] = expected[15, 10] = 6
    expected[11, 14] = expected[14, 11] = -6
    np.testing.assert_allclose(second, expected, atol=1e-13)
    corner = hessian(run, lambda a: reduce_sum(cofactor(a), axes=(0, 1)), np.diag([2.0, 0.0, 0.0, 0.0]))
    assert np.abs(corner).max() == pytest.approx(2)


def test_products_of_cofactors_up_to_any_order(run: Run):
    """The fourth derivative of det along one direction is 4! det of it, for size 4."""
    a, e = np.diag([1.0, 0.0, 0.0, 0.0]), sample((4, 4), F64, 3)
    fourth = np.sum(value(run, cofactor, a, e, e, e) * e)
    np.testing.assert_allclose(fourth, 24 * np.linalg.det(e), rtol=1e-12)
    np.testing.assert_array_equal(value(run, cofactor, np.eye(2), np.eye(2), np.eye(2)), np.zeros((2, 2)))


def test_functions_of_equal_eigenvalues_alone_have_their_derivative(run: Run):
    def total(a: Any) -> Any:
        return reduce_sum(exp(eigh(a, uplo="L")[0]), axes=(0,))

    for a in (np.eye(3), np.diag([1.0, 1.0, 2.0])):
        expected = np.diag(np.exp(np.diag(a))).ravel()
        np.testing.assert_allclose(reverse(run, total, a), expected, atol=1e-15)
        np.testing.assert_allclose(gradient(run, total, a), expected, atol=1e-15)


def test_row_26_function_of_a_matrix_with_equal_eigenvalues(run: Run):
    """The derivative of exp(I) is e in every element; written with eigenvectors, which have none, it is the same."""
    found = gradient(run, expm, np.eye(2))
    np.testing.assert_allclose(found, np.full(4, np.e), rtol=1e-15)
    turned = scipy.linalg.qr(sample((3, 3)))[0]
    for a in (np.eye(2), turned @ np.diag([1.0, 1.0, 2.0]) @ turned.T):
        found = reverse(run, lambda a: exponential(*eigh(a, uplo="L")), hermitian_part(a)).reshape(a.shape)
        of_both = gradient(run, expm, hermitian_part(a)).reshape(a.shape)
        np.testing.assert_allclose(found, np.tril(of_both + of_both.T) - np.diag(np.diag(of_both)), atol=1e-13)


@pytest.mark.slow
def test_exponential_of_a_badly_scaled_matrix(run: Run):
    """Of size 1e19, but its square and cube are small: what mpmath finds in eighty digits."""
    a = np.zeros((4, 4))
    a[0], a[1, 0], a[2, 1] = (-0.06, -1.4e9, -1.2e19, 1e-12), 1e-12, 1e-12
    with mpmath.workdps(80):
        whole = mpmath.expm(mpmath.matrix(np.block([[a, a], [0 * a, a]]).tolist()), method="taylor")
        exact = np.array(whole.tolist(), float)[:4, 4:]
    for function in (run, lambda program, given: compile_program(program)(given)):
        found = value(function, expm_frechet, a, a)
        np.testing.assert_allclose(found, exact, rtol=1e-13, atol=1e-13 * np.abs(exact).max())
        np.testing.assert_allclose(found[0, 0], exact[0, 0], rtol=1e-9)


def test_singular_values_at_zero_have_derivative_0(run: Run):
    np.testing.assert_array_equal(gradient(run, svdvals, np.zeros((2, 3))), np.zeros(6))
    np.testing.assert_array_equal(gradient(run, nth(svd, 1, full=True), np.zeros((2, 3))), np.zeros(6))


def test_repeated_singular_values(run: Run):
    found = gradient(run, lambda a: reduce_sum(svdvals(a), axes=(0,)), 2 * np.eye(3))
    np.testing.assert_allclose(found.reshape(3, 3), np.eye(3), atol=1e-15)


# ---- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "at"),
    [
        (inv, (np.zeros((2, 2)),)),
        (solve, (np.ones((2, 2)), np.ones((2, 1)))),
        (lambda a: cholesky(a, upper=False), (-np.eye(2),)),
        (eig, (np.full((2, 2), np.nan),)),
        (lambda a: solve_triangular(a, a, lower=True, unit=False), (np.zeros((2, 2)),)),
    ],
    ids=["inv", "solve", "cholesky", "eig", "solve_triangular"],
)
def test_singular_matrices_raise_as_numpy(function: Any, at: Any, run: Run):
    with pytest.raises(np.linalg.LinAlgError):
        value(run, lambda *operands: nth_or_only(function(*operands)), *at)


def nth_or_only(results: Any) -> Any:
    return results[0] if isinstance(results, tuple) else results


def test_matrices_that_are_not_square():
    for name in ("inv", "det", "slogdet", "eigh", "eig", "cholesky", "expm", "sqrtm"):
        params = {"uplo": "L"} if name == "eigh" else {"upper": False} if name == "cholesky" else {}
        with pytest.raises(MatrixError) as error:
            PRIMITIVES[name].infer(Aval(F64, (2, 3)), **params)
        assert str(error.value) == f"Last 2 dimensions of the array must be square: {name} of f64[2,3]"
        assert isinstance(error.value, np.linalg.LinAlgError)


def test_operands_that_do_not_fit():
    with pytest.raises(MatrixError, match="as many equations as unknowns, got f64\\[3,3\\] and f64\\[2,1\\]"):
        solve.infer(Aval(F64, (3, 3)), Aval(F64, (2, 1)))
    with pytest.raises(DtypeError, match="operands of one dtype"):
        solve.infer(Aval(F64, (3, 3)), Aval(F32, (3, 1)))
    with pytest.raises(DtypeError, match="inv does not take i64"):
        inv.infer(Aval(DTYPES["i64"], (3, 3)))
    with pytest.raises(MatrixError, match="1-dimensional array given to svd"):
        svd.infer(Aval(F64, (3,)), full=True)


def test_a_real_matrix_without_a_real_root(run: Run):
    with pytest.raises(DomainError, match="no real square root"):
        value(run, sqrtm, -np.eye(2))
    np.testing.assert_allclose(value(run, sqrtm, -np.eye(2) + 0j), 1j * np.eye(2))
