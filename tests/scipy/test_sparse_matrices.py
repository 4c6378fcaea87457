"""scipy.sparse with traced elements: values as SciPy's, derivatives as the complex step through SciPy."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import linalg as sl

import fnad
from fnad.errors import FnadError
from tests.together import together

ROWS, COLUMNS = np.array([0, 1, 2, 3, 0, 2, 3, 0]), np.array([0, 1, 2, 3, 1, 0, 1, 0])
ELEMENTS = np.array([4.0, 3.0, 5.0, 6.0, 1.0, -1.0, 0.5, 0.25])  # two of them at one place
X, B = np.array([1.0, -2.0, 0.5, 3.0]), np.array([2.0, 1.0, -1.0, 0.5])
PLAIN = sp.csc_matrix(np.diag([2.0, 3.0, 4.0, 5.0]) + np.eye(4, k=2))
INDICES, INDPTR = np.array([0, 1, 1, 2, 0, 3, 1, 2]), np.array([0, 2, 3, 5, 8])


def csr(d: Any) -> Any:
    return sp.csr_matrix((d, (ROWS, COLUMNS)), shape=(4, 4))


def csc(d: Any) -> Any:
    return sp.csc_array((d, (ROWS, COLUMNS)), shape=(4, 4))


def implicit_step(d: Any) -> Any:
    """A step of a heat equation in time with traced conductivities."""
    n = len(d) - 1
    left, right = d[:-1], d[1:]
    laplace = sp.diags([left[1:], -left - right, right[:-1]], [-1, 0, 1]).tocsc()
    return sl.splu((sp.identity(n, format="csc") - 0.1 * laplace).tocsc()).solve(np.arange(1.0, n + 1))


CALLS: dict[str, Callable[[Any], Any]] = {
    "csr": lambda d: csr(d) @ X,
    "csc": lambda d: csc(d) @ X,
    "coo": lambda d: sp.coo_matrix((d, (ROWS, COLUMNS)), shape=(4, 4)) @ X,
    "no shape": lambda d: sp.coo_array((d, (ROWS, COLUMNS))) @ X,
    "indptr": lambda d: sp.csr_array((d, INDICES, INDPTR), shape=(4, 4)) @ X + sp.csc_matrix((d, INDICES, INDPTR)) @ X,
    "a dense array": lambda d: sp.csr_matrix(np.reshape(d, (2, 4))) @ X,
    "a dtype": lambda d: sp.csr_array((d, (ROWS, COLUMNS)), dtype=d.dtype) @ X,
    "a list": lambda d: sp.csr_array(([d[0], d[1]], ([0, 1], [1, 0])), shape=(4, 4)) @ X,
    "conversions": lambda d: csr(d).tocoo().tocsc().asformat("csr") @ X,
    "of a matrix": lambda d: sp.csc_matrix(csr(d)) @ X,
    "a matrix": lambda d: csr(d) @ np.reshape(np.arange(8.0), (4, 2)),
    "from the right": lambda d: X @ csc(d),
    "a row": lambda d: X * csr(d),
    "dot": lambda d: csr(d).dot(X),
    "transposed": lambda d: csr(d).T @ X + csc(d).transpose() @ B,
    "toarray": lambda d: csc(d).toarray(),
    "diagonal": lambda d: (csr(d).diagonal() * X, csc(d).diagonal(1), csc(d).diagonal(-2)),
    "sum": lambda d: csr(d).sum() + csc(d).sum(axis=0) + csc(d).sum(axis=1),
    "scaled": lambda d: (d[0] * csr(d) * d[1] / d[2]) @ X,
    "scaled constant": lambda d: (d[0] * PLAIN) @ X + (PLAIN * d[1]) @ X + (PLAIN / d[2]) @ X,
    "negative": lambda d: (-csr(d)) @ X,
    "sums": lambda d: (csr(d) + PLAIN) @ X + (PLAIN + csr(d)) @ B + (csr(d) + csc(2 * d)) @ X,
    "differences": lambda d: (csr(d) - PLAIN) @ X + (PLAIN - csr(d)) @ B,
    "sums with dense": lambda d: csc(d) + np.ones((4, 4)),
    "products": lambda d: (csr(d) @ PLAIN @ csc(d)) @ X + (PLAIN @ csr(d)) @ B,
    "elementwise": lambda d: csr(d).multiply(PLAIN) @ X + csr(d).multiply(csc(d)) @ B + (csc(d) * X).sum(axis=1),
    "powers": lambda d: csr(d).power(2) @ X + (csr(d) ** 2) @ X,
    "elements": lambda d: (csr(d)[0, 1], csr(d)[1:, :2] @ X[:2], csr(d)[[0, 2]] @ X, csr(d)[1, 0] + d[0]),
    "data": lambda d: (csr(d).data, csc(d).data, csc(d).tocsr().data),
    "copy": lambda d: csr(d).copy() @ X,
    "kron": lambda d: sp.kron(sp.identity(2), csr(d)) @ np.arange(8.0),
    "stacks": lambda d: sp.vstack([csr(d), PLAIN]) @ X,
    "blocks": lambda d: sp.bmat([[csr(d), PLAIN], [None, d[0] * PLAIN]], format="csr") @ np.arange(8.0),
    "block_array": lambda d: sp.block_array([[csc(d), None], [csc(d).T, csc(2 * d)]]) @ np.arange(8.0),
    "hstack": lambda d: sp.hstack([csr(d), PLAIN]) @ np.arange(8.0),
    "block_diag": lambda d: sp.block_diag([csr(d), PLAIN]) @ np.arange(8.0),
    "diags": lambda d: sp.diags([d[:4], d[4:7]], [0, 1]) @ X + sp.diags_array(d[:4]).tocsr() @ X,
    "diags of one element": lambda d: sp.diags([d[:1], 1.0], [0, -1], shape=(4, 4)).tocsc() @ X,
    "diags that are too long": lambda d: sp.diags_array([d[:4], d[4:7]], offsets=[0, -2], shape=(3, 4)) @ X,
    "dia": lambda d: sp.dia_array((np.reshape(d, (2, 4)), [0, -1]), shape=(4, 4)) @ X,
    "dia of arrays": lambda d: sp.dia_array(np.reshape(d, (2, 4))) @ X + (sp.dia_matrix(csr(d)) @ X)[:2],
    "spdiags": lambda d: sp.spdiags(np.reshape(d, (2, 4)), [0, -1], 4, 4).tocsr() @ X,
    "spsolve": lambda d: sl.spsolve(csc(d), B),
    "spsolve of traced sides": lambda d: sl.spsolve(csc(d), np.sin(d[:4])),
    "splu": lambda d: sl.splu(csc(d)).solve(B) + sl.splu(csc(d)).solve(B, "T"),
    "splu of a constant": lambda d: sl.splu(PLAIN.astype(d.dtype)).solve(d[:4]),
    "factorized": lambda d: sl.factorized(csc(d))(B * d[0]),
    "cg": lambda d: sl.cg(csr(d) @ csr(d).T, B, rtol=1e-13)[0],
    "a step in time": implicit_step,
}


def vector(result: Any) -> Any:
    parts = result if isinstance(result, tuple) else (result,)
    return np.concatenate([np.ravel(part) for part in parts])


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
def test_values_and_derivatives(name: str) -> None:
    f = CALLS[name]
    expected, v = vector(f(ELEMENTS)), np.sin(np.arange(8.0))
    ct = np.cos(np.arange(len(expected)))
    truth = vector(f(ELEMENTS + 1e-30j * v)).imag / 1e-30 if name != "cg" else None
    for run in (lambda f: f, fnad.jit):
        value, tangent = run(lambda d: fnad.jvp(lambda d: vector(f(d)), (d,), (v,)))(ELEMENTS)
        assert_allclose(value, expected, rtol=1e-10, atol=1e-12)
        if truth is not None:
            assert_allclose(tangent, truth, rtol=1e-10, atol=1e-12)
        gradient = run(fnad.grad(lambda d: ct @ vector(f(d))))(ELEMENTS)
        assert_allclose(gradient @ v, ct @ tangent, rtol=1e-9, atol=1e-11)


def test_what_is_not_computed_is_refused_at_the_line() -> None:
    i = np.array([0, 1])
    refused = {
        "formats": lambda d: csr(d).tolil(),
        "other formats": lambda d: sp.bsr_array(d.reshape(2, 4)),
        "keys": lambda d: sp.dok_array(d.reshape(2, 4)),
        "lists": lambda d: sp.lil_array(d.reshape(2, 4)),
        "diagonals without a shape": lambda d: sp.dia_array((d.reshape(2, 4), [0, 1])),
        "places": lambda d: sp.csr_array((d[:2], (np.argsort(d[:2]), i)), shape=(4, 4)) @ X,
        "a np.matrix": lambda d: csr(d).todense(),
        "shapes": lambda d: csr(d) @ X[:3],
        "blocks": lambda d: sp.bmat([[csr(d), PLAIN[:2]]]) @ X,
        "places outside": lambda d: sp.csr_array((d[:2], (i, i + 3)), shape=(4, 4)) @ X,
        "factors": lambda d: sl.splu(csc(d)).L,
        "numbers": lambda d: (csr(d) + d[0]) @ X,
        "the number of elements": lambda d: sp.csr_array(d.reshape(2, 4)).nnz * d,
        "its other names": lambda d: sp.coo_array(d.reshape(2, 4)).size * d,
        "that of rows": lambda d: (sp.csr_array(d.reshape(2, 4)) - PLAIN[:2]).getnnz(axis=1) * d[:2],
        "that of columns": lambda d: sp.csc_array(d.reshape(2, 4))._getnnz(axis=0) * d[:4],
        "the elements of an array": lambda d: abs(sp.csr_array(d.reshape(2, 4))).T.data,
        "their places": lambda d: sp.csc_array(d.reshape(2, 4)).multiply(PLAIN[:2]).indices * d[0],
    }
    with together() as check:
        for name, f in refused.items():
            with check(name), pytest.raises(FnadError, match=r"test_sparse_matrices\.py"):
                fnad.vmap(lambda d, f=f: np.sum(vector(f(d))))(ELEMENTS[None])


def test_plain_matrices_are_scipys_in_a_trace() -> None:
    def f(x: Any) -> Any:
        a = sp.csr_matrix((ELEMENTS, (ROWS, COLUMNS)), shape=(4, 4))
        assert type(a) is sp.csr_matrix
        assert type((a + PLAIN) @ a) is sp.csr_matrix
        assert type(a.multiply(2.0)) is sp.csr_matrix
        for kind in (sp.dok_matrix, sp.lil_matrix, sp.dia_array, sp.bsr_array):
            assert type(kind(a.toarray())) is kind
        return (a @ x).sum() * sl.spsolve(a.tocsc(), B)[0]

    with warnings.catch_warnings(action="error"):
        assert_allclose(fnad.grad(f)(X), csr(ELEMENTS).T @ np.ones(4) * sl.spsolve(csc(ELEMENTS), B)[0])
    assert sp.csr_matrix((ELEMENTS, (ROWS, COLUMNS))).__class__ is sp.csr_matrix
    assert_array_equal(csr(ELEMENTS).toarray(), csc(ELEMENTS).toarray())


def test_a_sparse_array_of_one_dimension_is_refused_and_a_matrix_of_it_is_a_row() -> None:
    for kind in (sp.coo_array, sp.csr_array, sp.dok_array):
        with pytest.raises(FnadError, match=r"a sparse array of 1 dimension\(s\) has no rule"):
            fnad.jit(lambda x, kind=kind: kind(x).toarray())(X[:4])
    assert_array_equal(fnad.jit(lambda x: sp.csr_matrix(x).toarray())(X[:4]), [X[:4]])


def test_what_is_stored_at_known_places_is_read() -> None:
    indices = np.array([0, 1, 1, 0, 2, 1, 2, 3])
    a = sp.csr_matrix((ELEMENTS, indices, INDPTR), shape=(4, 4))

    @fnad.jit
    def read(d: Any) -> Any:
        known = sp.csr_matrix((d, indices, INDPTR), shape=(4, 4))
        return known.data, known.indices, known.indptr, known.nnz, known.getnnz(axis=0), known.tocoo().row

    for found, expected in zip(
        read(ELEMENTS), (a.data, a.indices, a.indptr, a.nnz, a.getnnz(axis=0), a.tocoo().row), strict=True
    ):
        assert_array_equal(found, expected)
