"""scipy.ndimage: linear filters of traced arrays, those that are made of them as SciPy's bodies, and filters by rank.

>>> import fnad
>>> import numpy as np
>>> fnad.grad(lambda x: correlate1d(x, [1.0, 2.0, 3.0])[0])(np.zeros(3))
array([3., 3., 0.])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any

import numpy as np

from fnad.errors import ShapeError, UnsupportedFunctionError
from fnad.numpy.bodies import XP
from fnad.scipy.rule import body_of, on_values, others_of

of_scipy = on_values("scipy.ndimage")

MODES = {
    **dict.fromkeys(("reflect", "grid-mirror"), "symmetric"),
    "nearest": "edge",
    "mirror": "reflect",
    **dict.fromkeys(("wrap", "grid-wrap"), "wrap"),
    **dict.fromkeys(("constant", "grid-constant"), "constant"),
}
"""NumPy's names for the ways to go on beyond an edge, by SciPy's."""


def _extended(x: Any, axis: int, before: int, after: int, mode: str, cval: Any) -> Any:
    """An array that goes on along an axis."""
    if mode not in MODES:
        raise UnsupportedFunctionError(f"scipy.ndimage has no mode={mode!r}", remedy=f"give one of {', '.join(MODES)}")
    if MODES[mode] == "constant":
        width = [(0, 0)] * x.ndim
        width[axis] = before, after
        return XP.pad(x, width, constant_values=cval)
    places = np.pad(np.arange(x.shape[axis]), (before, after), mode=MODES[mode])  # type: ignore[call-overload]
    return XP.take(x, places, axis=axis)


def _array(input: Any) -> Any:
    x = XP.asarray(input)
    if x.dtype.kind != "f":
        raise UnsupportedFunctionError(
            f"filters of scipy.ndimage have no rule for traced values of {x.dtype}",
            remedy="convert it with astype(float)",
        )
    return x


def _given(found: Any, output: Any, like: Any) -> Any:
    """The result as it is asked for: in an array, or of a dtype."""
    if output is None:
        return found.astype(like.dtype)
    if isinstance(output, (str, type, np.dtype)):
        return found.astype(np.dtype(output))
    output[...] = found
    return output


def _along(x: Any, weights: Any, axis: int, mode: str, cval: Any, origin: int) -> Any:
    """The correlation along an axis, in double precision."""
    size = weights.shape[0]
    before = size // 2 + origin
    if not 0 <= before < size:
        raise ShapeError("Invalid origin; origin must satisfy -(len(weights) // 2) <= origin <= (len(weights)-1) // 2")
    n = x.shape[axis]
    whole = _extended(x.astype(np.float64), axis, before, size - 1 - before, mode, cval)
    slices = [XP.take(whole, np.arange(k, k + n), axis=axis) for k in range(size)]
    return sum((weights[k] * part for k, part in enumerate(slices[1:], 1)), weights[0] * slices[0])


@of_scipy
def correlate1d(
    input: Any,
    weights: Any,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Any:
    """The correlation with weights along an axis.

    >>> correlate1d([1.0, 2.0], [1.0, 1.0, 1.0])
    array([4., 5.])
    """
    x, w = _array(input), XP.asarray(weights)
    return _given(_along(x, w, axis % x.ndim, mode, cval, origin), output, x)


convolve1d = body_of("scipy.ndimage.convolve1d")


def _turned(origin: int, size: int) -> int:
    return -origin - (1 - size % 2)


@of_scipy
def uniform_filter1d(
    input: Any, size: int, axis: int = -1, output: Any = None, mode: str = "reflect", cval: Any = 0.0, origin: int = 0
) -> Any:
    """The mean of so many elements along an axis.

    >>> uniform_filter1d([1.0, 2.0, 6.0], 3)
    array([1.33333333, 3.        , 4.66666667])
    """
    x = _array(input)
    return _given(_along(x, np.full(size, 1 / size), axis % x.ndim, mode, cval, origin), output, x)


@of_scipy
def correlate(
    input: Any, weights: Any, output: Any = None, mode: str = "reflect", cval: Any = 0.0, origin: Any = 0
) -> Any:
    """The correlation with an array of weights, which has as many axes.

    >>> correlate([[1.0, 2.0]], [[1.0, 1.0, 1.0]])
    array([[4., 5.]])
    """
    x, w = _array(input), XP.asarray(weights)
    return _given(_over_all(x, w, mode, cval, _origins(origin, x.ndim)), output, x)


@of_scipy
def convolve(
    input: Any, weights: Any, output: Any = None, mode: str = "reflect", cval: Any = 0.0, origin: Any = 0
) -> Any:
    """The convolution with an array of weights, which has as many axes.

    >>> convolve([[1.0, 2.0]], [[1.0, 0.0, 0.0]])
    array([[2., 2.]])
    """
    x, w = _array(input), XP.asarray(weights)
    origins = [_turned(o, n) for o, n in zip(_origins(origin, x.ndim), w.shape, strict=True)]
    return _given(_over_all(x, XP.flip(w), mode, cval, origins), output, x)


def _origins(origin: Any, ndim: int) -> list[int]:
    return list(origin) if isinstance(origin, Iterable) else [origin] * ndim


def _over_all(x: Any, weights: Any, mode: str, cval: Any, origins: list[int]) -> Any:
    if weights.ndim != x.ndim:
        raise ShapeError(f"weights.ndim ({weights.ndim}) must match len(axes) ({x.ndim})")
    parts = _neighbours(x.astype(np.float64), weights.shape, [mode] * x.ndim, cval, origins)
    return sum(weights[at] * part for at, part in parts)


def _neighbours(x: Any, sizes: Any, modes: Any, cval: Any, origins: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    """The value at each place of a window around the elements, with the place."""
    whole = x
    for axis, (size, mode, origin) in enumerate(zip(sizes, modes, origins, strict=True)):
        before = size // 2 + origin
        if not 0 <= before < size:
            raise ShapeError("Invalid origin; it must lie within the weights")
        whole = _extended(whole, axis, before, size - 1 - before, mode, cval)
    for at in product(*map(range, sizes)):
        yield at, whole[tuple(slice(k, k + n) for k, n in zip(at, x.shape, strict=True))]


# ---- by rank ---------------------------------------------------------------------------------------------------------


def _windows(x: Any, size: Any, footprint: Any, mode: Any, cval: Any, origin: Any) -> Any:
    """The elements of the window around each, along a last axis."""
    if footprint is None and size is None:
        raise ShapeError("no footprint or filter size provided", remedy="give size=")
    marked = np.ones(_of_each(size, x.ndim), bool) if footprint is None else np.asarray(footprint, bool)
    if marked.ndim != x.ndim or not marked.any():
        raise ShapeError(f"a footprint of shape {marked.shape} marks no window of an array of {x.ndim} axes")
    parts = _neighbours(x, marked.shape, _of_each(mode, x.ndim), cval, _of_each(origin, x.ndim))
    return XP.stack([part for at, part in parts if marked[at]], axis=-1)


def _of_each(value: Any, ndim: int) -> list[Any]:
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value] * ndim


def _ranked(input: Any, rank_of: Callable[[int], int], window: tuple[Any, ...], output: Any) -> Any:
    """The element of a rank in the window around each, as it follows from how many there are."""
    x = _array(input)
    windows = _windows(x, *window)
    count = windows.shape[-1]
    rank = rank_of(count)
    if not -count <= rank < count:
        raise ShapeError(f"rank {rank} is not within a window of {count} elements")
    return _given(XP.sort(windows, axis=-1)[..., rank], output, x)


def _by_rank(name: str, rank_of: Callable[[int], int], doc: str) -> Callable[..., Any]:
    """The filter that takes the element of a rank around each, as it follows from how many there are."""

    def rule(
        input: Any, size: Any = None, footprint: Any = None, output: Any = None, mode: Any = "reflect",
        cval: Any = 0.0, origin: Any = 0,
    ) -> Any:  # fmt: skip
        return _ranked(input, rank_of, (size, footprint, mode, cval, origin), output)

    rule.__name__, rule.__doc__ = name, doc
    return of_scipy(rule)


median_filter = _by_rank(
    "median_filter",
    lambda n: n // 2,
    """The median around each element.

