"""Discrete Fourier transforms along one axis.

    fft:    y_k = c Σ_j w^(jk) x_j       w = exp(∓2πi/n): - forward, + if `inverse`
    rfft:   the first n//2 + 1 of the forward transform of real x, which determine the others
    irfft:  the real x of length n from these; what is too much in them, the imaginary parts of the first element and,
            for even n, of the last, is not read

`norm` puts the factor 1/n into the forward transform, the inverse one ("backward"), or its root into both ("ortho").

Native code has transforms of its own, up to a length (`fnad.kernel.fourier`). Longer ones are those of scipy.fft, which
takes several rows at once, and float32 in less time than float64; np.fft takes one row after the other, and more time
for float32.

All are linear; `fft` and `irfft` take real numbers as complex ones. The matrix w^(jk) is symmetric, so `fft` is its own
transpose. `rfft` and `irfft` are each other's, but for a conjugation and the elements that stand for two: all but those
that are not read whole count twice in `irfft`.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib import import_module
from math import prod
from typing import Any, Literal, TypeAlias

import numpy as np

from fnad.errors import ShapeError
from fnad.ir.axes import Along
from fnad.ir.primitive import Library, Routine, Sample
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval, Dtype, is_complex, real_dtype
from fnad.ops.arithmetic import add, mul
from fnad.ops.constructors import INEXACT, REALS, by_name, check_dtype, linear
from fnad.ops.conversion import complex_dtype, conj, real
from fnad.ops.shape import check_axes, concatenate, constant, reverse, sample, slice_axis

Norm: TypeAlias = Literal["backward", "ortho", "forward"]

NORMS: dict[Norm, Norm] = {"backward": "forward", "ortho": "ortho", "forward": "backward"}
"""For each normalisation the one that is its opposite."""


def _check(name: str, x: Aval, axis: int, least: int) -> None:
    check_axes(name, (axis,), x.ndim)
    if x.shape[axis] < least:
        raise ShapeError(f"Invalid number of FFT data points ({x.shape[axis]}) specified.")


def _resized(x: Aval, axis: int, n: int) -> tuple[int, ...]:
    return (*x.shape[:axis], n, *x.shape[axis + 1 :])


LARGEST = 4096
"""The longest transform in native code: its tables are constants, and its buffers in the cache."""

LARGEST_ALONE = 2**15
"""The same for complex numbers, or pairs of real numbers, along the last axis, if their number has no prime factor
above 13."""


def _routine(name: str, x: Aval, n: int, axis: int, norm: Norm, *, inverse: bool) -> Routine | None:
    """The routine for a transform of length n."""
    is_of_pairs = name != "full" or not is_complex(x.dtype)
    count, rest = divmod(n, 2) if is_of_pairs else (n, 0)
    is_smooth_row = axis == x.ndim - 1 and rest == 0 and pow(2 * 3 * 5 * 7 * 11 * 13, 15, count) == 0
    if n > LARGEST and not (is_smooth_row and count <= LARGEST_ALONE):
        return None
    power = {0: 0.0, 1: -0.5, 2: -1.0}[_factor(norm, inverse=inverse)]
    sizes = prod(x.shape[:axis]), n, prod(x.shape[axis + 1 :])
    return Routine(f"fourier_{name}", options=(*sizes, inverse, n**power))


# ---- fft -----------------------------------------------------------------------------------------------------------


def as_complex(dtype: Dtype) -> Dtype:
    """The complex dtype of a transform of this one."""
    return dtype if is_complex(dtype) else complex_dtype(dtype)


def real_if(x: Symbol, ct: Symbol) -> Symbol:
    """A cotangent of x: of real numbers, its real part."""
    return ct if is_complex(x.dtype) else real(ct)


def _transforms_of(x: Any) -> Any:
    """The module that transforms an array; arrays of other libraries take over NumPy's functions."""
    return import_module("scipy.fft") if isinstance(x, np.ndarray) else np.fft


