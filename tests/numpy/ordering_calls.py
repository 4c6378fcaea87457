"""Calls of functions that order, count, choose and accumulate, by name: a function of arrays and the arrays."""

import numpy as np

from tests.numpy.against_numpy import sample

X = sample((3, 4), "f64")
V = sample(7, "f64", 1)
C = sample((2, 3, 4), "f64", 2)
Z = sample((3, 4), "c128", 3)
F = sample((3, 4), "f32", 4)
I = sample((3, 4), "i32", 5)  # noqa: E741
K = np.array([0, 2, 1, 1])
S = np.float64(0.3)
E = np.zeros((0, 2), np.float32)
N = np.array([[1.0, np.nan, 2.0, 2.0], [np.nan, 3.0, 4.0, -np.inf], [0.5, 0.25, np.nan, 0.25]])
TIES = np.array([[2.0, 2.0, 1.0, -0.0], [0.0, 3.0, 3.0, 3.0]])
MASK = np.array([True, False, True, True])


def sorted_in_place(x):
    y, z = x * 1, x * 1
    part = y[1:]
    part.sort()
    z.sort(axis=0, kind="stable")
    z[0].partition(2)
    return y, z


SORTING = {
    "sort": (lambda x: (np.sort(x), np.sort(x, 0), np.sort(x, None), np.sort(x, kind="stable")), X),
    "sort of ties, nan, complex": (lambda t, n, z: (np.sort(t), np.sort(n), np.sort(n, 0), np.sort(z)), TIES, N, Z),
    "sort of nothing": (lambda e: (np.sort(e), np.sort(e, 0), np.argsort(e, 0)), E),
    "sort in place": (sorted_in_place, X),
    "argsort": (lambda x: (np.argsort(x), x.argsort(0), np.argsort(x, None), np.argsort(x, stable=True)), X),
    "argsort of ties": (lambda t: (np.argsort(t, kind="stable"), np.argsort(t, 0, stable=True)), TIES),
    "argsort of a number": (lambda s: (np.argsort(s), np.sort(s, None)), S),
    "lexsort": (lambda t: (np.lexsort(t), np.lexsort((t[0], t[1])), np.lexsort((t, -t), axis=0)), TIES),
    "partition": (lambda v: (np.partition(v, 2)[2], np.partition(v, (1, -2))[[1, -2]], v[v.argpartition(3)][3]), V),
    "sort_complex": (lambda x, z, i: (np.sort_complex(x), np.sort_complex(z), np.sort_complex(i)), X, Z, I),
    "searchsorted": (
        lambda v, x: (
            np.searchsorted(np.sort(v), x),
            np.searchsorted([0.2, 0.5], x, "right"),
            np.searchsorted(v, 0.5, sorter=np.argsort(v)),
            np.sort(v).searchsorted(x, side="right"),
        ),
        V,
        X,
    ),
    "isin": (
        lambda i, x: (
            np.isin(i, [1, 2, 9]),
            np.isin(i, i[0]),
            np.isin(3, i, invert=True),
            np.isin(x, []),
            np.isin(i, x),
        ),
        I,
        X,
    ),
    "isin of bools": (lambda x: np.isin(x > 0.5, True), X),
}

QUANTILES = {
    "median": (
        lambda x, c: (
            np.median(x),
            np.median(x, 0),
            np.median(x, 1, keepdims=True),
            np.median(c, (0, -1)),
            np.median(c),
        ),
        X,
        C,
    ),
    "median of dtypes": (lambda f, i, z, x: [np.median(a) for a in (f, i, z, x > 0.5)], F, I, Z, X),
    "median with nan": (lambda n: (np.median(n, 0), np.median(n)), N),
    "median of nothing": (lambda e: (np.median(e), np.median(e, 0), np.median(e, 1)), E),
    "nanmedian": (lambda n: (np.nanmedian(n), np.nanmedian(n, 0), np.nanmedian(n, 1, keepdims=True)), N),
    "nanmedian without nan": (lambda x, i: (np.nanmedian(x, 0), np.nanmedian(x), np.nanmedian(i)), X, I),
    "nanmedian of nan alone": (lambda n: np.nanmedian(n * np.nan, 0), N),
    "quantile": (
        lambda x: (
            np.quantile(x, 0.3),
            np.quantile(x, [0.1, 0.95], axis=1),
            np.quantile(x, 0.5, axis=(0, 1), keepdims=True),
            np.percentile(x, [[10, 50], [60, 99]], axis=0),
        ),
        X,
    ),
    "quantile, where it is": (
        lambda x, s: (np.quantile(x, s), np.nanquantile(x, s, 0), np.nanpercentile(x, 50 * s)),
        X,
        S,
    ),
    "quantile at an end": (lambda i, x: (np.quantile(i, 1), np.quantile(i, [0, 1], 0), np.quantile(x, 1.0)), I, X),
    "quantile with nan": (lambda n: (np.quantile(n, 0.4, 0), np.nanquantile(n, 0.4, 0), np.nanpercentile(n, 70)), N),
    "quantile of dtypes": (
        lambda f, i: (
            np.quantile(f, 0.3),
            np.quantile(f, np.array([0.3])),
            np.quantile(f, np.float32(0.3)),
            np.quantile(i, 0.2),
        ),
        F,
        I,
    ),
}

