"""Greedy colourings of a sparsity pattern, in loops that Numba compiles (see `coloring.py`)."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numba import njit

Array: TypeAlias = "np.ndarray[Any, Any]"


@njit(cache=True)
def color_columns(ends: Array, columns: Array, column_ends: Array, rows: Array, order: Array) -> Array:
    """The first colour for each column, in this order, that no column with a row in common has."""
    colors, taken = np.full(len(order), -1), np.full(len(order) + 1, -1)
    for v in order:
        for k in range(column_ends[v], column_ends[v + 1]):
            row = rows[k]
            for w in columns[ends[row] : ends[row + 1]]:
                if colors[w] >= 0:
                    taken[colors[w]] = v
        colors[v] = _first_free(taken, v, 0)
    return colors


@njit(cache=True)
def color_stars(ends: Array, columns: Array, order: Array, exclusive: Array) -> Array:
    """The first colour for each column, in this order, with which it is part of no path of two colours."""
    colors, taken = np.where(exclusive, np.cumsum(exclusive) - 1, -1), np.full(len(order) + 1, -1)
    own = np.sum(exclusive)
    for v in order:
        if exclusive[v]:
            continue
        for w in columns[ends[v] : ends[v + 1]]:
            if w != v and not exclusive[w]:
                if colors[w] >= 0:
                    taken[colors[w]] = v
                _take_ends(ends, columns, colors, taken, v, w)
        colors[v] = _first_free(taken, v, own)
    return colors


@njit(cache=True)
def _take_ends(ends: Array, columns: Array, colors: Array, taken: Array, v: int, w: int) -> None:
    """Take the colour of each x from v where a path v, w, x, y would have two colours else, or could come to have."""
    for x in columns[ends[w] : ends[w + 1]]:
        if x in (v, int(w)) or colors[x] < 0:
            continue
        is_alternating = colors[w] < 0
        for y in columns[ends[x] : ends[x + 1]]:
            is_alternating |= y != w and y != x and colors[y] == colors[w]  # noqa: PLR1714
        if is_alternating:
            taken[colors[x]] = v


@njit(cache=True)
def _first_free(taken: Array, v: int, first: int) -> int:
    while taken[first] == v:
        first += 1
    return first
