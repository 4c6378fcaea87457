"""NumPy's classes, called on traced values: `np.float64(t)`, `np.ndenumerate(x)`.

A class is also a dtype, and an operand of `isinstance`. So it is replaced in calls alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fnad.errors import UnsupportedFunctionError
from fnad.ir.symbol import Symbol
from fnad.ir.types import Dtype
from fnad.numpy.manipulation import layout
from fnad.numpy.operands import as_symbol
from fnad.trace.dispatch import call, call_function, on_traced

# ---- numbers ---------------------------------------------------------------------------------------------------------


def cast(dtype: Dtype) -> Callable[..., Any]:
    """The function that makes numbers of a dtype: a scalar, or an array of what has dimensions."""

    def converted(value: Any) -> Symbol:
        return as_symbol(as_symbol(value), dtype)

    def number(value: Any, *imaginary: Any) -> Any:
        result = call(converted, (value,), {})
        return result + 1j * cast(dtype)(*imaginary) if imaginary else result

    return number


# ---- elements --------------------------------------------------------------------------------------------------------


def enumerated(arr: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    """The places and the elements of an array, as np.ndenumerate."""
    array = call_function(np.asarray, (arr,), {})
    return zip(np.ndindex(array.shape), array.flat, strict=True)


def iterated(op: Any, flags: Any = None, op_flags: Any = None, **options: Any) -> Iterator[Any]:
    """The elements of an array, or of several broadcast, as np.nditer goes over them if asked for no more.

    Raises `UnsupportedFunctionError` for its options, and of more than one dimension for the order in memory.
    """
    order = layout(options.pop("order", "K"), "K")
    if flags or op_flags or options:
        raise UnsupportedFunctionError.here(
            "numpy.nditer has no rule for its flags and operand flags", remedy="write the loop with np.ndenumerate"
        )
    operands = op if isinstance(op, (list, tuple)) else (op,)
    arrays = call_function(np.broadcast_arrays, operands, {})
    if order not in ("C", "F") and arrays[0].ndim > 1:
        raise UnsupportedFunctionError.here(
            f"numpy.nditer with order={order!r} asks for the layout in memory, which is not known while tracing",
            remedy="give order='C' or order='F', or go over x.flat",
        )
    flat = [array.reshape(-1, order="F" if order == "F" else "C") for array in arrays]
    elements = ([np.broadcast_to(part[i], ()) for part in flat] for i in range(flat[0].size))
    return (tuple(values) if len(values) > 1 else values[0] for values in elements)


CODES = "?bBhHiIlLqQfdFD"
"""NumPy's characters for its numbers; one size may have two, as those of C's `long` and `long long`."""

CLASSES: dict[type, Callable[..., Any]] = {
    **{dtype.type: on_traced(dtype.type, cast(dtype)) for dtype in map(np.dtype, CODES)},
    np.ndenumerate: on_traced(np.ndenumerate, enumerated),
    np.nditer: on_traced(np.nditer, iterated),
}
"""The replacements of NumPy's classes in calls."""
