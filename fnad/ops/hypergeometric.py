"""Hypergeometric functions of one variable, and what they give without cancellation.

Slopes such as those of (exp(x) - 1)/x and log(x)/(1 - x) are quotients that vanish above and below at a point. As
hypergeometric functions they are accurate there and near it, in all orders of derivatives.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.ir.primitive import Primitive
from fnad.ir.types import is_complex
from fnad.ops.constructors import COMPLEXES, INEXACT, LINE, REALS, Interval, elementwise
from fnad.ops.conversion import convert_to
from fnad.ops.formula import Formula, formula, word
from fnad.ops.special_function import INF, NAN, POSITIVE, special
from fnad.scalar.operations import exprel_slope as scalar_exprel_slope
from fnad.scalar.scipy_ufunc import scipy_function
from fnad.scalar.template import on_arrays

THREE = (POSITIVE, POSITIVE, POSITIVE)
EDGES = ((0.0,), (1e-9,), (-40.0,), (INF,), (NAN,))


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
                 z="-log_ratio(z)")
exprel = special("exprel(x)", "(exp(x) - 1) / x; DLMF 13.3.15.", (LINE,), x="exprel_slope(x)")


# fmt: on


def _elementary(name: str, doc: str, template: str, slope: str, over: Interval = LINE) -> Primitive:
    """A hypergeometric function of real numbers by an elementary function; its slope is another one."""
    template = "{dtype}(" + template.replace("{0}", "f64({0})") + ")"
    return elementwise(
        f"real_{name}", on_arrays(template), template, (Formula(["y", "x"], slope),),
        domain=REALS, over=(over,), edges=EDGES, cost=40, doc=doc,
    )  # fmt: skip


def _quotient(numerator: str, zero: str = "0") -> str:
    """A function over the distance from its zero; its slope is 1 there."""
    return f"select({{0}} == f64({zero}), f64(1), {numerator} / ({{0}} - f64({zero})))"


def _of_kind(name: str, real: Primitive, other: str) -> None:
    """Enter a word that is the primitive of real numbers, and a formula of others."""
    otherwise = Formula(["x"], other)
    word(name, lambda x: (otherwise if is_complex(x.dtype) else real)(x))


sinc = _elementary(
    "sinc", "sin(x) / x; DLMF 10.16.9.", _quotient("sin({0})"), f"x * hyp0f1(2.5, x * x * -0.25) * {-1 / 3}"
)
sinhc = _elementary(
    "sinhc", "sinh(x) / x; DLMF 10.39.9.", _quotient("sinh({0})"), f"x * hyp0f1(2.5, x * x * 0.25) * {1 / 3}"
)
log_ratio = _elementary(
    "log_ratio",
    "log(x) / (x - 1); DLMF 15.4.1.",
    _quotient("log({0})", "1"),
    "log_ratio_slope(x, abs(x - 1.0), y)",
    POSITIVE,
)
exprel_slope = elementwise(
    "real_exprel_slope", scalar_exprel_slope, "exprel_slope({0})",
    (Formula(["y", "x"], f"select(eq(x, -inf), 0.0, hyp1f1(3.0, 4.0, x)) * {1 / 3}"),),
    domain=REALS, over=(LINE,), edges=EDGES, cost=40, doc="The derivative of (exp(x) - 1) / x; DLMF 13.6.2.",
)  # fmt: skip
_of_kind("sinc", sinc, "hyp0f1(1.5, x * x * -0.25)")
_of_kind("sinhc", sinhc, "hyp0f1(1.5, x * x * 0.25)")
_of_kind("log_ratio", log_ratio, "hyp2f1(1.0, 1.0, 2.0, 1.0 - x)")
_of_kind("exprel_slope", exprel_slope, "hyp1f1(2.0, 3.0, x) * 0.5")
formula(
    "log_ratio_slope(x, distance, y)",
    "select(lt(distance, 0.5), log1p_ratio_slope(x - 1.0), (1.0 / x - y) / select(lt(distance, 0.5), 1.0, x - 1.0))",
)
formula("log1p_ratio_slope(x)", "hyp2f1(2.0, 2.0, 3.0, -x) * -0.5")  # the derivative of log(1 + x) / x

# fmt: off
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
