"""Calls of numpy.linalg, by name: a function of arrays and the arrays to call it on.

Functions of Hermitian matrices are called on any: they read one triangle. Of complex vectors there is what does not
depend on their phases.
"""

import numpy as np

from tests.numpy.against_numpy import sample

la = np.linalg


def regular(shape, dtype="f64", seed=0):
    return (sample(shape, dtype, seed) + 2 * np.eye(shape[-2], shape[-1])).astype(sample((), dtype).dtype)


def hermitian(x):
    return (x + np.conj(np.swapaxes(x, -1, -2))) / 2


def rebuilt(w, v, h):
    """Return the function h of a Hermitian matrix, by its eigenvalues and eigenvectors."""
    return (v * h(w)[..., None, :]) @ np.conj(np.swapaxes(v, -1, -2))


def stretched(u, s, vh):
    return (u * np.exp(-s)[..., None, :]) @ vh


A = regular((3, 3))
B = regular((2, 3, 3), seed=1)
W = sample((3, 2), "f64", 2)
T = sample((2, 4, 3), "f64", 3)
V = sample(3, "f64", 4)
Z = regular((3, 3), "c128", 5)
Y = sample((3, 2), "c128", 6)
X6 = sample((6, 2, 3), "f64", 7) + 3 * np.eye(6).reshape(6, 2, 3)
ONE = regular((1, 1))
NONE = np.zeros((0, 0))

SYSTEMS = {
    "solve": (lambda a, w, v: (la.solve(a, w), la.solve(a, v)), A, W, V),
    "solve of stacks": (lambda b, w, v: (la.solve(b, w), la.solve(b, v), la.solve(b[:, None], b)), B, W, V),
    "solve of complex": (lambda z, y, v: (la.solve(z, y), la.solve(z, v)), Z, Y, V),
    "solve of size 1 and 0": (lambda a, n: (la.solve(a, a), la.solve(n, n)), ONE, NONE),
    "solve with an array": (lambda v: la.solve(A, v), V),
    "inv": (lambda a, b, z, n: (la.inv(a), la.inv(b), la.inv(z), la.inv(n)), A, B, Z, NONE),
    "tensorsolve": (
        lambda x, b: (la.tensorsolve(x, b), la.tensorsolve(x.transpose(1, 0, 2), b, (0,))),
        X6,
        sample(6, "f64", 8),
    ),
    "tensorinv": (lambda x: la.tensorinv(x, 1), X6),
    "lstsq": (lambda w, v: la.lstsq(w, v)[:2], W, V),
    "lstsq, all of it": (lambda w, a: la.lstsq(w, a), W, A),
    "lstsq of more unknowns": (lambda w, v: la.lstsq(w.T, v[:2], rcond=None), W, V),
    "pinv": (lambda w, t, z: (la.pinv(w), la.pinv(t), la.pinv(w.T), la.pinv(z)), W, T, Z),
    "pinv by options": (lambda w: (la.pinv(w, 1e-10), la.pinv(w, rtol=1e-10), la.pinv(w, rtol=None)), W),
    "pinv of a hermitian matrix": (lambda z: la.pinv(z, hermitian=True), Z),
    "det": (lambda a, b, z, o, n: (la.det(a), la.det(b), la.det(z), la.det(o), la.det(n)), A, B, Z, ONE, NONE),
    "det of a larger matrix": (la.det, regular((5, 5))),
    "det of singular matrices": (lambda a, b: (la.det(a), la.det(b)), W @ W.T, sample((4, 3), "f64", 9) @ T[0].T),
    "slogdet": (lambda a, b, z: (la.slogdet(a), la.slogdet(b).logabsdet, la.slogdet(z)), A, B, Z),
    "matrix_power": (lambda a, b: [la.matrix_power(x, n) for x in (a, b) for n in (-2, -1, 0, 1, 2, 3, 5)], A, B),
    "multi_dot": (lambda w, t: (la.multi_dot([w.T, w]), la.multi_dot([t[0], w, w.T, w])), W, T),
    "multi_dot of vectors": (
        lambda v, a: (la.multi_dot([v, a, v]), la.multi_dot([v, a, a]), la.multi_dot([a, v])),
        V,
        A,
    ),
}

