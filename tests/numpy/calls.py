"""Calls of array functions, by name: a function of arrays and the arrays to call it on."""

import numpy as np

from tests.numpy.against_numpy import sample
from tests.numpy.calls_by_name import BY_NAME
from tests.numpy.fourier_calls import FOURIER
from tests.numpy.linalg_calls import LINALG
from tests.numpy.numerical_calls import NUMERICAL
from tests.numpy.ordering_calls import ORDERING
from tests.numpy.series_calls import EMATH, SERIES_CALLS
from tests.numpy.special_calls import SPECIAL_CALLS
from tests.scipy.linalg_calls import SCIPY_LINALG, SIGNAL
from tests.scipy.stats_calls import STATS

X = sample((2, 3), "f64")
V = sample(3, "f64", 1)
W = sample((3, 4), "f64", 2)
C = sample((2, 3, 4), "f64", 3)
Q = sample((4, 4), "f64", 4)
Z = sample((2, 3), "c128", 5)
I = sample((2, 3), "i32", 6)  # noqa: E741
S = np.float64(2.5)
E = np.zeros((0, 2))
N = np.array([[1.0, np.nan, 2.0], [np.nan, 3.0, 4.0]])

SHAPES = {
    "reshape": (
        lambda x: (np.reshape(x, (3, 2)), x.reshape(3, -1), x.reshape((6,)), np.reshape(x, (3, 2), order="F")),
        X,
    ),
    "reshape to 0-d": (lambda x: x.reshape(()), np.ones(1)),
    "ravel": (lambda x: (np.ravel(x), x.ravel("F"), x.flatten(), x.flatten("F")), C),
    "T": (lambda x: (x.T, x.mT, np.matrix_transpose(x), x.transpose(), x.transpose(None)), C),
    "transpose": (lambda x: (x.transpose(1, 0, 2), x.transpose((2, 0, 1)), np.transpose(x, [-1, 0, 1])), C),
    "swapaxes": (lambda x: (np.swapaxes(x, 0, -1), x.swapaxes(1, 2)), C),
    "moveaxis": (lambda x: (np.moveaxis(x, 0, -1), np.moveaxis(x, [0, 1], [-1, 0])), C),
    "rollaxis": (lambda x: (np.rollaxis(x, 2), np.rollaxis(x, 0, 3), np.rollaxis(x, 1, 0), np.rollaxis(x, 0, -1)), C),
    "expand_dims": (lambda x: (np.expand_dims(x, 0), np.expand_dims(x, (0, -1)), x[:, None]), X),
    "squeeze": (lambda x: (np.squeeze(x), x.squeeze(0), np.squeeze(x, (0, -1))), sample((1, 3, 1), "f64")),
    "squeeze to 0-d": (np.squeeze, np.ones((1, 1))),
    "broadcast_to": (lambda x: np.broadcast_to(x, (4, 2, 3)), X),
    "broadcast_arrays": (np.broadcast_arrays, X, V),
    "atleast": (
        lambda x, v, s: [[f(a) for f in (np.atleast_1d, np.atleast_2d, np.atleast_3d)] for a in (x, v, s)],
        X,
        V,
        S,
    ),
    "atleast of several": (np.atleast_1d, X, S),
    "flip": (lambda x: (np.flip(x), np.flip(x, (0, 2)), np.fliplr(x), np.flipud(x), x[:, ::-1]), C),
    "rot90": (lambda x: [np.rot90(x, k) for k in range(-2, 5)], X),
    "rot90 of other axes": (lambda x: np.rot90(x, 1, (2, 1)), C),
    "roll": (
        lambda x: (np.roll(x, 2), np.roll(x, -1, axis=1), np.roll(x, (1, 2), axis=(0, 1)), np.roll(x, 1, (0, 1))),
        X,
    ),
    "roll of nothing": (lambda x: np.roll(x, 3, 0), E),
    "split": (lambda x: (np.split(x, 3, axis=1), np.split(x, [1], axis=1), np.array_split(x, 2, axis=1)), X),
    "split beyond the end": (lambda x: np.array_split(x, [2, 1, 5], axis=1), X),
    "split along": (lambda x: (np.hsplit(x, 3), np.vsplit(x, 2), np.dsplit(x, 2)), C),
    "hsplit of a vector": (lambda v: np.hsplit(v, 3), V),
    "diagonal": (lambda x: (np.diagonal(x, 0, 1, 2), x.diagonal(-1, 2, 0), x.diagonal(7)), C),
    "diag": (
        lambda q, v: (np.diag(q), np.diag(q, 1), np.diag(v), np.diag(v, -2), np.diag(v, 1), np.diagflat(q, 1)),
        Q,
        V,
    ),
    "trace": (lambda q: (np.trace(q), np.trace(q, 1), q.trace(-1)), Q),
    "tril, triu": (lambda x, c, v: (np.tril(x), np.triu(x, 1), np.tril(c, -1), np.triu(c, -1), np.tril(v)), X, C, V),
    "tril, triu of bools": (lambda x: (np.tril(x > 0.5), np.triu(x < 0.5, 1)), X),
    "iteration": (lambda x: ([row * 2 for row in x], len(x) * x), X),
    "what is known": (
        lambda x: (np.shape(x)[0] * np.ndim(x) * np.size(x, 1) * x, x * x.size * x.itemsize * x.nbytes),
        X,
    ),
}

