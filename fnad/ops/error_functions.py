"""Error functions, the normal distribution function, Owen's T and the Voigt profile.

The slope of erf is 2/√π exp(-x²) (DLMF 7.2.1). Φ(x)/φ(x), Mills' ratio, of the normal distribution function and its
density, neither underflows where both do.
"""

from __future__ import annotations

from fnad.ir.primitive import everywhere
from fnad.ir.ranges import WITHIN_ONE, Range, Singular, always
from fnad.ir.symbol import Symbol
from fnad.ir.types import is_complex
from fnad.ops.asymptotic import hazard_tail
from fnad.ops.comparison import gt, select
from fnad.ops.constructors import COMPLEXES, INEXACT, LINE, REALS
from fnad.ops.formula import formula, word
from fnad.ops.shape import zeros_like
from fnad.ops.special_function import INF, POSITIVE, native, scipy_call, special

# fmt: off
# ---- error functions ---------------------------------------------------------------------------------------------

erf = native("erf(x)", "Error function.", "erf({0})", (LINE,), domain=REALS, edges=((0.0,), (INF,), (-INF,)), cost=30,
             bounded=everywhere, bounds=always(-1.0, 1.0), x="exp(-(x * x)) * (2.0 / sqrt_pi)")
erfc = native("erfc(x)", "Complementary error function, 1 - erf(x), accurate for large x.", "erfc({0})", (LINE,),
              domain=REALS, edges=((0.0,), (INF,), (20.0,)), cost=30, bounded=everywhere, bounds=always(0.0, 2.0),
              x="-(exp(-(x * x)) * (2.0 / sqrt_pi))")
complex_erfc = special("complex_erfc(z)", "Complementary error function of complex numbers.", domain=COMPLEXES,
                       evaluate=scipy_call("erfc"), z="-(exp(-(z * z)) * (2.0 / sqrt_pi))")
erfcx = special("erfcx(x)", "exp(x²) erfc(x); DLMF 7.10.1.", (LINE,), domain=INEXACT,
                x="erfcx_slope(x, 2.0 * x * y - 2.0 / sqrt_pi)")
erfi = special("erfi(x)", "-i erf(ix); DLMF 7.2.1.", domain=INEXACT, x="exp(x * x) * (2.0 / sqrt_pi)")
dawsn = special("dawsn(x)", "Dawson's integral; DLMF 7.10.2 and 7.5.1.", (LINE,), domain=INEXACT,
                x="dawson_slope(x, 1.0 - 2.0 * x * y)")
wofz = special("wofz(z)", "The Faddeeva function exp(-z²) erfc(-iz); DLMF 7.10.2.", domain=COMPLEXES,
               z="faddeeva_slope(z, -2.0 * z * y + 2.0j / sqrt_pi)")
erfinv = special("erfinv(x)", "The inverse of erf; DLMF 7.17.1.", x="exp(y * y) * (sqrt_pi / 2)",
                 singular=(Singular(0, WITHIN_ONE, "erfinv(x) is infinite at -1 and 1, nan outside"),))
erfcinv = special("erfcinv(x)", "The inverse of erfc; DLMF 7.17.1.", x="exp(y * y) * (-sqrt_pi / 2)")

# ---- the normal distribution -------------------------------------------------------------------------------------

normal_density = formula("normal_density(x)", "exp(-0.5 * (x * x)) * (1.0 / sqrt_2pi)")
mills_ratio = formula("mills_ratio(x)", "erfcx(x * -0.5**0.5) * (sqrt_2pi / 2)")
# fmt: on


def _log_ndtr_slope(x: Symbol) -> Symbol:
    """φ(x)/Φ(x), where x > 0 as the quotient, since Mills' ratio overflows there."""
    if is_complex(x.dtype):
        return 1.0 / mills_ratio(x)
    above = gt(x, zeros_like(x))
    below = hazard_tail(-x, 1.0 / mills_ratio(select(above, zeros_like(x), x)))
    return select(above, normal_density(x) / ndtr(x), below)


word("log_ndtr_slope", _log_ndtr_slope)

# fmt: off

ndtr = native("ndtr(x)", "Distribution function Φ of the standard normal distribution.", "scipy_ndtr({0})", (LINE,),
              domain=REALS, edges=((0.0,), (INF,), (-INF,), (-30.0,)), cost=32, bounds=always(0.0, 1.0),
              x="normal_density(x)")
log_ndtr = special("log_ndtr(x)", "log Φ(x), accurate for x far below 0.", (LINE,), domain=INEXACT,
                   x="log_ndtr_slope(x)")
ndtri = special("ndtri(p)", "The inverse of Φ.", p="exp(0.5 * (y * y)) * sqrt_2pi",
                singular=(Singular(0, Range(0.0, 1.0, above=True, below=True), "ndtri(p) is infinite at 0 and 1"),))
ndtri_exp = special("ndtri_exp(x)", "The inverse of log Φ.", ((-3.0, -0.1),), x="mills_ratio(y)")
owens_t = special("owens_t(h, a)", "Owen's T function; D. B. Owen, Ann. Math. Statist. 27 (1956), 1075.",
                  h="erf(a * h * 0.5**0.5) * exp(-0.5 * (h * h)) * (-0.5 / sqrt_2pi)",
                  a="exp(-0.5 * (h * h) * (1.0 + a * a)) / (1.0 + a * a) * (0.5 / pi)")

# ---- the convolution of the normal and the Cauchy density --------------------------------------------------------
# V = Re w(z) / σ√(2π) with z = (x + iγ) / σ√2 (DLMF 7.19.1), so its slopes are those of w: w'(z) / 2√π σ². In σ it
# solves the heat equation: the slope is σ times the second derivative in x.

formula("voigt_z(x, sigma, gamma)", "complex(x / sigma, gamma / sigma) * 0.5**0.5")
formula("voigt_slope(z, sigma)",
        "faddeeva_slope(z, 2.0j / sqrt_pi - 2.0 * z * wofz(z)) * (0.5 / sqrt_pi) / complex(sigma * sigma, 0.0)")
formula("voigt_curvature(z, sigma)", """
    faddeeva_curvature(z, -2.0 * wofz(z) - 2.0 * z * (2.0j / sqrt_pi - 2.0 * z * wofz(z)))
    * (0.25 / sqrt_pi) * 2.0**0.5 / complex(sigma * sigma, 0.0)""")
voigt_profile = special("voigt_profile(x, sigma, gamma)", "The Voigt profile; DLMF 7.19.1.", (LINE, POSITIVE, POSITIVE),
    x="real(voigt_slope(voigt_z(x, sigma, gamma), sigma))",
    sigma="real(voigt_curvature(voigt_z(x, sigma, gamma), sigma))",
    gamma="-imag(voigt_slope(voigt_z(x, sigma, gamma), sigma))")
# fmt: on
