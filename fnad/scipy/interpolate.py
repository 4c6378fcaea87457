"""scipy.interpolate: interpolants of traced values, given at traced places, at traced points.

>>> import fnad
>>> import numpy as np
>>> from scipy.interpolate import CubicSpline
>>> x = np.array([0.0, 1.0, 2.0, 3.0])
>>> float(fnad.grad(lambda t: CubicSpline(x, x**2)(t))(1.5))
3.0
"""

from __future__ import annotations

import math
from importlib import import_module
from pkgutil import resolve_name
from types import SimpleNamespace
from typing import Any

import numpy as np

from fnad.errors import UnsupportedFunctionError
from fnad.numpy.bodies import SUBSTITUTES, XP, anew
from fnad.numpy.namespace import follows
from fnad.numpy.operands import as_symbol
from fnad.ops.requirement import require
from fnad.scipy.rule import method_of, on_values, others_of
from fnad.upward import UPWARD

MODULE = "scipy.interpolate"
STATE = ("c", "_c", "x", "_x", "t", "_t")
"""The attributes of a SciPy object that may be traced."""

of_scipy = on_values(MODULE)


# ---- SciPy attributes objects, which versions name differently --------------------------------------------------


def _place(self: Any, name: str) -> tuple[Any, str]:
    """The object that has an attribute, from SciPy 1.18 on one that the user's passes on to, and its name there."""
    owner = getattr(self, "_delegate_to", None)
    owner = self if owner is None else owner
    return owner, f"_{name}" if hasattr(owner, f"_{name}") or hasattr(type(owner), f"_{name}") else name


def get(self: Any, name: str) -> Any:
    return getattr(*_place(self, name))


def put(self: Any, name: str, value: Any) -> None:
    owner, place = _place(self, name)
    setattr(owner, place, value)
    if owner is not self:
        self._xp = self._xp_internal = XP
    elif hasattr(self, "_asarray") or hasattr(type(self), "_asarray"):
        self._asarray = XP.asarray


# ---- piecewise polynomials -------------------------------------------------------------------------------------------


def _prepared(x: Any, y: Any, axis: int, dydx: Any = None, xp: Any = None) -> tuple[Any, Any, Any, int, Any]:
    """Samples as SciPy's classes take them, without a look at the values."""
    x, y = _inexact(XP.asarray(x)), XP.asarray(y)
    axis = axis % y.ndim
    if x.ndim != 1 or x.shape[0] < 2 or x.shape[0] != y.shape[axis]:
        raise ValueError(f"The length of `y` along `axis`={axis} doesn't match the length of `x`")
    x = increasing(x)
    spaces = XP.diff(x)
    slopes = None if dydx is None else XP.moveaxis(_inexact(XP.asarray(dydx)), axis, 0)
    return x, spaces, XP.moveaxis(_inexact(y), axis, 0), axis, slopes


def increasing(x: Any) -> Any:
    return required(x, XP.diff(x) > 0, "`x` must be strictly increasing sequence.", INCREASING)


def _inexact(y: Any) -> Any:
    return y.astype(np.complex128 if y.dtype.kind == "c" else np.float64)


SUBSTITUTES["prepare_input"] = _prepared


def _slopes(m: Any, method: str) -> Any:
    """Akima's slopes at places, from those of the lines between them and of two more at each end."""
    change = XP.abs(XP.diff(m, axis=0))
    if method == "makima":
        size = XP.abs(m[1:] + m[:-1]) / 2
        after, before = change[2:] + size[2:], change[:-2] + size[:-2]
    else:
        after, before = change[2:], change[:-2]
    both = after + before
    has_one = both > 1e-9 * XP.max(both)
    share = before / XP.where(has_one, both, 1.0)
    return XP.where(has_one, m[1:-2] + share * (m[2:-1] - m[1:-2]), (m[3:] + m[:-3]) / 2)


