"""numpy.fft: transforms along one axis after the other, of arrays cut or filled with zeros to a length."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.errors import DtypeError, ShapeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64, is_complex
from fnad.numpy.operands import as_symbol, axis_of, static_int, to_dtype
from fnad.numpy.registry import implements
from fnad.ops import fft as ops
from fnad.ops.matrix import conjugate
from fnad.ops.shape import pad, slice_axis

# ---- operands --------------------------------------------------------------------------------------------------------


def floating(a: Any) -> Symbol:
    """The operand, integers and bools as f64."""
    x = as_symbol(a)
    return to_dtype(x, F64) if x.dtype.kind in "biu" else x


def normalization(norm: Any) -> ops.Norm:
    """The name of a normalization; raise as NumPy where it is none."""
    if norm is None:
        return "backward"
    if norm not in ops.NORMS:
        raise ShapeError(f'Invalid norm value {norm}; should be "backward","ortho" or "forward".')
    return norm


def resized(x: Symbol, n: int, axis: int) -> Symbol:
    """X cut, or filled with zeros at the end, to n elements along an axis."""
    size = x.shape[axis]
    if n <= size:
        return x if n == size else slice_axis(x, axis, 0, n)
    none = (0,) * x.ndim
    return pad(x, low=none, high=tuple(n - size if i == axis else 0 for i in range(x.ndim)), interior=none)


def _length(n: Any, default: int) -> int:
    length = default if n is None else static_int(n, "a length")
    if length < 1:
        raise ShapeError(f"Invalid number of FFT data points ({length}) specified.")
    return length


# ---- along one axis --------------------------------------------------------------------------------------------------


def _transform(a: Any, n: Any, axis: Any, norm: Any, *, inverse: bool) -> Symbol:
    x = floating(a)
    at = axis_of(axis, x.ndim)
    given = resized(x, _length(n, x.shape[at]), at)
    return ops.fft(given, axis=at, inverse=inverse, norm=normalization(norm))


@implements(np.fft.fft)
def fft(a: Any, n: Any, axis: Any, norm: Any) -> Symbol:
    return _transform(a, n, axis, norm, inverse=False)


@implements(np.fft.ifft)
def ifft(a: Any, n: Any, axis: Any, norm: Any) -> Symbol:
    return _transform(a, n, axis, norm, inverse=True)


@implements(np.fft.rfft)
def rfft(a: Any, n: Any, axis: Any, norm: Any) -> Symbol:
    x = floating(a)
    at = axis_of(axis, x.ndim)
    given, kind = resized(x, _length(n, x.shape[at]), at), normalization(norm)
    if is_complex(x.dtype):
        raise DtypeError(f"rfft takes real numbers, got {x.aval}", remedy="use numpy.fft.fft")
    return ops.rfft(given, axis=at, norm=kind)


@implements(np.fft.irfft)
def irfft(a: Any, n: Any, axis: Any, norm: Any) -> Symbol:
    x = floating(a)
    at = axis_of(axis, x.ndim)
    length = _length(n, 2 * (x.shape[at] - 1))
    given = to_dtype(resized(x, length // 2 + 1, at), ops.as_complex(x.dtype))  # native code takes complex numbers
    return ops.irfft(given, n=length, axis=at, norm=normalization(norm))


@implements(np.fft.hfft)
def hfft(a: Any, n: Any, axis: Any, norm: Any) -> Symbol:
    return irfft(conjugate(floating(a)), n, axis, ops.NORMS[normalization(norm)])


@implements(np.fft.ihfft)
def ihfft(a: Any, n: Any, axis: Any, norm: Any) -> Symbol:
    return conjugate(rfft(a, n, axis, ops.NORMS[normalization(norm)]))
