"""Colourings of a sparsity pattern: the directions along which a sparse matrix is computed.

Columns that have no row in common can be computed along one direction, their sum: each nonzero of the product belongs
to one of them. Such a partition is a colouring of the columns, no two of which with a row in common are alike (Curtis,
Powell and Reid 1974; Coleman and Moré 1983). Of a symmetric matrix less is needed: a nonzero may be read at its mirror
image, which a star colouring allows (Coleman and Moré 1984; Gebremedhin, Manne and Pothen 2005, theorem 4.6).

Where neighbours on a grid meet, colours that are a linear function of the index, modulo their number, are often optimal
(Goldfarb and Toint 1984). These are tried first. Other colourings are greedy, in the order of the columns and then of
their degrees.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from itertools import islice, product
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = "np.ndarray[Any, Any]"
Pattern: TypeAlias = Any
"""A `csr_array` of bools with sorted columns."""

TRIES = 64
"""Linear colourings that are tried for a number of colours."""

BITS = 63
"""Colours that a linear colouring may have: each is a bit of an integer."""

SAMPLE = 1000
"""Rows in which a linear colouring is tried before it is tried in all."""


def column_colors(pattern: Pattern, shape: Sequence[int]) -> Array:
    """A number for each column, different for any two that share a row; `shape` is what the columns are elements of."""
    least = longest(pattern)
    if least == pattern.shape[1]:
        return np.arange(least)
    found = _linear(pattern, shape, [least])
    if found is not None:
        return found
    by_column = pattern.T.tocsr()
    orders = _orders(np.diff(by_column.indptr))
    greedy = import_module("fnad.control.greedy")  # which loads Numba
    each = (greedy.color_columns(*_arrays(pattern), *_arrays(by_column), order) for order in orders)
    found = min(each, key=count_of)
    better = _linear(pattern, shape, range(least + 1, count_of(found)))
    return found if better is None else better


def star_colors(pattern: Pattern) -> Array:
    """A number for each column of a symmetric pattern, by which each nonzero can be told from others.

    Of nonzero (i, j), either no other in row i has the number of column j, or no other in row j that of column i.
    """
    degrees = np.diff(pattern.indptr)
    exclusive = degrees > max(64.0, 4.0 * len(degrees) ** 0.5)  # the longest, so that nobody has to go through them
    greedy = import_module("fnad.control.greedy")
    return min((greedy.color_stars(*_arrays(pattern), order, exclusive) for order in _orders(degrees)), key=count_of)


def alone(pattern: Pattern, colors: Array) -> Array:
    """For each nonzero, whether no other in its row has the colour of its column."""
    rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
    keys = rows * (count_of(colors) + 1) + colors[pattern.indices]
    _, places, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return (counts == 1)[places]


def count_of(colors: Array) -> int:
    """The number of colours."""
    return int(colors.max(initial=-1)) + 1


def longest(pattern: Pattern) -> int:
    """The nonzeros of the longest row: no colouring of the columns has fewer colours."""
    return int(np.diff(pattern.indptr).max(initial=0))


def _arrays(pattern: Pattern) -> tuple[Array, Array]:
    return pattern.indptr.astype(np.int64), pattern.indices.astype(np.int64)


def _orders(degrees: Array) -> tuple[Array, Array]:
    return np.arange(len(degrees), dtype=np.int64), np.argsort(-degrees, kind="stable").astype(np.int64)


# ---- linear colourings -----------------------------------------------------------------------------------------------


def _linear(pattern: Pattern, shape: Sequence[int], counts: Sequence[int]) -> Array | None:
    """A colouring by a linear function of the index with one of these numbers of colours, if one is found."""
    first = pattern[:: max(1, pattern.shape[0] // SAMPLE)]
    index = np.indices(shape, np.int64).reshape(len(shape), -1) if len(shape) else np.zeros((1, 1), np.int64)
    for count in counts:
        if not 0 < count < BITS:
            return None
        for factors in islice(product(range(1, count), repeat=len(index) - 1), TRIES):
            colors = (index[-1] + sum(f * i for f, i in zip(factors, index[:-1], strict=True))) % count
            if _is_valid(first, colors) and _is_valid(pattern, colors):
                return colors.astype(np.int64)
    return None


def _is_valid(pattern: Pattern, colors: Array) -> bool:
    """True if no two nonzeros of a row have one colour: then the sum of their bits is the union of them."""
    bits = np.left_shift(1, colors.astype(np.int64))[pattern.indices]
    starts = pattern.indptr[:-1][np.diff(pattern.indptr) > 0]
    return not len(starts) or bool((np.add.reduceat(bits, starts) == np.bitwise_or.reduceat(bits, starts)).all())