FACTORIZATIONS = {
    "cholesky": (lambda a, b: (la.cholesky(a), la.cholesky(b, upper=True)), A, B),
    "cholesky of complex": (lambda z: (la.cholesky(z), la.cholesky(z, upper=True)), Z),
    "qr": (lambda a, w, t: (la.qr(a), la.qr(w), la.qr(t), la.qr(w.T), la.qr(w, "r")), A, W, T),
    "complete qr": (lambda a, w, t: (la.qr(a, "complete"), la.qr(w, "complete"), la.qr(t, mode="complete")), A, W, T),
    "qr of complex": (lambda z, y: (la.qr(z), la.qr(y, "complete")), Z, Y),
    "svd": (lambda a, w: (la.svd(a), la.svd(w), la.svd(w.T), la.svd(w, full_matrices=False)), A, W),
    "svd of stacks": (lambda t: la.svd(t, full_matrices=False), T),
    "svd of complex": (lambda z, y: (stretched(*la.svd(z)), stretched(*la.svd(y, False))), Z, Y),
    "singular values": (lambda a, t, z: (la.svdvals(t), la.svd(a, compute_uv=False), la.svdvals(z)), A, T, Z),
    "svd of a hermitian matrix": (
        lambda a: (
            la.svd(a - 2 * a[0, 0] * np.eye(3), hermitian=True),
            la.svd(a, True, False, True),
        ),
        A,
    ),
    "eigh": (lambda a, b: (la.eigh(a), la.eigh(b, "U"), la.eigh(a, UPLO="u")), A, B),
    "eigh of complex": (lambda z: (rebuilt(*la.eigh(z), np.exp), rebuilt(*la.eigh(z, "U"), np.exp)), Z),
    "eigvalsh": (lambda b, z: (la.eigvalsh(b), la.eigvalsh(z, "U")), B, Z),
    "eig": (lambda z: la.eig(z), Z),
    "eig of real matrices": (lambda a: la.eig(a * np.array([[1.0, -5, 2], [3, 1, 1], [2, -7, 1]])), A),
    "eigvals": (lambda z: la.eigvals(z), Z),
}

NORMS = {
    "norm by singular values": (lambda a: [la.norm(a, p) for p in (2, -2, "nuc")], A),
    "norm by singular values over axes": (
        lambda t: [la.norm(t, p, axis=(2, 0), keepdims=k) for p in (2, -2, "nuc") for k in (False, True)],
        T,
    ),
    "matrix_norm": (lambda t, z: (la.matrix_norm(t), la.matrix_norm(t, keepdims=True, ord=2), la.matrix_norm(z)), T, Z),
    "vector_norm": (
        lambda t: (la.vector_norm(t), la.vector_norm(t, axis=1, ord=3), la.vector_norm(t, axis=(0, 2), keepdims=True)),
        T,
    ),
    "cond": (lambda b, w: (la.cond(b), la.cond(b, -2), la.cond(w), la.cond(b, 1), la.cond(b, "fro")), B, W),
    "matrix_rank": (lambda b, v: (la.matrix_rank(b), la.matrix_rank(v), la.matrix_rank(b, rtol=0.5) * v[0]), B, V),
    "matrix_rank of a hermitian matrix": (lambda z: la.matrix_rank(z, hermitian=True), Z),
    "as numpy has them": (
        lambda t, v: (
            la.matmul(t, v),
            la.outer(v, v),
            la.cross(t, v),
            la.trace(t, offset=1),
            la.diagonal(t, offset=-1),
            la.matrix_transpose(t),
            la.tensordot(t, v, axes=1),
            la.vecdot(t, v),
            la.vecdot(t, t, axis=1),
        ),
        T,
        V,
    ),
}

LINALG = SYSTEMS | FACTORIZATIONS | NORMS
