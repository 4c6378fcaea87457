"""Python's operators on traced values: by the rule of a ufunc, and on Python numbers alone with one as the result."""

from __future__ import annotations

import operator
from array import array
from collections import UserList
from collections.abc import Callable, Sequence
from importlib import import_module
from types import BuiltinFunctionType, NoneType
from typing import Any

import numpy as np

from fnad import forks
from fnad.ir.types import BOOL
from fnad.numpy.operands import NUMBERS, PYTHON_DTYPES
from fnad.numpy.registry import RULES
from fnad.ops.shape import constant
from fnad.placement import is_on_device
from fnad.trace.capture import TRIED
from fnad.trace.dispatch import as_number, call, call_function, store, weakened
from fnad.trace.handle import Aside, Elements, Handle
from fnad.trace.wrapping import SEQUENCES

OPERANDS = (Handle, Elements, np.ndarray, np.generic, int, float, complex, *SEQUENCES)
"""The operands that a Python operator takes beside a traced value."""

BINARY: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.true_divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "pow": operator.pow,
    "matmul": np.matmul,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
}
COMPARISONS: dict[str, np.ufunc] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}

LOGICAL = (np.bitwise_and, np.bitwise_or, np.bitwise_xor)
"""Operators that make a Python bool of two."""

ORDERING = (np.less, np.less_equal, np.greater, np.greater_equal)
"""Comparisons that Python's complex numbers do not have."""

PYTHON_LIKE: set[int] = {*map(id, (int, float, complex, bool))}
"""The classes of Python numbers, and those of traced values that replace them."""

ORDINARY: set[int] = {*PYTHON_LIKE, *map(id, (np.float64, np.ndarray))}
"""The commonest classes of operands, and the classes of traced values."""


def operate(ufunc: Callable[..., Any], *operands: Any) -> Any:
    """The result of a Python operator; on Python numbers alone, a Python number."""
    kinds = set(map(id, map(type, operands)))
    if PYTHON_LIKE.issuperset(kinds):
        return operate_on_numbers(ufunc, operands)
    return call(RULES[ufunc], operands, {}) if ORDINARY.issuperset(kinds) else operate_on_others(ufunc, operands)


def operate_on_numbers(ufunc: Callable[..., Any], operands: Sequence[Any]) -> Any:
    """The result of an operator on Python numbers."""
    numbers = operands if ufunc in LOGICAL else [as_number(operand) for operand in operands]
    if ufunc in ORDERING and any(isinstance(number, complex) for number in numbers):
        return NotImplemented
    if TRIED.values and len(numbers) == 2:
        import_module("fnad.trace.attempts").check_division(ufunc, *numbers)
    return weakened(call(RULES[ufunc], numbers, {}))


def operate_on_others(ufunc: Callable[..., Any], operands: Sequence[Any]) -> Any:
    """The result of an operator if an operand is neither a number nor an array of a class that is common."""
    aside = next((operand for operand in operands if issubclass(type(operand), Aside)), None)
    if aside is not None:
        return aside.operated(ufunc, operands)
    for operand in operands:
        if not isinstance(operand, OPERANDS):
            if hasattr(operand, "__pandas_priority__"):
                return import_module("fnad.trace.labelled").beside(ufunc, operands)
            if has_rules(operand):
                return import_module("fnad.trace.entering").beside(ufunc, operands)
            if is_array_like(operand, beside=operands):
                return call(RULES[ufunc], operands, {})
            return unlike(ufunc, *operands)
        if is_of_ma(type(operand)):  # to ask an object that is none of these takes longer
            return import_module("fnad.trace.entering").beside(ufunc, operands)
    if all(map(is_python_like, operands)):
        return operate_on_numbers(ufunc, operands)
    if ufunc is np.multiply and is_repetition(*operands):
        return NotImplemented
    return call(RULES[ufunc], operands, {})


