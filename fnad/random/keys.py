"""Keys: how one is made from a seed, and how others are derived from it.

A key is a single u64, the key of Philox. A derived key is half a block under its parent, at counters that draws do not
use (`fnad.draws.SPLIT`, `fnad.draws.FOLD_IN`). So under one key no draw, part of a split or folded-in number shares a
block with another. Under different keys Philox gives unrelated sequences; two of n derived keys are equal with a
probability of about n²/2**65.
"""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from fnad import draws
from fnad.errors import DtypeError, IntegerRangeError, ShapeError
from fnad.ops.random_bits import U64
from fnad.random.elements import modulo, word_at, words
from fnad.random.parameters import Array, as_array, as_shape, is_traced
from fnad.tracebacks import boundary


@boundary
def key(seed: Any) -> Array:
    """The key of an integer seed: different keys for different seeds from 0 to 2**64 - 1.

    A negative seed down to -2**63 stands for seed + 2**64; any other integer raises `IntegerRangeError`. The seed may
    be traced.

    >>> key(42)
    np.uint64(42)
    """
    return as_u64(seed, "a seed")


@boundary
def split(key: Array, num: Any = 2) -> Array:
    """`num` new keys, an array u64[num]; of several axes where `num` is a shape.

    >>> first, second = split(key(0))
    >>> split(key(0), (2, 3)).shape
    (2, 3)
    """
    return words(checked(key), as_shape(num), draws.SPLIT)


@boundary
def fold_in(key: Array, data: Any) -> Array:
    """A new key for each integer `data`, such as the number of a step; it may be traced.

    Integers are those that `key` takes.

    >>> import fnad
    >>> fnad.jit(fold_in)(key(0), np.int64(7)) == fold_in(key(0), 7)
    np.True_
    """
    return word_at(checked(key), as_u64(data, "what is folded into a key"), draws.FOLD_IN)


def as_u64(value: Any, what: str) -> Array:
    """An integer modulo 2**64."""
    if not is_traced(value) and isinstance(value, (int, np.integer)):
        return np.uint64(in_range(index(value), what) % 2**64)
    number = as_array(value)
    if number.dtype.kind not in "iu":
        raise DtypeError.here(f"{what} is an integer, not {number.dtype}", remedy="convert it with int or astype")
    if number.shape:
        raise ShapeError.here(
            f"{what} is one integer, not an array of shape {number.shape}", remedy="give one element of it"
        )
    return modulo(number)


def in_range(value: int, what: str) -> int:
    """An integer that 64 bits hold; raises `IntegerRangeError` for any other."""
    if not -(2**63) <= value < 2**64:
        raise IntegerRangeError.here(
            f"{what} is an integer from -2**63 to 2**64 - 1, not {value}", remedy="reduce it modulo 2**64"
        )
    return value


def checked(key: Any) -> Array:
    """The key itself; raises for anything else."""
    dtype = getattr(key, "dtype", None)
    if dtype != U64:
        raise DtypeError.here(
            f"a key is a u64 number, not {type(key).__name__ if dtype is None else dtype}",
            remedy="make one with fnad.random.key(seed)",
        )
    if key.shape:
        raise ShapeError.here(
            f"a key is one number, not an array of shape {key.shape}", remedy="take one of these keys by its index"
        )
    return key
