"""Bessel functions and related ones: modified, scaled, spherical, Hankel, Kelvin and Struve functions, and integrals.

Slopes follow from the recurrences in the order (DLMF 10.6, 10.29, 10.51, 11.4) and, for functions that come together
with their derivatives, from the differential equation. In the order itself there is no formula. At order 2 slopes at 0
are finite where those functions are.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from fnad.ir.primitive import Primitive
from fnad.ops.constructors import COMPLEXES, INEXACT, REALS, elementwise
from fnad.ops.formula import Formula, formula
from fnad.ops.special_function import scipy_call, special
from fnad.scalar.operations import i1_ratio as scalar_i1_ratio

Array = np.ndarray[Any, Any]

MIDDLE = ((0.8, 4.0),)
BOTH_SIDES = ((-3.0, 3.0),)
ORDER = ((0.3, 2.0), *MIDDLE)
INTEGER_ORDER = ((2.0, 2.0), *MIDDLE)

# fmt: off
# ---- of order 0 and 1 --------------------------------------------------------------------------------------------

j0 = special("j0(x)", "Bessel function J₀; DLMF 10.6.3.", BOTH_SIDES, x="-j1(x)")
j1 = special("j1(x)", "Bessel function J₁; DLMF 10.6.1.", BOTH_SIDES, x="0.5 * (j0(x) - jv(2.0, x))")
y0 = special("y0(x)", "Bessel function Y₀; DLMF 10.6.3.", MIDDLE, x="-y1(x)")
y1 = special("y1(x)", "Bessel function Y₁; DLMF 10.6.2.", MIDDLE, x="y0(x) - y / x")
i0 = special("i0(x)", "Modified Bessel function I₀; DLMF 10.29.3.", BOTH_SIDES, x="i1(x)")
i1 = special("i1(x)", "Modified Bessel function I₁; DLMF 10.29.1.", BOTH_SIDES,
             x="i0(x) - select(isinf(y), 0.0, i1_ratio(x))")
k0 = special("k0(x)", "Modified Bessel function K₀; DLMF 10.29.3.", MIDDLE, x="-k1(x)")
k1 = special("k1(x)", "Modified Bessel function K₁; DLMF 10.29.2.", MIDDLE, x="-(k0(x) + y / x)")
i0e = special("i0e(x)", "exp(-|x|) I₀; DLMF 10.29.3.", MIDDLE,
              x="bessel_i_slope(0.0, x, y, i1e(x) - sign(x) * y)")
i1e = special("i1e(x)", "exp(-|x|) I₁; DLMF 10.29.1.", MIDDLE,
              x="bessel_i_slope(1.0, x, y, i0e(x) - i1e_ratio(x) - sign(x) * y)")
k0e = special("k0e(x)", "exp(x) K₀; DLMF 10.29.3.", MIDDLE, x="bessel_k_slope(0.0, x, y - k1e(x))")
k1e = special("k1e(x)", "exp(x) K₁; DLMF 10.29.2.", MIDDLE,
              x="bessel_k_slope(1.0, x, y - k0e(x) - y / x)")
# fmt: on

formula("i1e_ratio(x)", "select(lt(x * x, 1.0), i1_ratio(x) * exp(-abs(x)), i1e(x) / select(eq(x, 0.0), 1.0, x))")

i1_ratio = elementwise(
    "i1_ratio",
    scalar_i1_ratio,
    "i1_ratio({0})",
    (Formula(["y", "x"], "i1_ratio_slope(x, (i0(x) - 2.0 * y) / select(eq(x, 0.0), 1.0, x))"),),
    domain=REALS,
    over=MIDDLE,
    edges=((0.0,), (-1.5,), (50.0,)),
    cost=60,
    doc="I₁(x) / x; DLMF 10.29.4.",
)

# fmt: off
# ---- of any order ------------------------------------------------------------------------------------------------

of_order = partial(special, over=ORDER)

jv = of_order("jv(v, x)", "Bessel function J; DLMF 10.6.1.", domain=INEXACT,
              x="0.5 * (jv(v - 1.0, x) - jv(v + 1.0, x))")
yv = of_order("yv(v, x)", "Bessel function Y; DLMF 10.6.1.", domain=INEXACT,
              x="0.5 * (yv(v - 1.0, x) - yv(v + 1.0, x))")
yn = special("yn(n, x)", "Bessel function Y of integer order; DLMF 10.6.1.", INTEGER_ORDER,
             x="0.5 * (yv(n - 1.0, x) - yv(n + 1.0, x))")
iv = of_order("iv(v, x)", "Modified Bessel function I; DLMF 10.29.1.", domain=INEXACT,
              x="0.5 * (iv(v - 1.0, x) + iv(v + 1.0, x))")
kv = of_order("kv(v, x)", "Modified Bessel function K; DLMF 10.29.1.", domain=INEXACT,
              x="-(0.5 * (kv(v - 1.0, x) + kv(v + 1.0, x)))")
kn = special("kn(n, x)", "Modified Bessel function K of integer order; DLMF 10.29.1.", INTEGER_ORDER,
             x="-(0.5 * (kv(n - 1.0, x) + kv(n + 1.0, x)))")
jve = of_order("jve(v, x)", "J of a real argument; DLMF 10.6.1.", x="0.5 * (jve(v - 1.0, x) - jve(v + 1.0, x))")
yve = of_order("yve(v, x)", "Y of a real argument; DLMF 10.6.1.", x="0.5 * (yve(v - 1.0, x) - yve(v + 1.0, x))")
ive = of_order("ive(v, x)", "exp(-|x|) I; DLMF 10.29.1.",
               x="bessel_i_slope(v, x, y, 0.5 * (ive(v - 1.0, x) + ive(v + 1.0, x)) - sign(x) * y)")
kve = of_order("kve(v, x)", "exp(x) K; DLMF 10.29.1.", domain=INEXACT,
               x="bessel_k_slope(v, x, y - 0.5 * (kve(v - 1.0, x) + kve(v + 1.0, x)))")

hankel = partial(special, over=ORDER, domain=COMPLEXES)

hankel1 = hankel("hankel1(v, z)", "Hankel function J + iY; DLMF 10.6.1.",
                 z="0.5 * (hankel1(v - 1.0, z) - hankel1(v + 1.0, z))")
hankel2 = hankel("hankel2(v, z)", "Hankel function J - iY; DLMF 10.6.1.",
                 z="0.5 * (hankel2(v - 1.0, z) - hankel2(v + 1.0, z))")
hankel1e = hankel("hankel1e(v, z)", "exp(-iz) (J + iY); DLMF 10.6.1.",
                  z="0.5 * (hankel1e(v - 1.0, z) - hankel1e(v + 1.0, z)) + -1.0j * y")
hankel2e = hankel("hankel2e(v, z)", "exp(iz) (J - iY); DLMF 10.6.1.",
                  z="0.5 * (hankel2e(v - 1.0, z) - hankel2e(v + 1.0, z)) + 1.0j * y")
# fmt: on
# ---- spherical ---------------------------------------------------------------------------------------------------


def _spherical(name: str, doc: str, derivative: str) -> Primitive:
    return special(
        f"{name}(n: int, z)",
        doc,
        MIDDLE,
        domain=INEXACT,
        ufunc=f"_{name}",
        evaluate=scipy_call(name),
        z=f"({derivative}) / (2.0 * like(n, z) + 1.0)",
    )


# fmt: off
spherical_jn = _spherical("spherical_jn", "Spherical function of the first kind; DLMF 10.51.1.",
    "strong_mul(like(n, z), spherical_jn(below(n), z)) - (like(n, z) + 1.0) * spherical_jn(n + 1, z)")
spherical_yn = _spherical("spherical_yn", "Spherical function of the second kind; DLMF 10.51.1.",
    "strong_mul(like(n, z), spherical_yn(below(n), z)) - (like(n, z) + 1.0) * spherical_yn(n + 1, z)")
spherical_in = _spherical("spherical_in", "Modified spherical function of the first kind; DLMF 10.51.5.",
    "strong_mul(like(n, z), spherical_in(below(n), z)) + (like(n, z) + 1.0) * spherical_in(n + 1, z)")
spherical_kn = _spherical("spherical_kn", "Modified spherical function of the second kind; DLMF 10.51.5.",
    "strong_mul(-like(n, z), spherical_kn(below(n), z)) - (like(n, z) + 1.0) * spherical_kn(n + 1, z)")

# ---- Kelvin ------------------------------------------------------------------------------------------------------
# ber + i bei and ker + i kei solve x² w'' + x w' = i x² w (DLMF 10.61.3).

ber = special("ber(x)", "Kelvin function ber.", MIDDLE, x="berp(x)")
bei = special("bei(x)", "Kelvin function bei.", MIDDLE, x="beip(x)")
berp = special("berp(x)", "The derivative of ber; DLMF 10.61.3.", MIDDLE, x="-(bei(x) + y / x)")
beip = special("beip(x)", "The derivative of bei; DLMF 10.61.3.", MIDDLE, x="ber(x) - y / x")
ker = special("ker(x)", "Kelvin function ker.", MIDDLE, x="kerp(x)")
kei = special("kei(x)", "Kelvin function kei.", MIDDLE, x="keip(x)")
kerp = special("kerp(x)", "The derivative of ker; DLMF 10.61.3.", MIDDLE, x="-(kei(x) + y / x)")
keip = special("keip(x)", "The derivative of kei; DLMF 10.61.3.", MIDDLE, x="ker(x) - y / x")

# ---- Struve ------------------------------------------------------------------------------------------------------

formula("struve_term(v, x)", "pow(0.5 * x, v) * rgamma(v + 1.5) * (1.0 / sqrt_pi)")
struve = of_order("struve(v, x)", "Struve function H; DLMF 11.4.25.",
                  x="0.5 * (struve(v - 1.0, x) - struve(v + 1.0, x)) + 0.5 * struve_term(v, x)")
modstruve = of_order("modstruve(v, x)", "Modified Struve function L; DLMF 11.4.28.",
                     x="0.5 * (modstruve(v - 1.0, x) + modstruve(v + 1.0, x)) + 0.5 * struve_term(v, x)")

# ---- integrals from 0 to x, and of 1/t from x to infinity --------------------------------------------------------

integral = partial(special, over=((1.0, 2.0),))

itj0 = integral("itj0(x)", "∫ J₀(t) from 0 to x.", ufunc="itj0y0[0]", x="j0(x)")
ity0 = integral("ity0(x)", "∫ Y₀(t) from 0 to x.", ufunc="itj0y0[1]", x="y0(x)")
it2j0 = integral("it2j0(x)", "∫ (1 - J₀(t))/t from 0 to x.", ufunc="it2j0y0[0]", x="it2j0_slope(x, 1.0 - j0(x))")
it2y0 = integral("it2y0(x)", "∫ Y₀(t)/t from x to infinity.", ufunc="it2j0y0[1]", x="-y0(x) / x")
iti0 = integral("iti0(x)", "∫ I₀(t) from 0 to x.", ufunc="iti0k0[0]", x="i0(x)")
itk0 = integral("itk0(x)", "∫ K₀(t) from 0 to x.", ufunc="iti0k0[1]", x="k0(x)")
it2i0 = integral("it2i0(x)", "∫ (I₀(t) - 1)/t from 0 to x.", ufunc="it2i0k0[0]", x="it2i0_slope(x, i0(x) - 1.0)")
it2k0 = integral("it2k0(x)", "∫ K₀(t)/t from x to infinity.", ufunc="it2i0k0[1]", x="-k0(x) / x")
itstruve0 = integral("itstruve0(x)", "∫ H₀(t) from 0 to x.", x="struve(0.0, x)")
it2struve0 = integral("it2struve0(x)", "∫ H₀(t)/t from x to infinity.", x="-struve(0.0, x) / x")
itmodstruve0 = integral("itmodstruve0(x)", "∫ L₀(t) from 0 to x.", x="modstruve(0.0, x)")
# fmt: on
