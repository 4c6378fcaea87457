"""Hypergeometric functions of one variable, and what they give without cancellation.

Slopes such as those of (exp(x) - 1)/x and log(x)/(1 - x) are quotients that vanish above and below at a point. As
hypergeometric functions they are accurate there and near it, in all orders of derivatives.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.ops.constructors import COMPLEXES, INEXACT, LINE
from fnad.ops.conversion import convert_to
from fnad.ops.formula import formula, word
from fnad.ops.special_function import POSITIVE, special
from fnad.scalar.scipy_ufunc import scipy_function

THREE = (POSITIVE, POSITIVE, POSITIVE)


def _hyp1f1(a: Any, b: Any, z: Any) -> Any:
    """SciPy's function, at 1e5 instead of larger z, where its series does not end and the value is infinite as well."""
    if z.dtype.kind == "f":
        grows = (np.abs(a) < 1e4) & (np.abs(b) < 1e4) & ((a > 0) | (a != np.floor(a))) & (a != b)  # if a = b: no series
        z = np.where(grows & (z > 1e5), z.dtype.type(1e5), z)
    return np.asarray(scipy_function("hyp1f1")(a, b, z), z.dtype)


def _lambertw(k: Any, tol: Any, z: Any) -> Any:
    return np.asarray(scipy_function("_lambertw")(z, k, tol), z.dtype)


word("scaled", lambda factor, y: convert_to(factor, y.dtype) * y)  # a real parameter times what may be complex

# fmt: off
hyp0f1 = special("hyp0f1(b, z)", "Confluent limit function 0F1(; b; z); DLMF 16.3.1.", (POSITIVE, LINE), domain=INEXACT,
                 z="scaled(1.0 / b, hyp0f1(b + 1.0, z))")
hyp1f1 = special("hyp1f1(a, b, z)", "Kummer's function M(a, b, z); DLMF 13.3.15.", (POSITIVE, POSITIVE, LINE),
                 domain=INEXACT, ufunc="hyp1f1", evaluate=_hyp1f1, z="scaled(a / b, hyp1f1(a + 1.0, b + 1.0, z))")
hyp2f1 = special("hyp2f1(a, b, c, z)", "Gauss's hypergeometric function F(a, b; c; z); DLMF 15.5.1.",
                 (*THREE, (-0.8, 0.8)), domain=INEXACT,
                 z="scaled(a * b / c, hyp2f1(a + 1.0, b + 1.0, c + 1.0, z))")
# Where a = 0 the function is 1 and U(1, b + 1, x) has a pole at x = 0.
hyperu = special("hyperu(a, b, x)", "Tricomi's function U(a, b, x); DLMF 13.3.22.", ((1.2, 1.8), (1.2, 1.8), POSITIVE),
                 edges=((0.0, 1.5, 0.0), (0.0, 1.5, 2.0), (0.0, 1.5, -1.0), (1.5, 0.5, 0.0)),
                 x="-strong_mul(select(isnan(y), nan, a), hyperu(a + 1.0, b + 1.0, x))")
spence = special("spence(z)", "The dilogarithm Li₂(1 - z); DLMF 25.12.2.", (POSITIVE,), domain=INEXACT,
                 z="-log1p_ratio(z - 1.0)")
exprel = special("exprel(x)", "(exp(x) - 1) / x; DLMF 13.3.15.", (LINE,), x="exprel_slope(x)")

formula("sinc(x)", "hyp0f1(1.5, x * x * -0.25)")  # sin(x) / x; DLMF 10.16.9
formula("sinhc(x)", "hyp0f1(1.5, x * x * 0.25)")  # sinh(x) / x; DLMF 10.39.9
formula("log1p_ratio(x)", "hyp2f1(1.0, 1.0, 2.0, -x)")  # log(1 + x) / x; DLMF 15.4.1
formula("log1p_ratio_slope(x)", "hyp2f1(2.0, 2.0, 3.0, -x) * -0.5")  # its derivative
formula("exprel_slope(x)", "hyp1f1(2.0, 3.0, x) * 0.5")  # the derivative of M(1, 2, x); DLMF 13.6.2

# ---- Lambert's W and Wright's functions --------------------------------------------------------------------------

lambertw = special("lambertw(k: int, tol, z)", "Branch k of Lambert's W to a tolerance: W exp(W) = z; DLMF 4.13.4.",
                   ((1e-10, 1e-10), POSITIVE), domain=COMPLEXES, evaluate=_lambertw, z="exp(-y) / (y + 1.0)")
wrightomega = special("wrightomega(z)", "Wright's function: ω + log ω = z; DLMF 4.13.", (LINE,), domain=INEXACT,
                      z="y / (y + 1.0)")
wright_bessel = special("wright_bessel(a, b, x)", "Wright's generalised Bessel function Φ(a, b; x); DLMF 10.46.1.",
                        THREE, x="wright_bessel(a, a + b, x)")
log_wright_bessel = special("log_wright_bessel(a, b, x)", "The logarithm of wright_bessel; DLMF 10.46.1.", THREE,
                            x="exp(log_wright_bessel(a, a + b, x) - y)")
# fmt: on
