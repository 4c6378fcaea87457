"""np.pad: what stands before and after an array along each of its axes.

Axes are padded one after the other, so that the corners are made of what was padded before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fnad.errors import DomainError, ShapeError, UnsupportedFunctionError
from fnad.ir.symbol import Symbol
from fnad.numpy.creation import linspace
from fnad.numpy.joining import join, select_along
from fnad.numpy.manipulation import fresh
from fnad.numpy.operands import as_symbol, axis_of, check_stored, static_array, strong, to_dtype
from fnad.numpy.quantiles import median
from fnad.numpy.reductions import max_, min_
from fnad.numpy.registry import RULES, implements
from fnad.numpy.statistics import mean
from fnad.numpy.ufuncs import multiply, subtract
from fnad.numpy.views import ArrayView
from fnad.ops import shape as ops
from fnad.ops.shape import broadcast_to, reshape_to, slice_axis

Width = tuple[int, int]

OPTIONS = {
    "constant": {"constant_values": 0},
    "edge": {},
    "empty": {},
    "linear_ramp": {"end_values": 0},
    **{mode: {"stat_length": None} for mode in ("maximum", "mean", "median", "minimum")},
    **{mode: {"reflect_type": "even"} for mode in ("reflect", "symmetric")},
    "wrap": {},
}
"""The modes, and what can be said with each, by default this."""

STATISTICS: dict[str, Callable[..., Symbol]] = {"maximum": max_, "mean": mean, "median": median, "minimum": min_}


@implements(np.pad)
def pad(array: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> ArrayView:
    x = as_symbol(array)
    widths = _widths(pad_width, x.ndim)
    given = _options(mode, options)
    if mode == "constant" and isinstance(value := given["constant_values"], (int, float)) and value == 0:
        return fresh(_surrounded_by_zeros(x, widths))
    for axis, width in enumerate(widths):
        if width != (0, 0):
            x = KINDS[mode](x, axis, width, mode, **given)
    return fresh(x)


def _options(mode: Any, options: dict[str, Any]) -> dict[str, Any]:
    if callable(mode):
        raise UnsupportedFunctionError("numpy.pad has no rule for a function that writes the padding")
    if mode not in OPTIONS:
        raise DomainError(f"mode '{mode}' is not supported")
    if unknown := options.keys() - OPTIONS[mode].keys():
        raise DomainError(f"unsupported keyword arguments for mode '{mode}': {unknown}")
    return OPTIONS[mode] | options


def _widths(pad_width: Any, ndim: int) -> list[Width]:
    """The width before and after each axis: given for each, for all, by axis in a dict, or as one number."""
    if isinstance(pad_width, dict):
        by_axis = {axis_of(axis, ndim): width for axis, width in pad_width.items()}
        pad_width = [by_axis.get(axis, (0, 0)) for axis in range(ndim)]
        pad_width = [(w, w) if np.ndim(w) == 0 else w for w in pad_width]
    given = np.asarray(static_array(pad_width))
    if given.dtype.kind not in "iu":
        raise TypeError("`pad_width` must be of integral type.")
    return _counts(given, ndim)


def _counts(given: Any, ndim: int) -> list[Width]:
    """A pair of counts for each axis."""
    pairs = np.broadcast_to(np.asarray(static_array(given)), (ndim, 2))
    if pairs.size and pairs.min() < 0:
        raise ShapeError("index can't contain negative values")
    return [(round(before), round(after)) for before, after in pairs.tolist()]


def _numbers(given: Symbol, x: Symbol, axis: int) -> list[Symbol]:
    """The numbers given for the sides of an axis, each as wide as the padding is."""
    pairs = broadcast_to(given, (x.ndim, 2))
    row = slice_axis(pairs, 0, axis, axis + 1)
    return [reshape_to(slice_axis(row, 1, side, side + 1), ()) for side in (0, 1)]


# ---- along one axis --------------------------------------------------------------------------------------------------


def _surrounded_by_zeros(x: Symbol, widths: Sequence[Width]) -> Symbol:
    low, high = (tuple(width[side] for width in widths) for side in (0, 1))
    return ops.pad(x, low=low, high=high, interior=(0,) * x.ndim)


def _sized(x: Symbol, axis: int, width: int) -> tuple[int, ...]:
    return tuple(width if i == axis else n for i, n in enumerate(x.shape))


def _constant(x: Symbol, axis: int, width: Width, mode: str, constant_values: Any) -> Symbol:
    sides: list[Symbol] = []
    for number, count in zip(_numbers(strong(as_symbol(constant_values)), x, axis), width, strict=True):
        check_stored(number, x.dtype)
        sides.append(broadcast_to(to_dtype(number, x.dtype), _sized(x, axis, count)))
    return join([sides[0], x, sides[1]], axis)


def _empty(x: Symbol, axis: int, width: Width, mode: str) -> Symbol:
    """An array whose padding NumPy leaves undefined."""
    return _constant(x, axis, width, mode, 0)


def _ramp(x: Symbol, axis: int, width: Width, mode: str, end_values: Any) -> Symbol:
    """Pad with numbers on the line from the end value to the edge."""
    _check_not_empty(x, axis)
    n = x.shape[axis]
    edges = [reshape_to(slice_axis(x, axis, i, i + 1), _without(x.shape, axis)) for i in (0, n - 1)]
    before, after = (
        to_dtype(linspace(end, edge, count, False, dtype=x.dtype, axis=axis), x.dtype)
        for end, edge, count in zip(_numbers(as_symbol(end_values, x.dtype), x, axis), edges, width, strict=True)
    )
    return join([before, x, ops.reverse(after, axes=(axis,))], axis)


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], *shape[axis + 1 :])


def _statistic(x: Symbol, axis: int, width: Width, mode: str, stat_length: Any) -> Symbol:
    """Pad with a statistic of the elements next to each edge, of all of them by default."""
    _check_not_empty(x, axis)
    n = x.shape[axis]
    lengths = (n, n) if stat_length is None else _counts(stat_length, x.ndim)[axis]
    before, after = (min(length, n) for length in lengths)
    if 0 in (before, after) and mode in ("maximum", "minimum"):
        raise DomainError("stat_length of 0 yields no value for padding")
    spans = (slice_axis(x, axis, 0, before), slice_axis(x, axis, n - after, n))
    found = [_rounded(STATISTICS[mode](span, axis, keepdims=True), x) for span in spans]
    sides = [broadcast_to(value, _sized(x, axis, count)) for value, count in zip(found, width, strict=True)]
    return join([sides[0], x, sides[1]], axis)


def _rounded(value: Symbol, x: Symbol) -> Symbol:
    return to_dtype(RULES[np.round](value) if x.dtype.kind in "iu" else value, x.dtype)


def _repeated(x: Symbol, axis: int, width: Width, mode: Any) -> Symbol:
    """Pad with elements of the array."""
    _check_not_empty(x, axis)
    return select_along(x, np.pad(np.arange(x.shape[axis]), width, mode=mode), axis)


def _reflected(x: Symbol, axis: int, width: Width, mode: str, reflect_type: Any) -> Symbol:
    if reflect_type != "odd" or (x.shape[axis] == 1 and mode == "reflect"):
        return _repeated(x, axis, width, mode)
    _check_not_empty(x, axis)
    repeats_edge = mode == "symmetric"
    period, (before, after) = x.shape[axis] - (not repeats_edge), width
    while before or after:
        n = x.shape[axis]
        room = (n - (not repeats_edge)) // period * period
        left, right = min(room, before), min(room, after)
        start = 0 if repeats_edge else 1
        parts = [
            _mirrored(slice_axis(x, axis, start, start + left), slice_axis(x, axis, 0, 1), axis),
            x,
            _mirrored(slice_axis(x, axis, n - start - right, n - start), slice_axis(x, axis, n - 1, n), axis),
        ]
        x, before, after = join(parts, axis), before - left, after - right
    return x


def _mirrored(part: Symbol, edge: Symbol, axis: int) -> Symbol:
    """A part in reverse, as far on the other side of the edge's value."""
    turned = ops.reverse(part, axes=(axis,))
    return to_dtype(subtract(multiply(2, edge), turned), part.dtype)


def _check_not_empty(x: Symbol, axis: int) -> None:
    if x.shape[axis] == 0:
        raise ShapeError(f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'")


KINDS: dict[str, Callable[..., Symbol]] = {
    "constant": _constant,
    "edge": _repeated,
    "empty": _empty,
    "linear_ramp": _ramp,
    **dict.fromkeys(STATISTICS, _statistic),
    "reflect": _reflected,
    "symmetric": _reflected,
    "wrap": _repeated,
}
