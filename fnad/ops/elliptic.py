"""Elliptic integrals in the parameter m = k², Jacobi's elliptic functions.

Their slopes in m are integrals of one family, of which the slopes are again (DLMF 19.2(ii)):

    G(φ, m; a, k) = ∫ sin(θ)**2a (1 - m sin²θ)**(-k-1/2) dθ over (0, φ),   ∂G/∂m = (k+1/2) G(φ, m; a+1, k+1)

F is G(0, 0), E is G(0, -1). With sin²θ = s² / (1 + t), s = sin φ, they are Carlson's integrals of any order. These are
positive, without the 0/0 at m = 0 and m = 1 of the recurrences among F and E (DLMF 19.4.4).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from fnad.ir.axes import Elementwise
from fnad.ir.primitive import Library, Partials, Sample
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval
from fnad.ops.carlson import integral
from fnad.ops.constructors import LINE, REALS, by_name, infer_elementwise, primitive, random_array
from fnad.ops.elementary import cos, sin, sqrt
from fnad.ops.formula import formula, word
from fnad.ops.power import constant_pow
from fnad.ops.special_function import special

Array: TypeAlias = Any

ANGLE_AND_PARAMETER = (LINE, (0.1, 0.9))


# ---- incomplete integrals of sines and deltas --------------------------------------------------------------------


def _delta_squared(phi: Symbol, m: Symbol) -> Symbol:
    """1 - m sin²φ, to full accuracy where it is small."""
    s, c = sin(phi), cos(phi)
    return c * c + (1.0 - m) * (s * s)


def _slope_in_angle(y: Symbol, phi: Symbol, m: Symbol, *, sines: int, deltas: int) -> Symbol:
    delta = _delta_squared(phi, m)
    return constant_pow(sin(phi), 2 * sines) / (constant_pow(delta, deltas) * sqrt(delta))


def _slope_in_parameter(y: Symbol, phi: Symbol, m: Symbol, *, sines: int, deltas: int) -> Symbol:
    return (deltas + 0.5) * elliptic_moment(phi, m, sines=sines + 1, deltas=deltas + 1)


def _infer(*avals: Aval, sines: int, deltas: int) -> Aval:
    return infer_elementwise("elliptic_moment", 2, REALS, None)(*avals)


def _samples() -> Iterable[Sample]:
    rng = np.random.default_rng(0)
    for dtype in by_name(REALS):
        for params in ({"sines": 1, "deltas": 0}, {"sines": 1, "deltas": 1}):
            yield Sample(tuple(random_array(rng, (2, 3), dtype, i) for i in ANGLE_AND_PARAMETER), params)
    phi = np.array([0.0, np.pi / 2, 2.0, 5.0, -20.0, 0.5, np.inf, 1.0])
    m = np.array([1.0, 0.0, 0.0, -0.5, 0.5, 1.5, 0.5, np.nan])
    yield Sample((phi, m), {"sines": 1, "deltas": 1}, smooth=False)


@primitive(
    _infer, Partials((_slope_in_angle, _slope_in_parameter)), Library(raises=False), _samples, axes=Elementwise()
)
def elliptic_moment(phi: Array, m: Array, *, sines: int, deltas: int) -> Any:
    """∫ sin(θ)**2a (1 - m sin²θ)**(-k-1/2) dθ over (0, φ), the params `sines` and `deltas` being a and k."""
    # G(φ, m) = G(ψ, m) + 2n G(π/2, m), with φ = ψ + nπ and n the nearest integer.
    with np.errstate(invalid="ignore"):
        angle, rest = np.asarray(phi, np.float64), 1 - np.asarray(m, np.float64)
        half_turns = np.rint(angle / np.pi)
        angle = angle - half_turns * np.pi
        s, c, one, zero = np.sin(angle), np.cos(angle), np.ones_like(rest), np.zeros_like(rest)
        powers = (0, deltas, sines - deltas)
        inner = s ** (2 * sines + 1) / 2 * integral(c * c, c * c + rest * s * s, one, powers=powers)
        complete = np.where(half_turns == 0, 0.0, half_turns * integral(zero, rest, one, powers=powers))
        return np.where(rest >= 0, inner + complete, np.nan).astype(m.dtype)


# fmt: off
# ---- complete integrals ------------------------------------------------------------------------------------------
# Carlson's integrals of 0, 1 - m and 1: those of K and E have no derivative in the first power.

formula("complete(rest, q, r)", "carlson(zeros_like(rest), rest, ones_like(rest), 0, q, r)")
ellipk = special("ellipk(m)", "Complete elliptic integral K(m); DLMF 19.25.1.", m="complete(1.0 - m, 1, 0) * 0.25")
ellipkm1 = special("ellipkm1(p)", "K(1 - p); DLMF 19.25.1.", edges=((1e-30,),), p="complete(p, 1, 0) * -0.25")
ellipe = special("ellipe(m)", "Complete elliptic integral E(m); DLMF 19.25.1.", m="complete(1.0 - m, 0, 1) * -0.25")

# ---- incomplete integrals ----------------------------------------------------------------------------------------

word("delta_squared", _delta_squared)
formula("ellipkinc_m(phi, m)", "0.5 * elliptic_moment(phi, m, sines=1, deltas=1)")
ellipkinc = special("ellipkinc(phi, m)", "Incomplete elliptic integral F(φ, m); DLMF 19.2.4.", ANGLE_AND_PARAMETER,
                    edges=((2.0, 0.0), (5.0, 0.5), (-20.0, 0.5)),
                    phi="1.0 / sqrt(delta_squared(phi, m))", m="ellipkinc_m(phi, m)")
ellipeinc = special("ellipeinc(phi, m)", "Incomplete elliptic integral E(φ, m); DLMF 19.2.5.", ANGLE_AND_PARAMETER,
                    edges=((2.0, 0.0),),
                    phi="sqrt(delta_squared(phi, m))", m="-0.5 * elliptic_moment(phi, m, sines=1, deltas=0)")

# ---- Jacobi's functions ------------------------------------------------------------------------------------------
# sn = sin φ, cn = cos φ, dn = Δ with F(φ, m) = u (DLMF 22.16.11), so ∂φ/∂m at constant u is -Δ ∂F/∂m.

jacobi = partial(special, over=ANGLE_AND_PARAMETER, edges=((0.0, 0.5), (0.5, 0.0), (0.0, 1.0)))

formula("amplitude_m(u, m)", "-(ellipj_dn(u, m) * ellipkinc_m(ellipj_ph(u, m), m))")
ellipj_sn = jacobi("ellipj_sn(u, m)", "Jacobi's elliptic function sn(u, m); DLMF 22.13.1.", ufunc="ellipj[0]",
                   u="ellipj_cn(u, m) * ellipj_dn(u, m)", m="ellipj_cn(u, m) * amplitude_m(u, m)")
ellipj_cn = jacobi("ellipj_cn(u, m)", "Jacobi's elliptic function cn(u, m); DLMF 22.13.2.", ufunc="ellipj[1]",
                   u="-(ellipj_sn(u, m) * ellipj_dn(u, m))", m="-(ellipj_sn(u, m) * amplitude_m(u, m))")
ellipj_dn = jacobi("ellipj_dn(u, m)", "Jacobi's elliptic function dn(u, m); DLMF 22.13.3.", ufunc="ellipj[2]",
    u="-(m * ellipj_sn(u, m) * ellipj_cn(u, m))",
    m="m * ellipj_sn(u, m) * ellipj_cn(u, m) * ellipkinc_m(ellipj_ph(u, m), m)"
      " - 0.5 * ellipj_sn(u, m) * ellipj_sn(u, m) / y")
ellipj_ph = jacobi("ellipj_ph(u, m)", "Jacobi's elliptic function ph(u, m); DLMF 22.16.3.", ufunc="ellipj[3]",
                   u="ellipj_dn(u, m)", m="amplitude_m(u, m)")
# fmt: on
