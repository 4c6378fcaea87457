"""Random bits, and integers made from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.errors import DtypeError, IntegerRangeError
from fnad.ir.types import F64, Dtype, dtype_name, native_dtype
from fnad.random.continuous import unit_interval
from fnad.random.elements import modulo, words
from fnad.random.keys import checked
from fnad.random.parameters import Array, as_array, as_shape, check, is_traced, shape_of
from fnad.scipy import special
from fnad.trace.unknown import explained


@explained
def bits(key: Array, shape: Any = (), dtype: Any = np.uint64) -> Array:
    """Uniformly random bits, as unsigned integers.

    >>> from fnad import random
    >>> [hex(word) for word in bits(random.key(0), (2,), np.uint32)]
    ['0x6627e8d5', '0xf8e4cca4']
    """
    found = native_dtype(dtype)
    if found.kind != "u":
        raise DtypeError.here(
            f"bits are unsigned integers, not {dtype_name(found)}",
            remedy="draw np.uint8, np.uint16, np.uint32 or np.uint64; for other integers there is randint",
        )
    return words(checked(key), as_shape(shape)).astype(found)


@explained
def randint(key: Array, shape: Any, minval: Any, maxval: Any, dtype: Any = np.int64) -> Array:
    """Integers n with minval <= n < maxval, each equally likely to 2**-64.

    The bounds are integers that broadcast to the shape; `maxval` itself must fit 64 bits, the numbers the dtype.
    Known bounds are checked: `DomainError` for an empty range, `IntegerRangeError` for one beyond the dtype.

    >>> from fnad import random
    >>> random.randint(random.key(0), (6,), 1, 7)
    array([6, 3, 2, 3, 5, 1])
    """
    found = integer_dtype(dtype)
    low, high = as_array(minval), as_array(maxval)
    check_bounds(low, high, found)
    extents = shape_of(shape, "bounds", low.shape, high.shape)
    with np.errstate(over="ignore"):
        start = modulo(low)
        offset = high_product(words(checked(key), extents), modulo(high) - start)
        return (start + offset).astype(found)


def integer_dtype(dtype: Any) -> Dtype:
    """The dtype of drawn integers; raises `DtypeError` for any other dtype."""
    found = native_dtype(dtype)
    if found.kind not in "iu":
        raise DtypeError.here(
            f"integers cannot be drawn as {dtype_name(found)}", remedy="draw an integer dtype, and convert with astype"
        )
    return found


def check_bounds(low: Array, high: Array, dtype: Dtype) -> None:
    """Raise if bounds are not integers, or known ones leave nothing to draw or exceed the dtype."""
    for bound in (low, high):
        if bound.dtype.kind not in "iu":
            raise DtypeError.here(
                f"bounds are integers of 64 bits, not {bound.dtype}", remedy="convert them with astype"
            )
    check("minval is not below maxval", np.less, low, high, remedy="give a range with at least one integer")
    if is_traced(low, high):
        return
    limits = np.iinfo(dtype)
    if int(low.min(initial=0)) < limits.min or int(high.max(initial=0)) > limits.max + 1:
        raise IntegerRangeError.here(
            f"integers from {low.min()} to {high.max()} do not fit {dtype_name(dtype)}", remedy="draw a wider dtype"
        )


def high_product(x: Array, y: Array) -> Array:
    """The upper 64 bits of products of u64 numbers: of random bits and n, equally likely integers below n.

    The parts of 32 bits are multiplied as by hand (D. E. Knuth, The Art of Computer Programming 2, algorithm 4.3.1M).
    """
    x_high, x_low, y_high, y_low = x >> 32, x & 0xFFFFFFFF, y >> 32, y & 0xFFFFFFFF
    middle = x_high * y_low + (x_low * y_low >> 32)
    return x_high * y_high + (middle >> 32) + (x_low * y_high + (middle & 0xFFFFFFFF) >> 32)


@explained
def rademacher(key: Array, shape: Any = (), dtype: Any = np.int64) -> Array:
    """The numbers 1 or -1, equally likely.

    >>> from fnad import random
    >>> rademacher(random.key(0), (5,))
    array([ 1, -1,  1,  1, -1])
    """
    heads = words(checked(key), as_shape(shape)) & 1 != 0
    return np.where(heads, 1, -1).astype(native_dtype(dtype))


@explained
def poisson(key: Array, lam: Any, shape: Any = None, dtype: Any = np.int64) -> Array:
    """Draws from the Poisson distribution of mean `lam`, by default as many as `lam` has elements.

    They are quantiles. A known `lam` that is not in [0, 2**52] raises a `DomainError`; for traced ones the draw is -1.

    >>> from fnad import random
    >>> poisson(random.key(0), 3.0, (6,))
    array([5, 2, 2, 2, 4, 0])
    """
    found, mean = integer_dtype(dtype), as_array(lam).astype(F64)
    is_mean = lambda lam: (lam >= 0) & (lam <= 2.0**52)  # noqa: E731
    check("lam is not in [0, 2**52]", is_mean, mean, remedy="give a mean of at least 0")
    unit = unit_interval(checked(key), shape_of(shape, "lam", mean.shape), F64) + 2.0**-54
    count = np.where(mean < FEW, _counted(unit, np.clip(mean, 0.0, FEW)), _around(unit, np.clip(mean, FEW, 2.0**52)))
    return np.where(is_mean(mean), count, -1).astype(found)[()]


FEW = 10.0
"""The mean from which on quantiles are found near their expansion; below it, counts of 60 have probability 1e-26."""


def _counted(unit: Array, mean: Array) -> Array:
    """The quantile: how many counts have a distribution function below the uniform number."""
    probability = below = np.exp(-mean)
    count = (below < unit) * 1
    for k in range(1, 60):
        probability = probability * mean / k
        below = below + probability
        count = count + (below < unit)
    return count


def _around(unit: Array, mean: Array) -> Array:
    """The quantile, at most 2 from the expansion of Cornish & Fisher, Revue Inst. Int. Statistique 5 (1938), 307."""
    z, deviation = special.ndtri(unit), np.sqrt(mean)
    skewed = deviation * z + (z * z - 1) / 6 + (z - z**3) / (72 * deviation)
    first = np.maximum(np.floor(mean + skewed + (3 * z**4 + 7 * z * z - 16) / (3240 * mean)) - 2, 0.0)
    return first + sum((special.gammaincc(first + k, mean) < unit) * 1 for k in range(1, 5))