JOINING = {
    "concatenate": (lambda x, z: (np.concatenate([x, z]), np.concatenate([x, z, x], axis=-1)), X, Z),
    "concatenate flat": (lambda x, v: np.concatenate([x, v, 2.0], axis=None), X, V),
    "concatenate with an array": (lambda x: np.concatenate([np.ones((1, 3), np.float32), x]), X),
    "stack": (lambda x, i: (np.stack([x, i]), np.stack([x, i], -1)), X, I),
    "stack of numbers": (lambda s: np.stack([s, 2.0, s * s]), S),
    "vstack": (lambda x, v: (np.vstack([x, v]), np.vstack([v, v])), X, V),
    "hstack": (lambda x, v, s: (np.hstack([x, x]), np.hstack([v, v]), np.hstack([s, v])), X, V, S),
    "dstack": (lambda x, v: (np.dstack([x, x]), np.dstack([v, v])), X, V),
    "column_stack": (lambda w, v: np.column_stack([w, v]), W, V),
    "append": (lambda x: (np.append(x, 1.0), np.append(x, x, axis=0)), X),
    "block": (lambda x, v: (np.block([[x, x], [x * 2, x]]), np.block([v, v]), np.block(v)), X, V),
    "tile": (lambda x: (np.tile(x, 2), np.tile(x, (2, 1, 2)), np.tile(x, ())), X),
    "repeat": (lambda x: (np.repeat(x, 2), np.repeat(x, 2, axis=0), np.repeat(x, [1, 0, 2], 1), x.repeat(3, -1)), X),
    "pad": (lambda x: (np.pad(x, 1), np.pad(x, ((1, 0), (0, 2))), np.pad(x, {-1: 2}), np.pad(x, (2, 1))), X),
    "pad with values": (lambda x: (np.pad(x, 1, constant_values=5), np.pad(x, 2, constant_values=((1, 2), (3, 4)))), X),
    "pad with the array": (lambda x: [np.pad(x, (2, 3), mode=m) for m in ("edge", "wrap", "reflect", "symmetric")], Q),
    "pad with statistics": (
        lambda x: [
            *[np.pad(x, (2, 1), mode=m) for m in ("maximum", "mean", "median", "minimum", "linear_ramp")],
            np.pad(x, 1, mode="mean", stat_length=2),
        ],
        Q,
    ),
    "pad, reflected oddly": (
        lambda x: [np.pad(x, (5, 2), mode=m, reflect_type="odd") for m in ("reflect", "symmetric")],
        Q,
    ),
}

