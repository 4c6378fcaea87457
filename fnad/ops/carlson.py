"""Carlson's symmetric integrals, and their derivatives of any order.

All are integrals over t > 0 of products of powers (DLMF 19.16), of which the derivatives are integrals of that kind:

    C(x, y, z; p, q, r) = ∫ (t+x)**(-p-1/2) (t+y)**(-q-1/2) (t+z)**(-r-1/2) dt,   ∂C/∂x = -(p+1/2) C(x, y, z; p+1, q, r)

Nothing in them is subtracted, whereas the recurrences by which R_F and R_D give the others are 0/0 where two operands
meet. On log t the integrand is smooth over a strip of half-width π and falls at both ends. There the error of the
trapezoidal rule with STEP is below rounding (Trefethen & Weideman, SIAM Review 56 (2014), 385).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from fnad.ir.axes import Elementwise
from fnad.ir.primitive import Library, Partials, Sample, declare
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval
from fnad.ops.constructors import REALS, by_name, infer_elementwise, random_array
from fnad.ops.formula import formula, word
from fnad.ops.special_function import special
from fnad.scalar.quadrature import blockwise
from fnad.scalar.scipy_ufunc import scipy_function

Array: TypeAlias = Any
Powers: TypeAlias = tuple[int, int, int]
"""p, q and r."""

THREE = ((0.3, 0.6), (0.9, 1.3), (1.6, 2.5))
STEP = 0.4
NEGLIGIBLE = 40.0
"""An integrand may be left out where it has fallen by exp(-40)."""


# ---- the integral ------------------------------------------------------------------------------------------------


def integral(x: Array, y: Array, z: Array, *, powers: Powers) -> Array:
    """C(x, y, z; p, q, r), in f64."""
    if sum(powers) == 0:
        return 2 * scipy_function("elliprf")(x, y, z)
    if sum(powers) == 1:
        others = [v for v, power in zip((x, y, z), powers, strict=True) if not power]
        last = (x, y, z)[powers.index(1)]
        return 2 / 3 * scipy_function("elliprd")(*others, last)
    return blockwise(lambda *columns: _trapezoids(columns, powers), x, y, z)


def _trapezoids(operands: tuple[Array, ...], powers: Powers) -> Array:
    """The trapezoidal rule on log t, in units of the largest operand: C is homogeneous."""
    largest = np.maximum(np.maximum(*operands[:2]), operands[2])
    with np.errstate(all="ignore"):
        parts = [np.clip(np.nan_to_num(v / largest), 1e-300, 1) for v in operands]
        low, middle, _ = np.sort(np.log(np.concatenate(parts, axis=1)), axis=1).T[..., None]
        start = np.maximum(low - NEGLIGIBLE, middle - 2 * NEGLIGIBLE)
        end = NEGLIGIBLE / (sum(powers) + 0.5)
        t = np.exp(start + STEP * np.arange(math.ceil((end - np.min(start)) / STEP)))
        factors = [(t + v) ** (-power - 0.5) for v, power in zip(parts, powers, strict=True)]
        value = STEP * np.sum(t * factors[0] * factors[1] * factors[2], axis=1, keepdims=True)
        return _at_ends(value * largest ** (-sum(powers) - 0.5), operands, powers)


def _at_ends(value: Array, operands: tuple[Array, ...], powers: Powers) -> Array:
    zeros = [v == 0 for v in operands]
    poles = [zero & (power > 0) for zero, power in zip(zeros, powers, strict=True)]
    value = np.where(sum(z.astype(int) for z in zeros) + sum(p.astype(int) for p in poles) > 1, np.inf, value)
    value = np.where(np.max(operands, axis=0) == np.inf, 0.0, value)
    return np.where(np.min(operands, axis=0) >= 0, value, np.nan)


# ---- primitives --------------------------------------------------------------------------------------------------


def carlson(x: Symbol, y: Symbol, z: Symbol, *powers: int) -> Symbol:
    """C(x, y, z; p, q, r), by the function of SciPy that it is, if it is one."""
    if sum(powers) == 0:
        return 2.0 * elliprf(x, y, z)
    if sum(powers) == 1:
        others = [v for v, power in zip((x, y, z), powers, strict=True) if not power]
        return elliprd(*others, (x, y, z)[powers.index(1)]) * (2 / 3)
    return carlson_integral(x, y, z, powers=powers)


def _partial(way: int, c: Symbol, x: Symbol, y: Symbol, z: Symbol, *, powers: Powers) -> Symbol:
    return carlson(x, y, z, *_raised(powers, way)) * -(powers[way] + 0.5)


def _raised(powers: Powers, way: int) -> tuple[int, ...]:
    return tuple(power + (i == way) for i, power in enumerate(powers))


def _infer(*avals: Aval, powers: Powers) -> Aval:
    return infer_elementwise("carlson_integral", 3, REALS, None)(*avals)


def _samples() -> Iterable[Sample]:
    rng = np.random.default_rng(0)
    for dtype in by_name(REALS):
        for powers in ((0, 1, 1), (2, 0, 0)):
            yield Sample(tuple(random_array(rng, (2, 3), dtype, i) for i in THREE), {"powers": powers})
    x = np.array([0.0, 1.0, 1e-30, -1.0, np.nan, np.inf])
    yield Sample((x, x[::-1].copy(), np.ones(6)), {"powers": (0, 1, 1)}, smooth=False)


carlson_integral = declare(
    "carlson_integral",
    _infer,
    integral,
    Partials((partial(_partial, 0), partial(_partial, 1), partial(_partial, 2))),
    Library(raises=False),
    _samples,
    "∫ (t+x)**(-p-1/2) (t+y)**(-q-1/2) (t+z)**(-r-1/2) dt over t > 0, the param `powers` being p, q, r.",
    axes=Elementwise(),
)


# fmt: off
word("carlson", carlson)
formula("elliprg_slope(x, u, v)", "0.25 * (elliprf(x, u, v) - strong_mul(x, elliprd(u, v, x)) * (1 / 3))")

elliprf = special("elliprf(a, b, c)", "Carlson's R_F(x, y, z); DLMF 19.18.1.", THREE, edges=((1.0, 1.0, 2.0),),
                  a="elliprd(b, c, a) * (-1 / 6)", b="elliprd(a, c, b) * (-1 / 6)", c="elliprd(a, b, c) * (-1 / 6)")
elliprd = special("elliprd(a, b, c)", "Carlson's R_D(x, y, z); DLMF 19.16.5.", THREE, edges=((1.0, 1.0, 2.0),),
                  a="carlson(a, b, c, 1, 0, 1) * -0.75", b="carlson(a, b, c, 0, 1, 1) * -0.75",
                  c="carlson(a, b, c, 0, 0, 2) * -2.25")
elliprg = special("elliprg(a, b, c)", "Carlson's R_G(x, y, z); DLMF 19.16.3.", THREE,
                  a="elliprg_slope(a, b, c)", b="elliprg_slope(b, a, c)", c="elliprg_slope(c, a, b)")
# For b < 0 < a it is a principal value, which is no sum of positive numbers.
formula("elliprc_principal_slope(y, a, b)", "0.5 * (y - 1.0 / sqrt(a)) / (b - a)")
elliprc = special("elliprc(a, b)", "Carlson's R_C(x, y) = R_F(x, y, y); DLMF 19.2.17.", THREE[:2], edges=((0.5, -0.7),),
    a="select(lt(b, 0.0), elliprc_principal_slope(y, a, b), elliprd(b, b, a) * (-1 / 6))",
    b="select(lt(b, 0.0), -(0.5 * y + a * elliprc_principal_slope(y, a, b)) / b, elliprd(a, b, b) * (-1 / 3))")
# M(a, b) = π / 2 R_F(0, a², b²)
agm = special("agm(a, b)", "Arithmetic-geometric mean; DLMF 19.8.5.", THREE[:2],
              a="y * y * a * elliprd(0.0, b * b, a * a) * (2 / (3 * pi))",
              b="y * y * b * elliprd(0.0, a * a, b * b) * (2 / (3 * pi))")
# fmt: on