METHODS = (
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
    "interpolated_inverted_cdf",
    "hazen",
    "weibull",
    "linear",
    "median_unbiased",
    "normal_unbiased",
    "lower",
    "higher",
    "midpoint",
    "nearest",
)


def _by_method(method):
    def quantiles(x, v):
        return (
            np.quantile(x, [0.05, 0.33, 0.5, 0.97], axis=1, method=method),
            np.percentile(v, 21, method=method),
            np.nanquantile(v, [0.4, 0.7], method=method),
        )

    return quantiles, X, V


QUANTILES |= {f"quantile by {method}": _by_method(method) for method in METHODS}

RUNNING = {
    "cumprod": (lambda x: (np.cumprod(x), np.cumprod(x, 0), x.cumprod(1), np.multiply.accumulate(x, 1)), X),
    "cumprod of dtypes": (lambda f, i, z, t: [np.cumprod(a, 1) for a in (f, i, z, t)], F, I, Z, TIES),
    "cumprod of nothing": (lambda e: (np.cumprod(e, 0), np.cumprod(e), np.maximum.accumulate(e)), E),
    "cumulative_sum": (
        lambda x, v: (np.cumulative_sum(x, axis=0), np.cumulative_sum(v, include_initial=True)),
        X,
        V,
    ),
    "cumulative_prod": (
        lambda x, v, s: (
            np.cumulative_prod(x, axis=-1, include_initial=True),
            np.cumulative_prod(v),
            np.cumulative_prod(s),
        ),
        X,
        V,
        S,
    ),
    "accumulate": (
        lambda x: [u.accumulate(x, a) for u in (np.maximum, np.fmin, np.logaddexp, np.hypot, np.add) for a in (0, 1)],
        X,
    ),
    "accumulate in order": (lambda x: [u.accumulate(x, 1) for u in (np.subtract, np.divide, np.power, np.arctan2)], X),
    "accumulate of integers": (
        lambda i: [u.accumulate(i + 1) for u in (np.gcd, np.lcm, np.bitwise_xor, np.bitwise_and, np.logical_or)],
        I,
    ),
    "reduce": (
        lambda x: (
            np.fmax.reduce(x),
            np.fmin.reduce(x, axis=None),
            np.logaddexp.reduce(x, axis=1, keepdims=True),
            np.hypot.reduce(x, axis=(0, 1), initial=2.0),
            np.subtract.reduce(x),
            np.divide.reduce(x, axis=0, initial=3.0),
        ),
        X,
    ),
    "reduce of nothing": (lambda e: (np.hypot.reduce(e), np.logaddexp.reduce(e), np.bitwise_or.reduce(e > 0)), E),
    "reduce of integers": (
        lambda i: (
            np.gcd.reduce(i, axis=None),
            np.lcm.reduce(i + 1),
            np.bitwise_and.reduce(i, 1),
            np.bitwise_xor.reduce(i),
        ),
        I,
    ),
    "reduce with where": (
        lambda x: (np.fmax.reduce(x, where=x > 0.3, initial=0.1), np.hypot.reduce(x, 1, where=MASK)),
        X,
    ),
    "reduceat": (
        lambda x: (
            np.add.reduceat(x, [0, 2, 1]),
            np.multiply.reduceat(x, [1, 0], axis=1),
            np.maximum.reduceat(x, [0, 2]),
        ),
        X,
    ),
}

WITHOUT_NAN = {
    "nansum and the like": (
        lambda n: [
            f(n, axis=a) for f in (np.nansum, np.nanprod, np.nanmean, np.nanmax, np.nanmin) for a in (None, 0, -1)
        ],
        N,
    ),
    "nanvar": (
        lambda n: (
            np.nanvar(n[[0, 2]], axis=0),
            np.nanstd(n[::2]),
            np.nanvar(n[::2], 1, ddof=1),
            np.nanstd(n[0], ddof=9),
        ),
        N,
    ),
    "nanvar of dtypes": (lambda f, i, z: [np.nanvar(a, 0) for a in (f, i, z)], F, I, Z),
    "nan-reductions without nan": (
        lambda x: (
            np.nanmax(x, 0),
            np.nanmin(x),
            np.nanvar(x, 0),
            np.nanstd(x, keepdims=True),
            np.nancumprod(x, 0),
            np.nancumsum(x, 1),
        ),
        X,
    ),
    "nan-reductions with where": (
        lambda n: (np.nansum(n, where=MASK), np.nanmean(n, 0, where=MASK), np.nanmax(n, where=MASK, initial=-1)),
        N,
    ),
    "nan-reductions of nan alone": (
        lambda n: [f(n * np.nan, 0) for f in (np.nanmax, np.nanmin, np.nanmean, np.nanstd)],
        N,
    ),
    "nanargmax": (lambda n: (np.nanargmax(n), np.nanargmin(n, 0), np.nanargmax(n, 1, keepdims=True)), N),
    "nancumsum": (lambda n: (np.nancumsum(n), np.nancumprod(n, 0), np.nancumsum(n, 1)), N),
}

