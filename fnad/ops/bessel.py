"""Bessel functions and their kin: modified, scaled, spherical, Hankel and Kelvin functions.

Slopes follow from the recurrences in the order (DLMF 10.6, 10.29, 10.51) and, for functions that come together
with their derivatives, from the differential equation. In the order itself there is no formula.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from fnad.ir.primitive import Primitive
from fnad.ir.symbol import Symbol
from fnad.ops.arithmetic import neg, strong_mul
from fnad.ops.conversion import convert_to
from fnad.ops.kinds import COMPLEXES, INEXACT
from fnad.ops.library import scipy_call, special
from fnad.ops.piecewise import maximum, sign
from fnad.ops.shape import full_like, zeros_like

ORDER = (0.3, 2.0)
MIDDLE = (0.8, 4.0)
BOTH_SIDES = (-3.0, 3.0)

# ---- of order 0 and 1 --------------------------------------------------------------------------------------------


def second(family: Callable[..., Symbol], x: Symbol) -> Symbol:
    """Return the function of order 2, in which slopes at 0 are finite where those functions are."""
    return family(full_like(x, 2.0), x)


j0 = special("j0", "Bessel function J₀; DLMF 10.6.3.", lambda y, x: neg(j1(x)), over=(BOTH_SIDES,))
j1 = special("j1", "Bessel function J₁; DLMF 10.6.1.", lambda y, x: 0.5 * (j0(x) - second(jv, x)), over=(BOTH_SIDES,))
y0 = special("y0", "Bessel function Y₀; DLMF 10.6.3.", lambda y, x: neg(y1(x)), over=(MIDDLE,))
y1 = special("y1", "Bessel function Y₁; DLMF 10.6.2.", lambda y, x: y0(x) - y / x, over=(MIDDLE,))
i0 = special("i0", "Modified Bessel function I₀; DLMF 10.29.3.", lambda y, x: i1(x), over=(BOTH_SIDES,))
i1 = special(
    "i1", "Modified Bessel function I₁; DLMF 10.29.1.", lambda y, x: 0.5 * (i0(x) + second(iv, x)), over=(BOTH_SIDES,)
)
k0 = special("k0", "Modified Bessel function K₀; DLMF 10.29.3.", lambda y, x: neg(k1(x)), over=(MIDDLE,))
k1 = special("k1", "Modified Bessel function K₁; DLMF 10.29.2.", lambda y, x: neg(k0(x) + y / x), over=(MIDDLE,))
i0e = special("i0e", "exp(-|x|) I₀; DLMF 10.29.3.", lambda y, x: i1e(x) - sign(x) * y, over=(MIDDLE,))
i1e = special(
    "i1e", "exp(-|x|) I₁; DLMF 10.29.1.", lambda y, x: 0.5 * (i0e(x) + second(ive, x)) - sign(x) * y, over=(MIDDLE,)
)
k0e = special("k0e", "exp(x) K₀; DLMF 10.29.3.", lambda y, x: y - k1e(x), over=(MIDDLE,))
k1e = special("k1e", "exp(x) K₁; DLMF 10.29.2.", lambda y, x: y - k0e(x) - y / x, over=(MIDDLE,))

# ---- of any order ------------------------------------------------------------------------------------------------


def difference(family: Callable[..., Symbol], v: Symbol, x: Symbol) -> Symbol:
    return 0.5 * (family(v - 1.0, x) - family(v + 1.0, x))


def mean(family: Callable[..., Symbol], v: Symbol, x: Symbol) -> Symbol:
    return 0.5 * (family(v - 1.0, x) + family(v + 1.0, x))


jv = special(
    "jv",
    "Bessel function J; DLMF 10.6.1.",
    "v",
    lambda y, v, x: difference(jv, v, x),
    domain=INEXACT,
    over=(ORDER, MIDDLE),
)
yv = special(
    "yv",
    "Bessel function Y; DLMF 10.6.1.",
    "v",
    lambda y, v, x: difference(yv, v, x),
    domain=INEXACT,
    over=(ORDER, MIDDLE),
)
yn = special(
    "yn",
    "Bessel function Y of integer order; DLMF 10.6.1.",
    "n",
    lambda y, n, x: difference(yv, n, x),
    over=((2.0, 2.0), MIDDLE),
)
iv = special(
    "iv",
    "Modified Bessel function I; DLMF 10.29.1.",
    "v",
    lambda y, v, x: mean(iv, v, x),
    domain=INEXACT,
    over=(ORDER, MIDDLE),
)
kv = special(
    "kv",
    "Modified Bessel function K; DLMF 10.29.1.",
    "v",
    lambda y, v, x: neg(mean(kv, v, x)),
    domain=INEXACT,
    over=(ORDER, MIDDLE),
)
kn = special(
    "kn",
    "Modified Bessel function K of integer order; DLMF 10.29.1.",
    "n",
    lambda y, n, x: neg(mean(kv, n, x)),
    over=((2.0, 2.0), MIDDLE),
)
jve = special(
    "jve", "J of a real argument; DLMF 10.6.1.", "v", lambda y, v, x: difference(jve, v, x), over=(ORDER, MIDDLE)
)
yve = special(
    "yve", "Y of a real argument; DLMF 10.6.1.", "v", lambda y, v, x: difference(yve, v, x), over=(ORDER, MIDDLE)
)
ive = special(
    "ive", "exp(-|x|) I; DLMF 10.29.1.", "v", lambda y, v, x: mean(ive, v, x) - sign(x) * y, over=(ORDER, MIDDLE)
)
kve = special(
    "kve", "exp(x) K; DLMF 10.29.1.", "v", lambda y, v, x: y - mean(kve, v, x), domain=INEXACT, over=(ORDER, MIDDLE)
)


def _hankel(name: str, doc: str, turn: complex) -> Primitive:
    """Declare a Hankel function; `turn` is the slope of the logarithm of its scale."""

    def slope(y: Symbol, v: Symbol, z: Symbol) -> Symbol:
        change = difference(primitive, v, z)
        return change + turn * y if turn else change

    primitive = special(name, f"{doc}; DLMF 10.6.1.", "v", slope, domain=COMPLEXES, over=(ORDER, MIDDLE))
    return primitive


hankel1 = _hankel("hankel1", "Hankel function J + iY", 0.0)
hankel2 = _hankel("hankel2", "Hankel function J - iY", 0.0)
hankel1e = _hankel("hankel1e", "exp(-iz) (J + iY)", -1.0j)
hankel2e = _hankel("hankel2e", "exp(iz) (J - iY)", 1.0j)

# ---- spherical ---------------------------------------------------------------------------------------------------


class Spherical(NamedTuple):
    """A spherical Bessel function of integer order, and its slope as a function of its own: SciPy has both."""

    value: Primitive
    slope: Callable[[Symbol, Symbol], Symbol]


def _spherical(name: str, doc: str, formula: str, below: float, above: float) -> Spherical:
    """Declare a spherical Bessel function with slope (below n fₙ₋₁ + above (n+1) fₙ₊₁) / (2n+1)."""

    def slope(n: Symbol, z: Symbol) -> Symbol:
        order = convert_to(n, z.dtype)
        lower, upper = value(maximum(n - 1, zeros_like(n)), z), value(n + 1, z)
        return (strong_mul(below * order, lower) + above * (order + 1.0) * upper) / (2.0 * order + 1.0)

    value = special(
        name,
        f"{doc}; DLMF {formula}.",
        None,
        lambda y, n, z: slope(n, z),
        domain=INEXACT,
        over=(MIDDLE,),
        integers=1,
        ufunc=f"_{name}",
        evaluate=scipy_call(name),
    )
    return Spherical(value, slope)


spherical_jn = _spherical("spherical_jn", "Spherical function of the first kind", "10.51.1", 1.0, -1.0)
spherical_yn = _spherical("spherical_yn", "Spherical function of the second kind", "10.51.1", 1.0, -1.0)
spherical_in = _spherical("spherical_in", "Modified spherical function of the first kind", "10.51.5", 1.0, 1.0)
spherical_kn = _spherical("spherical_kn", "Modified spherical function of the second kind", "10.51.5", -1.0, -1.0)

# ---- Kelvin ------------------------------------------------------------------------------------------------------
# ber + i bei and ker + i kei solve x² w'' + x w' = i x² w (DLMF 10.61.3).

ber = special("ber", "Kelvin function ber.", lambda y, x: berp(x), over=(MIDDLE,))
bei = special("bei", "Kelvin function bei.", lambda y, x: beip(x), over=(MIDDLE,))
berp = special("berp", "The derivative of ber; DLMF 10.61.3.", lambda y, x: neg(bei(x) + y / x), over=(MIDDLE,))
beip = special("beip", "The derivative of bei; DLMF 10.61.3.", lambda y, x: ber(x) - y / x, over=(MIDDLE,))
ker = special("ker", "Kelvin function ker.", lambda y, x: kerp(x), over=(MIDDLE,))
kei = special("kei", "Kelvin function kei.", lambda y, x: keip(x), over=(MIDDLE,))
kerp = special("kerp", "The derivative of ker; DLMF 10.61.3.", lambda y, x: neg(kei(x) + y / x), over=(MIDDLE,))
keip = special("keip", "The derivative of kei; DLMF 10.61.3.", lambda y, x: ker(x) - y / x, over=(MIDDLE,))
