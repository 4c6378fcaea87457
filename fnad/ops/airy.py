"""Solutions of w'' = q w that come with their derivatives: Airy functions (q = x), parabolic cylinder functions."""

from __future__ import annotations

from functools import partial

from fnad.ops.constructors import INEXACT, LINE, UNIT
from fnad.ops.formula import formula
from fnad.ops.special_function import special

# fmt: off
# ---- Airy --------------------------------------------------------------------------------------------------------

airy = partial(special, over=(LINE,), domain=INEXACT)

airy_ai = airy("airy_ai(z)", "Airy function Ai; DLMF 9.2.1.", ufunc="airy[0]", z="airy_ai_slope(z)")
airy_ai_slope = airy("airy_ai_slope(z)", "The derivative of Ai; DLMF 9.2.1.", ufunc="airy[1]", z="z * airy_ai(z)")
airy_bi = airy("airy_bi(z)", "Airy function Bi; DLMF 9.2.1.", ufunc="airy[2]", z="airy_bi_slope(z)")
airy_bi_slope = airy("airy_bi_slope(z)", "The derivative of Bi; DLMF 9.2.1.", ufunc="airy[3]", z="z * airy_bi(z)")

# The slope of the scale's logarithm is √x, 0 for x < 0, where Bi is not scaled and Ai is nan.
formula("positive_root(x)", "sqrt(maximum(x, 0.0))")

airye_ai = special("airye_ai(x)", "exp(ζ) Ai(x); DLMF 9.2.1.", ufunc="airye[0]",
                   x="airye_ai_far(x, y, airye_ai_slope(x) + positive_root(x) * y)")
airye_ai_slope = special("airye_ai_slope(x)", "exp(ζ) Ai'(x); DLMF 9.2.1.", ufunc="airye[1]",
                         x="airye_ai_slope_far(x, y, x * airye_ai(x) + positive_root(x) * y)")
airye_bi = special("airye_bi(x)", "exp(-ζ) Bi(x); DLMF 9.2.1.", ufunc="airye[2]",
                   x="airye_bi_far(x, y, airye_bi_slope(x) - positive_root(x) * y)")
airye_bi_slope = special("airye_bi_slope(x)", "exp(-ζ) Bi'(x); DLMF 9.2.1.", ufunc="airye[3]",
                         x="airye_bi_slope_far(x, y, x * airye_bi(x) - positive_root(x) * y)")

# ---- parabolic cylinder ------------------------------------------------------------------------------------------
# They raise where v is too large for memory.

cylinder = partial(special, over=(UNIT, LINE), raises=True)

pbd = cylinder("pbd(v, x)", "Parabolic cylinder function D; DLMF 12.2.", ufunc="pbdv[0]", x="pbd_slope(v, x)")
pbd_slope = cylinder("pbd_slope(v, x)", "The derivative of pbd; DLMF 12.2.", ufunc="pbdv[1]",
                     x="(0.25 * x * x - v - 0.5) * pbd(v, x)")
pbv = cylinder("pbv(v, x)", "Parabolic cylinder function V; DLMF 12.2.", ufunc="pbvv[0]", x="pbv_slope(v, x)")
pbv_slope = cylinder("pbv_slope(v, x)", "The derivative of pbv; DLMF 12.2.", ufunc="pbvv[1]",
                     x="(0.25 * x * x - v - 0.5) * pbv(v, x)")
pbw = cylinder("pbw(v, x)", "Parabolic cylinder function W; DLMF 12.2.", ufunc="pbwa[0]", x="pbw_slope(v, x)")
pbw_slope = cylinder("pbw_slope(v, x)", "The derivative of pbw; DLMF 12.2.", ufunc="pbwa[1]",
                     x="(v - 0.25 * x * x) * pbw(v, x)")
# fmt: on
