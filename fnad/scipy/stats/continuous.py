"""The continuous distributions. A formula that would overflow or cancel is replaced by another one there."""

from __future__ import annotations

import math

from fnad.ir.symbol import Symbol
from fnad.ops.formula import formula, word
from fnad.ops.shape import full_like
from fnad.scipy.stats.univariate import INF, Continuous

word("log_2", math.log(2))
word("log_pi", math.log(math.pi))
word("half_log_2pi", 0.5 * math.log(2 * math.pi))


def _series(x: Symbol, *coefficients: float) -> Symbol:
    """The polynomial with these coefficients of x, x², …, by Horner's scheme."""
    total = full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total * x


word("series", _series)

# fmt: off
# ---- of location and scale ---------------------------------------------------------------------------------------

formula("normal_log_density(z)", "-0.5 * (z * z) - half_log_2pi")
norm = Continuous("norm(z)",
    pdf="exp(-0.5 * (z * z)) * (1.0 / sqrt_2pi)", logpdf="normal_log_density(z)",
    cdf="ndtr(z)", logcdf="log_ndtr(z)", sf="ndtr(-z)", logsf="log_ndtr(-z)", entropy="half_log_2pi + 0.5")

# Each side has its own exponent: the distribution function has no kink at 0, which |z| has.
formula("positive_part(z)", "select(lt(0.0, z), z, 0.0)")
formula("negative_part(z)", "select(lt(0.0, z), 0.0, z)")
formula("laplace_below(z)", "select(lt(0.0, z), 1.0 - 0.5 * exp(-positive_part(z)), 0.5 * exp(negative_part(z)))")
formula("laplace_log_below(z)", "select(lt(0.0, z), log1p(-0.5 * exp(-positive_part(z))), negative_part(z) - log_2)")
laplace = Continuous("laplace(z)",
    logpdf="-abs(z) - log_2", cdf="laplace_below(z)", sf="laplace_below(-z)",
    logcdf="laplace_log_below(z)", logsf="laplace_log_below(-z)", entropy="log_2 + 1")

logistic = Continuous("logistic(z)",
    logpdf="-abs(z) - 2.0 * log1p(exp(-abs(z)))", cdf="logistic(z)", sf="logistic(-z)",
    logcdf="-logaddexp(0.0, -z)", logsf="-logaddexp(0.0, z)", entropy="2.0")

expon = Continuous("expon(z)", (0.0, INF), logpdf="-z", cdf="-expm1(-z)", sf="exp(-z)", logsf="-z", entropy="1.0")

# -log π(1 + z²), for large z as -log π - 2 log z - log(1 + z⁻²), in which nothing overflows.
formula("cauchy_log_near(z)", "log1p(z * z)")
formula("cauchy_log_far(size)", "2.0 * log(size) + log1p(1.0 / size * (1.0 / size))")
cauchy = Continuous("cauchy(z)",
    pdf="(1 / pi) / (z * z + 1.0)",
    logpdf="-select(lt(abs(z), 1.0), cauchy_log_near(select(lt(abs(z), 1.0), z, 0.0)),"
           " cauchy_log_far(select(lt(abs(z), 1.0), 1.0, abs(z)))) - log_pi",
    cdf="arctan2(1.0, -z) * (1 / pi)", sf="arctan2(1.0, z) * (1 / pi)", entropy=str(math.log(4 * math.pi)))

uniform = Continuous("uniform(z)", (0.0, 1.0),
    pdf="stop_gradient(z - z) + 1.0", logpdf="stop_gradient(z - z)", cdf="z", sf="1.0 - z", entropy="0.0")

# ---- with shape parameters ---------------------------------------------------------------------------------------
# Entropies come from series for large parameters (of the gamma distribution: DLMF 5.11.1, 5.11.2).

formula("gamma_entropy(a)", """
    select(lt(250.0, a), gamma_entropy_far(select(lt(250.0, a), a, 250.0)),
           gamma_entropy_near(select(lt(250.0, a), 1.0, a)))""")
formula("gamma_entropy_near(a)", "psi(a) * (1.0 - a) + a + gammaln(a)")
formula("gamma_entropy_far(a)", """
    0.5 * log(a) + (half_log_2pi + 0.5) + series(1.0 / a, -1 / 3, -1 / 12, -1 / 90, 1 / 120)""")
gamma = Continuous("gamma(z, a)", (0.0, INF),
    pdf="gamma_density(a, z)", logpdf="xlogy(a - 1.0, z) - z - gammaln(a)",
    cdf="gammainc(a, z)", sf="gammaincc(a, z)", entropy="gamma_entropy(a)")
chi2 = Continuous("chi2(z, df)", (0.0, INF),
    pdf="0.5 * gamma_density(0.5 * df, 0.5 * z)",
    logpdf="xlogy(0.5 * df - 1.0, z) - 0.5 * z - gammaln(0.5 * df) - (0.5 * log_2) * df",
    cdf="chdtr(df, z)", sf="chdtrc(df, z)", entropy="gamma_entropy(0.5 * df) + log_2")

beta = Continuous("beta(z, a, b)", (0.0, 1.0),
    pdf="beta_density(a, b, z)", logpdf="xlog1py(b - 1.0, -z) + xlogy(a - 1.0, z) - betaln(a, b)",
    cdf="betainc(a, b, z)", sf="betaincc(a, b, z)",
    entropy="betaln(a, b) - (a - 1.0) * psi(a) - (b - 1.0) * psi(b) + (a + b - 2.0) * psi(a + b)")

# Γ((df+1)/2) / Γ(df/2) √(π df) (1 + z²/df)**(-(df+1)/2); for infinite df it is the normal distribution.
formula("t_log_density(z, df)", """
    log(poch(0.5 * df, 0.5)) - 0.5 * (log(df) + log_pi) - 0.5 * (df + 1.0) * log1p(z * z / df)""")
formula("t_entropy_near(df)", """
    0.5 * (df + 1.0) * (psi(0.5 * (df + 1.0)) - psi(0.5 * df)) + 0.5 * log(df) + betaln(0.5 * df, 0.5)""")
formula("t_entropy_far(df)", "series(1.0 / df, 1.0, 1 / 4, -1 / 6, -1 / 8, 3 / 10, 1 / 4) + (half_log_2pi + 0.5)")
t = Continuous("t(z, df)",
    logpdf="select(isinf(df), normal_log_density(z), t_log_density(z, select(isinf(df), 1.0, df)))",
    cdf="stdtr(df, z)", sf="stdtr(df, -z)",
    entropy="select(lt(100.0, df), t_entropy_far(select(lt(100.0, df), df, 100.0)),"
            " t_entropy_near(select(lt(100.0, df), 1.0, df)))")

formula("lognormal_log_density(x, s)", "-0.5 * (log(x) / s * (log(x) / s)) - log(s * x) - half_log_2pi")
lognorm = Continuous("lognorm(z, s)", (0.0, INF),
    logpdf="select(eq(z, 0.0), -inf, lognormal_log_density(select(eq(z, 0.0), 1.0, z), s))",
    cdf="ndtr(log(z) / s)", logcdf="log_ndtr(log(z) / s)", sf="ndtr(-(log(z) / s))", logsf="log_ndtr(-(log(z) / s))",
    entropy="log(s) + (half_log_2pi + 0.5)")
# fmt: on
