"""Calls of NumPy's numerical methods, by name: a function of arrays and the arrays to call it on."""

import numpy as np

from fnad.numpy.products import WITHOUT_PLANES
from tests.numpy.against_numpy import sample

X = sample((2, 3), "f64")
V = sample(3, "f64", 1)
P = sample(4, "f64", 2)
C = sample((2, 3, 4), "f64", 3)
Q = sample((4, 4), "f64", 4)
Z = sample((2, 3), "c128", 5)
ZV = sample(3, "c128", 6)
I = sample((2, 3), "i32", 6)  # noqa: E741
IV = np.array([3, 1, 2])
IC = np.array([1, 2, 3, 1])
F = sample(5, "f32", 7)
S = np.float64(2.5)
GRID = np.array([0.0, 0.5, 1.5, 2.0])
AT = np.array([[-0.3, 0.2, 0.7], [1.9, 3.0, 1.4]])
windows = np.lib.stride_tricks.sliding_window_view

POLYNOMIALS = {
    "polyval": (lambda p, x: (np.polyval(p, x), np.polyval(p, 2.0), np.polyval([1, 2], x)), P, X),
    "polyval of dtypes": (lambda i, f: (np.polyval(i, f), np.polyval(f, i), np.polyval(i, 2)), IV, F),
    "polyval of a poly1d": (lambda x: (np.polyval(np.poly1d([1.0, 2.0]), x), np.poly1d([1.0, 2.0])(x)), X),
    "polyder": (lambda p: (np.polyder(p), np.polyder(p, 2), np.polyder(p, 0), np.polyder(p, 5)), P),
    "polyint": (lambda p, s: (np.polyint(p), np.polyint(p, 2), np.polyint(p, 2, [s, 1]), np.polyint(p, k=s)), P, S),
    "polynomials of integers": (lambda i: (np.polyder(i), np.polyint(i), np.polyadd(i, 1), np.polymul(i, i)), IV),
    "polyadd, polysub": (lambda p, v: (np.polyadd(p, v), np.polysub(v, p), np.polyadd(p, p), np.polysub(1, v)), P, V),
    "polymul": (lambda p, v: (np.polymul(p, v), np.polymul(v, [0, 0, 1.0, 2]), np.polymul(2.0, p)), P, V),
    "polydiv": (lambda p, v: (np.polydiv(p, v), np.polydiv(v, p), np.polydiv(p, p[:1])), P, V),
    "poly": (lambda p: (np.poly(p), np.poly(p[:1])), P),
    "poly of integers": (np.poly, IV),
    "vander": (lambda p: (np.vander(p), np.vander(p, 2), np.vander(p, 6, increasing=True), np.vander(p, 1)), P),
    "polyfit": (lambda x, y: (np.polyfit(x, y, 1), np.polyfit(x, y, 2), np.polyfit(x, y, 3)), P, P[::-1] ** 2),
    "polyfit with weights": (lambda x, y, w: np.polyfit(x, y, 1, w=w), P, P[::-1] ** 2, GRID + 1),
    "polyfit of columns": (lambda x, q: np.polyfit(x, q, 2), P, Q),
    "polyfit with covariances": (
        lambda x, q: (
            np.polyfit(x, q[0], 1, cov=True),
            np.polyfit(x, q, 1, cov=True),
            np.polyfit(x, q, 2, cov="unscaled"),
        ),
        P,
        Q,
    ),
    "polyfit, all of it": (lambda x, q: np.polyfit(x, q, 1, full=True)[:2], P, Q),
    "roots": (lambda p: np.sort(np.roots(p) + 0j), np.array([1.0, -0.5, 2.0, 0.7])),
    "vander of dtypes": (lambda i, f: (np.vander(i), np.vander(f, 3)), IV, F),
}

INTERPOLATION = {
    "interp": (lambda x, f: (np.interp(x, GRID, f), np.interp(x, GRID, f, left=9.0, right=-9.0)), AT, P),
    "interp of traced points": (lambda x, xp, f: np.interp(x, xp, f), AT, GRID, P),
    "interp of a number": (lambda s, f: (np.interp(s, GRID, f), np.interp(0.7, GRID, f)), S, P),
    "interp of one point": (lambda s, f: (np.interp(s, [1.0], f[:1]), np.interp([0.0, 1.0], [1.0], f[:1])), S, P),
    "interp with a period": (lambda x, f: np.interp(x, GRID, f, period=2.2), AT, P),
    "interp of complex values": (lambda x, z: np.interp(x, GRID[:3], z, left=1j), AT, ZV),
    "interp with traced ends": (lambda x, s: np.interp(x, GRID, GRID**2, left=s, right=2 * s), AT, S),
}