>>> median_filter([1.0, 9.0, 2.0, 3.0], 3)
array([1., 2., 3., 3.])
""",
)
minimum_filter = _by_rank(
    "minimum_filter",
    lambda n: 0,
    """The smallest element around each.

>>> minimum_filter([1.0, 9.0, 2.0, 3.0], 3)
array([1., 1., 2., 2.])
""",
)
maximum_filter = _by_rank(
    "maximum_filter",
    lambda n: -1,
    """The largest element around each.

>>> maximum_filter([1.0, 9.0, 2.0, 3.0], 3)
array([9., 9., 9., 3.])
""",
)


@of_scipy
def rank_filter(
    input: Any,
    rank: Any,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
) -> Any:
    """The element of a rank around each, from the end if it is negative.

    >>> rank_filter([1.0, 9.0, 2.0, 3.0], -2, 3)
    array([1., 2., 3., 3.])
    """
    return _ranked(input, lambda n: rank, (size, footprint, mode, cval, origin), output)


@of_scipy
def percentile_filter(
    input: Any,
    percentile: Any,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
) -> Any:
    """The element of a percentile around each.

    >>> percentile_filter([1.0, 9.0, 2.0, 3.0], 50, 3)
    array([1., 2., 3., 3.])
    """
    return _ranked(input, lambda n: _rank_at(percentile, n), (size, footprint, mode, cval, origin), output)


@of_scipy
def minimum_filter1d(
    input: Any, size: int, axis: int = -1, output: Any = None, mode: str = "reflect", cval: Any = 0.0, origin: int = 0
) -> Any:
    """The smallest element around each, along an axis.

    >>> minimum_filter1d([1.0, 9.0, 2.0, 3.0], 3)
    array([1., 1., 2., 2.])
    """
    return _ranked(input, lambda n: 0, _along_one(input, axis, size, mode, cval, origin), output)


@of_scipy
def maximum_filter1d(
    input: Any, size: int, axis: int = -1, output: Any = None, mode: str = "reflect", cval: Any = 0.0, origin: int = 0
) -> Any:
    """The largest element around each, along an axis.

    >>> maximum_filter1d([1.0, 9.0, 2.0, 3.0], 3)
    array([9., 9., 9., 3.])
    """
    return _ranked(input, lambda n: -1, _along_one(input, axis, size, mode, cval, origin), output)


def _rank_at(percentile: float, count: int) -> int:
    share = percentile + 100.0 if percentile < 0 else percentile
    return count - 1 if share == 100.0 else int(float(count) * share / 100.0)


def _along_one(x: Any, axis: int, size: int, mode: str, cval: Any, origin: int) -> tuple[Any, ...]:
    sizes, origins = [1] * np.ndim(x), [0] * np.ndim(x)
    sizes[axis], origins[axis] = size, origin
    return sizes, None, mode, cval, origins


# ---- made of the others ----------------------------------------------------------------------------------------------

__getattr__ = others_of("scipy.ndimage")
