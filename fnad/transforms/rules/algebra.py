"""Algebraic identities that hold in floating point to the bit.

Rules that are *not* here, because they are false: x * 0 = 0, x - x = 0 and x / x = 1 (x may be inf or nan); x + 0 = x
and 0 - x = -x (-0.0 would become 0.0); all rules that reassociate. Adding -0.0 and subtracting 0.0 change nothing.
Complex multiplication by 1 is not the identity either: (inf + 1j) * (1 + 0j) has a nan in it.
"""

from __future__ import annotations

import numpy as np

from fnad.ir.symbol import Symbol
from fnad.ops.arithmetic import add, div, mul, neg, strong_mul, sub
from fnad.ops.autodiff import stop_gradient
from fnad.ops.constructors import INEXACT, INTEGERS, NUMBERS, ORDERED, REALS
from fnad.ops.gamma import trigamma
from fnad.ops.piecewise import abs_
from fnad.ops.power import integer_pow
from fnad.ops.shape import ones_like, zeros_like
from fnad.transforms.pattern import Rule


def _by_reciprocal(x: Symbol, k: np.floating) -> Symbol | None:
    """Dividing by a power of two rounds as multiplying by its reciprocal does."""
    mantissa, exponent = np.frexp(k)
    return x * (1 / k) if abs(mantissa) == 0.5 and -100 <= exponent <= 100 else None


def _doubled(x: Symbol, j: np.floating, k: np.floating) -> Symbol | None:
    """Twice a product with a constant; rounded once, except where it underflows."""
    return x * (k + k) if j == k and abs(np.frexp(k)[1]) <= 100 else None


def _scaled(x: Symbol, j: np.floating, k: np.floating) -> Symbol | None:
    """The product with two constants, one of which is a power of two; rounded once, except where it underflows."""
    parts, exponents = np.frexp(np.array([j, k]))
    is_exact = (abs(parts) == 0.5).any() and (abs(exponents) <= 100).all() and np.isfinite(parts).all()
    return x * (j * k) if is_exact else None


ALGEBRA = (
    Rule("neg(neg(x)) = x", lambda x: x),
    Rule("add(x, -0.0) = x", lambda x: x, ORDERED),
    Rule("add(add(x, 0.0), 0.0) = add(x, 0.0)", lambda x: x + 0, INEXACT),
    Rule("sub(x, 0.0) = x", lambda x: x, ORDERED),
    Rule("sub(-0.0, x) = neg(x)", neg, ORDERED),
    Rule("sub(x, x) = 0", zeros_like, INTEGERS),
    Rule("mul(x, 0) = 0", zeros_like, INTEGERS),
    Rule("mul(x, 1) = x", lambda x: x, ORDERED),
    Rule("mul(x, -1) = neg(x)", neg, REALS),
    Rule("div(x, 1) = x", lambda x: x, REALS),
    Rule("div(x, constant(k)) = mul(x, 1 / k) for k a power of two", _by_reciprocal, REALS),
    Rule("sub(x, neg(y)) = add(x, y)", add, NUMBERS),
    Rule("add(x, neg(y)) = sub(x, y)", sub, NUMBERS),
    Rule("mul(neg(x), constant(k)) = mul(x, -k)", lambda x, k: x * -k, REALS),
    Rule("neg(mul(x, constant(k))) = mul(x, -k)", lambda x, k: x * -k, REALS),
    Rule("add(mul(x, constant(j)), mul(x, constant(k))) = mul(x, 2 * k) for j = k", _doubled, REALS, up_to="rounding"),
    Rule("mul(mul(x, constant(j)), constant(k)) = mul(x, j * k) for powers of two", _scaled, REALS, up_to="rounding"),
    Rule("mul(neg(x), neg(y)) = mul(x, y)", mul, ORDERED),
    Rule("div(neg(x), neg(y)) = div(x, y)", div, REALS),
    Rule("abs(neg(x)) = abs(x)", abs_),
    Rule("abs(abs(x)) = abs(x)", abs_),
    Rule("maximum(x, x) = x", lambda x: x),
    Rule("minimum(x, x) = x", lambda x: x),
    Rule("stop_gradient(stop_gradient(x)) = stop_gradient(x)", stop_gradient),
    Rule("zeta(2, x) = trigamma(x)", trigamma),
)

# The sign of a cotangent's zero has no meaning, and the strong product drops it anyway.
STRONG = (
    Rule("strong_mul(0.0, p) = 0", zeros_like, up_to="the sign of zero"),
    Rule("strong_mul(-0.0, p) = 0", zeros_like, up_to="the sign of zero"),
    Rule("strong_mul(constant(k), p) = mul(k, p) for k != 0", lambda k, p: k * p if k != 0 else None),
    Rule("strong_mul(ct, finite(p)) = mul(ct, p)", mul, up_to="the sign of zero"),
    Rule("absorbing_mul(x, finite(y)) = strong_mul(y, x)", lambda x, y: strong_mul(y, x), up_to="the sign of zero"),
    Rule("absorbing_mul(finite(x), y) = strong_mul(x, y)", strong_mul, up_to="the sign of zero"),
)


# ---- powers ------------------------------------------------------------------------------------------------------


def _small_power(x: Symbol, exponent: int) -> Symbol | None:
    match exponent:
        case 0:
            return ones_like(x)
        case 1:
            return x
        case 2:
            return mul(x, x)
        case _:
            return None


def _by_multiplication(x: Symbol, k: np.floating) -> Symbol | None:
    """Write out a power as a short product, whose rounding error is about that of the library's power."""
    return integer_pow(x, exponent=int(k)) if k in (-1, 2, 3) else None


POWER = (
    Rule("integer_pow(x, exponent=n) = 1, x or mul(x, x) for n = 0, 1, 2", _small_power),
    Rule("pow(x, 0) = 1", ones_like, REALS),
    Rule("pow(x, 1) = x", lambda x: x, REALS),
    Rule("pow(x, constant(k)) = integer_pow(x) for k = -1, 2, 3", _by_multiplication, REALS, up_to="rounding"),
)
