"""Calls of fnad.scipy.linalg and fnad.scipy.signal, by name: a function of arrays and the arrays to call it on."""

import numpy as np

from fnad.scipy import linalg as la
from fnad.scipy import signal
from tests.numpy.against_numpy import sample
from tests.numpy.linalg_calls import regular

A = regular((3, 3))
B = regular((2, 3, 3), seed=1)
W = sample((3, 2), "f64", 2)
V = sample(3, "f64", 3)
Z = regular((3, 3), "c128", 4)
Y = sample((3, 2), "c128", 5)
BAND = sample((4, 5), "f64", 6) + np.array([[0], [3], [0], [0]])
R = sample(5, "f64", 7)
C = sample((4, 5), "f64", 8)
K = sample((2, 3), "f64", 9)

LARGE = np.array([9.0, 0.0, 0.0])

STRUCTURES = ("gen", "sym", "her", "upper triangular", "lower triangular", "diagonal")

SCIPY_LINALG = {
    "scipy solve": (lambda a, w, v: (la.solve(a, w), la.solve(a, v), la.solve(a, w, transposed=True)), A, W, V),
    "scipy solve by structure": (
        lambda a, w: [la.solve(a, w, low, assume_a=s) for s in STRUCTURES for low in (False, True)],
        A,
        W,
    ),
    "scipy solve of a positive matrix": (
        lambda a, v: (la.solve(a, v, assume_a="pos"), la.solve(a, v, True, assume_a="pos")),
        A,
        V,
    ),
    "scipy solve of complex": (
        lambda z, y: ([la.solve(z, y, low, assume_a=s) for s in ("gen", "sym", "her", "pos") for low in (False, True)]),
        Z,
        Y,
    ),
    "solve_triangular": (
        lambda a, w, v: [
            *[la.solve_triangular(a, w, trans, low) for trans in (0, 1, "N", "T", "C") for low in (False, True)],
            la.solve_triangular(a, v, unit_diagonal=True),
        ],
        A,
        W,
        V,
    ),
    "solve_triangular of complex": (
        lambda z, y: [la.solve_triangular(z, y, trans, lower=True) for trans in (0, 1, 2)],
        Z,
        Y,
    ),
    "solve_banded": (lambda b, r: (la.solve_banded((2, 1), b, r), la.solve_banded((2, 1), b, r[:, None])), BAND, R),
    "solve_sylvester": (lambda a, b, y: la.solve_sylvester(a, b[0, :2, :2], y), A, B, W),
    "solve_continuous_lyapunov": (
        lambda a, z: (la.solve_continuous_lyapunov(a, a), la.solve_continuous_lyapunov(z, z)),
        A,
        Z,
    ),
    "solve_discrete_lyapunov": (
        lambda a, z: [la.solve_discrete_lyapunov(x / 9, x) for x in (a, z)],
        A,
        Z,
    ),
    "riccati": (
        lambda a, b, w: (
            la.solve_continuous_are(a - 4 * np.eye(3), w, b @ b.T, np.eye(2)),
            la.solve_discrete_are(a / 9, w, b @ b.T, np.eye(2)),
        ),
        A,
        B[0],
        W,
    ),
    "scipy lstsq": (
        lambda w, v, a: (la.lstsq(w, v)[0], la.lstsq(w, v)[1][()], la.lstsq(w, a), la.lstsq(w.T, v[:2], 1e-9)),
        W,
        V,
        A,
    ),
    "scipy cholesky": (lambda a, z: (la.cholesky(a), la.cholesky(z, lower=True)), A, Z),
    "cho_solve": (
        lambda a, w, v: [la.cho_solve(la.cho_factor(a, low), b) for low in (False, True) for b in (w, v)],
        A,
        W,
        V,
    ),
    "cho_factor": (lambda a, z: [la.cho_factor(x, low)[0] for x in (a, z) for low in (False, True)], A, Z),
    "lu": (
        lambda a, w: (la.lu(a), la.lu(w), la.lu(w.T), la.lu(a, permute_l=True), la.lu(a, p_indices=True)),
        A - A[0, 0] * np.eye(3),
        W,
    ),
    "lu of complex": (lambda z: la.lu(z), Z),
    "lu_factor": (lambda a: la.lu_factor(a), A[::-1]),
    "lu_solve": (
        lambda a, w, v: [la.lu_solve(la.lu_factor(a), b, trans) for trans in (0, 1, 2) for b in (w, v)],
        A[::-1].copy(),
        W,
        V,
    ),
    "scipy qr": (lambda a, w: (la.qr(a), la.qr(w), la.qr(w, mode="economic"), la.qr(w, mode="r")), A, W),
    "scipy svd": (lambda a, w: (la.svd(a), la.svd(w, full_matrices=False), la.svdvals(w)), A, W),
    "scipy eigvals": (lambda z: la.eigvals(z), Z),
    "scipy values": (
        lambda a, w: (la.inv(a), la.det(a), la.pinv(w), la.eigvalsh(a), la.eigvalsh(a, lower=False), la.norm(a, 2)),
        A,
        W,
    ),
    "expm": (lambda a, b, z: (la.expm(a), la.expm(b), la.expm(z)), A, B, Z),
    # Its block has a size of at most 2: of sizes near 4, SciPy's expm is within 4e-13 of the truth.
    "expm_frechet": (lambda a, e: la.expm_frechet(a, e, compute_expm=False), A / 4, B[0]),
    "logm": (lambda a, z: (la.logm(a), la.logm(z)), A, Z),
    "signm": (lambda a, z: (la.signm(a), la.signm(z), la.signm(np.diag([1.0, -2.0, 3.0]) @ a)), A, Z),
    "sqrtm": (lambda a, z: (la.sqrtm(a), la.sqrtm(z)), A, Z),
    "block_diag": (lambda a, w, v: (la.block_diag(a, w, v), la.block_diag(v), la.block_diag(2.0, v[0])), A, W, V),
    "toeplitz": (
        lambda v, r: (la.toeplitz(v), la.toeplitz(v, r), la.circulant(r), la.hankel(v), la.hankel(v, r)),
        V,
        R,
    ),
    "toeplitz of complex": (lambda z: la.toeplitz(z[0]), Z),
    "scipy eigh": (
        lambda a, b: (
            la.eigh(a + a.T)[0],
            np.abs(la.eigh(a @ a.T, lower=False)[1]),
            la.eigh(a + a.T, b @ b.T, eigvals_only=True),
            la.eigvalsh(a + a.T, b @ b.T, subset_by_index=(1, 2)),
        ),
        A,
        B[0],
    ),
    "scipy eig": (lambda a: (la.eig(a)[0] ** 3).sum(), A),
    "tridiagonal": (
        lambda v, r: (
            la.eigh_tridiagonal(v, r[:2])[0],
            np.abs(la.eigh_tridiagonal(v, r[:2])[1]),
            la.eigvalsh_tridiagonal(v, r[:2]),
        ),
        V,
        R,
    ),
    "pinvh": (lambda a: la.pinvh(a @ a.T), A),
    "matrix functions": (
        lambda a: [f(a / 5) for f in (la.coshm, la.sinhm, la.tanhm, la.cosm, la.sinm, la.tanm)],
        A,
    ),
    "toeplitz systems": (
        lambda v, w, r: (
            la.solve_toeplitz(v + LARGE, w),
            la.solve_toeplitz((v + LARGE, r[:3] + LARGE), w),
            la.matmul_toeplitz((v, r[:3]), w),
            la.solve_circulant(v + LARGE, w[:, 0]),
        ),
        V,
        W,
        R,
    ),
    "solveh_banded": (
        lambda v, w: (
            la.solveh_banded(np.stack([v, v + 9]), w),
            la.solveh_banded(np.stack([v + 9, v]), w, lower=True),
        ),
        V,
        W,
    ),
    "structures": (
        lambda a, w, v: (la.khatri_rao(a, w.T @ a), la.fiedler(v), la.convolution_matrix(v, 4)),
        A,
        W,
        V,
    ),
}

