"""The data and the masks of operands in the rules of `numpy.ma` (`fnad.trace.masked`)."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import numpy.ma as ma

from fnad.errors import UnsupportedFunctionError
from fnad.ir.known import known_value
from fnad.ops.requirement import require
from fnad.trace import guards
from fnad.trace.capture import APART
from fnad.trace.dispatch import call, call_function
from fnad.trace.handle import Handle

MASKED = {
    "message": "a number of a masked array of traced values is masked: all elements that it is made of are",
    "remedy": APART,
}


def number(data: Any, mask: Any) -> Any:
    """`masked` where the mask is true for the arguments at hand; where nobody has them, the program asks."""
    answer = truth_of(mask)
    if answer is None:
        return call(require, (data, ~mask), MASKED)
    return ma.masked if answer else data


def truth_of(mask: Any) -> bool | None:
    """A bool for the arguments at hand, if they are known."""
    if not is_handle(mask):
        return bool(mask)
    known = known_value(mask.symbol)
    return guards.truth(mask.symbol) if known is None else bool(known)


def is_kept(keepdims: Any) -> bool:
    """The value of `keepdims`; numpy.ma passes NumPy's mark for an option that was not given, which is not a bool."""
    return not isinstance(keepdims, type(np._NoValue)) and bool(keepdims)


def is_handle(x: Any) -> bool:
    """True if it is a traced value."""
    return isinstance(x, Handle)


def is_masked_array(x: Any) -> bool:
    """True if it is an array of numpy.ma, traced or not."""
    return isinstance(x, ma.MaskedArray)


def data_of(x: Any) -> Any:
    """The data of a masked array; lists are arrays."""
    if is_masked_array(x):
        return x._data
    return call_function(np.asarray, (x,), {}) if isinstance(x, list) else x


def mask_of(x: Any) -> Any:
    """The mask of a masked array, and `nomask` of anything else."""
    return x._mask if is_masked_array(x) else ma.nomask


def whole_mask_of(x: Any) -> Any:
    """The mask of a masked array as an array, and one without a true element of anything else."""
    mask = mask_of(x)
    return call_function(np.zeros, (np.shape(data_of(x)), bool), {}) if mask is ma.nomask else mask


def mask_or(*masks: Any) -> Any:
    """True where one of the masks is true."""
    there = [mask for mask in masks if mask is not ma.nomask]
    return reduce(np.logical_or, there) if there else ma.nomask


def fill_value_of(*operands: Any) -> Any:
    """The value to fill with of the first operand that has one."""
    return next((x._fill_value for x in operands if is_masked_array(x)), None)


def put_back(result: Any, data: Any, mask: Any) -> Any:
    """The result, with the data of the operand where it is masked, which numpy.ma leaves there."""
    if mask is ma.nomask:
        return result
    return np.where(mask, call_function(np.asarray, (data, result.dtype), {}), result)


def unsupported(what: str) -> UnsupportedFunctionError:
    """The error for what masked arrays of traced values do not have."""
    what = f"{what} has no rule for masked arrays of traced values"
    return UnsupportedFunctionError.here(what, remedy=APART)


def is_no_divisor(a: Any, b: Any) -> Any:
    """True where a division is not defined in numpy.ma: the divisor is 0, or too small for a finite quotient."""
    return np.absolute(a) * np.finfo(float).tiny >= np.absolute(b)


def unmasked(x: Any) -> Any:
    """The data of a masked array in which nothing is masked."""
    if may_be_masked(mask_of(x)):
        raise unsupported("an ordinary array that is written to")
    return data_of(x)


def masks_in(operands: Any) -> list[Any]:
    """The masks of masked arrays in nested lists."""
    found: list[Any] = []
    for operand in operands:
        found += masks_in(operand) if isinstance(operand, (list, tuple)) else [mask_of(operand)]
    return found


def may_be_masked(mask: Any) -> bool:
    """True if there may be a true element in a mask."""
    return mask is not ma.nomask and truth_of(np.any(mask)) is not False


def data_in(x: Any) -> Any:
    """The data of masked arrays in nested lists."""
    return [data_in(part) for part in x] if isinstance(x, (list, tuple)) else data_of(x)
