"""Arrays of `numpy.ma` on traced values: data and a mask, each traced or known, by the rules of numpy.ma.

A result is masked where an operand is, or where the function is not defined (`np.ma.log`, a division by 0); reductions
leave out what is masked. The functions of numpy.ma without a rule run in their own code, converted
(`fnad.trace.entering`). A number is masked or not for the arguments at hand, which is a guard; in the body of a loop,
where these are not known, it has to be unmasked when the program runs.

The mask is an array where numpy.ma shrinks one without a true element to `nomask`: that depends on values.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.ma as ma

from fnad.errors import TracerEscapeError
from fnad.trace.capture import APART
from fnad.trace.dispatch import call_function
from fnad.trace.handle import Aside
from fnad.trace.masked_operands import (
    data_in,
    data_of,
    fill_value_of,
    is_handle,
    is_kept,
    is_masked_array,
    is_no_divisor,
    mask_of,
    mask_or,
    masks_in,
    may_be_masked,
    number,
    unsupported,
    whole_mask_of,
)
from fnad.trace.operators import BINARY, COMPARISONS
from fnad.trace.tracer import operators
from fnad.upward import UPWARD

Function = Callable[..., Any]
CORE: Any = ma.core
"""Its domains of ufuncs, which its stubs lack."""


class TracedMaskedArray(Aside):
    """A masked array of which data or mask are traced; the mask is `nomask` or an array of the shape of the data."""

    __slots__ = ("_data", "_fill_value", "_mask")
    __module__ = "numpy.ma"
    __hash__ = None  # type: ignore[assignment]  # as of arrays
    _baseclass = np.ndarray

    _data: Any
    _mask: Any
    _fill_value: Any

    @property
    def __class__(self) -> Any:
        return ma.MaskedArray

    @__class__.setter
    def __class__(self, kind: Any) -> None:
        raise unsupported("an assignment of __class__")

    def like(self, data: Any, mask: Any) -> Any:
        """Another array with its value to fill with; a number if it has no dimensions."""
        return made(data, mask, self._fill_value)

    data = property(operator.attrgetter("_data"))
    shape = property(lambda self: self._data.shape)
    ndim = property(lambda self: self._data.ndim)
    size = property(lambda self: self._data.size)
    dtype = property(lambda self: self._data.dtype)

    @property
    def mask(self) -> Any:
        return self._mask

    @mask.setter
    def mask(self, value: Any) -> None:
        self._mask = whole_mask_of(self)
        self._mask[...] = value

    @property
    def fill_value(self) -> Any:
        return ma.default_fill_value(self.dtype) if self._fill_value is None else self._fill_value

    @fill_value.setter
    def fill_value(self, value: Any) -> None:
        self._fill_value = value

    @property
    def T(self) -> Any:  # noqa: N802
        return self.transpose()

    @property
    def real(self) -> Any:
        return self.like(self._data.real, self._mask)

    @property
    def imag(self) -> Any:
        return self.like(self._data.imag, self._mask)

    def __len__(self) -> int:
        return len(self._data)

    def __bool__(self) -> bool:
        return bool(self._data)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"masked_array(data={self._data!r}, mask={self._mask!r})"

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        what = "a masked array of traced values was asked for an ordinary array: it has no numbers while tracing"
        raise TracerEscapeError.here(what, remedy=APART)

    def __setattr__(self, name: str, value: Any) -> None:
        if not hasattr(TracedMaskedArray, name):
            raise unsupported(f"an assignment of numpy.ma.MaskedArray.{name}")
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(ma.MaskedArray, name):
            raise AttributeError(f"a masked array of traced values has no {name!r}", name=name, obj=self)
        raise unsupported(f"numpy.ma.MaskedArray.{name}")

    # ---- elements ------------------------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Any:
        place = data_of(index)
        return self.like(self._data[place], self._mask if self._mask is ma.nomask else self._mask[place])

    def __setitem__(self, index: Any, value: Any) -> None:
        place, mask = data_of(index), True if value is ma.masked else mask_of(value)
        if value is not ma.masked:
            self._data[place] = data_of(value)
        if is_masked_array(index) and value is not ma.masked and not is_masked_array(value):
            return
        if mask is not ma.nomask:
            self._mask = whole_mask_of(self)
        if self._mask is not ma.nomask:
            self._mask[place] = mask

    def filled(self, fill_value: Any = None) -> Any:
        if self._mask is ma.nomask:
            return self._data
        value = self.fill_value if fill_value is None else fill_value
        return np.where(self._mask, value if is_handle(value) else np.asarray(value, self.dtype), self._data)

    def compressed(self) -> Any:
        flat = np.ravel(self._data)
        return flat if self._mask is ma.nomask else flat[~np.ravel(self._mask)]

    def shrink_mask(self) -> Any:
        return self

    # ---- operators and protocols ---------------------------------------------------------------------------------

    def operated(self, ufunc: Any, operands: Any) -> Any:
        if ufunc in COMPARED:
            return of_ma(COMPARISON)(*operands, COMPARED[ufunc])
        return of_ma(ON_MA[ufunc])(*operands) if ufunc in ON_MA else on_ufunc(ufunc, "__call__", operands, {})

    def operated_in_place(self, ufunc: Any, operand: Any) -> Any:
        """Write into the data where they are not masked."""
        if ufunc not in NEUTRAL:
            name = next(name for name, each in BINARY.items() if each is ufunc)
            raise unsupported(f"numpy.ma.MaskedArray.__i{name}__")
        data, mask = data_of(operand), mask_of(operand)
        if ufunc is np.true_divide:
            wrong = is_no_divisor(self._data, data)
            data, mask = np.where(wrong, 1, data), mask_or(mask, wrong)
        if mask is not ma.nomask:
            self._mask = whole_mask_of(self)
            self._mask |= mask
        written = data if self._mask is ma.nomask else np.where(self._mask, NEUTRAL[ufunc], data)
        ufunc(self._data, written, out=self._data)
        return self

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return on_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        name = function.__name__
        if name in ON_ARRAYS and function is getattr(np, name) and args[0] is self:  # not np.linalg.diagonal
            found = getattr(self, name)
            return found if function in (np.shape, np.ndim, np.size) else found(*args[1:], **kwargs)
        if function is np.expand_dims:
            return of_both(function)(*args, **kwargs)
        return on_function(function, args, kwargs)

    # ---- reductions ----------------------------------------------------------------------------------------------

    def reduce(self, function: Function, value: Any, axis: Any, options: dict[str, Any]) -> Any:
        """A reduction with a value in the place of what is masked, which is masked itself where all is."""
        keepdims = is_kept(options.pop("keepdims", False))
        if options.pop("out", None) is not None:
            raise unsupported("the option out= of masked reductions")
        given = {name: option for name, option in options.items() if option is not None}
        result = function(self.filled(value), axis=axis, keepdims=keepdims, **given)
        if self._mask is ma.nomask:
            return self.like(result, ma.nomask)
        return self.like(result, np.all(self._mask, axis=axis, keepdims=keepdims))

    def sum(self, axis: Any = None, dtype: Any = None, **options: Any) -> Any:
        return self.reduce(np.sum, 0, axis, {"dtype": dtype, **options})

    def prod(self, axis: Any = None, dtype: Any = None, **options: Any) -> Any:
        return self.reduce(np.prod, 1, axis, {"dtype": dtype, **options})

    def all(self, axis: Any = None, **options: Any) -> Any:
        return self.reduce(np.all, True, axis, options)

    def any(self, axis: Any = None, **options: Any) -> Any:
        return self.reduce(np.any, False, axis, options)

    def min(self, axis: Any = None, out: Any = None, fill_value: Any = None, **options: Any) -> Any:
        fill = ma.minimum_fill_value(self.dtype) if fill_value is None else fill_value
        return filled_again(self.reduce(np.min, fill, axis, {"out": out, **options}))

    def max(self, axis: Any = None, out: Any = None, fill_value: Any = None, **options: Any) -> Any:
        fill = ma.maximum_fill_value(self.dtype) if fill_value is None else fill_value
        return filled_again(self.reduce(np.max, fill, axis, {"out": out, **options}))

    def mean(self, axis: Any = None, dtype: Any = None, **options: Any) -> Any:
        if self._mask is ma.nomask:
            return self.reduce(np.mean, 0, axis, {"dtype": dtype, **options})
        total = self.sum(axis, dtype, **options)
        return total if total is ma.masked else total * 1.0 / self.count(axis, options.get("keepdims", False))

    def var(self, axis: Any = None, dtype: Any = None, out: Any = None, ddof: int = 0, **options: Any) -> Any:
        if self._mask is ma.nomask:
            return self.reduce(np.var, 0, axis, {"dtype": dtype, "out": out, "ddof": ddof, **options})
        mean = self.mean(axis, dtype, keepdims=True)
        if mean is ma.masked:
            return mean
        apart = self - mean
        squares = of_ma(ma.absolute)(apart) ** 2 if self.dtype.kind == "c" else apart * apart
        count = self.count(axis, options.get("keepdims", False)) - ddof
        found = of_ma(ma.divide)(squares.sum(axis, out=out, **options), count)
        if not is_masked_array(found) or found is ma.masked:
            return found
        return self.like(found._data, mask_or(found._mask, count <= 0))

    def cumsum(self, axis: Any = None, dtype: Any = None) -> Any:
        return self.accumulated(np.cumsum, 0, axis, dtype)

    def cumprod(self, axis: Any = None, dtype: Any = None) -> Any:
        return self.accumulated(np.cumprod, 1, axis, dtype)

    def accumulated(self, function: Function, value: Any, axis: Any, dtype: Any) -> Any:
        """A running sum or product with a value in the place of what is masked, and the mask itself."""
        found = function(self.filled(value), axis=axis, dtype=dtype)
        return self.like(found, self._mask if axis is not None else np.ravel(self._mask))


TracedMaskedArray.__name__ = TracedMaskedArray.__qualname__ = "MaskedArray"  # in messages


# ---- what there is of operands -----------------------------------------------------------------------------------


def made(data: Any, mask: Any, fill_value: Any = None) -> Any:
    """A masked array; of no dimensions, the number or `masked`."""
    if np.ndim(data) == 0:
        return number(data, mask)
    array = object.__new__(TracedMaskedArray)
    array._data, array._fill_value = data, fill_value
    array._mask = mask if mask is ma.nomask or mask.shape == data.shape else np.broadcast_to(mask, data.shape).copy()
    return array


def as_traced(array: Any) -> Any:
    """A masked array, of which data and mask may be not traced, as one of traced ones; it shares both."""
    found = object.__new__(TracedMaskedArray)
    found._data, found._mask, found._fill_value = array._data, array._mask, array._fill_value
    return found


def of_ma(function: Function) -> Function:
    """A function of numpy.ma that follows its rule."""
    return UPWARD.callee(function)


def filled_again(x: Any) -> Any:
    """An extremum of rows, with its value to fill with as the data of those of which nothing is left."""
    return x.like(x.filled(), x._mask) if issubclass(type(x), TracedMaskedArray) else x


def on_ufunc(ufunc: Any, method: str, inputs: Any, kwargs: Any) -> Any:
    """A NumPy ufunc on masked arrays: computed everywhere, and masked outside of its domain too."""
    if ufunc is np.matmul and method == "__call__" and not kwargs:
        return on_function(ufunc, inputs, kwargs)
    if method != "__call__" or kwargs.keys() - {"dtype"} or ufunc.nout != 1 or ufunc.signature is not None:
        raise unsupported(f"numpy.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}"))
    data, mask = [data_of(x) for x in inputs], mask_or(*map(mask_of, inputs))
    result, domain = ufunc(*data, **kwargs), CORE.ufunc_domain.get(ufunc)
    if domain is not None:
        wrong = is_no_divisor(*data) if len(data) == 2 else mask_or(domain(*data), mask)
        mask, fill = mask_or(mask, wrong), CORE.ufunc_fills[ufunc]
        result = np.where(wrong, np.asarray(fill if len(data) == 1 else fill[-1], result.dtype), result)
    return made(result, mask, fill_value_of(*inputs))


OF_DATA = {
    *(np.broadcast_to, np.convolve, np.corrcoef, np.correlate, np.cov, np.einsum, np.inner, np.interp, np.linalg.norm),
    *(np.outer, np.polyval, np.vdot, np.where),
}
"""NumPy functions that make ordinary arrays of masked ones."""

OF_BOTH_KINDS = {
    *(np.append, np.atleast_1d, np.atleast_2d, np.concatenate, np.diff, np.dot, np.hstack, np.linalg.inv),
    *(np.linalg.solve, np.matmul, np.sort, np.stack, np.tile, np.vstack),
}
"""Those that make masked arrays, without the mask."""


def on_function(function: Any, args: Any, kwargs: Any) -> Any:
    """A NumPy function that loses a mask, where nothing is masked."""
    name = f"{getattr(function, '__module__', 'numpy')}.{function.__name__}"
    if any(map(may_be_masked, masks_in([*args, *kwargs.values()]))):
        raise unsupported(name)
    found = call_function(function, [data_in(x) for x in args], {k: data_in(x) for k, x in kwargs.items()})
    if function in OF_DATA or not getattr(found, "shape", ()):
        return found
    if function not in OF_BOTH_KINDS:
        raise unsupported(name)
    return made(found, ma.nomask, fill_value_of(*args))


# ---- methods that are alike --------------------------------------------------------------------------------------


def of_both(move: Function) -> Function:
    """A method that moves the elements of data and mask alike."""

    def method(self: TracedMaskedArray, *args: Any, **kwargs: Any) -> Any:
        data, mask = (x if x is ma.nomask else move(x, *args, **kwargs) for x in (self._data, self._mask))
        return self.like(data, mask)

    return method


def operator_of(name: str) -> Function:
    """A function that calls a method of its first argument."""
    return lambda x, *args, **kwargs: getattr(x, name)(*args, **kwargs)


def composed(name: str) -> Function:
    """A method whose own code, converted, calls others."""
    return lambda self, *args, **kwargs: of_ma(getattr(ma.MaskedArray, name))(self, *args, **kwargs)  # noqa: PLW0108  # when called


def of_data(name: str) -> Function:
    """A method that changes the data, and not where they are."""
    return lambda self, *args, **kwargs: self.like(getattr(self._data, name)(*args, **kwargs), self._mask)


NEUTRAL = {np.add: 0, np.subtract: 0, np.multiply: 1, np.true_divide: 1}
"""Ufuncs of augmented assignments, with the operand that changes nothing."""

ON_MA: dict[Any, Function] = {
    getattr(np, name): getattr(ma, name) for name in ("add", "subtract", "multiply", "divide", "floor_divide")
} | {operator.pow: ma.power}
"""The functions of numpy.ma for operators."""

COMPARISON: Function = getattr(ma.MaskedArray, "_comparison")  # noqa: B009  # which its stubs lack
COMPARED = {ufunc: getattr(operator, name) for name, ufunc in COMPARISONS.items()}

ON_BOTH = ("copy", "diagonal", "flatten", "ravel", "repeat", "reshape", "squeeze", "swapaxes", "take", "transpose")
ON_DATA = ("astype", "clip", "conj", "conjugate", "round")
COMPOSED = ("anom", "argmax", "argmin", "count", "dot", "ptp", "std")
ON_ARRAYS = {
    *ON_BOTH,
    *ON_DATA,
    *("all", "any", "argmax", "argmin", "cumprod", "cumsum", "dot", "max", "mean", "min", "ndim", "prod"),
    *("shape", "size", "std", "sum", "var"),
} - {"copy", "dot"}
"""NumPy functions that call the method of a masked array; those two lose the mask."""

for _name in ON_BOTH:
    setattr(TracedMaskedArray, _name, of_both(operator_of(_name)))
for _name in ON_DATA:
    setattr(TracedMaskedArray, _name, of_data(_name))
for _name in COMPOSED:
    setattr(TracedMaskedArray, _name, composed(_name))
for _name, _member in operators():
    setattr(TracedMaskedArray, _name, _member)
