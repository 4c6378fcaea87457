"""The gamma function and related functions: polygamma, zeta, beta, binomial coefficients, gamma and beta densities."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from fnad.ir.ranges import POSITIVE as POSITIVE_REALS
from fnad.ir.ranges import Singular
from fnad.ir.symbol import Symbol
from fnad.ir.types import I64, is_complex
from fnad.ops.comparison import lt, select
from fnad.ops.constructors import INEXACT, REALS, UNIT, elementwise
from fnad.ops.formula import Formula, formula, word
from fnad.ops.polygamma import complex_polygamma
from fnad.ops.shape import constant, full_like
from fnad.ops.special_function import POSITIVE, special
from fnad.scalar.scipy_ufunc import scipy_call, scipy_function

ONE, TWO, THREE = (POSITIVE,), (POSITIVE,) * 2, (POSITIVE,) * 3
OVER_1 = ((1.5, 4.0),)

# fmt: off
# ---- gamma and zeta ----------------------------------------------------------------------------------------------

gamma = special("gamma(x)", "Gamma function; DLMF 5.2.2.", ONE, domain=INEXACT, edges=((-1.5,), (171.0,)),
                x="y * psi(x)")
gammaln = special("gammaln(x)", "log |Γ(x)|; DLMF 5.2.2.", ONE, edges=((-1.5,), (1e3,)), x="psi(x)",
                  singular=(Singular(0, POSITIVE_REALS, "log |Γ(x)| is inf at 0, -1, -2, …"),))
loggamma = special("loggamma(x)", "log Γ(x), of real numbers nan for x < 0; DLMF 5.2.2.", ONE, domain=INEXACT,
                    x="psi(x)")
gammasgn = special("gammasgn(x)", "The sign of Γ(x).", x=None)
rgamma = special("rgamma(x)", "1 / Γ(x); DLMF 5.2.2 and, for x < 1/2, 5.5.3.", ONE, domain=INEXACT,
                 x="rgamma_slope(x, -(y * psi(x)))")
psi = special("psi(x)", "Digamma function Γ'(x) / Γ(x); DLMF 25.11.12.", ONE, domain=INEXACT, edges=((-1.5,),),
              x="digamma_slope(x)")
# At s = 0 there is no 0 * inf: s meets the pole of ζ(s + 1, q).
zeta = special("zeta(s, q)", "Hurwitz's zeta function ζ(s, q); DLMF 25.11.17.", (*OVER_1, POSITIVE), ufunc="_zeta",
               q="-(select(eq(s, 0.0), nan, s) * zeta(s + 1.0, q))")
riemann_zeta = special("riemann_zeta(s)", "Riemann's zeta function ζ(s).", OVER_1, ufunc="_riemann_zeta")
zetac = special("zetac(s)", "ζ(s) - 1.", OVER_1)

# ---- products of gammas ------------------------------------------------------------------------------------------

beta = special("beta(a, b)", "Beta function; DLMF 5.12.1.", TWO,
               a="y * (psi(a) - psi(a + b))", b="y * (psi(b) - psi(a + b))")
betaln = special("betaln(a, b)", "log |B(a, b)|; DLMF 5.12.1.", TWO, a="psi(a) - psi(a + b)", b="psi(b) - psi(a + b)")
poch = special("poch(a, m)", "Pochhammer's symbol Γ(a + m) / Γ(a); DLMF 5.2.5.", TWO,
               a="y * (psi(a + m) - psi(a))", m="y * psi(a + m)")
binom = special("binom(n, k)", "Binomial coefficient Γ(n + 1) / (Γ(k + 1) Γ(n - k + 1)); DLMF 1.2.6.",
                ((3.0, 5.0), POSITIVE),
                n="y * (psi(n + 1.0) - psi(n - k + 1.0))", k="y * (psi(n - k + 1.0) - psi(k + 1.0))")
# fmt: on


def hurwitz(s: float, q: Symbol) -> Symbol:
    """ζ(s, q) at a constant s."""
    return zeta(full_like(q, s), q)


trigamma = elementwise(
    "trigamma",
    lambda x: scipy_call("_zeta")(x.dtype.type(2), x),
    "trigamma({0})",
    (lambda y, x: -2.0 * hurwitz(3.0, x),),
    domain=REALS,
    over=ONE,
    edges=((0.0,), (-1.5,), (-2.0,), (1e3,)),
    cost=60,
    doc="The derivative of digamma, ζ(2, x); DLMF 25.11.12.",
)


def _digamma_slope(x: Symbol) -> Symbol:
    return complex_polygamma(constant(1, I64, x.shape), x) if is_complex(x.dtype) else trigamma(x)


word("digamma_slope", _digamma_slope)


REFLECTED = Formula(["x"], "gamma(1.0 - x) * (cos(pi * x) - sin(pi * x) * psi(1.0 - x) * (1.0 / pi))")


def _rgamma_slope(x: Symbol, above: Symbol) -> Symbol:
    """The slope of 1 / Γ(x), below 1/2 by reflection: at 0, -1, -2, … it is finite, and digamma is not."""
    return above if is_complex(x.dtype) else select(lt(x, full_like(x, 0.5)), REFLECTED(x), above)


word("rgamma_slope", _rgamma_slope)

# ---- densities, the slopes of the incomplete functions (DLMF 8.8.13, 8.17.1) ---------------------------------------


def _gamma_slope(a: Any, s: Any, x: Any) -> Any:
    a, s, wide = (operand.astype(np.result_type(operand, np.float64)) for operand in (a, s, x))
    return np.exp(scipy_function("xlogy")(a - 1, wide) - wide - scipy_function("gammaln")(s)).astype(x.dtype)


def _beta_slope(a: Any, b: Any, p: Any, q: Any, x: Any) -> Any:
    is_density = (a == p) & (b == q)
    if np.all(is_density):
        with suppress(OverflowError):  # of Boost, near the least numbers
            return np.asarray(scipy_function("_beta_pdf")(x, a, b), x.dtype)
    powers = scipy_function("xlogy")(a - 1, x) + scipy_function("xlog1py")(b - 1, -x)
    return np.exp(powers - scipy_function("betaln")(p, q), dtype=x.dtype)


GAMMA_OPERANDS = ("y", "a", "s", "x")

# fmt: off
gamma_slope = elementwise("gamma_slope", _gamma_slope,
    "{dtype}(exp(select({0} == {dtype}(1), f64(0), (f64({0}) - f64(1)) * log(f64({2})))"
    " - f64({2}) - scipy_gammaln(f64({1}))))",
    (Formula(GAMMA_OPERANDS, "xlogy(y, x)"), Formula(GAMMA_OPERANDS, "-(y * psi(s))"),
     Formula(GAMMA_OPERANDS, "strong_mul(a - 1.0, gamma_slope(a - 1.0, s, x)) - y")),
    domain=REALS, over=THREE, edges=((2.0, 2.0, 0.0), (1.0, 1.0, 0.0), (0.5, 0.5, 0.0)), cost=100,
    doc="x**(a-1) exp(-x) / Γ(s), for s = a the density of the gamma distribution; DLMF 5.2.1.")
beta_slope = special("beta_slope(a, b, p, q, x)",
    "x**(a-1) (1-x)**(b-1) / B(p, q), for p = a and q = b the density of the beta distribution; DLMF 5.12.1.",
    (*TWO, *TWO, UNIT), evaluate=_beta_slope,
    edges=((2.0, 2.0, 2.0, 2.0, 0.0), (1.0, 1.0, 1.0, 1.0, 1.0), (0.5, 0.5, 0.5, 0.5, 0.0)),
    a="xlogy(y, x)", b="xlog1py(y, -x)", p="y * (psi(p + q) - psi(p))", q="y * (psi(p + q) - psi(q))",
    x="strong_mul(a - 1.0, beta_slope(a - 1.0, b, p, q, x)) - strong_mul(b - 1.0, beta_slope(a, b - 1.0, p, q, x))")

gamma_density = formula("gamma_density(a, x)", "gamma_slope(a, a, x)")
beta_density = formula("beta_density(a, b, x)", "beta_slope(a, b, a, b, x)")
# fmt: on
