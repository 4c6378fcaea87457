"""Functions of elements that are no ufuncs: rounding, bounds, complex numbers, comparison to a tolerance, windows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy._core import umath

from fnad.errors import ArgumentTypeError, DomainError, ShapeError
from fnad.ir.primitive import PRIMITIVES
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, F64, real_dtype
from fnad.numpy.elementwise import elementwise
from fnad.numpy.manipulation import fresh
from fnad.numpy.operands import (
    as_array,
    as_symbol,
    broadcast_all,
    common_dtype,
    common_shape,
    static_int,
    to_dtype,
)
from fnad.numpy.reductions import all_
from fnad.numpy.registry import OF_AVALS, RULES, UNSET, Rule, implements
from fnad.numpy.ufuncs import TABLE, absolute, add, divide, multiply, out_of_range, scaled, side
from fnad.numpy.views import ArrayView
from fnad.ops.arithmetic import div, mul, neg, sub
from fnad.ops.comparison import bitwise_and, bitwise_or, eq, isfinite, isnan, lt, select
from fnad.ops.conversion import complex_, imag, real
from fnad.ops.elementary import sin
from fnad.ops.piecewise import rint
from fnad.ops.shape import full_like, ones_like, zeros_like

# ---- rounding --------------------------------------------------------------------------------------------------------


@implements(np.round, np.around)
def round_(a: Any, decimals: Any) -> Symbol:
    x, places = as_symbol(a), static_int(decimals, "a number of decimals")
    if x.dtype == BOOL:
        return RULES[np.rint](x)
    if x.dtype.kind in "iu":
        return x if places >= 0 else to_dtype(_rounded(to_dtype(x, F64), places), x.dtype)
    return (
        complex_(*[_rounded(part(x), places) for part in (real, imag)]) if x.dtype.kind == "c" else _rounded(x, places)
    )


def _rounded(x: Symbol, places: int) -> Symbol:
    if places == 0:
        return rint(x)
    scale = full_like(x, _power_of_ten(abs(places)))
    return div(rint(mul(x, scale)), scale) if places > 0 else mul(rint(div(x, scale)), scale)


def _power_of_ten(places: int) -> float:
    return 10.0**places if places < 309 else np.inf


@implements(np.fix)
def fix(x: Any) -> Symbol:
    return RULES[np.trunc](x)


# ---- within bounds ---------------------------------------------------------------------------------------------------


@implements(np.clip)
def clip(
    a: Any,
    a_min: Any = UNSET,
    a_max: Any = UNSET,
    out: None = None,
    *,
    min: Any = UNSET,
    max: Any = UNSET,
    dtype: Any = None,
    casting: Any = "same_kind",
) -> Symbol:
    if a_min is UNSET and a_max is UNSET:
        return within_bounds(
            a, *[None if bound is UNSET else bound for bound in (min, max)], dtype=dtype, casting=casting
        )
    if a_min is UNSET or a_max is UNSET:
        name = "a_min" if a_min is UNSET else "a_max"
        raise ArgumentTypeError(f"clip() missing 1 required positional argument: '{name}'")
    if min is not UNSET or max is not UNSET:
        raise DomainError("Passing `min` or `max` keyword argument when `a_min` and `a_max` are provided is forbidden.")
    return within_bounds(a, a_min, a_max, None, dtype, casting)


def within_bounds(
    a: Any, min: Any = None, max: Any = None, out: None = None, dtype: Any = None, casting: Any = "same_kind"
) -> Symbol:
    """An array within bounds; a Python integer beyond all numbers of its dtype is none."""
    x, options = as_symbol(a), {"dtype": dtype, "casting": casting}
    low = None if out_of_range(min, x) and side(min) < 0 else min
    high = None if out_of_range(max, x) and side(max) > 0 else max
    if low is None and high is None:
        return RULES[np.positive](x, **options)
    if high is None:
        return RULES[np.maximum](x, low, **options)
    return RULES[np.minimum](x, high, **options) if low is None else RULES[CLIP](x, low, high, **options)


OF_AVALS.update((clip, within_bounds))

CLIP: np.ufunc = vars(umath)["clip"]
elementwise(CLIP)(lambda x, low, high: TABLE[np.minimum](TABLE[np.maximum](x, low), high))


# ---- numpy.emath -----------------------------------------------------------------------------------------------------
# Whether NumPy's result is real or complex depends on the values. Those of traced numbers are not known, so here it is
# complex always; of numbers in the real domain the imaginary part is 0.

OF_ONE = {
    np.emath.sqrt: np.sqrt,
    np.emath.log: np.log,
    np.emath.log2: np.log2,
    np.emath.log10: np.log10,
    np.emath.arccos: np.arccos,
    np.emath.arcsin: np.arcsin,
    np.emath.arctanh: np.arctanh,
}


def as_complex(value: Any) -> Symbol:
    """An operand as an array of complex numbers, of its precision."""
    x = as_array(value)
    return to_dtype(x, np.result_type(x.dtype, np.complex64))


def _on_complex(ufunc: np.ufunc) -> Rule:
    return lambda x: RULES[ufunc](as_complex(x))


for _function, _ufunc in OF_ONE.items():
    implements(_function)(_on_complex(_ufunc))


@implements(np.emath.logn)
def logn(n: Any, x: Any) -> Symbol:
    log = RULES[np.log]
    return divide(log(as_complex(x)), log(as_complex(n)))


@implements(np.emath.power)
def power(x: Any, p: Any) -> Symbol:
    return RULES[np.power](as_complex(x), p)


# ---- infinities, comparison ------------------------------------------------------------------------------------------


@implements(np.isclose)
def isclose(a: Any, b: Any, rtol: Any, atol: Any, equal_nan: bool) -> Symbol:
    dtype = np.result_type(common_dtype(a, b), np.float32) if common_dtype(a, b).kind in "biu" else common_dtype(a, b)
    x, y = broadcast_all([as_symbol(a, dtype), as_symbol(b, dtype)])
    distance, size = absolute(sub(x, y)), absolute(y)
    close = bitwise_and(*broadcast_all([RULES[np.less_equal](distance, add(atol, multiply(rtol, size))), isfinite(y)]))
    close = bitwise_or(*broadcast_all([close, eq(x, y)]))
    return bitwise_or(*broadcast_all([close, bitwise_and(isnan(x), isnan(y))])) if equal_nan else close


@implements(np.allclose)
def allclose(a: Any, b: Any, rtol: Any, atol: Any, equal_nan: bool) -> Symbol:
    return all_(isclose(a, b, rtol, atol, equal_nan))


@implements(np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: bool) -> Any:
    x, y = as_symbol(a1), as_symbol(a2)
    if x.shape != y.shape:
        return False
    same = RULES[np.equal](x, y)
    if equal_nan:
        same = bitwise_or(same, bitwise_and(RULES[np.isnan](x), RULES[np.isnan](y)))
    return all_(same)


@implements(np.array_equiv)
def array_equiv(a1: Any, a2: Any) -> Any:
    x, y = as_symbol(a1), as_symbol(a2)
    try:
        common_shape([x.shape, y.shape])
    except ShapeError:
        return False
    return all_(RULES[np.equal](x, y))


# ---- special functions -----------------------------------------------------------------------------------------------


@implements(np.i0)
def i0(x: Any) -> ArrayView:
    symbol = as_symbol(x)
    return fresh(PRIMITIVES["i0"](to_dtype(symbol, F64) if symbol.dtype.kind in "biu" else symbol))


TERMS = {4: 7, 8: 12}
"""The number of terms of the series of sin(z) / z near 0, as its second derivative needs (Note [The cardinal sine]).

