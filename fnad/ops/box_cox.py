"""Power transforms: Box and Cox's and its inverse, and x**y - 1.

With L = log x and E(z) = (exp(z) - 1)/z, Box and Cox's transform is L E(λL), so that its slope in λ is L² E'(λL); its
inverse is exp(x R(λx)) with R(u) = log(1 + u)/u, so that the slope there is x² R'(λx) times the value.
(Box and Cox, J. R. Stat. Soc. B 26 (1964), 211.)
"""

from __future__ import annotations

from fnad.ir.symbol import Symbol
from fnad.ops.arithmetic import strong_mul
from fnad.ops.elementary import log, log1p
from fnad.ops.hypergeometric import exprel_slope, log1p_ratio_slope
from fnad.ops.kinds import UNIT
from fnad.ops.library import INF, POSITIVE, special
from fnad.ops.power import log_partial, pow_


def _in_lambda(logarithm: Symbol, lmbda: Symbol) -> Symbol:
    return logarithm * logarithm * exprel_slope(lmbda * logarithm)


boxcox = special(
    "boxcox",
    "(x**λ - 1) / λ, log x where λ is 0.",
    lambda y, x, lmbda: pow_(x, lmbda - 1.0),
    lambda y, x, lmbda: _in_lambda(log(x), lmbda),
    over=(POSITIVE, UNIT),
    edges=((2.0, 0.0), (2.0, 1e-12)),
)
boxcox1p = special(
    "boxcox1p",
    "((1 + x)**λ - 1) / λ, log(1 + x) where λ is 0.",
    lambda y, x, lmbda: pow_(x + 1.0, lmbda - 1.0),
    lambda y, x, lmbda: _in_lambda(log1p(x), lmbda),
    over=(POSITIVE, UNIT),
    edges=((2.0, 0.0), (2.0, 1e-12)),
)
inv_boxcox = special(
    "inv_boxcox",
    "(1 + λx)**(1/λ), exp(x) where λ is 0.",
    lambda y, x, lmbda: y / (lmbda * x + 1.0),
    lambda y, x, lmbda: y * (x * x) * log1p_ratio_slope(lmbda * x),
    over=(POSITIVE, UNIT),
    edges=((2.0, 0.0), (2.0, 1e-12)),
)
inv_boxcox1p = special(
    "inv_boxcox1p",
    "(1 + λx)**(1/λ) - 1, exp(x) - 1 where λ is 0.",
    lambda y, x, lmbda: (y + 1.0) / (lmbda * x + 1.0),
    lambda y, x, lmbda: (y + 1.0) * (x * x) * log1p_ratio_slope(lmbda * x),
    over=(POSITIVE, UNIT),
    edges=((2.0, 0.0), (2.0, 1e-12)),
)
powm1 = special(
    "powm1",
    "x**y - 1, accurate where x**y is near 1.",
    lambda z, x, y: strong_mul(y, pow_(x, y - 1.0)),
    lambda z, x, y: log_partial(pow_(x, y), x, y),
    over=(POSITIVE, POSITIVE),
    edges=((INF, -2.0), (-2.0, 3.0), (-2.0, -2000.0)),
)