def _akima(self: Any, x: Any, y: Any, axis: int = 0, *, method: str = "akima", extrapolate: bool | None = None) -> None:
    if method not in ("akima", "makima"):
        raise NotImplementedError(f"`method`={method} is unsupported.")
    x, spaces, y, axis, _ = _prepared(x, y, axis)
    if y.dtype.kind == "c":
        raise ValueError("`Akima1DInterpolator` only works with real values for `y`.")
    m = XP.diff(y, axis=0) / XP.reshape(spaces, (-1, *(1,) * (y.ndim - 1)))
    if y.shape[0] == 2:
        slopes = XP.concatenate([m, m])
    else:
        for _ in range(2):
            m = XP.concatenate([2 * m[:1] - m[1:2], m, 2 * m[-1:] - m[-2:-1]])
        slopes = _slopes(m, method)
    hermite = anew(resolve_name(f"{MODULE}:CubicHermiteSpline.__init__"))  # type: ignore[arg-type]
    hermite(self, x, y, slopes, 0, False if extrapolate is None else extrapolate)
    self.axis = axis


Akima1DInterpolator = SimpleNamespace(__init__=method_of(f"{MODULE}:Akima1DInterpolator.__init__")(_akima))


def _begin(self: Any) -> None:
    """Make what a piecewise polynomial passes on to, where SciPy's do so."""
    if hasattr(type(self), "_construct_from_xp"):
        self._delegate_to = object.__new__(import_module(f"{MODULE}._interpolate")._PPoly)


def _construct(self: Any, c: Any, x: Any, extrapolate: Any = None, axis: int = 0) -> None:
    c = _inexact(XP.asarray(c))
    if axis:
        c = XP.moveaxis(XP.moveaxis(c, axis + 1, 0), axis + 1, 0)
    _begin(self)
    put(self, "c", c)
    put(self, "x", XP.asarray(x, dtype=np.float64))
    self.extrapolate = True if extrapolate is None else extrapolate if extrapolate == "periodic" else bool(extrapolate)
    self.axis = axis


