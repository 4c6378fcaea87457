"""Boxes at run-time starts, where the starts are constants or the boxes are the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fnad.ir.symbol import Symbol
from fnad.ir.types import Shape
from fnad.ops.indexing import dynamic_update_slice
from fnad.ops.shape import Ints, slice_
from fnad.transforms.pattern import Rule
from fnad.transforms.rewrite import constant_of
from fnad.transforms.rules.movement import join, pad_in


def _constant_starts(starts: Sequence[Symbol], shape: Shape, sizes: Shape) -> Ints | None:
    """The starts of a box as numbers; None if they are not known, or the box is outside the array."""
    values = [constant_of(start) for start in starts]
    known = [int(value) for value in values if value is not None]  # type: ignore[call-overload]
    if len(known) < len(values):
        return None
    counted = tuple(start + n if start < 0 else start for start, n in zip(known, shape, strict=True))
    inside = all(0 <= start <= n - size for start, n, size in zip(counted, shape, sizes, strict=True))
    return counted if inside else None


def _static_slice(x: Symbol, starts: Sequence[Symbol], sizes: Shape) -> Symbol | None:
    at = _constant_starts(starts, x.shape, sizes)
    if at is None:
        return None
    return slice_(x, starts=at, limits=tuple(a + n for a, n in zip(at, sizes, strict=True)), strides=(1,) * x.ndim)


def _whole_update(x: Symbol, update: Symbol, starts: Sequence[Symbol]) -> Symbol | None:
    at = _constant_starts(starts, x.shape, update.shape)
    return update if at is not None and x.shape == update.shape else None


def _last_update(x: Symbol, first: Symbol, starts: Sequence[Symbol], last: Symbol) -> Symbol | None:
    return dynamic_update_slice(x, last, *starts) if first.shape == last.shape else None


def _update_of_zeros(zero: Symbol, k: np.generic, update: Symbol, starts: Sequence[Symbol]) -> Symbol | None:
    at = _constant_starts(starts, zero.shape, update.shape)
    if at is None or any(k.tobytes()):
        return None
    return pad_in(update, at, zero.shape)


def _update_of_pad(
    padded: Symbol, x: Symbol, low: Ints, interior: Ints, update: Symbol, starts: Sequence[Symbol]
) -> Symbol | None:
    """Merge a write next to the nonzero part of a padded array, as when an array is filled element by element."""
    at = _constant_starts(starts, padded.shape, update.shape)
    joined = None if at is None or any(interior) else join(x, low, update, at)
    return None if joined is None else pad_in(*joined, padded.shape)


def _slice_of_update(
    x: Symbol, update: Symbol, at: Sequence[Symbol], starts: Ints, limits: Ints, strides: Ints
) -> Symbol | None:
    """Read the update, or the array before it, if the slice is inside or outside of the updated box."""
    low = _constant_starts(at, x.shape, update.shape)
    if low is None:
        return None
    high = [a + n for a, n in zip(low, update.shape, strict=True)]
    if any(limit <= a or start >= b for start, limit, a, b in zip(starts, limits, low, high, strict=True)):
        return slice_(x, starts=starts, limits=limits, strides=strides)
    if all(a <= start and limit <= b for start, limit, a, b in zip(starts, limits, low, high, strict=True)):
        moved = [tuple(bound - a for bound, a in zip(bounds, low, strict=True)) for bounds in (starts, limits)]
        return slice_(update, starts=moved[0], limits=moved[1], strides=strides)
    return None


INDEXING = (
    Rule("dynamic_slice(x, *starts, sizes=sizes) = slice(x) where the starts are constants", _static_slice),
    Rule("dynamic_update_slice(x, update, *starts) = update where it is all of x", _whole_update),
    Rule(
        "dynamic_update_slice(dynamic_update_slice(x, first, *starts), last, *starts)"
        " = dynamic_update_slice(x, last, *starts)",
        _last_update,
    ),
    Rule("dynamic_update_slice(zero := constant(k), update, *starts) = pad(update) where k = 0", _update_of_zeros),
    Rule(
        "dynamic_update_slice(padded := pad(x, low=low, interior=interior), update, *starts)"
        " = pad(concatenate(x, update)) where the starts are constants",
        _update_of_pad,
    ),
    Rule(
        "slice(dynamic_update_slice(x, update, *at), starts=starts, limits=limits, strides=strides)"
        " = slice(update) or slice(x) where the starts are constants",
        _slice_of_update,
    ),
)
