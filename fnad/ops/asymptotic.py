"""Slopes by series, asymptotic ones and three at 0, where the usual formula subtracts what is nearly equal.

Such as erfcx'(x) = 2x erfcx(x) - 2/√π: what is left of the two terms is 1/x² of them, and in the second and third
derivative 1/x⁴ and 1/x⁶. Beyond a bound the function is its series, to rounding, and the slope is that of the series,
so that no order of derivative loses anything:

    erfcx(x)   ~ 1/(√π x) Σ (-1)ᵏ (2k-1)!! / (2x²)ᵏ                                                    DLMF 7.12.1
    F(x)       ~ 1/(2x) Σ (2k-1)!! / (2x²)ᵏ                                      Dawson's integral, DLMF 7.5.2
    w(z)       ~ i/(√π z) Σ (2k-1)!! / (2z²)ᵏ                                       Im z ≥ 0, DLMF 7.12.1
    Iᵥ(x), Kᵥ  ~ exp(x) / √(2πx) Σ (-1)ᵏ aₖ(v) / xᵏ,  √(π/2x) exp(-x) Σ aₖ(v) / xᵏ                     DLMF 10.40
    φ(x)/Φ(-x) ~ x + Σ cₖ x¹⁻²ᵏ                                            its slope is its square less x times it
    Ai, Bi     = c xᵖ Kᵥ(ζ), c xᵖ Iᵥ(ζ) up to exp(-2ζ),  ζ = 2/3 x**(3/2)                              DLMF 9.6
    1 - J₀(x)  = Σ -(-x²/4)ᵏ⁺¹ / (k+1)!²                                     at 0, and so I₀(x) - 1, DLMF 10.2.2
    I₂(x)      = Σ (x²/4)ᵏ⁺¹ / (k! (k+2)!)                                   at 0, DLMF 10.25.2

Except w these are for real numbers; of complex ones the slope is what the usual formula gives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import zip_longest

from fnad.ir.symbol import Symbol
from fnad.ir.types import is_complex
from fnad.ops.arithmetic import neg
from fnad.ops.comparison import bitwise_and, ge, gt, select
from fnad.ops.conversion import imag, real
from fnad.ops.elementary import sqrt
from fnad.ops.formula import word
from fnad.ops.piecewise import abs_, maximum, sign
from fnad.ops.power import pow_
from fnad.ops.shape import full_like, zeros_like

GAUSSIAN_BOUNDS, GAUSSIAN_TERMS = {4: 5.5, 8: 7.0}, {4: 12, 8: 28}
BESSEL_BOUND, BESSEL_TERMS = 30.0, {4: 6, 8: 20}
HAZARD_BOUND, HAZARD_TERMS = 20.0, {4: 6, 8: 14}
POWER_BOUND, POWER_TERMS = 1.0, 10


def _beyond(bound: float | Symbol, x: Symbol, far: Symbol, near: Symbol) -> Symbol:
    limit = bound if isinstance(bound, Symbol) else full_like(x, bound)
    return select(gt(x, limit), far, near)


def _clamped(bound: float | Symbol, x: Symbol) -> Symbol:
    """x, or the bound where x is less: there the series is not read, and need not overflow."""
    return _beyond(bound, x, x, bound if isinstance(bound, Symbol) else full_like(x, bound))


def _polynomial(coefficients: Sequence[float], t: Symbol) -> Symbol:
    """The polynomial by Estrin's scheme, whose terms do not wait for each other."""
    terms = [full_like(t, coefficient) for coefficient in coefficients]
    while len(terms) > 1:
        pairs = zip_longest(terms[::2], terms[1::2])
        terms = [low if high is None else low + high * t for low, high in pairs]
        t = t * t
    return terms[0]


# ---- exp(±x²) times its integral -----------------------------------------------------------------------------------


def _gaussian(sign_of_terms: int) -> list[float]:
    """(2k+1) (±1/2)ᵏ (2k-1)!!, which times -1/x²ᵏ⁺² is the slope of the term k."""
    double_factorials = [math.prod(range(1, 2 * k + 2, 2)) for k in range(GAUSSIAN_TERMS[8])]
    return [product * (sign_of_terms / 2) ** k for k, product in enumerate(double_factorials)]


ERFCX, DAWSON = _gaussian(-1), _gaussian(1)


def _gaussian_slope(factor: float, coefficients: Sequence[float], x: Symbol, near: Symbol) -> Symbol:
    bound, terms = GAUSSIAN_BOUNDS[x.dtype.itemsize], GAUSSIAN_TERMS[x.dtype.itemsize]
    t = 1.0 / _clamped(bound, x)
    return _beyond(bound, x, t * t * factor * _polynomial(coefficients[:terms], t * t), near)


def _erfcx_slope(x: Symbol, near: Symbol) -> Symbol:
    if is_complex(x.dtype):
        return near
    return _gaussian_slope(-1 / math.sqrt(math.pi), ERFCX, x, near)


def _dawson_slope(x: Symbol, near: Symbol) -> Symbol:
    if is_complex(x.dtype):
        return near
    return _gaussian_slope(-0.5, DAWSON, abs_(x), near)


