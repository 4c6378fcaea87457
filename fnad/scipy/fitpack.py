"""scipy.interpolate: FITPACK's splines of one and two variables, of data that may be traced, at traced points.

Splines that interpolate, or have knots that are given, depend on the data linearly; those that are smoothed choose
their knots by the values, and take constants.

>>> import fnad
>>> import numpy as np
>>> from scipy.interpolate import UnivariateSpline
>>> x = np.linspace(0.0, 4.0, 9)
>>> round(float(fnad.grad(UnivariateSpline(x, x**2))(1.5)), 6)
3.0
"""

from __future__ import annotations

from pkgutil import resolve_name
from types import SimpleNamespace
from typing import Any

import numpy as np

from fnad.errors import UnsupportedFunctionError
from fnad.numpy.bodies import XP, anew
from fnad.scipy.interpolate import (
    MODULE,
    around,
    blended,
    coefficients,
    de_boor,
    increasing,
    is_traced,
    knots_of,
    places,
    required,
    splev,
)
from fnad.scipy.rule import method_of

EXTRAPOLATIONS = {0: 0, "extrapolate": 0, 1: 1, "zeros": 1, 2: 2, "raise": 2, 3: 3, "const": 3}

# ---- of one variable -------------------------------------------------------------------------------------------------


def _evaluate(self: Any, x: Any, nu: int = 0, ext: Any = None) -> Any:
    if ext is not None and ext not in EXTRAPOLATIONS:
        raise ValueError(f"Unknown extrapolation mode {ext}.")
    if not 0 <= nu <= self._eval_args[2]:
        raise ValueError(f"0<=der={nu}<=k={self._eval_args[2]} must hold")
    return splev(x, self._eval_args, nu, self.ext if ext is None else EXTRAPOLATIONS[ext])


def _integral(self: Any, a: Any, b: Any) -> Any:
    """The integral, of 0 beyond the ends."""
    whole, k = anew(type(self).antiderivative)(self), self._eval_args[2]
    first, last = self._eval_args[0][k], self._eval_args[0][-k - 1]
    ends = (_held(XP.asarray(end), first, last) for end in (a, b))
    low, high = (splev(end, whole._eval_args) for end in ends)
    return high - low


def _derivatives(self: Any, x: Any) -> Any:
    (t, _, k), points = self._eval_args, XP.atleast_1d(XP.asarray(x))
    points = required(points, (points >= t[k]) & (points <= t[-k - 1]), "t(k)<=x<=t(n-k+1) must hold")
    found = XP.stack([splev(points, self._eval_args, nu) for nu in range(k + 1)], axis=1)
    return found[0] if len(points) == 1 else list(found)


def _held(x: Any, first: Any, last: Any) -> Any:
    """Points between the ends; at the ends the derivative is that within."""
    return XP.where(x < first, first, XP.where(x > last, last, x))


def _construct(self: Any, x: Any, y: Any, w: Any = None, bbox: Any = (None, None), k: int = 3, **options: Any) -> None:
    """A spline that takes the values y at x, whatever they weigh."""
    y = XP.asarray(y, dtype=np.float64)
    weights = None if w is None or is_traced(w) else w
    path = f"{MODULE}:InterpolatedUnivariateSpline.__init__"
    resolve_name(path)(self, places(x), np.zeros(y.shape), weights, bbox, k, **options)
    t = self._eval_args[0]
    if is_traced(x):
        x = increasing(XP.asarray(x, dtype=np.float64))
        t = knots_of(x, k)
    _set(self, t, coefficients(x, y, t, k), k)


def _set(self: Any, t: Any, c: Any, k: int) -> None:
    c = XP.concatenate([c, XP.zeros(k + 1)])
    self._eval_args = t, c, k
    self._data = (*self._data[:8], t, c, *self._data[10:])


def _smoothed(
    self: Any, x: Any, y: Any, w: Any = None, bbox: Any = (None, None), k: int = 3, s: Any = None, **options: Any
) -> None:
    if s is None or is_traced(s) or s != 0:
        raise UnsupportedFunctionError(
            "scipy.interpolate.UnivariateSpline of traced data has no rule for s > 0, which is the default",
            remedy="interpolate with s=0, or give knots to LSQUnivariateSpline",
        )
    _construct(self, x, y, w, bbox, k, **options)


