"""x[mask] where the mask is traced: the elements where it is true, whose number is not known while tracing.

Such a selection is kept as the whole array and the mask, as long as no more is needed. What is computed element by
element is computed of the whole; a reduction counts what is selected; and it can be written back under the same mask:

    (x[x > 0] ** 2).mean()        y[mask] = np.exp(x[mask])        x[x < 0] *= 0.1

What is not selected has no part in results or derivatives. Anything else, its length, its order, an element, needs the
mask: it is that for the arguments at hand, which becomes a guard (`fnad.trace.guards`), and from then on the selection
is an array like others. Where nobody has the arguments yet, in the body of a loop, that is an error.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from importlib import import_module
from typing import Any, cast

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from fnad.errors import OutOfRangeError, TracerEscapeError
from fnad.ir.symbol import Symbol
from fnad.numpy import indexing, methods
from fnad.numpy.operands import as_symbol
from fnad.numpy.reductions import highest, lowest
from fnad.numpy.registry import RULES
from fnad.ops.comparison import select
from fnad.ops.requirement import require
from fnad.ops.shape import broadcast_to, reshape_to
from fnad.trace.dispatch import SIMPLE, call, call_function, call_ufunc
from fnad.trace.guards import needed
from fnad.trace.handle import Aside, Deferred, Handle
from fnad.trace.operators import is_of_ma

REMEDY = (
    "the mask depends on arguments that have no numbers yet, as those of the body of a loop or of many rows of vmap: "
    "choose with np.where(mask, a, b), reduce with where=mask; of x[mask] itself there are reductions, what is "
    "computed element by element, and assignment under the same mask"
)

ELEMENTWISE = (np.clip, np.nan_to_num, np.round, np.around, np.where, np.angle, np.isclose)
"""Array functions that act element by element, and make a new array."""

WITH_WHERE = (np.sum, np.prod, np.mean, np.var, np.std, np.any, np.all, np.nansum, np.nanprod, np.nanmean, np.nanstd)
"""Reductions with an option `where` and a value for no elements."""

EXTREMA: dict[Any, Callable[..., Any]] = {np.max: lowest, np.min: highest, np.amax: lowest, np.amin: highest}
"""Reductions without, and what changes nothing in them."""

OF_UFUNCS: dict[Any, Any] = {np.add: np.sum, np.multiply: np.prod, np.maximum: np.max, np.minimum: np.min}
"""The function that the method `reduce` of a ufunc is."""

PRODUCTS = (np.dot, np.vdot, np.inner, np.matmul)
"""Functions that multiply element by element, and add."""

OPTIONS = {"dtype", "ddof", "correction", "initial"}
"""Options of reductions that do not concern the shape."""

OPERANDS = (Handle, np.ndarray, np.generic, int, float, complex, type(None))
"""The operands of a selection that are taken as they are; None is an option left out."""

EMPTY = {
    "message": "zero-size array to reduction operation which has no identity: no element is selected",
    "remedy": "give `initial`, or put a value in the place of what is left out: np.max(np.where(mask, x, value))",
}


class Masked(NDArrayOperatorsMixin, Deferred):
    """The elements of an array where a traced mask over its first axes is true; with memory it has no mask any more."""

    __slots__ = ("mask", "values")

    values: Any
    mask: Any

    @property
    def has_memory(self) -> bool:
        return self.mask is None

    def made(self) -> Symbol:
        """The elements that are selected for the arguments at hand."""
        mask, values = self.mask, self.values
        places = needed(mask.symbol)
        if places is None:
            raise TracerEscapeError.here(
                "x[mask]: the shape of the result depends on a traced value, the mask, which has no numbers here",
                remedy=REMEDY,
            )
        symbol = call(indexing.getitem, (values, places), {}).symbol
        self.mask = self.values = None
        return symbol

    @property
    def is_weak(self) -> bool:
        return False

    @property
    def is_alive(self) -> bool:
        return super().is_alive if self.mask is None else self.values.is_alive

    def like(self, values: Any) -> Any:
        """The selection of other values under the same mask."""
        return selected(type(self), values, self.mask)

    # ---- element by element ------------------------------------------------------------------------------------------

    def whole(self, operand: Any) -> Any:
        """An operand as it goes with the whole array; raise `NeedsMask` where it does not."""
        if isinstance(operand, Masked) and operand.mask is not None:
            if not self.has_mask(operand.mask) or operand.values.ndim != self.values.ndim:
                raise NeedsMask
            return operand.values
        if not isinstance(operand, OPERANDS) or np.ndim(cast("Any", operand)) > self.values.ndim - self.mask.ndim:
            raise NeedsMask
        return operand

    def has_mask(self, mask: Any) -> bool:
        """True if this is the mask of the selection."""
        return self.mask is not None and isinstance(mask, Handle) and mask.symbol.atom is self.mask.symbol.atom

    def map(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """The selection from what a function makes of the whole arrays."""
        is_array = (Handle, np.ndarray, list, tuple)
        options = {k: self.whole(arg) if isinstance(arg, is_array) else arg for k, arg in kwargs.items()}
        return self.like(function(*[self.whole(arg) for arg in args], **options))

    # ---- NumPy's protocols -------------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        first = undecided_of((*inputs, *kwargs.get("out", ())))
        try:
            if first is not None:
                return first.ufunc(ufunc, method, inputs, dict(kwargs))
        except NeedsMask:
            pass
        return call_ufunc(ufunc, method, inputs, kwargs)

    def ufunc(self, ufunc: np.ufunc, method: str, inputs: Any, kwargs: Any) -> Any:
        """The result of a ufunc on selections under this mask; raise `NeedsMask` if the mask has another shape."""
        out = kwargs.pop("out", None)
        if method == "reduce" and ufunc in OF_UFUNCS and out is None:
            return self.reduce(OF_UFUNCS[ufunc], kwargs.pop("axis", 0), **kwargs)
        if ufunc is np.matmul and out is None and not kwargs:
            return self.product(inputs)
        if method != "__call__" or ufunc.nout != 1 or ufunc.signature is not None:
            raise NeedsMask
        result = self.map(ufunc, inputs, kwargs)
        return result if out is None else self._store(result, *out)

    def _store(self, result: Any, target: Any) -> Any:
        if not (isinstance(target, Masked) and self.has_mask(target.mask)):
            raise NeedsMask
        target.values = result.values.astype(target.values.dtype, casting="same_kind")
        return target

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        first = undecided_of((*args, *kwargs.values()))
        try:
            if first is not None:
                return first.function(function, args, kwargs)
        except NeedsMask:
            pass
        return call_function(function, args, kwargs)

    def function(self, function: Any, args: Any, kwargs: Any) -> Any:
        """The result of a function on selections under this mask; raise `NeedsMask` if the mask has another shape."""
        if function in ELEMENTWISE and (function is not np.where or len(args) == 3):
            return self.map(function, args, kwargs)
        if (function in WITH_WHERE or function in EXTREMA) and args and args[0] is self:
            return self.reduce(function, *args[1:], **kwargs)
        if function is np.count_nonzero and len(args) == 1:
            return (self != 0).reduce(np.sum)
        if function in PRODUCTS and len(args) == 2 and not kwargs:
            return self.product((np.conjugate(args[0]) if function is np.vdot else args[0], args[1]))
        if function is np.real and self.values.dtype.kind != "c":
            return self
        raise NeedsMask

    # ---- reductions --------------------------------------------------------------------------------------------------

    def reduce(self, function: Any, axis: Any = None, *args: Any, **kwargs: Any) -> Any:
        """A reduction over what is selected, and over the other axes too if no axis is given."""
        count, others = self.mask.ndim, self.values.ndim - self.mask.ndim
        is_first = axis == 0 if isinstance(axis, int) else axis is None and not others
        if args or not kwargs.keys() <= OPTIONS or not (is_first or axis is None):
            raise NeedsMask
        axes = tuple(range(count)) if is_first else None
        where = np.reshape(self.mask, (*self.mask.shape, *(1,) * others))
        if function in EXTREMA and "initial" not in kwargs:
            least = EXTREMA[function](self.values.dtype)
            found = function(self.values, axes, where=where, initial=least, **kwargs)
            return call(require, (found, np.any(self.mask)), EMPTY)
        return function(self.values, axes, where=where, **kwargs)

    def product(self, operands: Any) -> Any:
        """The sum of the products of two selections of numbers."""
        if not all(isinstance(x, Masked) and x.mask is not None and x.values.ndim == x.mask.ndim for x in operands):
            raise NeedsMask
        return self.map(np.multiply, operands, {}).reduce(np.sum)

    # ---- what needs no elements --------------------------------------------------------------------------------------

    @property
    def dtype(self) -> Any:
        return self.aval.dtype if self.mask is None else self.values.dtype

    @property
    def ndim(self) -> int:
        return self.aval.ndim if self.mask is None else 1 + self.values.ndim - self.mask.ndim

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        if self.mask is None or args or kwargs:
            return call(methods.astype, (self, dtype, *args), kwargs)
        return self.like(self.values.astype(dtype))

    @property
    def real(self) -> Any:
        return np.real(self)

    @real.setter
    def real(self, value: Any) -> None:
        np.real(self)[...] = value

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        if self.mask is not None and modulus is None:
            try:
                return self.map(operator.pow, (self, other), {})
            except NeedsMask:
                pass
        return call(RULES[operator.pow], (self, other), {}) if modulus is None else pow(self + 0, other, modulus)

    def copy(self, order: str = "C") -> Any:
        return call(methods.copy, (self, order), {}) if self.mask is None else self.like(self.values.copy())


class NeedsMask(Exception):  # noqa: N818 - no error: it says which way is taken
    """The whole array and the mask do not do."""


def undecided_of(operands: Any) -> Masked | None:
    """The first selection that is no ordinary array yet."""
    for operand in operands:
        if isinstance(operand, Masked) and operand.mask is not None:
            return operand
    return None


def call_traced(function: Any, args: Any, kwargs: Any) -> Any:
    """The result of an array function on traced values, those among them that see to it themselves."""
    first = aside_of(args)
    if first is None and kwargs:
        first = aside_of(kwargs.values())
    if first is None:
        return call_function(function, args, kwargs)
    if is_of_ma(type(first)):
        return import_module("fnad.trace.masked").on_function(function, args, kwargs)
    return first.__array_function__(function, (), args, kwargs)


def aside_of(operands: Any) -> Any:
    """The first operand that sees itself to what it is computed with, or is an array of numpy.ma, in a list too."""
    for operand in operands:
        kind = type(operand)
        if id(kind) in SIMPLE or kind is np.ndarray:
            continue
        if kind is list or kind is tuple:
            found = next((x for x in operand if is_masked_array(type(x))), None)
            if found is not None:
                return found
        elif is_masked_array(kind) or (issubclass(kind, Aside) and not is_array(operand)):
            return operand
    return None


def is_masked_array(kind: type[Any]) -> bool:
    """True if a class is one of arrays of numpy.ma, traced or not."""
    return is_of_ma(kind) or (issubclass(kind, Aside) and not issubclass(kind, Handle))


def is_array(operand: Any) -> bool:
    """True if it was a selection, and has memory now."""
    return isinstance(operand, Masked) and operand.mask is None


def _method(function: Any) -> Callable[..., Any]:
    return lambda x, *args, **kwargs: x.__array_function__(function, (), (x, *args), kwargs)


for _name in ("sum", "prod", "mean", "var", "std", "any", "all", "max", "min", "round", "dot", "clip"):
    setattr(Masked, _name, _method(getattr(np, _name)))
for _name in ("conj", "conjugate"):
    setattr(Masked, _name, lambda x: np.conjugate(x))  # noqa: PLW0108  # a ufunc is no method


# ---- on traced arrays ------------------------------------------------------------------------------------------------


def selected(kind: type[Any], values: Any, mask: Any) -> Any:
    """A selection of a class, of arrays that nobody else has."""
    selection = object.__new__(kind)
    selection.values, selection.mask, selection.is_scalar = values, mask, False
    return selection


def selection(kind: type[Any], x: Any, mask: Any) -> Any:
    """X[mask] as a selection of a class: as in NumPy a copy."""
    check_mask(x.aval.shape, mask.aval.shape)
    return selected(kind, *[call(methods.copy, (array,), {}) for array in (x, mask)])


def check_mask(shape: Any, mask: Any) -> None:
    """Raise as NumPy where a mask has not the shape of the first axes of an array."""
    if mask != shape[: len(mask)]:
        raise OutOfRangeError.here(
            f"boolean index did not match indexed array: shape of the array is {shape}, of the index {mask}",
            remedy="give a mask of the shape of the array, or of its first axes",
        )


def put(x: Symbol, mask: Symbol, values: Any) -> Symbol:
    """X with the values where a mask over its first axes is true."""
    where = broadcast_to(reshape_to(mask, (*mask.shape, *(1,) * (x.ndim - mask.ndim))), x.shape)
    return select(where, broadcast_to(as_symbol(values, x.dtype), x.shape), x)


def is_under(mask: Any, value: Any, ndim: int) -> bool:
    """True if a value is a selection by this mask from an array of so many dimensions."""
    return isinstance(value, Masked) and value.has_mask(mask) and value.values.ndim == ndim