COUNTING = {
    "histogram": (
        lambda v: (
            np.histogram(v, [0, 0.25, 0.5, 1]),
            np.histogram(v, 4, range=(0, 1)),
            np.histogram(v, 3, (0, 1), weights=np.arange(7.0)),
            np.histogram(v, [0, 0.5, 1], density=True),
        ),
        V,
    ),
    "histogram of its weights": (lambda w: np.histogram(V, 4, weights=w, density=True), V),
    "histogram over its own span": (
        lambda v: (np.histogram(v, 5), np.histogram_bin_edges(v, 3), np.histogram(v[:1])),
        V,
    ),
    "histogram of dtypes": (lambda f, i: (np.histogram(f, 3), np.histogram(i, 3), np.histogram(i, [0, 2, 5])), F, I),
    "histogram of several": (
        lambda v: (
            np.histogram2d(v, V, [2, 3]),
            np.histogram2d(v, V, 3, [[0, 1], [0, 1]], weights=V),
            np.histogramdd(v[:, None], 3, density=True),
            np.histogramdd((v, V), (2, [0.0, 1.0])),
        ),
        V,
    ),
    "digitize": (
        lambda v: (np.digitize(v, [0.1, 0.5]), np.digitize(v, [0.9, 0.3], right=True), np.digitize(v, v[:1])),
        V,
    ),
    "bincount": (lambda w: (np.bincount([1, 1, 3, 0, 5, 1, 1], w), np.bincount(np.arange(7), w, minlength=9)), V),
    "bincount of traced integers": (lambda k: (np.bincount(k, minlength=5), np.bincount(k, V[:4], minlength=3)), K),
}


def placed(x):
    y, z, w = x * 1, x * 1, x * 1
    np.place(y, x > 0.5, [1, 2, 3.5])
    np.put(y, [0, 5], x[1] * 2)
    np.putmask(y, x > 0.7, x[0])
    np.place(z, np.arange(12) % 2 == 0, x[0])
    np.put_along_axis(w, np.array([[1, 0]]), x[:, :1] * 2, axis=1)
    np.put_along_axis(w, np.array([0, 5]), x[0, 2:] * 3, axis=None)
    return y, z, w


def at_places(x, v):
    results = []
    for ufunc in (np.add, np.subtract, np.multiply, np.divide, np.hypot, np.maximum):
        y, z = x * 1, v * 1
        ufunc.at(y, ([0, 0, 1], [1, 1, 2]), v[:3])
        ufunc.at(y, MASK[:3], x[0] * 2)
        ufunc.at(y, slice(1, 3), 2.0)
        ufunc.at(z, [0, -1, 1, 0], x[0])
        np.negative.at(z, [0, 0, 1])
        results += [y, z]
    return results


def sums_at_places_of_integers(i):
    y, z = i * 1, i > 3
    np.add.at(y, [0, 0], -2.5)
    np.subtract.at(y, ([1, 1], [0, 0]), 1)
    np.multiply.at(y, (2, 1), 1.5)
    np.add.at(z, [0, 0], True)
    return y, z


def under_a_mask(x):
    chosen = x > 0.4
    y, z = x * 1, x * 1
    y[chosen] *= 3
    y[chosen] = np.exp(x[chosen]) + y[chosen]
    z[chosen] -= x.sum()
    z[~chosen] = 0
    return y, z


