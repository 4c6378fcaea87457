"""scipy.interpolate.RBFInterpolator of places, values and parameters that may be traced, at traced points.

The kernels are functions of the square of a distance, which has derivatives where points coincide. There the thin plate
spline has no second derivative, and that of a cubic is not found: they are nan.

>>> import fnad
>>> import numpy as np
>>> from scipy.interpolate import RBFInterpolator
>>> y = np.array([[0.0], [1.0], [3.0]])
>>> float(fnad.grad(lambda t: RBFInterpolator(y, [0.0, 2.0, 6.0])([[t]])[0])(1.5).round(12))
2.0
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from pkgutil import resolve_name
from types import SimpleNamespace
from typing import Any

import numpy as np

from fnad.errors import UnsupportedFunctionError
from fnad.numpy.bodies import XP
from fnad.scipy.interpolate import MODULE, is_traced
from fnad.scipy.rule import method_of


def _root(q: Any) -> Any:
    return XP.where(q == 0, q**1.5, XP.sqrt(XP.where(q == 0, 1.0, q)))


def _thin_plate(q: Any) -> Any:
    return XP.where(q == 0, q**1.5, q / 2 * XP.log(XP.where(q == 0, 1.0, q)))


KERNELS: dict[str, Callable[[Any], Any]] = {
    "linear": lambda q: -_root(q),
    "thin_plate_spline": _thin_plate,
    "cubic": lambda q: q**1.5,
    "quintic": lambda q: -(q**2.5),
    "multiquadric": lambda q: -XP.sqrt(q + 1),
    "inverse_multiquadric": lambda q: 1 / XP.sqrt(q + 1),
    "inverse_quadratic": lambda q: 1 / (q + 1),
    "gaussian": lambda q: XP.exp(-q),
}
"""By the square of a distance; what stands at 0 has the value and the first derivative there."""


def _squares(x: Any, y: Any, epsilon: Any) -> Any:
    return sum(((x[:, None, k] - y[None, :, k]) * epsilon) ** 2 for k in range(x.shape[1]))


def _monomials(self: Any, x: Any) -> Any:
    x = (x - self._shift) / self._scale
    found = []
    for powers in np.asarray(self.powers).tolist():
        factors = [x[:, k] ** power for k, power in enumerate(powers) if power]
        found.append(prod(factors[1:], start=factors[0]) if factors else XP.ones(x.shape[0]))
    return XP.stack(found, axis=1) if found else np.zeros((x.shape[0], 0))


def _construct(
    self: Any,
    y: Any,
    d: Any,
    neighbors: Any = None,
    smoothing: Any = 0.0,
    kernel: str = "thin_plate_spline",
    epsilon: Any = None,
    degree: Any = None,
) -> None:
    if neighbors is not None:
        raise _by_neighbors()
    y, d = XP.asarray(y, dtype=np.float64), XP.asarray(d, dtype=np.float64)
    numbers = np.random.default_rng(0).random(y.shape) if is_traced(y) else y
    resolve_name(f"{MODULE}:RBFInterpolator.__init__")(
        self,
        numbers,
        np.zeros(d.shape),
        smoothing=0.0 if is_traced(smoothing) else smoothing,
        kernel=kernel,
        epsilon=1.0 if is_traced(epsilon) else epsilon,
        degree=degree,
    )
    self.y, self.d = y, XP.reshape(d, (y.shape[0], -1))
    if is_traced(smoothing):
        self.smoothing = XP.broadcast_to(XP.asarray(smoothing, dtype=np.float64), (y.shape[0],))
    if is_traced(epsilon):
        self.epsilon = epsilon
    if is_traced(y):
        low, high = XP.min(y, axis=0), XP.max(y, axis=0)
        self._shift, self._scale = (high + low) / 2, XP.where(high == low, 1.0, (high - low) / 2)
    one, f = np.eye(y.shape[0]), KERNELS[self.kernel]
    values = XP.where(one, f(np.zeros(())), f(_squares(y, y, self.epsilon) + one))
    monomials = _monomials(self, y)
    rest = monomials.shape[1]
    above = XP.concatenate([values + XP.diag(self.smoothing), monomials], axis=1)
    below = XP.concatenate([XP.transpose(monomials), np.zeros((rest, rest))], axis=1)
    right = XP.concatenate([self.d, np.zeros((rest, self.d.shape[1]))])
    self._coeffs = XP.linalg.solve(XP.concatenate([above, below]), right)


def _evaluate(self: Any, x: Any) -> Any:
    if self.neighbors is not None:
        raise _by_neighbors()
    x = XP.asarray(x, dtype=np.float64)
    if x.ndim != 2:
        raise ValueError("`x` must be a 2-dimensional array.")
    if x.shape[1] != self.y.shape[1]:
        raise ValueError(f"Expected the second axis of `x` to have length {self.y.shape[1]}.")
    values = KERNELS[self.kernel](_squares(x, self.y, self.epsilon))
    found = XP.concatenate([values, _monomials(self, x)], axis=1) @ self._coeffs
    if np.dtype(self.d_dtype).kind == "c":
        found = found[:, ::2] + 1j * found[:, 1::2]
    return XP.reshape(found, (x.shape[0], *self.d_shape))


def _by_neighbors() -> Exception:
    return UnsupportedFunctionError(
        "scipy.interpolate.RBFInterpolator has no rule for neighbors=", remedy="leave it out, for all of the data"
    )


RBFInterpolator = SimpleNamespace(
    __init__=method_of(f"{MODULE}:RBFInterpolator.__init__")(_construct),
    __call__=method_of(f"{MODULE}:RBFInterpolator.__call__", "_coeffs")(_evaluate),
)
