"""Integrals of elementary functions: exponential, sine and cosine integrals, Fresnel's integrals.

A slope is the integrand. At the removable singularities of sin(x)/x and sinh(x)/x it is written as a hypergeometric
function, which has none.
"""

from __future__ import annotations

import math

from fnad.ir.symbol import Symbol
from fnad.ops.arithmetic import neg
from fnad.ops.comparison import gt, select
from fnad.ops.elementary import cos, cosh, exp, sin
from fnad.ops.hypergeometric import sinc, sinhc
from fnad.ops.kinds import INEXACT, LINE
from fnad.ops.library import POSITIVE, special
from fnad.ops.piecewise import maximum
from fnad.ops.shape import zeros_like

# ---- exponential integrals ---------------------------------------------------------------------------------------


def _expn_slope(y: Symbol, n: Symbol, x: Symbol) -> Symbol:
    """Return -E_{n-1}(x), which for n = 0 is -E₀(x) (1 + 1/x)."""
    zero = zeros_like(n)
    below = expn(maximum(n - 1.0, zero), x)
    return neg(select(gt(n, zero), below, y + y / x))


expi = special(
    "expi", "Exponential integral Ei(x); DLMF 6.2.5.", lambda y, x: exp(x) / x, domain=INEXACT, over=(POSITIVE,)
)
exp1 = special(
    "exp1",
    "Exponential integral E₁(x); DLMF 6.2.1.",
    lambda y, x: neg(exp(neg(x)) / x),
    domain=INEXACT,
    over=(POSITIVE,),
)
expn = special(
    "expn",
    "Exponential integral Eₙ(x) of integer order n >= 0; DLMF 8.19.13.",
    "n",
    _expn_slope,
    over=((2.0, 2.0), POSITIVE),
    edges=((0.0, 1.0), (1.0, 1.0), (3.0, 0.0)),
)

# ---- sine and cosine integrals -----------------------------------------------------------------------------------

si = special(
    "si", "Sine integral; DLMF 6.2.9.", lambda y, x: sinc(x), ufunc="sici", output=0, domain=INEXACT, over=(LINE,)
)
ci = special(
    "ci",
    "Cosine integral; DLMF 6.2.11.",
    lambda y, x: cos(x) / x,
    ufunc="sici",
    output=1,
    domain=INEXACT,
    over=(POSITIVE,),
)
shi = special(
    "shi",
    "Hyperbolic sine integral; DLMF 6.2.15.",
    lambda y, x: sinhc(x),
    ufunc="shichi",
    output=0,
    domain=INEXACT,
    over=(LINE,),
)
chi = special(
    "chi",
    "Hyperbolic cosine integral; DLMF 6.2.16.",
    lambda y, x: cosh(x) / x,
    ufunc="shichi",
    output=1,
    domain=INEXACT,
    over=(POSITIVE,),
)

# ---- Fresnel's integrals -----------------------------------------------------------------------------------------


def _phase(x: Symbol) -> Symbol:
    return x * x * (math.pi / 2)


fresnel_s = special(
    "fresnel_s", "∫ sin(πt²/2); DLMF 7.2.8.", lambda y, x: sin(_phase(x)), ufunc="fresnel", output=0, domain=INEXACT
)
fresnel_c = special(
    "fresnel_c", "∫ cos(πt²/2); DLMF 7.2.7.", lambda y, x: cos(_phase(x)), ufunc="fresnel", output=1, domain=INEXACT
)
