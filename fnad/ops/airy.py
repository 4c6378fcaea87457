"""Solutions of w'' = q w that come with their derivatives: Airy functions (q = x), parabolic cylinder functions."""

from __future__ import annotations

from collections.abc import Callable

from fnad.ir.primitive import Primitive, Rule
from fnad.ir.symbol import Symbol
from fnad.ops.arithmetic import mul
from fnad.ops.elementary import sqrt
from fnad.ops.kinds import INEXACT, LINE, UNIT
from fnad.ops.library import special
from fnad.ops.piecewise import maximum
from fnad.ops.shape import zeros_like

# ---- Airy --------------------------------------------------------------------------------------------------------


def _airy(name: str, output: int, doc: str, slope: Rule) -> Primitive:
    return special(name, f"{doc}; DLMF 9.2.1.", slope, ufunc="airy", output=output, domain=INEXACT, over=(LINE,))


airy_ai = _airy("airy_ai", 0, "Airy function Ai", lambda y, z: airy_ai_slope(z))
airy_ai_slope = _airy("airy_ai_slope", 1, "The derivative of Ai", lambda y, z: z * airy_ai(z))
airy_bi = _airy("airy_bi", 2, "Airy function Bi", lambda y, z: airy_bi_slope(z))
airy_bi_slope = _airy("airy_bi_slope", 3, "The derivative of Bi", lambda y, z: z * airy_bi(z))


def _positive_root(x: Symbol) -> Symbol:
    """Return the slope of the scale's logarithm: √x, 0 for x < 0, where Bi is not scaled and Ai is nan."""
    return sqrt(maximum(x, zeros_like(x)))


def _scaled_airy(name: str, output: int, doc: str, slope: Rule) -> Primitive:
    return special(name, f"{doc}; DLMF 9.2.1.", slope, ufunc="airye", output=output, over=(UNIT,))


airye_ai = _scaled_airy("airye_ai", 0, "exp(ζ) Ai(x)", lambda y, x: airye_ai_slope(x) + _positive_root(x) * y)
airye_ai_slope = _scaled_airy(
    "airye_ai_slope", 1, "exp(ζ) Ai'(x)", lambda y, x: x * airye_ai(x) + _positive_root(x) * y
)
airye_bi = _scaled_airy("airye_bi", 2, "exp(-ζ) Bi(x)", lambda y, x: airye_bi_slope(x) - _positive_root(x) * y)
airye_bi_slope = _scaled_airy(
    "airye_bi_slope", 3, "exp(-ζ) Bi'(x)", lambda y, x: x * airye_bi(x) - _positive_root(x) * y
)

# ---- parabolic cylinder ------------------------------------------------------------------------------------------


def _cylinder(
    name: str, ufunc: str, doc: str, stiffness: Callable[[Symbol, Symbol], Symbol]
) -> tuple[Primitive, Primitive]:
    """Declare a solution of w'' = stiffness(v, x) w and its derivative; they raise where v is too large for memory."""
    slope_name = f"{name}_slope"
    value = special(
        name,
        f"{doc}; DLMF 12.2.",
        "v",
        lambda y, v, x: slope(v, x),
        ufunc=ufunc,
        output=0,
        over=(UNIT, LINE),
        raises=True,
    )
    slope = special(
        slope_name,
        f"The derivative of {name}; DLMF 12.2.",
        "v",
        lambda y, v, x: mul(stiffness(v, x), value(v, x)),
        ufunc=ufunc,
        output=1,
        over=(UNIT, LINE),
        raises=True,
    )
    return value, slope


pbd, pbd_slope = _cylinder("pbd", "pbdv", "Parabolic cylinder function D", lambda v, x: 0.25 * x * x - v - 0.5)
pbv, pbv_slope = _cylinder("pbv", "pbvv", "Parabolic cylinder function V", lambda v, x: 0.25 * x * x - v - 0.5)
pbw, pbw_slope = _cylinder("pbw", "pbwa", "Parabolic cylinder function W", lambda v, x: v - 0.25 * x * x)