@cache
def _in_place() -> Any:
    """SciPy's transforms that write into an array, `f(x, …, axes, forward, factor, out, threads)`, or None."""
    for name in ("_pocketfft.pypocketfft", "_duccfft.pyduccfft"):
        with suppress(ImportError):
            return import_module(f"scipy.fft.{name}")
    return None


def _factor(norm: Norm, *, inverse: bool) -> int:
    """The number for SciPy of a factor of a transform: 0 for 1, 1 for n^(-1/2), 2 for 1/n."""
    return 1 if norm == "ortho" else 2 * (inverse == (norm == "backward"))


def _infer_fft(x: Aval, *, axis: int, inverse: bool, norm: Norm) -> Aval:
    check_dtype("fft", x.dtype, INEXACT)
    _check("fft", x, axis, 1)
    return x.with_dtype(as_complex(x.dtype))


def _transpose_fft(ct: Symbol, x: Symbol, *, axis: int, inverse: bool, norm: Norm) -> tuple[Symbol]:
    if is_complex(x.dtype):
        return (fft(ct, axis=axis, inverse=inverse, norm=norm),)
    return (_real_part(ct, axis, inverse, norm),)


def _real_part(z: Symbol, axis: int, inverse: bool, norm: Norm) -> Symbol:
    """The real part of a transform: the transform of (z_j + conj z_-j) / 2, which takes half of the work."""
    n = z.shape[axis]
    half = n // 2 + 1
    first, last = slice_axis(z, axis, 0, 1), slice_axis(z, axis, n - half + 1, n)
    mirrored = concatenate(first, reverse(last, axes=(axis,)), axis=axis) if half > 1 else first
    given = slice_axis(z, axis, 0, half)
    total = add(given, conj(mirrored)) if inverse else add(conj(given), mirrored)
    mean = mul(total, constant(0.5, z.dtype, total.shape))
    return irfft(mean, n=n, axis=axis, norm=norm if inverse else NORMS[norm])


def _fft_samples() -> Iterable[Sample]:
    for dtype in by_name(INEXACT):
        yield Sample((sample((2, 3), dtype),), {"axis": 1, "inverse": False, "norm": "backward"})
    for inverse in (False, True):
        for norm in NORMS:
            yield Sample((sample((4, 2), np.dtype("c16")),), {"axis": 0, "inverse": inverse, "norm": norm})
    yield Sample((sample((1,), np.dtype("c16")),), {"axis": 0, "inverse": False, "norm": "backward"})