def is_array_like(value: Any, beside: Sequence[Any]) -> bool:
    """True if NumPy converts a value beside these operands to an array, in place of calling its own operators."""
    if is_on_device(value):
        return True
    defers = getattr(value, "__array_ufunc__", value) is None or getattr(value, "__array_priority__", 0.0) > 0.0
    if defers or any(isinstance(operand, Handle) and operand.is_weak for operand in beside):
        return False
    return hasattr(value, "__array__") or isinstance(value, (range, UserList, array, memoryview))


def is_of_ma(kind: type[Any]) -> bool:
    """True if a class is one of masked arrays, which follow rules of their own (`fnad.trace.masked`)."""
    if kind is np.ndarray or not issubclass(kind, np.ndarray):
        return False
    module = forks.loaded("numpy.ma")
    return module is not None and issubclass(kind, module.MaskedArray)


def has_rules(value: Any) -> bool:
    """True for a masked array and a sparse matrix without traced elements."""
    if is_of_ma(type(value)):
        return True
    sparse = forks.loaded("scipy.sparse")
    if sparse is None or type(type(value)).__hash__ is None:
        return False
    return sparse.issparse(value) and not hasattr(type(value), "_kind")


def unmasked(value: Any) -> Any:
    """A value as it is written into an ordinary array; of an array of numpy.ma the data."""
    kind = type(value)
    if is_of_ma(kind) or (issubclass(kind, Aside) and not issubclass(kind, Handle)):
        return import_module("fnad.trace.masked_operands").unmasked(value)
    return value


UNLIKE = (str, bytes, dict, set, frozenset, slice, BuiltinFunctionType, NoneType)
"""Classes with an `__eq__` of their own, None's from Python 3.12 on, by which an object is unlike every number."""


def unlike(ufunc: Callable[..., Any], x: Any, y: Any) -> Any:
    """The comparison of an array with an object that is unlike every number, as None, element by element."""
    array, other = (x, y) if isinstance(x, Handle) else (y, x)
    is_unlike = isinstance(other, UNLIKE) or type(other).__eq__ is object.__eq__
    if ufunc not in (np.equal, np.not_equal) or array.is_scalar or not is_unlike:
        return NotImplemented
    return call(constant, (ufunc is np.not_equal, BOOL, array.aval.shape), {})


def is_repetition(x: Any, y: Any) -> bool:
    """True if a sequence is multiplied with an integer: Python repeats it, and asks for the integer's index."""
    sequence, count = (x, y) if issubclass(type(x), (list, tuple)) else (y, x)
    if not issubclass(type(sequence), (list, tuple)) or not isinstance(count, Handle):
        return False
    return count.is_scalar and count.aval.dtype.kind in "iu"


def is_python_like(value: Any) -> bool:
    """True if Python's operators take a value, or what it stands for, for its own number, as a member of an enum."""
    return (
        value.is_weak if isinstance(value, Handle) else isinstance(value, NUMBERS) and not isinstance(value, np.generic)
    )


def call_alike(function: Callable[..., Any], x: Handle, *args: Any, **kwargs: Any) -> Any:
    """The result of a function on a value: a Python number for a Python number."""
    return weakened(function(as_number(x), *args, **kwargs)) if x.is_weak else function(x, *args, **kwargs)


def python_number(x: Handle) -> Any:
    """A number as standing for Python's number of its kind, as `x.item()`."""
    kind = x.aval.dtype.kind.replace("u", "i")
    wanted = next(dtype for dtype in PYTHON_DTYPES.values() if dtype.kind == kind)
    return weakened(call_function(np.astype, (x, wanted), {}))


def operate_in_place(ufunc: Callable[..., Any], target: Any, operand: Any) -> Any:
    """The value of x after `x += y`: a scalar is replaced, an array written to."""
    if issubclass(type(target), Aside):
        return target.operated_in_place(ufunc, operand)
    operand = unmasked(operand)
    if target.is_scalar or not (isinstance(operand, OPERANDS) or is_array_like(operand, beside=[target])):
        return NotImplemented
    return store(f"numpy.{ufunc.__name__}", call(RULES[ufunc], (target, operand), {}), target)
