"""Integrals of elementary functions: exponential, sine and cosine integrals, Fresnel's integrals.

A slope is the integrand. At the removable singularities of sin(x)/x and sinh(x)/x it is written as a hypergeometric
function, which has none.
"""

from __future__ import annotations

from fnad.ops.constructors import INEXACT, LINE
from fnad.ops.special_function import POSITIVE, special

HALF = (POSITIVE,)

# fmt: off
expi = special("expi(x)", "Exponential integral Ei(x); DLMF 6.2.5.", HALF, domain=INEXACT, x="exp(x) / x")
exp1 = special("exp1(x)", "Exponential integral E₁(x); DLMF 6.2.1.", HALF, domain=INEXACT, x="-(exp(-x) / x)")
expn = special("expn(n, x)", "Exponential integral Eₙ(x) of integer order n >= 0; DLMF 8.19.13.",
               ((2.0, 2.0), POSITIVE), edges=((0.0, 1.0), (1.0, 1.0), (3.0, 0.0)),
               x="-select(gt(n, 0.0), expn(maximum(n - 1.0, 0.0), x), y + y / x)")  # E₋₁(x) = E₀(x) (1 + 1/x)
si = special("si(x)", "Sine integral; DLMF 6.2.9.", (LINE,), domain=INEXACT, ufunc="sici[0]", x="sinc(x)")
ci = special("ci(x)", "Cosine integral; DLMF 6.2.11.", HALF, domain=INEXACT, ufunc="sici[1]", x="cos(x) / x")
shi = special("shi(x)", "Hyperbolic sine integral; DLMF 6.2.15.", (LINE,), domain=INEXACT, ufunc="shichi[0]",
              x="sinhc(x)")
chi = special("chi(x)", "Hyperbolic cosine integral; DLMF 6.2.16.", HALF, domain=INEXACT, ufunc="shichi[1]",
              x="cosh(x) / x")
fresnel_s = special("fresnel_s(x)", "∫ sin(πt²/2); DLMF 7.2.8.", domain=INEXACT, ufunc="fresnel[0]",
                    x="sin(x * x * (pi / 2))")
fresnel_c = special("fresnel_c(x)", "∫ cos(πt²/2); DLMF 7.2.7.", domain=INEXACT, ufunc="fresnel[1]",
                    x="cos(x * x * (pi / 2))")
# fmt: on