DIFFERENCES = {
    "gradient": (lambda c: (np.gradient(c), np.gradient(c, axis=1), np.gradient(c, 2.0, axis=(0, 2))), C),
    "gradient of spacings": (
        lambda q, s: (np.gradient(q, s), np.gradient(q, s, 3.0), np.gradient(q, GRID, axis=0)),
        Q,
        S,
    ),
    "gradient on a traced grid": (lambda p, g: (np.gradient(p, g), np.gradient(p, g, edge_order=2)), P, GRID),
    "gradient of second order": (lambda q: np.gradient(q, 0.5, GRID, edge_order=2), Q),
    "gradient of an even grid": (lambda p: (np.gradient(p, np.arange(4)), np.gradient(p, np.arange(4) / 2)), P),
    "gradient of dtypes": (lambda i, f, z: (np.gradient(i, axis=1), np.gradient(f), np.gradient(z, axis=1)), I, F, Z),
    "trapezoid": (lambda q: (np.trapezoid(q), np.trapezoid(q, dx=0.5, axis=0), np.trapezoid(q, GRID)), Q),
    "trapezoid on a traced grid": (lambda q, g: (np.trapezoid(q, g, axis=0), np.trapezoid(g, q)), Q, GRID),
    "trapezoid of integers": (lambda i: (np.trapezoid(i), np.trapezoid(i, axis=0)), I),
    "unwrap": (
        lambda v, q: (np.unwrap(v * 20), np.unwrap(q * 20, axis=0), np.unwrap(v * 9, period=3), np.unwrap(v * 20, 4)),
        V,
        Q,
    ),
    "unwrap of integers": (lambda i: (np.unwrap(i * 3, period=4), np.unwrap(i, period=5)), IV),
}

CONVOLUTIONS = {
    "convolve": (lambda p, v: [np.convolve(p, v, m) for m in ("full", "same", "valid")], P, V),
    "convolve with a longer one": (lambda p, v: [np.convolve(v, p, m) for m in ("full", "same", "valid")], P, V),
    "convolve with an array": (lambda p: (np.convolve(p, [1, -1]), np.convolve([1.0, 2.0, 3.0], p)), P),
    "convolve of numbers": (lambda s, v: (np.convolve(s, v), np.convolve(v, 2)), S, V),
    "correlate": (lambda p, v: [np.correlate(p, v, m) for m in ("full", "same", "valid")], P, V),
    "correlate with a longer one": (lambda p, v: [np.correlate(v, p, m) for m in ("full", "same", "valid")], P, V),
    "correlate of complex vectors": (lambda z, p: (np.correlate(p, z, "full"), np.correlate(z, z, "same")), ZV, P),
    "convolve of dtypes": (
        lambda i, f: (np.convolve(i, f), np.convolve(i, i), np.correlate(f, i), np.convolve(i > 1, i > 2)),
        IV,
        F,
    ),
}

PRODUCTS = {
    "kron": (lambda x, v: (np.kron(x, x), np.kron(x, v), np.kron(v, x), np.kron(v, 2.0)), X, V),
    "kron of dtypes": (lambda i, f: (np.kron(i, f), np.kron(i, i)), I, F),
    "cross": (lambda x, v: (np.cross(x, v), np.cross(v, x), np.cross(v, v[::-1]), np.cross(x, [1, 2, 3])), X, V),
    "cross of other axes": (
        lambda c: (np.cross(c, c[:1] ** 2, axis=1), np.cross(c, c**2, axisa=1, axisb=1, axisc=0)),
        C,
    ),
    "matvec": (lambda c, p: (np.matvec(c, p), np.matvec(c[0], p)), C, P),
    "vecmat": (lambda c, v, z: (np.vecmat(v, c), np.vecmat(z, c)), C, V, ZV),
}

if not WITHOUT_PLANES:
    PRODUCTS["cross in the plane"] = (
        lambda v, x: (np.cross(v[:2], v[1:]), np.cross(v[:2], x), np.cross(x, v[1:])),
        V,
        X,
    )

