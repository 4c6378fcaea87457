"""scipy.ndimage between elements: SciPy's bodies on traced arrays, over what its compiled functions do.

A value is that of a spline, Σ c_k B(x - k) along each axis, where B is the B-spline of the order. Its coefficients c
are the elements filtered by 1/Σ B(k) z^k, which is a recursion in both directions for each pole within the unit circle.
The method is that of Unser, Aldroubi & Eden, "Fast B-spline transforms for continuous image representation and
interpolation", 1991.
"""

from __future__ import annotations

from functools import reduce
from importlib import import_module
from itertools import product
from math import prod
from operator import and_
from pkgutil import resolve_name
from typing import Any

import numpy as np
from scipy.ndimage import _nd_image

from fnad.errors import UnsupportedFunctionError
from fnad.numpy.bodies import XP, Body, anew
from fnad.numpy.registry import RULES
from fnad.scipy.interpolate import required
from fnad.scipy.rule import body_of, on_values

of_scipy = on_values("scipy.ndimage")

MODES = ("nearest", "wrap", "reflect", "mirror", "constant", "grid-wrap", "grid-constant")
"""SciPy's names for the ways to go on beyond an edge, by its numbers."""

BEYOND: dict[str, Any] = {"nearest": "edge", "reflect": "symmetric", "grid-wrap": "wrap", "grid-constant": "edge"}
"""NumPy's names for the ways in which coefficients go on; those of the others do as in a mirror."""

FILTERED: dict[str, Any] = {"grid-wrap": "wrap", "reflect": "symmetric", "nearest": "symmetric"}
"""Likewise for the elements that coefficients are made of."""

POLES = {
    2: (8**0.5 - 3,),
    3: (3**0.5 - 2,),
    4: ((664 - 438976**0.5) ** 0.5 + 304**0.5 - 19, (664 + 438976**0.5) ** 0.5 - 304**0.5 - 19),
    5: ((67.5 - 4436.25**0.5) ** 0.5 + 26.25**0.5 - 6.5, (67.5 + 4436.25**0.5) ** 0.5 - 26.25**0.5 - 6.5),
}

REACH = 50
"""The number of elements beyond which one does not count in a coefficient: the largest pole is -0.43."""


def _coefficients(x: Any, order: int, axis: int, output: Any, mode: int) -> None:
    """SciPy's compiled function: the coefficients along an axis, for a short one by SciPy's as a matrix."""
    x, n = XP.moveaxis(x.astype(np.float64), axis, 0), x.shape[axis]
    if 1 < n <= REACH:
        matrix = resolve_name("scipy.ndimage.spline_filter1d")(np.eye(n), order, 0, mode=MODES[mode])
        x = XP.tensordot(matrix, x, 1)
    elif n > 1:
        x = XP.take(x, np.pad(np.arange(n), REACH, mode=FILTERED.get(MODES[mode], "reflect")), axis=0)
        along = import_module("fnad.scipy.signal").lfilter
        for z in POLES[order]:
            forth = along([(1 - z) * (1 - 1 / z)], [1.0, -z], x, axis=0)
            x = along([-z], [1.0, -z], forth[::-1], axis=0)[::-1]
        x = x[REACH:-REACH]
    output[...] = XP.moveaxis(x, 0, axis)


def _weights(x: Any, order: int) -> list[Any]:
    """The B-splines that are not 0 at a distance, in [0, 1), from the knot before (de Boor's recursion)."""
    found = [XP.ones_like(x)]
    for k in range(1, order + 1):
        rise = [(x + k - 1 - i) / k for i in range(k)]
        found = [
            (rise[i - 1] * found[i - 1] if i else 0.0) + ((1 - rise[i]) * found[i] if i < k else 0.0)
            for i in range(k + 1)
        ]
    return found


def _mapped(x: Any, n: int, mode: int) -> Any:
    """Coordinates between the ends of an axis of n elements, or near them, for those beyond."""
    match MODES[mode]:
        case "constant" | "grid-constant" | "nearest":
            return x
        case _ if n == 1:
            return XP.zeros_like(x)
        case "wrap":  # at the end, which is not at the start, the last element
            start = XP.where(x < 0, -XP.floor(-x / (n - 1)) - 1, XP.where(x > n - 1, XP.floor(x / (n - 1)), 0))
            return x - (n - 1) * start
        case "grid-wrap":
            return x % n
        case "reflect":
            x = x % (2 * n)
            return XP.where(x >= n, 2 * n - 1 - x, x)
        case _:
            start = x % (2 * n - 2)
            return XP.where(start >= XP.where(x < 0, n - 1, n), 2 * n - 2 - start, start)


