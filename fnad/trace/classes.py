"""NumPy's classes, called on traced values: `np.float64(t)`, `np.ndenumerate(x)`.

A class is asked for in many ways, as a dtype and by isinstance too, and stays what it is for all of these. Only where
an attribute is loaded to be called at once, which the instruction says, a function may stand for it.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterator, Sequence
from dis import Instruction
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

import numpy as np

from fnad.ir.symbol import Symbol
from fnad.ir.types import DTYPES, Dtype
from fnad.numpy.namespace import CALLS
from fnad.numpy.operands import as_symbol
from fnad.trace.dispatch import call, call_function, has_traced

ATTRIBUTE = {"LOAD_ATTR", "LOAD_METHOD"}


def is_called(frame: FrameType) -> bool:
    """Say whether the attribute that the code of a frame asks for is called at once."""
    return frame.f_lasti in called_at(frame.f_code)


@lru_cache(maxsize=4096)
def called_at(code: CodeType) -> frozenset[int]:
    """Return the offsets of the instructions that load an attribute for a call."""
    steps = list(dis.get_instructions(code))
    loads = [i for i, step in enumerate(steps) if step.opname in ATTRIBUTE]
    return frozenset(steps[i].offset for i in loads if _is_callee(steps, i))


def _is_callee(steps: Sequence[Instruction], at: int) -> bool:
    """Say whether what is loaded is called: a method is, and what stands beside the NULL that calls of others have.

    Up to Python 3.12 the NULL is pushed before the expression that is called, later behind it.
    """
    step, following = steps[at], steps[at + 1].opname
    if step.opname == "LOAD_METHOD" or (sys.version_info >= (3, 12) and (step.arg or 0) & 1):
        return True
    if sys.version_info >= (3, 13):
        return following == "PUSH_NULL"
    first = next(i for i in range(at - 1, -1, -1) if steps[i].opname not in ATTRIBUTE)
    has_null = steps[first].opname == "LOAD_GLOBAL" and bool((steps[first].arg or 0) & 1)
    return following not in ATTRIBUTE and (has_null or steps[max(first - 1, 0)].opname == "PUSH_NULL")


def on_traced_class(kind: type, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what stands for a class that is called: a function where an argument is traced."""

    def made(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs) if has_traced((args, kwargs)) else kind(*args, **kwargs)

    return made


# ---- numbers ---------------------------------------------------------------------------------------------------------


def cast(dtype: Dtype) -> Callable[..., Any]:
    """Return the function that makes numbers of a dtype: a scalar, or an array of what has dimensions."""

    def converted(value: Any) -> Symbol:
        return as_symbol(as_symbol(value), dtype)

    def number(value: Any, *imaginary: Any) -> Any:
        result = call(converted, (value,), {})
        return result + 1j * cast(dtype)(*imaginary) if imaginary else result

    return number


# ---- elements --------------------------------------------------------------------------------------------------------


def enumerated(arr: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Yield the places and the elements of an array, as np.ndenumerate."""
    array = call_function(np.asarray, (arr,), {})
    return zip(np.ndindex(array.shape), array.flat, strict=True)


CLASSES: dict[type, Callable[..., Any]] = {
    **{dtype.type: on_traced_class(dtype.type, cast(dtype)) for dtype in DTYPES.values()},
    np.ndenumerate: on_traced_class(np.ndenumerate, enumerated),
}
"""What stands for a class of NumPy's where it is called."""


def standing_for(kind: type, frame: FrameType) -> Any:
    """Return a class, or what stands for it where the code of a frame calls it."""
    return CLASSES[kind] if kind in CLASSES and is_called(frame) else kind


CALLS.update(standing_for=standing_for)
