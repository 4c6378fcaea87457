"""scipy.fft: transforms of traced arrays, which SciPy's dispatch hands to functions of its own.

>>> import fnad
>>> import numpy as np
>>> fnad.grad(lambda x: dct(x)[0])(np.ones(3))
array([2., 2., 2.])

Fourier transforms are NumPy's. A cosine or sine transform of n elements is part of a Fourier transform of 2 m:

    y[k] = Σⱼ w[j] x[j] cos θ,  or sin θ,  where θ = π (k + a) (j + b) / m

    Σⱼ w[j] x[j] exp(-i θ) = exp(-i π b (k + a) / m) Σⱼ exp(-2 π i j k / 2 m) (exp(-i π a j / m) w[j] x[j])

Each type has its a, b and m; w is 2, and 1 at an end where θ is a multiple of π for all k, or an odd one of π / 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from fnad.errors import DomainError, ShapeError
from fnad.numpy.bodies import XP
from fnad.scipy.rule import body_of, on_values, others_of

# ---- Fourier transforms ----------------------------------------------------------------------------------------------

of_fourier = on_values("scipy.fft", "scipy.fft._basic_backend")
OPPOSITE: dict[str | None, Any] = {None: "forward", "backward": "forward", "forward": "backward"}


def _along_one(name: str) -> Callable[..., Any]:
    function = getattr(np.fft, name)

    def rule(
        x: Any, n: Any = None, axis: Any = -1, norm: Any = None, overwrite_x: Any = False, workers: Any = None
    ) -> Any:
        return function(XP.asarray(x), n, axis, norm)

    rule.__name__, rule.__doc__ = name, f"numpy.fft.{name}."
    return of_fourier(rule)


def _along_several(name: str, axes: Any, transform: Callable[..., Any]) -> Callable[..., Any]:
    def rule(
        x: Any, s: Any = None, axes: Any = axes, norm: Any = None, overwrite_x: Any = False, workers: Any = None
    ) -> Any:
        lengths, axes = (None if given is None else np.atleast_1d(given).tolist() for given in (s, axes))
        last = axes if axes is not None or lengths is None else range(-len(lengths), 0)
        return transform(XP.asarray(x), lengths, last, norm)

    rule.__name__, rule.__doc__ = name, f"The transform `{name}` along several axes."
    return of_fourier(rule)


def _hermitian(x: Any, s: Any, axes: Any, norm: Any) -> Any:
    return np.fft.irfftn(np.conj(x), s, axes, OPPOSITE.get(norm, norm))


def _half_hermitian(x: Any, s: Any, axes: Any, norm: Any) -> Any:
    return np.conj(np.fft.rfftn(x, s, axes, OPPOSITE.get(norm, norm)))


fft, ifft, rfft, irfft, hfft, ihfft = map(_along_one, ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"))
fftn, fft2 = _along_several("fftn", None, np.fft.fftn), _along_several("fft2", (-2, -1), np.fft.fftn)
ifftn, ifft2 = _along_several("ifftn", None, np.fft.ifftn), _along_several("ifft2", (-2, -1), np.fft.ifftn)
rfftn, rfft2 = _along_several("rfftn", None, np.fft.rfftn), _along_several("rfft2", (-2, -1), np.fft.rfftn)
irfftn, irfft2 = _along_several("irfftn", None, np.fft.irfftn), _along_several("irfft2", (-2, -1), np.fft.irfftn)
hfftn, hfft2 = _along_several("hfftn", None, _hermitian), _along_several("hfft2", (-2, -1), _hermitian)
ihfftn, ihfft2 = _along_several("ihfftn", None, _half_hermitian), _along_several("ihfft2", (-2, -1), _half_hermitian)

# ---- cosine and sine transforms --------------------------------------------------------------------------------------

of_real = on_values("scipy.fft", "scipy.fft._realtransforms_backend")
INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}


class FftKind(NamedTuple):
    """A type of transform: a, b, m - n, and the ends where w is 1."""

    a: float
    b: float
    more: int
    ends: tuple[int, ...]


COSINE = {
    1: FftKind(0, 0, -1, (0, -1)),
    2: FftKind(0, 0.5, 0, ()),
    3: FftKind(0.5, 0, 0, (0,)),
    4: FftKind(0.5, 0.5, 0, ()),
}
SINE = {1: FftKind(1, 1, 1, ()), 2: FftKind(1, 0.5, 0, ()), 3: FftKind(0.5, 1, 0, (-1,)), 4: FftKind(0.5, 0.5, 0, ())}
Kinds = dict[int, FftKind]


class FftRequest(NamedTuple):
    """A requested transform: kinds, one of them, the inverse, and the normalization of results."""

    kinds: Kinds
    type: int
    is_inverse: bool
    norm: str | None
    orthogonalize: bool | None

    def scale(self, m: int) -> float:
        """The factor of the normalization."""
        if self.norm == "ortho":
            return (2 * m) ** -0.5
        return 1 / (2 * m) if self.is_inverse == (self.norm in (None, "backward")) else 1.0

    def along(self, x: Any, axis: int, n: int | None) -> Any:
        """The transform along an axis, of the first n elements."""
        last = _resized(np.moveaxis(x, axis, -1), n)
        if last.dtype.kind == "c":
            return np.moveaxis(self.of_rows(last.real) + 1j * self.of_rows(last.imag), -1, axis)
        return np.moveaxis(self.of_rows(last), -1, axis)

    def of_rows(self, x: Any) -> Any:
        """The transform along the last axis."""
        inverse, n = INVERSE[self.type], x.shape[-1]
        kind, transposed = (self.kinds[t] for t in ((inverse, self.type) if self.is_inverse else (self.type, inverse)))
        m = n + kind.more
        if n < 1 or m < 1:
            raise ShapeError(f"Invalid number of data points ({n}) specified.")
        weights, scale = np.full(n, 2.0), np.full(n, self.scale(m))
        is_orthogonal = self.norm == "ortho" if self.orthogonalize is None else self.orthogonalize
        weights[list(kind.ends)] = 2**0.5 if is_orthogonal else 1.0
        if is_orthogonal:
            scale[list(transposed.ends)] /= 2**0.5
        places, dtype = np.arange(n), np.result_type(x.dtype, np.complex64)
        before = weights * np.exp(-1j * np.pi * kind.a * places / m)
        after = scale * np.exp(-1j * np.pi * kind.b * (places + kind.a) / m)
        found = np.fft.fft(x * before.astype(dtype), 2 * m)[..., :n] * after.astype(dtype)
        return found.real if self.kinds is COSINE else -found.imag


def _resized(x: Any, n: int | None) -> Any:
    size = x.shape[-1]
    if n is None or n <= size:
        return x[..., :n]
    return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, n - size)])


def _request(kinds: Kinds, is_inverse: bool, type: Any, norm: Any, orthogonalize: Any) -> FftRequest:
    if type not in kinds:
        raise DomainError(f"invalid transform type {type!r}; should be 1, 2, 3 or 4")
    if norm not in (None, "backward", "ortho", "forward"):
        raise DomainError(f'invalid norm value {norm!r}; should be "backward", "ortho" or "forward"')
    return FftRequest(kinds, type, is_inverse, norm, orthogonalize)


def _floats(x: Any) -> Any:
    given = XP.asarray(x)
    return given if given.dtype.kind in "fc" else given.astype(np.float64)


def _trigonometric(name: str, kinds: Kinds, *, is_inverse: bool = False) -> Callable[..., Any]:
    def rule(
        x: Any,
        type: Any = 2,
        n: Any = None,
        axis: Any = -1,
        norm: Any = None,
        overwrite_x: Any = False,
        workers: Any = None,
        orthogonalize: Any = None,
    ) -> Any:
        return _request(kinds, is_inverse, type, norm, orthogonalize).along(_floats(x), axis, n)

    rule.__name__, rule.__doc__ = name, "A cosine or sine transform of type 1 to 4 along an axis."
    return of_real(rule)


def _trigonometric_along_several(name: str, kinds: Kinds, *, is_inverse: bool = False) -> Callable[..., Any]:
    def rule(
        x: Any,
        type: Any = 2,
        s: Any = None,
        axes: Any = None,
        norm: Any = None,
        overwrite_x: Any = False,
        workers: Any = None,
        orthogonalize: Any = None,
    ) -> Any:
        found, request = _floats(x), _request(kinds, is_inverse, type, norm, orthogonalize)
        for axis, n in _lengths(found.ndim, s, axes):
            found = request.along(found, axis, n)
        return found

    rule.__name__, rule.__doc__ = name, f"The transform `{name.removesuffix('n')}` along several axes."
    return of_real(rule)


def _lengths(ndim: int, s: Any, axes: Any) -> Iterable[tuple[int, int | None]]:
    """Axes, each with the number of elements along it."""
    lengths = None if s is None else np.atleast_1d(s).tolist()
    at = range(-(ndim if lengths is None else len(lengths)), 0) if axes is None else np.atleast_1d(axes).tolist()
    if lengths is None:
        return [(axis, None) for axis in at]
    if len(at) != len(lengths):
        raise ShapeError("when given, axes and shape arguments have to be of the same length")
    return [(axis, None if n == -1 else n) for axis, n in zip(at, lengths, strict=True)]


dct, idct = _trigonometric("dct", COSINE), _trigonometric("idct", COSINE, is_inverse=True)
dst, idst = _trigonometric("dst", SINE), _trigonometric("idst", SINE, is_inverse=True)
dctn = _trigonometric_along_several("dctn", COSINE)
idctn = _trigonometric_along_several("idctn", COSINE, is_inverse=True)
dstn = _trigonometric_along_several("dstn", SINE)
idstn = _trigonometric_along_several("idstn", SINE, is_inverse=True)

# ---- Hankel transforms -----------------------------------------------------------------------------------------------

fht, ifht = body_of("scipy.fft._fftlog_backend.fht"), body_of("scipy.fft._fftlog_backend.ifht")

__getattr__ = others_of("scipy.fft")
