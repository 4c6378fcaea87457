"""Error functions and the normal distribution, the logistic function, the logarithm of a sum of exponentials.

DLMF is the NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov.
"""

from __future__ import annotations

import math

import numpy as np

from fnad.ir.primitive import everywhere
from fnad.ir.symbol import Symbol
from fnad.ops.arithmetic import absorbing_mul, neg
from fnad.ops.comparison import gt, isinf, select
from fnad.ops.conversion import complex_, imag, real
from fnad.ops.elementary import exp
from fnad.ops.kinds import COMPLEXES, INEXACT, LINE, REALS, elementwise
from fnad.ops.library import POSITIVE, scipy_call, special
from fnad.ops.piecewise import share
from fnad.ops.shape import zeros_like

INF = float("inf")
SQRT_PI = math.sqrt(math.pi)
SQRT_2PI = math.sqrt(2 * math.pi)

# ---- error functions ---------------------------------------------------------------------------------------------


def _bell(x: Symbol) -> Symbol:
    """Return 2/√π exp(-x²), the derivative of erf (DLMF 7.2.1)."""
    return exp(neg(x * x)) * (2.0 / SQRT_PI)


erf = elementwise(
    "erf",
    scipy_call("erf"),
    "erf({0})",
    (lambda y, x: _bell(x),),
    domain=REALS,
    over=(LINE,),
    edges=((0.0,), (INF,), (-INF,)),
    cost=30,
    bounded=everywhere,
    doc="Error function.",
)
erfc = elementwise(
    "erfc",
    scipy_call("erfc"),
    "erfc({0})",
    (lambda y, x: neg(_bell(x)),),
    domain=REALS,
    over=(LINE,),
    edges=((0.0,), (INF,), (20.0,)),
    cost=30,
    bounded=everywhere,
    doc="Complementary error function, 1 - erf(x), accurate for large x.",
)
complex_erfc = special(
    "complex_erfc",
    "Complementary error function of complex numbers.",
    lambda y, z: neg(_bell(z)),
    domain=COMPLEXES,
    evaluate=scipy_call("erfc"),
)
erfcx = special(
    "erfcx", "exp(x²) erfc(x); DLMF 7.10.1.", lambda y, x: 2.0 * x * y - 2.0 / SQRT_PI, domain=INEXACT, over=(LINE,)
)
erfi = special("erfi", "-i erf(ix); DLMF 7.2.1.", lambda y, x: exp(x * x) * (2.0 / SQRT_PI), domain=INEXACT)
dawsn = special(
    "dawsn", "Dawson's integral; DLMF 7.10.2 and 7.5.1.", lambda y, x: 1.0 - 2.0 * x * y, domain=INEXACT, over=(LINE,)
)
wofz = special(
    "wofz",
    "The Faddeeva function exp(-z²) erfc(-iz); DLMF 7.10.2.",
    lambda y, z: -2.0 * z * y + 2.0j / SQRT_PI,
    domain=COMPLEXES,
)
erfinv = special("erfinv", "The inverse of erf; DLMF 7.17.1.", lambda y, x: exp(y * y) * (SQRT_PI / 2))
erfcinv = special("erfcinv", "The inverse of erfc; DLMF 7.17.1.", lambda y, x: exp(y * y) * (-SQRT_PI / 2))

# ---- the normal distribution -------------------------------------------------------------------------------------


def _normal_density(x: Symbol) -> Symbol:
    return exp(-0.5 * (x * x)) * (1.0 / SQRT_2PI)


def _mills_ratio(x: Symbol) -> Symbol:
    """Return Φ(x)/φ(x), the ratio of the normal distribution function to its density, which neither underflows."""
    return erfcx(x * -math.sqrt(0.5)) * (SQRT_2PI / 2)