CHOOSING = {
    "extrema of complex numbers": (
        lambda z, y: (
            *(f(z, y) for f in (np.maximum, np.minimum, np.fmax, np.fmin)),
            *(f(z, axis=axis) for f in (np.max, np.min, np.ptp, np.nanmax) for axis in (None, 1)),
            np.clip(z, 0.2 + 1j, y),
            np.maximum.accumulate(z),
        ),
        Z,
        sample((2, 3), "c128", 7),
    ),
    "where": (lambda x, v: (np.where(x > 0.5, x, 0), np.where(v > 0.5, x, v), np.where(x, 1, 2.5)), X, V),
    "where of numbers": (lambda s: np.where(s > 1, s, 2), S),
    "select": (lambda x: np.select([x > 0.7, x > 0.4], [x, x * 2], -1), X),
    "clip": (lambda x: (np.clip(x, 0.3, 0.6), x.clip(0.3), x.clip(None, 0.5), np.clip(x, max=0.5, min=0.3)), X),
    "clip by arrays": (lambda x, v: np.clip(x, v, 0.7), X, V),
    "take": (lambda x: (np.take(x, [0, 5, 1]), np.take(x, [[0], [1]], axis=0), x.take(1, axis=1), np.take(x, 1)), X),
    "take by mode": (lambda x: (x.take([7, -8], mode="wrap"), x.take([7, -8], mode="clip")), X),
    "take_along_axis": (lambda x: (np.take_along_axis(x, np.argmax(x, 1, keepdims=True), 1), x), X),
    "take_along_axis, broadcast": (lambda x: np.take_along_axis(x, np.array([[2, 0]]), axis=1), X),
    "take_along_axis of a row": (lambda x: np.take_along_axis(x[:1], np.array([[2, 0], [1, 1]]), axis=1), X),
    "nan_to_num": (lambda n: (np.nan_to_num(n), np.nan_to_num(n / 0, nan=1.0, posinf=2.0)), N),
}

PRODUCTS = {
    "matmul": (lambda x, w, v: (x @ w, x @ v, v @ w, v @ v, np.matmul(x, w)), X, W, V),
    "matmul of stacks": (lambda c, w: (np.swapaxes(c, 1, 2) @ w, w @ np.swapaxes(c, 1, 2)), C, W),
    "matmul of stacks, broadcast": (lambda a, b: a @ b, sample((5, 1, 2, 3), "f64"), sample((4, 3, 2), "f64")),
    "matmul of a stack and a vector": (lambda c, v: (v @ c, np.swapaxes(c, 1, 2) @ v), C, V),
    "matmul of dtypes": (lambda x: (x @ np.array([1, 2, 3], "i4"), np.arange(2.0) @ x), sample((2, 3), "f32")),
    "dot": (lambda x, w, v, s: (np.dot(x, w), x.dot(v), np.dot(x, s), np.dot(v, v)), X, W, V, S),
    "dot of stacks": (np.dot, X, sample((5, 3, 4), "f64")),
    "inner, outer, vdot": (lambda x, v, z: (np.inner(x, v), np.outer(x, v), np.vdot(z, x), np.inner(z, x)), X, V, Z),
    "tensordot": (
        lambda x, w: (np.tensordot(x, w, 1), np.tensordot(x, x, ([0, 1], [0, 1])), np.tensordot(x, w, 0)),
        X,
        W,
    ),
    "tensordot over an axis each": (lambda x, q: np.tensordot(x, x, (0, 0)), X, Q),
    "vecdot": (lambda x, z: (np.vecdot(x, x[0]), np.vecdot(z, z)), X, Z),
    "norm": (
        lambda x, v: [
            np.linalg.norm(x),
            np.linalg.norm(x, "fro"),
            *[np.linalg.norm(v, p) for p in (0, 1, 2, 3, np.inf, -np.inf)],
        ],
        X,
        V,
    ),
    "norm over axes": (lambda c: (np.linalg.norm(c, axis=1), np.linalg.norm(c, 1, axis=-1, keepdims=True)), C),
    "norm of matrices": (lambda c: [np.linalg.norm(c, p, axis=(0, 2)) for p in (1, -1, np.inf, -np.inf, "fro")], C),
    "norm of complex": (lambda z: (np.linalg.norm(z), np.linalg.norm(z, 1), np.linalg.norm(z, 3, axis=0)), Z),
}

