"""Hypergeometric functions of one variable, and what they give without cancellation.

Slopes such as those of (exp(x) - 1)/x and log(x)/(1 - x) are quotients that vanish above and below at a point. As
hypergeometric functions they are accurate there and near it, in all orders of derivatives.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.ir.symbol import Symbol
from fnad.ir.types import real_dtype
from fnad.ops.arithmetic import neg, strong_mul
from fnad.ops.comparison import isnan, select
from fnad.ops.elementary import exp
from fnad.ops.kinds import COMPLEXES, INEXACT, LINE
from fnad.ops.library import NAN, POSITIVE, scaled, scipy_function, special
from fnad.ops.shape import full_like

hyp0f1 = special(
    "hyp0f1",
    "Confluent limit function 0F1(; b; z); DLMF 16.3.1.",
    "b",
    lambda y, b, z: scaled(1.0 / b, hyp0f1(b + 1.0, z)),
    domain=INEXACT,
    over=(POSITIVE, LINE),
)


def _hyp1f1(a: Any, b: Any, z: Any) -> Any:
    """Call SciPy at 1e5 in the place of larger z, where its series has no end and the value is as infinite."""
    if z.dtype.kind == "f":
        grows = (np.abs(a) < 1e4) & (np.abs(b) < 1e4) & ((a > 0) | (a != np.floor(a))) & (a != b)  # if a = b: no series
        z = np.where(grows & (z > 1e5), z.dtype.type(1e5), z)
    return np.asarray(scipy_function("hyp1f1")(a, b, z), z.dtype)


hyp1f1 = special(
    "hyp1f1",
    "Kummer's function M(a, b, z); DLMF 13.3.15.",
    "a",
    "b",
    lambda y, a, b, z: scaled(a / b, hyp1f1(a + 1.0, b + 1.0, z)),
    domain=INEXACT,
    over=(POSITIVE, POSITIVE, LINE),
    ufunc="hyp1f1",
    evaluate=_hyp1f1,
)
hyp2f1 = special(
    "hyp2f1",
    "Gauss's hypergeometric function F(a, b; c; z); DLMF 15.5.1.",
    "a",
    "b",
    "c",
    lambda y, a, b, c, z: scaled(a * b / c, hyp2f1(a + 1.0, b + 1.0, c + 1.0, z)),
    domain=INEXACT,
    over=(POSITIVE, POSITIVE, POSITIVE, (-0.8, 0.8)),
)


def _hyperu_slope(y: Symbol, a: Symbol, b: Symbol, x: Symbol) -> Symbol:
    """Return -a U(a + 1, b + 1, x); 0 for a = 0, where the function is 1 and U(1, b + 1, x) has a pole at x = 0."""
    return neg(strong_mul(select(isnan(y), full_like(a, NAN), a), hyperu(a + 1.0, b + 1.0, x)))


hyperu = special(
    "hyperu",
    "Tricomi's function U(a, b, x); DLMF 13.3.22.",
    "a",
    "b",
    _hyperu_slope,
    over=((1.2, 1.8), (1.2, 1.8), POSITIVE),
    edges=((0.0, 1.5, 0.0), (0.0, 1.5, 2.0), (0.0, 1.5, -1.0), (1.5, 0.5, 0.0)),
)


def sinc(x: Symbol) -> Symbol:
    """Return sin(x) / x (DLMF 10.16.9)."""
    return hyp0f1(_parameter(x, 1.5), x * x * -0.25)


def sinhc(x: Symbol) -> Symbol:
    """Return sinh(x) / x (DLMF 10.39.9)."""
    return hyp0f1(_parameter(x, 1.5), x * x * 0.25)


def log1p_ratio(x: Symbol) -> Symbol:
    """Return log(1 + x) / x (DLMF 15.4.1)."""
    return gauss(1.0, 1.0, 2.0, neg(x))


def log1p_ratio_slope(x: Symbol) -> Symbol:
    """Return the derivative of log(1 + x) / x."""
    return gauss(2.0, 2.0, 3.0, neg(x)) * -0.5


def gauss(a: float, b: float, c: float, z: Symbol) -> Symbol:
    """Return F(a, b; c; z) at constant parameters."""
    return hyp2f1(*[_parameter(z, parameter) for parameter in (a, b, c)], z)


def exprel_slope(x: Symbol) -> Symbol:
    """Return the derivative of (exp(x) - 1) / x = M(1, 2, x) (DLMF 13.6.2)."""
    return hyp1f1(full_like(x, 2.0), full_like(x, 3.0), x) * 0.5


def _parameter(z: Symbol, value: float) -> Symbol:
    return full_like(z.aval.with_dtype(real_dtype(z.dtype)), value)


spence = special(
    "spence",
    "The dilogarithm Li₂(1 - z); DLMF 25.12.2.",
    lambda y, z: neg(log1p_ratio(z - 1.0)),
    domain=INEXACT,
    over=(POSITIVE,),
)
exprel = special("exprel", "(exp(x) - 1) / x; DLMF 13.3.15.", lambda y, x: exprel_slope(x), over=(LINE,))

# ---- Lambert's W and Wright's functions --------------------------------------------------------------------------


def _lambertw(k: Any, tol: Any, z: Any) -> Any:
    return np.asarray(scipy_function("_lambertw")(z, k, tol), z.dtype)


lambertw = special(
    "lambertw",
    "Branch k of Lambert's W to a tolerance: W exp(W) = z; DLMF 4.13.4.",
    None,
    "tol",
    lambda w, k, tol, z: exp(neg(w)) / (w + 1.0),
    domain=COMPLEXES,
    over=((1e-10, 1e-10), POSITIVE),
    integers=1,
    evaluate=_lambertw,
)
wrightomega = special(
    "wrightomega",
    "Wright's function: ω + log ω = z; DLMF 4.13.",
    lambda y, z: y / (y + 1.0),
    domain=INEXACT,
    over=(LINE,),
)
wright_bessel = special(
    "wright_bessel",
    "Wright's generalised Bessel function Φ(a, b; x); DLMF 10.46.1.",
    "a",
    "b",
    lambda y, a, b, x: wright_bessel(a, a + b, x),
    over=(POSITIVE, POSITIVE, POSITIVE),
)
log_wright_bessel = special(
    "log_wright_bessel",
    "The logarithm of wright_bessel; DLMF 10.46.1.",
    "a",
    "b",
    lambda y, a, b, x: exp(log_wright_bessel(a, a + b, x) - y),
    over=(POSITIVE, POSITIVE, POSITIVE),
)
