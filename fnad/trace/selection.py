"""x[mask] where the mask is traced: the elements where it is true, whose number is not known while tracing.

Such a selection is no array. It is kept as the whole array and the mask. What is computed element by element is
computed of the whole; a reduction counts what is selected; and it can be written back under the same mask:

    (x[x > 0] ** 2).mean()        y[mask] = np.exp(x[mask])        x[x < 0] *= 0.1

What is not selected has no part in results or derivatives. Whatever needs the number of elements is an error.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from fnad.errors import OutOfRangeError, TracerEscapeError
from fnad.ir.symbol import Symbol
from fnad.numpy import methods
from fnad.numpy.operands import Unsized, as_symbol
from fnad.numpy.reductions import highest, lowest
from fnad.ops.comparison import select
from fnad.ops.requirement import require
from fnad.ops.shape import broadcast_to, reshape_to
from fnad.trace.dispatch import call
from fnad.trace.source import current_source

REMEDY = (
    "choose with np.where(mask, a, b), reduce with where=mask; of x[mask] itself there are reductions, what is "
    "computed element by element, and assignment under the same mask"
)

ELEMENTWISE = (np.clip, np.nan_to_num, np.round, np.around, np.real, np.imag, np.where, np.angle, np.isclose)
"""Array functions that act element by element."""

WITH_WHERE = (np.sum, np.prod, np.mean, np.var, np.std, np.any, np.all, np.nansum, np.nanprod, np.nanmean, np.nanstd)
"""Reductions with an option `where` and a value for no elements."""

EXTREMA: dict[Any, Callable[..., Any]] = {np.max: lowest, np.min: highest, np.amax: lowest, np.amin: highest}
"""Reductions without, and what changes nothing in them."""

REDUCTIONS: dict[Any, Any] = {np.add: np.sum, np.multiply: np.prod, np.maximum: np.max, np.minimum: np.min}
"""The function that the method `reduce` of a ufunc is."""

EMPTY = {
    "message": "zero-size array to reduction operation which has no identity: no element is selected",
    "remedy": "give `initial`, or put a value in the place of what is left out: np.max(np.where(mask, x, value))",
}


def number_asked(what: str) -> TracerEscapeError:
    """The error for what depends on how many elements there are."""
    return TracerEscapeError(
        f"{what}: the shape of the result depends on a traced value, the mask",
        source=current_source(),
        remedy=REMEDY,
    )


class Selection(NDArrayOperatorsMixin, Unsized):
    """The elements of an array where a traced mask over its first axes is true."""

    __slots__ = ("mask", "values")

    def __init__(self, values: Any, mask: Any) -> None:
        self.values = values
        self.mask = mask

    def refusal(self, what: str) -> TracerEscapeError:
        return number_asked(what)

    # ---- element by element ------------------------------------------------------------------------------------------

    def map(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Selection:
        """The selection from what a function makes of the whole arrays."""
        whole = function(*[self._whole(arg) for arg in args], **{k: self._whole(arg) for k, arg in kwargs.items()})
        return Selection(whole, self.mask)

    def _whole(self, operand: Any) -> Any:
        if isinstance(operand, Selection):
            self._check_same_mask(operand)
            return operand.values
        if np.ndim(operand) > self.values.ndim - self.mask.ndim:
            raise number_asked(f"x[mask] beside an array of shape {np.shape(operand)}")
        return operand

    def _check_same_mask(self, other: Selection) -> None:
        if self.mask.symbol.atom is not other.mask.symbol.atom:
            raise number_asked("selections by two masks")

    # ---- NumPy's protocols -------------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        if method == "reduce" and ufunc in REDUCTIONS:
            return self.reduce(REDUCTIONS[ufunc], kwargs.pop("axis", 0), **kwargs)
        if method != "__call__" or ufunc.nout != 1 or ufunc.signature is not None:
            raise number_asked(f"numpy.{ufunc.__name__}")
        result = self.map(ufunc, inputs, kwargs)
        return result if out is None else self._store(result, out)

    def _store(self, result: Selection, out: Any) -> Any:
        (target,) = out
        if not isinstance(target, Selection):
            raise number_asked("out=")
        self._check_same_mask(target)
        target.values = result.values.astype(target.values.dtype, casting="same_kind")
        return target

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function in ELEMENTWISE:
            return self.map(function, args, kwargs)
        if (function in WITH_WHERE or function in EXTREMA) and args and args[0] is self:
            return self.reduce(function, *args[1:], **kwargs)
        if function is np.count_nonzero and len(args) == 1:
            return (self != 0).reduce(np.sum)
        if function in (np.dot, np.vdot, np.inner):
            left = np.conjugate(args[0]) if function is np.vdot else args[0]
            return np.multiply(left, args[1]).reduce(np.sum)
        raise number_asked(f"{function.__module__}.{function.__name__}")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise number_asked("np.asarray(x[mask])")

    # ---- reductions --------------------------------------------------------------------------------------------------

    def reduce(self, function: Any, axis: Any = None, *args: Any, **kwargs: Any) -> Any:
        """A reduction over what is selected, and over the other axes too if no axis is given."""
        if axis not in (None, 0):
            raise number_asked(f"axis={axis}")
        count = self.mask.ndim
        axes = tuple(range(count)) if axis == 0 else None
        where = np.reshape(self.mask, (*self.mask.shape, *(1,) * (self.values.ndim - count)))
        if function in EXTREMA:
            kwargs.setdefault("initial", EXTREMA[function](self.values.dtype))
            found = function(self.values, axes, *args, where=where, **kwargs)
            return call(require, (found, np.any(self.mask)), EMPTY)
        return function(self.values, axes, *args, where=where, **kwargs)

    # ---- an array among others ---------------------------------------------------------------------------------------

    @property
    def dtype(self) -> Any:
        return self.values.dtype

    @property
    def ndim(self) -> int:
        return 1 + self.values.ndim - self.mask.ndim

    @property
    def shape(self) -> Any:
        raise number_asked("its shape")

    @property
    def size(self) -> Any:
        raise number_asked("its size")

    @property
    def real(self) -> Selection:
        return Selection(self.values.real, self.mask)

    @property
    def imag(self) -> Selection:
        return Selection(self.values.imag, self.mask)

    def __len__(self) -> int:
        raise number_asked("its length")

    def __iter__(self) -> Any:
        raise number_asked("iteration over x[mask]")

    def __getitem__(self, index: Any) -> Any:
        raise number_asked("an element of x[mask]")

    def __setitem__(self, index: Any, value: Any) -> None:
        raise number_asked("an element of x[mask]")

    def __bool__(self) -> bool:
        raise number_asked("the truth of x[mask]")

    def astype(self, dtype: Any) -> Selection:
        return Selection(self.values.astype(dtype), self.mask)

    def copy(self) -> Selection:
        return Selection(self.values, self.mask)

    def dot(self, other: Any) -> Any:
        return np.dot(self, other)

    def __pow__(self, other: Any) -> Selection:
        return self.map(operator.pow, (self, other), {})

    __matmul__ = dot


def _reduction(function: Any) -> Callable[..., Any]:
    return lambda selection, *args, **kwargs: selection.reduce(function, *args, **kwargs)


def _each(function: Any) -> Callable[..., Any]:
    return lambda selection, *args, **kwargs: selection.map(function, (selection, *args), kwargs)


for _name in ("sum", "prod", "mean", "var", "std", "any", "all", "max", "min"):
    setattr(Selection, _name, _reduction(getattr(np, _name)))
for _name in ("clip", "round", "conjugate"):
    setattr(Selection, _name, _each(getattr(np, _name)))


# ---- on traced arrays ------------------------------------------------------------------------------------------------


def selection(x: Any, mask: Any) -> Selection:
    """X[mask]: as in NumPy a copy."""
    check_mask(x.aval.shape, mask.aval.shape)
    return Selection(*[call(methods.copy, (array,), {}) for array in (x, mask)])


def check_mask(shape: Any, mask: Any) -> None:
    """Raise as NumPy where a mask has not the shape of the first axes of an array."""
    if mask != shape[: len(mask)]:
        raise OutOfRangeError(
            f"boolean index did not match indexed array: shape of the array is {shape}, of the index {mask}",
            source=current_source(),
            remedy="give a mask of the shape of the array, or of its first axes",
        )


def put(x: Symbol, mask: Symbol, values: Any) -> Symbol:
    """X with the values where a mask over its first axes is true."""
    where = broadcast_to(reshape_to(mask, (*mask.shape, *(1,) * (x.ndim - mask.ndim))), x.shape)
    return select(where, broadcast_to(as_symbol(values, x.dtype), x.shape), x)


def values_under(mask: Any, chosen: Selection) -> Any:
    """The whole array of a selection that is written under the same mask."""
    if getattr(mask, "symbol", None) is None or mask.symbol.atom is not chosen.mask.symbol.atom:
        raise number_asked("x[mask] written under another index")
    return chosen.values
