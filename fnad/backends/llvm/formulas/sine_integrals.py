"""The sine and cosine integrals and Spence's function of f32, computed in f64.

Up to 8 the integrals are their power series (DLMF 6.6.5 and 6.6.6). Beyond 8 they are made of the auxiliary functions f
and g (DLMF 6.2.17 and 6.2.18), with x f and x² g as polynomials in 1/x². Spence's function is the series of
Li₂(1 - exp(-u)) in Bernoulli's numbers (D. Zagier, "The dilogarithm function", 2007) for |u| <= log(2). The other
arguments are reflected and inverted (DLMF 25.12.4 and 25.12.6). Near a zero of the cosine integral at x, the unit of an
error is that of 1/x.
"""

from __future__ import annotations

import math

from fnad.backends.llvm.formulas import trigonometric
from fnad.backends.llvm.formulas.coefficients import table
from fnad.backends.llvm.formulas.exponential import INF, NAN, log_of
from fnad.backends.llvm.formulas.twofold import polynomial
from fnad.backends.llvm.formulas.zeta import BERNOULLI
from fnad.backends.llvm.lane import Lane, where

NEAR = 8.0
TERMS = 20

EULER = 0.5772156649015329

# fmt: off
F = (
    0.9855904297183549, -0.026763476618295694, 0.003530759707711111, -0.0009195000229925253, 0.0003541888416907023,
    -0.00017577596156199765, 0.00010418979078386192, -7.561080782294351e-05, 6.097313295073144e-05,
    -1.923207175036598e-05, 2.6260071213075088e-06, -0.00010038938497830328, 0.00011771185432482204,
)
G = (
    0.9588269530162697, -0.073228908428517, 0.01489532662284812, -0.005019932482652714, 0.002307318259665582,
    -0.001303592007701943, 0.000854020574051832, -0.0006957981085857334, 0.0006163493405050248,
    -0.00011950015939075045, -8.268090283270545e-05, -0.0012478522148429887, 0.0015370419110139577,
)
"""The coefficients of x f(x) and x² g(x) in 64/x² - 1/2, from a Chebyshev series."""
# fmt: on


def si(x: Lane) -> Lane:
    z = x.as_double()
    series = polynomial([(-1) ** k / ((2 * k + 1) * math.factorial(2 * k + 1)) for k in range(TERMS)], z * z)
    near = z * series + 0.0  # SciPy's integral of -0 is 0
    f, g, sine, cosine = auxiliary(abs(x))
    far = (math.pi / 2 - (f * cosine + g * sine)).signed(z)
    far = where(abs(z) < INF, far, z.number(math.pi / 2).signed(z))
    return where(abs(z) < NEAR, near, where(x.is_number(), far, NAN)).as_single()


def ci(x: Lane) -> Lane:
    """The cosine integral; of negative numbers its real part."""
    size = abs(x)
    z = size.as_double()
    series = polynomial([(-1) ** k / (2 * k * math.factorial(2 * k)) for k in range(1, TERMS)], z * z)
    near = EULER + log_of(z).total() + z * z * series
    f, g, sine, cosine = auxiliary(size)
    value = where(z < NEAR, where(z > 0.0, near, -INF), f * sine - g * cosine)
    return where(z < INF, value, where(x > 0.0, z.number(0.0), NAN)).as_single()


def auxiliary(x: Lane) -> tuple[Lane, Lane, Lane, Lane]:
    """The auxiliary functions, the sine and the cosine, of 8 and more."""
    inverse = 1.0 / x.as_double()
    square = inverse * inverse
    u = square * NEAR**2 - 0.5
    angle = trigonometric.reduced(x)
    rest = angle.rest.high.as_double() + angle.rest.low.as_double()
    z = rest * rest
    sine = rest + rest * z * polynomial(table("sin", z), z)
    cosine = 1.0 - z * 0.5 + z * z * polynomial(table("cos", z), z)
    is_odd = (angle.quadrant & 1) > 0
    first, second = where(is_odd, cosine, sine), where(is_odd, sine, cosine)
    first = where((angle.quadrant & 2) > 0, -first, first)
    second = where(((angle.quadrant + 1) & 2) > 0, -second, second)
    return inverse * polynomial(F, u), square * polynomial(G, u), first, second


def spence(x: Lane) -> Lane:
    """The dilogarithm Li₂(1 - x)."""
    z = x.as_double()
    is_far = z > 2.0
    y = where(is_far, 1.0 / z, z)
    is_near = y >= 0.5
    u = 0.0 - log_of(where(is_near, y, 1.0 - y)).total()
    terms = [value / math.factorial(2 * j + 3) for j, value in enumerate(BERNOULLI[:6])]
    square = u * u
    series = u - square * 0.25 + u * square * polynomial(terms, square)
    logarithm = log_of(y).total()
    reflected = math.pi**2 / 6 + where(y > 0.0, logarithm * u, 0.0) - series
    value = where(is_near, series, reflected)
    value = where(is_far, logarithm * logarithm * -0.5 - value, value)
    return where((z >= 0.0) & (z < INF), value, NAN).as_single()
