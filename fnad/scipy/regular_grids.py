"""scipy.interpolate on rectilinear grids: values that may be traced, given at each point of a grid, at traced points.

A point at a place of the grid is in the cell above it, in the last one at the end: derivatives there are those on that
side. Those of `method="nearest"` with respect to the points are 0.

>>> import fnad
>>> import numpy as np
>>> from scipy.interpolate import RegularGridInterpolator
>>> f = RegularGridInterpolator(([0.0, 1.0, 3.0], [0.0, 1.0]), np.arange(6.0).reshape(3, 2))
>>> fnad.grad(lambda x: f(x)[0])(np.array([0.5, 0.5]))
array([2., 1.])
"""

from __future__ import annotations

from importlib import import_module
from itertools import product
from math import prod
from pkgutil import resolve_name
from types import SimpleNamespace
from typing import Any

import numpy as np

from fnad.errors import UnsupportedFunctionError
from fnad.numpy.bodies import XP
from fnad.scipy.interpolate import MODULE, get, increasing, is_traced, of_scipy, places, put, required
from fnad.scipy.rule import method_of
from fnad.upward import UPWARD

LOCAL = ("linear", "nearest")
"""Methods by which a value depends on the corners of a cell."""


def _construct(self: Any, points: Any, values: Any, method: str = "linear", *args: Any, **options: Any) -> None:
    values = XP.asarray(values)
    values = values if values.dtype.kind in "fc" else values.astype(np.float64)
    _check(self, method)
    resolve_name(f"{MODULE}:RegularGridInterpolator.__init__")(
        self, [places(x) for x in points], np.zeros(values.shape, values.dtype), method, *args, **options
    )
    if self._descending_dimensions:
        values = XP.flip(values, axis=self._descending_dimensions)
    put(self, "values", values)
    if is_traced(points):
        grid = zip(points, get(self, "grid"), strict=True)
        put(self, "grid", tuple(increasing(XP.asarray(x, float)) if is_traced(x) else found for x, found in grid))


def _check(self: Any, method: str) -> None:
    if method in self._ALL_METHODS and method not in LOCAL:
        raise UnsupportedFunctionError(
            f"scipy.interpolate.RegularGridInterpolator has no rule for method={method!r}",
            remedy="give method='linear' or 'nearest'",
        )


def _points(xi: Any, ndim: int) -> Any:
    """Points along a first axis, coordinates along the last one."""
    if isinstance(xi, tuple) and len(xi) == 1:
        xi = xi[0]
    xi = XP.stack(XP.broadcast_arrays(*xi), axis=-1) if isinstance(xi, tuple) else XP.asarray(xi)
    return (XP.reshape(xi, (-1, ndim)) if xi.ndim == 1 else xi).astype(np.float64)


def _evaluate(self: Any, xi: Any, method: str | None = None, *, nu: Any = None) -> Any:
    grid, values = get(self, "grid"), get(self, "values")
    n, method = len(grid), method or str(self.method)
    _check(self, method)
    if method not in LOCAL:
        raise ValueError(f"Method '{method}' is not defined")
    if nu is not None:
        raise ValueError(f"Can only compute derivatives for methods {self._SPLINE_METHODS_ndbspl}, got {method =}.")
    points = _points(xi, n)
    if points.shape[-1] != n:
        raise ValueError(
            f"The requested sample points xi have dimension {points.shape[-1]} but this "
            f"RegularGridInterpolator has dimension {n}"
        )
    flat = XP.reshape(points, (-1, n))
    beyond = np.zeros(flat.shape[0], bool)
    for i, x in enumerate(grid):
        inside = (flat[:, i] >= x[0]) & (flat[:, i] <= x[-1])
        if self.bounds_error:
            flat = required(flat, inside, f"One of the requested xi is out of bounds in dimension {i}")
        beyond = beyond | (flat[:, i] < x[0]) | (flat[:, i] > x[-1])
    corners, shares = zip(*[_cell(x, flat[:, i]) for i, x in enumerate(grid)], strict=True)
    tail, rows = (-1, *(1,) * (values.ndim - n)), XP.reshape(values, (-1, *values.shape[n:]))

    def at(*places: Any) -> Any:
        return XP.take(rows, sum(i * prod(values.shape[k:n]) for k, i in enumerate(places, 1)), axis=0)

    if method == "nearest":
        value = at(*[XP.where(share <= 0.5, *ends) for ends, share in zip(corners, shares, strict=True)])
    else:
        sides = [((low, 1 - share), (high, share)) for (low, high), share in zip(corners, shares, strict=True)]
        terms = [XP.reshape(prod(w for _, w in ends), tail) * at(*[i for i, _ in ends]) for ends in product(*sides)]
        value = sum(terms[1:], terms[0])
    value = XP.asarray(value)
    if not self.bounds_error and self.fill_value is not None:
        value = XP.where(XP.reshape(beyond, tail), XP.asarray(self.fill_value).astype(value.dtype), value)
    value = XP.where(XP.reshape(XP.any(XP.isnan(flat), axis=1), tail), value.dtype.type(np.nan), value)
    return XP.reshape(value, (*points.shape[:-1], *values.shape[n:]))


def _cell(x: Any, point: Any) -> tuple[tuple[Any, Any], Any]:
    """The two places that a point is between, or nearest to, and how far it is from one to the other."""
    if x.shape[0] == 1:
        return (XP.zeros(point.shape, int),) * 2, XP.zeros(point.shape)
    low = XP.clip(XP.searchsorted(x, point, side="right") - 1, 0, x.shape[0] - 2)
    start = XP.take(x, low)
    return (low, low + 1), (point - start) / (XP.take(x, low + 1) - start)


RegularGridInterpolator = SimpleNamespace(
    __init__=method_of(f"{MODULE}:RegularGridInterpolator.__init__")(_construct),
    __call__=method_of(f"{MODULE}:RegularGridInterpolator.__call__", "_values", "values", "_grid", "grid")(_evaluate),
)


@of_scipy
def interpn(
    points: Any, values: Any, xi: Any, method: str = "linear", bounds_error: bool = True, fill_value: Any = np.nan
) -> Any:
    """The value at points, of values at each point of a grid.

    >>> interpn(([0.0, 1.0, 3.0],), [0.0, 2.0, 3.0], [0.5, 2.0])
    array([1. , 2.5])
    """
    if method == "splinef2d":
        raise UnsupportedFunctionError(
            "scipy.interpolate.interpn has no rule for method='splinef2d'", remedy="give method='linear' or 'nearest'"
        )
    values = XP.asarray(values)
    kind = UPWARD.callee(import_module(MODULE).RegularGridInterpolator)
    made = kind(points, values, method, bounds_error, fill_value)
    return UPWARD.callee(made)(xi)