COVARIANCES = {
    "cov": (lambda q, p: (np.cov(q), np.cov(q, rowvar=False), np.cov(p), np.cov(q, p), np.cov(p, 2 * p**2)), Q, P),
    "cov with options": (lambda q: (np.cov(q, bias=True), np.cov(q, ddof=0), np.cov(q, ddof=2)), Q),
    "cov with weights": (
        lambda q, p: (
            np.cov(q, aweights=p),
            np.cov(q, fweights=[1, 2, 0, 3]),
            np.cov(q, aweights=p, fweights=[1, 2, 3, 1]),
        ),
        Q,
        P,
    ),
    "cov of complex variables": (lambda z: (np.cov(z), np.cov(z, rowvar=False)), Z),
    "cov of dtypes": (lambda i, f: (np.cov(i), np.cov(f), np.cov(f, dtype=np.float32)), I, F),
    "corrcoef": (
        lambda q, p: (np.corrcoef(q), np.corrcoef(p, p**2), np.corrcoef(p), np.corrcoef(q, rowvar=False)),
        Q,
        P,
    ),
    "corrcoef of complex variables": (lambda q: np.corrcoef(q + 1j * q**2), Q),
}

GRIDS = {
    "meshgrid": (
        lambda v, p, s: (np.meshgrid(v, p), np.meshgrid(v, p, s, indexing="ij"), np.meshgrid(v, p, sparse=True)),
        V,
        P,
        S,
    ),
    "ix_": (lambda x, i: (np.ix_(x[0], i[0]), np.ix_(x[0], [1, 2])), X, I),
    "logspace": (
        lambda s, v: (np.logspace(s, 3, 4), np.logspace(0, s, 3, endpoint=False, base=2), np.logspace(s, v, 3, axis=1)),
        S,
        V,
    ),
    "logspace of bases": (lambda v: (np.logspace(0, 2, 3, base=v), np.logspace(0, v, 4, base=v, axis=-1)), V),
    "geomspace": (
        lambda s, v: (np.geomspace(s, 7, 5), np.geomspace(s, v, 4, axis=-1), np.geomspace(-s, -9, 3, endpoint=False)),
        S,
        V,
    ),
    "geomspace of dtypes": (lambda s: (np.geomspace(s, 8, 3, dtype="f4"), np.geomspace(s, 1j, 3)), S),
}

ELEMENTS = {
    "sinc": (lambda x, z: (np.sinc(x), np.sinc(x * 1e-9), np.sinc(x * 10), np.sinc(z)), X, Z),
    "sinc at 0": (lambda v: (np.sinc(v), np.sinc(0 * v)), np.zeros(2)),
    "sinc of dtypes": (lambda i, f: (np.sinc(i), np.sinc(f)), I, F),
    "i0": (lambda x: (np.i0(x), np.i0(x * 20), np.i0(-x)), X),
    "fix": (lambda x, i: (np.fix(x * 5), np.fix(-x * 5), np.fix(i)), X, I),
    "real_if_close": (lambda x, i: (np.real_if_close(x), np.real_if_close(i, 1)), X, I),
    "unstack": (lambda c: (np.unstack(c), np.unstack(c, axis=-1)), C),
    "row_stack": (lambda x, v: np.vstack([x, v]), X, V),
    "sliding_window_view": (
        lambda p, c: (windows(p, 2), windows(c, 3, axis=-1), windows(c, (2, 2), (0, 2)), windows(c, (1, 2, 3))),
        P,
        C,
    ),
    "sliding_window_view reduced": (lambda c: windows(c, (2, 3), axis=(1, 2)).mean(axis=(-2, -1)), C),
    "without nan, of numbers": (lambda x: (np.nansum(x), np.nanprod(x, axis=1), np.nanmean(x), np.nan_to_num(x)), X),
    "new arrays": (
        lambda x, s: (np.array([s, 2 * s]), np.asarray([x, x]), np.asanyarray([s]), np.full(3, s), np.array(x)),
        X,
        S,
    ),
    "require": (lambda x: (np.require(x * 1, requirements="C"), np.ascontiguousarray(x.T), np.asfortranarray(x)), X),
}

NUMERICAL = POLYNOMIALS | INTERPOLATION | DIFFERENCES | CONVOLUTIONS | PRODUCTS | COVARIANCES | GRIDS | ELEMENTS
