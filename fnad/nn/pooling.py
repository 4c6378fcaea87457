"""Pooling: the largest or the mean element of windows that slide over images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import fnad.numpy as fnp
from fnad.nn.applied import windows
from fnad.nn.geometry import Padding, Pairs, check_windows, fault, padding_of, per_axis
from fnad.trace.unknown import explained


@explained
def max_pool(
    inputs: Any, window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: Padding = "VALID"
) -> Any:
    """The largest element of each window of batch × channels × space; nan if a window contains one.

    `window_shape` and `strides`, 1 unless given, have an integer for each spatial axis. Padding is given as for `conv`,
    but not negative, and never exceeds an element. Elements that tie for the largest of a window share its derivative
    evenly, as with `np.max`. Raises `ShapeError` for shapes that do not fit.

    >>> max_pool(np.arange(8.0).reshape(1, 1, 2, 4), (2, 2), strides=(2, 2))
    array([[[[5., 7.]]]])
    """
    x = fnp.asarray(inputs)
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    slid, _ = _slid(x, window_shape, strides, padding, lowest)
    return np.max(slid, axis=tuple(range(x.ndim, slid.ndim)))


@explained
def avg_pool(
    inputs: Any,
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    count_include_pad: bool = True,
) -> Any:
    """The mean of each window of batch × channels × space; arguments are those of `max_pool`.

    Padding counts as zeros, or not at all if `count_include_pad` is False.

    >>> avg_pool(np.arange(8.0).reshape(1, 1, 2, 4), (2, 2), strides=(2, 2))
    array([[[[2.5, 4.5]]]])
    >>> avg_pool(np.ones((1, 1, 3)), (3,), padding="SAME", count_include_pad=False)
    array([[[1., 1., 1.]]])
    """
    x = fnp.asarray(inputs)
    slid, pairs = _slid(x, window_shape, strides, padding, 0)
    last = tuple(range(x.ndim, slid.ndim))
    if count_include_pad:
        return np.mean(slid, axis=last)
    ones = np.ones((1, 1, *x.shape[2:]), x.dtype)
    return np.sum(slid, axis=last) / np.sum(_slid(ones, window_shape, strides, pairs, 0)[0], axis=last)


def _slid(x: Any, window_shape: Any, strides: Any, padding: Padding, fill: float) -> tuple[Any, Pairs]:
    """The windows of x, padded, and the padding."""
    if x.ndim < 3:
        raise fault(f"pooling takes images with three axes or more, got shape {x.shape}", "batch × channels × space")
    n = x.ndim - 2
    sizes, steps, ones = per_axis("window_shape", window_shape, n), per_axis("strides", strides, n), (1,) * n
    pairs = padding_of(padding, x.shape[2:], sizes, steps)
    if min((0, *[each for pair in pairs for each in pair])) < 0:
        raise fault(f"padding is {padding!r}", "pooling takes no negative padding")
    if any(map(any, pairs)):
        x = np.pad(x, ((0, 0), (0, 0), *pairs), constant_values=fill)
    check_windows(x.shape[2:], sizes, steps, ones)
    return windows(x, axes=tuple(range(2, x.ndim)), sizes=sizes, strides=steps, dilations=ones), pairs
