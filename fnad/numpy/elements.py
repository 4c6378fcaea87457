"""Functions of array elements that are no ufuncs: rounding, angles, differences, comparison to a tolerance."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.errors import DtypeError, ShapeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, F64
from fnad.numpy.joining import join
from fnad.numpy.operands import as_array, as_symbol, axis_of, broadcast_all, common_dtype, static_int, to_dtype
from fnad.numpy.rearranging import fresh
from fnad.numpy.reductions import UNSET, all_
from fnad.numpy.registry import RULES, implements
from fnad.numpy.ufuncs import absolute, add, multiply, rad2deg, subtract
from fnad.numpy.views import ArrayView
from fnad.ops import bessel
from fnad.ops.arithmetic import div, mul, sub
from fnad.ops.comparison import bitwise_and, bitwise_not, bitwise_or, bitwise_xor, eq, isfinite, isnan, ne, signbit
from fnad.ops.conversion import complex_, imag, real
from fnad.ops.piecewise import rint
from fnad.ops.power import arctan2
from fnad.ops.shape import broadcast_to, constant, full_like, reshape_to, slice_axis, zeros_like

# ---- rounding --------------------------------------------------------------------------------------------------------


@implements(np.round, np.around)
def round_(a: Any, decimals: Any = 0, out: None = None) -> Symbol:
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


@implements(np.i0)
def i0(x: Any) -> ArrayView:
    symbol = as_symbol(x)
    return fresh(bessel.i0(to_dtype(symbol, F64) if symbol.dtype.kind in "biu" else symbol))


@implements(np.fix)
def fix(x: Any, out: None = None) -> Symbol:
    return RULES[np.trunc](x)


# ---- complex numbers -------------------------------------------------------------------------------------------------


@implements(np.angle)
def angle(z: Any, deg: bool = False) -> Symbol:
    x = as_symbol(z)
    result = arctan2(imag(x), real(x)) if x.dtype.kind == "c" else RULES[np.arctan2](0, x)
    return rad2deg(result) if deg else result


@implements(np.iscomplex)
def iscomplex(x: Any) -> Symbol:
    symbol = as_symbol(x)
    if symbol.dtype.kind != "c":
        return constant(False, BOOL, symbol.shape)
    part = imag(symbol)
    return ne(part, zeros_like(part))


@implements(np.real_if_close)
def real_if_close(a: Any, tol: Any = 100) -> ArrayView:
    x = as_symbol(a)
    if x.dtype.kind == "c":
        raise DtypeError(
            "numpy.real_if_close is real or complex by the values, which are not known while tracing",
            remedy="take the real part with np.real",
        )
    return ArrayView(x, is_array=True)


@implements(np.isreal)
def isreal(x: Any) -> Symbol:
    return bitwise_not(iscomplex(x))


# ---- differences -----------------------------------------------------------------------------------------------------


@implements(np.diff)
def diff(a: Any, n: Any = 1, axis: Any = -1, prepend: Any = UNSET, append: Any = UNSET) -> ArrayView | Symbol:
    x, times = as_symbol(a), static_int(n, "a number of differences")
    if times == 0:
        return ArrayView(x)
    if times < 0:
        raise ShapeError(f"order must be non-negative but got {times}")
    if x.ndim == 0:
        raise ShapeError("diff requires input that is at least one dimensional")
    at = axis_of(axis, x.ndim)
    prepend, append = (end if end is UNSET else as_array(end) for end in (prepend, append))
    dtype = common_dtype(x, *[end for end in (prepend, append) if end is not UNSET])
    row = tuple(1 if i == at else size for i, size in enumerate(x.shape))
    parts = [as_symbol(part, dtype) for part in (prepend, x, append) if part is not UNSET]
    x = join([broadcast_to(part, row) if part.ndim == 0 else part for part in parts], at)
    for _ in range(times):
        x = difference(x, at)
    return x


def difference(x: Symbol, axis: int) -> Symbol:
    """Return each element less the one before along an axis; of bools, whether they differ."""
    size = x.shape[axis]
    later, earlier = slice_axis(x, axis, min(1, size), size), slice_axis(x, axis, 0, max(size - 1, 0))
    return bitwise_xor(later, earlier) if x.dtype == BOOL else sub(later, earlier)


@implements(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Symbol:
    x = as_symbol(ary)
    for name, end in (("to_begin", to_begin), ("to_end", to_end)):
        if end is not None and not np.can_cast(as_array(end).dtype, x.dtype, "same_kind"):
            raise DtypeError(f"dtype of `{name}` must be compatible with input `ary` under the `same_kind` rule.")
    x, n = reshape_to(x, (x.aval.size,)), x.aval.size
    parts = [to_begin, subtract(slice_axis(x, 0, min(1, n), n), slice_axis(x, 0, 0, max(n - 1, 0))), to_end]
    symbols = [as_symbol(part, x.dtype) for part in parts if part is not None]
    return join([reshape_to(symbol, (symbol.aval.size,)) for symbol in symbols], 0)


# ---- infinities, comparison ------------------------------------------------------------------------------------------


@implements(np.isposinf)
def isposinf(x: Any, out: None = None) -> Symbol:
    symbol = as_symbol(x)
    return bitwise_and(RULES[np.isinf](symbol), bitwise_not(_is_negative(symbol)))


@implements(np.isneginf)
def isneginf(x: Any, out: None = None) -> Symbol:
    symbol = as_symbol(x)
    return bitwise_and(RULES[np.isinf](symbol), _is_negative(symbol))


def _is_negative(x: Symbol) -> Symbol:
    if x.dtype.kind == "c":
        raise DtypeError(f"{x.dtype} has no sign: which infinity it is, is not defined")
    return signbit(x if x.dtype.kind == "f" else to_dtype(x, F64))


@implements(np.isclose)
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Symbol:
    dtype = np.result_type(common_dtype(a, b), np.float32) if common_dtype(a, b).kind in "biu" else common_dtype(a, b)
    x, y = broadcast_all([as_symbol(a, dtype), as_symbol(b, dtype)])
    distance, size = absolute(sub(x, y)), absolute(y)
    close = bitwise_and(*broadcast_all([RULES[np.less_equal](distance, add(atol, multiply(rtol, size))), isfinite(y)]))
    close = bitwise_or(*broadcast_all([close, eq(x, y)]))
    return bitwise_or(*broadcast_all([close, bitwise_and(isnan(x), isnan(y))])) if equal_nan else close


@implements(np.allclose)
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Symbol:
    return all_(isclose(a, b, rtol, atol, equal_nan))


@implements(np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    x, y = as_symbol(a1), as_symbol(a2)
    if x.shape != y.shape:
        return False
    same = RULES[np.equal](x, y)
    if equal_nan:
        same = bitwise_or(same, bitwise_and(RULES[np.isnan](x), RULES[np.isnan](y)))
    return all_(same)
