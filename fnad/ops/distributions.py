"""Distribution functions that are ufuncs of SciPy, and their inverses.

The slope of a distribution function is the density, that of an inverse its reciprocal: all are densities of the gamma
and the beta distribution (DLMF 8.8.13, 8.17.1; Abramowitz & Stegun 26.4, 26.5). In a real parameter the slope is that
of an incomplete gamma or beta function. Counts are rounded down, as SciPy does, and have no derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fnad.ir.primitive import Primitive
from fnad.ir.symbol import Symbol
from fnad.ops.arithmetic import neg, strong_mul
from fnad.ops.comparison import gt, lt, select
from fnad.ops.elementary import exp, log1p, sqrt
from fnad.ops.gamma import beta_density, betaln, gamma_density, psi
from fnad.ops.incomplete import betainc_a, betainc_b, gammainc_a
from fnad.ops.kinds import LINE, UNIT
from fnad.ops.library import NAN, POSITIVE, scipy_function, special
from fnad.ops.piecewise import floor, minimum, sign
from fnad.ops.shape import full_like, ones_like, zeros_like

COUNT = (2.0, 2.0)
TRIALS = (5.0, 5.0)

# ---- of counts ---------------------------------------------------------------------------------------------------


def _poisson(k: Symbol, m: Symbol) -> Symbol:
    return gamma_density(floor(k) + 1.0, m)


def _binomial(k: Symbol, n: Symbol, p: Symbol) -> Symbol:
    return beta_density(floor(k) + 1.0, n - floor(k), p)


def _negative_binomial(k: Symbol, n: Symbol, p: Symbol) -> Symbol:
    return beta_density(n, floor(k) + 1.0, p)


def _counted(name: str) -> Callable[[Any, Any, Any], Any]:
    """Return the ufunc with the number of trials as the integer that it asks for."""
    return lambda k, n, p: np.asarray(scipy_function(name)(k, np.trunc(n).astype(np.int64), p), p.dtype)


pdtr = special(
    "pdtr", "Poisson distribution function.", "k", lambda y, k, m: neg(_poisson(k, m)), over=(COUNT, POSITIVE)
)
pdtrc = special("pdtrc", "1 - pdtr(k, m).", "k", lambda y, k, m: _poisson(k, m), over=(COUNT, POSITIVE))
pdtri = special("pdtri", "The inverse of pdtr in m.", "k", lambda m, k, y: -1.0 / _poisson(k, m), over=(COUNT, UNIT))
bdtr = special(
    "bdtr",
    "Binomial distribution function.",
    "k",
    "n",
    lambda y, k, n, p: neg(_binomial(k, n, p)),
    over=(COUNT, TRIALS, UNIT),
    ufunc="bdtr",
    evaluate=_counted("bdtr"),
)
bdtrc = special(
    "bdtrc",
    "1 - bdtr(k, n, p).",
    "k",
    "n",
    lambda y, k, n, p: _binomial(k, n, p),
    over=(COUNT, TRIALS, UNIT),
    ufunc="bdtrc",
    evaluate=_counted("bdtrc"),
)
bdtri = special(
    "bdtri",
    "The inverse of bdtr in p.",
    "k",
    "n",
    lambda p, k, n, y: -1.0 / _binomial(k, n, p),
    over=(COUNT, TRIALS, UNIT),
    ufunc="bdtri",
    evaluate=_counted("bdtri"),
)
nbdtr = special(
    "nbdtr",
    "Negative binomial distribution function.",
    "k",
    "n",
    lambda y, k, n, p: _negative_binomial(k, n, p),
    over=(COUNT, TRIALS, UNIT),
)
nbdtrc = special(
    "nbdtrc",
    "1 - nbdtr(k, n, p).",
    "k",
    "n",
    lambda y, k, n, p: neg(_negative_binomial(k, n, p)),
    over=(COUNT, TRIALS, UNIT),
)
nbdtri = special(
    "nbdtri",
    "The inverse of nbdtr in p.",
    "k",
    "n",
    lambda p, k, n, y: 1.0 / _negative_binomial(k, n, p),
    over=(COUNT, TRIALS, UNIT),
)

# ---- of the gamma family -----------------------------------------------------------------------------------------


def _chi_square(v: Symbol, x: Symbol) -> Symbol:
    return 0.5 * gamma_density(0.5 * v, 0.5 * x)


def _chi_square_in_v(v: Symbol, x: Symbol) -> Symbol:
    return 0.5 * gammainc_a(0.5 * v, 0.5 * x)


def _times_density(factor: Symbol, b: Symbol, x: Symbol) -> Symbol:
    """Return the product with the gamma density, 0 where the factor is even if the density is infinite."""
    return strong_mul(select(gt(b, zeros_like(b)), factor, full_like(b, NAN)), gamma_density(b, x))


def _gamma_pair(name: str, doc: str, sign: float) -> Primitive:
    """Declare a distribution function of a gamma variable with rate a and shape b."""
    return special(
        name,
        doc,
        lambda y, a, b, x: _times_density(sign * x, b, a * x),
        lambda y, a, b, x: sign * gammainc_a(b, a * x),
        lambda y, a, b, x: _times_density(sign * a, b, a * x),
        over=(POSITIVE, POSITIVE, POSITIVE),
        edges=((2.0, 0.5, 0.0), (2.0, 3.0, 0.0), (0.0, 0.5, 2.0), (0.0, 3.0, 2.0)),
    )


chdtr = special(
    "chdtr",
    "Chi-square distribution function.",
    lambda y, v, x: _chi_square_in_v(v, x),
    lambda y, v, x: _chi_square(v, x),
    over=(POSITIVE, POSITIVE),
)
chdtrc = special(
    "chdtrc",
    "1 - chdtr(v, x).",
    lambda y, v, x: neg(_chi_square_in_v(v, x)),
    lambda y, v, x: neg(_chi_square(v, x)),
    over=(POSITIVE, POSITIVE),
)
chdtri = special(
    "chdtri",
    "The inverse of chdtrc in x.",
    lambda x, v, p: neg(_chi_square_in_v(v, x) / _chi_square(v, x)),
    lambda x, v, p: -1.0 / _chi_square(v, x),
    over=(POSITIVE, UNIT),
)
gdtr = _gamma_pair("gdtr", "Gamma distribution function.", 1.0)
gdtrc = _gamma_pair("gdtrc", "1 - gdtr(a, b, x).", -1.0)
gdtrix = special(
    "gdtrix",
    "The inverse of gdtr in x.",
    lambda x, a, b, p: neg(x) / a,
    lambda x, a, b, p: neg(gammainc_a(b, a * x) / (a * gamma_density(b, a * x))),
    lambda x, a, b, p: 1.0 / (a * gamma_density(b, a * x)),
    over=(POSITIVE, POSITIVE, UNIT),
)

# ---- Student's t -------------------------------------------------------------------------------------------------
# F(t) = 1 - I_y(df/2, 1/2) / 2 for t > 0, with y = df / (df + t²).


def student_density(df: Symbol, t: Symbol) -> Symbol:
    """Return the density of Student's t distribution, (1 + t²/df)**(-(df+1)/2) / √df B(1/2, df/2)."""
    half = 0.5 * df
    return exp(neg((half + 0.5) * log1p(t * t / df) + betaln(half, full_like(half, 0.5)))) / sqrt(df)