SIGNAL = {
    "scipy convolve": (
        lambda c, k, v, r: [
            signal.convolve(x, y, mode)
            for mode in ("full", "same", "valid")
            for x, y in ((c, k), (k, c), (v, r), (r, v))
            if mode != "same" or x.size > y.size
        ],
        C,
        K,
        V,
        R,
    ),
    "scipy convolve by transforms": (
        lambda c, k: [signal.convolve(c, k, mode, "fft") for mode in ("full", "same", "valid")],
        C,
        K,
    ),
    "convolve2d": (
        lambda c, k, z: [
            *[signal.convolve2d(x, k, mode, "wrap") for mode in ("full", "same", "valid") for x in (c, z)],
            signal.convolve2d(c, k, "same"),
            signal.convolve2d(c, k, "same", "symm"),
            signal.convolve2d(c, k[:1], "full", fillvalue=2.0),
            signal.convolve2d(k, c, "valid"),
        ],
        C,
        K,
        Z,
    ),
    "fftconvolve": (
        lambda c, k, z: [
            *[
                signal.fftconvolve(x, y, mode)
                for mode in ("full", "same", "valid")
                for x, y in ((c, k), (z, k), (k, c))
            ],
            signal.fftconvolve(c, k[:1], axes=1),
            signal.fftconvolve(c, c, "same", axes=0),
            signal.oaconvolve(c, k[:1], axes=1),
        ],
        C,
        K,
        Z,
    ),
    "scipy correlate": (
        lambda c, k, z: (signal.correlate(c, k), signal.correlate(z, z, "same"), signal.correlate(c, k, "valid")),
        C,
        K,
        Z,
    ),
}
