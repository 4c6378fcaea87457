"""Elliptic integrals in the parameter m = k², Carlson's symmetric forms, Jacobi's elliptic functions.

Complete integrals are hypergeometric functions (DLMF 19.5.1, 19.5.2), whose slopes have no 0/0 at m = 0. Incomplete
ones have slopes in D(φ, m) = (F - E)/m, which Carlson's R_D gives without cancellation (DLMF 19.25.13).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fnad.ir.primitive import Primitive, Rule
from fnad.ir.symbol import Symbol
from fnad.ops.arithmetic import neg, strong_mul
from fnad.ops.comparison import lt, select
from fnad.ops.elementary import cos, sin, sqrt
from fnad.ops.hypergeometric import gauss
from fnad.ops.kinds import LINE
from fnad.ops.library import scipy_function, special
from fnad.ops.shape import full_like, ones_like

# ---- Carlson's forms ---------------------------------------------------------------------------------------------


def _rd_slope(y: Symbol, x: Symbol, other: Symbol, z: Symbol) -> Symbol:
    """Return ∂R_D/∂x for x ≠ z, from partial fractions of its integrand."""
    return -0.5 * (elliprd(other, z, x) - y) / (z - x)


def _rd_last_slope(y: Symbol, x: Symbol, u: Symbol, z: Symbol) -> Symbol:
    """Return ∂R_D/∂z, from those in x and u, for R_D is homogeneous of degree -3/2 (DLMF 19.20.18)."""
    rest = strong_mul(x, _rd_slope(y, x, u, z)) + strong_mul(u, _rd_slope(y, u, x, z))
    return neg(1.5 * y + rest) / z


def _rg_slope(x: Symbol, u: Symbol, z: Symbol) -> Symbol:
    return 0.25 * (elliprf(x, u, z) - strong_mul(x, elliprd(u, z, x)) * (1 / 3))


THREE = ((0.3, 0.6), (0.9, 1.3), (1.6, 2.5))

elliprf = special(
    "elliprf",
    "Carlson's R_F(x, y, z); DLMF 19.18.1.",
    lambda y, a, b, c: elliprd(b, c, a) * (-1 / 6),
    lambda y, a, b, c: elliprd(a, c, b) * (-1 / 6),
    lambda y, a, b, c: elliprd(a, b, c) * (-1 / 6),
    over=THREE,
)
elliprd = special(
    "elliprd",
    "Carlson's R_D(x, y, z); DLMF 19.16.5.",
    _rd_slope,
    lambda y, a, b, c: _rd_slope(y, b, a, c),
    _rd_last_slope,
    over=THREE,
)
elliprg = special(
    "elliprg",
    "Carlson's R_G(x, y, z); DLMF 19.16.3.",
    lambda y, a, b, c: _rg_slope(a, b, c),
    lambda y, a, b, c: _rg_slope(b, a, c),
    lambda y, a, b, c: _rg_slope(c, a, b),
    over=THREE,
)


def _rc_slope(y: Symbol, a: Symbol, b: Symbol) -> Symbol:
    return 0.5 * (y - 1.0 / sqrt(a)) / (b - a)


elliprc = special(
    "elliprc",
    "Carlson's R_C(x, y); DLMF 19.2.17.",
    _rc_slope,
    lambda y, a, b: neg(0.5 * y + a * _rc_slope(y, a, b)) / b,
    over=THREE[:2],
)


def _agm_slope(y: Symbol, a: Symbol, b: Symbol) -> Symbol:
    """Return the slope in a of M(a, b) = π / 2 R_F(0, a², b²) (DLMF 19.8.5)."""
    return y * y * a * elliprd(full_like(a, 0.0), b * b, a * a) * (2 / (3 * math.pi))


agm = special(
    "agm",
    "Arithmetic-geometric mean; DLMF 19.8.5.",
    _agm_slope,
    lambda y, a, b: _agm_slope(y, b, a),
    over=THREE[:2],
)

# ---- complete integrals ------------------------------------------------------------------------------------------


def _k_slope(m: Symbol) -> Symbol:
    return gauss(1.5, 1.5, 2.0, m) * (math.pi / 8)


def _km1_slope(p: Symbol) -> Symbol:
    """Return -K'(1 - p); for p < 1 by the transformation to (p - 1)/p, which keeps a small p (DLMF 15.8.1)."""
    near = gauss(1.5, 0.5, 2.0, (p - 1.0) / p) / sqrt(p) / p * (-math.pi / 8)
    return select(lt(p, ones_like(p)), near, neg(_k_slope(1.0 - p)))


ellipk = special("ellipk", "Complete elliptic integral K(m); DLMF 19.5.1.", lambda y, m: _k_slope(m))
ellipkm1 = special("ellipkm1", "K(1 - p); DLMF 19.5.1.", lambda y, p: _km1_slope(p), edges=((1e-30,),))
ellipe = special(
    "ellipe", "Complete elliptic integral E(m); DLMF 19.5.2.", lambda y, m: gauss(0.5, 1.5, 2.0, m) * (-math.pi / 8)
)

