"""Boxes at run-time starts, where the starts are constants or the boxes are the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fnad.ir.symbol import Symbol
from fnad.ir.types import Shape
from fnad.ops.arithmetic import add
from fnad.ops.indexing import dynamic_update_slice
from fnad.ops.shape import Ints, concatenate, slice_
from fnad.transforms.pattern import Rule
from fnad.transforms.rewrite import constant_of, used_once
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


def _last_update(written: Symbol, x: Symbol, first: Symbol, starts: Sequence[Symbol], last: Symbol) -> Symbol | None:
    """Leave out a write; where the array is read in between, it would have to be copied, since both are made of x."""
    return dynamic_update_slice(x, last, *starts) if first.shape == last.shape and used_once(written) else None


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


def _add_to_constant_update(
    x: Symbol, update: Symbol, k: np.generic, starts: Sequence[Symbol], y: Symbol
) -> Symbol | None:
    """Put together what stays of an array of which most becomes a constant, so that no copy of it is made.

    The cotangent of an array that was written to is such a sum.
    """
    at = _constant_starts(starts, x.shape, update.shape)
    if at is None or 2 * update.aval.size < x.aval.size:
        return None
    for axis in range(x.ndim - 1, -1, -1):
        low, high = at[axis], at[axis] + update.shape[axis]
        box = [(at[n], at[n] + update.shape[n]) if n < axis else (0, size) for n, size in enumerate(x.shape)]
        before, behind = (0, low), (high, x.shape[axis])
        pieces = [_part(x, [*box[:axis], before, *box[axis + 1 :]])] * (low > 0)
        pieces.append(update)
        pieces += [_part(x, [*box[:axis], behind, *box[axis + 1 :]])] * (high < x.shape[axis])
        update = pieces[0] if len(pieces) == 1 else concatenate(*pieces, axis=axis)
    return add(update, y)


def _part(x: Symbol, box: Sequence[tuple[int, int]]) -> Symbol:
    starts, limits = zip(*box, strict=True)
    return slice_(x, starts=starts, limits=limits, strides=(1,) * x.ndim)


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
        "dynamic_update_slice(written := dynamic_update_slice(x, first, *starts), last, *starts)"
        " = dynamic_update_slice(x, last, *starts) where written is used once",
        _last_update,
    ),
    Rule("dynamic_update_slice(zero := constant(k), update, *starts) = pad(update) where k = 0", _update_of_zeros),
    Rule(
        "dynamic_update_slice(padded := pad(x, low=low, interior=interior), update, *starts)"
        " = pad(concatenate(x, update)) where the starts are constants",
        _update_of_pad,
    ),
    Rule(
        "add(dynamic_update_slice(x, update := constant(k), *starts), y)"
        " = add(concatenate(slice(x), update, slice(x)), y)"
        " where the starts are constants, and update is most of x",
        _add_to_constant_update,
    ),
    Rule(
        "slice(dynamic_update_slice(x, update, *at), starts=starts, limits=limits, strides=strides)"
        " = slice(update) or slice(x) where the starts are constants",
        _slice_of_update,
    ),
)