def _student_in_df(df: Symbol, t: Symbol) -> Symbol:
    """Return ∂F/∂df; apart near t = 0, where the derivatives of I_y in y, all infinite there, cancel."""
    near = lt(t * t, 1e-8 * minimum(df, ones_like(df)))
    return select(near, _student_in_df_near_0(df, t), _student_in_df_by_beta(df, select(near, ones_like(t), t)))


def _student_in_df_near_0(df: Symbol, t: Symbol) -> Symbol:
    """Return the integral of ∂f/∂df, with f the density, from 0 to t: it is even in t, so one point does to t⁴."""
    t2 = t * t * (1 / 3)
    half = 0.5 * df
    rate = psi(half + 0.5) - psi(half) - log1p(t2 / df) + (t2 - 1.0) / (df + t2)
    return 0.5 * rate * t * student_density(df, t * 3**-0.5)


def _student_in_df_by_beta(df: Symbol, t: Symbol) -> Symbol:
    """Return ∂F/∂df from y or, near 0, from 1 - y, whichever is small and so accurate."""
    square, half, other = t * t, 0.5 * df, full_like(df, 0.5)
    total = df + square
    tail = select(lt(square, df), neg(betainc_b(other, half, square / total)), betainc_a(half, other, df / total))
    moved = t * student_density(df, t) / df
    return neg(0.25 * sign(t) * tail) - 0.5 * moved


