"""The derivative of a function along a direction, from its values alone, and how far it can be trusted.

Central differences with steps h and h/2, each of error O(h⁴): their distance is the error. Where the function can be
computed in complex numbers and is analytic, the imaginary part of f(x + ih u) / h is the derivative to the last digits;
that it is, the differences tell (`np.abs` is not). Differences from either side tell a kink, where there is no
derivative.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fnad.testing.numbers import SCALE, moved, precision, step

Array: TypeAlias = Any
Function: TypeAlias = Callable[..., Array]

KINK = "not smooth"
NOT_FINITE = "not finite"


class Truth(NamedTuple):
    """A derivative, the error to allow, and the method: "complex step" or "difference"."""

    value: Array
    allowed: float
    method: str


def derivative(f: Function, xs: Sequence[Array], us: Sequence[Array]) -> Truth | str:
    """The derivative of a function from arrays to one vector along `us`; where there is none, why."""
    with silent():
        try:
            return _derivative(f, xs, us)
        except Exception as error:  # noqa: BLE001 whatever the function raises beside the point
            return f"raises {type(error).__name__}"


def is_smooth(f: Function, xs: Sequence[Array], us: Sequence[Array], truth: Truth) -> bool:
    """True if derivatives along directions are linear in these: a sort of ties has some that are not."""
    vs = [np.roll(u, 1) * u.dtype.type(1 + i) for i, u in enumerate(us)]
    along, both = derivative(f, xs, vs), derivative(f, xs, [u + v for u, v in zip(us, vs, strict=True)])
    if not isinstance(along, Truth) or not isinstance(both, Truth):
        return False
    error = np.max(np.abs(truth.value + along.value - both.value), initial=0.0)
    return bool(error <= 10 * (truth.allowed + along.allowed + both.allowed))


@contextmanager
def silent() -> Generator[None]:
    """Without warnings: points are tried where a function need not be defined."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def scale_of(*vectors: Array) -> float:
    """The magnitude that errors are measured against."""
    return max(SCALE, *[float(np.max(np.abs(v), initial=0.0)) for v in vectors])


def _derivative(f: Function, xs: Sequence[Array], us: Sequence[Array]) -> Truth | str:
    y = np.asarray(f(*xs))
    h, _ = step(max(precision(x.dtype) for x in (*xs, y) if x.dtype.kind in "fc"), 1)
    at = {k: np.asarray(f(*moved(xs, (k * h, us)))) for k in (-2.0, -1.0, -0.5, 0.5, 1.0, 2.0)}
    if not all(np.isfinite(value).all() for value in (y, *at.values())):
        return NOT_FINITE
    coarse = (8 * (at[1] - at[-1]) - (at[2] - at[-2])) / (12 * h)
    fine = (8 * (at[0.5] - at[-0.5]) - (at[1] - at[-1])) / (6 * h)
    scale, rounding = scale_of(fine), 8 * precision(y.dtype) * scale_of(y) / h
    error = float(np.max(np.abs(coarse - fine), initial=0.0)) + rounding
    before, behind = (4 * at[0.5] - at[1] - 3 * y) / h, (3 * y - 4 * at[-0.5] + at[-1]) / h
    if np.max(np.abs(before - behind), initial=0.0) > 1e-3 * scale + 10 * rounding or error > 1e-3 * scale + rounding:
        return KINK
    exact = _complex_step(f, xs, us)
    if exact is not None and np.max(np.abs(exact - fine), initial=0.0) <= 1e-9 * scale + 10 * error:
        return Truth(exact, 1e-8 * scale, "complex step")
    return Truth(fine, 1e-6 * scale + 10 * error, "difference")


def _complex_step(f: Function, xs: Sequence[Array], us: Sequence[Array], h: float = 1e-30) -> Array | None:
    if any(x.dtype != np.float64 for x in xs):
        return None
    try:
        found: Any = np.asarray(f(*[x + 1j * h * u for x, u in zip(xs, us, strict=True)]))
    except Exception:  # noqa: BLE001 whatever a function does with complex numbers
        return None
    return found.imag / h if found.dtype.kind == "c" and np.isfinite(found).all() else None
