"""The geometry of windows: padding by name or by numbers, as in JAX, with its checks."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, TypeAlias

from fnad.errors import ShapeError
from fnad.ops.sliding_windows import window_count

Ints: TypeAlias = tuple[int, ...]
Pairs: TypeAlias = tuple[tuple[int, int], ...]
Padding: TypeAlias = str | Sequence[Sequence[int]]
"""Elements before and after along each axis; "VALID" for none, "SAME" for one window per stride."""


def fault(what: str, remedy: str) -> ShapeError:
    """The error for shapes that do not fit."""
    return ShapeError.here(what, remedy=remedy)


def per_axis(name: str, given: Any, ndim: int, default: int = 1) -> Ints:
    """A positive integer for each spatial axis; the default for all if none are given."""
    if given is None:
        return (default,) * ndim
    try:
        numbers = tuple(map(operator.index, given))
    except TypeError:
        numbers = ()
    if len(numbers) != ndim or min(numbers, default=1) < 1:
        raise fault(f"{name} is {given!r}", f"give {ndim} positive integers, one for each axis of space")
    return numbers


def padding_of(padding: Padding, extents: Ints, sizes: Ints, strides: Ints) -> Pairs:
    """The number of elements that padding adds before and after along each axis, for windows of these `sizes`.

    With "SAME" ⌈n / stride⌉ windows fit; an odd number of added elements has one more at the end.
    """
    if not isinstance(padding, str):
        return _pairs(padding, len(extents))
    if padding.upper() == "VALID":
        return ((0, 0),) * len(extents)
    if padding.upper() != "SAME":
        raise fault(f"padding is {padding!r}", "give 'SAME', 'VALID' or a pair of integers for each axis of space")
    needed = [(-(-n // s) - 1) * s + k - n for n, k, s in zip(extents, sizes, strides, strict=True)]
    return tuple((max(0, total) // 2, max(0, total) - max(0, total) // 2) for total in needed)


def _pairs(padding: Sequence[Sequence[int]], ndim: int) -> Pairs:
    try:
        pairs = tuple((operator.index(low), operator.index(high)) for low, high in padding)
    except (TypeError, ValueError):
        pairs = ()
    if len(pairs) != ndim:
        raise fault(f"padding is {padding!r}", "give 'SAME', 'VALID' or a pair of integers for each axis of space")
    return pairs


def check_windows(extents: Ints, sizes: Ints, strides: Ints, dilations: Ints) -> None:
    """Raise if an axis, padding included, is shorter than a window."""
    for axis, (n, size, stride, dilation) in enumerate(zip(extents, sizes, strides, dilations, strict=True)):
        if n >= 0 and size >= 1 and window_count(n, size, stride, dilation) >= 1:
            continue
        reach = (size - 1) * dilation + 1
        what = f"a window reaches over {reach} elements of axis {axis + 2}, which has {max(n, 0)}, its padding included"
        raise fault(what, "give it more padding, or a smaller window")
