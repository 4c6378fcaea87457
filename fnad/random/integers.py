"""Random bits, and integers made from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.errors import DtypeError, IntegerRangeError
from fnad.ir.types import Dtype, dtype_name, native_dtype
from fnad.random.elements import modulo, words
from fnad.random.keys import checked
from fnad.random.parameters import Array, as_array, as_shape, check, is_traced, shape_of
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