def _terms(x: Any, n: int, order: int, mode: int) -> list[tuple[Any, Any, Any]]:
    """The coefficients along an axis that count in a value: numbers, weights, and whether they are there."""
    middle = XP.floor(x if order % 2 else x + 0.5)
    if order % 2 and MODES[mode] in ("constant", "wrap"):  # which end at the last element
        middle = XP.where(middle == n - 1, max(n - 2.0, 0.0), middle)
    weights = _weights(x - middle + (0.0 if order % 2 else 0.5), order)
    first = XP.clip(XP.nan_to_num(middle), -order - 1, n + order).astype(int) - order // 2
    beyond = np.pad(np.arange(n), 2 * order + 1, mode=BEYOND.get(MODES[mode], "reflect"))
    at = [first + k for k in range(order + 1)]
    return [(XP.take(beyond, i + 2 * order + 1), w, (i >= 0) & (i < n)) for i, w in zip(at, weights, strict=True)]


def _values(c: Any, coordinates: Any, output: Any, order: int, mode: int, cval: Any, npad: int) -> None:
    """Write the values at coordinates, an array of them or one for each axis, into the output."""
    if output.dtype.kind != "f":
        raise UnsupportedFunctionError(
            f"interpolation of scipy.ndimage has no rule for results of {output.dtype}",
            remedy="convert the input with astype(float)",
        )
    within, along = np.array(True), []
    for given, n in zip(coordinates, c.shape, strict=True):
        x = XP.asarray(given, dtype=np.float64)
        if MODES[mode] not in ("nearest", "grid-constant"):
            within = within & ~XP.isnan(x)
        if MODES[mode] == "constant":
            within = within & (x >= 0) & (x <= n - 1)
        along.append(_terms(_mapped(x + npad, n, mode), n, order, mode))
    flat, value = XP.ravel(c).astype(np.float64), 0.0
    for terms in product(*along):
        term = XP.take(flat, sum(i * prod(c.shape[k:]) for k, (i, _, _) in enumerate(terms, 1)))
        if MODES[mode] == "grid-constant":
            term = XP.where(reduce(and_, [is_there for _, _, is_there in terms]), term, cval)
        value = value + term * prod(w for _, w, _ in terms)
    output[...] = XP.where(within, value, cval)


def _at_points(c: Any, mapping: Any, coordinates: Any, matrix: Any, offset: Any, output: Any, *how: Any) -> None:
    """SciPy's compiled function: values at coordinates, or at matrix @ place + offset."""
    if mapping is not None:
        raise UnsupportedFunctionError(
            "scipy.ndimage.geometric_transform has no rule for traced values", remedy="use map_coordinates"
        )
    if coordinates is None:  # added as SciPy does, since rounding decides what lies within
        places = np.ogrid[tuple(map(slice, output.shape))]
        coordinates = [
            sum((k * m for k, m in zip(places, row, strict=True)), by) for row, by in zip(matrix, offset, strict=True)
        ]
    _values(c, coordinates, output, *how[:4])


def _at_steps(
    c: Any, steps: Any, start: Any, output: Any, order: int, mode: int, cval: Any, npad: int, in_cells: bool
) -> None:
    """SciPy's compiled function: values at steps along each axis, of elements or cells."""
    coordinates, half = [], 0.5 if in_cells else 0.0
    for axis, n in enumerate(output.shape):
        x = np.arange(n) + half
        x = x if start is None else x + start[axis]
        x = (x if steps is None else x * steps[axis]) - half
        coordinates.append(XP.reshape(x, (n, *(1,) * (output.ndim - axis - 1))))
    _values(c, coordinates, output, order, mode, cval, npad)


RULES[_nd_image.spline_filter1d] = Body(_coefficients)
RULES[_nd_image.geometric_transform] = Body(_at_points)
RULES[_nd_image.zoom_shift] = Body(_at_steps)

map_coordinates, shift = body_of("scipy.ndimage.map_coordinates"), body_of("scipy.ndimage.shift")


@of_scipy
def affine_transform(
    input: Any,
    matrix: Any,
    offset: Any = 0.0,
    output_shape: Any = None,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:
    """The values at matrix @ place + offset, for the places of the result.

    >>> affine_transform([1.0, 2.0, 4.0], [0.5], 0.5, order=1)
    array([1.5, 2. , 3. ])
    """
    n, m = XP.ndim(input), XP.asarray(matrix, dtype=np.float64)
    if m.shape == (n + 1, n + 1):
        last = XP.all(m[n] == np.eye(n + 1)[n])
        m = required(m, last, f"the last row of the matrix is not {[0] * n + [1]}", "give the rows above it alone")[:n]
    body = anew(resolve_name("scipy.ndimage.affine_transform"))
    return body(input, m, offset, output_shape, output, order, mode, cval, prefilter)