EINSUM = [
    *[(text, X) for text in ("ij->ji", "ij->j", "ij->", "ij", "...->...")],
    *[(text, X, W) for text in ("ij,jk->ik", "ij,jk", "ij , jk -> ik", "ij,kl->ijkl", "ij,jk->")],
    *[(text, X, X) for text in ("ij,ij->i", "ij,ij->ij", "ij,kj->ik", "ij,ij")],
    *[(text, Q) for text in ("ii->i", "ii", "ii->")],
    *[(text, C) for text in ("i...->...", "...k", "ijk->kji")],
    ("i,j->ij", V, V),
    ("bij,bjk->bik", C, np.swapaxes(C, 1, 2)),
    ("...ij,jk->...ik", np.swapaxes(C, 1, 2), Q[:3, :2]),
    ("i...,i...->...", C, C),
    ("ij,jk,kl->il", X, W, Q),
    ("i,i,i->", V, V, V),
    ("ij,j,j", X, V, V),
    ("ijk,ilm,njm,nlk,abc->", *[sample((2, 2, 2), "f64")] * 5),
    ("iij->j", sample((3, 3, 2), "f64")),
    ("ab,ab->b", X[:1], X),
    ("ij,i->", X, V[:2]),
    ("ij,jk->ik", I, W.astype("f4")),
    ("ij,ij->ij", Z, X),
]

ELEMENTS = {
    "round": (lambda x, z: (np.round(x), x.round(2), np.around(x * 100, -1), np.round(z, 1)), X, Z),
    "round of integers": (lambda i: np.round(i, 2), I),
    "angle": (lambda z, x: (np.angle(z), np.angle(z, deg=True), np.angle(-x)), Z, X),
    "real, imag, conj": (lambda z, x: (z.real, z.imag, z.conj(), np.conj(z), x.real, x.imag, x.conj(), abs(z)), Z, X),
    "diff": (lambda c: (np.diff(c), np.diff(c, n=2), np.diff(c, axis=0), np.diff(c, prepend=0, append=c[..., :1])), C),
    "diff of bools": (lambda x: np.diff(x > 0.5), X),
    "ediff1d": (lambda x: (np.ediff1d(x), np.ediff1d(x, to_end=[1, 2], to_begin=x[0])), X),
    "linspace": (lambda s, v: (np.linspace(s, 7, 5), np.linspace(s, v, 4, axis=-1), np.linspace(s, 7, 0)), S, V),
    "linspace with options": (
        lambda s: (np.linspace(s, 7, 4, endpoint=False, retstep=True), np.linspace(s, 9, 3, dtype=int)),
        S,
    ),
    "isclose": (lambda x, n: (np.isclose(x, x + 1e-9), np.isclose(n, n, equal_nan=True), np.allclose(x, x)), X, N),
    "array_equal": (lambda x, v: (np.array_equal(x, x), np.array_equal(x, v) * x), X, V),
    "isposinf": (lambda n: (np.isposinf(n / 0), np.isneginf(-n / 0), np.isreal(n), np.iscomplex(n)), N),
    "like": (
        lambda x: (
            np.zeros_like(x),
            np.ones_like(x, int),
            np.full_like(x, 3),
            np.empty_like(x) * 0,
            np.zeros_like(x, shape=2),
        ),
        X,
    ),
    "full_like of a traced number": (np.full_like, X, S),
    "astype, copy": (
        lambda x: (x.astype(np.float32), x.astype(int), x.copy(), np.copy(x), x.astype(x.dtype, copy=False)),
        X,
    ),
    "average": (
        lambda x, v: (
            np.average(x),
            np.average(x, 1, v),
            np.average(x, axis=1, returned=True),
            np.average(x, weights=x),
        ),
        X,
        V,
    ),
    "without nan": (
        lambda n: (np.nansum(n), np.nansum(n, 0), np.nanprod(n, axis=1), np.nanmean(n, axis=0, keepdims=True)),
        N,
    ),
    "count_nonzero": (lambda x: (np.count_nonzero(x > 0.5), np.count_nonzero(x, axis=1, keepdims=True)), X),
}

CASES = (
    SHAPES
    | JOINING
    | CHOOSING
    | PRODUCTS
    | ELEMENTS
    | NUMERICAL
    | ORDERING
    | BY_NAME
    | SPECIAL_CALLS
    | LINALG
    | FOURIER
    | SCIPY_LINALG
    | SIGNAL
    | SERIES_CALLS
    | EMATH
    | STATS
)
