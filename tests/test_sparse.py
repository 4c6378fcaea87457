"""Sparse Jacobians and Hessians: equal to the dense ones, with the patterns and the colours that are needed."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares, minimize
from scipy.sparse import csr_array, issparse

import fnad
from fnad.api.functions import sparse
from fnad.control.coloring import alone, column_colors, count_of, star_colors
from fnad.errors import (
    NonDifferentiableArgumentError,
    NonScalarOutputError,
    SparsityError,
    SparsityWarning,
    UnsupportedFunctionError,
)

X = np.linspace(0.3, 1.7, 24)
GRID = np.linspace(0.3, 1.7, 36).reshape(6, 6)
INDEX = np.array([3, 1, 1, 0, 23])
BAND = np.diag(np.arange(1.0, 25.0)) + np.diag(np.ones(23), 1)
MASK = X > 1.0


def burgers(u: Any) -> Any:
    middle = 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]) - u[1:-1] * (u[2:] - u[:-2])
    return np.concatenate([u[:1] - 1.0, middle, u[-1:]])


def bratu(u: Any) -> Any:
    inner = np.zeros((8, 8))
    inner[1:-1, 1:-1] = u
    c = inner[1:-1, 1:-1]
    return inner[2:, 1:-1] + inner[:-2, 1:-1] + inner[1:-1, 2:] + inner[1:-1, :-2] - 4 * c + np.exp(c)


def arrow_head(x: Any) -> Any:
    return np.concatenate([[np.sum(x**2)], x[1:] * x[0]])


def summed_at(x: Any) -> Any:
    out = np.zeros(5)
    np.add.at(out, [0, 1, 1, 4, 2], x[INDEX] ** 2)
    return out


def steps(x: Any) -> Any:
    def step(carry: Any, row: Any) -> tuple[Any, Any]:
        return carry * 0.9 + row**2, carry * row

    return fnad.scan(step, x[0], x)


def many_rows(x: Any) -> Any:
    table = np.concatenate([x] * 12)
    return fnad.map(lambda row: np.stack([row**2, np.sin(row) * x[0]]), table)


def long_scan(x: Any) -> Any:
    rows = np.concatenate([x] * 12)
    return fnad.scan(lambda c, row: (0.99 * c + row * x[:3], row * c[:2]), x[:3] * 2.0, rows)


def solved_by_steps(x: Any) -> Any:
    return fnad.root(lambda y: y**3 + y - x[:4] * 2.0, np.ones(4), tol=1e-14)


def ensemble(x: Any) -> Any:
    return fnad.fori_loop(0, 400, lambda i, y: y + 0.001 * np.sin(y) * x, x)


def until(x: Any) -> Any:
    return fnad.while_loop(lambda y: np.max(y) < 4.0, lambda y: y * 1.1 + x[::-1], x)


def branch(x: Any) -> Any:
    return fnad.cond(x[0] > 1.0, lambda x: x**2, lambda x: x[::-1] * x, x)


@fnad.custom_jvp
def straight_through(x: Any) -> Any:
    return np.round(x)


straight_through.defjvp(lambda primals, tangents: (np.round(primals[0]), tangents[0] * primals[0]))


@fnad.custom_vjp
def reversed_rule(x: Any) -> Any:
    return np.sin(x)


reversed_rule.defvjp(lambda x: (np.sin(x), x), lambda x, ct: (np.cos(x) * ct,))

JACOBIANS: dict[str, tuple[Callable[..., Any], Any, int]] = {
    "burgers": (burgers, X, 3),
    "bratu": (bratu, GRID, 5),
    "arrow_head": (arrow_head, X, 24),
    "row of sums": (lambda x: np.sum(x.reshape(6, 4) ** 2, axis=1), X, 1),
    "cumsum": (np.cumsum, X, 24),
    "elementwise": (np.exp, GRID, 1),
    "transposed": (lambda x: (x.T * 2.0)[::-1], GRID, 1),
    "gathered": (lambda x: x[INDEX] * x[INDEX[::-1]], X, 2),
    "scattered": (summed_at, X, 1),
    "known matrix": (lambda x: BAND @ x**2, X, 2),
    "known matrices": (lambda x: np.eye(6) @ x @ np.ones((6, 2)), GRID, 2),
    "mask": (lambda x: x * MASK + np.where(MASK, x[::-1], 0.0), X, 1),
    "selected": (lambda x: np.where(x > 1.0, x**2, x[::-1]), X, 2),
    "of integers": (lambda x: np.argsort(x) * 2 + np.floor(x), X, 1),
    "products": (lambda x: x @ x.T, GRID, 13),
    "solved": (lambda x: np.linalg.solve(np.eye(6) + 0.1 * x, np.ones(6)), GRID, 6),
    "scan": (steps, X, 24),
    "map": (many_rows, X, 2),
    "long scan": (long_scan, X, 24),
    "root": (solved_by_steps, X, 4),
    "fori_loop": (ensemble, X, 1),
    "while_loop": (until, X, 2),
    "cond": (branch, X, 2),
    "checkpoint": (fnad.checkpoint(burgers), X, 3),
    "custom_jvp": (straight_through, X, 1),
    "custom_vjp": (reversed_rule, X, 1),
    "vmap": (lambda x: fnad.vmap(lambda row: np.cumsum(row))(x.reshape(8, 3)), X, 3),
    "of a derivative": (lambda x: fnad.grad(lambda y: np.sum(y[1:] * y[:-1] ** 2))(x), X, 3),
}


@pytest.mark.filterwarnings("ignore::fnad.errors.SparsityWarning")
@pytest.mark.parametrize("name", JACOBIANS)
def test_a_sparse_jacobian_is_the_dense_one(name: str) -> None:
    f, x, colors = JACOBIANS[name]
    jacobian = fnad.sparse_jacobian(f)
    found = jacobian(x)
    dense = fnad.jacrev(f)(x)
    leaves = dense if isinstance(dense, tuple) else (dense,)
    expected = np.concatenate([leaf.reshape(-1, x.size) for leaf in leaves])
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-12, atol=1e-14)
    assert count_of(jacobian.sparsity(x).colors) == colors


HESSIANS: dict[str, tuple[Callable[..., Any], Any, int]] = {
    "rosenbrock": (lambda x: np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2), X, 3),
    "separable": (lambda x: np.sum(np.exp(x) * x), GRID, 1),
    "arrow_head": (lambda x: np.sum(x[1:] ** 2 * x[0]) + x[0] ** 4, X, 2),
    "arrow_head, the tip last": (lambda x: np.sum(x[:-1] ** 2 * x[-1]), X, 2),
    "grid": (lambda u: np.sum((u[1:] - u[:-1]) ** 4) + np.sum((u[:, 1:] - u[:, :-1]) ** 4), GRID, 5),
    "banded": (lambda x: np.sum(x[2:] * x[1:-1] * x[:-2]), X, 5),
    "blocks": (lambda x: np.sum(np.prod(x.reshape(8, 3), axis=1)), X, 3),
    "windows": (lambda x: np.sum(np.convolve(x, np.array([1.0, 0.5, 0.25]), "valid") ** 4), X, 5),
    "strides": (lambda x: np.sum(np.lib.stride_tricks.sliding_window_view(x, 2) ** 3), X, 1),
    "linear": (lambda x: np.sum(BAND @ x), X, 1),
    "a product": (lambda x: np.sum(x) ** 2, X, 24),
    "scan": (lambda x: np.sum(fnad.scan(lambda c, r: (c, r**3 * x[1]), 0.0, x)[1]), X, 2),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fnad.errors.SparsityWarning")
@pytest.mark.parametrize("name", HESSIANS)
def test_a_sparse_hessian_is_the_dense_one(name: str) -> None:
    f, x, colors = HESSIANS[name]
    hessian = fnad.sparse_hessian(f)
    found = hessian(x)
    np.testing.assert_allclose(found.toarray(), fnad.hessian(f)(x).reshape(x.size, x.size), rtol=1e-11, atol=1e-13)
    assert count_of(hessian.sparsity(x).colors) == colors


# ---- arguments and results -------------------------------------------------------------------------------------------


def test_leaves_follow_one_another() -> None:
    def f(tree: Any, scale: Any, n: int) -> Any:
        return {"a": tree["w"] * scale, "b": (tree["b"] ** n)[None], "n": np.arange(2)}

    tree = {"w": np.array([1.0, 2.0]), "b": np.float64(3.0)}
    found = fnad.sparse_jacobian(f, argnums=(0, 1))(tree, np.array([5.0, 7.0]), 2)
    # columns: w[0], w[1], b, scale[0], scale[1]; rows: a[0], a[1], b, n[0], n[1]
    expected = np.zeros((5, 5))
    expected[0, [0, 3]], expected[1, [1, 4]], expected[2, 2] = [5.0, 1.0], [7.0, 2.0], 6.0
    np.testing.assert_array_equal(found.toarray(), expected)


def test_the_result_is_a_csr_array_with_sorted_columns() -> None:
    found = fnad.sparse_jacobian(burgers)(X.astype(np.float32))
    assert isinstance(found, csr_array)
    assert issparse(found)
    assert found.dtype == np.float32
    assert found.has_canonical_format
    found.data[:] = 0.0
    found.eliminate_zeros()  # in place: the next one is whole nevertheless
    assert fnad.sparse_jacobian(burgers)(X.astype(np.float32)).nnz == 68


def test_what_is_beside_the_output() -> None:
    found, beside = fnad.sparse_jacobian(lambda x: (x**2, {"sum": np.sum(x), "name": "f"}), has_aux=True)(X)
    np.testing.assert_array_equal(found.diagonal(), 2 * X)
    assert beside["name"] == "f"
    assert beside["sum"] == pytest.approx(X.sum())
    found, beside = fnad.sparse_hessian(lambda x: (np.sum(x**2), x[0]), has_aux=True)(X)
    assert found.nnz == 24
    assert beside == X[0]


@pytest.mark.parametrize("shape", [(0,), (3, 0)])
def test_nothing_to_differentiate(shape: tuple[int, ...]) -> None:
    found = fnad.sparse_jacobian(lambda x: x * 2.0)(np.zeros(shape))
    assert found.shape == (0, 0)
    assert found.nnz == 0


def test_sparse_jacobian_of_a_scalar_is_one_by_one() -> None:
    assert fnad.sparse_jacobian(np.sin)(0.5).toarray() == [[np.cos(0.5)]]


def test_the_pattern_belongs_to_what_was_read_from_outside() -> None:
    index, scale = np.array([0, 1, 2]), np.array([1.0, 0.0, 2.0])
    jacobian = fnad.sparse_jacobian(lambda x: x[index] * scale)
    assert jacobian(X).nnz == 2
    index[:], scale[1] = [5, 5, 6], 3.0
    expected = np.zeros((3, 24))
    expected[[0, 1, 2], [5, 5, 6]] = [1.0, 3.0, 2.0]
    np.testing.assert_array_equal(jacobian(X).toarray(), expected)
    index[:], scale[1] = [0, 1, 2], 0.0
    assert jacobian(X).nnz == 2


def test_the_pattern_belongs_to_the_path() -> None:
    jacobian = fnad.sparse_jacobian(lambda x: x**2 if x[0] > 0 else x[::-1] * x)
    assert jacobian(X).nnz == 24
    assert jacobian(-X).nnz == 48
    np.testing.assert_array_equal(jacobian(X).diagonal(), 2 * X)


def test_a_pattern_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[None] = []
    found = sparse.program_patterns
    monkeypatch.setattr(sparse, "program_patterns", lambda *args: calls.append(None) or found(*args))
    jacobian = fnad.sparse_jacobian(lambda x: x[1:] * x[:-1] + 0.125)
    for k in range(3):
        jacobian(X + k)
        jacobian.sparsity(X)
    assert len(calls) == 1


def test_explain_shows_the_pattern() -> None:
    def f(x: Any) -> Any:
        return x[1:] * x[:-1] - 0.375

    assert fnad.explain(f, X).sparsity == ()
    fnad.sparse_jacobian(f)(X)
    (line,) = fnad.explain(f, X).sparsity
    assert line == "sparse_jacobian: 23 x 24, 46 nonzeros (8.33 %), 2 colours of columns"
    assert line in str(fnad.explain(f, X))


def test_colours_are_drawn() -> None:
    calls: dict[str, Any] = {}

    class Axes:
        def scatter(self, *args: Any, **kwargs: Any) -> None:
            calls["scatter"] = args, kwargs

        def set(self, **kwargs: Any) -> None:
            calls.update(kwargs)

    sparsity = fnad.sparse_jacobian(burgers).sparsity(X)
    sparsity.plot(Axes())
    assert calls["title"] == str(sparsity) == "24 x 24, 68 nonzeros (11.8 %), 3 colours of columns"
    (columns, rows), kwargs = calls["scatter"]
    assert {(r, c) for r, c in zip(rows, columns, strict=True)} == set(zip(*sparsity.pattern.nonzero(), strict=True))
    np.testing.assert_array_equal(kwargs["c"], sparsity.colors[columns])


# ---- what SciPy does with them ---------------------------------------------------------------------------------------


def test_scipy_takes_them_as_they_are() -> None:
    solved = least_squares(burgers, X, jac=fnad.sparse_jacobian(burgers), tr_solver="lsmr", method="trf")
    np.testing.assert_allclose(burgers(solved.x), 0.0, atol=1e-6)

    calls: list[Any] = []

    def heat(_: float, u: Any) -> Any:
        calls.append(u)
        return np.concatenate([-u[:1], u[2:] - 2 * u[1:-1] + u[:-2], -u[-1:]])

    of_u = fnad.sparse_jacobian(heat, argnums=1)
    with_jacobian = solve_ivp(heat, (0.0, 1.0), X, method="Radau", jac=of_u)
    needed = len(calls)
    without = solve_ivp(heat, (0.0, 1.0), X, method="Radau")
    np.testing.assert_allclose(with_jacobian.y[:, -1], without.y[:, -1], rtol=1e-3)
    assert needed < len(calls) - needed

    start, f = np.full(10, 1.3), HESSIANS["rosenbrock"][0]
    found = minimize(f, start, method="trust-constr", jac=fnad.grad(f), hess=fnad.sparse_hessian(f))
    np.testing.assert_allclose(found.x, 1.0, atol=1e-4)


# ---- what is refused -------------------------------------------------------------------------------------------------


def test_what_is_not_sparse_is_refused_or_warned_of() -> None:
    with pytest.warns(SparsityWarning, match=r"jacobian is no sparse matrix: 24 x 24, 576 nonzeros \(100 %\)"):
        fnad.sparse_jacobian(np.cumsum)(X)
    with pytest.raises(SparsityError, match="has 10000000000 nonzeros here") as error:
        fnad.sparse_jacobian(lambda x: x - np.mean(x))(np.ones(10**5))
    assert "test_sparse.py" in str(error.value)
    assert "fnad.jvp" in str(error.value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fnad.sparse_jacobian(np.cumsum)(X[:5])  # too small to speak of


@pytest.mark.parametrize("transform", [fnad.sparse_jacobian, fnad.sparse_hessian])
def test_arguments_that_have_no_sparse_derivative(transform: Any) -> None:
    f = transform(lambda x: np.sum(np.abs(x) ** 2))
    with pytest.raises(NonDifferentiableArgumentError, match="in complex numbers"):
        f(X + 1j)
    with pytest.raises(NonDifferentiableArgumentError):
        f(np.arange(3))
    with pytest.raises(UnsupportedFunctionError, match=r"use fnad\.(jacobian|hessian) there"):
        fnad.jit(lambda x: f(x))(X)


def test_the_hessian_of_several_elements_is_refused() -> None:
    with pytest.raises(NonScalarOutputError):
        fnad.sparse_hessian(np.sin)(X)


# ---- colourings ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_colours_tell_nonzeros_apart(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, density = int(rng.integers(1, 40)), rng.uniform(0, 0.5)
    pattern = csr_array(rng.random((int(rng.integers(1, 40)), n)) < density)
    assert alone(pattern, column_colors(pattern, (n,))).all()
    half = rng.random((n, n)) < density / 2
    symmetric = csr_array(half | half.T | np.eye(n, dtype=bool))
    stars = alone(symmetric, star_colors(symmetric))
    is_alone = csr_array((stars, symmetric.indices, symmetric.indptr), shape=(n, n)).toarray()
    assert (is_alone | is_alone.T)[symmetric.toarray()].all()


def test_long_rows_get_a_colour_of_their_own() -> None:
    n = 2000
    dense = np.eye(n, dtype=bool)
    dense[0, :] = dense[:, 0] = True
    assert count_of(star_colors(csr_array(dense))) == 2


def test_complex_results_of_real_arguments() -> None:
    x = np.array([0.3, 0.7])
    found = fnad.sparse_jacobian(lambda x: np.exp(1j * x[:1]) * x[1:])(x).toarray()
    np.testing.assert_allclose(found, [[1j * np.exp(0.3j) * 0.7, np.exp(0.3j)]], rtol=1e-14)