@linear(
    _infer_fft,
    _transpose_fft,
    Library(
        "fft",
        raises=False,
        native=lambda x, *, axis, inverse, norm: _routine("full", x, x.shape[axis], axis, norm, inverse=inverse),
        dispatched=True,
        fills=True,
    ),
    _fft_samples,
    axes=Along(),
)
def fft(x: Any, *, axis: int, inverse: bool, norm: Norm, out: Any = None) -> Any:
    """Discrete Fourier transform along an axis."""
    if out is not None and _in_place():
        found = _in_place().c2c(x, (axis,), not inverse, _factor(norm, inverse=inverse), out, 1)
    else:
        module = _transforms_of(x)
        found = (module.ifft if inverse else module.fft)(x, axis=axis, norm=norm)
    if isinstance(x, np.ndarray) and x.dtype.kind == "f":  # SciPy writes -0, NumPy 0, on which a phase of pi depends
        n = x.shape[axis]
        found[(*[slice(None)] * axis, slice(0, None, n if n % 2 else n // 2))].imag = 0
    return found


# ---- rfft / irfft --------------------------------------------------------------------------------------------------


def _infer_rfft(x: Aval, *, axis: int, norm: Norm) -> Aval:
    check_dtype("rfft", x.dtype, REALS)
    _check("rfft", x, axis, 1)
    return Aval(complex_dtype(x.dtype), _resized(x, axis, x.shape[axis] // 2 + 1))


def _infer_irfft(x: Aval, *, n: int, axis: int, norm: Norm) -> Aval:
    check_dtype("irfft", x.dtype, INEXACT)
    _check("irfft", x, axis, 1)
    if x.shape[axis] != n // 2 + 1:
        raise ShapeError(f"irfft to length {n} takes {n // 2 + 1} elements along axis {axis}, got {x}")
    return Aval(real_dtype(x.dtype), _resized(x, axis, n))


def _weighted(x: Symbol, axis: int, n: int, inner: float) -> Symbol:
    """The operand with the elements that stand for two times `inner`."""
    last = (n + 1) // 2
    parts = [(0, 1, 1.0), (1, last, inner), (last, n // 2 + 1, 1.0)]
    weights = [
        constant(weight, x.dtype, _resized(x.aval, axis, end - start)) for start, end, weight in parts if end > start
    ]
    return mul(x, concatenate(*weights, axis=axis))


def _transpose_rfft(ct: Symbol, x: Symbol, *, axis: int, norm: Norm) -> tuple[Symbol]:
    n = x.shape[axis]
    return (irfft(conj(_weighted(ct, axis, n, 0.5)), n=n, axis=axis, norm=NORMS[norm]),)


def _transpose_irfft(ct: Symbol, x: Symbol, *, n: int, axis: int, norm: Norm) -> tuple[Symbol]:
    return (real_if(x, _weighted(conj(rfft(ct, axis=axis, norm=NORMS[norm])), axis, n, 2.0)),)


def _rfft_samples() -> Iterable[Sample]:
    for dtype in by_name(REALS):
        yield Sample((sample((2, 5), dtype),), {"axis": 1, "norm": "backward"})
    for n in (1, 2, 3, 4):
        for norm in NORMS:
            yield Sample((sample((n, 2)),), {"axis": 0, "norm": norm})


def _irfft_samples() -> Iterable[Sample]:
    for dtype in by_name(INEXACT):
        yield Sample((sample((2, 3), dtype),), {"n": 5, "axis": 1, "norm": "backward"})
    for n in (1, 2, 3, 4):
        for norm in NORMS:
            yield Sample((sample((n // 2 + 1, 2), np.dtype("c16")),), {"n": n, "axis": 0, "norm": norm})


@linear(
    _infer_rfft,
    _transpose_rfft,
    Library(
        "rfft",
        raises=False,
        native=lambda x, *, axis, norm: _routine("half", x, x.shape[axis], axis, norm, inverse=False),
        dispatched=True,
        fills=True,
    ),
    _rfft_samples,
    axes=Along(),
)
def rfft(x: Any, *, axis: int, norm: Norm, out: Any = None) -> Any:
    """Discrete Fourier transform of real numbers along an axis, as far as it is not conjugate to itself."""
    if out is not None and _in_place():
        return _in_place().r2c(x, (axis,), True, _factor(norm, inverse=False), out, 1)
    return _transforms_of(x).rfft(x, axis=axis, norm=norm)


@linear(
    _infer_irfft,
    _transpose_irfft,
    Library(
        "irfft",
        raises=False,
        native=lambda x, *, n, axis, norm: (
            _routine("real", x, n, axis, norm, inverse=True) if is_complex(x.dtype) else None
        ),
        dispatched=True,
        fills=True,
    ),
    _irfft_samples,
    axes=Along(),
)
def irfft(x: Any, *, n: int, axis: int, norm: Norm, out: Any = None) -> Any:
    """The n real numbers along an axis whose transform by rfft is the operand."""
    if out is not None and _in_place() and is_complex(x.dtype):
        return _in_place().c2r(x, (axis,), n, False, _factor(norm, inverse=True), out, 1)
    return _transforms_of(x).irfft(x, n, axis, norm)