def _evaluate(self: Any, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
    """The value at points, or a derivative there."""
    if not isinstance(self, import_module(MODULE).PPoly):
        raise UnsupportedFunctionError(f"scipy.interpolate.{type(self).__name__} has no rule for traced values")
    points, ends, c = XP.asarray(x), get(self, "x"), get(self, "c")
    flat, limits = _limited(self, XP.ravel(points), extrapolate, ends[0], ends[-1])
    at = _interval(ends, flat)
    step = XP.reshape(flat - XP.take(ends, at), (-1, *(1,) * (c.ndim - 2)))
    value, degree = XP.zeros((flat.shape[0], *c.shape[2:])), c.shape[0] - 1
    for i in range(degree + 1 - nu):
        value = value * step + math.perm(degree - i, nu) * XP.take(c[i], at, axis=0)
    return _arranged(outside_nan(value, flat, limits), points, self.axis)


def _interval(ends: Any, x: Any) -> Any:
    """The number of the interval that a point is in; the first and the last one reach to infinity."""
    last = ends.shape[0] - 2
    if is_traced(ends) or ends[0] <= ends[-1]:  # those that are traced increase
        return XP.clip(XP.searchsorted(ends, x, side="right") - 1, 0, last)
    return last - XP.clip(XP.searchsorted(ends[::-1], x, side="left") - 1, 0, last)


def _limited(self: Any, x: Any, extrapolate: Any, first: Any, last: Any) -> tuple[Any, tuple[Any, Any] | None]:
    """Points within the period, and between which limits there are values, if there are limits."""
    extrapolate = self.extrapolate if extrapolate is None else extrapolate
    if isinstance(extrapolate, str):
        return first + (x - first) % (last - first), None
    return x, None if extrapolate else (XP.minimum(first, last), XP.maximum(first, last))


def outside_nan(value: Any, x: Any, limits: tuple[Any, Any] | None) -> Any:
    if limits is None:
        return value
    inside = XP.reshape((x >= limits[0]) & (x <= limits[1]), (-1, *(1,) * (value.ndim - 1)))
    return XP.where(inside, value, np.nan)


def _arranged(value: Any, points: Any, axis: int) -> Any:
    """The values with the axes of the points in the place of the axis along which was interpolated."""
    value, n = XP.reshape(value, points.shape + value.shape[1:]), points.ndim
    order = list(range(value.ndim))
    return XP.transpose(value, order[n : n + axis] + order[:n] + order[n + axis :]) if axis else value


def _polynomial(like: Any, c: Any) -> Any:
    kind = import_module(MODULE).PPoly
    made = object.__new__(kind)
    _begin(made)
    put(made, "c", c)
    put(made, "x", get(like, "x"))
    made.extrapolate, made.axis = like.extrapolate, like.axis
    return made


def _derivative(self: Any, nu: int = 1) -> Any:
    if nu < 0:
        return _antiderivative(self, -nu)
    c = get(self, "c")
    degree = c.shape[0] - 1
    if nu > degree:
        return _polynomial(self, XP.zeros_like(c[:1]))
    return _polynomial(self, XP.stack([math.perm(degree - i, nu) * c[i] for i in range(degree + 1 - nu)]))


def _antiderivative(self: Any, nu: int = 1) -> Any:
    if nu <= 0:
        return _derivative(self, -nu)
    c, ends = get(self, "c"), get(self, "x")
    size = c.shape[0]
    rows = [c[i] / (size - i) for i in range(size)]
    step = XP.reshape(XP.diff(ends), (-1, *(1,) * (c.ndim - 2)))
    over = sum((row * step ** (size - i) for i, row in enumerate(rows[1:], 1)), rows[0] * step**size)
    starts = XP.concatenate([XP.zeros((1, *c.shape[2:])), XP.cumsum(over, axis=0)[:-1]])
    whole = _polynomial(self, XP.stack([*rows, starts]))
    whole.extrapolate = False if self.extrapolate == "periodic" else self.extrapolate
    return whole if nu == 1 else _antiderivative(whole, nu - 1)


def _integral(self: Any, a: Any, b: Any, extrapolate: Any = None) -> Any:
    extrapolate = self.extrapolate if extrapolate is None else extrapolate
    if isinstance(extrapolate, str):
        raise UnsupportedFunctionError(
            "scipy.interpolate.PPoly.integrate has no rule for extrapolate='periodic'",
            remedy="take the difference of antiderivative() within a period",
        )
    whole = _antiderivative(self)
    return _evaluate(whole, b, 0, extrapolate) - _evaluate(whole, a, 0, extrapolate)


PPoly = SimpleNamespace(
    __call__=method_of(f"{MODULE}:PPoly.__call__", *STATE)(_evaluate),
    __init__=method_of(f"{MODULE}:PPoly.__init__")(_construct),
    derivative=method_of(f"{MODULE}:PPoly.derivative", *STATE)(_derivative),
    antiderivative=method_of(f"{MODULE}:PPoly.antiderivative", *STATE)(_antiderivative),
    integrate=method_of(f"{MODULE}:PPoly.integrate", *STATE)(_integral),
)


# ---- B-splines -------------------------------------------------------------------------------------------------------


def de_boor(t: Any, c: Any, k: int, x: Any, nu: int) -> Any:
    """A spline of degree k at points, or a derivative there."""
    interval, knots = around(t, k, x)
    return blended([XP.take(c, interval - k + j, axis=0) for j in range(k + 1)], knots, k, x, nu)


def around(t: Any, k: int, x: Any) -> tuple[Any, dict[int, Any]]:
    """The interval between knots that points are in, and the knots that splines of degree k depend on there."""
    t, n = XP.asarray(t), np.shape(t)[0] - k - 1
    interval = XP.clip(XP.searchsorted(t, x, side="right") - 1, k, n - 1)
    return interval, {j: XP.take(t, interval + j) for j in range(1 - k, k + 1)}


def blended(rows: list[Any], knots: dict[int, Any], k: int, x: Any, nu: int) -> Any:
    """A spline of the coefficients that count (de Boor, "A Practical Guide to Splines", X.13, X.15)."""
    tail = (1,) * (rows[0].ndim - 1)
    for r in range(1, min(nu, k) + 1):
        width = [knots[j] - knots[j - k + r - 1] for j in range(1, k - r + 2)]
        rows = [
            (k - r + 1) * (b - a) / XP.reshape(w, (-1, *tail)) for a, b, w in zip(rows, rows[1:], width, strict=False)
        ]
    if nu > k:
        return XP.zeros_like(rows[0])
    for r in range(1, k - nu + 1):
        low = [knots[j - (k - nu) + r] for j in range(k - nu - r + 1)]
        high = [knots[j + 1] for j in range(k - nu - r + 1)]
        shares = [XP.reshape((x - a) / (b - a), (-1, *tail)) for a, b in zip(low, high, strict=True)]
        rows = [(1 - s) * a + s * b for s, a, b in zip(shares, rows, rows[1:], strict=False)]
    return rows[0]


def _evaluate_spline(self: Any, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
    points, t, c, k = XP.asarray(x), get(self, "t"), get(self, "c"), self.k
    flat, limits = _limited(self, XP.ravel(points), extrapolate, t[k], t[-k - 1])
    return _arranged(outside_nan(de_boor(t, c, k, flat, nu), flat, limits), points, self.axis)


BSpline = SimpleNamespace(__call__=method_of(f"{MODULE}:BSpline.__call__", *STATE)(_evaluate_spline))


def is_traced(value: Any) -> bool:
    return UPWARD.has_traced(value)


def places(x: Any) -> Any:
    """The places of given values: as they are, or with numbers in place of traced values."""
    return np.arange(float(np.shape(x)[0])) if is_traced(x) else np.asarray(x, dtype=float)


def knots_of(x: Any, k: int) -> Any:
    """SciPy's knots: places between the ends without those nearest to them, in between for even degrees; the ends."""
    if k == 0:
        return XP.concatenate([x, x[-1:]])
    half, inner = ((k + 1) // 2, x) if k % 2 else (k // 2, (x[1:] + x[:-1]) / 2)
    return XP.concatenate([x[:1]] * (k + 1) + [inner[half:-half]] + [x[-1:]] * (k + 1))


def _solved(matrix: Any, y: Any) -> Any:
    return XP.reshape(XP.linalg.solve(matrix, XP.reshape(y, (y.shape[0], -1))), y.shape)


def coefficients(x: Any, y: Any, t: Any, k: int) -> Any:
    """The coefficients of the spline with these knots that takes these values, which solve a banded system."""
    if is_traced((x, t)):
        return _solved(de_boor(t, np.eye(np.shape(x)[0]), k, x, 0), y) if k else y
    matrix = import_module(MODULE).BSpline.design_matrix(x, t, k).toarray()
    n = matrix.shape[0]
    bands = np.zeros((2 * k + 1, n))
    for below in range(-k, k + 1):
        diagonal = np.diagonal(matrix, -below)
        start = max(-below, 0)
        bands[k + below, start : start + diagonal.shape[0]] = diagonal
    columns = XP.reshape(y, (n, math.prod(y.shape[1:])))
    return XP.reshape(import_module("fnad.scipy.linalg").solve_banded((k, k), bands, columns), y.shape)


def _fit(spline: Any, x: Any, y: Any) -> None:
    """Have a spline of SciPy's take the values y at x."""
    if is_traced(x):
        x = increasing(_inexact(x))
        put(spline, "t", knots_of(x, spline.k))
    put(spline, "c", coefficients(x, y, get(spline, "t"), spline.k))


@of_scipy
def make_interp_spline(x: Any, y: Any, k: int = 3, axis: int = 0) -> Any:
    """The spline of degree k that takes the values y at x, with SciPy's knots.

    >>> float(make_interp_spline([0.0, 1.0, 2.0], [0.0, 1.0, 4.0], k=2)(1.5))
    2.25
    """
    y = XP.moveaxis(_inexact(XP.asarray(y)), axis, 0)
    x = XP.asarray(x)
    spline = resolve_name("scipy.interpolate.make_interp_spline")(places(x), np.zeros(y.shape, y.dtype), k)
    _fit(spline, x, y)
    spline.axis = axis % y.ndim
    return spline


@of_scipy
def splrep(x: Any, y: Any, k: int = 3, s: Any = None) -> Any:
    """Knots, coefficients and degree of the spline that takes the values y at x; a smoothing one (s > 0) has no rule.

    >>> t, c, k = splrep([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 4.0, 9.0])
    >>> t.shape, k
    ((8,), 3)
    """
    if s:
        raise UnsupportedFunctionError("scipy.interpolate.splrep has no rule for s > 0", remedy="interpolate with s=0")
    x, y = _inexact(XP.asarray(x)), _inexact(XP.asarray(y))
    if is_traced(x):
        x = increasing(x)
        t = knots_of(x, k)
    else:
        t, _, _ = resolve_name("scipy.interpolate.splrep")(x, np.zeros(x.shape), k=k, s=0)
    return t, XP.concatenate([coefficients(x, y, t, k), XP.zeros(k + 1)]), k


@of_scipy
def splev(x: Any, tck: Any, der: int = 0, ext: int = 0) -> Any:
    """The spline of knots, coefficients and a degree at points, or a derivative there.

    >>> splev(1.5, splrep([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 4.0, 9.0]))
    array(2.25)
    """
    if not isinstance(tck, (tuple, list)):
        tck = get(tck, "t"), get(tck, "c"), tck.k
    t, c, k = tck
    if isinstance(c, (list, tuple)) and np.ndim(c[0]):
        return [_splev(x, t, part, k, der, ext) for part in c]
    return _splev(x, t, c, k, der, ext)


def _splev(x: Any, t: Any, c: Any, k: int, der: int, ext: int) -> Any:
    points, t = XP.asarray(x), XP.asarray(t)
    flat, first, last = XP.ravel(points), t[k], t[-k - 1]
    if ext == 3:
        flat = XP.clip(flat, first, last)
    inside = (flat >= first) & (flat <= last)
    if ext == 2:
        flat = required(flat, inside, "Found x value not in the domain")
    value = de_boor(t, XP.asarray(c), k, flat, der)
    return XP.reshape(XP.where(inside, value, 0.0) if ext == 1 else value, points.shape)


BETWEEN = "take points between the ends"
INCREASING = "sort x, and y with it: i = np.argsort(x), x[i], y[i]"


def _require(x: Any, condition: Any, message: str, remedy: str = BETWEEN) -> Any:
    return require(as_symbol(x), as_symbol(condition), message=message, remedy=remedy)


@follows(_require)
def required(x: Any, condition: Any, message: str, remedy: str = BETWEEN) -> Any:
    """Points, where they have to meet a condition."""
    if not np.all(condition):
        raise ValueError(message)
    return x


# ---- interp1d --------------------------------------------------------------------------------------------------------


def _interp1d(self: Any, x: Any, y: Any, kind: Any = "linear", axis: int = -1, **options: Any) -> None:
    y = XP.asarray(y)
    y = y if y.dtype.kind in "fc" else y.astype(np.float64)
    x = XP.asarray(x)
    resolve_name(f"{MODULE}:interp1d.__init__")(self, places(x), np.zeros(y.shape, y.dtype), kind, axis, **options)
    if kind in ("previous", "next") and isinstance(options.get("fill_value"), str):
        raise UnsupportedFunctionError(
            f"scipy.interpolate.interp1d of traced values has no rule for kind={kind!r} that extrapolates",
            remedy="give fill_value=(below, above)",
        )
    if not options.get("assume_sorted", False):
        order = XP.argsort(x, kind="stable")
        x, y = XP.take(x, order), XP.take(y, order, axis=axis)
    self.y = y
    self._y = XP.reshape(XP.moveaxis(y, self._y_axis, 0), (x.shape[0], -1))
    if is_traced(x):
        self.x = x
        _place_kinds(self)
    if hasattr(self, "_spline"):
        _fit(self._spline, self.x, self._y)


def _place_kinds(self: Any) -> None:
    """The places where the values of steps change, from the given places."""
    if hasattr(self, "x_bds"):
        self.x_bds = (self.x[1:] + self.x[:-1]) / 2.0
    if hasattr(self, "_x_shift"):
        self._x_shift = XP.nextafter(self.x, np.inf if self._kind == "next" else -np.inf)


def _interpolated(self: Any, x: Any) -> Any:
    module, points = import_module(MODULE), XP.asarray(x)
    flat = XP.ravel(points)
    if isinstance(self, module.interp1d):
        value = _between(self, flat)
    elif isinstance(self, module.BarycentricInterpolator):
        value = _lagrange(self, flat)
    elif isinstance(self, module.KroghInterpolator):
        value = anew(resolve_name(f"{MODULE}:KroghInterpolator._evaluate"))(self, flat)  # type: ignore[arg-type]
    else:
        raise UnsupportedFunctionError(f"scipy.interpolate.{type(self).__name__} has no rule for traced values")
    return self._finish_y(value, points.shape)


def _between(self: Any, flat: Any) -> Any:
    if not self._extrapolate and self.bounds_error:
        inside = (flat >= self.x[0]) & (flat <= self.x[-1])
        flat = required(flat, inside, "A value in x_new is outside the interpolation range.")
    value = _kinds(self, flat)
    if not self._extrapolate:
        value = XP.where((flat < self.x[0])[:, None], self._fill_value_below, value)
        value = XP.where((flat > self.x[-1])[:, None], self._fill_value_above, value)
    return value


def _lagrange(self: Any, x: Any) -> Any:
    """Σ w_i y_i Π (x - x_j) over Σ w_i Π (x - x_j), j ≠ i: SciPy divides both by Π (x - x_j), which is 0 at a place."""
    factors = [(x - place) * (4 / np.ptp(self.xi)) for place in self.xi]
    weights: list[Any] = list(self.wi)
    for order in (range(self.n), range(self.n - 1, -1, -1)):
        product = XP.ones_like(x)
        for i in order:
            weights[i] = weights[i] * product
            product = product * factors[i]
    terms = [weight[:, None] * row for weight, row in zip(weights, self.yi, strict=True)]
    return XP.sum(XP.stack(terms), axis=0) / XP.sum(XP.stack(weights), axis=0)[:, None]


def _kinds(self: Any, x: Any) -> Any:
    """The values at points along one axis, without regard to the ends."""
    y, last = self._y, self.x.shape[0] - 1
    match self._kind:
        case "spline":
            return _evaluate_spline(self._spline, x)
        case "linear":
            hi = XP.clip(XP.searchsorted(self.x, x), 1, last)
            low, high = XP.take(y, hi - 1, axis=0), XP.take(y, hi, axis=0)
            start = XP.take(self.x, hi - 1)
            return (high - low) / (XP.take(self.x, hi) - start)[:, None] * (x - start)[:, None] + low
        case "nearest" | "nearest-up":
            at = XP.clip(XP.searchsorted(self.x_bds, x, side=self._side), 0, last)
        case _:
            found = XP.searchsorted(self._x_shift, x, side=self._side)
            at = XP.clip(found, 1 - self._ind, last + 1 - self._ind) + self._ind - 1
    return XP.take(y, at, axis=0)


interp1d = SimpleNamespace(__init__=method_of(f"{MODULE}:interp1d.__init__")(_interp1d))


POLYINT = "scipy.interpolate._polyint"

_Interpolator1D = SimpleNamespace(
    __call__=method_of(f"{POLYINT}:_Interpolator1D.__call__", "_y", "x", "yi", "c")(_interpolated),
)

__getattr__ = others_of("scipy.interpolate")
