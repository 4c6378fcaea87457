"""The gamma function, its logarithm and the derivatives of that, the beta function and Pochhammer's symbol.

From 3 on they are Stirling's series (DLMF 5.11.1 and 5.11.2) with polynomials in 1/x² in place of the divergent ones.
Between 1 and 3 they are polynomials times the differences from their zeros, as in W. J. Cody, A. J. Strecok & H. C.
Thacher, Math. Comp. 27 (1973), 123. Below 1 there is the recurrence, below 0 the reflection (DLMF 5.5.1 to 5.5.4).

The gamma function of f32, the beta function and Pochhammer's symbol are computed in f64: from Stirling's series at
arguments that are larger by 3, of which the logarithms of quotients are taken before they are multiplied (A. R.
DiDonato & A. H. Morris, "Significant digit computation of the incomplete beta function ratios", ACM Trans. Math. Softw.
18 (1992), 360). In f64 their errors are some units, where differences of logarithms, as in SciPy, lose five digits.
"""

from __future__ import annotations

import math

from fnad.backends.llvm.formulas import twofold
from fnad.backends.llvm.formulas.coefficients import table
from fnad.backends.llvm.formulas.exponential import INF, NAN, exp, log1p, log_of
from fnad.backends.llvm.formulas.twofold import (
    Twofold,
    by_dtype,
    choose,
    exact_product,
    exact_sum,
    polynomial,
    precise,
    sorted_sum,
)
from fnad.backends.llvm.lane import Lane, where

HALF_LOG_2PI = by_dtype((0.9189385332046728, -3.8782941580672414e-17), (0.9189385175704956, 1.563417661998301e-08))
PI = by_dtype((3.141592653589793, 1.2246467991473532e-16), (3.1415927410125732, -8.742277657347586e-08))
ROOT = by_dtype((1.4616321449683622, 9.549995429965697e-17), (1.4616321325302124, 1.243815006546356e-08))
"""The zero of digamma."""

# ---- the logarithm of gamma --------------------------------------------------------------------------------------


def gammaln(x: Lane) -> Lane:
    size = abs(x)
    is_below, is_left = size < 1.0, x < 0.0
    logarithm = log_of(size)
    near = near_zeros(size)
    near_or_small = choose(is_below, near.plus_twofold(logarithm.negative()), near)
    value = choose(size < 3.0, near_or_small, stirling(size, logarithm))
    # log |Γ(-x)| = -log Γ(x) - log |x sin(πx) / π|; below 1 the two logarithms of x cancel.
    wave, _ = waves(size)
    reflected = choose(is_below, wave, wave.times(size))
    sum_left = choose(is_below, near, value).plus_twofold(log_of(reflected.high, reflected.low))
    result = where(is_left, -sum_left.total(), value.total())
    is_pole = (x <= 0.0) & (wave.high <= 0.0)
    result = where(is_pole, INF, result)
    limit = 2.5e305 if x.is_double else 4e36
    huge = where(is_left, INF, logarithm.plus(x.number(-1.0)).product(x))
    return where(size < INF, where(size < limit, result, huge), x)


def near_zeros(size: Lane) -> Twofold:
    """The logarithm of Γ between 1 and 3, and of Γ(1 + size) below."""
    is_below = size < 1.0
    above_one, above_two = where(is_below, size, size - 1.0), where(is_below, size - 1.0, size - 2.0)
    return exact_product(above_one, above_two).times_twofold(precise("gamma", above_two))


def stirling(size: Lane, logarithm: Twofold) -> Twofold:
    """The sum (x - 1/2) log x - x + log(2π) / 2 + P(1/x²) / x."""
    inverse = 1.0 / size
    series = polynomial(table("stirling", size), inverse * inverse) * inverse
    product = logarithm.times_twofold(exact_sum(size, -0.5))
    half_log = HALF_LOG_2PI(size)
    return product.plus(-size).plus_twofold(Twofold(half_log.high, half_log.low + series))


