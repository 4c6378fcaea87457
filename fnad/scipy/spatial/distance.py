"""scipy.spatial.distance: distances between traced points.

Where two points coincide, the derivative of a distance that has a kink there is 0, as that of `np.linalg.norm`.

>>> import fnad
>>> import numpy as np
>>> fnad.grad(lambda x: cdist(x, np.zeros((1, 2)))[0, 0])(np.array([[3.0, 4.0]]))
array([[0.6, 0.8]])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fnad.errors import ShapeError, UnsupportedFunctionError
from fnad.numpy.bodies import XP
from fnad.scipy.rule import on_values, others_of

of_scipy = on_values("scipy.spatial.distance")


def _minkowski(x: Any, y: Any, p: float = 2.0, w: Any = None) -> Any:
    d = x - y if w is None else XP.asarray(w) ** (1 / p) * (x - y)
    return XP.linalg.norm(d, p, axis=-1)


def _sqeuclidean(x: Any, y: Any, w: Any = None) -> Any:
    return XP.sum(_weighted((x - y) ** 2, w), axis=-1)


def _cityblock(x: Any, y: Any, w: Any = None) -> Any:
    return XP.sum(_weighted(XP.abs(x - y), w), axis=-1)


def _weighted(terms: Any, w: Any) -> Any:
    return terms if w is None else terms * XP.asarray(w)


def _chebyshev(x: Any, y: Any) -> Any:
    return XP.max(XP.abs(x - y), axis=-1)


def _cosine(x: Any, y: Any) -> Any:
    product = XP.sum(x * y, axis=-1)
    return 1 - product / (XP.linalg.norm(x, axis=-1) * XP.linalg.norm(y, axis=-1))


def _correlation(x: Any, y: Any) -> Any:
    return _cosine(x - XP.mean(x, axis=-1, keepdims=True), y - XP.mean(y, axis=-1, keepdims=True))


def _canberra(x: Any, y: Any, w: Any = None) -> Any:
    difference, size = XP.abs(x - y), XP.abs(x) + XP.abs(y)
    return XP.sum(_weighted(XP.where(size == 0, 0.0, difference / XP.where(size == 0, 1.0, size)), w), axis=-1)


def _braycurtis(x: Any, y: Any) -> Any:
    return XP.sum(XP.abs(x - y), axis=-1) / XP.sum(XP.abs(x + y), axis=-1)


def _seuclidean(x: Any, y: Any, V: Any) -> Any:
    return XP.linalg.norm((x - y) / XP.sqrt(XP.asarray(V)), axis=-1)


def _mahalanobis(x: Any, y: Any, VI: Any) -> Any:
    d = x - y
    square = XP.sum(XP.matmul(d, XP.asarray(VI)) * d, axis=-1)
    return XP.where(square == 0, 0.0, XP.sqrt(XP.where(square == 0, 1.0, square)))


METRICS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("euclidean", "euclid", "eu", "e"), lambda x, y, w=None: _minkowski(x, y, 2.0, w)),
    **dict.fromkeys(("minkowski", "mi", "m", "pnorm"), _minkowski),
    **dict.fromkeys(("sqeuclidean", "sqe", "sqeuclid"), _sqeuclidean),
    **dict.fromkeys(("cityblock", "cblock", "cb", "c"), _cityblock),
    **dict.fromkeys(("chebyshev", "chebychev", "cheby", "cheb", "ch"), _chebyshev),
    **dict.fromkeys(("cosine", "cos"), _cosine),
    **dict.fromkeys(("correlation", "co"), _correlation),
    "canberra": _canberra,
    "braycurtis": _braycurtis,
    **dict.fromkeys(("seuclidean", "se", "s"), _seuclidean),
    **dict.fromkeys(("mahalanobis", "mahal", "mah"), _mahalanobis),
}
"""The distance between points along the last axis, which broadcast, by SciPy's names."""


