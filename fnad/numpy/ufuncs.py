"""The ufuncs: one primitive each, or a short composition; and NumPy's arithmetic for use in rules.

A constant exponent that is a small integer is a product, and exact where a product is. The operator takes the short
cuts that NumPy's takes: x**2 is a square, x**0.5 a square root.

NumPy compares by value a Python integer that an array's dtype cannot hold, and i64 with u64; it compares complex
numbers in lexicographic order.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fnad.errors import DtypeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, DTYPES, Dtype, is_inexact
from fnad.numpy import lexicographic
from fnad.numpy.elementwise import Compute, converted, elementwise, enters, loop_dtypes
from fnad.numpy.operands import WeakSymbol, as_symbol, is_python_number, strong, to_dtype
from fnad.numpy.registry import RULES, Rule, implements
from fnad.ops import arithmetic, comparison, elementary, floating_point, logistic, piecewise
from fnad.ops.arithmetic import neg, strong_div, sub
from fnad.ops.comparison import bitwise_and, bitwise_not, bitwise_or, bitwise_xor, eq, isinf, isnan, lt, ne, select
from fnad.ops.conversion import complex_, imag, real
from fnad.ops.elementary import sqrt
from fnad.ops.power import UNROLLED, arctan2, constant_pow, hypot, int_pow, pow_
from fnad.ops.shape import constant, full_like, ones_like, zeros_like


def identity(x: Symbol) -> Symbol:
    return x


def unless(kinds: str, primitive: Callable[..., Symbol], otherwise: Callable[..., Symbol]) -> Callable[..., Symbol]:
    """A primitive, but something else for dtypes of these kinds."""
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
    np.rint: unless("c", piecewise.rint, lambda x: complex_(piecewise.rint(real(x)), piecewise.rint(imag(x)))),
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
    np.hypot: hypot,
    np.arctan2: arctan2,
    np.logaddexp: logistic.logaddexp,
}

for _ufunc, _compute in TABLE.items():
    elementwise(_ufunc)(_compute)


def scaled(x: Symbol, factor: float) -> Symbol:
    """X times a constant."""
    return arithmetic.mul(x, full_like(x, factor))


@elementwise(np.deg2rad, np.radians)
def deg2rad(x: Symbol) -> Symbol:
    return scaled(x, math.pi / 180)


@elementwise(np.rad2deg, np.degrees)
def rad2deg(x: Symbol) -> Symbol:
    return scaled(x, 180 / math.pi)


@elementwise(np.logaddexp2)
def logaddexp2(x: Symbol, y: Symbol) -> Symbol:
    return scaled(logistic.logaddexp(scaled(x, math.log(2)), scaled(y, math.log(2))), 1 / math.log(2))


@elementwise(np.absolute)
def absolute(x: Symbol) -> Symbol:
    if x.dtype.kind == "c":
        return hypot(real(x), imag(x))
    return x if x.dtype.kind in "bu" else piecewise.abs_(x)


@elementwise(np.sign)
def sign(x: Symbol) -> Symbol:
    """The sign of a real number, x / |x| of a complex one: 0 at 0, and along an axis where |x| is infinite."""
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
    """1 / x; of an integer without its fraction, and of the integer 0 what the machine makes of it."""
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
    """The fractional part, which has the sign of x and is 0 at infinity, and the integral part."""
    zero, whole = zeros_like(x), piecewise.trunc(x)
    is_negative = lt(piecewise.copysign(ones_like(x), x), zero)
    rest = select(is_negative, neg(sub(whole, x)), sub(x, whole))  # of an integer it is 0 with the sign of x
    return select(isinf(x), piecewise.copysign(zero, x), rest), whole


# ---- powers ----------------------------------------------------------------------------------------------------------


@implements(operator.pow)
def power_operator(a: Any, b: Any) -> Symbol:
    """A**b."""
    if isinstance(a, Symbol) and a.ndim == 0:
        return _power(np.power, a, b, None)
    if isinstance(a, Symbol) and is_python_number(b):
        if b == 2 and isinstance(b, int):
            return RULES[np.square](a)
        if b == 0.5:
            return sqrt(as_symbol(a, loop_dtypes(np.power, (a, b))[0]))
    return power(a, b)


@enters(np.power)
def power(x: Any, y: Any, dtype: Any = None) -> Symbol:
    if constant_exponent(y) == 0.5:  # NumPy's loop is that of the square root, also at -0.0 and -inf
        (base, _), _ = converted(np.power, (x, y), dtype)
        if base.dtype.kind == "f":
            return sqrt(base)
    return _power(np.power, x, y, dtype)


@enters(np.float_power)
def float_power(x: Any, y: Any, dtype: Any = None) -> Symbol:
    return _power(np.float_power, x, y, dtype)


def _power(ufunc: np.ufunc, x: Any, y: Any, dtype: Any) -> Symbol:
    exponent = constant_exponent(y)
    if exponent is not None and is_integral(exponent):
        base_dtype, exponent_dtype, _ = loop_dtypes(ufunc, (x, y), dtype)
        as_symbol(y, exponent_dtype)  # raises where it does not fit
        return constant_pow(as_symbol(x, base_dtype), int(exponent.real))
    (base, by), _ = converted(ufunc, (x, y), dtype)
    return (pow_ if is_inexact(base.dtype) else int_pow)(base, by)


def constant_exponent(y: Any) -> Any:
    """The exponent where it is a number, not an array or a traced value."""
    return y if isinstance(y, (int, float, complex, np.number)) else None


def is_integral(exponent: Any) -> bool:
    """True if a number is an integer that multiplications are written out for, or any Python or NumPy integer."""
    if isinstance(exponent, (int, np.integer)):
        return True
    return exponent.imag == 0 and abs(exponent.real) <= UNROLLED and float(exponent.real).is_integer()


# ---- bits, divisors, exponents, neighbours ---------------------------------------------------------------------------

elementwise(np.gcd)(floating_point.gcd)
elementwise(np.lcm)(floating_point.lcm)
elementwise(np.bitwise_count)(floating_point.bitwise_count)
elementwise(np.spacing)(floating_point.spacing)
elementwise(np.nextafter)(floating_point.nextafter)
elementwise(np.ldexp)(floating_point.ldexp)


@elementwise(np.frexp)
def frexp(x: Symbol) -> tuple[Symbol, Symbol]:
    """m, which moves with x, and the integer e of x = m * 2**e."""
    e = floating_point.exponent(x)
    return floating_point.ldexp(x, neg(e)), e


U8, U64 = DTYPES["u8"], DTYPES["u64"]

# ---- comparisons -----------------------------------------------------------------------------------------------------


def _comparison(ufunc: np.ufunc, compare: Compute, of_complex: Compute) -> None:
    """Enter the rule of a comparison that is `compare` on real numbers of one dtype."""

    def rule(x: Any, y: Any, dtype: Any = None) -> Symbol:
        if np.dtype(dtype or bool) != BOOL:
            what = f"No loop matching the specified signature and casting was found for ufunc {ufunc.__name__}"
            raise DtypeError(what, remedy="leave dtype= out: comparisons give bools")
        x, y = (as_symbol(operand) if isinstance(operand, (list, tuple)) else operand for operand in (x, y))
        x, y = by_value(x, y), by_value(y, x)
        if out_of_range(x, y) or out_of_range(y, x):
            return constant(bool(ufunc(side(x), side(y))), BOOL, as_symbol(x if isinstance(y, int) else y).shape)
        (a, b), _ = converted(ufunc, (x, y))
        if a.dtype != b.dtype:
            return _by_value(ufunc, compare, a, b)
        if a.dtype.kind == "b":
            return compare(to_dtype(a, U8), to_dtype(b, U8))
        return (of_complex if a.dtype.kind == "c" else compare)(a, b)

    enters(ufunc)(rule)


def by_value(x: Any, y: Any) -> Any:
    """An operand; a traced Python integer beside integers is compared as an i64, which holds it."""
    is_integer = isinstance(x, WeakSymbol) and x.python_type is int and getattr(y, "dtype", U8).kind in "iu"
    return strong(x) if is_integer else x


def out_of_range(x: Any, y: Any) -> bool:
    """True if x is a Python integer that the integer dtype of y does not hold."""
    dtype: Dtype | None = getattr(y, "dtype", None)
    if not isinstance(x, int) or dtype is None or dtype.kind not in "iu":
        return False
    return not np.iinfo(dtype).min <= x <= np.iinfo(dtype).max


def side(x: Any) -> int:
    """A number that compares with 0 as an out-of-range integer does with anything, and 0 for anything."""
    return (1 if x > 0 else -1) if isinstance(x, int) else 0


def _by_value(ufunc: np.ufunc, compare: Compute, x: Symbol, y: Symbol) -> Symbol:
    """Compare i64 with u64: a negative number is below all unsigned ones."""
    signed = x if x.dtype.kind == "i" else y
    negative = lt(signed, zeros_like(signed))
    same_sign = compare(to_dtype(x, U64), to_dtype(y, U64))
    if ufunc(-1, 1) if signed is x else ufunc(1, -1):
        return bitwise_or(negative, same_sign)
    return bitwise_and(bitwise_not(negative), same_sign)


_comparison(np.equal, eq, eq)
_comparison(np.not_equal, ne, ne)
for _ufunc, _strict, _compare in (
    (np.less, comparison.lt, comparison.lt),
    (np.less_equal, comparison.lt, comparison.le),
    (np.greater, comparison.gt, comparison.gt),
    (np.greater_equal, comparison.gt, comparison.ge),
):
    _comparison(_ufunc, _compare, lexicographic.ordered(_strict, _compare))

# ---- logic, on the truth of numbers ----------------------------------------------------------------------------------


def on_truth(logic: Compute) -> Compute:
    """A function of bools on whether its operands are other than 0."""
    return lambda *operands: logic(*[to_dtype(operand, BOOL) for operand in operands])


elementwise(np.logical_and)(on_truth(bitwise_and))
elementwise(np.logical_or)(on_truth(bitwise_or))
elementwise(np.logical_xor)(on_truth(bitwise_xor))
elementwise(np.logical_not)(on_truth(bitwise_not))

# ---- bits ------------------------------------------------------------------------------------------------------------

elementwise(np.bitwise_and)(bitwise_and)
elementwise(np.bitwise_or)(bitwise_or)
elementwise(np.bitwise_xor)(bitwise_xor)
elementwise(np.invert)(bitwise_not)
elementwise(np.left_shift)(comparison.left_shift)
elementwise(np.right_shift)(comparison.right_shift)

# ---- properties of numbers -------------------------------------------------------------------------------------------


def of_floats(primitive: Compute, otherwise: bool) -> Compute:
    """A property that integers and bools have, or not, all alike."""
    return lambda x: primitive(x) if x.dtype.kind in "fc" else constant(otherwise, BOOL, x.shape)


elementwise(np.isnan)(of_floats(comparison.isnan, False))
elementwise(np.isinf)(of_floats(comparison.isinf, False))
elementwise(np.isfinite)(of_floats(comparison.isfinite, True))
elementwise(np.signbit)(comparison.signbit)


# ---- for use in rules ------------------------------------------------------------------------------------------------
# They promote and broadcast their operands, where primitives do neither.

add: Rule = RULES[np.add]
subtract: Rule = RULES[np.subtract]
multiply: Rule = RULES[np.multiply]
divide: Rule = RULES[np.true_divide]
negative: Rule = RULES[np.negative]
remainder: Rule = RULES[np.remainder]
less: Rule = RULES[np.less]
equal: Rule = RULES[np.equal]
greater: Rule = RULES[np.greater]
logical_and: Rule = RULES[np.logical_and]