def waves(size: Lane) -> tuple[Twofold, Twofold]:
    """The size of sin(πx) / π, and cos(πx) / π with the sign that it has if that of the sine is positive."""
    f = size - size.intrinsic("rint")
    beside = abs(f)
    is_near_half = beside > 0.25
    g = where(is_near_half, 0.5 - beside, beside)
    of_sine, of_cosine = precise("sin_pi", g * g).times(g), precise("cos_pi", g * g)
    sine, cosine = choose(is_near_half, of_cosine, of_sine), choose(is_near_half, of_sine, of_cosine)
    return sine, choose(f < 0.0, cosine.negative(), cosine)


# ---- digamma -----------------------------------------------------------------------------------------------------


def digamma(x: Lane) -> Lane:
    size = abs(x)
    is_below, is_left = size < 1.0, x < 0.0
    inverse = twofold.of(x.number(1.0)).over(twofold.of(size))
    value = choose(size < 3.0, near_root(size), far(size, inverse.high))
    # ψ(x) = ψ(1 + x) - 1/x and ψ(-x) = ψ(x) + 1/x + π cot(πx); below 1 the two inverses cancel.
    zero = twofold.of(x.number(0.0))
    step = choose(is_left, choose(is_below, zero, inverse), choose(is_below, inverse.negative(), zero))
    sine, cosine = waves(size)
    cotangent = cosine.over(sine).times_twofold(PI(x))
    value = value.plus_twofold(step)
    result = where(is_left, value.plus_twofold(cotangent).total(), value.total())
    result = where(is_left & (abs(sine.high) <= 0.0), NAN, result)
    result = where(size > 2.0**-60, result, -(1.0 / x))
    return where(size < INF, result, where(is_left, NAN, x))


def near_root(size: Lane) -> Twofold:
    """Digamma between 1 and 3, and of 1 + size below."""
    is_below = size < 1.0
    root = ROOT(size)
    above_root = sorted_sum(size - where(is_below, root.high - 1.0, root.high), -root.low)
    return above_root.times_twofold(precise("digamma", where(is_below, size - 1.0, size - 2.0)))


def far(size: Lane, inverse: Lane) -> Twofold:
    """The difference log x - 1/(2x) - P(1/x²) / x²."""
    z = inverse * inverse
    series = (inverse * 0.5) + z * polynomial(table("digamma_far", size), z)
    return log_of(size).plus(-series)


# ---- trigamma ----------------------------------------------------------------------------------------------------


def trigamma(x: Lane) -> Lane:
    """The derivative of digamma, which is Hurwitz's ζ(2, x)."""
    size = abs(x)
    is_below, is_left = size < 1.0, x < 0.0
    one = twofold.of(x.number(1.0))
    inverse = one.over(twofold.of(size))
    square = inverse.times_twofold(inverse)
    near = precise("trigamma", where(is_below, size - 1.0, size - 2.0))
    z = square.high
    series = z.muladd(0.5, z * inverse.high * polynomial(table("trigamma_far", z), z))
    value = choose(size < 3.0, near, sorted_sum(inverse.high, inverse.low + series))
    # ψ'(x) = ψ'(1 + x) + 1/x² and ψ'(-x) = (π / sin(πx))² - ψ'(x) + 1/x²; below 1 the two squares cancel.
    step = choose(is_left ^ is_below, square, twofold.of(x.number(0.0)))
    sine, _ = waves(size)
    cosecant = one.over(sine)
    reflected = cosecant.times_twofold(cosecant).plus_twofold(value.negative())
    result = choose(is_left, reflected, value).plus_twofold(step).total()
    is_pole = (x <= 0.0) & (sine.high <= 0.0)
    result = where(size > (2.0**-500 if x.is_double else 2.0**-60), result, inverse.high * inverse.high)
    return where(is_pole, INF, where(size < INF, result, where(is_left, INF, 1.0 / x)))


