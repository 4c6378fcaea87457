"""scipy.ndimage: SciPy's bodies on traced arrays, over the filters that SciPy has in C: linear ones and those by rank.

>>> import fnad
>>> import numpy as np
>>> from scipy.ndimage import correlate1d
>>> fnad.grad(lambda x: correlate1d(x, [1.0, 2.0, 3.0])[0])(np.zeros(3))
array([3., 3., 0.])
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from scipy.ndimage import _nd_image, _rank_filter_1d

from fnad.errors import UnsupportedFunctionError
from fnad.numpy.bodies import XP, Body
from fnad.numpy.registry import RULES
from fnad.scipy.rule import others_of

MODES = ("edge", "wrap", "symmetric", "reflect", "constant", "wrap", "constant")
"""NumPy's names for the ways to go on beyond an edge, by SciPy's numbers."""


def _extended(x: Any, axis: int, before: int, after: int, mode: int, cval: Any) -> Any:
    """An array that goes on along an axis."""
    if MODES[mode] == "constant":
        width = [(0, 0)] * x.ndim
        width[axis] = before, after
        return XP.pad(x, width, constant_values=cval)
    places = np.pad(np.arange(x.shape[axis]), (before, after), mode=MODES[mode])  # type: ignore[call-overload]
    return XP.take(x, places, axis=axis)


def _neighbours(x: Any, sizes: Any, mode: int, cval: Any, origins: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    """The value at each place of a window around the elements, with the place."""
    whole = x
    for axis, (size, origin) in enumerate(zip(sizes, origins, strict=True)):
        before = size // 2 + origin
        if size > 1:
            whole = _extended(whole, axis, before, size - 1 - before, mode, cval)
    for at in product(*map(range, sizes)):
        yield at, whole[tuple(slice(k, k + n) for k, n in zip(at, x.shape, strict=True))]


def _write(output: Any, found: Any) -> None:
    """Write a result into the array for it."""
    if output.dtype.kind not in "fi":
        raise UnsupportedFunctionError(
            f"filters of scipy.ndimage have no rule for traced results of {output.dtype}",
            remedy="convert the input with astype(float)",
        )
    output[...] = found


def _along(ndim: int, axis: int, of_axis: Any, others: Any) -> list[Any]:
    return [of_axis if k == axis else others for k in range(ndim)]


# ---- linear ----------------------------------------------------------------------------------------------------------


def _correlate(input: Any, weights: Any, output: Any, mode: int, cval: Any, origins: Any) -> None:
    parts = _neighbours(XP.asarray(input, np.float64), weights.shape, mode, cval, origins)
    _write(output, sum(weights[at] * part for at, part in parts))


def _correlate1d(input: Any, weights: Any, axis: int, output: Any, mode: int, cval: Any, origin: int) -> None:
    whole = XP.reshape(weights, _along(input.ndim, axis, -1, 1))
    _correlate(input, whole, output, mode, cval, _along(input.ndim, axis, origin, 0))


def _uniform1d(input: Any, size: int, axis: int, output: Any, mode: int, cval: Any, origin: int) -> None:
    _correlate1d(input, np.full(size, 1 / size), axis, output, mode, cval, origin)


# ---- by rank ---------------------------------------------------------------------------------------------------------


def _ranked(
    input: Any, rank: int, footprint: Any, output: Any, mode: int, cval: Any, origins: Any, added: Any = None
) -> None:
    """The element of a rank in the window around each, with what is added to the window."""
    parts = _neighbours(XP.asarray(input), footprint.shape, mode, cval, origins)
    window = [part if added is None else part + added[at] for at, part in parts if footprint[at]]
    _write(output, XP.sort(XP.stack(window, axis=-1), axis=-1)[..., rank])


def _ranked1d(input: Any, rank: int, size: int, output: Any, mode: int, cval: Any, origin: int) -> None:
    _ranked(input, rank, np.ones(size, bool), output, mode, cval, [origin])


def _extreme(
    input: Any, footprint: Any, structure: Any, output: Any, mode: int, cval: Any, origins: Any, minimum: int
) -> None:
    added = -structure if structure is not None and minimum else structure
    _ranked(input, 0 if minimum else -1, footprint, output, mode, cval, origins, added)


def _extreme1d(input: Any, size: int, axis: int, output: Any, mode: int, cval: Any, origin: int, minimum: int) -> None:
    footprint = np.ones(_along(input.ndim, axis, size, 1), bool)
    _extreme(input, footprint, None, output, mode, cval, _along(input.ndim, axis, origin, 0), minimum)


RULES[_nd_image.correlate] = Body(_correlate)
RULES[_nd_image.correlate1d] = Body(_correlate1d)
RULES[_nd_image.uniform_filter1d] = Body(_uniform1d)
RULES[_nd_image.rank_filter] = Body(_ranked)
RULES[_rank_filter_1d.rank_filter] = Body(_ranked1d)
RULES[_nd_image.min_or_max_filter] = Body(_extreme)
RULES[_nd_image.min_or_max_filter1d] = Body(_extreme1d)

__getattr__ = others_of("scipy.ndimage")