def _least_squares(
    self: Any, x: Any, y: Any, t: Any, w: Any = None, bbox: Any = (None, None), k: int = 3, **options: Any
) -> None:
    y = XP.asarray(y, dtype=np.float64)
    path = f"{MODULE}:LSQUnivariateSpline.__init__"
    resolve_name(path)(self, x, np.zeros(y.shape), t, None if is_traced(w) else w, bbox, k, **options)
    knots = self._eval_args[0]
    rows = de_boor(knots, np.eye(len(knots) - k - 1), k, np.asarray(x, dtype=np.float64), 0)
    weights = XP.ones_like(y) if w is None else XP.asarray(w, dtype=np.float64)
    _set(self, knots, XP.linalg.lstsq(weights[:, None] * rows, weights * y)[0], k)


UnivariateSpline = SimpleNamespace(
    __init__=method_of(f"{MODULE}:UnivariateSpline.__init__")(_smoothed),
    __call__=method_of(f"{MODULE}:UnivariateSpline.__call__", "_eval_args")(_evaluate),
    derivatives=method_of(f"{MODULE}:UnivariateSpline.derivatives", "_eval_args")(_derivatives),
    integral=method_of(f"{MODULE}:UnivariateSpline.integral", "_eval_args")(_integral),
)
InterpolatedUnivariateSpline = SimpleNamespace(
    __init__=method_of(f"{MODULE}:InterpolatedUnivariateSpline.__init__")(_construct)
)
LSQUnivariateSpline = SimpleNamespace(__init__=method_of(f"{MODULE}:LSQUnivariateSpline.__init__")(_least_squares))


# ---- of two variables ------------------------------------------------------------------------------------------------


def _on_grid(self: Any, x: Any, y: Any, z: Any, *args: Any, **options: Any) -> None:
    z = XP.asarray(z, dtype=np.float64)
    resolve_name(f"{MODULE}:RectBivariateSpline.__init__")(self, x, y, np.zeros(z.shape), *args, **options)
    if (args[3] if len(args) > 3 else options.get("s", 0)) != 0:
        raise UnsupportedFunctionError(
            "scipy.interpolate.RectBivariateSpline of traced data has no rule for s > 0", remedy="interpolate with s=0"
        )
    (tx, ty, _), (kx, ky) = self.tck, self.degrees
    along_x = coefficients(np.asarray(x, dtype=np.float64), z, tx, kx)
    along_both = coefficients(np.asarray(y, dtype=np.float64), XP.transpose(along_x), ty, ky)
    self.tck = tx, ty, XP.ravel(XP.transpose(along_both))


def _evaluate_two(self: Any, x: Any, y: Any, dx: int = 0, dy: int = 0, grid: bool = True) -> Any:
    (tx, ty, c), (kx, ky) = self.tck, self.degrees
    points = [XP.asarray(given, dtype=np.float64) for given in (x, y)]
    if grid:
        points = [
            required(p, XP.all(XP.diff(p) >= 0), f"{name} must be strictly increasing when `grid` is True")
            for name, p in zip("xy", map(XP.ravel, points), strict=True)
        ]
    else:
        points = list(XP.broadcast_arrays(*points))
    x, y = (_held(XP.ravel(p), t[k], t[-k - 1]) for p, t, k in zip(points, (tx, ty), (kx, ky), strict=True))
    if grid:
        table = XP.reshape(c, (len(tx) - kx - 1, -1))
        return XP.transpose(de_boor(ty, XP.transpose(de_boor(tx, table, kx, x, dx)), ky, y, dy))
    (i, knots_x), (j, knots_y) = around(tx, kx, x), around(ty, ky, y)
    rows = []
    for n in range(ky + 1):
        at = [(i - kx + m) * (len(ty) - ky - 1) + j - ky + n for m in range(kx + 1)]
        rows.append(blended([XP.take(c, k) for k in at], knots_x, kx, x, dx))
    return XP.reshape(blended(rows, knots_y, ky, y, dy), points[0].shape)


_BivariateSplineBase = SimpleNamespace(
    __call__=method_of("scipy.interpolate._fitpack2:_BivariateSplineBase.__call__", "tck")(_evaluate_two)
)
RectBivariateSpline = SimpleNamespace(__init__=method_of(f"{MODULE}:RectBivariateSpline.__init__")(_on_grid))