# ---- incomplete integrals ----------------------------------------------------------------------------------------


def _delta(phi: Symbol, m: Symbol) -> Symbol:
    """Return √(1 - m sin²φ)."""
    s = sin(phi)
    return sqrt(1.0 - m * (s * s))


def _f_slope(f: Symbol, phi: Symbol, m: Symbol) -> Symbol:
    """Return ∂F/∂m = (F - D - sin φ cos φ / Δ) / 2(1 - m) (DLMF 19.4.4 with E = F - mD)."""
    return 0.5 * (f - ellipdinc(phi, m) - sin(phi) * cos(phi) / _delta(phi, m)) / (1.0 - m)


def _d_slope(d: Symbol, phi: Symbol, m: Symbol) -> Symbol:
    f = ellipkinc(phi, m)
    return (_f_slope(f, phi, m) - 0.5 * d) / m


def _ellipdinc(phi: Any, m: Any) -> Any:
    """Return D(φ, m) = s³/3 R_D(c², 1 - m s², 1) + 2n D(π/2, m), with n the nearest integer to φ/π."""
    rd, one = scipy_function("elliprd"), np.ones_like(m)
    turns = np.rint(phi / np.pi)
    rest = phi - turns * np.pi
    s = np.sin(rest)
    inner = s**3 / 3 * rd(np.cos(rest) ** 2, one - m * s * s, one)
    complete = np.where(turns == 0, 0, 2 * turns / 3 * rd(np.zeros_like(m), one - m, one))
    return (inner + complete).astype(m.dtype)


ANGLE_AND_PARAMETER = (LINE, (0.1, 0.9))

ellipkinc = special(
    "ellipkinc",
    "Incomplete elliptic integral F(φ, m); DLMF 19.4.4.",
    lambda y, phi, m: 1.0 / _delta(phi, m),
    _f_slope,
    over=ANGLE_AND_PARAMETER,
    edges=((2.0, 0.0), (5.0, 0.5), (-20.0, 0.5)),
)
ellipeinc = special(
    "ellipeinc",
    "Incomplete elliptic integral E(φ, m); DLMF 19.4.6.",
    lambda y, phi, m: _delta(phi, m),
    lambda y, phi, m: -0.5 * ellipdinc(phi, m),
    over=ANGLE_AND_PARAMETER,
)
ellipdinc = special(
    "ellipdinc",
    "Incomplete elliptic integral D(φ, m); DLMF 19.2.6.",
    lambda y, phi, m: sin(phi) * sin(phi) / _delta(phi, m),
    _d_slope,
    over=ANGLE_AND_PARAMETER,
    evaluate=_ellipdinc,
)

# ---- Jacobi's functions ------------------------------------------------------------------------------------------
# sn = sin φ, cn = cos φ, dn = Δ with F(φ, m) = u (DLMF 22.16.11).
# At u = 0 cn and dn are 1 for all m, while formulas for the slope of φ are 0/0 at m = 1, and their slopes at m = 0.


def _amplitude_slope(u: Symbol, m: Symbol) -> Symbol:
    """Return ∂φ/∂m at constant u, -Δ ∂F/∂m."""
    phi = ellipj_ph(u, m)
    return neg(ellipj_dn(u, m) * _f_slope(u, phi, m))


def _dn_slope(dn: Symbol, u: Symbol, m: Symbol) -> Symbol:
    sn = ellipj_sn(u, m)
    return -0.5 * strong_mul(sn, sn + 2.0 * strong_mul(m, ellipj_cn(u, m) * _amplitude_slope(u, m))) / dn


def _jacobi(name: str, output: int, formula: str, in_u: Rule, in_m: Rule) -> Primitive:
    return special(
        f"ellipj_{name}",
        f"Jacobi's elliptic function {name}(u, m); DLMF {formula}.",
        in_u,
        in_m,
        over=ANGLE_AND_PARAMETER,
        edges=((0.0, 0.5), (0.5, 0.0), (0.0, 1.0)),
        ufunc="ellipj",
        output=output,
    )


ellipj_sn = _jacobi(
    "sn",
    0,
    "22.13.1",
    lambda y, u, m: ellipj_cn(u, m) * ellipj_dn(u, m),
    lambda y, u, m: ellipj_cn(u, m) * _amplitude_slope(u, m),
)
ellipj_cn = _jacobi(
    "cn",
    1,
    "22.13.2",
    lambda y, u, m: neg(ellipj_sn(u, m) * ellipj_dn(u, m)),
    lambda y, u, m: neg(strong_mul(ellipj_sn(u, m), _amplitude_slope(u, m))),
)
ellipj_dn = _jacobi("dn", 2, "22.13.3", lambda y, u, m: neg(m * ellipj_sn(u, m) * ellipj_cn(u, m)), _dn_slope)
ellipj_ph = _jacobi("ph", 3, "22.16.3", lambda y, u, m: ellipj_dn(u, m), lambda y, u, m: _amplitude_slope(u, m))
