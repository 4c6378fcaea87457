"""Reductions over axes: sums, products, extrema, logic, positions; running sums; and the same as methods of ufuncs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fnad.errors import ArgumentTypeError, ShapeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, DTYPES, I64, Dtype, is_inexact, native_dtype
from fnad.numpy import lexicographic
from fnad.numpy.operands import Ints, as_symbol, axis_of, broadcast_all, reduced_axes, reduced_shape, to_dtype
from fnad.numpy.registry import OF_AVALS, UNSET, implements
from fnad.ops import cumulative, reduction
from fnad.ops.arithmetic import add, mul
from fnad.ops.comparison import bitwise_and, bitwise_or, select
from fnad.ops.shape import broadcast_to, constant, reduce_sum, reshape_to

U64 = DTYPES["u64"]


class Reduction(NamedTuple):
    """A reduction by a primitive. `neutral(dtype)` is the value that does not change the result, if there is one."""

    name: str
    primitive: Callable[..., Symbol]
    combine: Callable[[Symbol, Symbol], Symbol]
    neutral: Callable[[Dtype], Any]
    has_identity: bool = True

    def __call__(self, x: Symbol, axis: Any, keepdims: Any = False, initial: Any = UNSET, where: Any = True) -> Symbol:
        """Reduce: elements that `where` leaves out are neutral, `initial` is combined with the result."""
        axes = reduced_axes(axis, x.ndim)
        is_masked = where is not True
        if initial is None or (not self.has_identity and initial is UNSET):
            self._check_nonempty(x, axes, is_masked)
        if is_masked:
            x = masked(x, where, self.neutral(x.dtype))
        result = self._over(x, axes, keepdims)
        if not is_given(initial):
            return result
        return self.combine(result, broadcast_to(as_symbol(initial, x.dtype), result.shape))

    def _over(self, x: Symbol, axes: Ints, keepdims: bool) -> Symbol:
        shape = reduced_shape(x.shape, axes, keepdims)
        if not axes:
            return x
        if not self.has_identity and any(x.shape[a] == 0 for a in axes):
            return constant(self.neutral(x.dtype), x.dtype, shape)
        return reshape_to(self.primitive(x, axes=tuple(sorted(axes))), shape)

    def _check_nonempty(self, x: Symbol, axes: Ints, is_masked: bool) -> None:
        if is_masked:
            raise ShapeError(
                f"reduction operation '{self.name}' does not have an identity, "
                "so to use a where mask one has to specify 'initial'"
            )
        if any(x.shape[a] == 0 for a in axes):
            raise ShapeError(f"zero-size array to reduction operation {self.name} which has no identity")


def is_given(option: Any) -> bool:
    """True if a number was given."""
    return option is not UNSET and option is not None


def masked(x: Symbol, where: Any, value: Any) -> Symbol:
    """X with a number where the mask is false."""
    keep, x = broadcast_all([as_symbol(where, BOOL), x])
    return select(keep, x, constant(value, x.dtype, x.shape))


def lowest(dtype: Dtype) -> Any:
    """The smallest value of a dtype."""
    if dtype.kind == "c":
        return complex(-np.inf, -np.inf)
    return -np.inf if is_inexact(dtype) else np.iinfo(dtype).min


def highest(dtype: Dtype) -> Any:
    """The largest value of a dtype."""
    if dtype.kind == "c":
        return complex(np.inf, np.inf)
    return np.inf if is_inexact(dtype) else np.iinfo(dtype).max


SUM = Reduction("add", reduce_sum, add, lambda _: 0)
PRODUCT = Reduction("multiply", reduction.reduce_prod, mul, lambda _: 1)
MAX = Reduction("maximum", lexicographic.reduce_max, lexicographic.maximum, lowest, has_identity=False)
MIN = Reduction("minimum", lexicographic.reduce_min, lexicographic.minimum, highest, has_identity=False)
ALL = Reduction("logical_and", reduction.reduce_and, bitwise_and, lambda _: True)
ANY = Reduction("logical_or", reduction.reduce_or, bitwise_or, lambda _: False)

OF_BOOLS = {SUM: ANY, PRODUCT: ALL, MAX: ANY, MIN: ALL}
"""The replacement of a reduction on bools."""


def reduce(
    kind: Reduction, x: Symbol, axis: Any, keepdims: Any = False, initial: Any = UNSET, where: Any = True
) -> Symbol:
    """Reduce an array of any dtype."""
    if x.dtype == BOOL and kind in OF_BOOLS:
        kind = OF_BOOLS[kind]._replace(name=kind.name, has_identity=kind.has_identity)
    return kind(x, axis, keepdims, initial, where)


def accumulator_dtype(dtype: Dtype) -> Dtype:
    """The dtype that NumPy sums and multiplies in: narrow integers are widened to a machine word."""
    if dtype.kind in "bi":
        return I64
    return U64 if dtype.kind == "u" else dtype


def widened(a: Any, dtype: Any) -> Symbol:
    """The operand in the dtype it is summed in."""
    x = as_symbol(a)
    return to_dtype(x, accumulator_dtype(x.dtype) if dtype is None else native_dtype(dtype))


# ---- functions -------------------------------------------------------------------------------------------------------


@implements(np.sum)
def sum_(a: Any, axis: Any, dtype: Any, keepdims: Any, initial: Any, where: Any) -> Symbol:
    return reduce(SUM, widened(a, dtype), axis, keepdims, initial, where)


@implements(np.prod)
def prod(a: Any, axis: Any, dtype: Any, keepdims: Any, initial: Any, where: Any) -> Symbol:
    return reduce(PRODUCT, widened(a, dtype), axis, keepdims, initial, where)


def _extremum(kind: Reduction) -> Callable[..., Symbol]:
    return lambda a, axis, keepdims, initial, where: reduce(kind, as_symbol(a), axis, keepdims, initial, where)


max_ = implements(np.max, np.amax)(_extremum(MAX))
min_ = implements(np.min, np.amin)(_extremum(MIN))


def _logic(kind: Reduction) -> Callable[..., Symbol]:
    return lambda a, axis, keepdims, where: kind(as_symbol(a, BOOL), axis, keepdims, where=where)


all_ = implements(np.all)(_logic(ALL))
any_ = implements(np.any)(_logic(ANY))


@implements(np.count_nonzero)
def count_nonzero(a: Any, axis: Any, keepdims: Any) -> Symbol:
    return SUM(to_dtype(as_symbol(a, BOOL), I64), axis, keepdims)


def _position(primitive: Callable[..., Symbol]) -> Callable[..., Symbol]:
    def rule(a: Any, axis: Any, keepdims: Any) -> Symbol:
        x = as_symbol(a)
        flat = x if axis is not None and x.shape else reshape_to(x, (x.aval.size,))
        found = primitive(flat, axis=axis_of(0 if axis is None else axis, flat.ndim))
        axes = reduced_axes(axis, x.ndim)
        return reshape_to(found, reduced_shape(x.shape, axes, keepdims))

    return rule


argmax = implements(np.argmax)(_position(lexicographic.argmax))
argmin = implements(np.argmin)(_position(lexicographic.argmin))


@implements(np.cumsum)
def cumsum(a: Any, axis: Any, dtype: Any) -> Symbol:
    x = widened(a, dtype)
    if axis is None or not x.shape:
        x, axis = reshape_to(x, (x.aval.size,)), axis or 0
    return running(reduction.cumsum, x, axis_of(axis, x.ndim))


def running(scan: Callable[..., Symbol], x: Symbol, axis: int) -> Symbol:
    """Running sums or products; of bools, whether they are 0."""
    if x.dtype == BOOL:
        return to_dtype(scan(to_dtype(x, I64), axis=axis, reverse=False), BOOL)
    return scan(x, axis=axis, reverse=False)


# ---- methods of ufuncs -----------------------------------------------------------------------------------------------


def _reduce_method(kind: Reduction, prepare: Callable[[Any, Any], Symbol]) -> Callable[..., Symbol]:
    return lambda array, axis, dtype, keepdims, initial, where: reduce(
        kind, prepare(array, dtype), axis, keepdims, initial, where
    )


def _as_is(array: Any, dtype: Any) -> Symbol:
    return as_symbol(array, None if dtype is None else native_dtype(dtype))


def _as_bool(array: Any, dtype: Any) -> Symbol:
    return as_symbol(array, BOOL)


implements((np.add, "reduce"))(_reduce_method(SUM, widened))
implements((np.multiply, "reduce"))(_reduce_method(PRODUCT, widened))
implements((np.maximum, "reduce"))(_reduce_method(MAX, _as_is))
implements((np.minimum, "reduce"))(_reduce_method(MIN, _as_is))
implements((np.logical_and, "reduce"))(_reduce_method(ALL, _as_bool))
implements((np.logical_or, "reduce"))(_reduce_method(ANY, _as_bool))


@implements((np.add, "accumulate"))
def add_accumulate(array: Any, axis: Any, dtype: Any) -> Symbol:
    return cumsum(several(array), axis, dtype)


def several(array: Any) -> Symbol:
    """The operand of an `accumulate`, which takes no number."""
    x = as_symbol(array)
    if x.ndim == 0:
        raise ArgumentTypeError(
            "cannot accumulate on a scalar",
            remedy="a row of a vector is a number in the body of vmap: give an array, np.atleast_1d(x)",
        )
    return x


# ---- running products ------------------------------------------------------------------------------------------------


@implements(np.cumprod)
def cumprod(a: Any, axis: Any, dtype: Any) -> Symbol:
    x = widened(a, dtype)
    if axis is None or not x.shape:
        x, axis = reshape_to(x, (x.aval.size,)), axis or 0
    return running(cumulative.cumprod, x, axis_of(axis, x.ndim))


@implements((np.multiply, "accumulate"))
def multiply_accumulate(array: Any, axis: Any, dtype: Any) -> Symbol:
    return cumprod(several(array), axis, dtype)


OF_AVALS.update((sum_, prod, cumsum, cumprod))
