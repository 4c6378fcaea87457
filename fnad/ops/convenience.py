"""Convenience functions of scipy.special: angles in degrees, powers and cosines less one, Box and Cox's transforms.

With L = log x and E(z) = (exp(z) - 1)/z, Box and Cox's transform is L E(λL), so that its slope in λ is L² E'(λL); its
inverse is exp(x R(λx)) with R(u) = log(1 + u)/u, so that the slope there is x² R'(λx) times the value.
(Box and Cox, J. R. Stat. Soc. B 26 (1964), 211.)
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from fnad.ops.constructors import LINE, UNIT
from fnad.ops.formula import word
from fnad.ops.power import log_partial
from fnad.ops.special_function import INF, POSITIVE, native, special

RIGHT_ANGLE = ((89.0, 91.0),)

word("log_partial", log_partial)


def cosine_less_one(x: Any) -> Any:
    """cos(x) - 1 as a square: SciPy subtracts, which cancels near multiples of 2π but 0."""
    half = np.sin(x / 2)
    return 0.0 - 2.0 * half * half


# fmt: off
# ---- degrees, powers ---------------------------------------------------------------------------------------------

sindg = special("sindg(x)", "Sine of an angle in degrees.", (LINE,), x="cosdg(x) * (pi / 180)")
cosdg = special("cosdg(x)", "Cosine of an angle in degrees.", RIGHT_ANGLE, x="sindg(x) * (-pi / 180)")
tandg = special("tandg(x)", "Tangent of an angle in degrees.", (LINE,), x="(y * y + 1.0) * (pi / 180)")
cotdg = special("cotdg(x)", "Cotangent of an angle in degrees.", RIGHT_ANGLE, x="(y * y + 1.0) * (-pi / 180)")
radian = special("radian(d, m, s)", "An angle in degrees, minutes and seconds, in radians.",
                 d="pi / 180", m="pi / 180 / 60", s="pi / 180 / 3600")
cosm1 = native("cosm1(x)", "cos(x) - 1, accurate where it is small.",
               "{dtype}(0) - {dtype}(2) * sin({0} * {dtype}(0.5)) * sin({0} * {dtype}(0.5))", (LINE,),
               evaluate=cosine_less_one, edges=((2 * math.pi,), (1e-160,), (1e5,)), cost=30, x="-sin(x)")
exp10 = special("exp10(x)", "10 to the power x.", x=f"y * {math.log(10)}")
powm1 = special("powm1(x, p)", "x**y - 1, accurate where x**y is near 1.", (POSITIVE, POSITIVE),
                edges=((INF, -2.0), (-2.0, 3.0), (-2.0, -2000.0)),
                x="strong_mul(p, pow(x, p - 1.0))", p="log_partial(pow(x, p), x, p)")

# ---- Box and Cox -------------------------------------------------------------------------------------------------

box_cox = partial(special, over=(POSITIVE, UNIT), edges=((2.0, 0.0), (2.0, 1e-12)))
boxcox = native("boxcox(x, lmbda)", "(x**λ - 1) / λ, log x where λ is 0.", "scipy_boxcox({0}, {1})",
                (POSITIVE, UNIT), edges=((2.0, 0.0), (2.0, 1e-12), (0.0, -1.0), (1e300, 1.02)), cost=60,
                x="pow(x, lmbda - 1.0)", lmbda="log(x) * log(x) * exprel_slope(lmbda * log(x))")
boxcox1p = native("boxcox1p(x, lmbda)", "((1 + x)**λ - 1) / λ, log(1 + x) where λ is 0.", "scipy_boxcox1p({0}, {1})",
                  (POSITIVE, UNIT), edges=((2.0, 0.0), (2.0, 1e-12), (-1.0, -1.0), (1e300, 1.02)), cost=60,
                  x="pow(x + 1.0, lmbda - 1.0)", lmbda="log1p(x) * log1p(x) * exprel_slope(lmbda * log1p(x))")
inv_boxcox = box_cox("inv_boxcox(x, lmbda)", "(1 + λx)**(1/λ), exp(x) where λ is 0.",
                     x="y / (lmbda * x + 1.0)", lmbda="y * (x * x) * log1p_ratio_slope(lmbda * x)")
inv_boxcox1p = box_cox("inv_boxcox1p(x, lmbda)", "(1 + λx)**(1/λ) - 1, exp(x) - 1 where λ is 0.",
                       x="(y + 1.0) / (lmbda * x + 1.0)", lmbda="(y + 1.0) * (x * x) * log1p_ratio_slope(lmbda * x)")
# fmt: on