stdtr = special(
    "stdtr",
    "Student's t distribution function.",
    lambda y, df, t: _student_in_df(df, t),
    lambda y, df, t: student_density(df, t),
    over=(POSITIVE, LINE),
    edges=((2.0, 0.0), (30.0, 1.0), (0.5, -40.0)),
)
stdtrit = special(
    "stdtrit",
    "The inverse of stdtr in t.",
    lambda t, df, p: neg(_student_in_df(df, t) / student_density(df, t)),
    lambda t, df, p: 1.0 / student_density(df, t),
    over=(POSITIVE, UNIT),
)

# ---- F -----------------------------------------------------------------------------------------------------------
# It is that of a beta variable at y = dfn x / (dfd + dfn x).


def _f_operands(dfn: Symbol, dfd: Symbol, x: Symbol) -> tuple[Symbol, Symbol, Symbol]:
    return 0.5 * dfn, 0.5 * dfd, dfn * x / (dfd + dfn * x)


def _f_density(dfn: Symbol, dfd: Symbol, x: Symbol) -> Symbol:
    total = dfd + dfn * x
    return beta_density(*_f_operands(dfn, dfd, x)) * dfn * dfd / (total * total)


def _f_in_dfn(dfn: Symbol, dfd: Symbol, x: Symbol) -> Symbol:
    return 0.5 * betainc_a(*_f_operands(dfn, dfd, x)) + _f_density(dfn, dfd, x) * x / dfn


def _f_in_dfd(dfn: Symbol, dfd: Symbol, x: Symbol) -> Symbol:
    return 0.5 * betainc_b(*_f_operands(dfn, dfd, x)) - _f_density(dfn, dfd, x) * x / dfd


fdtr = special(
    "fdtr",
    "F distribution function.",
    lambda y, n, d, x: _f_in_dfn(n, d, x),
    lambda y, n, d, x: _f_in_dfd(n, d, x),
    lambda y, n, d, x: _f_density(n, d, x),
    over=(POSITIVE, POSITIVE, POSITIVE),
)
fdtrc = special(
    "fdtrc",
    "1 - fdtr(dfn, dfd, x).",
    lambda y, n, d, x: neg(_f_in_dfn(n, d, x)),
    lambda y, n, d, x: neg(_f_in_dfd(n, d, x)),
    lambda y, n, d, x: neg(_f_density(n, d, x)),
    over=(POSITIVE, POSITIVE, POSITIVE),
)
fdtri = special(
    "fdtri",
    "The inverse of fdtr in x.",
    lambda x, n, d, p: neg(_f_in_dfn(n, d, x) / _f_density(n, d, x)),
    lambda x, n, d, p: neg(_f_in_dfd(n, d, x) / _f_density(n, d, x)),
    lambda x, n, d, p: 1.0 / _f_density(n, d, x),
    over=(POSITIVE, POSITIVE, UNIT),
)