def _faddeeva(coefficients: Sequence[float], power: int, z: Symbol, near: Symbol) -> Symbol:
    """-i/√π z**-power times the polynomial of 1/z², far out in the upper half plane."""
    x, y, bound = real(z), imag(z), GAUSSIAN_BOUNDS[z.dtype.itemsize // 2]
    is_far = bitwise_and(gt(x * x + y * y, full_like(x, bound**2)), ge(y, zeros_like(y)))
    t = 1.0 / select(is_far, z, full_like(z, bound))
    leading = t * t if power == 2 else t * t * t
    return select(is_far, leading * (-1j / math.sqrt(math.pi)) * _polynomial(coefficients, t * t), near)


# ---- scaled Bessel functions -------------------------------------------------------------------------------------


def _bessel_slope(v: float | Symbol, x: Symbol, alternating: int) -> Symbol:
    """-x**(-3/2) Σ (k + 1/2) aₖ(v) (±1/x)ᵏ, with aₖ₊₁ = aₖ (4v² - (2k+1)²) / 8(k+1)."""
    t, squared, terms = 1.0 / x, v * v * 4.0, BESSEL_TERMS[x.dtype.itemsize]
    total = full_like(x, terms + 0.5)
    for k in reversed(range(terms)):
        total = t * ((squared - (2 * k + 1) ** 2) * (alternating / (8 * k + 8))) * total + (k + 0.5)
    return neg(t / sqrt(x) * total)


def _bound(v: float | Symbol, x: Symbol) -> Symbol:
    """The bound from which x is large beside the square of the order too."""
    least = full_like(x, BESSEL_BOUND)
    return maximum(least, v * v * 8.0) if isinstance(v, Symbol) else least


def _bessel_i_slope(v: float | Symbol, x: Symbol, y: Symbol, near: Symbol) -> Symbol:
    """That of exp(-|x|) Iᵥ(x), which for x < 0 is even or odd, or nan."""
    bound, magnitude = _bound(v, x), abs_(x)
    far = _bessel_slope(v, _clamped(bound, magnitude), -1) * (1 / math.sqrt(2 * math.pi))
    return _beyond(bound, magnitude, far * (sign(x) * sign(y)), near)


def _bessel_k_slope(v: float | Symbol, x: Symbol, near: Symbol) -> Symbol:
    if is_complex(x.dtype):
        return near
    bound = _bound(v, x)
    far = _bessel_slope(v, _clamped(bound, x), 1) * math.sqrt(math.pi / 2)
    return _beyond(bound, x, far, near)


def _airye_slope(v: float, power: float, factor: float, alternating: int, x: Symbol, y: Symbol, near: Symbol) -> Symbol:
    """The slope of y = factor x**power B(ζ), with B one of the two scaled functions."""
    if is_complex(x.dtype):
        return near
    bound = (1.5 * BESSEL_BOUND) ** (2 / 3)
    far = _clamped(bound, x)
    root = pow_(far, full_like(far, 0.5))
    steep = _bessel_slope(v, far * root * (2 / 3), alternating) * (root if power == 0.5 else far) * root * factor
    return _beyond(bound, x, y * power / far + steep, near)


# ---- the hazard of the normal distribution -----------------------------------------------------------------------


def _hazard_coefficients() -> list[float]:
    c = [1]
    for k in range(HAZARD_TERMS[8]):
        c.append((1 - 2 * k) * c[k] - sum(c[i] * c[k + 1 - i] for i in range(1, k + 1)))
    return [float(number) for number in c]


HAZARD = _hazard_coefficients()


def hazard_tail(x: Symbol, near: Symbol) -> Symbol:
    """φ(x)/Φ(-x) beyond the bound."""
    far = _clamped(HAZARD_BOUND, x)
    t = 1.0 / far
    return _beyond(HAZARD_BOUND, x, far + t * _polynomial(HAZARD[1 : HAZARD_TERMS[x.dtype.itemsize] + 1], t * t), near)


# ---- (1 - J₀(x)) / x, (I₀(x) - 1) / x and I₂(x) / x at 0 ---------------------------------------------------------


def _integral_slope(sign_of_terms: int, x: Symbol, distance: Symbol) -> Symbol:
    """The distance from 1, over x."""
    coefficients = [sign_of_terms**k / (4 ** (k + 1) * math.factorial(k + 1) ** 2) for k in range(POWER_TERMS)]
    return _odd_series(coefficients, x, distance / (_clamped(POWER_BOUND, abs_(x)) * sign(x)))


def _i1_ratio_slope(x: Symbol, far: Symbol) -> Symbol:
    """I₂(x) / x."""
    coefficients = [1 / (4 ** (k + 1) * math.factorial(k) * math.factorial(k + 2)) for k in range(POWER_TERMS)]
    return _odd_series(coefficients, x, far)


def _odd_series(coefficients: list[float], x: Symbol, far: Symbol) -> Symbol:
    """Σ cₖ x²ᵏ⁺¹ at 0, and `far` beyond the bound."""
    return _beyond(POWER_BOUND, abs_(x), far, x * _polynomial(coefficients, x * x))


word("erfcx_slope", _erfcx_slope)
word("dawson_slope", _dawson_slope)
word("faddeeva_slope", partial(_faddeeva, DAWSON, 2))
word("faddeeva_curvature", partial(_faddeeva, [-(2 * k + 2) * c for k, c in enumerate(DAWSON)], 3))
word("bessel_i_slope", _bessel_i_slope)
word("bessel_k_slope", _bessel_k_slope)
# The factors are those of ζ**(-1/2) in the leading terms: √(π/2) for K, 1/√2π for I.
word("airye_ai_far", partial(_airye_slope, 1 / 3, 0.5, 1 / math.sqrt(6 * math.pi), 1))
word("airye_ai_slope_far", partial(_airye_slope, 2 / 3, 1.0, -1 / math.sqrt(6 * math.pi), 1))
word("airye_bi_far", partial(_airye_slope, 1 / 3, 0.5, 2 / math.sqrt(6 * math.pi), -1))
word("airye_bi_slope_far", partial(_airye_slope, 2 / 3, 1.0, 2 / math.sqrt(6 * math.pi), -1))
word("it2j0_slope", partial(_integral_slope, -1))
word("it2i0_slope", partial(_integral_slope, 1))
word("i1_ratio_slope", _i1_ratio_slope)
