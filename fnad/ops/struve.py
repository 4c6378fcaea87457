"""Struve functions, and the integrals of Bessel and Struve functions of order 0."""

from __future__ import annotations

import math
from collections.abc import Callable

from fnad.ir.primitive import Primitive
from fnad.ir.symbol import Symbol
from fnad.ops.arithmetic import neg
from fnad.ops.bessel import MIDDLE, ORDER, difference, i0, j0, k0, mean, y0
from fnad.ops.gamma import rgamma
from fnad.ops.library import special
from fnad.ops.power import pow_
from fnad.ops.shape import zeros_like

# ---- Struve ------------------------------------------------------------------------------------------------------


def _leading_term(v: Symbol, x: Symbol) -> Symbol:
    """Return (x/2)**v / √π Γ(v + 3/2)."""
    return pow_(0.5 * x, v) * rgamma(v + 1.5) * (1.0 / math.sqrt(math.pi))


struve = special(
    "struve",
    "Struve function H; DLMF 11.4.25.",
    "v",
    lambda y, v, x: difference(struve, v, x) + 0.5 * _leading_term(v, x),
    over=(ORDER, MIDDLE),
)
modstruve = special(
    "modstruve",
    "Modified Struve function L; DLMF 11.4.28.",
    "v",
    lambda y, v, x: mean(modstruve, v, x) + 0.5 * _leading_term(v, x),
    over=(ORDER, MIDDLE),
)

# ---- integrals from 0 to x, and of 1/t from x to infinity --------------------------------------------------------


def _integral(name: str, doc: str, integrand: Callable[[Symbol], Symbol], ufunc: str, output: int | None) -> Primitive:
    return special(name, doc, lambda y, x: integrand(x), ufunc=ufunc, output=output, over=((1.0, 2.0),))


def _struve0(x: Symbol) -> Symbol:
    return struve(zeros_like(x), x)


itj0 = _integral("itj0", "∫ J₀(t) from 0 to x.", j0, "itj0y0", 0)
ity0 = _integral("ity0", "∫ Y₀(t) from 0 to x.", y0, "itj0y0", 1)
it2j0 = _integral("it2j0", "∫ (1 - J₀(t))/t from 0 to x.", lambda x: (1.0 - j0(x)) / x, "it2j0y0", 0)
it2y0 = _integral("it2y0", "∫ Y₀(t)/t from x to infinity.", lambda x: neg(y0(x)) / x, "it2j0y0", 1)
iti0 = _integral("iti0", "∫ I₀(t) from 0 to x.", i0, "iti0k0", 0)
itk0 = _integral("itk0", "∫ K₀(t) from 0 to x.", k0, "iti0k0", 1)
it2i0 = _integral("it2i0", "∫ (I₀(t) - 1)/t from 0 to x.", lambda x: (i0(x) - 1.0) / x, "it2i0k0", 0)
it2k0 = _integral("it2k0", "∫ K₀(t)/t from x to infinity.", lambda x: neg(k0(x)) / x, "it2i0k0", 1)
itstruve0 = _integral("itstruve0", "∫ H₀(t) from 0 to x.", _struve0, "itstruve0", None)
it2struve0 = _integral(
    "it2struve0", "∫ H₀(t)/t from x to infinity.", lambda x: neg(_struve0(x)) / x, "it2struve0", None
)
itmodstruve0 = _integral(
    "itmodstruve0", "∫ L₀(t) from 0 to x.", lambda x: modstruve(zeros_like(x), x), "itmodstruve0", None
)
