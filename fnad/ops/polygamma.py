"""Polygamma functions in the complex plane, the derivatives of the digamma function there.

By the recurrence (DLMF 5.15.5) the argument moves to where the asymptotic series (5.15.8, 5.15.9) holds to rounding:

    ψ⁽ⁿ⁾(z) = ψ⁽ⁿ⁾(z + 1) - (-1)ⁿ n! / zⁿ⁺¹
    ψ⁽ⁿ⁾(z) ~ (-1)ⁿ⁻¹ ((n-1)! / zⁿ + n! / (2 zⁿ⁺¹) + Σ B₂ₖ (2k+n-1)! / ((2k)! z²ᵏ⁺ⁿ))

Away from the real axis it holds with what is lost of the order exp(-2π |Im z|), so only near it the argument moves.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fnad.ops.constructors import COMPLEXES
from fnad.ops.special_function import POSITIVE, special
from fnad.scalar.scipy_ufunc import scipy_function

FAR = 18.0
"""From where the series holds, along either axis, for orders that occur."""

BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
"""B₂, B₄, …"""


def _one(order: int, z: complex) -> complex:
    """The polygamma function of an order; that of order 0 is SciPy's."""
    if order == 0:
        return complex(scipy_function("psi")(z))
    if not (math.isfinite(z.real) and math.isfinite(z.imag)):
        return complex(math.nan, math.nan)
    far, sign = FAR + order, (-1) ** (order - 1)
    steps = max(math.ceil(far - z.real), 0) if abs(z.imag) < far else 0
    moved = z + np.arange(steps)
    if np.any(moved == 0):
        return complex(math.nan, math.nan)
    passed = math.factorial(order) * complex(np.sum(moved ** -(order + 1.0)))
    return sign * (passed + _series(order, z + steps))


def _series(order: int, z: complex) -> complex:
    total = math.factorial(order - 1) / z**order + math.factorial(order) / (2 * z ** (order + 1))
    for k, number in enumerate(BERNOULLI, start=1):
        factor = math.factorial(2 * k + order - 1) / math.factorial(2 * k)
        total += number * factor / z ** (2 * k + order)
    return total


def _evaluate(order: Any, z: Any) -> Any:
    found = np.vectorize(lambda n, x: _one(int(n), complex(x)), otypes=[np.complex128])(order, z) if z.size else z
    return np.asarray(found, z.dtype)


# fmt: off
complex_polygamma = special("complex_polygamma(order: int, z)",
    "Polygamma function of an order, of a complex number; DLMF 5.15.", (POSITIVE,), domain=COMPLEXES,
    evaluate=_evaluate, z="complex_polygamma(order + 1, z)")
# fmt: on
