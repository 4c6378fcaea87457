"""The gamma function and its kin: polygamma, beta, binomial coefficients, incomplete gamma and beta functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.ir.symbol import Symbol
from fnad.ir.types import I64, is_complex
from fnad.ops.arithmetic import neg, strong_mul
from fnad.ops.comparison import eq, select
from fnad.ops.complex_gamma import complex_polygamma
from fnad.ops.entropy import xlog1py, xlogy
from fnad.ops.kinds import INEXACT, UNIT
from fnad.ops.library import NAN, POSITIVE, scipy_function, special
from fnad.ops.shape import constant, full_like, zeros_like

# ---- gamma -------------------------------------------------------------------------------------------------------

gamma = special(
    "gamma",
    "Gamma function; DLMF 5.2.2.",
    lambda y, x: y * psi(x),
    domain=INEXACT,
    over=(POSITIVE,),
    edges=((-1.5,), (171.0,)),
)
gammaln = special("gammaln", "log |Γ(x)|; DLMF 5.2.2.", lambda y, x: psi(x), over=(POSITIVE,), edges=((-1.5,), (1e3,)))
loggamma = special(
    "loggamma",
    "log Γ(x), of real numbers nan for x < 0; DLMF 5.2.2.",
    lambda y, x: psi(x),
    domain=INEXACT,
    over=(POSITIVE,),
)
gammasgn = special("gammasgn", "The sign of Γ(x).", None)
rgamma = special("rgamma", "1 / Γ(x); DLMF 5.2.2.", lambda y, x: neg(y * psi(x)), domain=INEXACT, over=(POSITIVE,))
psi = special(
    "psi",
    "Digamma function Γ'(x) / Γ(x); DLMF 25.11.12.",
    lambda y, x: _trigamma(x),
    domain=INEXACT,
    over=(POSITIVE,),
    edges=((-1.5,),),
)
zeta = special(
    "zeta",
    "Hurwitz's zeta function ζ(s, q); DLMF 25.11.17.",
    "s",
    lambda y, s, q: neg(_but_0(s) * zeta(s + 1.0, q)),
    over=((1.5, 4.0), POSITIVE),
    ufunc="_zeta",
)
riemann_zeta = special("riemann_zeta", "Riemann's zeta function ζ(s).", "s", ufunc="_riemann_zeta", over=((1.5, 4.0),))
zetac = special("zetac", "ζ(s) - 1.", "s", over=((1.5, 4.0),))


def _but_0(s: Symbol) -> Symbol:
    """Return s, nan in the place of 0, where s meets the pole of ζ(s + 1, q)."""
    return select(eq(s, zeros_like(s)), full_like(s, NAN), s)


def hurwitz(s: float, q: Symbol) -> Symbol:
    """Return ζ(s, q) at a constant s."""
    return zeta(full_like(q, s), q)


def _trigamma(x: Symbol) -> Symbol:
    return complex_polygamma(constant(1, I64, x.shape), x) if is_complex(x.dtype) else hurwitz(2.0, x)


# ---- products of gammas ------------------------------------------------------------------------------------------

beta = special(
    "beta",
    "Beta function; DLMF 5.12.1.",
    lambda y, a, b: y * (psi(a) - psi(a + b)),
    lambda y, a, b: y * (psi(b) - psi(a + b)),
    over=(POSITIVE, POSITIVE),
)
betaln = special(
    "betaln",
    "log |B(a, b)|; DLMF 5.12.1.",
    lambda y, a, b: psi(a) - psi(a + b),
    lambda y, a, b: psi(b) - psi(a + b),
    over=(POSITIVE, POSITIVE),
)
poch = special(
    "poch",
    "Pochhammer's symbol Γ(a + m) / Γ(a); DLMF 5.2.5.",
    lambda y, a, m: y * (psi(a + m) - psi(a)),
    lambda y, a, m: y * psi(a + m),
    over=(POSITIVE, POSITIVE),
)
binom = special(
    "binom",
    "Binomial coefficient Γ(n + 1) / (Γ(k + 1) Γ(n - k + 1)); DLMF 1.2.6.",
    lambda y, n, k: y * (psi(n + 1.0) - psi(n - k + 1.0)),
    lambda y, n, k: y * (psi(n - k + 1.0) - psi(k + 1.0)),
    over=((3.0, 5.0), POSITIVE),
)

# ---- densities -----------------------------------------------------------------------------------------------------


def _gamma_density(a: Any, s: Any, x: Any) -> Any:
    log_density = scipy_function("xlogy")(a - 1, x) - x - scipy_function("gammaln")(s)
    return np.exp(log_density, dtype=x.dtype)


gamma_slope = special(
    "gamma_slope",
    "x**(a-1) exp(-x) / Γ(s), for s = a the density of the gamma distribution; DLMF 5.2.1.",
    lambda y, a, s, x: xlogy(y, x),
    lambda y, a, s, x: neg(y * psi(s)),
    lambda y, a, s, x: strong_mul(a - 1.0, gamma_slope(a - 1.0, s, x)) - y,
    over=(POSITIVE, POSITIVE, POSITIVE),
    edges=((2.0, 2.0, 0.0), (1.0, 1.0, 0.0), (0.5, 0.5, 0.0)),
    evaluate=_gamma_density,
)


def gamma_density(a: Symbol, x: Symbol) -> Symbol:
    """Return the slope of the incomplete gamma function (DLMF 8.8.13)."""
    return gamma_slope(a, a, x)


def _beta_density(a: Any, b: Any, p: Any, q: Any, x: Any) -> Any:
    is_density = (a == p) & (b == q)
    if np.all(is_density):
        return np.asarray(scipy_function("_beta_pdf")(x, a, b), x.dtype)
    powers = scipy_function("xlogy")(a - 1, x) + scipy_function("xlog1py")(b - 1, -x)
    return np.exp(powers - scipy_function("betaln")(p, q), dtype=x.dtype)


beta_slope = special(
    "beta_slope",
    "x**(a-1) (1-x)**(b-1) / B(p, q), for p = a and q = b the density of the beta distribution; DLMF 5.12.1.",
    lambda y, a, b, p, q, x: xlogy(y, x),
    lambda y, a, b, p, q, x: xlog1py(y, neg(x)),
    lambda y, a, b, p, q, x: y * (psi(p + q) - psi(p)),
    lambda y, a, b, p, q, x: y * (psi(p + q) - psi(q)),
    lambda y, a, b, p, q, x: (
        strong_mul(a - 1.0, beta_slope(a - 1.0, b, p, q, x)) - strong_mul(b - 1.0, beta_slope(a, b - 1.0, p, q, x))
    ),
    over=(POSITIVE, POSITIVE, POSITIVE, POSITIVE, UNIT),
    edges=((2.0, 2.0, 2.0, 2.0, 0.0), (1.0, 1.0, 1.0, 1.0, 1.0), (0.5, 0.5, 0.5, 0.5, 0.0)),
    evaluate=_beta_density,
)


def beta_density(a: Symbol, b: Symbol, x: Symbol) -> Symbol:
    """Return the slope of the incomplete beta function (DLMF 8.17.1)."""
    return beta_slope(a, b, a, b, x)
