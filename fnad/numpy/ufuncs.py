"""The ufuncs that take numbers to numbers: one primitive each, or a short composition."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from fnad.ir.symbol import Symbol
from fnad.numpy import lexicographic
from fnad.numpy.loops import Compute, elementwise
from fnad.ops import arithmetic, comparison, elementary, piecewise, power, special
from fnad.ops.arithmetic import strong_div
from fnad.ops.comparison import eq, isinf, isnan, lt, select
from fnad.ops.conversion import complex_, imag, real
from fnad.ops.shape import full_like, ones_like, zeros_like


def identity(x: Symbol) -> Symbol:
    return x


def unless(kinds: str, primitive: Callable[..., Symbol], otherwise: Callable[..., Symbol]) -> Callable[..., Symbol]:
    """Return a primitive, but something else for dtypes of these kinds."""
    return lambda *operands: (otherwise if operands[0].dtype.kind in kinds else primitive)(*operands)


TABLE: dict[np.ufunc, Compute] = {
    np.add: unless("b", arithmetic.add, comparison.bitwise_or),
    np.subtract: arithmetic.sub,
    np.multiply: unless("b", arithmetic.mul, comparison.bitwise_and),
    np.true_divide: arithmetic.div,
    np.negative: arithmetic.neg,
    np.positive: identity,
    np.square: lambda x: arithmetic.mul(x, x),
    np.floor_divide: piecewise.floor_divide,
    np.remainder: piecewise.remainder,
    np.fmod: piecewise.fmod,
    np.divmod: lambda x, y: (piecewise.floor_divide(x, y), piecewise.remainder(x, y)),
    np.fabs: piecewise.abs_,
    np.copysign: piecewise.copysign,
    np.floor: unless("bui", piecewise.floor, identity),
    np.ceil: unless("bui", piecewise.ceil, identity),
    np.trunc: unless("bui", piecewise.trunc, identity),
    np.rint: piecewise.rint,
    np.maximum: unless("b", lexicographic.maximum, comparison.bitwise_or),
    np.minimum: unless("b", lexicographic.minimum, comparison.bitwise_and),
    np.fmax: unless("b", lexicographic.fmax, comparison.bitwise_or),
    np.fmin: unless("b", lexicographic.fmin, comparison.bitwise_and),
    np.exp: elementary.exp,
    np.exp2: elementary.exp2,
    np.expm1: elementary.expm1,
    np.log: elementary.log,
    np.log2: elementary.log2,
    np.log10: elementary.log10,
    np.log1p: elementary.log1p,
    np.sqrt: elementary.sqrt,
    np.cbrt: elementary.cbrt,
    np.sin: elementary.sin,
    np.cos: elementary.cos,
    np.tan: elementary.tan,
    np.arcsin: elementary.arcsin,
    np.arccos: elementary.arccos,
    np.arctan: elementary.arctan,
    np.sinh: elementary.sinh,
    np.cosh: elementary.cosh,
    np.tanh: elementary.tanh,
    np.arcsinh: elementary.arcsinh,
    np.arccosh: elementary.arccosh,
    np.arctanh: elementary.arctanh,
    np.hypot: power.hypot,
    np.arctan2: power.arctan2,
    np.logaddexp: special.logaddexp,
}

for _ufunc, _compute in TABLE.items():
    elementwise(_ufunc)(_compute)


def scaled(x: Symbol, factor: float) -> Symbol:
    """Return x times a constant."""
    return arithmetic.mul(x, full_like(x, factor))


@elementwise(np.deg2rad, np.radians)
def deg2rad(x: Symbol) -> Symbol:
    return scaled(x, math.pi / 180)


@elementwise(np.rad2deg, np.degrees)
def rad2deg(x: Symbol) -> Symbol:
    return scaled(x, 180 / math.pi)


@elementwise(np.logaddexp2)
def logaddexp2(x: Symbol, y: Symbol) -> Symbol:
    return scaled(special.logaddexp(scaled(x, math.log(2)), scaled(y, math.log(2))), 1 / math.log(2))


@elementwise(np.absolute)
def absolute(x: Symbol) -> Symbol:
    if x.dtype.kind == "c":
        return power.hypot(real(x), imag(x))
    return x if x.dtype.kind in "bu" else piecewise.abs_(x)


@elementwise(np.sign)
def sign(x: Symbol) -> Symbol:
    """Return the sign of a real number, x / |x| of a complex one: 0 at 0, and along an axis where |x| is infinite."""
    if x.dtype.kind != "c":
        return piecewise.sign(x)
    size, parts, zero, one = absolute(x), (real(x), imag(x)), zeros_like(real(x)), ones_like(real(x))
    is_real, is_imaginary = map(isinf, parts)
    axis = (
        select(is_real, piecewise.copysign(one, parts[0]), zero),
        select(is_real, zero, piecewise.copysign(one, parts[1])),
    )
    undefined = comparison.bitwise_or(isnan(size), comparison.bitwise_and(is_real, is_imaginary))
    known = [select(isinf(size), a, strong_div(part, size)) for a, part in zip(axis, parts, strict=True)]
    return complex_(*[select(undefined, full_like(size, math.nan), part) for part in known])


@elementwise(np.conjugate)
def conjugate(x: Symbol) -> Symbol:
    from_real = x.dtype.kind != "c"
    return x if from_real else complex_(real(x), arithmetic.neg(imag(x)))


@elementwise(np.reciprocal)
def reciprocal(x: Symbol) -> Symbol:
    """Return 1 / x; of an integer without its fraction, and of the integer 0 what the machine makes of it."""
    if x.dtype.kind not in "iu":
        return arithmetic.div(ones_like(x), x)
    with np.errstate(divide="ignore", invalid="ignore"):
        of_zero = full_like(x, int(np.reciprocal(x.dtype.type(0))))
    is_unit = eq(x, ones_like(x))
    if x.dtype.kind == "i":
        is_unit = comparison.bitwise_or(is_unit, eq(x, full_like(x, -1)))
    return select(eq(x, zeros_like(x)), of_zero, select(is_unit, x, zeros_like(x)))


@elementwise(np.heaviside)
def heaviside(x: Symbol, at_zero: Symbol) -> Symbol:
    zero, one = zeros_like(x), ones_like(x)
    step = select(eq(x, zero), at_zero, select(lt(x, zero), zero, one))
    return select(isnan(x), x, step)


@elementwise(np.modf)
def modf(x: Symbol) -> tuple[Symbol, Symbol]:
    """Return the fractional part, which has the sign of x and is 0 at infinity, and the integral part."""
    one, zero = ones_like(x), zeros_like(x)
    fraction = select(isinf(x), piecewise.copysign(zero, x), piecewise.fmod(x, one))
    return fraction, piecewise.trunc(x)