ndtr = elementwise(
    "ndtr",
    scipy_call("ndtr"),
    "{dtype}(0.5) * erfc({0} * {dtype}(" + repr(-math.sqrt(0.5)) + "))",
    (lambda y, x: _normal_density(x),),
    domain=REALS,
    over=(LINE,),
    edges=((0.0,), (INF,), (-INF,), (-30.0,)),
    cost=32,
    doc="Distribution function Φ of the standard normal distribution.",
)
log_ndtr = special(
    "log_ndtr",
    "log Φ(x), accurate for x far below 0.",
    lambda y, x: 1.0 / _mills_ratio(x),
    domain=INEXACT,
    over=(LINE,),
)
ndtri = special("ndtri", "The inverse of Φ.", lambda y, p: exp(0.5 * (y * y)) * SQRT_2PI)
ndtri_exp = special("ndtri_exp", "The inverse of log Φ.", lambda y, x: _mills_ratio(y), over=((-3.0, -0.1),))
owens_t = special(
    "owens_t",
    "Owen's T function; D. B. Owen, Ann. Math. Statist. 27 (1956), 1075.",
    lambda y, h, a: erf(a * h * math.sqrt(0.5)) * exp(-0.5 * (h * h)) * (-0.5 / SQRT_2PI),
    lambda y, h, a: exp(-0.5 * (h * h) * (1.0 + a * a)) / (1.0 + a * a) * (0.5 / math.pi),
)


# ---- the convolution of the normal and the Cauchy density --------------------------------------------------------
# V = Re w(z) / σ√(2π) with z = (x + iγ) / σ√2 (DLMF 7.19.1), so its slopes are those of w.


def _position(x: Symbol, sigma: Symbol, gamma: Symbol) -> Symbol:
    return complex_(x / sigma, gamma / sigma) * math.sqrt(0.5)


def _slope(z: Symbol, sigma: Symbol) -> Symbol:
    """Return w'(z) / 2√π σ²."""
    variance = sigma * sigma
    return (2.0j / SQRT_PI - 2.0 * z * wofz(z)) * (0.5 / SQRT_PI) / complex_(variance, zeros_like(variance))


def _voigt_sigma(y: Symbol, x: Symbol, sigma: Symbol, gamma: Symbol) -> Symbol:
    z = _position(x, sigma, gamma)
    return neg(real(z * _slope(z, sigma))) * math.sqrt(2) - y / sigma


voigt_profile = special(
    "voigt_profile",
    "The Voigt profile; DLMF 7.19.1.",
    lambda y, x, s, g: real(_slope(_position(x, s, g), s)),
    _voigt_sigma,
    lambda y, x, s, g: neg(imag(_slope(_position(x, s, g), s))),
    over=(LINE, POSITIVE, POSITIVE),
)

# ---- logistic and log-sum-exp -------------------------------------------------------------------------------------

logistic = elementwise(
    "logistic",
    lambda x: np.true_divide(x.dtype.type(1), x.dtype.type(1) + np.exp(-x)),
    "{dtype}(1) / ({dtype}(1) + exp(-{0}))",
    (lambda y, x: y * (1.0 - y),),
    domain=REALS,
    over=(LINE,),
    edges=((0.0,), (-1000.0,), (1000.0,), (INF,), (-INF,)),
    cost=25,
    bounded=everywhere,
    doc="1 / (1 + exp(-x)).",
)


logit = elementwise(
    "logit",
    scipy_call("logit"),
    "select(({0} > {dtype}(0.3)) & ({0} < {dtype}(0.65)),"
    " log1p({dtype}(2) * ({0} - {dtype}(0.5))) - log1p({dtype}(-2) * ({0} - {dtype}(0.5))),"
    " log({0} / ({dtype}(1) - {0})))",
    (lambda y, p: 1.0 / absorbing_mul(p, 1.0 - p),),
    domain=REALS,
    edges=((0.0,), (1.0,), (0.5,), (-1.0,), (INF,)),
    cost=60,
    doc="The logarithm of the odds p / (1 - p).",
)


def _weight(result: Symbol, mine: Symbol, other: Symbol) -> Symbol:
    """Return exp(mine - result); where the sum is infinite, what the limit is: 0 of -inf, else as a maximum shares."""
    at_infinity = select(gt(result, zeros_like(result)), share(result, mine, other), zeros_like(result))
    return select(isinf(result), at_infinity, logistic(mine - other))


logaddexp = elementwise(
    "logaddexp",
    np.logaddexp,
    "select({0} == {1}, {0} + {dtype}(" + repr(math.log(2)) + "), maximum({0}, {1}) + log1p(exp(-abs({0} - {1}))))",
    (_weight, lambda r, x, y: _weight(r, y, x)),
    domain=REALS,
    over=(LINE, LINE),
    edges=((0.0, 0.0), (-INF, 0.0), (-INF, -INF), (INF, INF), (INF, 0.0), (1000.0, -1000.0)),
    cost=45,
    doc="log(exp(x) + exp(y)) without overflow; its derivative where both are -inf is 0.",
)