# ---- gamma, beta and Pochhammer's symbol ---------------------------------------------------------------------------


def gamma(x: Lane) -> Lane:
    """The gamma function; below 0 by reflection, Γ(-x) = -π / (x sin(πx) Γ(x))."""
    z = x.as_double()
    size = abs(z)
    above = size + 3.0
    exponent = (above - 0.5) * log_of(above).total() - above + remainder(above)
    value = exp(exponent) * math.sqrt(2 * math.pi) / rising(size)
    sine = waves(size)[0].high
    half = size.intrinsic("floor") * 0.5
    is_odd = half > half.intrinsic("floor")
    left = where(sine.equals(0.0), NAN, 1.0 / (size * where(is_odd, sine, -sine) * value))
    value = where(z < 0.0, left, where(z.equals(0.0), 1.0 / z, value))
    return where(size < INF, value, where(z < 0.0, NAN, z)).as_single()


def rising(x: Lane) -> Lane:
    """The product x (x + 1) (x + 2)."""
    return x * (x + 1.0) * (x + 2.0)


def remainder(x: Lane) -> Lane:
    """The end of Stirling's series, P(1/x²) / x."""
    inverse = 1.0 / x
    return polynomial(table("stirling", x), inverse * inverse) * inverse


def beta_parts(a: Lane, b: Lane) -> tuple[Lane, Lane]:
    """A logarithm and a factor, the beta function of positive finite f32."""
    total = a + b
    is_first = a < b
    small, large = where(is_first, a, b) + 3.0, where(is_first, b, a) + 3.0
    both = total + 6.0
    powers = small * log_of(small / both).total() - (large - 0.5) * log1p(small / large)
    ratio = rising(total) / rising(a) * (rising(total + 3.0) / rising(b))
    return powers + (remainder(small) + remainder(large) - remainder(both)), ratio * (2 * math.pi / small).sqrt()


def as_operand(value: Lane, operand: Lane) -> Lane:
    """An f64 in the dtype of an operand."""
    return value if operand.is_double else value.as_single()


def beta(a: Lane, b: Lane) -> Lane:
    logarithm, factor = beta_parts(a.as_double(), b.as_double())
    return (exp(logarithm) * factor).as_single()


def betaln(a: Lane, b: Lane) -> Lane:
    logarithm, factor = beta_parts(a.as_double(), b.as_double())
    return as_operand(logarithm + log_of(factor).total(), a)


def are_positive(a: Lane, b: Lane) -> Lane:
    """True if both are positive and finite."""
    return (a > 0.0) & (b > 0.0) & (a < INF) & (b < INF)


def are_moderate(a: Lane, b: Lane) -> Lane:
    """True if both are positive and finite, and in f64 within bounds."""
    return is_moderate(a) & is_moderate(b) if a.is_double else are_positive(a, b)


def is_moderate(x: Lane) -> Lane:
    return (x >= 2.0**-20) & (x <= 2.0**20)


def poch(a: Lane, m: Lane) -> Lane:
    """The quotient Γ(a + m) / Γ(a) of positive finite f32, or of f64 where m is small."""
    first, step = a.as_double(), m.as_double()
    last = first + step
    low, high = first + 3.0, last + 3.0
    exponent = (low - 0.5) * log1p(step / low) + step * log_of(high).total() - step
    value = exp(exponent + (remainder(high) - remainder(low)))
    return as_operand(value * (rising(first) / rising(last)), a)


def are_arguments_positive(a: Lane, m: Lane) -> Lane:
    """True if both arguments of gamma in Pochhammer's symbol are positive and finite, and in f64 m is small."""
    last = a.as_double() + m.as_double()
    if a.is_double:
        return is_moderate(a) & is_moderate(last) & (abs(m) <= 1.0)
    return (a > 0.0) & (last > 0.0) & (a < INF) & (last < INF)
