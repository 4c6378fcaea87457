"""NumPy and SciPy functions that are what their own bodies make of traced values.

Such a body runs converted, as user code does (`fnad.trace.conversion`): hooks replace what it calls, and convert the
functions of NumPy and SciPy that it calls. Only functions of SciPy for any kind of array have substitutes here.

A function is listed here if its program is not larger than that of a rule and its derivatives are as good. It must not
branch on a traced value, which would be a guard. To trace a body takes two to four times as long as a rule, 0.1 to 0.3
ms, so what is called in inner loops, as `np.diff` is, has a rule.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from fnad.codes import with_code
from fnad.numpy.namespace import followed, on_trace
from fnad.numpy.registry import RULES
from fnad.upward import UPWARD

SHAPES = (
    *(np.array_split, np.atleast_1d, np.atleast_2d, np.atleast_3d, np.dsplit, np.flip, np.fliplr, np.flipud),
    *(np.hsplit, np.matrix_transpose, np.meshgrid, np.rollaxis, np.rot90, np.split, np.unstack, np.vsplit),
    np.linalg.matrix_transpose,
)
"""Views: what is seen of traced values through a body is theirs."""

WHAT_IS_KNOWN = (np.iscomplexobj, np.isrealobj, np.ndim, np.shape, np.size)

ELEMENTS = (
    *(np.angle, np.append, np.iscomplex, np.isneginf, np.isposinf, np.isreal, np.nan_to_num),
    *(np.select, np.sort_complex),
)

SUMS = (*(np.cumulative_prod, np.cumulative_sum, np.nancumprod, np.nancumsum, np.nanprod, np.nansum, np.unwrap),)

OTHERS = (
    *(np.apply_over_axes, np.corrcoef, np.diag_indices_from, np.extract, np.histogram2d, np.ix_, np.kron, np.ptp),
    *(np.tril_indices_from, np.triu_indices_from, np.polyadd, np.polyder, np.polyint, np.polysub, np.polyval),
    *(np.real_if_close, np.trapezoid),
)

SETS = (
    *(np.setxor1d, np.trim_zeros, np.union1d, np.unique_all, np.unique_counts, np.unique_inverse, np.unique_values),
)
"""Their results have as many elements as masks have true ones."""

FFT = (
    *(np.fft.fft2, np.fft.fftn, np.fft.fftshift, np.fft.ifft2, np.fft.ifftn, np.fft.ifftshift, np.fft.irfft2),
    *(np.fft.irfftn, np.fft.rfft2, np.fft.rfftn),
)

LINALG = (
    *(np.linalg.cross, np.linalg.diagonal, np.linalg.matmul, np.linalg.matrix_norm, np.linalg.matrix_power),
    *(np.linalg.multi_dot, np.linalg.outer, np.linalg.svdvals, np.linalg.tensordot, np.linalg.tensorinv),
    *(np.linalg.tensorsolve, np.linalg.trace, np.linalg.vector_norm),
)

FILLED = (np.empty, np.full, np.ones, np.zeros)
"""The functions that make arrays into which traced values are written."""

SUBSTITUTES: dict[str, Callable[..., Any]] = {}
"""The replacements of SciPy's own functions for any kind of array, by name."""


class Body:
    """A body in the place of a rule: it is called on what the user gave, not on symbols."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def anew(function: FunctionType) -> FunctionType:
    """A NumPy or SciPy function with hooks, if its source is there."""
    code = UPWARD.converted_code(function.__code__, function.__globals__)
    return function if code is None else with_code(function, code)


def _taking_traced(value: Any) -> Any:
    """The replacement of a NumPy name in rules of this package."""
    if isinstance(value, ModuleType):
        return _Names(value)
    return on_trace(value) if any(value is function for function in FILLED) else followed(value)


class _Names:
    """The names of a module."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        value = vars(self)[name] = _taking_traced(found)
        return value


XP: Any = _Names(np)
"""NumPy's names for rules that are composed of functions on values."""


def _where(cond: Any, args: Any, f1: Any, f2: Any = None, /, *, fill_value: Any = None, xp: Any = None) -> Any:
    """One function where a condition holds, and another one or a number elsewhere."""
    given = args if isinstance(args, (list, tuple)) else (args,)
    return XP.where(cond, f1(*given), f2(*given) if f2 is not None else fill_value)


class _At:
    """Elements of an array that are to be replaced in a copy: `at(x)[i].set(y)`, `at(x)[i].divide(y)`."""

    def __init__(self, x: Any, index: Any = None) -> None:
        self.x, self.index = x, index

    def __getitem__(self, index: Any) -> _At:
        return _At(self.x, index)

    def set(self, value: Any, **_: Any) -> Any:
        """The array with other elements."""
        x = XP.array(self.x)
        x[self.index] = value
        return x


def _elements(function: Callable[..., Any]) -> Any:
    """The method of `_At` that computes elements from those that are there and others."""
    return lambda at, value, **_: at.set(function(at.x[at.index], value))


for _name, _ufunc in {"min": np.minimum, "max": np.maximum}.items():
    setattr(_At, _name, _elements(_ufunc))
for _name in ("add", "subtract", "multiply", "divide", "power"):
    setattr(_At, _name, _elements(getattr(np, _name)))


def _output(output: Any, input: Any, shape: Any = None, complex_output: bool = False) -> Any:
    """The array that a filter of scipy.ndimage writes into."""
    if output is None:
        output = np.promote_types(input.dtype, np.complex64) if complex_output else input.dtype
    if isinstance(output, (str, type, np.dtype)):
        return on_trace(np.zeros)(shape or input.shape, dtype=output)
    return output


def _is_lazy(x: Any) -> bool:
    """True for SciPy's functions of samples, which then read no values, and false for their decorator."""
    return sys._getframe(1).f_code.co_name != "axis_nan_policy_wrapper"  # pyright: ignore[reportPrivateUsage]


SUBSTITUTES.update(
    _get_output=_output,
    apply_where=_where,
    array_namespace=lambda *_, **__: XP,
    at=_At,
    create_diagonal=lambda x, offset=0, **_: XP.diag(x, offset),
    is_lazy_array=_is_lazy,
)


class BodyOf(Body):
    """The body of a function, with hooks."""

    def __init__(self, function: Any) -> None:
        super().__init__(inspect.unwrap(function))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return anew(self.function)(*args, **kwargs)


for _function in (*SHAPES, *WHAT_IS_KNOWN, *ELEMENTS, *SUMS, *OTHERS, *SETS, *FFT, *LINALG):
    RULES[_function] = BodyOf(_function)


def _triangle(function: Any) -> Body:
    """`np.tril` or `np.triu`, whose bodies take elements from an array of one zero in the place of a number."""
    lower = function is np.tril

    def triangle(m: Any, k: Any = 0) -> Any:
        x = XP.asanyarray(m)
        below = XP.tri(*x.shape[-2:], k=k if lower else k - 1, dtype=bool)
        return XP.where(below if lower else ~below, x, x.dtype.type(0))

    return Body(triangle)


for _function in (np.tril, np.triu):
    RULES[_function] = _triangle(_function)