It depends on the bytes of a real number.
"""


@implements(np.sinc)
def sinc(x: Any) -> Symbol:
    """sin(πx) / (πx), with all its derivatives at 0.

    Note [The cardinal sine]
        The quotient loses its derivatives near 0, where numerator and denominator vanish together. For z = πx, |z| < 1
        its series is used, (DLMF 4.19.1) over z: sin z / z = Σ_k (-z²)^k / (2k + 1)!
    """
    symbol = as_array(x)
    z = scaled(to_dtype(symbol, F64) if symbol.dtype.kind in "biu" else symbol, math.pi)
    size = absolute(z)
    is_small = lt(size, ones_like(size))
    near, far = select(is_small, z, zeros_like(z)), select(is_small, ones_like(z), z)
    return select(is_small, _series(mul(near, near)), div(sin(far), far))


def _series(square: Symbol) -> Symbol:
    """Σ_k (-square)^k / (2k + 1)!, by Horner's rule."""
    terms = TERMS[real_dtype(square.dtype).itemsize]
    result = full_like(square, 1 / math.factorial(2 * terms + 1))
    for k in reversed(range(terms)):
        result = mul(result, neg(square)) + full_like(square, 1 / math.factorial(2 * k + 1))
    return result


@implements(np.kaiser)
def kaiser(M: Any, beta: Any) -> Symbol:
    count = static_int(M, "a number of points")
    if count == 1:
        return add(np.ones(1), multiply(0.0, beta))
    middle = (count - 1) / 2
    chord = np.sqrt(1 - ((np.arange(count) - middle) / middle) ** 2)
    shape = multiply(1.0, beta)
    return divide(PRIMITIVES["i0"](multiply(shape, chord)), PRIMITIVES["i0"](shape))
