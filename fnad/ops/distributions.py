"""Distribution functions that are ufuncs of SciPy, and their inverses.

The slope of a distribution function is the density, that of an inverse its reciprocal: all are densities of the gamma
and the beta distribution (DLMF 8.8.13, 8.17.1; Abramowitz & Stegun 26.4, 26.5). In a real parameter the slope is that
of an incomplete gamma or beta function. Counts are rounded down, as SciPy does, and have no derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fnad.ops.constructors import LINE, UNIT
from fnad.ops.formula import formula
from fnad.ops.special_function import POSITIVE, special
from fnad.scalar.scipy_ufunc import scipy_function

COUNT = (2.0, 2.0)
TRIALS = (COUNT, (5.0, 5.0), UNIT)
TWO, THREE = (POSITIVE,) * 2, (POSITIVE,) * 3


def _counted(name: str) -> Callable[[Any, Any, Any], Any]:
    """The ufunc with the number of trials as the integer that it asks for."""
    return lambda k, n, p: np.asarray(scipy_function(name)(k, np.trunc(n).astype(np.int64), p), p.dtype)


# fmt: off
# ---- of counts ---------------------------------------------------------------------------------------------------

formula("poisson_density(k, m)", "gamma_density(floor(k) + 1.0, m)")
formula("binomial_density(k, n, p)", "beta_density(floor(k) + 1.0, n - floor(k), p)")
formula("negative_binomial_density(k, n, p)", "beta_density(n, floor(k) + 1.0, p)")

pdtr = special("pdtr(k, m)", "Poisson distribution function.", (COUNT, POSITIVE), m="-poisson_density(k, m)")
pdtrc = special("pdtrc(k, m)", "1 - pdtr(k, m).", (COUNT, POSITIVE), m="poisson_density(k, m)")
pdtri = special("pdtri(k, p)", "The inverse of pdtr in m.", (COUNT, UNIT), p="-1.0 / poisson_density(k, y)")
bdtr = special("bdtr(k, n, p)", "Binomial distribution function.", TRIALS, ufunc="bdtr", evaluate=_counted("bdtr"),
               p="-binomial_density(k, n, p)")
bdtrc = special("bdtrc(k, n, p)", "1 - bdtr(k, n, p).", TRIALS, ufunc="bdtrc", evaluate=_counted("bdtrc"),
                p="binomial_density(k, n, p)")
bdtri = special("bdtri(k, n, q)", "The inverse of bdtr in p.", TRIALS, ufunc="bdtri", evaluate=_counted("bdtri"),
                q="-1.0 / binomial_density(k, n, y)")
nbdtr = special("nbdtr(k, n, p)", "Negative binomial distribution function.", TRIALS,
                p="negative_binomial_density(k, n, p)")
nbdtrc = special("nbdtrc(k, n, p)", "1 - nbdtr(k, n, p).", TRIALS, p="-negative_binomial_density(k, n, p)")
nbdtri = special("nbdtri(k, n, q)", "The inverse of nbdtr in p.", TRIALS,
                 q="1.0 / negative_binomial_density(k, n, y)")

# ---- of the gamma family -----------------------------------------------------------------------------------------

formula("chi_square_density(v, x)", "0.5 * gamma_density(0.5 * v, 0.5 * x)")
formula("chdtr_v(v, x)", "0.5 * gammainc_a(0.5 * v, 0.5 * x)")

chdtr = special("chdtr(v, x)", "Chi-square distribution function.", TWO, v="chdtr_v(v, x)",
                x="chi_square_density(v, x)")
chdtrc = special("chdtrc(v, x)", "1 - chdtr(v, x).", TWO, v="-chdtr_v(v, x)", x="-chi_square_density(v, x)")
chdtri = special("chdtri(v, p)", "The inverse of chdtrc in x.", (POSITIVE, UNIT),
                 v="-(chdtr_v(v, y) / chi_square_density(v, y))", p="-1.0 / chi_square_density(v, y)")

# The product with the gamma density, 0 where the factor is even if the density is infinite.
formula("times_density(factor, b, x)", "strong_mul(select(gt(b, 0.0), factor, nan), gamma_density(b, x))")
GDTR_EDGES = ((2.0, 0.5, 0.0), (2.0, 3.0, 0.0), (0.0, 0.5, 2.0), (0.0, 3.0, 2.0))

gdtr = special("gdtr(a, b, x)", "Gamma distribution function.", THREE, edges=GDTR_EDGES,
               a="times_density(x, b, a * x)", b="gammainc_a(b, a * x)", x="times_density(a, b, a * x)")
gdtrc = special("gdtrc(a, b, x)", "1 - gdtr(a, b, x).", THREE, edges=GDTR_EDGES,
                a="times_density(-x, b, a * x)", b="-gammainc_a(b, a * x)", x="times_density(-a, b, a * x)")
gdtrix = special("gdtrix(a, b, p)", "The inverse of gdtr in x.", (*TWO, UNIT), a="-y / a",
                 b="-(gammainc_a(b, a * y) / (a * gamma_density(b, a * y)))", p="1.0 / (a * gamma_density(b, a * y))")

# ---- Student's t -------------------------------------------------------------------------------------------------

stdtr = special("stdtr(df, t)", "Student's t distribution function.", (POSITIVE, LINE),
                edges=((2.0, 0.0), (30.0, 1.0), (0.5, -40.0)), df="stdtr_df(df, t)", t="student_density(df, t)")
stdtrit = special("stdtrit(df, p)", "The inverse of stdtr in t.", (POSITIVE, UNIT),
                  df="-(stdtr_df(df, y) / student_density(df, y))", p="1.0 / student_density(df, y)")

# (1 + t²/df)**(-(df+1)/2) / √df B(1/2, df/2)
student_density = formula("student_density(df, t)",
    "exp(-((0.5 * df + 0.5) * log1p(t * t / df) + betaln(0.5 * df, 0.5))) / sqrt(df)")
# F(t) = 1 - I_y(df/2, 1/2) / 2 for t > 0, with y = df / (df + t²). Near t = 0 the derivatives of I_y in y, all infinite
# there, cancel: there ∂F/∂df is the integral of ∂f/∂df, with f the density, from 0 to t. The integrand is even, so one
# point does to t⁴.
formula("stdtr_df(df, t)", """
    select(lt(t * t, 1e-8 * minimum(df, 1.0)), stdtr_df_near_0(df, t),
           stdtr_df_by_beta(df, select(lt(t * t, 1e-8 * minimum(df, 1.0)), 1.0, t)))""")
formula("stdtr_df_near_0(df, t)", """
    0.5 * (psi(0.5 * df + 0.5) - psi(0.5 * df) - log1p(t * t * (1 / 3) / df)
           + (t * t * (1 / 3) - 1.0) / (df + t * t * (1 / 3))) * t * student_density(df, t * 3**-0.5)""")
formula("stdtr_df_by_beta(df, t)", """
    -(0.25 * sign(t) * stdtr_tail(df, t)) - 0.5 * (t * student_density(df, t) / df)""")
# From y or, near 0, from 1 - y, whichever is small and so accurate.
formula("stdtr_tail(df, t)", """
    select(lt(t * t, df), -betainc_b(0.5, 0.5 * df, t * t / (df + t * t)),
           betainc_a(0.5 * df, 0.5, df / (df + t * t)))""")

# ---- F -----------------------------------------------------------------------------------------------------------
# It is that of a beta variable at y = dfn x / (dfd + dfn x).

formula("f_y(n, d, x)", "n * x / (d + n * x)")
formula("f_density(n, d, x)", """
    beta_density(0.5 * n, 0.5 * d, f_y(n, d, x)) * n * d / ((d + n * x) * (d + n * x))""")
formula("fdtr_n(n, d, x)", "0.5 * betainc_a(0.5 * n, 0.5 * d, f_y(n, d, x)) + f_density(n, d, x) * x / n")
formula("fdtr_d(n, d, x)", "0.5 * betainc_b(0.5 * n, 0.5 * d, f_y(n, d, x)) - f_density(n, d, x) * x / d")

fdtr = special("fdtr(n, d, x)", "F distribution function.", THREE,
               n="fdtr_n(n, d, x)", d="fdtr_d(n, d, x)", x="f_density(n, d, x)")
fdtrc = special("fdtrc(n, d, x)", "1 - fdtr(dfn, dfd, x).", THREE,
                n="-fdtr_n(n, d, x)", d="-fdtr_d(n, d, x)", x="-f_density(n, d, x)")
fdtri = special("fdtri(n, d, p)", "The inverse of fdtr in x.", (*TWO, UNIT),
                n="-(fdtr_n(n, d, y) / f_density(n, d, y))", d="-(fdtr_d(n, d, y) / f_density(n, d, y))",
                p="1.0 / f_density(n, d, y)")
# fmt: on