SELECTING = {
    "compress": (
        lambda x: (np.compress([True, False, True], x), np.compress([1, 0, 1], x, axis=1), x.compress([0, 1], 0)),
        X,
    ),
    "extract": (lambda x: np.extract(np.arange(12).reshape(3, 4) % 3 == 0, x), X),
    "choose": (lambda k, x: (np.choose(k, x), np.choose(k - 4, [x, 1], mode="wrap"), k.choose([x, 2 * x, 7])), K, X),
    "choose among traced arrays": (lambda x: np.choose(K, [x, x**2, 7]), X),
    "place": (placed, X),
    "at": (at_places, X, V),
    "at of integers": (sums_at_places_of_integers, I),
    "array_equal with nan": (lambda n: (np.array_equal(n, n), np.array_equal(n, n, equal_nan=True)), N),
    "insert": (
        lambda x: (
            np.insert(x, 1, 5),
            np.insert(x, [1, 3], [5, 6], axis=1),
            np.insert(x, 1, x[0] * 2, axis=0),
            np.insert(x, slice(0, 2), 0, axis=0),
            np.insert(x, 2, x[:, 0], axis=-1),
        ),
        X,
    ),
    "insert a traced number": (lambda s: (np.insert(np.arange(3), 1, s), np.insert(np.arange(3.0), 1, s)), S),
    "delete": (
        lambda x: (np.delete(x, 1), np.delete(x, [0, -1], 0), np.delete(x, slice(0, 3, 2), 1), np.delete(x, MASK, 1)),
        X,
    ),
    "resize": (lambda x: (np.resize(x, (3, 8)), np.resize(x, 3), np.resize(x[:0], (2, 2))), X),
    "array_equiv": (lambda x: (np.array_equiv(x, x), np.array_equiv(x, x[:1]), np.array_equiv(x, x[:2]) * x), X),
    "ravel_multi_index": (
        lambda k: (
            np.ravel_multi_index((k, k), (3, 4)),
            np.ravel_multi_index((k, 2), (5, 3), order="F"),
            np.ravel_multi_index((k + 1, k), (2, 2), mode=("wrap", "clip")),
        ),
        K,
    ),
    "unravel_index": (lambda k: (np.unravel_index(k, (2, 2)), np.unravel_index(k, (2, 2), order="F")), K),
    "indices from": (
        lambda x: (np.tril_indices_from(x, 1), np.triu_indices_from(x), x[np.diag_indices_from(x[:, :3])]),
        X,
    ),
    "indices of a triangle": (lambda x: (x[np.tril_indices(2, 1)], x[np.triu_indices(2, 0, 3)]), X),
    "a traced mask, reduced": (
        lambda x: (
            x[x > 0.4].sum(),
            np.mean(x[x > 0.4] ** 2),
            x[x > 0.4].max(),
            np.min(2 - x[x > 0.4]),
            x[x > 0.4].std(),
            np.dot(x[x > 0.4], x[x > 0.4]),
            (x.sum() * np.log(x[x > 0.4])).sum(),
            np.clip(x[x > 0.4], 0.5, 0.6).prod(),
        ),
        X,
    ),
    "a traced mask of rows": (
        lambda x: (x[x[:, 0] > 0.3].sum(axis=0), x[x[:, 0] > 0.3].mean(), x[x[:, 0] > 0.3].max(0)),
        X,
    ),
    "a traced mask, counted": (lambda x: (np.count_nonzero(x[x > 0.4]), np.any(x[x > 0.4] > 0.5)), X),
    "a traced mask, written": (under_a_mask, X),
    "piecewise": (
        lambda x: (
            np.piecewise(x, [x < 0.3, x > 0.6], [-1, lambda v: v**2]),
            np.piecewise(x, [x < 0.3, x > 0.6], [lambda v: -v, lambda v: v**2, lambda v: v * 10]),
            np.piecewise(x[0], x[0] > 0.5, [np.sin, lambda v: v - v.mean()]),
            np.piecewise(x[1], [x[1] < 0.3, x[1] > 0.6], x[0, :3]),
            np.piecewise(x, [np.arange(12).reshape(3, 4) > 3], [lambda v, k: v - v.mean() + k], 2),
        ),
        X,
    ),
    "apply_along_axis": (
        lambda x: (
            np.apply_along_axis(np.sum, 0, x),
            np.apply_along_axis(lambda r, k, shift=0: np.outer(r, r) * k + shift, 0, x, 3, shift=1),
            np.apply_along_axis(lambda r: [r[0], 1.0], 1, x),
        ),
        X,
    ),
    "apply_over_axes": (lambda c: (np.apply_over_axes(np.sum, c, [0, 2]), np.apply_over_axes(np.max, c, -1)), C),
}

DIGITS = {
    "frexp, ldexp": (lambda x, i: (np.frexp(x * 100), np.ldexp(x, 3), np.ldexp(x, i), np.frexp(i)), X, I),
    "frexp, ldexp of floats": (lambda x: (np.frexp(x * 100), np.ldexp(x, I)), X),
    "nextafter, spacing": (lambda x, v: (np.nextafter(x, 1), np.nextafter(x, x), np.spacing(x), np.spacing(-v)), X, V),
    "gcd, lcm, bitwise_count": (lambda i: (np.gcd(i, 4), np.lcm(i, i.T[0][0]), np.bitwise_count(-i)), I),
}

ORDERING = SORTING | QUANTILES | RUNNING | WITHOUT_NAN | COUNTING | SELECTING | DIGITS