def _metric(name: str, metric: Any, options: dict[str, Any]) -> Callable[[Any, Any], Any]:
    found = METRICS.get(metric.lower()) if isinstance(metric, str) else None
    given = {option: value for option, value in options.items() if value is not None}
    if found is None or given.keys() - set(_parameters(found)):
        what = f"metric={metric!r}" if found is None else f"metric={metric!r} with {', '.join(given)}"
        raise UnsupportedFunctionError(
            f"scipy.spatial.distance.{name} has no rule for {what}",
            remedy=f"give one of {', '.join(sorted(METRICS))}; seuclidean takes V, mahalanobis VI",
        )
    if set(_parameters(found, needed=True)) - given.keys():
        raise UnsupportedFunctionError(
            f"scipy.spatial.distance.{name} with metric={metric!r} takes no variances from traced points",
            remedy="give V for seuclidean, VI for mahalanobis",
        )
    return lambda x, y: found(x, y, **given)


def _parameters(metric: Callable[..., Any], *, needed: bool = False) -> tuple[str, ...]:
    code = metric.__code__
    names = code.co_varnames[2 : code.co_argcount]
    return names[: len(names) - len(metric.__defaults__ or ())] if needed else names


def _points(points: Any) -> Any:
    found = XP.asarray(points)
    if found.ndim != 2:
        raise ShapeError(f"points are the rows of a matrix, got shape {found.shape}")
    return found if found.dtype == np.float64 else found.astype(np.float64)


@of_scipy
def cdist(XA: Any, XB: Any, metric: Any = "euclidean", *, out: Any = None, **options: Any) -> Any:
    """The distances between each row of XA and each of XB.

    >>> cdist([[0.0, 0.0]], [[3.0, 4.0]])
    array([[5.]])
    """
    x, y = _points(XA), _points(XB)
    found = _metric("cdist", metric, options)(x[:, None], y[None])
    return found if out is None else _into(out, found)


@of_scipy
def pdist(X: Any, metric: Any = "euclidean", *, out: Any = None, **options: Any) -> Any:
    """The distances between each two rows of X, in the order of `squareform`.

    >>> pdist([[0.0, 0.0], [3.0, 4.0]])
    array([5.])
    """
    x = _points(X)
    first, second = np.triu_indices(x.shape[0], 1)
    found = _metric("pdist", metric, options)(x[first], x[second])
    return found if out is None else _into(out, found)


def _into(out: Any, found: Any) -> Any:
    out[...] = found
    return out


@of_scipy
def squareform(X: Any, force: str = "no", checks: bool = True) -> Any:
    """The symmetric matrix with the distances of `pdist` above and below a diagonal of 0, and back.

    >>> squareform([5.0])
    array([[0., 5.],
           [5., 0.]])
    """
    x = XP.asarray(X)
    if x.ndim == 2 and force.lower() != "tomatrix":
        return x[np.triu_indices(x.shape[0], 1)]
    if x.ndim != 1 or force.lower() == "tovector":
        raise ShapeError(f"squareform takes a vector or a square matrix, got shape {x.shape}")
    n = round((1 + np.sqrt(1 + 8 * x.shape[0])) / 2)
    if n * (n - 1) // 2 != x.shape[0]:
        raise ShapeError(
            "Incompatible vector size. It must be a binomial coefficient n choose 2 for some integer n >= 2."
        )
    index = np.zeros((n, n), int)
    first, second = np.triu_indices(n, 1)
    index[first, second] = index[second, first] = np.arange(x.shape[0])
    return x[index] * (1 - np.eye(n)) if x.shape[0] else XP.zeros((n, n))


@of_scipy
def cosine(u: Any, v: Any) -> Any:
    """1 less the cosine of the angle between two vectors.

    >>> cosine([1.0, 0.0], [0.0, 1.0])
    np.float64(1.0)
    """
    return _cosine(XP.asarray(u), XP.asarray(v))


@of_scipy
def correlation(u: Any, v: Any) -> Any:
    """1 less the correlation of two vectors.

    >>> correlation([1.0, 2.0], [2.0, 1.0])
    np.float64(2.0)
    """
    return _correlation(XP.asarray(u), XP.asarray(v))


__getattr__ = others_of("scipy.spatial.distance")
