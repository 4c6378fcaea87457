"""The exponential, the logarithm, and the functions made of one: exp2, expm1, sinh, cosh, tanh, log2, log10, log1p.

With log(2) in two parts, exp(x) = 2**k exp(r), |r| <= log(2) / 2, and log(2**k (1 + f)) = k log(2) + 2 artanh(s) with
s = f / (2 + f). These are the algorithms of fdlibm (Sun Microsystems, 1993), carried on to sums of two floats.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from fnad.backends.llvm.formulas import twofold
from fnad.backends.llvm.formulas.coefficients import table
from fnad.backends.llvm.formulas.twofold import Twofold, paired, polynomial, sorted_sum
from fnad.backends.llvm.lane import Lane, where
from fnad.scalar.operations import NEARLY_ZERO

INF, NAN = math.inf, math.nan


class Format(NamedTuple):
    """The numbers that depend on the dtype."""

    mantissa: int
    bias: int
    least: float
    """A number whose exponential is 0."""
    largest: float
    """A number whose exponential is infinite, by less than a factor of 2."""
    highest: float
    """The largest number whose exponential is finite."""
    to_half_root: int
    """The difference of the representations of 1 and the root of 1/2."""
    ln2: tuple[float, float]
    """log(2) in two parts, of which the first has so few bits that its product with an exponent is exact."""

    @property
    def rounding(self) -> float:
        """Added to a small number it leaves the nearest integer in the last bits."""
        return 1.5 * 2.0**self.mantissa

    @property
    def tiny(self) -> float:
        """The smallest normal number."""
        return 2.0 ** (1 - self.bias)


F64 = Format(
    52, 1023, -746.0, 710.0, 709.782712893384, 0x0009_5F61_9980_C433, (0.6931471803691238, 1.9082149292705877e-10)
)
F32 = Format(23, 127, -104.0, 89.0, 88.72283172607422, 0x004A_FB0D, (0.693359375, -2.1219444005469057e-4))


LEAST_NORMAL = -87.33654022216797
"""The least number in f32 whose exponential is not subnormal."""


def format_of(x: Lane) -> Format:
    return F64 if x.is_double else F32


LN2 = twofold.by_dtype((0.6931471805599453, 2.3190468138462996e-17), (0.6931471824645996, -1.9046542121259336e-09))
OVER_LN2 = twofold.by_dtype((1.4426950408889634, 2.0355273740931033e-17), (1.4426950216293335, 1.925963033500011e-08))
OVER_LN10 = twofold.by_dtype((0.4342944819032518, 1.098319650216765e-17), (0.4342944920063019, -1.0103049952192578e-08))

# ---- exponentials ------------------------------------------------------------------------------------------------


class ScaledNumber(NamedTuple):
    """The number value * 2**exponent."""

    value: Twofold
    exponent: Lane

    def total(self) -> Lane:
        return self.scaled(self.value.total())

    def scaled(self, x: Lane) -> Lane:
        """The product of a float and 2**exponent, in two steps, because that alone may be infinite or 0."""
        f = format_of(self.exponent)
        half = (self.exponent * 0.5 + f.rounding) - f.rounding
        return x * power_of_two(half) * power_of_two(self.exponent - half)


def power_of_two(k: Lane) -> Lane:
    """The power 2**k of an integer k, if it is a normal number."""
    f = format_of(k)
    return (((k + f.rounding).bits() << f.mantissa) + (f.bias << f.mantissa)).as_float()


class Reduced(NamedTuple):
    """The parts of exp(x) = 2**exponent (1 + rest + above), rest at most log(2) / 2 and above a fifth of it."""

    exponent: Lane
    rest: Lane
    above: Lane


def reduced(x: Twofold, least: float, largest: float) -> Reduced:
    f = format_of(x.high)
    within = clamped(x.high, least, largest)
    k = within.muladd(1 / math.log(2), f.rounding) - f.rounding
    rest = sorted_sum(k.muladd(-f.ln2[0], within), k * -f.ln2[1])
    r, low = rest.high, rest.low + x.low
    above = (r * r).muladd(polynomial(table("exp", r), r), low)
    return Reduced(k, r, low.muladd(r + above, above))


def clamped(x: Lane, least: float, largest: float) -> Lane:
    """The nearest number between two; nan stays nan."""
    bounded = where(x > largest, largest, x)
    return where(bounded < least, least, bounded)


BEYOND = 64.0
"""The part of an exponent that may be too large, where a factor makes the product finite."""


def exp_of(x: Twofold) -> ScaledNumber:
    f = format_of(x.high)
    k, rest, above = reduced(x, f.least, f.largest + BEYOND)
    one = sorted_sum(rest.number(1.0), rest)
    return ScaledNumber(sorted_sum(one.high, one.low + above), k)


def exp(x: Lane) -> Lane:
    """The number 2**k (1 + q), rounded twice: less accurate than `exp_of`, and faster than libmvec.

    Its factor has two parts, because alone it may be infinite or subnormal; the first is made of the bits of k.
    """
    f = format_of(x)
    biased = f.rounding + (f.bias - 1)
    shifted = x.muladd(1 / math.log(2), biased)
    k = shifted - biased
    r = k.muladd(-f.ln2[1], k.muladd(-f.ln2[0], x))
    q = (r * r).muladd(paired(table("exp", r), r), r)
    is_small = x < math.log(f.tiny) + 2.0
    bits = shifted.bits()
    scale = (where(is_small, bits + 64, bits) << f.mantissa).as_float()
    value = q.muladd(scale, scale) * where(is_small, x.number(2.0**-63), 2.0)
    return where((x >= f.least) & (x <= f.highest), value, where(x < 0.0, 0.0, x + INF))


def exp_f32(x: Lane) -> Lane:
    """The same number in f32, by its bits.

    Those of a subnormal number are made by an addition, because a product that is subnormal takes hundreds of cycles on
    some processors. Tails of Gaussian kernels are subnormal in f32, and hardly ever in f64.
    """
    f, implicit = F32, x.number(2.0**F32.mantissa)
    within = where(x < f.least, f.least, x)
    shifted = within.muladd(1 / math.log(2), f.rounding)
    k = shifted - f.rounding
    r = k.muladd(-f.ln2[1], k.muladd(-f.ln2[0], within))
    one = (r * r).muladd(paired(table("exp", r), r), r) + 1.0
    bits = one.bits() + (shifted.bits() << f.mantissa)
    in_units = (bits + ((f.bias + f.mantissa - 1) << f.mantissa)).as_float()
    last = (in_units + implicit).bits() - implicit.bits()
    value = where(x < LEAST_NORMAL, last, bits).as_float()
    return where(x <= f.highest, value, x + INF)


def raised(x: Lane) -> tuple[Twofold, Lane]:
    """The number 2**100 exp(x) for x <= 0, as a sum of two floats and their scale, a power of two.

    The second float is up to a tenth of the first.
    """
    f, least = format_of(x), NEARLY_ZERO[8 if x.is_double else 4]
    is_zero = x < least
    within = where(is_zero, least, x)
    biased = f.rounding + (f.bias + 100)
    shifted = within.muladd(1 / math.log(2), biased)
    k = shifted - biased
    above = k.muladd(-f.ln2[0], within)
    r = k.muladd(-f.ln2[1], above)
    high = r + 1.0
    rest = k.muladd(-f.ln2[1], above - (high - 1.0))
    low = (r * r).muladd(paired(table("exp", r), r), rest)
    return Twofold(high, low), where(is_zero, 0.0, (shifted.bits() << f.mantissa).as_float())


def exp_high(x: Lane) -> Lane:
    number, scale = raised(x)
    return number.high * scale


def exp_low(x: Lane) -> Lane:
    number, scale = raised(x)
    return number.low * scale


def exp2(x: Lane) -> Lane:
    within = clamped(x, -1100.0, 1100.0)
    return exp_of(LN2(within).times(within)).total()


def half_expm1_of(x: Twofold, least: float) -> Twofold:
    """The number (exp(x) - 1) / 2 for x from `least` on, where it is -1/2."""
    return half_expm1(reduced(x, least, format_of(x.high).largest))


def half_expm1(parts: Reduced) -> Twofold:
    k, rest, above = parts
    scale = power_of_two(k - 1.0)
    below = sorted_sum(scale, -0.5)
    total = sorted_sum(below.high, scale * rest)
    return sorted_sum(total.high, scale.muladd(above, total.low + below.low))


def expm1(x: Lane) -> Lane:
    half = half_expm1_of(twofold.of(x), -40.0).total()
    return where(abs(x) < 2.0**-60, x, half + half)


def sinh(x: Lane) -> Lane:
    size = abs(x)
    half = half_expm1_of(twofold.of(clamped(size, 0.0, 40.0)), 0.0)
    near = half.plus_twofold(half.over(half.scaled(2.0).plus(x.number(1.0)))).total()
    return where(size < 2.0**-28, x, where(size < 40.0, near, half_exp(size)).signed(x))


def cosh(x: Lane) -> Lane:
    size = abs(x)
    half = half_expm1_of(twofold.of(clamped(size, 0.0, 40.0)), 0.0)
    inverse = twofold.of(x.number(0.5)).over(half.scaled(2.0).plus(x.number(1.0)))
    return where(size < 40.0, half.plus(x.number(0.5)).plus_twofold(inverse).total(), half_exp(size))


def half_exp(size: Lane) -> Lane:
    """Half of an exponential, which is finite where that is not."""
    return exp_of(LN2(size).negative().plus(clamped(size, 0.0, 800.0))).total()


# ---- the hyperbolic tangent and its slope ------------------------------------------------------------------------

BIASED = F32.rounding + F32.bias
"""Added to a small integer in f32 it leaves the biased exponent of a power of two in the last bits."""

MINUS_TWO_OVER_LN2 = (-2.885390043258667, -3.851925982253235e-08)

FARTHEST = (377.0, 56.0)
"""Numbers from which the slope of tanh is 0 in f64 and in f32."""


class Decay(NamedTuple):
    """The number e = exp(-2 |x|) = 2**k (1 + rest + above); the last bits of `shifted` are those of k."""

    shifted: Lane
    rest: Lane
    above: Lane


def decay_of(x: Lane) -> Decay:
    f = format_of(x)
    twice = clamped(abs(x), 0.0, FARTHEST[0]) * -2.0
    shifted = twice.muladd(1 / math.log(2), f.rounding + f.bias)
    k = shifted - (f.rounding + f.bias)
    r = k.muladd(-f.ln2[1], k.muladd(-f.ln2[0], twice))
    return Decay(shifted, r, (r * r) * paired(table("exp", r), r))


def decay_f32(x: Lane) -> tuple[Lane, Lane]:
    """The numbers `shifted` and rest + above of a float in f32."""
    size = clamped(abs(x), 0.0, FARTHEST[1])
    shifted = size.muladd(MINUS_TWO_OVER_LN2[0], BIASED)
    k = shifted - BIASED
    return shifted, exp2m1(size.muladd(MINUS_TWO_OVER_LN2[1], size.muladd(MINUS_TWO_OVER_LN2[0], -k)))


def exp2m1(r: Lane) -> Lane:
    """The number 2**r - 1 for |r| <= 1/2, in f32."""
    return r * paired(table("exp2", r), r)


def power_of_bits(shifted: Lane) -> Lane:
    """The power of two whose biased exponent is in the last bits of a number."""
    return (shifted.bits() << format_of(shifted).mantissa).as_float()


def scale_of(shifted: Lane) -> Lane:
    """The power 2**k, or 2**-60 if that is larger."""
    f = format_of(shifted)
    least = f.rounding + f.bias - 60.0
    return power_of_bits(where(shifted < least, least, shifted))


def difference_and_inverse(decay: Decay) -> tuple[Twofold, Lane, Lane]:
    """The difference 1 - e, the float 1 + e and its inverse."""
    scale = scale_of(decay.shifted)
    one = 1.0 - scale
    high = scale.muladd(-decay.rest, one)
    e = sorted_sum(high, decay.above.muladd(-scale, scale.muladd(-decay.rest, one - high)))
    divisor = 2.0 - e.high
    return e, divisor, 1.0 / divisor


def single_and_inverse(x: Lane) -> tuple[Lane, Lane, Lane]:
    """The floats e and 1 + e in f32, and the inverse of the second."""
    shifted, q = decay_f32(x)
    scale = scale_of(shifted)
    e = q.muladd(scale, scale)
    divisor = e + 1.0
    return e, divisor, 1.0 / divisor


def tanh(x: Lane) -> Lane:
    """The quotient e / (2 - e) of e = 1 - exp(-2 |x|), with the sign of x, and a Newton step of rounding errors.

    The error is at most 1.5 units in the last place.
    """
    e, divisor, inverse = difference_and_inverse(decay_of(x))
    ratio = e.high * inverse
    rest = (-ratio).fma(divisor, e.high) + ratio.muladd(e.low - ((2.0 - divisor) - e.high), e.low)
    return rest.muladd(inverse, ratio).signed(x)


def tanh_f32(x: Lane) -> Lane:
    """The difference 1 - 2 e / (1 + e), near 0 an odd polynomial, in floats without low parts."""
    (e, _, inverse), size, square = single_and_inverse(x), abs(x), x * x
    near = (polynomial(table("tanh", x), square) * square).muladd(size, size)
    return where(size < 0.625, near, (e * inverse).muladd(-2.0, 1.0)).signed(x)


def sech2(x: Lane) -> Lane:
    """The slope 4 e / (1 + e)**2 of tanh, by numbers that tanh computes too; e may be subnormal."""
    if x.is_double:
        decay = decay_of(x)
        shifted, q, (e, divisor, inverse) = decay.shifted, decay.rest + decay.above, difference_and_inverse(decay)
        low = ((2.0 - divisor) - e.high) - e.low
    else:
        (shifted, q), (e, divisor, inverse) = decay_f32(x), single_and_inverse(x)
        low = e - (divisor - 1.0)
    scale = ((shifted.bits() + 100) << format_of(x).mantissa).as_float()
    value = q.muladd(scale, scale) * (inverse * inverse)
    rest = low.muladd(-inverse, (-inverse).fma(divisor, x.number(1.0)))
    return value.muladd(rest + rest, value) * 2.0**-98


# ---- logarithms --------------------------------------------------------------------------------------------------


def log_of(x: Lane, low: Lane | None = None) -> Twofold:
    """The logarithm of a positive finite number, or of the sum of two."""
    f = format_of(x)
    is_tiny = x < f.tiny
    bits = where(is_tiny, x * 2.0**54, x).bits()
    biased = (bits + f.to_half_root) >> f.mantissa
    m = (bits + (f.bias << f.mantissa) - (biased << f.mantissa)).as_float() - 1.0
    k = (biased | ((f.bias + f.mantissa) << f.mantissa)).as_float() - where(
        is_tiny, x.number(2.0**f.mantissa + f.bias + 54), 2.0**f.mantissa + f.bias
    )
    s = m / (m + 2.0)
    z = s * s
    square = twofold.exact_product(m * 0.5, m)
    above = s.muladd(z.muladd(polynomial(table("log", z), z), square.high), k * f.ln2[1])
    total = sorted_sum(k * f.ln2[0], m)
    following = sorted_sum(total.high, -square.high)
    rest = total.low + (following.low - square.low) + above
    return sorted_sum(following.high, rest if low is None else rest + low / x)


def log_at_limits(x: Lane, value: Lane) -> Lane:
    """A logarithm of x, given for positive finite x."""
    value = where(x > 0.0, value, where(x < 0.0, x.number(NAN), x - INF))
    return where(x < INF, value, x + x)


def log(x: Lane) -> Lane:
    return log_at_limits(x, log_of(x).total())


def log1p(x: Lane) -> Lane:
    one = twofold.exact_sum(x, 1.0)
    value = log_at_limits(one.high, log_of(one.high, one.low).total())
    return where(abs(x) < 2.0**-60, x, value)


def log2(x: Lane) -> Lane:
    return log_at_limits(x, log_of(x).times_twofold(OVER_LN2(x)).total())


def log10(x: Lane) -> Lane:
    return log_at_limits(x, log_of(x).times_twofold(OVER_LN10(x)).total())


def logit(p: Lane) -> Lane:
    ratio = twofold.of(p).over(twofold.exact_sum(-p, 1.0))
    within = log_of(ratio.high, ratio.low).total()
    at_limit = where(p.equals(0.0), p.number(-INF), where(p.equals(1.0), p.number(INF), NAN))
    return where((p > 0.0) & (p < 1.0), within, at_limit)
